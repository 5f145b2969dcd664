"""HTTP/2 over TLS beside HTTP/1.1: the same responses, many streams that do not block each other, floods that end only their
own connection, and a certificate that is renewed while clients stay connected."""

import contextlib
import gzip
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest

from harness import hls, http, http2, http2_frames, llhls, publishers, tools
from harness.gauges import cpu_seconds
from harness.http2_frames import (
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, PING, RST_STREAM, SETTINGS, WINDOW, WINDOW_UPDATE,
    frame, number)
from harness.metrics import Metrics
from harness.tools import make_certificate

NAME = "cam"


def start_secure(start, folder: pathlib.Path, *flags):
    cert, key = make_certificate(folder)
    return start("--https", "127.0.0.1:0", "--rtmps", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key,
                 "--target-duration", "2", *flags, listeners=("http", "https", "rtmp", "rtmps"))


def path_of(url: str) -> str:
    return urllib.parse.urlsplit(url).path


@pytest.fixture(scope="module")
def live(start_shared, tmp_path_factory):
    """A server with TLS, a stream that is live throughout, and the paths that a viewer finds."""
    # h2load requests one playlist repeatedly; the first segment is there to the last test.
    weir = start_secure(start_shared, tmp_path_factory.mktemp("tls"), "--poll-limit", "0", "--window", "30m")
    short = publishers.ffmpeg("short", f"{weir.rtmp}/live/short", rate=4)
    publisher = publishers.ffmpeg("h264-30", f"{weir.addresses['rtmps']}/live/{NAME}", loop=-1)
    try:
        short.wait(20)
        weir.wait(lambda: any(r["state"] == "completed" for r in weir.recordings_of("short")), 10, "short is recorded")
        weir.wait(lambda: weir.get(f"/live/{NAME}/index.m3u8").status == 200, 15, "cam has a playlist")
        top = hls.parse_multivariant(weir.get(f"/live/{NAME}/index.m3u8").text, f"{weir.web}/live/{NAME}/index.m3u8")
        media = top.absolute(top.variants[0].uri)
        playlist = hls.parse_media(weir.get(media).text, media)
        yield weir, {
            "multivariant": f"/live/{NAME}/index.m3u8", "playlist": path_of(media),
            "manifest": f"/live/{NAME}/manifest.mpd", "init": path_of(playlist.absolute(playlist.segments[0].map)),
            "segment": path_of(playlist.absolute(playlist.segments[0].uri)),
            "recording": weir.recordings_of("short")[0]["url"], "page": f"/watch/{NAME}",
            "missing": "/live/nobody/index.m3u8", "health": "/healthz",
        }
    finally:
        publisher.kill()
        short.kill()


@contextlib.contextmanager
def connected(weir, **options):
    connection = http2.Connection(weir.addresses["https"], **options)
    try:
        yield connection
    finally:
        connection.close()


def curl(weir, path: str, *options: str) -> tuple[str, int, dict[str, str], bytes]:
    """The protocol version, status, headers and body."""
    out = weir.folder / "body"
    done = tools.run("curl", "-sk", "-o", out, "-D", "-", "-w", "%{http_version}", *options,
                     weir.addresses["https"] + path)
    assert done.returncode == 0, done.stderr
    head, _, version = done.stdout.replace("\r", "").rpartition("\n\n")
    lines = head.split("\n\n")[-1].splitlines()
    headers = dict(line.lower().split(": ", 1) if ": " in line else (line, "") for line in lines[1:])
    body = out.read_bytes() if out.exists() else b""
    out.unlink(missing_ok=True)
    return version.strip(), int(lines[0].split()[1]), headers, body


def newest(weir, paths: dict[str, str]) -> llhls.Playlist:
    """The playlist as it is now, by a connection of its own."""
    return llhls.parse(weir.get(paths["playlist"]).good().text, weir.addresses["https"] + paths["playlist"])


def test_one_connection_carries_a_held_list_a_hinted_part_and_the_rest(live):
    """As Apple's players: the playlist of the next part, that part, and others, all on one connection."""
    weir, paths = live
    url = weir.addresses["https"] + paths["playlist"]
    with connected(weir) as connection:
        for _ in range(5):
            playlist = llhls.parse(connection.get(paths["playlist"]).body.decode(), url)
            segment, part = playlist.next
            hinted = path_of(urllib.parse.urljoin(url, playlist.hint["URI"]))
            # The one of a segment that is not begun waits for longest.
            long = connection.request(f"{paths['playlist']}?_HLS_msn={segment + 1}")
            held = connection.request(f"{paths['playlist']}?_HLS_msn={segment}&_HLS_part={part}")
            media = connection.request(hinted)
            there = connection.request(paths["segment"])
            assert connection.response(there).status == 200
            assert long not in connection.order[:connection.order.index(there)], "what is there waits for what is held"
            answer, body = connection.response(held), connection.response(media)
            assert answer.status == 200 and body.status == 200
            now = llhls.parse(answer.body.decode(), url)
            assert now.last >= (segment, part)
            assert bytes(body.body) == connection.get(hinted).body, "the hinted part came whole"


def test_a_player_that_reloads_by_parts_is_told_a_segments_first_part_where_it_names_the_segment_alone(live):
    """As Safari at the end of a segment. The response comes once, and no other request gets it."""
    weir, paths = live
    url = weir.addresses["https"] + paths["playlist"]

    def asked(connection, query: str) -> tuple[llhls.Playlist, str]:
        answer = connection.get(f"{paths['playlist']}?{query}")
        assert answer.status == 200
        return llhls.parse(bytes(answer.body).decode(), url), answer.headers["cache-control"]

    for _ in range(5):
        with connected(weir) as connection:
            playlist = llhls.parse(connection.get(paths["playlist"]).body.decode(), url)
            segment = playlist.segments[-1].sequence + 1
            asked(connection, f"_HLS_msn={segment}&_HLS_part=0")
            number = connection.request(f"{paths['playlist']}?_HLS_msn={segment + 1}")
            in_time = newest(weir, paths).next <= (segment + 1, 0)
            answer = connection.response(number)
            # Two means two.
            late, cache = asked(connection, f"_HLS_msn={segment + 1}")
        # After a delay that segment has begun: then it is a later one.
        if in_time:
            break
    assert in_time and answer.status == 200
    early = llhls.parse(bytes(answer.body).decode(), url)
    assert early.last[0] == segment + 1 and early.last[1] <= 1 and answer.headers["cache-control"] == "no-store"
    assert late.next[0] > segment + 1 and cache.startswith("public")
    with connected(weir) as connection:
        other, cache = asked(connection, f"_HLS_msn={late.next[0]}")
        assert other.next[0] > late.next[0] and cache.startswith("public")


def test_players_that_wait_for_the_same_part_are_each_told_the_next_segments_first_part(live):
    """Their responses are shared. More connections than event loops: some share a loop."""
    weir, paths = live
    url = weir.addresses["https"] + paths["playlist"]
    for _ in range(5):
        with contextlib.ExitStack() as stack:
            players = [stack.enter_context(connected(weir)) for _ in range(2 * (os.cpu_count() or 1) + 1)]
            lists = [llhls.parse(player.get(paths["playlist"]).body.decode(), url) for player in players]
            segment, part = lists[-1].next
            held = [player.request(f"{paths['playlist']}?_HLS_msn={segment}&_HLS_part={part}") for player in players]
            for player, stream in zip(players, held):
                assert player.response(stream).status == 200
            held = [player.request(f"{paths['playlist']}?_HLS_msn={segment + 1}") for player in players]
            in_time = newest(weir, paths).next <= (segment + 1, 0)
            answers = [player.response(stream) for player, stream in zip(players, held)]
        # After a delay that segment has begun: then it is a later one.
        if in_time:
            break
    assert in_time
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert llhls.parse(bytes(answer.body).decode(), url).last[0] == segment + 1


FIXED = ("init", "segment", "recording", "page", "missing", "health")


@pytest.mark.parametrize("what", FIXED + ("multivariant", "playlist", "manifest"))
@pytest.mark.parametrize("version", ["2", "1.1"])
def test_curl_gets_over_both_versions_what_plain_http_gives(live, what, version):
    weir, paths = live
    plain = weir.get(paths[what])
    spoken, status, headers, body = curl(weir, paths[what], f"--http{version}")
    assert spoken == version
    assert status == plain.status
    if what in FIXED:
        assert body == plain.body
    changing = {"date"} | (set() if what in FIXED else {"etag", "content-length"})
    expected = {k: v.lower() for k, v in plain.headers.items() if k not in changing}
    assert {k: v for k, v in headers.items() if k not in changing} == expected
    assert int(headers["content-length"]) == len(body)


def test_head_ranges_conditions_and_gzip_are_as_over_http_1(live):
    weir, paths = live
    whole = weir.get(paths["segment"])
    with connected(weir) as connection:
        head = connection.get(paths["segment"], method="HEAD")
        assert head.status == 200 and not head.body and int(head.headers["content-length"]) == len(whole.body)
        part = connection.get(paths["segment"], headers={"range": "bytes=1000-40000"})
        assert part.status == 206 and part.body == whole.body[1000:40001]
        assert part.headers["content-range"] == f"bytes 1000-40000/{len(whole.body)}"
        beyond = connection.get(paths["segment"], headers={"range": f"bytes={len(whole.body)}-"})
        assert beyond.status == 416 and beyond.headers["content-range"] == f"bytes */{len(whole.body)}"
        page = connection.get(paths["page"], headers={"accept-encoding": "gzip"})
        assert page.headers["content-encoding"] == "gzip"
        assert gzip.decompress(bytes(page.body)) == weir.get(paths["page"]).body
        same = connection.get(paths["page"], headers={"if-none-match": page.headers["etag"]})
        assert same.status == 304 and not same.body
        preflight = connection.get(paths["segment"], method="OPTIONS", headers={"origin": "https://player.example"})
        assert preflight.status == 204 and "GET" in preflight.headers["access-control-allow-methods"]
        recording = weir.get(paths["recording"]).body
        assert connection.get(paths["recording"]).body == recording
        assert connection.get(paths["recording"], headers={"range": "bytes=-5000"}).body == recording[-5000:]


def test_a_client_without_alpn_speaks_http_1(live):
    weir, paths = live
    assert http.fetch(weir.addresses["https"] + paths["segment"]).body == weir.get(paths["segment"]).body


@pytest.mark.parametrize("is_awaited", [False, pytest.param(True, marks=pytest.mark.long)], ids=["", "until-it-is-cut"])
def test_a_hundred_streams_go_on_beside_one_that_is_not_read(live, is_awaited):
    """It is cut in the end: HTTP2HostileTests have that by a shorter limit."""
    weir, paths = live
    segment = weir.get(paths["segment"]).body
    with connected(weir, window=100_000) as connection:
        stalled = connection.request(f"/live/{NAME}/stream.mp4", reads=False)
        connection.wait(lambda c: len(c.streams[stalled].body) == 100_000, 20, "the stalled stream's window is full")
        kinds = ["segment", "playlist", "segment", "init", "health"] * 20
        numbers = [connection.request(paths[kind]) for kind in kinds[:99]]
        for kind, number in zip(kinds, numbers):
            answer = connection.response(number)
            assert answer.status == 200, kind
            if kind == "segment":
                assert answer.body == segment
        if is_awaited:
            connection.wait(lambda c: c.streams[stalled].reset is not None, 25, "the stalled viewer is cut")
            assert connection.streams[stalled].reset == 8  # CANCEL
        assert len(connection.streams[stalled].body) == 100_000
        assert connection.get(paths["segment"]).body == segment
        assert not connection.goaways


def test_stream_mp4_flows_and_a_viewer_that_resets_it_is_gone(live):
    weir, _ = live
    with connected(weir) as connection:
        number = connection.request(f"/live/{NAME}/stream.mp4")
        connection.wait(lambda c: len(c.streams[number].body) > 300_000, 20, "media flows")
        assert connection.streams[number].body[4:8] == b"ftyp"
        assert "content-length" not in connection.streams[number].headers
        connection.reset(number)
        assert connection.get("/healthz").status == 200


def test_h2load_gets_every_answer(live):
    weir, paths = live
    done = tools.run("h2load", "-n", "2000", "-c", "4", "-m", "100", weir.addresses["https"] + paths["playlist"])
    assert "2000 succeeded, 0 failed, 0 errored" in done.stdout, done.stdout + done.stderr
    assert "status codes: 2000 2xx" in done.stdout
    # More at a time than the limit of streams.
    done = tools.run("h2load", "-n", "2000", "-c", "4", "-m", "150", weir.addresses["https"] + paths["playlist"])
    assert "2000 succeeded, 0 failed, 0 errored" in done.stdout, done.stdout + done.stderr
    done = tools.run("h2load", "-n", "200", "-c", "2", "-m", "20", weir.addresses["https"] + paths["segment"])
    assert "200 succeeded, 0 failed, 0 errored" in done.stdout, done.stdout + done.stderr


def test_curls_that_give_up_take_nothing_from_others(live):
    """curl resets what it has not had in time: each of these has two endless responses on one connection. All of them have begun
    before the first gives up."""
    weir, paths = live
    endless = [f"{weir.addresses['https']}/live/{NAME}/stream.mp4"] * 2
    command = ["curl", "-sk", "--http2", "--parallel", "-m", "5", "-o", os.devnull, "-o", os.devnull, "-w", "%{size_download} ", *endless]
    with contextlib.ExitStack() as stack:
        curls = [stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)) for _ in range(10)]
        weir.wait(lambda: Metrics(weir).total("weir_viewers", stream=NAME, protocol="mp4") >= 10, 10, "they watch")
        while any(curl.poll() is None for curl in curls):
            done = tools.run("h2load", "-n", "500", "-c", "4", "-m", "20", weir.addresses["https"] + paths["playlist"])
            assert "500 succeeded, 0 failed, 0 errored" in done.stdout, done.stdout + done.stderr
        told = [curl.communicate()[0].split() for curl in curls]
        assert [curl.returncode for curl in curls] == [28] * 10, "each gave up"
        assert all(int(size) > 10_000 for sizes in told for size in sizes), "in the middle"
    weir.wait(lambda: Metrics(weir).total("weir_viewers", stream=NAME, protocol="mp4") == 0, 10, "their places are free")


def test_streams_too_many_of_a_client_that_has_read_nothing_are_refused_one_by_one(live):
    """It does not know the limit yet, and python's h2 does not guess."""
    weir, paths = live
    for _ in range(5):
        segment = newest(weir, paths).next[0] + 1
        with connected(weir, reading=False) as connection:
            # The responses come when that segment exists, so all streams are open together.
            numbers = [connection.request(f"{paths['playlist']}?_HLS_msn={segment}") for _ in range(150)]
            connection.read()
            in_time = newest(weir, paths).next[0] <= segment
            answers = [connection.response(number) for number in numbers]
            again = connection.request(paths["segment"])
            assert connection.response(again).body == weir.get(paths["segment"]).body
            assert not connection.goaways and not connection.closed
        # After a delay it exists before they ask: then it is a later one.
        if in_time:
            break
    assert in_time
    assert {answer.status for answer in answers[:100]} == {200}
    assert {answer.reset for answer in answers[100:]} == {7}  # REFUSED_STREAM


@contextlib.contextmanager
def undisturbed(weir, paths):
    """A viewer who goes on watching meanwhile, and afterwards."""
    with connected(weir) as good:
        viewer = good.request(f"/live/{NAME}/stream.mp4")
        good.wait(lambda c: len(c.streams[viewer].body) > 1000, 20, "the good viewer watches")
        yield
        seen = len(good.streams[viewer].body)
        good.wait(lambda c: len(c.streams[viewer].body) > seen + 30_000, 20, "the good viewer goes on")
        assert good.get(paths["segment"]).status == 200 and not good.goaways
    assert weir.wait_state(NAME, "live")


INGEST = "/live/bytes/ingest"
#: What a flood sends at first, and then turn for turn, each with the next stream.
FLOODS = {
    "resets": (None, lambda bad, path, stream: bad.request(path, stream) + frame(RST_STREAM, 0, stream, number(CANCEL))),
    "resets that the server is made to send": (
        None, lambda bad, path, stream: bad.request(path, stream) + frame(WINDOW_UPDATE, 0, stream, number(0))),
    "pings": (None, lambda *_: frame(PING, 0, 0, bytes(8))),
    "settings": (None, lambda *_: frame(SETTINGS, 0, 0, b"\0\4" + number(WINDOW))),
    "continuations": (
        lambda bad: bad.request("/", 1, flags=END_STREAM), lambda *_: frame(CONTINUATION, 0, 1, b"\x84")),
    "empty data": (lambda bad: bad.request(INGEST, 1, "POST", END_HEADERS), lambda *_: frame(DATA, 0, 1)),
    "windows of the connection": (None, lambda *_: frame(WINDOW_UPDATE, 0, 0, number(1))),
    "windows of an open stream": (
        lambda bad: bad.request(INGEST, 1, "POST", END_HEADERS), lambda *_: frame(WINDOW_UPDATE, 0, 1, number(1))),
    "windows of a closed stream": (
        lambda bad: bad.request("/", 1) + frame(RST_STREAM, 0, 1, number(CANCEL)),
        lambda *_: frame(WINDOW_UPDATE, 0, 1, number(1))),
    "goodbyes": (None, lambda *_: frame(GOAWAY, 0, 0, bytes(8))),
    "frames of unknown types": (None, lambda *_: frame(0xB, 0, 0, b"x")),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_ends_its_own_connection_and_no_viewer_notices(live, kind):
    """CVE-2023-44487, CVE-2025-8671, CVE-2019-9512, CVE-2019-9515, CVE-2024-27316, CVE-2019-9518."""
    weir, paths = live
    first, again = FLOODS[kind]
    with undisturbed(weir, paths), contextlib.closing(http2_frames.Client(weir.addresses["https"])) as bad:
        before = cpu_seconds(weir.process.pid)
        bad.send(first(bad) if first else b"")
        turn = 0
        while turn < 5000 and not bad.closed:
            bad.send(b"".join(again(bad, f"/live/{NAME}/stream.mp4", 2 * (turn + more) + 1) for more in range(10)))
            turn += 10
        # What came before the end may be read long before that.
        deadline = time.monotonic() + 10
        while not bad.closed and time.monotonic() < deadline:
            bad.take(1)
        assert bad.closed, f"{turn} turns"
        # What the client sent meanwhile may have taken the last words with it.
        assert bad.goaways in ([], [ENHANCE_YOUR_CALM])
        assert cpu_seconds(weir.process.pid) - before < 2


def test_a_publish_in_frames_of_a_byte_costs_what_chunks_of_a_byte_cost(live, record_property):
    """In seconds of the processor. They are no flood: each carries something. The transport stream has null packets alone (ISO/IEC 13818-1 §2.4.1)."""
    weir, paths = live
    packet, count = b"\x47\x1f\xff\x10" + b"\xff" * 184, 2500

    def cost(send) -> float:
        before = cpu_seconds(weir.process.pid)
        send()
        return cpu_seconds(weir.process.pid) - before

    def frames() -> None:
        with contextlib.closing(http2_frames.Client(weir.addresses["https"])) as bad:
            bad.send(bad.request(INGEST, 1, "POST", END_HEADERS))
            body = b"".join(frame(DATA, 0, 1, bytes([byte])) for byte in packet)
            left = count
            while left and not bad.closed:
                if turns := min(left, *(window // len(packet) for window in bad.windows.values())):
                    left -= turns
                    for stream in bad.windows:
                        bad.windows[stream] -= turns * len(packet)
                    bad.send(turns * body)
                else:
                    bad.take(10)
            bad.send(frame(DATA, END_STREAM, 1))
            while 1 not in bad.answers and not bad.closed:
                bad.take(10)
            # 422, since nothing is published: it stands in no table (RFC 7541, appendix A).
            assert list(bad.answers) == [1] and bad.answers[1] < 0x80 and not bad.goaways, (bad.answers, bad.goaways, bad.resets, left)

    def chunks() -> None:
        parts = urllib.parse.urlsplit(weir.addresses["https"])
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as plain, \
                http2.context(["http/1.1"]).wrap_socket(plain, server_hostname="localhost") as bad:
            head = f"POST {INGEST} HTTP/1.1\r\nHost: {parts.netloc}\r\nTransfer-Encoding: chunked\r\n\r\n"
            bad.sendall(head.encode() + count * b"".join(b"1\r\n%c\r\n" % byte for byte in packet) + b"0\r\n\r\n")
            assert bad.recv(1 << 16).startswith(b"HTTP/1.1 422 ")

    with undisturbed(weir, paths):
        new, old = cost(frames), cost(chunks)
    record_property("figure", f"{count * len(packet)} bytes: HTTP/2 {new:.2f} s of CPU, HTTP/1.1 {old:.2f} s")
    assert new < 2 * old + 0.1, (new, old)


def serial(address: str) -> str:
    """From the certificate that a new connection gets."""
    host = address.split("://")[1]
    shown = tools.run("sh", "-c", f"{tools.OPENSSL} s_client -connect {host} -servername localhost </dev/null 2>/dev/null"
                                  f" | {tools.OPENSSL} x509 -noout -serial")
    return shown.stdout.strip().removeprefix("serial=").lower()


def test_a_renewed_certificate_is_shown_to_new_connections_and_old_ones_go_on(start, tmp_path):
    folder = tmp_path / "tls"
    weir = start_secure(start, folder, "--no-record")
    publisher = publishers.ffmpeg("loop", f"{weir.addresses['rtmps']}/live/{NAME}", loop=-1)
    try:
        weir.wait_state(NAME, "live")
        weir.wait(lambda: weir.get(f"/live/{NAME}/index.m3u8").status == 200, 15, "a playlist")
        addresses = [weir.addresses["https"], weir.addresses["rtmps"]]
        old = serial(addresses[0])
        assert old and serial(addresses[1]) == old
        with connected(weir) as viewer:
            watching = viewer.request(f"/live/{NAME}/stream.mp4")
            viewer.wait(lambda c: len(c.streams[watching].body) > 1000, 20, "the viewer watches")

            # A key that does not match is logged, and nothing changes.
            cert, key = make_certificate(tmp_path / "new")
            os.replace(key, folder / "key.pem")
            line = weir.wait_log("the new certificate is not taken", 20)
            assert "does not belong to the certificate" in line and "use the matching key" in line
            assert [serial(a) for a in addresses] == [old, old]

            os.replace(cert, folder / "cert.pem")
            line = weir.wait_log("new connections get the certificate", 20)
            new = serial(addresses[0])
            assert new != old and serial(addresses[1]) == new
            assert new in line.replace("serial 0", "serial ") or f"serial {new}" in line
            assert re.search(r"valid until 20\d\d-", line)

            # SIGHUP does not wait for the next check.
            third = make_certificate(tmp_path / "third")
            os.replace(third[0], folder / "cert.pem")
            os.replace(third[1], folder / "key.pem")
            weir.send(signal.SIGHUP)
            weir.wait(lambda: serial(addresses[0]) not in (old, new), 20, "the third certificate")

            seen = len(viewer.streams[watching].body)
            viewer.wait(lambda c: len(c.streams[watching].body) > seen + 30_000, 20, "the old connection goes on")
            assert not viewer.goaways and not viewer.closed
        assert publisher.process.poll() is None
        assert weir.stream(NAME)["state"] == "live" and weir.stream(NAME)["protocol"] == "RTMPS"
        assert not re.search(r"reconnecting|lost", weir.text("err"))
    finally:
        publisher.kill()


def test_a_server_that_stops_ends_streams_properly_and_says_goodbye(start, tmp_path):
    weir = start_secure(start, tmp_path / "tls", "--no-record")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        weir.wait_state(NAME, "live")
        with connected(weir) as connection:
            number = connection.request(f"/live/{NAME}/stream.mp4")
            connection.wait(lambda c: len(c.streams[number].body) > 1000, 20, "the viewer watches")
            weir.stop()
            connection.wait(lambda c: c.closed, 5, "the connection is closed")
            assert connection.streams[number].ended and connection.goaways[-1] == 0
    finally:
        publisher.kill()
