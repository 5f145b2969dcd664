"""Transport streams as bodies of requests: ffmpeg, curl and GStreamer over HTTP/1.1 and HTTP/2, and clients that may not."""

import array
import contextlib
import json
import os
import pathlib
import re
import shlex
import socket
import threading
import time

import pytest

from harness import inband, nothing_wrong, packets, publishers, sources, tools, transport

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def keyed(start_shared, canary):
    weir = start_shared("--publish-key", f"{canary}-all", "--admin-token", TOKEN, "--no-record")
    weir.secrets += [canary, TOKEN]
    weir.key = f"{canary}-all"
    return weir


def playlist(weir, name: str) -> str:
    """The address of the media playlist, which names the epoch."""
    text = weir.get(f"/live/{name}/index.m3u8").good().text
    return next(line for line in text.splitlines() if line.endswith("/av/index.m3u8"))


def curl(*options) -> list[str]:
    return ["curl", "-sS", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", *map(str, options)]


def test_what_clients_send_is_recorded_with_its_times(start, tmp_path):
    """ffmpeg, curl with a length, in chunks and by HTTP/2, GStreamer: the clean end of the body ends the stream."""
    certificate, key = tools.make_certificate(tmp_path)
    film = transport.film("short")
    weir = start("--https", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key, "--admin-token", TOKEN,
                 listeners=("http", "rtmp", "https"))
    https = weir.addresses["https"]

    def to(name: str, base: str = weir.web) -> str:
        return f"{base}/live/{name}/ingest"

    clients = {
        "ffmpeg": publishers.Publisher([
            tools.FFMPEG, "-v", "warning", "-nostdin", "-re", "-i", str(sources.source("short")), "-c", "copy",
            "-f", "mpegts", "-method", "POST", to("ffmpeg")]),
        "length": publishers.Publisher(curl("-T", film, "--limit-rate", "150K", to("length"))),
        "chunks": publishers.Publisher([
            "bash", "-c", f"cat {film} | " + shlex.join(curl("-T", "-", "--limit-rate", "150K", to("chunks")))]),
        "http2": publishers.Publisher(curl(
            "--http2", "-k", "-X", "POST", "-H", "Content-Type: video/mp2t", "-T", film, "--limit-rate", "150K",
            to("http2", https))),
        "gstreamer": publishers.Publisher([
            tools.GSTREAMER, "-q", "filesrc", f"location={sources.source('short')}", "!", "qtdemux", "name=d",
            "mpegtsmux", "name=m", "!", "curlhttpsink", f"location={to('gstreamer')}", "content-type=video/mp2t",
            "d.video_0", "!", "queue", "!", "h264parse", "!", "identity", "sync=true", "!", "m.",
            "d.audio_0", "!", "queue", "!", "aacparse", "!", "identity", "sync=true", "!", "m."]),
    }
    problems = []
    for name, client in clients.items():
        code, log = client.outcome(40)
        if code:
            problems.append(f"{name}: exit {code}: {log}")
    # An ended stream stays for only a minute.
    for name in clients:
        if weir.stream(name)["protocol"] != ("HTTPS" if name == "http2" else "HTTP"):
            problems.append(f"{name}: {weir.stream(name)}")
    for name in clients:
        problems += [f"{name}: {problem}" for problem in packets.compare(
            packets.probe(sources.source("short")), packets.probe(weir.only_recording(name)),
            whole=name != "gstreamer")]  # which leaves out the last frame of the audio
    nothing_wrong(problems)


#: Channels of ffmpeg's layouts. It writes 7.1(wide) by a program config element: its channels are not in the headers of frames.
SURROUND = {"5.1": 6, "7.1": 8, "7.1(wide)": 8}
#: Of the first channel, in Hz. The others have its multiples.
TONE = 300


def surround(layout: str) -> pathlib.Path:
    """A film with AAC of that layout. Each channel has a tone of its own."""
    tones = "|".join(f"0.1*sin(2*PI*{TONE * (n + 1)}*t)" for n in range(SURROUND[layout]))
    return transport.film(
        "straight", "-map", "0:v", "-map", "1:a", "-c:a", "aac", "-b:a", "256k", "-shortest",
        inputs=("-f", "lavfi", "-i", f"aevalsrc='{tones}':s=48000:d=4:c={layout}"))


def tones(path: pathlib.Path) -> list[int]:
    """The tone of each channel, in Hz, by how often the second second crosses zero upwards."""
    pcm = array.array("h", tools.output(
        tools.FFMPEG, "-v", "error", "-ss", "1", "-t", "1", "-i", path, "-map", "0:a", "-f", "s16le", "-"))
    count = json.loads(tools.output(
        tools.FFPROBE, "-v", "error", "-select_streams", "a", "-show_entries", "stream=channels", "-of", "json", path))
    channels = count["streams"][0]["channels"]
    found = []
    for n in range(channels):
        one = pcm[n::channels]
        found.append(sum(1 for before, after in zip(one, one[1:]) if before < 0 <= after))
    return found


@pytest.mark.parametrize("layout", SURROUND)
def test_surround_keeps_its_channels(start, layout):
    """AAC of six and eight channels: HLS, DASH and the API tell them, and what is recorded has each in its place."""
    film, count = surround(layout), SURROUND[layout]
    weir = start("--hls-layout", "separate")
    publishers.Publisher(curl("-T", film, "--limit-rate", "400K", f"{weir.web}/live/all/ingest")).wait()
    audio = next(track for track in weir.stream("all")["tracks"] if track["kind"] == "audio")
    assert (audio["codec"], audio["channels"]) == ("AAC", count), audio
    text = weir.get("/live/all/index.m3u8").good().text
    assert f'CHANNELS="{count}"' in text and "mp4a.40.2" in text, text
    told = re.search('AudioChannelConfiguration schemeIdUri="([^"]+)" value="([^"]+)"', weir.get("/live/all/manifest.mpd").good().text)
    assert told.groups() == (
        ("urn:mpeg:dash:23003:3:audio_channel_configuration:2011", "6") if count == 6
        else ("urn:mpeg:mpegB:cicp:ChannelConfiguration", "12")), told
    recorded = weir.only_recording("all")
    published, stored = packets.probe(film), packets.probe(recorded)
    # Audio before the first frame is left out.
    assert len(published["video"]) == len(stored["video"]) and len(published["audio"]) - 3 <= len(stored["audio"])
    error, frames = packets.decode(recorded)
    assert not error and frames["audio"] > 150, (error, frames)
    heard, expected = tones(recorded), [TONE * (n + 1) for n in range(count)]
    # The encoder leaves only bass to the fourth.
    assert len(heard) == count and heard[:3] + heard[4:] == pytest.approx(expected[:3] + expected[4:], abs=10), heard


def account(weir, name: str) -> dict | None:
    """What the API tells of a stream's transport stream, once tracks of it are taken."""
    told = (weir.stream(name) or {}).get("transportStream")
    return told if told and any(element["taken"] for element in told["elements"]) else None


def test_one_of_several_programmes_is_chosen_by_its_number(start):
    """By HTTP, by SRT, and by neither: then it is the first one with a track."""
    two = transport.film("short", "-map", "0", "-map", "1", "-program", "program_num=1:st=0:st=1",
                         "-program", "program_num=7:st=2:st=3", inputs=("-i", str(sources.source("straight"))))
    weir = start("--srt", "127.0.0.1:0", listeners=("http", "rtmp", "srt"))
    host = weir.srt.removeprefix("srt://")
    srt = [tools.FFMPEG, "-v", "warning", "-nostdin", "-re", "-i", str(two), "-map", "0", "-c", "copy", "-program",
           "program_num=1:st=0:st=1", "-program", "program_num=7:st=2:st=3", "-f", "mpegts"]
    clients = {
        "none": publishers.Publisher(curl("-T", two, "--limit-rate", "300K", f"{weir.web}/live/none/ingest")),
        "http": publishers.Publisher(curl("-T", two, "--limit-rate", "300K", f"{weir.web}/live/http/ingest?program=7")),
        "srt": publishers.Publisher([*srt, f"srt://{host}?streamid=#!::r=srt,m=publish,program=7"]),
    }
    problems = []
    told = weir.wait(lambda: account(weir, "srt"), 20, "the account of the stream by SRT")
    assert (told["program"], told["programs"]) == (7, [1, 7]), told
    assert [e["content"] for e in told["elements"] if e["program"] == 7 and e["taken"]] == ["H.264", "AAC"], told
    assert {e["taken"] for e in told["elements"] if e["program"] == 1} <= {False}, told
    for name, client in clients.items():
        code, log = client.outcome(40)
        if code:
            problems.append(f"{name}: exit {code}: {log}")
    for name, published in (("none", "short"), ("http", "straight")):
        problems += [f"{name}: {problem}" for problem in packets.compare(
            packets.probe(sources.source(published)), packets.probe(weir.only_recording(name)))]
    assert weir.get("/live/cam/ingest").status == 405
    assert head(weir, "/live/cam/ingest?program=0")[0] == head(weir, "/live/cam/ingest?program=x")[0] == 400
    nothing_wrong(problems)


def test_each_programme_is_a_stream_of_its_own(start, canary):
    """One sender, by HTTP and by SRT: the first programme has the name, the others have their numbers behind it. Each has its
    own frames and times. A key that is not for one of them costs that one alone."""
    numbers = ("-program", "program_num=1:st=0:st=1", "-program", "program_num=7:st=2:st=3")
    two = transport.film("short", "-map", "0", "-map", "1", *numbers, inputs=("-i", str(sources.source("straight"))))
    keys = [f"{name}={canary}-mux" for name in ("mux", "mux-7", "muxed", "muxed-7")] + [f"some={canary}-some"]
    weir = start("--srt", "127.0.0.1:0", "--admin-token", TOKEN, "--reconnect-window", "1s",
                 *(flag for key in keys for flag in ("--publish-key", key)), listeners=("http", "rtmp", "srt"))
    weir.secrets += [canary, TOKEN]
    host = weir.srt.removeprefix("srt://")
    clients = {
        "mux": publishers.Publisher(curl(
            "-T", two, "--limit-rate", "300K", f"{weir.web}/live/mux/ingest?program=each&key={canary}-mux")),
        "some": publishers.Publisher(curl(
            "-T", two, "--limit-rate", "300K", f"{weir.web}/live/some/ingest?program=each&key={canary}-some")),
        "muxed": publishers.Publisher([
            tools.FFMPEG, "-v", "warning", "-nostdin", "-re", "-i", str(two), "-map", "0", "-c", "copy", *numbers, "-f", "mpegts",
            f"srt://{host}?streamid=#!::r=muxed,m=publish,program=each,s={canary}-mux"]),
    }
    for name, number in (("mux", 1), ("mux-7", 7), ("muxed", 1), ("muxed-7", 7)):
        told = weir.wait(lambda: account(weir, name), 20, f"the account of {name}")
        assert (told["program"], told["programs"]) == (number, [1, 7]), (name, told)
        assert [e["program"] for e in told["elements"] if e["taken"]] == [number, number], (name, told)
    assert weir.wait(lambda: weir.stream("muxed-7")["link"], 20, "the connection's figures")["receivedPackets"] > 0
    problems = []
    for name, client in clients.items():
        code, log = client.outcome(40)
        if code:
            problems.append(f"{name}: exit {code}: {log}")
    assert weir.stream("some-7") is None
    weir.wait_log("programme 7 of .* is not taken: refused")
    weir.wait_state("mux-7", "ended", seconds=20)
    for name, published, whole in (("mux", "short", True), ("mux-7", "straight", True), ("some", "short", True),
                                   ("muxed", "short", False), ("muxed-7", "straight", False)):
        # What lies within SRT's latency when the caller closes is lost.
        problems += [f"{name}: {problem}" for problem in packets.compare(
            packets.probe(sources.source(published)), packets.probe(weir.only_recording(name)), whole=whole)]
    nothing_wrong(problems)


def away(stream: bytes, program: int, start: float, end: float) -> bytes:
    """The stream, whose association table does not name a programme between two parts of its length."""
    pieces = [stream[at:at + 188] for at in range(0, len(stream), 188)]
    for number, packet in enumerate(pieces):
        if packet[1] & 0x1F or packet[2]:
            continue
        length = int.from_bytes(packet[6:8], "big") & 0xFFF
        entries = [packet[at:at + 4] for at in range(13, 8 + length - 4, 4)]
        part = number / len(pieces)
        kept = [e for e in entries if not start <= part < end or int.from_bytes(e[:2], "big") != program]
        version = (part >= start) + (part >= end)
        section = b"\0" + (0xB000 | 9 + 4 * len(kept)).to_bytes(2, "big") + packet[8:10]
        section += bytes([packet[10] & 0xC1 | version << 1]) + packet[11:13] + b"".join(kept)
        section += inband.checksum(section)
        pieces[number] = (packet[:5] + section).ljust(188, b"\xff")
    return b"".join(pieces)


def test_a_first_programme_that_is_gone_waits_for_its_return_and_the_others_go_on(start):
    """Its stream waits as for a publisher that was lost, and is live again when the programme is in the table again."""
    numbers = ("-program", "program_num=1:st=0:st=1", "-program", "program_num=7:st=2:st=3")
    two = transport.film("h264-30", "-map", "0", "-map", "1", *numbers, inputs=("-i", str(sources.source("straight"))))
    film = away(two.read_bytes(), 1, 0.3, 0.65)
    weir = start()
    host, port = weir.web.removeprefix("http://").split(":")
    with contextlib.closing(socket.create_connection((host, int(port)), timeout=20)) as client:
        client.sendall(b"POST /live/cam/ingest?program=each HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n")

        def send(first: float, last: float) -> None:
            """Between two parts of its length, at the film's own speed."""
            part, began = film[int(first * len(film)):int(last * len(film))], time.monotonic()
            for at in range(0, len(part), 1316):
                time.sleep(max(0.0, began + at / 100_000 - time.monotonic()))
                piece = part[at:at + 1316]
                client.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

        # Nothing that changes a state is sent before it was seen.
        send(0, 0.6)
        weir.wait_state("cam", "reconnecting", seconds=20)
        weir.wait_state("cam-7", "live", seconds=20)
        send(0.6, 0.9)
        weir.wait_state("cam", "live", seconds=20)
        send(0.9, 1)
        client.sendall(b"0\r\n\r\n")
        answer = client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 204"), answer
    weir.wait_state("cam", "ended", seconds=20)
    nothing_wrong(packets.compare(packets.probe(sources.source("straight")), packets.probe(weir.only_recording("cam-7"))))


def head(weir, path: str, *fields: str) -> tuple[int, dict, dict]:
    """The response to the head of a request whose body does not come."""
    host, port = weir.web.removeprefix("http://").split(":")
    with contextlib.closing(socket.create_connection((host, int(port)), timeout=10)) as client:
        lines = [f"POST {path} HTTP/1.1", "Host: weir", "Transfer-Encoding: chunked", *fields, "", ""]
        client.sendall("\r\n".join(lines).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = client.recv(65536)
            if not piece:
                break
            answer += piece
        text, _, body = answer.partition(b"\r\n\r\n")
        first, *rest = text.decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        while len(body) < int(fields.get("content-length", 0)):
            body += client.recv(65536)
        return int(first.split()[1]), fields, json.loads(body) if body else {}


def test_a_client_that_may_not_is_refused_before_its_body(keyed):
    status, fields, problem = head(keyed, "/live/cam/ingest")
    assert status == 401 and fields["www-authenticate"].startswith("Bearer") and "?key=KEY" in problem["help"]
    assert head(keyed, "/live/cam/ingest?key=wrong", "Expect: 100-continue")[0] == 401
    bearer = f"Authorization: Bearer {keyed.key}"
    assert head(keyed, "/live/cam/ingest", bearer, "Origin: http://elsewhere.example")[0] == 403
    assert head(keyed, "/live/cam/ingest", bearer, "Content-Type: video/mp4")[0] == 415
    assert head(keyed, "/live/.cam/ingest", bearer)[0] in (400, 404)
    assert head(keyed, "/live/cam/other", bearer)[0] == 404
    assert head(keyed, "/live/cam/index.m3u8", bearer)[0] == 405
    assert head(keyed, "/live/cam/ingest", bearer, "Expect: 100-continue")[0] == 100
    with http_publisher(keyed, "busy", "127.0.0.2"):
        keyed.wait_state("busy", "live")
        status, _, problem = head(keyed, "/live/busy/ingest", bearer)
        assert status == 409 and "127.0.0.2" not in json.dumps(problem), problem
    assert keyed.get("/live/cam/ingest").status == 405
    assert any(r["stream"] == "cam" and r["protocol"] == "HTTP"
               for r in keyed.get("/api/v1/refusals", headers=ADMIN).json["refusals"])


class http_publisher:
    """A client that sends a film in chunks, evenly over its length. `cut` ends the connection at once."""

    def __init__(self, weir, name: str, own: str = "127.0.0.1", data: bytes | None = None, seconds: float = 8):
        self.data = transport.film("h264-30").read_bytes() if data is None else data
        self.seconds, self.place = seconds, weir.web.removeprefix("http://").split(":")
        self.socket = socket.create_connection((self.place[0], int(self.place[1])), source_address=(own, 0), timeout=10)
        self.socket.sendall(
            f"POST /live/{name}/ingest?key={getattr(weir, 'key', '')} HTTP/1.1\r\nHost: weir\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode())

    def __enter__(self):
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def _run(self):
        size, began = 1316, time.monotonic()
        for at in range(0, len(self.data), size):
            wait = began + self.seconds * at / len(self.data) - time.monotonic()
            if wait > 0 and self.ends.wait(wait) or self.ends.is_set():
                return
            piece = self.data[at:at + size]
            try:
                self.socket.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            except OSError:
                return

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join(10)
        self.socket.close()


def test_a_lost_connection_is_an_interruption_and_a_return_goes_on(keyed):
    with http_publisher(keyed, "field"):
        keyed.wait_state("field", "live")
        before = playlist(keyed, "field")
    keyed.wait_state("field", "reconnecting", seconds=20)
    with http_publisher(keyed, "field") as again:
        keyed.wait_state("field", "live")
        assert playlist(keyed, "field") == before
        time.sleep(0.5)
        again.ends.set()
        again.thread.join(10)
        again.socket.sendall(b"0\r\n\r\n")
        answer = again.socket.recv(65536)
        assert answer.startswith(b"HTTP/1.1 204"), answer
        keyed.wait_state("field", "ended", seconds=20)
        # The connection goes on after a complete request.
        again.socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: weir\r\n\r\n")
        assert again.socket.recv(65536).startswith(b"HTTP/1.1 200")


def test_an_upload_that_publishes_nothing_hears_what_was_found(keyed, tmp_path):
    """MPEG-2 video alone, a programme that is not there, and no transport stream at all."""
    film, words = tmp_path / "mpeg2.ts", tmp_path / "words.ts"
    tools.output(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25", "-t", "1", "-c:v", "mpeg2video",
                 "-f", "mpegts", film)
    words.write_text("no transport stream\n" * 100)
    for path, query, text in ((film, "", "MPEG-2 video (PID 256) is not taken"),
                              (film, "&program=7", "programme 7 is not in the stream, which has 1"),
                              (words, "", "no programme of an MPEG transport stream: 0 packets, 2000 other bytes")):
        answer = tmp_path / "answer.json"
        client = publishers.Publisher([
            "curl", "-sS", "--max-time", "20", "-o", str(answer), "-w", "%{http_code}", "-T", str(path),
            f"{keyed.web}/live/nothing/ingest?key={keyed.key}{query}"])
        code, log = client.outcome(25)
        problem = json.loads(answer.read_text())
        assert code == 0 and problem["status"] == 422 and text in problem["detail"], (log, problem)
        assert any(text in r["reason"] for r in keyed.get("/api/v1/refusals?stream=nothing", headers=ADMIN).json["refusals"])


def test_hostile_bodies_end_their_own_connection(keyed):
    film = transport.film("h264-30").read_bytes()
    blind = b"".join(piece for piece in (film[at:at + 188] for at in range(0, len(film), 188))
                     if (piece[1] & 0x1F) << 8 | piece[2] != 0)
    with http_publisher(keyed, "viewed") as viewed, http_publisher(keyed, "blind", data=blind, seconds=14) as client:
        noise = http_publisher(keyed, "noise", data=os.urandom(2 << 20), seconds=1)
        with noise:
            client.socket.settimeout(20)
            answer = client.socket.recv(65536)
            assert b" 422 " in answer.split(b"\r\n")[0] and b"no programme" in answer, answer
            noise.socket.settimeout(5)
            assert b" 422 " in noise.socket.recv(65536).split(b"\r\n")[0]
        broken = http_publisher(keyed, "broken", data=b"")
        broken.socket.sendall(b"zz\r\n")
        assert b" 400 " in broken.socket.recv(65536).split(b"\r\n")[0]
        broken.socket.close()
        assert viewed.thread.is_alive() or keyed.stream("viewed")["state"] in ("live", "reconnecting")
    assert keyed.resident_kilobytes() < 600_000


def test_media_that_comes_at_once_waits_in_the_client(keyed):
    """A whole hour of audio frames, as fast as the network takes it: the client is slowed, and nothing grows."""
    film = transport.film("audio-only").read_bytes()
    before = keyed.resident_kilobytes()
    with http_publisher(keyed, "flood", data=film * 120, seconds=0) as flood:
        keyed.wait_state("flood", "live")
        time.sleep(2)  # real time: as long as the client is slowed
        assert flood.thread.is_alive(), "all of it was taken at once"
        assert keyed.resident_kilobytes() - before < 200_000
