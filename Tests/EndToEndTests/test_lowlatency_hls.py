"""Low-Latency HLS for a strict player: promises of playlists are kept, in both layouts and with both ways of naming parts;
hostile and early requests; the end of streams."""

import json
import socket
import threading
import time
import urllib.parse

import pytest

from harness import hls, http, llhls, publishers, tools

NAME = "cam"
SHAPES = [("interleaved", "url"), ("interleaved", "byterange"), ("separate", "url"), ("separate", "byterange")]


def playlists(weir) -> list[str]:
    """The media playlists of a presentation, that of the video first."""
    index = f"{weir.web}/live/{NAME}/index.m3u8"
    weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist")
    top = hls.parse_multivariant(http.fetch(index).text, index)
    uris = [variant.uri for variant in top.variants] + [media["URI"] for media in top.media if "URI" in media]
    return [top.absolute(uri) for uri in uris]


@pytest.fixture(scope="module", params=SHAPES, ids=["-".join(shape) for shape in SHAPES])
def live(request, start_shared):
    """A stream with B-frames and audio, 6 s old, and its playlists."""
    layout, addressing = request.param
    weir = start_shared("--hls-layout", layout, "--part-addressing", addressing, "--no-record")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        urls = playlists(weir)
        assert len(urls) == (1 if layout == "interleaved" else 2)
        # From the third key frame interval on, the server knows the ends of segments in advance.
        weir.wait(lambda: len(hls.parse_media(http.fetch(urls[0]).text, urls[0]).segments) >= 3, 20, "segments")
        yield weir, urls, layout, addressing
    finally:
        publisher.kill()


def test_what_a_playlist_promises_is_delivered(live):
    _, urls, _, _ = live
    players = [llhls.Player(url) for url in urls]
    threads = [threading.Thread(target=player.play, args=(9,)) for player in players]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for player in players:
        player.judge_media()
        assert player.problems == [], player.url
        # One state for each part: five per second.
        assert len(player.playlists) >= 40


def test_updates_come_with_the_parts_and_in_even_steps(live):
    _, urls, _, _ = live
    player = llhls.Player(urls[0]).play(6)
    times = [at for at, _ in player.playlists[1:]]
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert gaps[len(gaps) // 2] == pytest.approx(0.2, abs=0.05), "C06"
    # Other work on the machine may delay one of them.
    assert gaps[-2] < 0.6 and gaps[-1] < 1.2, gaps


def test_delta_updates_leave_out_what_the_client_has(live):
    _, urls, _, _ = live
    time.sleep(12)
    player = llhls.Player(urls[0], skips=True).play(4)
    assert player.problems == []
    deltas = [playlist for _, playlist in player.playlists if playlist.skipped]
    assert len(deltas) >= 10
    for delta in deltas:
        full = llhls.parse(http.fetch(urls[0]).text, urls[0])
        shown = {s.sequence: (s.uri, s.duration) for s in full.segments if s.uri}
        for segment in delta.segments:
            if segment.uri and segment.sequence in shown:
                assert shown[segment.sequence] == (segment.uri, segment.duration)
        assert delta.sequence + delta.skipped == delta.segments[0].sequence


def test_reports_tell_where_the_other_rendition_is(live):
    _, urls, layout, _ = live
    if layout == "interleaved":
        assert llhls.parse(http.fetch(urls[0]).text, urls[0]).reports == {}
        return
    for url in urls:
        for _ in range(10):
            playlist = llhls.parse(http.fetch(url).text, url)
            ((uri, (segment, part)),) = playlist.reports.items()
            other_url = urllib.parse.urljoin(url, uri)
            assert other_url in urls and other_url != url
            other = llhls.parse(http.fetch(other_url).text, other_url)
            last = next(s for s in other.segments if s.sequence == segment)
            assert part <= len(last.parts) - 1 and other.next >= (segment, part)
            ahead = [p for p in other.parts if p.position > (segment, part)]
            assert len(ahead) <= 1, "C18 right within one part"
            time.sleep(0.13)


def test_a_segment_is_sent_while_it_is_made(live):
    _, urls, _, _ = live
    playlist = llhls.parse(http.fetch(urls[0]).text, urls[0])
    number = playlist.next[0] + (1 if playlist.next[1] > 5 else 0)
    url = urllib.parse.urljoin(urls[0], f"{number}.m4s")
    stream = http.Stream(url)
    assert stream.status == 200
    assert stream.answer.getheader("Content-Length") is None
    assert "immutable" in stream.answer.getheader("Cache-Control")
    arrivals, body = [], b""
    while piece := stream.answer.read1(1 << 20):
        arrivals.append(time.monotonic())
        body += piece
    assert arrivals[-1] - arrivals[0] > 0.7, "it came at once"
    assert body == http.fetch(url).good().body


def test_ranges_of_a_segment_in_the_making(live):
    _, urls, _, _ = live
    playlist = llhls.parse(http.fetch(urls[0]).text, urls[0])
    number = playlist.next[0] + (1 if playlist.next[1] else 0)
    url = urllib.parse.urljoin(urls[0], f"{number}.m4s")
    first = http.fetch(url, headers={"Range": "bytes=0-99"})
    assert first.status == 206 and len(first.body) == 100
    assert first.headers["content-range"] == "bytes 0-99/*"
    rest = http.fetch(url, headers={"Range": "bytes=100-"})
    assert rest.status == 206
    assert rest.headers["content-range"] == "bytes 100-9007199254740991/*"
    whole = http.fetch(url).good().body
    assert first.body + rest.body == whole
    assert http.fetch(url, headers={"Range": "bytes=99999999-"}).status == 416


# MARK: Requests that make no sense, or come too early


@pytest.mark.parametrize("query", ["_HLS_part=3", "_HLS_msn=-1", "_HLS_msn=x", "_HLS_msn=1.5", "_HLS_msn=",
                                   "_HLS_msn=1&_HLS_part=x", "_HLS_msn=99999999999999999999", "_HLS_msn=999999"])
def test_absurd_positions_are_refused_at_once(live, query):
    _, urls, _, _ = live
    start = time.monotonic()
    answer = http.fetch(f"{urls[0]}?{query}")
    assert answer.status == 400 and time.monotonic() - start < 0.5
    assert "no-store" in answer.headers["cache-control"]


def test_key_frames_can_be_fetched_one_by_one(live, tmp_path):
    """Each range of the I-frame playlist, after its init segment, decodes to one frame."""
    weir, _, _, _ = live
    index = f"{weir.web}/live/{NAME}/index.m3u8"
    line = next(line for line in http.fetch(index).text.split("\n") if line.startswith("#EXT-X-I-FRAME-STREAM-INF:"))
    url = urllib.parse.urljoin(index, hls.attributes(line)["URI"])
    lines = http.fetch(url).text.split("\n")
    init = next(hls.attributes(line)["URI"] for line in lines if line.startswith("#EXT-X-MAP:"))
    head = http.fetch(urllib.parse.urljoin(url, init)).good().body
    ranges = [line.partition(":")[2] for line in lines if line.startswith("#EXT-X-BYTERANGE:")]
    names = [line for line in lines if line and not line.startswith("#")]
    assert len(ranges) == len(names) >= 2
    for number, (place, name) in enumerate(zip(ranges[-3:], names[-3:])):
        length, offset = map(int, place.split("@"))
        wanted = {"Range": f"bytes={offset}-{offset + length - 1}"}
        got = http.fetch(urllib.parse.urljoin(url, name), headers=wanted)
        assert got.status == 206 and len(got.body) == length
        path = tmp_path / f"{number}.mp4"
        path.write_bytes(head + got.body)
        done = tools.run(tools.FFPROBE, "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
                         "stream=nb_read_frames:frame=pict_type", "-of", "json", path)
        assert done.returncode == 0, done.stderr
        probed = json.loads(done.stdout)
        assert [frame["pict_type"] for frame in probed["frames"]] == ["I"], probed


def test_a_position_that_is_past_gets_the_list_of_now(live):
    _, urls, _, _ = live
    now = llhls.parse(http.fetch(f"{urls[0]}?_HLS_msn=1&_HLS_part=0").text, urls[0])
    assert now.last >= (3, 0)


def test_a_client_that_blocks_by_segment_alone_is_answered_once_a_segment_with_all_of_it(live):
    """RFC 8216bis §6.2.5.2: a request with only _HLS_msn gets its response when that segment is complete."""
    _, urls, _, _ = live
    for url in urls:
        playlist = llhls.parse(http.fetch(url).text, url)
        number = playlist.segments[-1].sequence + (playlist.segments[-1].uri is not None)
        for step in range(2):
            began = time.monotonic()
            answer = http.fetch(f"{url}?_HLS_msn={number + step}").good()
            playlist = llhls.parse(answer.text, url)
            whole = [segment for segment in playlist.segments if segment.uri is not None]
            assert whole[-1].sequence == number + step, "all of the segment, and nothing later"
            assert time.monotonic() - began < 2 * playlist.target + 1
            assert answer.headers["cache-control"] == f"public, max-age={6 * playlist.target}"


def test_parts_far_ahead_and_parts_that_never_were_are_missing(live):
    _, urls, _, addressing = live
    if addressing == "byterange":
        return
    segment, part = llhls.parse(http.fetch(urls[0]).text, urls[0]).next
    for name in (f"{segment + 3}.0.m4s", f"{segment}.{part + 9}.m4s", f"{max(1, segment - 1)}.77.m4s"):
        start = time.monotonic()
        answer = http.fetch(urllib.parse.urljoin(urls[0], name))
        assert answer.status == 404 and time.monotonic() - start < 1, name


def test_cache_lifetimes(live):
    _, urls, _, _ = live
    playlist = llhls.parse(http.fetch(urls[0]).text, urls[0])
    assert http.fetch(urls[0]).headers["cache-control"] == "public, max-age=1"
    awaited = http.fetch(f"{urls[0]}?_HLS_msn={playlist.next[0]}&_HLS_part={playlist.next[1]}")
    assert awaited.headers["cache-control"] == f"public, max-age={6 * playlist.target}"
    for uri in (playlist.segments[0].uri, "init-1.mp4"):
        assert "immutable" in http.fetch(urllib.parse.urljoin(urls[0], uri)).headers["cache-control"]


def test_many_players_wait_for_one_part_and_are_answered_together(live):
    """C22: one thread for each would not suffice."""
    weir, urls, _, _ = live
    parts = urllib.parse.urlsplit(urls[0])
    sockets = []
    try:
        playlist = llhls.parse(http.fetch(urls[0]).text, urls[0])
        request = (f"GET {parts.path}?_HLS_msn={playlist.next[0] + 1}&_HLS_part=2 HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                   "\r\n").encode()
        for _ in range(300):
            connection = socket.create_connection((parts.hostname, parts.port))
            connection.sendall(request)
            sockets.append(connection)
        arrivals, bodies = [], set()
        for connection in sockets:
            connection.settimeout(10)
            data = connection.recv(1 << 16)
            arrivals.append(time.monotonic())
            head, _, body = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            bodies.add(body[:200])
        assert len(bodies) == 1
        assert arrivals[-1] - arrivals[0] < 0.5
    finally:
        for connection in sockets:
            connection.close()


# MARK: Ends


def waiter(url: str, answers: list) -> threading.Thread:
    def run() -> None:
        answers.append((http.fetch(url, timeout=30), time.monotonic()))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_the_end_answers_all_waiting_requests(start):
    weir = start("--no-record")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        (url,) = playlists(weir)
        playlist = llhls.parse(http.fetch(url).text, url)
        answers: list = []
        # Two segments ahead: this position is not reached before the end.
        threads = [waiter(f"{url}?_HLS_msn={playlist.next[0] + 1}&_HLS_part=12", answers) for _ in range(20)]
        time.sleep(0.2)
        publisher.interrupt()
        publisher.outcome(10)
        ended = time.monotonic()
        for thread in threads:
            thread.join(10)
        assert len(answers) == 20
        for answer, at in answers:
            if not answer.text.endswith("#EXT-X-ENDLIST\n"):
                assert llhls.parse(answer.text, url).last[0] > playlist.next[0]
            assert at - ended < 1
        last = http.fetch(f"{url}?_HLS_msn=4000&_HLS_part=3")
        assert last.status == 200 and last.text.endswith("#EXT-X-ENDLIST\n"), "C17"
        newest = llhls.parse(last.text, url).segments[-1]
        pieces = [http.fetch(urllib.parse.urljoin(url, uri)).body for uri in [newest.uri, *(part.uri for part in newest.parts)]]
        assert pieces[0] == b"".join(pieces[1:]), "the parts of the newest segments stay in the list"
    finally:
        publisher.kill()


def test_a_hinted_part_is_empty_when_the_publisher_stays_away(start):
    """Shaka Player takes a second 503 for the end of the programme."""
    weir = start("--no-record")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        (url,) = playlists(weir)
    finally:
        publisher.kill()
    weir.wait_state(NAME, "reconnecting")
    playlist = llhls.parse(http.fetch(url).text, url)
    began = time.monotonic()
    answer = http.fetch(urllib.parse.urljoin(url, playlist.hint["URI"]), timeout=30)
    assert 3 * playlist.target - 0.5 <= time.monotonic() - began <= 3 * playlist.target + 2
    assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.body[4:8] == b"styp" and int.from_bytes(answer.body[:4], "big") == len(answer.body)


def test_a_publisher_that_stops_sending_makes_no_request_wait_for_ever(start):
    weir = start("--no-record")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        (url,) = playlists(weir)
        publisher.process.send_signal(19)
        time.sleep(0.5)
        playlist = llhls.parse(http.fetch(url).text, url)
        start_time = time.monotonic()
        answer = http.fetch(f"{url}?_HLS_msn={playlist.next[0]}&_HLS_part={playlist.next[1]}", timeout=30)
        waited = time.monotonic() - start_time
        assert answer.status == 503 and answer.headers["retry-after"] == "1"
        assert 3 * playlist.target - 0.5 <= waited <= 3 * playlist.target + 2, "C13"
        publisher.process.send_signal(18)
        answer = http.fetch(f"{url}?_HLS_msn={playlist.next[0]}&_HLS_part={playlist.next[1]}", timeout=30)
        assert answer.status == 200
    finally:
        publisher.process.send_signal(18)
        publisher.kill()


# MARK: Players that we did not write


def test_ffmpeg_plays_the_same_addresses(live):
    weir, _, _, _ = live
    log = tools.run(
        tools.FFMPEG, "-hide_banner", "-nostdin", "-v", "error", "-stats", "-i", f"{weir.web}/live/{NAME}/index.m3u8",
        "-t", "4", "-f", "null", "-", timeout=30)
    assert log.returncode == 0
    assert "frame=" in log.stderr


def test_gstreamer_hlsdemux2_plays_the_same_addresses(live):
    weir, _, _, _ = live
    log = tools.run(
        "gst-launch-1.0", "playbin3", f"uri={weir.web}/live/{NAME}/index.m3u8", "video-sink=fakesink num-buffers=90",
        "audio-sink=fakesink num-buffers=90", timeout=40)
    assert log.returncode == 0, log.stderr
    assert "EOS" in log.stdout
