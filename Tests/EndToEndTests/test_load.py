"""Crowds and floods: too many for the descriptors or the memory, all leaving or connecting at once, slow readers, polling,
TLS handshakes. Viewers must never harm publishers.

What is counted is judged beside other tests. How late a viewer's parts come meanwhile is measured alone: of one crowd each
time, of all by `make test-long`. The counts are in WEIR_FAULTS: "short" (the default) or "long", as in test_faults.py.
"""

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import resource
import select
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from http.client import HTTPConnection

import pytest

from harness import hls, http, llhls, publishers, tools
from harness.floods import slow_connection
from harness.gauges import cpu_seconds
from harness.groups import MemoryGroup
from harness.pulse import Pulse
from harness.tools import make_certificate

NAME = "cam"


def media_playlist(weir, name: str = NAME) -> str:
    return hls.first_playlist(f"{weir.web}/live/{name}/index.m3u8")


def connected(url: str, count: int) -> tuple[list[socket.socket], list[bytes]]:
    """Connections that have requested a playlist and stay open, and the first line of each response (or nothing)."""
    parts = urllib.parse.urlsplit(url)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    connections, answers = [], []
    for _ in range(count):
        try:
            connection = socket.create_connection((parts.hostname, parts.port), timeout=5)
            connection.sendall(request)
            connections.append(connection)
        except OSError:
            answers.append(b"")
    for connection in connections:
        try:
            answers.append(connection.recv(1 << 16))
        except OSError:
            answers.append(b"")
    return connections, answers


def asked(connection: socket.socket, path: str) -> bytes:
    """The response on a connection that stays open."""
    client = HTTPConnection("x")
    client.sock = connection
    connection.settimeout(5)
    client.request("GET", path)
    return client.getresponse().read()


@pytest.mark.parametrize("descriptors", [256, pytest.param(512, marks=pytest.mark.long)])
def test_when_descriptors_run_short_viewers_are_refused_and_publishers_are_not(start, tmp_path, monkeypatch, descriptors):
    wrapper = tmp_path / "few-descriptors"
    wrapper.write_text(f'#!/bin/sh\nexec prlimit --nofile={descriptors}:{descriptors} "{tools.weir_binary()}" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("WEIR_BIN", str(wrapper))
    weir = start("--window", "4s", "--segment-duration", "500ms")
    names = [NAME, *(f"cam{number}" for number in range(7))]
    sent = {name: publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1) for name in names}
    connections: list[socket.socket] = []
    try:
        url = media_playlist(weir)
        # Windows are full, and each stream is being recorded.
        for name in names:
            weir.wait(lambda: "#EXT-X-MEDIA-SEQUENCE:1\n" not in http.fetch(media_playlist(weir, name)).text, 30, "a full window")
        before = {name: weir.stream(name) for name in names}
        assert all(stream["recording"]["state"] == "running" for stream in before.values())
        connections, answers = connected(url, 700)
        served = [answer for answer in answers if answer.startswith(b"HTTP/1.1 200")]
        refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503")]
        assert len(served) >= 50
        assert len(served) < descriptors
        assert refused, "no client was told that the server is full"
        assert all(b"retry-after:" in answer.lower() for answer in refused)
        # The crowd stays. A publisher is still admitted, and present viewers play on.
        sent["other"] = publishers.ffmpeg("loop", f"{weir.rtmp}/live/other", loop=-1)
        served_connection = next(c for c, a in zip(connections, answers) if a.startswith(b"HTTP/1.1 200"))
        used, began = cpu_seconds(weir.process.pid), time.monotonic()
        time.sleep(2)  # real time: a server that spins takes all of it
        assert cpu_seconds(weir.process.pid) - used < (time.monotonic() - began) / 2, "it spins"
        path, end = urllib.parse.urlsplit(url).path, time.monotonic() + 15
        while True:
            after = {stream["name"]: stream for stream in json.loads(asked(served_connection, "/api/v1/streams"))["streams"]}
            if "other" in after and after["other"]["state"] == "live":
                break
            assert time.monotonic() < end, after.get("other")
            time.sleep(0.1)
        for name, stream in before.items():
            assert after[name]["state"] == "live" and after[name]["startedAt"] == stream["startedAt"], name
            assert after[name]["recording"]["state"] == "running" and not after[name]["warnings"], name
            assert after[name]["recording"]["bytes"] > stream["recording"]["bytes"], name
        assert b"#EXTM3U" in asked(served_connection, path)
        assert all(publisher.process.poll() is None for publisher in sent.values())
    finally:
        for connection in connections:
            connection.close()
        for publisher in sent.values():
            publisher.kill()
    # After the crowd has gone there is room again.
    weir.wait(lambda: http.fetch(f"{weir.web}/time").status == 200, 10, "room")


# Long counts and limits are those of the fault table, for a machine without other work.
LONG = os.environ.get("WEIR_FAULTS") == "long"
#: How many times as late as the idle server's parts the others may be. Delays below these seconds are the scheduler's.
TIMES, LEAST = 3, 0.02
#: Seconds of media at least in which lateness is measured.
STRETCH = 3


@pytest.fixture(autouse=True, scope="module")
def many_descriptors():
    """This process opens thousands of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def published(weir, film: str = "h264-30"):
    publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        yield publisher
    finally:
        publisher.kill()


@pytest.fixture(scope="module")
def neighbour(start_shared):
    """The media playlist of an idle server, to compare with where nothing says that the machine has no other work."""
    if LONG:
        yield None
        return
    weir = start_shared("--no-record")
    with published(weir):
        yield media_playlist(weir)


def judged(*marks):
    """A test whose counts are judged beside other tests, and a viewer's lateness alone."""
    return pytest.mark.parametrize(
        "measured", [False, pytest.param(True, marks=[pytest.mark.quiet, *marks])], ids=["counts", "lateness"], indirect=True)


@pytest.fixture
def measured(request, record_property):
    """Watches a viewer at the live edge during the body of a context. It must go on.

    Where lateness is judged, it fails if the latest of a hundred parts comes later than in the calm time before by more than
    `limit` seconds, the figure of the fault table. With an idle server beside it, it fails if nine of ten parts take more than
    `TIMES` times as long as there, and more than the limit."""
    neighbour = request.getfixturevalue("neighbour") if request.param else None

    @contextlib.contextmanager
    def goes_on(url: str, what: str, limit: float):
        pulse = Pulse(url)
        try:
            pulse.comes()
            yield
            pulse.comes(after=time.monotonic())
            pulse.stop()
        finally:
            pulse.kill()

    @contextlib.contextmanager
    def is_in_time(url: str, what: str, limit: float):
        # From the third key frame interval on, the server knows the ends of segments in advance, and parts are even.
        if LONG:
            time.sleep(6)  # real time: media of the server
        pulses = [Pulse(url)] + ([Pulse(neighbour)] if neighbour else [])
        try:
            time.sleep(4 if LONG else 2)  # real time: the calm time
            begin = time.monotonic()
            yield
            time.sleep(max(0, begin + STRETCH - time.monotonic()))
            end = time.monotonic()
            for pulse in pulses:
                pulse.stop()
        finally:
            for pulse in pulses:
                pulse.kill()
        share = 0.9 if neighbour else 0.99
        calm, rough = (pulses[0].late(*stretch, share) for stretch in ((pulses[0].began, begin), (begin, end)))
        figure = f"{what}: {share:.0%} of the parts at most {rough * 1000:.0f} ms late, {calm * 1000:.0f} ms before"
        if neighbour is None:
            record_property("figure", figure)
            assert rough - calm < limit
        else:
            beside = pulses[1].late(begin, end, share)
            record_property("figure", f"{figure}, {beside * 1000:.0f} ms beside it")
            assert rough < TIMES * max(beside, limit, LEAST)

    return is_in_time if request.param else goes_on


def anonymous_bytes(pid: int) -> int:
    """The process's private memory, without shared memory (the window)."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) << 10


@judged(pytest.mark.long)
@pytest.mark.parametrize("count", [5000 if LONG else 2000])
def test_a_crowd_that_leaves_at_once_does_not_hold_up_the_others(start, measured, count):
    weir = start("--no-record")
    with published(weir):
        url = media_playlist(weir)
        connections, answers = connected(url, count)
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
        with measured(url, f"{count} viewers left at once", 0.1):
            for connection in connections:
                connection.close()
        assert weir.get("/healthz").status == 200


@pytest.fixture
def crowd(start, request):
    """A server, the bytes that it had before so many viewers came, and the viewers' connections."""
    weir = start("--no-record", "--max-viewers", "20000")
    calm = anonymous_bytes(weir.process.pid)
    connections, answers = connected(f"{weir.web}/api/v1/streams", request.param)
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    return weir, calm, connections


@pytest.mark.parametrize("crowd", [10_000 if LONG else 1000], indirect=True)
def test_what_a_crowd_took_is_given_back_within_a_minute(crowd, record_property):
    """The C library would keep it for the next crowd. Without giving back nearly all of it stays."""
    weir, calm, connections = crowd
    taken = anonymous_bytes(weir.process.pid) - calm
    assert taken > len(connections) * 2048
    for connection in connections:
        connection.close()
    weir.wait(lambda: anonymous_bytes(weir.process.pid) - calm < taken / 3, 60, "most of the memory back", every=1)
    stay = anonymous_bytes(weir.process.pid) - calm
    record_property("figure", f"{len(connections)} viewers took {taken >> 10} KiB, {stay >> 10} stay")


@pytest.fixture
def live(start):
    """A server with a stream, its publisher, and the address of the media playlist."""
    weir = start("--no-record")
    with published(weir) as publisher:
        yield weir, publisher, media_playlist(weir)


@judged(pytest.mark.long)
@pytest.mark.parametrize("count", [5000 if LONG else 500])
def test_half_requests_hold_up_no_other_and_are_cut(live, measured, count):
    """From several addresses, because each may have only so many connections without a request."""
    weir, publisher, url = live
    parts = urllib.parse.urlsplit(weir.web)
    with measured(url, f"{count} half requests", 0.1):
        began, halves = time.monotonic(), []
        for number in range(count):
            half = socket.socket()
            half.bind((f"127.0.1.{1 + number % 5}", 0))
            half.connect((parts.hostname, parts.port))
            half.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
            half.setblocking(False)
            halves.append(half)
        assert weir.get("/healthz").status == 200
        left = halves
        while left and time.monotonic() < began + 30:
            time.sleep(0.5)
            left = [half for half in left if not over(half)]
    took = time.monotonic() - began
    for half in halves:
        half.close()
    assert not left, f"{len(left)} of {count} half requests are still waited for after {took:.0f} s"
    assert publisher.process.poll() is None and weir.stream(NAME)["state"] == "live"


def over(connection: socket.socket) -> bool:
    """Whether the server has closed it, perhaps after a response."""
    try:
        while connection.recv(1 << 12):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


#: TCP_INFO's first byte (linux/tcp.h).
ESTABLISHED = b"\x01"


def newest_segment(url: str) -> str:
    playlist = hls.parse_media(http.fetch(url).good().text, url)
    return playlist.absolute(playlist.segments[-1].uri)


@pytest.mark.long  # HTTPDeliveryTests has the rule, by a limit of less than 20 s
@judged()
@pytest.mark.parametrize("count", [2000 if LONG else 1000])
def test_readers_of_a_byte_a_second_hold_up_no_other_and_are_cut(start, measured, count, record_property):
    weir = start("--no-record")
    with published(weir, "megabyte"):
        url = media_playlist(weir)
        segment = newest_segment(url)
        path = urllib.parse.urlsplit(segment).path
        connections = []
        with measured(url, f"{count} readers of a byte a second", 0.02):
            before = anonymous_bytes(weir.process.pid)
            for _ in range(count):
                connection = slow_connection(url)
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                connection.setblocking(False)
                connections.append(connection)
            began = time.monotonic()
            most, open_ones, cut = 0, list(connections), []
            while open_ones and time.monotonic() < began + 40:
                time.sleep(1)  # real time: what they read in it
                most = max(most, anonymous_bytes(weir.process.pid) - before)
                left = []
                for connection in open_ones:
                    # Received data can still be read after a reset, so the state is queried, not read.
                    with contextlib.suppress(BlockingIOError):
                        connection.recv(1)
                    if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == ESTABLISHED:
                        left.append(connection)
                    else:
                        cut.append(time.monotonic() - began)
                open_ones = left
        for connection in connections:
            connection.close()
        record_property("figure", f"{count} readers of a byte a second: {most / count / 1024:.1f} KiB each, cut after "
                                  f"{min(cut, default=0):.0f} to {max(cut, default=0):.0f} s")
        assert not open_ones, f"{len(open_ones)} are still being served"
        # Nothing was read for 20 s.
        assert min(cut) > 15
        assert most / count < 32 << 10


@pytest.mark.parametrize("is_timed", [False, pytest.param(True, marks=[pytest.mark.quiet, pytest.mark.long])], ids=["counts", "time"])
@pytest.mark.parametrize("count", [5000 if LONG else 2000])
def test_thousands_of_blocked_reloads_wake_together_by_one_rendering(start, count, is_timed, record_property):
    # Parts are so long that all requests get a response before the next part.
    weir = start("--no-record", "--part-duration", "1s")
    with published(weir):
        url = media_playlist(weir)
        parts = urllib.parse.urlsplit(url)
        poll, waiting = select.epoll(), {}
        try:
            for _ in range(5):
                # All are there before that part. After a delay they ask for one of a later segment.
                segment = llhls.parse(http.fetch(url).good().text, url).next[0] + 1
                request = f"GET {parts.path}?_HLS_msn={segment}&_HLS_part=0 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
                for _ in range(count):
                    connection = socket.create_connection((parts.hostname, parts.port), timeout=5)
                    connection.sendall(request)
                    waiting[connection.fileno()] = connection
                    poll.register(connection.fileno(), select.EPOLLIN)
                is_answered = bool(poll.poll(0))
                # This may render the list, so what is counted begins after it.
                is_before = llhls.parse(http.fetch(url).good().text, url).next <= (segment, 0)
                renders = weir.stream(NAME)["playlistRenders"]
                if is_before and (is_answered or not poll.poll(0)):
                    break
                while waiting:
                    descriptor, connection = waiting.popitem()
                    poll.unregister(descriptor)
                    connection.close()
            asked = time.monotonic()
            assert waiting and not is_answered, "answered before there was anything new"
            answered: dict[int, float] = {}
            while len(answered) < count and time.monotonic() < asked + 20:
                ready = poll.poll(1, count)
                now = time.monotonic()
                for descriptor, _ in ready:
                    answered[descriptor] = now
                    poll.unregister(descriptor)
            renders = weir.stream(NAME)["playlistRenders"] - renders
            bodies = {connection.recv(1 << 16).split(b"\r\n\r\n", 1)[1] for connection in waiting.values()}
            plain = spread_of_plain_requests(list(waiting.values()), parts)
        finally:
            for connection in waiting.values():
                connection.close()
    times = sorted(answered.values())
    assert len(times) == count
    spread = times[int(count * 0.99)] - times[0]
    record_property("figure", f"{count} blocked reloads: {spread * 1000:.0f} ms from the first answer to the last but one "
                              f"in a hundred, {renders} rendering; as many plain requests took {plain * 1000:.0f} ms")
    assert len(bodies) == 1 and f"{segment}.0.m4s".encode() in bodies.pop()
    assert renders == 1
    assert not is_timed or spread < (0.05 if LONG else 1.5 * plain)


def spread_of_plain_requests(connections: list[socket.socket], parts) -> float:
    """Seconds from the first request to the response number 99 of each hundred; each asks for the present playlist."""
    request = f"GET {parts.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with select.epoll() as poll:
        for connection in connections:
            poll.register(connection.fileno(), select.EPOLLIN)
        # Sending takes part of the time: the first requests get their responses before the last is sent.
        began = time.monotonic()
        for connection in connections:
            connection.sendall(request)
        times: list[float] = []
        while len(times) < len(connections):
            ready = poll.poll(5, len(connections))
            assert ready, f"{len(times)} of {len(connections)} were answered"
            times += [time.monotonic()] * len(ready)
            for descriptor, _ in ready:
                poll.unregister(descriptor)
    return times[int(len(times) * 0.99)] - began


def poll_quickly(url: str, rate: int, count: int) -> str:
    """A program that sends so many requests on one connection, at most at that rate. It prints the number of responses by
    status, the seconds that they took, and the last time to wait that it was told."""
    parts = urllib.parse.urlsplit(url)
    return f"""
import collections, http.client, time
connection = http.client.HTTPConnection({parts.hostname!r}, {parts.port})
found, last, began, made = collections.Counter(), None, time.monotonic(), 0
while made < {count}:
    if made > (time.monotonic() - began) * {rate}:
        time.sleep(0.001)
        continue
    connection.request("GET", {parts.path!r})
    answer = connection.getresponse()
    answer.read()
    made += 1
    found[answer.status] += 1
    if answer.status == 429:
        last = answer.getheader("Retry-After")
print(found[200], found[429], time.monotonic() - began, last)
"""


@judged(pytest.mark.long)
def test_a_client_that_polls_a_thousand_times_a_second_is_told_to_wait_and_no_other_is(live, measured, record_property):
    (weir, _, url), made = live, 2000
    path, segment = urllib.parse.urlsplit(url).path, urllib.parse.urlsplit(newest_segment(url)).path
    with measured(url, "polling 1000 times a second", 0.005):
        poller = subprocess.Popen([sys.executable, "-c", poll_quickly(url, 1000, made)], stdout=subprocess.PIPE, text=True)
        # From the same address: a proxy's connection for many viewers, and synchronised players.
        proxy = llhls.Connection(url)
        statuses = set()
        for _ in range(200):
            for asked in (path, path, segment):
                statuses.add(proxy.get(f"{weir.web}{asked}").status)
        players = [llhls.Connection(url) for _ in range(50)]
        for _ in range(5):
            statuses |= {player.get(url).status for player in players}
            time.sleep(0.1)
        assert statuses == {200}
        good, refused, took, retry = poller.communicate(timeout=60)[0].split()
    record_property("figure", f"polling: {made} requests in {float(took):.1f} s, {refused} of them told 429")
    # The limit is 100 a second; what may come at once is within two more.
    assert int(good) < 100 * (float(took) + 2), (good, refused, took)
    assert int(good) + int(refused) == made and retry == "1", (good, refused, took, retry)


@judged(pytest.mark.long)
def test_a_flood_of_handshakes_does_not_hold_up_the_live_edge(start, measured, tmp_path, record_property):
    cert, key = make_certificate(tmp_path)
    weir = start("--no-record", "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key,
                 listeners=("http", "https", "rtmp"))
    port = weir.addresses["https"].rsplit(":", 1)[1]
    with published(weir):
        url = media_playlist(weir)
        with measured(url, "a flood of TLS handshakes", 0.1):
            flood = subprocess.run(
                [sys.executable, "-m", "harness.hellos", port, "2000", str(STRETCH)], capture_output=True, text=True, timeout=60,
                cwd=pathlib.Path(__file__).parent)
        assert flood.returncode == 0, flood.stderr
        made, took = map(float, flood.stdout.split())
        record_property("figure", f"a flood of TLS handshakes: {made / took:.0f} a second, none completed")


@pytest.fixture
def confined(start, tmp_path, monkeypatch):
    """A server in 256 MiB with a stream of a megabyte a second, the memory's group, the publisher, its media playlist, and a viewer
    over TLS that has read the playlist, with its request."""
    group = MemoryGroup(256 << 20)
    try:
        monkeypatch.setenv("WEIR_BIN", str(group.program(tmp_path)))
        cert, key = make_certificate(tmp_path)
        weir = start("--no-record", "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--window", "20s",
                     listeners=("http", "https", "rtmp"))
        monkeypatch.undo()
        with published(weir, "megabyte") as publisher:
            plain = media_playlist(weir)
            url = plain.replace(weir.web, weir.addresses["https"])
            first, request = tls_connection(url), f"GET {urllib.parse.urlsplit(url).path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            first.sendall(request)
            assert b"#EXTM3U" in first.recv(1 << 16)
            yield weir, group, publisher, plain, first, request
        weir.stop()
    finally:
        group.remove()


@pytest.mark.parametrize("count", [2000 if LONG else 800])
def test_when_memory_runs_short_the_newest_viewers_are_refused_and_nothing_is_killed(confined, count, record_property):
    """A crowd of one address, of which nobody reads: some are served, some wait for memory, some are told 503."""
    weir, group, publisher, plain, first, request = confined
    url = plain.replace(weir.web, weir.addresses["https"])
    guide = llhls.Connection(plain)
    crowd: list[ssl.SSLSocket] = []

    def view(number: int, segment: str) -> str:
        """Requests a segment over TLS and reads only its beginning, which costs the server most."""
        try:
            viewer = tls_connection(url)
            viewer.sendall(f"GET {segment} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            viewer.settimeout(0.3)
            answer = viewer.recv(1024)
        except TimeoutError:
            answer = b"HTTP/1.1 waits"
        except OSError:
            return "closed"
        if answer.startswith(b"HTTP/1.1 503"):
            assert b"retry-after:" in answer.lower()
            viewer.close()
        else:
            crowd.append(viewer)
        return answer[9:14].decode().split()[0] if answer else "closed"

    answers: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        # In waves, because a segment stays in the window only for a limited time.
        for _ in range(0, count, 200):
            playlist = hls.parse_media(guide.get(plain).good().text, plain)
            path = urllib.parse.urlsplit(playlist.absolute(playlist.segments[-1].uri)).path
            answers += pool.map(lambda number: view(number, path), range(200))
    served, refused = answers.count("200"), answers.count("503")
    assert publisher.process.poll() is None and weir.process.poll() is None
    # Present viewers play on during the crowd.
    first.sendall(request)
    assert b"#EXTM3U" in first.recv(1 << 16)
    record_property("figure", f"256 MiB, {count} viewers over TLS that read nothing: {served} served, {refused} told "
                              f"503, {answers.count('waits')} wait, {answers.count('closed')} closed, "
                              f"at most {group.most >> 20} MiB used")
    assert group.kills() == 0
    # An address has a sixteenth of the memory, and each of its viewers 256 KiB of that at most.
    assert served >= 60
    assert answers.count("closed") <= refused, "too many were closed without a word"
    for viewer in crowd:
        viewer.close()
    if refused:
        weir.wait_log("memory runs short")
    weir.wait(lambda: has_room(weir.addresses["https"]), 15, "room")
    assert weir.stream(NAME)["state"] == "live"


def has_room(address: str) -> bool:
    try:
        return http.fetch(f"{address}/time").status == 200
    except OSError:
        return False


@functools.cache
def untrusting() -> ssl.SSLContext:
    """Accepts any certificate. It is made once, because making one takes longer than a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def tls_connection(url: str) -> ssl.SSLSocket:
    # A TLS record has 16 KiB. With less room, a single byte would take many round trips.
    return untrusting().wrap_socket(slow_connection(url, 65_536))
