"""Bounds on the resources that one publisher can take (docs/limits.md), with an honest publisher beside it."""

import collections
import contextlib
import itertools
import os
import pathlib
import re
import select
import socket
import struct
import threading
import time
import urllib.parse

import pytest

from harness import flv, publishers, scripts
from harness.groups import MemoryGroup
from harness.rawrtmp import MEDIA, VIDEO, Closed, RawRTMP, Refused

NAME = "honest"
FEW = ("prlimit", "--nofile=600:600")


def descriptors_by_number(weir) -> dict[str, str]:
    found = {}
    for link in pathlib.Path(f"/proc/{weir.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found[link.name] = os.readlink(link)
    return found


def descriptors(weir) -> list[str]:
    return list(descriptors_by_number(weir).values())


def lasting_descriptors(weir) -> list[str]:
    """Without what is open only for a moment: a folder that is listed, a file that is looked at, a connection of this test."""
    before = descriptors_by_number(weir)
    time.sleep(0.3)
    return [name for number, name in descriptors_by_number(weir).items() if before.get(number) == name]


class Honest:
    """A publisher and its result."""

    def __init__(self, weir):
        self.weir = weir
        self.publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
        weir.wait_state(NAME, "live")
        self.before = weir.stream(NAME)

    def lost_nothing(self) -> None:
        assert self.publisher.process.poll() is None
        stream = self.weir.stream(NAME)
        assert stream["state"] == "live" and stream["startedAt"] == self.before["startedAt"]
        assert not stream["warnings"]
        metrics = self.weir.get("/metrics").good().text
        for name in ("weir_ingest_publications_total", "weir_ingest_timestamp_jumps_total", "weir_ingest_frames_lost_total"):
            values = [line.rsplit(" ", 1)[1] for line in metrics.splitlines()
                      if line.startswith(name + "{") and f'stream="{NAME}"' in line]
            assert values and all(float(value) <= (1 if "publications" in name else 0) for value in values), (name, values)


@pytest.fixture
def scene(start):
    weir = start("--target-duration", "2", wrapper=FEW)
    honest = Honest(weir)
    weir.wait(lambda: weir.stream(NAME)["recording"]["state"] == "running", 10, "a recording")
    yield weir, honest
    honest.publisher.kill()


def test_a_stream_takes_two_descriptors_and_three_for_its_recording_at_any_window(start):
    weir = start("--target-duration", "2", wrapper=FEW)
    before = len(lasting_descriptors(weir))
    stop = threading.Event()
    count = 25

    def publish(client: RawRTMP) -> None:
        with client:
            tags, shift = scripts.tags_of("short"), 0
            with contextlib.suppress(Closed):
                while not stop.is_set():
                    client.play_out([tag for tag in flv.shifted(tags, shift) if not (shift and tag.is_header)])
                    shift += 4000

    # One after another: of one address only so many may shake hands at a time.
    for number in range(count):
        client = RawRTMP(weir.rtmp).start(f"cam{number}")
        threading.Thread(target=publish, args=(client,), daemon=True).start()

    def recorded() -> int:
        return sum(stream["state"] == "live" and stream["recording"]["state"] == "running" and stream["recording"]["seconds"] > 2
                   for stream in weir.json("/api/v1/streams")["streams"])

    weir.wait(lambda: recorded() == count, 30, "all are live and recorded")
    found = lasting_descriptors(weir)
    stop.set()
    assert len([name for name in found if name.startswith("/memfd:weir-segments")]) == count
    kinds = collections.Counter(re.sub(r"cam\d+|\d{8}T\d{6}Z|\d+", "N", name) for name in found)
    assert len(found) - before <= (2 + 3) * count + 5, kinds


def jump(client: RawRTMP, tags: list[flv.Tag], count: int) -> bool:
    """Sends pairs of key frames with a jump after each, as fast as possible. Returns whether the server ended it."""
    key = next(tag for tag in tags if tag.is_key)
    try:
        client.tag(next(tag for tag in tags if tag.type == flv.VIDEO and tag.is_header))
        # Until audio is no longer awaited.
        client.play_out([flv.Tag(flv.VIDEO, number * 33, key.body) for number in range(40)])
        for number in range(2, 2 * count):
            client.drain()
            client.tag(flv.Tag(flv.VIDEO, (number // 2 * 60_000 + number % 2) & 0xFFFFFFFF, key.body))
        end = time.monotonic() + 20
        while time.monotonic() < end:
            client.drain()
            time.sleep(0.01)
    except (Closed, OSError):
        return True
    return False


def test_a_publisher_whose_clock_jumps_all_the_time_is_ended_and_no_other(scene):
    weir, honest = scene
    before = len(descriptors(weir))
    tags = scripts.tags_of("short")
    with RawRTMP(weir.rtmp).start("jumper") as client:
        assert jump(client, tags, 3000)
    most = len(descriptors(weir)) - before
    assert most <= 5, "its segments take no descriptors"
    weir.wait(lambda: any("--max-jumps" in refusal["reason"] for refusal in weir.json("/api/v1/refusals")["refusals"]
                          if refusal["stream"] == "jumper"), 10, "the reason")
    # A reconnection counts as a break, too.
    try:
        with RawRTMP(weir.rtmp).start("jumper") as client:
            assert jump(client, tags, 200)
    except Refused as refused:
        assert "too often within a minute" in str(refused)
    honest.lost_nothing()


@pytest.fixture
def roomy_scene(start):
    """Allows so many streams that half of them exceed the names of one address."""
    weir = start("--target-duration", "2", wrapper=("prlimit", "--nofile=1024:1024"))
    honest = Honest(weir)
    weir.wait(lambda: weir.stream(NAME)["recording"]["state"] == "running", 10, "a recording")
    yield weir, honest
    honest.publisher.kill()


def test_an_address_without_a_key_takes_half_of_the_streams(scene):
    weir, honest = scene
    refusals = []
    for number in range(45):
        try:
            with RawRTMP(weir.rtmp, source="127.0.0.2").start(f"name{number}"):
                pass
        except Refused as refused:
            refusals.append(str(refused))
    # 381 descriptors are for streams, and each stream takes five.
    assert len(refusals) == 45 - 38 and all("half of the streams" in said for said in refusals), refusals
    with RawRTMP(weir.rtmp, source="127.0.0.3").start("newcomer"):
        pass
    honest.lost_nothing()


def test_an_address_without_a_key_takes_so_many_names(roomy_scene):
    weir, honest = roomy_scene
    taken, refusals, began = 0, [], time.monotonic()
    for number in range(80):
        try:
            with RawRTMP(weir.rtmp).start(f"name{number}"):
                taken += 1
        except Refused as refused:
            refusals.append(str(refused))
    # One of them is the honest publisher's. A minute allows sixteen more.
    assert 63 <= taken <= 64 + (time.monotonic() - began) / 60 * 16
    assert refusals and all("names without a key" in said for said in refusals), refusals[:2]
    assert weir.get("/healthz").status == 200
    honest.lost_nothing()


@pytest.mark.long  # thirty seconds are the rule, which PublicationBoundsTests have by a clock of their own
def test_a_media_clock_that_crawls_is_ended(scene):
    """Samples arrive continuously, but their timestamps hardly advance."""
    weir, honest = scene
    tags = [tag for tag in scripts.tags_of("short") if tag.type == flv.VIDEO]
    key = next(tag for tag in tags if tag.is_key)
    began, ended = time.monotonic(), None
    with RawRTMP(weir.rtmp).start("crawler") as client:
        client.tag(next(tag for tag in tags if tag.is_header))
        try:
            for number in range(30 * 45):
                client.drain()
                client.tag(flv.Tag(flv.VIDEO, number * 3, key.body))
                time.sleep(max(0.0, began + number / 30 - time.monotonic()))
        except (Closed, OSError):
            ended = time.monotonic() - began
    assert ended and 28 < ended < 40, ended
    said = [refusal["reason"] for refusal in weir.json("/api/v1/refusals")["refusals"] if refusal["stream"] == "crawler"]
    assert any("real time" in reason for reason in said), said
    honest.lost_nothing()


def connections(weir, count: int, source: str, request: bytes = b"") -> list[socket.socket]:
    """Connections of an address to the HTTP server, each with this request and its response."""
    place, made = urllib.parse.urlsplit(weir.web), []
    for _ in range(count):
        made.append(socket.create_connection((place.hostname, place.port), timeout=5, source_address=(source, 0)))
        if request:
            made[-1].sendall(request)
            made[-1].recv(1 << 16)
    return made


def is_closed(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0]) and not connection.recv(1 << 16)


def test_an_address_with_all_connections_makes_room_for_others(start):
    weir = start("--no-record", wrapper=("prlimit", "--nofile=64:64"))
    crowd = connections(weir, 60, "127.0.0.2", b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n")
    others = []
    try:
        for number in range(3, 8):
            others += connections(weir, 1, f"127.0.0.{number}")
            others[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert others[-1].recv(1 << 16).startswith(b"HTTP/1.1 200"), number
        # One connection of the crowd for each, and theirs stay open.
        assert not any(is_closed(other) for other in others)
        cut = re.search(r'weir_viewers_cut_total{reason="full"} (\d+)', weir.get("/metrics").good().text)
        assert cut and len(others) <= int(cut[1]) <= len(others) + 4, cut
        weir.wait(lambda: sum(map(is_closed, crowd)) >= len(others), 10, "the connections of the crowd are closed")
    finally:
        for connection in crowd + others:
            connection.close()


def test_a_crowd_that_asks_nothing_keeps_no_probe_away(start):
    weir = start("--no-record", wrapper=("prlimit", "--nofile=64:64"))
    crowd, answers, began = [], [], time.monotonic()
    try:
        while (took := time.monotonic() - began) < 4 or (len(answers) <= 10 and took < 60):
            crowd = [connection for connection in crowd if not is_closed(connection)]
            with contextlib.suppress(OSError):
                crowd += connections(weir, max(1, 120 - len(crowd)), "127.0.0.2")
            answers.append(weir.get("/healthz", timeout=5).status)
        assert len(answers) > 10 and set(answers) == {200}, answers
    finally:
        for connection in crowd:
            connection.close()


def test_silent_connections_of_an_address_keep_no_publisher_away(start):
    weir = start("--no-record", wrapper=FEW)
    place = urllib.parse.urlsplit(weir.rtmp)
    crowd = []
    try:
        for _ in range(60):
            crowd.append(socket.create_connection((place.hostname, place.port), timeout=5, source_address=("127.0.0.2", 0)))
        with RawRTMP(weir.rtmp, source="127.0.0.3").start("cam"):
            assert weir.stream("cam")
        # A sixteenth of the descriptors would be 37 connections: an address has sixteen of them.
        weir.wait(lambda: sum(map(is_closed, crowd)) >= 44, 10, "the others are closed")
    finally:
        for connection in crowd:
            connection.close()


def test_a_full_server_answers_those_who_watch_it(start):
    weir = start("--no-record", wrapper=("prlimit", "--nofile=64:64"))
    connections = []
    try:
        place = urllib.parse.urlsplit(weir.web)
        for _ in range(60):
            connection = socket.create_connection((place.hostname, place.port), timeout=5)
            connections.append(connection)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.recv(1 << 16)
        for path in ("/healthz", "/readyz", "/metrics"):
            assert weir.get(path).status == 200, path
        assert weir.get("/").status == 503
    finally:
        for connection in connections:
            connection.close()


def test_a_probe_is_answered_beyond_the_connections_of_its_address(start):
    weir = start("--no-record", "--max-connections-per-address", "20")
    crowd = connections(weir, 20, "127.0.0.2", b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n")
    silent: list[socket.socket] = []
    try:
        for _ in range(3):
            # Those that ask nothing keep no place from the next.
            silent += connections(weir, 6, "127.0.0.2")
            for source, path, status in [
                    ("127.0.0.2", "/healthz", 200), ("127.0.0.2", "/readyz", 200), ("127.0.0.2", "/metrics", 503),
                    ("127.0.0.2", "/time", 503), ("127.0.0.3", "/healthz", 200), ("127.0.0.3", "/metrics", 200)]:
                assert weir.get(path, source=source, timeout=5).status == status, (source, path)
        assert not any(map(is_closed, crowd))
        weir.wait(lambda: all(map(is_closed, silent)), 10, "those that ask nothing are closed")
    finally:
        for connection in crowd + silent:
            connection.close()


def held(weir) -> int:
    """Bytes of the server's media in memfds."""
    total = 0
    for entry in pathlib.Path(f"/proc/{weir.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(entry).startswith("/memfd:weir-segments"):
                total += os.stat(entry).st_blocks * 512
    return total


MEBIBYTE = 1 << 20


def key_frames(size: int) -> tuple[flv.Tag, bytes]:
    """The sequence header of a video stream, and the body of a key frame of this many bytes."""
    tags = [tag for tag in scripts.tags_of("short") if tag.type == flv.VIDEO]
    key = next(tag for tag in tags if tag.is_key)
    return next(tag for tag in tags if tag.is_header), key.body[:5] + struct.pack(">I", size) + b"\x65" + os.urandom(size - 1)


def heavy(weir, frames: int, step: int) -> tuple[int, set[str]]:
    """Sends key frames of a megabyte, this many milliseconds apart, as fast as possible. Returns the maximum of bytes in
    memfds meanwhile, and the warnings of the stream."""
    header, large = key_frames(MEBIBYTE)
    most, warnings = 0, set()
    with RawRTMP(weir.rtmp).start("heavy", chunk_size=1 << 16) as client:
        client.tag(header)
        for number in range(frames):
            client.drain()
            client.tag(flv.Tag(flv.VIDEO, number * step, large))
            if number % 50 == 0:
                most = max(most, held(weir))
                assert weir.get("/healthz").status == 200
                if stream := weir.stream("heavy"):
                    warnings |= set(stream["warnings"])
    return most, warnings


def test_frames_of_a_megabyte_take_no_more_memory_than_a_stream_may_have(start):
    weir = start("--target-duration", "2", "--stream-memory", "64MiB", "--media-memory", "96MiB", "--no-record", wrapper=FEW)
    honest = Honest(weir)
    try:
        for step in (1, 100):
            most, warnings = heavy(weir, 300, step)
            print(f"{step} ms apart: {most / MEBIBYTE:.0f} MiB of memory files at most, {sorted(warnings)}")
            assert 32 * MEBIBYTE < most <= 96 * MEBIBYTE
            assert any("--stream-memory" in warning for warning in warnings), warnings
            # The server may read the end of the connection later; until then the name is taken.
            weir.wait(lambda: weir.stream("heavy")["state"] != "live", 10, "the publisher has left")
        honest.lost_nothing()
    finally:
        honest.publisher.kill()


def own(weir) -> int:
    """Bytes of the server's own memory."""
    status = pathlib.Path(f"/proc/{weir.process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) << 10


def standing(weir, frames: int) -> tuple[int, set[str]]:
    """Key frames of a megabyte, all of one time, a hundred a second at most. Returns the maximum of bytes of media and of the server's
    own memory that came with them, and the warnings of the stream."""
    header, large = key_frames(MEBIBYTE)
    before, most, warnings = own(weir) + held(weir), 0, set()
    with RawRTMP(weir.rtmp).start("standing", chunk_size=1 << 16) as client:
        client.tag(header)
        began = time.monotonic()
        for number in range(1, frames + 1):
            client.drain()
            client.tag(flv.Tag(flv.VIDEO, 0, large))
            time.sleep(max(0.0, began + number / 100 - time.monotonic()))
            if number % 10 == 0:
                most = max(most, own(weir) + held(weir) - before)
                warnings |= set((weir.stream("standing") or {"warnings": []})["warnings"])
        client.finish()
    return most, warnings


@pytest.mark.parametrize("frames", [200, pytest.param(800, marks=pytest.mark.long)])
def test_a_media_clock_that_stands_fills_no_memory(start, frames, record_property):
    """A stream may have a quarter of the machine, but its rate of arrival needs nothing while no time passes."""
    weir = start("--target-duration", "2", "--no-record")
    most, warnings = standing(weir, frames)
    record_property("figure", f"{most / MEBIBYTE:.0f} MiB of {frames}")
    # 32 MiB that came too slowly, what is on its way, and what malloc keeps of the 16 MiB that waited for the start.
    assert most <= 120 * MEBIBYTE, f"{most / MEBIBYTE:.0f} MiB"
    assert any("--stream-memory" in warning for warning in warnings), warnings


def test_unfinished_messages_of_an_address_end_its_largest_publication(start):
    """An eighth of the media's memory is 16 MiB, and an address without a key has 4 of them."""
    weir = start("--target-duration", "2", "--stream-memory", "64MiB", "--media-memory", "128MiB", "--no-record", wrapper=FEW)
    honest = Honest(weir)
    header, _ = key_frames(1024)
    clients: list[RawRTMP] = []
    try:
        for number in range(4):
            client = RawRTMP(weir.rtmp, source="127.0.0.2").start(f"half{number}", chunk_size=1 << 16)
            clients.append(client)
            client.tag(header)
            # The beginning of a message of 16 MiB.
            beginning = client.chunks(MEDIA, VIDEO, 0, bytes((number + 1) * MEBIBYTE), client.stream, size=16 * MEBIBYTE - 1)
            with contextlib.suppress(OSError):
                client.socket.sendall(beginning)

        def told() -> set[str]:
            return {refusal["stream"] for refusal in weir.json("/api/v1/refusals")["refusals"]
                    if "unfinished messages" in refusal["reason"] and "give it a key" in refusal["reason"]}

        # Each time the one that holds most, as the next one grows: what it sent before, or the next one itself.
        weir.wait(lambda: told() >= {"half1", "half2", "half3"}, 10, "the largest are ended")
        assert told() == {"half1", "half2", "half3"}
        weir.wait_log("half1.*unfinished messages")
        assert weir.stream("half0")["state"] == "starting", weir.stream("half0")
        honest.lost_nothing()
    finally:
        for client in clients:
            client.close()
        honest.publisher.kill()


@pytest.mark.long
def test_unfinished_messages_end_no_server_in_a_gibibyte(start, record_property):
    """Sixty publications of one address, each with a message of 16 MiB that lacks its end."""
    group = MemoryGroup(1024 * MEBIBYTE)
    clients: list[RawRTMP] = []
    try:
        inside = ("sh", "-c", f'echo $$ > {group.folder}/cgroup.procs && exec "$@"', "sh")
        weir = start("--target-duration", "2", "--no-record", wrapper=inside)
        honest = Honest(weir)
        header, _ = key_frames(1024)
        for number in range(60):
            with contextlib.suppress(Closed, OSError):
                client = RawRTMP(weir.rtmp, source="127.0.0.2").start(f"half{number}", chunk_size=1 << 16)
                clients.append(client)
                client.tag(header)
                client.socket.sendall(client.chunks(MEDIA, VIDEO, 0, bytes(15 * MEBIBYTE), client.stream, size=16 * MEBIBYTE - 1))
        figure = f"{len(clients)} publications, at most {group.most >> 20} MiB in all"
        record_property("figure", figure)
        assert len(clients) == 60 and group.kills() == 0, figure
        assert weir.get("/healthz").status == 200
        honest.lost_nothing()
        honest.publisher.kill()
        weir.stop()
    finally:
        for client in clients:
            client.close()
        group.remove()


def stalled(address: str) -> socket.socket:
    """Sends a request and reads nothing of the response."""
    place = urllib.parse.urlsplit(address)
    viewer = socket.socket()
    viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    viewer.connect((place.hostname, place.port))
    viewer.sendall(f"GET {place.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return viewer


def is_cut(viewer: socket.socket) -> bool:
    looker = select.poll()
    looker.register(viewer, 0)
    return bool(looker.poll(0))


def newest_segments(weir, stream: str) -> list[str]:
    """Addresses of the entries of its playlist."""
    answer = weir.get(f"/live/{stream}/index.m3u8")
    if answer.status != 200:
        return []
    base = urllib.parse.urljoin(f"{weir.web}/live/{stream}/", next(
        line for line in answer.text.splitlines() if line and not line.startswith("#")))
    answer = weir.get(urllib.parse.urlsplit(base).path)
    return [urllib.parse.urljoin(base, line) for line in answer.text.splitlines() if line and not line.startswith("#")]


def test_viewers_that_read_nothing_pin_no_more_than_there_is_room_for(start, record_property):
    """One unread response for each segment of a megabyte and more, which soon leaves the window."""
    group = MemoryGroup(512 * MEBIBYTE)
    viewers: list[socket.socket] = []
    stop = threading.Event()
    try:
        inside = ("sh", "-c", f'echo $$ > {group.folder}/cgroup.procs && exec "$@"', "sh")
        weir = start("--target-duration", "2", "--no-record", wrapper=inside)
        honest = Honest(weir)
        header, large = key_frames(MEBIBYTE)

        def publish() -> None:
            with RawRTMP(weir.rtmp, source="127.0.0.2").start("heavy", chunk_size=1 << 16) as client:
                client.tag(header)
                number = 0
                with contextlib.suppress(Closed, OSError):
                    while not stop.is_set():
                        client.drain()
                        client.tag(flv.Tag(flv.VIDEO, number * 1000, large))
                        number += 1
                        time.sleep(0.01)

        publisher = threading.Thread(target=publish, daemon=True)
        publisher.start()
        seen: set[str] = set()
        followed, end = 0, time.monotonic() + 150
        while len(seen) < 300 and time.monotonic() < end:
            assert weir.process.poll() is None, f"ended with {len(viewers)} viewers"
            for address in newest_segments(weir, "heavy"):
                if address not in seen:
                    seen.add(address)
                    viewers.append(stalled(address))
            # A client that reads gets all of it.
            for name in ("heavy", NAME):
                if newest := newest_segments(weir, name)[-1:]:
                    answer = weir.get(urllib.parse.urlsplit(newest[0]).path)
                    if answer.status == 404 and newest[0] not in newest_segments(weir, name):
                        continue  # a hundred come a second: it has left the window since it was listed
                    answer.good()
                    assert len(answer.body) == int(answer.headers["content-length"])
                    followed += 1
        cut = [is_cut(viewer) for viewer in viewers]
        figure = (f"{len(viewers)} viewers, {sum(cut)} cut, {followed} segments followed, at most {held(weir) >> 20} MiB of "
                  f"memory files at the end, {group.most >> 20} MiB in all")
        record_property("figure", figure)
        print(figure)
        assert group.kills() == 0
        assert len(viewers) >= 200 and followed > 20, figure
        # The oldest are closed first.
        assert all(cut[:len(cut) // 2]) and not any(cut[-3:]), figure
        assert weir.get("/healthz").status == 200
        counted = [line for line in weir.get("/metrics").good().text.splitlines()
                   if line.startswith('weir_viewers_cut_total{reason="memory"}')]
        assert len(counted) == 1 and int(counted[0].rsplit(" ", 1)[1]) >= sum(cut) // 2, counted
        honest.lost_nothing()
        stop.set()
        publisher.join(10)
        honest.publisher.kill()
        weir.stop()
    finally:
        stop.set()
        for viewer in viewers:
            viewer.close()
        group.remove()


def test_an_address_without_a_key_has_half_of_the_workers_and_is_told(start):
    """In 256 MiB there are two. What is left out is the audio alone, and the next publication has it when a worker has ended."""
    group = MemoryGroup(256 * MEBIBYTE)
    running = {}
    try:
        inside = ("sh", "-c", f'echo $$ > {group.folder}/cgroup.procs && exec "$@"', "sh")
        weir = start("--no-record", wrapper=inside)

        def publish(name: str) -> dict:
            running[name] = publishers.ffmpeg(
                "h264-30", f"{weir.rtmp}/live/{name}", loop=-1, options=("-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1"))
            return weir.wait_state(name, "live", seconds=30)

        publish("one")
        weir.wait(lambda: len(weir.stream("one")["tracks"]) == 2, 20, "both tracks")
        publish("two")
        weir.wait(lambda: "publish with a key" in str(weir.stream("two")["warnings"]), 15, "its warning")
        second = weir.stream("two")
        assert [track["kind"] for track in second["tracks"]] == ["video"], second["tracks"]
        assert not weir.stream("one")["warnings"]
        running.pop("one").kill()
        weir.wait(lambda: not any(b"transcode-worker" in line for line in weir.children().values()), 20, "the end of its worker")
        publish("three")
        weir.wait(lambda: len(weir.stream("three")["tracks"]) == 2, 20, "both tracks")
        assert group.kills() == 0
        weir.stop()
    finally:
        for publisher in running.values():
            publisher.kill()
        group.remove()


def test_many_names_of_one_address_take_nothing_of_anothers_window(start):
    weir = start("--target-duration", "2", "--stream-memory", "64MiB", "--media-memory", "64MiB", "--no-record")
    header, frame = key_frames(MEBIBYTE // 4)
    first: list[str] = []

    def attack() -> None:
        """Forty streams of three megabytes. If names counted, 1.5 would be available to each."""
        for number in range(40):
            with RawRTMP(weir.rtmp, source="127.0.0.2").start(f"name{number}", chunk_size=1 << 16) as client:
                client.tag(header)
                for index in range(12):
                    client.drain()
                    client.tag(flv.Tag(flv.VIDEO, index * 250, frame))

    attacker = threading.Thread(target=attack, daemon=True)
    with RawRTMP(weir.rtmp, source="127.0.0.3").start("steady", chunk_size=1 << 16) as client:
        client.tag(header)
        began = time.monotonic()
        for index in range(80):
            client.drain()
            client.tag(flv.Tag(flv.VIDEO, index * 100, frame))
            time.sleep(max(0.0, began + (index + 1) / 10 - time.monotonic()))
            if index == 40:
                first = newest_segments(weir, "steady")
                attacker.start()
        attacker.join(30)
        assert not attacker.is_alive() and first
        print(f"{held(weir) / MEBIBYTE:.0f} MiB of memory files")
        assert held(weir) <= 72 * MEBIBYTE
        assert weir.get(urllib.parse.urlsplit(first[0]).path).status == 200, "the oldest segment is still there"
        assert not weir.stream("steady")["warnings"]
        client.finish()


def test_a_catch_up_is_told_while_it_lasts_and_not_ended(start):
    weir = start("--target-duration", "2", "--no-record")
    tags = scripts.tags_of("short")
    media = [tag for tag in tags if not tag.is_header]

    def is_told() -> bool:
        return any("twice as fast" in warning for warning in weir.stream("hasty")["warnings"])

    # Of the last ten seconds.
    with RawRTMP(weir.rtmp).start("hasty") as client:
        client.tag(next(tag for tag in tags if tag.is_header and tag.type == flv.VIDEO))
        client.tag(next(tag for tag in tags if tag.is_header and tag.type == flv.AUDIO))
        speed, over = 2.3, threading.Event()

        def send() -> None:
            # Each tag is due by the one before it: a delay is made up for, and the speed stays what it is on average.
            due, last = time.monotonic(), 0
            for tag in itertools.chain.from_iterable(flv.shifted(media, turn * 4000) for turn in itertools.count()):
                due, last = due + (tag.milliseconds - last) / 1000 / speed, tag.milliseconds
                if over.wait(max(0.0, due - time.monotonic())):
                    return
                client.drain()
                client.tag(tag)

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        try:
            weir.wait(lambda: weir.stream("hasty") and is_told(), 40, "it is told")
            speed = 1
            weir.wait(lambda: not is_told(), 40, "it is no longer told")
            assert weir.stream("hasty")["state"] == "live"
        finally:
            over.set()
            sending.join(10)
        client.finish()


def test_a_publisher_that_never_stays_for_a_group_of_pictures_is_seen(start):
    """Each connection sends one key frame and a second of media."""
    weir = start("--no-record")
    tags = [tag for tag in scripts.tags_of("short") if tag.milliseconds < 1000]
    stop = threading.Event()

    def publish() -> None:
        while not stop.is_set():
            try:
                with RawRTMP(weir.rtmp).start("flaky") as client:
                    client.play_out(tags)
                    client.reset()
            except Refused as refusal:
                # The reset may reach the server after the next connection, whose name is then taken. Encoders try again.
                assert refusal.code == "NetStream.Publish.BadName"
                time.sleep(0.1)

    thread = threading.Thread(target=publish, daemon=True)
    began = time.monotonic()
    thread.start()
    try:
        weir.wait(lambda: weir.get("/live/flaky/index.m3u8", timeout=20).status == 200, 25, "a playlist")
        print(f"seen after {time.monotonic() - began:.1f} s")
    finally:
        stop.set()
        thread.join(10)


@pytest.fixture
def few_files(start, tmp_path):
    """A server whose streams may make three files an hour, with an honest publisher."""
    weir = start("--target-duration", "2", "--record", tmp_path / "recordings", "--record-max-files", "3")
    honest = Honest(weir)
    yield weir, honest
    honest.publisher.kill()


def recorded_names(weir) -> list[str]:
    return sorted(r["stream"] for r in weir.json("/api/v1/recordings")["recordings"])


def test_formats_that_last_less_than_a_second_make_no_recording(few_files):
    """Nor do names that are left at once."""
    weir, honest = few_files
    with RawRTMP(weir.rtmp).start("flipper") as client:
        client.play_out(scripts.two_formats_in_turn("h264-30", "portrait", 20, step=200, filler=2), speed=2)
    for number in range(5):
        with RawRTMP(weir.rtmp).start(f"gone{number}") as client:
            client.play_out([tag for tag in scripts.tags_of("short") if tag.milliseconds < 500])
    assert set(recorded_names(weir)) <= {NAME}
    honest.lost_nothing()


def test_an_encoder_that_changes_its_format_all_the_time_makes_few_recordings(few_files):
    """A stream may make this many longer ones per hour, and then gets a warning."""
    weir, honest = few_files
    for number in range(5):
        with RawRTMP(weir.rtmp).start("changing") as client:
            client.play_out([tag for tag in scripts.tags_of("short") if tag.milliseconds < 2000], speed=2)
            client.finish()
        # The next one has the name once this one's end is known.
        weir.wait_state("changing", "ended")
    weir.wait_log("has begun 3 files within an hour.*--record-max-files")
    weir.wait(lambda: recorded_names(weir).count("changing") >= 3, 20, "three recordings")
    assert recorded_names(weir).count("changing") == 3
    honest.lost_nothing()


class Download:
    """A connection that sends a request and reads only the head of the response."""

    def __init__(self, weir, path: str, source: str):
        place = urllib.parse.urlsplit(weir.web)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=20, source_address=(source, 0))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head and (data := self.socket.recv(4096)):
            head += data
        self.head = head.decode("latin-1")
        self.status = int(self.head.split(" ", 2)[1]) if self.head else None

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def library(start, tmp_path):
    """A small server with an honest publisher, and a hundred recordings larger than the buffers of a connection."""
    folder = tmp_path / "recordings"
    (folder / "old").mkdir(parents=True)
    names = [f"20200101T00{number // 60:02}{number % 60:02}Z.mp4" for number in range(100)]
    for name in names:
        with (folder / "old" / name).open("wb") as file:
            file.truncate(64 * MEBIBYTE)
    weir = start("--target-duration", "2", "--record", folder, wrapper=FEW)
    honest = Honest(weir)
    weir.wait(lambda: weir.stream(NAME)["recording"]["state"] == "running", 10, "a recording")
    yield weir, honest, [f"/recordings/old/{name}" for name in names]
    honest.publisher.kill()


def open_recordings(weir) -> int:
    return len([name for name in descriptors(weir) if "/old/" in name])


def test_downloads_of_many_recordings_leave_room_for_other_clients(library):
    weir, honest, paths = library
    downloads = []
    try:
        for path in paths:
            downloads.append(Download(weir, path, "127.0.0.2"))
        taken = [download for download in downloads if download.status == 200]
        full = [download for download in downloads if download.status == 503]
        # Of 600 descriptors, an eighth of those that are available: 54. One client takes three quarters of these.
        assert len(taken) == 41 and len(full) == 59, [download.status for download in downloads]
        assert all("\r\nretry-after: " in download.head.lower() for download in full)
        # Other clients take the rest.
        for number, path in enumerate(paths[41:60]):
            downloads.append(Download(weir, path, f"127.0.0.{10 + number % 2}"))
        assert [download.status for download in downloads[-19:]] == [200] * 13 + [503] * 6
        assert open_recordings(weir) == 54
        # A file that is open can be requested by others, and no other client is asked to wait.
        downloads.append(Download(weir, paths[0], "127.0.0.3"))
        assert downloads[-1].status == 200
        assert weir.get("/healthz").status == 200
        assert weir.get(f"/live/{NAME}/index.m3u8", timeout=20).status == 200
        with RawRTMP(weir.rtmp, source="127.0.0.3").start("newcomer"):
            pass
        honest.lost_nothing()
    finally:
        for download in downloads:
            download.close()
    weir.wait(lambda: open_recordings(weir) == 0, 10, "the files to be closed")
    again = Download(weir, paths[-1], "127.0.0.3")
    assert again.status == 200
    again.close()


def test_a_recording_that_many_download_takes_one_descriptor(library):
    weir, honest, paths = library
    before = len(descriptors(weir))
    downloads = []
    try:
        # More than twice as many as files may be open.
        for _ in range(120):
            downloads.append(Download(weir, paths[0], "127.0.0.2"))
        assert all(download.status == 200 for download in downloads)
        assert open_recordings(weir) == 1
        assert len(descriptors(weir)) - before <= 120 + 1 + 5
        assert weir.get("/healthz").status == 200
        honest.lost_nothing()
    finally:
        for download in downloads:
            download.close()


def test_publishers_who_come_at_once_wait_for_the_places_of_viewers(start):
    """More than the room beside the viewers."""
    weir = start("--target-duration", "2", wrapper=FEW)
    honest = Honest(weir)
    viewers, outcomes = [], []

    def publish(number: int) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with RawRTMP(weir.rtmp, source=f"127.0.0.{3 + number % 2}").start(f"name{number}") as client:
                    outcomes.append("admitted")
                    with contextlib.suppress(Closed, OSError):
                        client.play_out(scripts.tags_of("short"))
                return
            except Refused as refused:
                return outcomes.append(str(refused))
            except (Closed, OSError):
                time.sleep(0.05)  # more knock at once than may

    try:
        for _ in range(400):
            viewers.append(Download(weir, f"/live/{NAME}/stream.mp4", "127.0.0.2"))
            if viewers[-1].status != 200:
                break
        threads = [threading.Thread(target=publish, args=(number,), daemon=True) for number in range(60)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, len(descriptors(weir)))
            time.sleep(0.02)
        print(f"{len(viewers)} viewers, {most} descriptors at most")
        assert most < 600
        assert outcomes.count("admitted") == 60, [said for said in outcomes if said != "admitted"]
        assert weir.get("/healthz").status == 200
        for viewer in viewers:
            viewer.close()
        weir.wait(lambda: weir.get("/api/v1/streams").status == 200, 10, "room for a viewer")
        honest.lost_nothing()
    finally:
        for viewer in viewers:
            viewer.close()
        honest.publisher.kill()
