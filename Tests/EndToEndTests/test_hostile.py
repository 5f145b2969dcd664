"""Peers that send wrong data, stall, flood and guess, while a good publisher and a viewer are not disturbed.

All run against one server. The last test checks what the good publisher's viewers received meanwhile.
"""

import contextlib
import os
import pathlib
import socket
import struct
import threading
import time

import pytest

from harness import nothing_wrong, amf, flv, http, hls, publishers, scripts, sources, tools
from harness.metrics import Metrics
from harness.rawrtmp import (
    ABORT, COMMAND, COMMAND_AMF0, CONTROL, SET_CHUNK_SIZE, VIDEO, Closed, RawRTMP, Refused)

GOOD = "good"


class Scene:
    """The server, its good publisher, and two viewers of it."""

    def __init__(self, weir, canary: str, folder: pathlib.Path):
        self.weir, self.canary = weir, canary
        self.publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{GOOD}?key={canary}", loop=-1)
        weir.wait_state(GOOD, "live")
        weir.wait(lambda: weir.get(f"/live/{GOOD}/index.m3u8").status == 200, 15, "the good stream's playlist")
        self.watch = hls.Watch(f"{weir.web}/live/{GOOD}/index.m3u8")
        self.viewed = folder / "viewed.md5"
        self.viewer = publishers.Publisher([
            tools.FFMPEG, "-v", "error", "-i", f"{weir.web}/live/{GOOD}/stream.mp4", "-map", "0:v", "-c", "copy",
            "-f", "framemd5", str(self.viewed)])
        weir.wait(lambda: Metrics(weir).total("weir_viewers", stream=GOOD, protocol="mp4"), 20, "the viewer")
        self.memory = weir.resident_kilobytes()
        self.over = False

    def key(self, name: str) -> str:
        return f"{name}?key={self.canary}"


@pytest.fixture(scope="module")
def scene(start_shared, canary, tmp_path_factory):
    sources.flv("h264-30")
    weir = start_shared("--publish-key", canary)
    weir.secrets.append(canary)
    scene = Scene(weir, canary, tmp_path_factory.mktemp("scene"))
    yield scene
    scene.watch.stop()
    scene.viewer.kill()
    scene.publisher.kill()


@pytest.fixture(autouse=True)
def good_publisher_goes_on(scene):
    """After each attack the server still responds, and the good stream is still live."""
    yield
    if scene.over:
        return
    assert scene.weir.process.poll() is None, scene.weir.tail()
    assert scene.weir.stream(GOOD)["state"] == "live"
    assert scene.publisher.process.poll() is None


def connected(scene) -> RawRTMP:
    client = RawRTMP(scene.weir.rtmp)
    client.handshake()
    client.connect()
    return client


# Names and keys

BAD_NAMES = ["..", "../../etc/passwd", "%2e%2e", "%2e%2e%2fx", ".hidden", "a/b", "a\\b", "nul\0byte", "x" * 65,
             "x" * 4096, "", "caf\u00e9", "a b", "\u0430dmin", "-dash", "a\nb", "<script>"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name)[:20])
def test_a_name_outside_the_grammar_is_refused_with_the_grammar(scene, name):
    with connected(scene) as client:
        with pytest.raises(Refused) as refusal:
            client.publish(scene.key(name))
    assert refusal.value.code == "NetStream.Publish.BadName"
    assert "64" in refusal.value.description or "{0,63}" in refusal.value.description
    assert scene.canary not in refusal.value.description


def test_no_refused_name_has_touched_the_disk(scene):
    found = {path.name for path in scene.weir.folder.rglob("*") if path.is_dir()}
    assert found <= {"recordings", GOOD, "rival"}, found


@pytest.mark.parametrize("name", ["cam", "cam?key=wrong", "cam?key=", "cam?other=1"])
def test_a_missing_or_wrong_key_is_refused_and_logged(scene, name):
    with connected(scene) as client:
        with pytest.raises(Refused) as refusal:
            client.publish(name)
    assert "key" in refusal.value.description
    assert scene.weir.stream("cam") is None
    scene.weir.wait_log(r"(?i)refus.*cam|cam.*refus|publish key")


def test_ffmpeg_says_why_it_was_refused(scene):
    code, log = publishers.ffmpeg("h264-30", f"{scene.weir.rtmp}/live/cam?key=wrong").outcome(15)
    assert code != 0
    assert scene.weir.stream("cam") is None


def test_an_app_other_than_live_is_refused(scene):
    client = RawRTMP(scene.weir.rtmp)
    client.handshake()
    with pytest.raises(Refused) as refusal:
        client.connect("other/app")
    assert "live" in refusal.value.description
    client.close()
    # Alone it would name a stream: rtmp://HOST/other.
    with RawRTMP(scene.weir.rtmp) as client:
        client.handshake()
        client.connect("other")
        with pytest.raises(Refused) as refusal:
            client.publish(scene.key("cam"))
    assert "live" in refusal.value.description and scene.canary not in refusal.value.description


def test_with_a_valid_key_the_newest_publisher_wins_at_most_once_in_five_seconds(scene):
    tags = scripts.tags_of("h264-30")
    first = RawRTMP(scene.weir.rtmp).start(scene.key("rival"))
    holder = threading.Thread(target=quiet, args=(first, tags), daemon=True)
    holder.start()
    scene.weir.wait_state("rival", "live")
    second = RawRTMP(scene.weir.rtmp).start(scene.key("rival"))
    holder.join(10)
    assert not holder.is_alive(), "the first publisher is still connected"
    with connected(scene) as third:
        with pytest.raises(Refused) as refusal:
            third.publish(scene.key("rival"))
    assert refusal.value.code == "NetStream.Publish.BadName"
    second.play_out(tags, until=2)
    scene.weir.wait_state("rival", "live")
    second.finish()


def quiet(client: RawRTMP, tags) -> None:
    """Publishes until the server closes the connection."""
    with contextlib.suppress(Closed, OSError):
        client.play_out(tags)
    client.close()


def test_a_play_request_is_refused_and_not_left_hanging(scene):
    with connected(scene) as client:
        created = client.command("createStream", None)
        values = client.answer("_result")
        assert values[1] == created
        client.command("play", None, GOOD, transaction=0, stream=int(values[3]))
        try:
            values = client.answer("onStatus", "_error")
            assert values[3]["level"] == "error"
        except Closed:
            pass


# Media that lies


def test_an_unknown_video_codec_is_refused_by_name(scene):
    with RawRTMP(scene.weir.rtmp).start(scene.key("cam")) as client:
        client.tag(flv.Tag(flv.VIDEO, 0, b"\x90vp08" + bytes(20)))
        client.tag(flv.Tag(flv.VIDEO, 0, b"\x91vp08" + bytes(200)))
        client.wait_closed(5)
    assert "vp08" in scene.weir.wait_log("vp08")


def test_an_unknown_audio_codec_is_refused_by_name(scene):
    with RawRTMP(scene.weir.rtmp).start(scene.key("cam")) as client:
        client.tag(flv.Tag(flv.AUDIO, 0, b"\xb2" + bytes(100)))  # Speex
        client.wait_closed(5)
    scene.weir.wait_log("Speex")


def test_an_unknown_fourcc_of_audio_is_refused_by_name(scene):
    with RawRTMP(scene.weir.rtmp).start(scene.key("cam")) as client:
        client.tag(flv.Tag(flv.AUDIO, 0, b"\x90abcd" + bytes(20)))
        client.wait_closed(5)
    scene.weir.wait_log("abcd")


@pytest.mark.parametrize("record", [
    b"\x17\x00\x00\x00\x00",  # empty
    b"\x17\x00\x00\x00\x00\x01\x64\x00\x1f\xff\xe1\xff\xff\x67",  # an SPS of 65535 bytes that is not there
    b"\x17\x00\x00\x00\x00\x01\x64\x00\x1f\xff\xff" + b"\x00\x01\x67" * 31,  # 31 SPSs of one byte
    b"\x17\x00\x00\x00\x00\x01\x64\x00\x1f\xff\xe1\x00\x20\x67\x64\x00\x1f" + b"\xff" * 28,  # an SPS of ones
    b"\x90hvc1" + b"\xff" * 64,
    b"\x90av01" + b"\x81\xff\xff\xff" + b"\xff" * 32,
], ids=["empty", "lying-size", "many", "ones", "hvcC", "av1C"])
def test_a_configuration_record_that_lies_ends_that_publication_only(scene, record):
    with RawRTMP(scene.weir.rtmp).start(scene.key("liar")) as client:
        client.tag(flv.Tag(flv.VIDEO, 0, record))
        with contextlib.suppress(OSError):
            for number in range(5):
                client.tag(flv.Tag(flv.VIDEO, number * 33, b"\x17\x01\x00\x00\x00" + b"\xff" * 60))
        with contextlib.suppress(OSError):
            client.finish()
    stream = scene.weir.stream("liar")
    assert stream is None or stream["state"] != "live"


def test_frames_whose_nal_lengths_lie_do_no_harm(scene):
    tags = scripts.tags_of("h264-30")
    with RawRTMP(scene.weir.rtmp).start(scene.key("liar")) as client:
        with contextlib.suppress(Closed, OSError):
            for number, tag in enumerate(tags[:120]):
                if tag.type == VIDEO and not tag.is_header and number % 3:
                    tag = flv.Tag(tag.type, tag.milliseconds, tag.body[:5] + b"\xff\xff\xff\xff" + tag.body[9:])
                client.drain()
                client.tag(tag)
            client.finish()


def test_times_that_run_wild_do_no_harm(scene):
    tags = scripts.tags_of("h264-30")
    wild = [0, 2**31 - 1, 2**32 - 1, 5, 2**31, 1, 2**24, 0, 2**32 - 2, 2**31 + 1]
    with RawRTMP(scene.weir.rtmp).start(scene.key("wild")) as client:
        with contextlib.suppress(Closed, OSError):
            for number, tag in enumerate(tags[:200]):
                client.drain()
                client.tag(flv.Tag(tag.type, wild[number % len(wild)] + number, tag.body))
            client.finish()


# The chunk stream and AMF


def test_a_chunk_size_of_nothing_is_an_error(scene):
    with connected(scene) as client:
        client.send(CONTROL, SET_CHUNK_SIZE, struct.pack(">I", 0))
        client.wait_closed(5)


def test_a_chunk_size_of_one_still_publishes(scene):
    with connected(scene) as client:
        client.set_chunk_size(1)
        client.publish(scene.key("tiny"))
        client.finish()


def test_the_largest_chunk_size_reserves_no_memory(scene):
    before = scene.weir.resident_kilobytes()
    clients = []
    for _ in range(8):
        client = connected(scene)
        client.set_chunk_size(2**31 - 1)
        head = bytes([6]) + b"\0\0\0" + (0xFFFFFF).to_bytes(3, "big") + bytes([VIDEO]) + struct.pack("<I", 1)
        client.socket.sendall(head + b"x" * 1000)
        clients.append(client)
    time.sleep(0.5)
    grown = scene.weir.resident_kilobytes() - before
    for client in clients:
        client.close()
    assert grown < 8 * 1024 + 8 * 1024, f"{grown} KiB for eight lying peers"


def test_many_half_messages_of_a_peer_without_a_key_reserve_little(scene):
    before = scene.weir.resident_kilobytes()
    with connected(scene) as client:
        with contextlib.suppress(OSError):
            for csid in range(3, 64):
                head = bytes([csid]) + b"\0\0\0" + (0xFFFFF0).to_bytes(3, "big") + bytes([VIDEO]) + struct.pack("<I", 1)
                client.socket.sendall(head + b"x" * 128)
        time.sleep(0.5)
        assert scene.weir.resident_kilobytes() - before < 4096


def test_half_messages_before_publishing_have_a_limit(scene):
    with connected(scene) as client:
        client.set_chunk_size(4096)
        with contextlib.suppress(OSError):
            for csid in range(3, 8):
                head = bytes([csid]) + b"\0\0\0" + (0xFFFFF0).to_bytes(3, "big") + bytes([VIDEO]) + struct.pack("<I", 1)
                client.socket.sendall(head + b"x" * 4096)
        client.wait_closed(5)


def test_a_command_larger_than_its_limit_is_refused_before_it_is_read(scene):
    with connected(scene) as client:
        with contextlib.suppress(OSError):
            client.send(COMMAND, COMMAND_AMF0, amf.encode("connect", 1, "x" * 300_000))
        client.wait_closed(5)


@pytest.mark.parametrize("body", [
    amf.encode("connect", 1) + b"\x03\x00\x01a" * 20_000,
    amf.encode("connect", 1) + b"\x0a\x00\x00\x00\x01" * 12_000,
    amf.encode("connect", 1) + b"\x0a\xff\xff\xff\xff",
    amf.encode("connect", 1) + b"\x08\xff\xff\xff\xff\x00\x01a",
    amf.encode("connect", 1) + b"\x0c\xff\xff\xff\xff",
    b"\x02\xff\xff",
    b"",
    b"\x11" * 500,
    b"\xff" * 64,
], ids=["objects", "arrays", "array-count", "map-count", "long-string", "string", "nothing", "amf3", "unknown"])
def test_amf_that_is_deep_wide_or_broken_ends_that_connection_only(scene, body):
    client = RawRTMP(scene.weir.rtmp)
    client.handshake()
    client.set_chunk_size(65536)
    with contextlib.suppress(OSError):
        client.send(COMMAND, COMMAND_AMF0, body)
        client.command("connect", {"app": "no/app"})
    client.wait_closed(12)


def test_a_flood_of_commands_is_cut(scene):
    with connected(scene) as client:
        with contextlib.suppress(OSError, Closed):
            for _ in range(500):
                client.command("createStream", None)
                client.drain()
        client.wait_closed(10)


def test_random_bytes_after_the_handshake_end_that_connection(scene):
    for seed in range(8):
        client = RawRTMP(scene.weir.rtmp)
        client.handshake()
        with contextlib.suppress(OSError):
            client.socket.sendall(os.urandom(20_000))
            client.socket.shutdown(socket.SHUT_WR)
        client.wait_closed(12)


def test_an_abort_of_a_half_message_is_obeyed(scene):
    with connected(scene) as client:
        head = bytes([7]) + b"\0\0\0" + (5000).to_bytes(3, "big") + bytes([COMMAND_AMF0]) + struct.pack("<I", 0)
        client.socket.sendall(head + b"x" * 128)
        client.send(CONTROL, ABORT, struct.pack(">I", 7))
        client.publish(scene.key("aborted"))
        client.finish()


# Peers that stall


@pytest.mark.parametrize("sent", [0, 1, 700, 1537, 2000], ids=lambda n: f"{n}-bytes")
def test_a_stalled_handshake_is_closed_after_four_seconds(scene, stalled, sent):
    took = stalled[sent]
    assert 3 <= took <= 9, f"{took:.1f} s"


def test_a_peer_that_connects_and_never_publishes_is_closed_after_ten_seconds(stalled):
    assert 7 <= stalled["connected"] <= 15


def test_a_tls_hello_or_http_on_the_rtmp_port_is_closed(scene):
    for garbage in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600)):
        client = RawRTMP(scene.weir.rtmp)
        client.socket.sendall(garbage)
        client.wait_closed(12)


@pytest.fixture(scope="module")
def stalled(scene):
    """How long the server waits for peers that stop sending, all tested at once. For HTTP: its response."""
    took: dict = {}

    def stall(key, client, began) -> None:
        """`began`: before the server could see it."""
        try:
            client.wait_closed(20)
            took[key] = time.monotonic() - began
        except AssertionError:
            took[key] = 99.0
        client.close()

    threads = []
    for count in (0, 1, 700, 1537, 2000):
        began = time.monotonic()
        client = RawRTMP(scene.weir.rtmp)
        client.socket.sendall((b"\x03" + bytes(3072))[:count])
        threads.append(threading.Thread(target=stall, args=(count, client, began)))
    began = time.monotonic()
    threads.append(threading.Thread(target=stall, args=("connected", connected(scene), began)))
    threads.append(threading.Thread(target=lambda: took.update(http=slowloris(scene.weir.web))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def slowloris(url: str) -> float:
    """Sends a header one byte per second. Returns the seconds until the server closes."""
    host, port = url.removeprefix("http://").rsplit(":", 1)
    began = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=1) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
            while time.monotonic() - began < 25:
                connection.sendall(b"a")
                try:
                    if not connection.recv(4096):
                        break
                    break  # an answer (408) and the end
                except TimeoutError:
                    continue
    return time.monotonic() - began


# HTTP


def test_slow_headers_are_cut(stalled):
    assert stalled["http"] < 20


@pytest.mark.parametrize("request_bytes", [
    b"\x00\x01\x02\x03\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 20_000 + b"\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
], ids=["binary", "no-path", "version", "method", "negative-length", "both-lengths", "long-header", "many-headers",
        "long-path"])
def test_http_garbage_gets_an_error_and_the_end_of_the_connection(scene, request_bytes):
    began = time.monotonic()
    answer = http.raw(scene.weir.web, request_bytes, timeout=20)
    assert time.monotonic() - began < 15, "the connection was kept open"
    if answer:
        assert answer.startswith(b"HTTP/1."), answer[:100]
        assert answer.split(b" ", 2)[1][:1] in (b"4", b"5"), answer[:100]


@pytest.mark.parametrize("path", [
    "/live/../../etc/passwd", "/live/%2e%2e/%2e%2e/etc/passwd", "/recordings/../../../etc/passwd",
    "/recordings/%2e%2e/%2e%2e/etc/passwd", f"/recordings/{GOOD}/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/recordings/good/..%00.mp4", "/live/%00/index.m3u8", "/watch/%3Cscript%3E", "//etc/passwd", "/live/" + "x" * 5000,
    f"/live/{GOOD}/nothing/av/1.m4s", "/recordings/good/20200101T000000Z.mp4", "/.git/config", "/web/../Package.swift",
])
def test_a_path_to_nowhere_is_refused(scene, path):
    answer = http.raw(scene.weir.web, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b" ", 2)[1] in (b"400", b"404", b"414"), answer[:200]
    assert b"root:" not in answer
    assert b"<script>" not in answer


def test_writes_are_refused_without_an_admin_token_also_from_localhost(scene):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/api/v1/streams", f"/api/v1/streams/{GOOD}", "/api/v1/recordings", f"/live/{GOOD}/index.m3u8"):
            assert scene.weir.get(path, method=method).status in (401, 403, 404, 405)


@pytest.mark.parametrize("target, status", [
    ("POST /nowhere", b"404"), ("POST /", b"405"), ("POST /api/v1/nowhere", b"404"), ("PUT /api/v1/streams", b"405"),
    (f"POST /api/v1/streams/{GOOD}/capture/camera", b"403"), (f"POST /api/v1/streams/{GOOD}/recording/start", b"403"),
    ("GET /api/v1/streams", b"413"), ("GET /", b"413"),
])
def test_a_body_that_no_route_wants_from_this_client_is_refused_at_its_head(scene, target, status):
    """The body is not sent, and not requested by 100: the head decides."""
    head = f"{target} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4096\r\n\r\n"
    answer = http.raw(scene.weir.web, head.encode(), timeout=20)
    assert answer.split(b" ", 2)[1] == status, answer[:300]


# The verdict; runs last


def test_the_good_stream_and_its_viewer_noticed_nothing(scene):
    scene.over = True
    scene.watch.stop()
    nothing_wrong(hls.unexplained(scene.watch.problems, scene.weir.text(), GOOD))
    assert not [s for _, state in scene.watch.states for s in state.segments if s.discontinuity]
    scene.publisher.interrupt()
    code, log = scene.publisher.outcome(10)
    assert "rror" not in log, log
    code, log = scene.viewer.outcome(15)
    assert code == 0 and log == "", log
    film = scripts.frames("h264-30")["video"]
    seen = [line.split(",")[5].strip() for line in scene.viewed.read_text().splitlines() if line[:1] == "0"]
    known = [digest.removeprefix("MD5:") for digest in film]
    assert len(seen) > 200
    places = [known.index(digest) for digest in seen]
    assert all((a + 1) % len(known) == b for a, b in zip(places, places[1:])), "a frame is missing or doubled"


@pytest.mark.skipif(bool(tools.SANITIZER), reason="a sanitizer keeps what was freed")
def test_memory_has_not_grown_by_the_attacks(scene):
    assert scene.weir.resident_kilobytes() < scene.memory + 48 * 1024
