"""Low-Latency HLS for a strict player: promises of playlists are kept, in both layouts and with both ways of naming parts;
hostile and early requests; the end of streams."""

import concurrent.futures
import json
import socket
import threading
import time
import urllib.parse

import pytest

from harness import hls, http, llhls, publishers, tools

NAME = "cam"
#: Stream name → layout and addressing of its playlists: settings of the stream.
SHAPES = {f"{layout}-{addressing}": (layout, addressing)
          for layout in ("interleaved", "separate") for addressing in ("url", "byterange")}
#: A key frame each half second, two in a segment, five parts in a segment, with B-frames and audio.
FILM, SETTINGS = "half-seconds", {"segmentDuration": "1s", "partDuration": "200ms"}
PART = 0.2


def playlists(weir, name: str = NAME) -> list[str]:
    """The media playlists of a presentation, that of the video first."""
    index = f"{weir.web}/live/{name}/index.m3u8"
    weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist")
    top = hls.parse_multivariant(http.fetch(index).text, index)
    uris = [variant.uri for variant in top.variants] + [media["URI"] for media in top.media if "URI" in media]
    return [top.absolute(uri) for uri in uris]


class Shape:
    """A stream and its media playlists, three segments old."""

    def __init__(self, weir, name: str):
        self.weir, self.name = weir, name
        self.layout, self.addressing = SHAPES[name]
        self.urls = playlists(weir, name)
        # From the third key frame interval on, the server knows the ends of segments in advance.
        weir.wait(lambda: len(hls.parse_media(http.fetch(self.urls[0]).text, self.urls[0]).segments) >= 3, 20, "segments")

    def follow(self, pool: concurrent.futures.Executor) -> "Shape":
        """Starts players that follow the playlists while the tests ask for other things."""
        self.players = [llhls.Player(url) for url in self.urls]
        self.played = [pool.submit(lambda one=one: one.play(states=45).judge_media().judge_steps(PART)) for one in self.players]
        self.skipping = pool.submit(self._skip)
        return self

    def _skip(self) -> tuple[llhls.Player, llhls.Playlist]:
        """Plays with delta updates once the list is long enough for them. Then the whole list."""
        self.weir.wait(lambda: llhls.parse(http.fetch(f"{self.urls[0]}?_HLS_skip=YES").text, self.urls[0]).skipped, 60, "a delta")
        player = llhls.Player(self.urls[0], skips=True).play(states=20)
        return player, llhls.parse(http.fetch(self.urls[0]).text, self.urls[0])

    def index(self) -> str:
        return f"{self.weir.web}/live/{self.name}/index.m3u8"

    def playlist(self, number: int = 0, query: str = "") -> llhls.Playlist:
        return llhls.parse(http.fetch(self.urls[number] + query).good().text, self.urls[number])

    def in_the_making(self, ask):
        """The address of a segment of which most parts are still to come, and what `ask` gets for it. By the playlist three of the
        five parts are to come even then; after a delay the next segment is asked for."""
        for _ in range(5):
            segment, part = self.playlist().next
            segment += part > 1
            url = urllib.parse.urljoin(self.urls[0], f"{segment}.m4s")
            answer = ask(url)
            if self.playlist().next <= (segment, 2):
                break
        return url, answer

    def blocking(self, number: int, before: llhls.Playlist) -> llhls.Playlist:
        """The next state of a playlist."""
        return self.playlist(number, f"?_HLS_msn={before.next[0]}&_HLS_part={before.next[1]}")


@pytest.fixture(scope="module")
def shapes(start_shared, tmp_path_factory):
    """A stream of each shape, all of them followed at once."""
    path = tmp_path_factory.mktemp("configuration") / "weir.yaml"
    path.write_text(json.dumps({"streams": {
        name: {"hlsLayout": layout, "partAddressing": addressing, **SETTINGS} for name, (layout, addressing) in SHAPES.items()}}))
    path.chmod(0o600)
    weir = start_shared("--config", path, "--no-record")
    running = [publishers.ffmpeg(FILM, f"{weir.rtmp}/live/{name}", loop=-1) for name in SHAPES]
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            yield {name: Shape(weir, name).follow(pool) for name in SHAPES}
    finally:
        for publisher in running:
            publisher.kill()


@pytest.fixture(params=SHAPES)
def live(request, shapes) -> Shape:
    return shapes[request.param]


def test_reports_tell_where_the_other_rendition_is(live):
    assert len(live.urls) == (1 if live.layout == "interleaved" else 2)
    if live.layout == "interleaved":
        assert live.playlist().reports == {}
        return
    for number, url in enumerate(live.urls):
        for _ in range(5):
            before = live.playlist(1 - number)
            playlist = live.blocking(number, live.playlist(number))
            after = live.playlist(1 - number)
            ((uri, (segment, part)),) = playlist.reports.items()
            assert urllib.parse.urljoin(url, uri) == live.urls[1 - number]
            last = next(s for s in after.segments if s.sequence == segment)
            # Parts are listed for a while only, and this one had to be asked for in that time.
            assert (part <= len(last.parts) - 1 or (last.uri and not last.parts)) and after.next >= (segment, part)
            ahead = [p for p in before.parts if p.position > (segment, part)]
            assert len(ahead) <= 1, "C18 right within one part"


def test_a_segment_is_sent_while_it_is_made(live):
    url, stream = live.in_the_making(http.Stream)
    assert stream.status == 200
    # Its length is not known yet.
    assert stream.answer.getheader("Content-Length") is None
    assert "immutable" in stream.answer.getheader("Cache-Control")
    pieces = []
    while piece := stream.answer.read1(1 << 20):
        pieces.append(piece)
    # What is there at the time of the request comes at once, then a chunk for each part.
    assert len(pieces) >= 3, "it came at once"
    assert b"".join(pieces) == http.fetch(url).good().body


def test_ranges_of_a_segment_in_the_making(live):
    url, (first, rest) = live.in_the_making(lambda url: (
        http.fetch(url, headers={"Range": "bytes=0-99"}), http.Stream(url, headers={"Range": "bytes=100-"})))
    assert first.status == 206 and len(first.body) == 100
    assert first.headers["content-range"] == "bytes 0-99/*"
    assert rest.status == 206
    assert rest.answer.getheader("Content-Range") == "bytes 100-9007199254740991/*"
    whole = first.body + rest.read()
    assert http.fetch(url).good().body == whole
    assert http.fetch(url, headers={"Range": "bytes=99999999-"}).status == 416


# MARK: Requests that make no sense, or come too early

# That they do not wait, and the other spellings: `LowLatencyPlaylistTests`, "aPositionThatIsNoNumberIsRefused" and
# "positionsAreJudgedByThePlaylist".


@pytest.mark.parametrize("query", ["_HLS_part=3", "_HLS_msn=x", "_HLS_msn=999999"])
def test_absurd_positions_are_refused(shapes, query):
    answer = http.fetch(f"{shapes['interleaved-url'].urls[0]}?{query}")
    assert answer.status == 400
    assert "no-store" in answer.headers["cache-control"]


def test_parts_far_ahead_and_parts_that_never_were_are_missing(shapes):
    live = shapes["separate-url"]

    def is_missing(place) -> bool:
        """After a delay it may not be far ahead any more."""
        segment, part = place(*live.playlist().next)
        return http.fetch(urllib.parse.urljoin(live.urls[0], f"{segment}.{part}.m4s")).status == 404

    for what, place in (("far ahead", lambda segment, part: (segment + 3, 0)), ("behind the segment", lambda segment, part: (segment, part + 9)),
                        ("of the past", lambda segment, part: (max(1, segment - 1), 77))):
        live.weir.wait(lambda place=place: is_missing(place), 10, f"404 for what is {what}")


def test_key_frames_can_be_fetched_one_by_one(live, tmp_path):
    """Each range of the I-frame playlist, after its init segment, decodes to one frame."""
    index = live.index()
    line = next(line for line in http.fetch(index).text.split("\n") if line.startswith("#EXT-X-I-FRAME-STREAM-INF:"))
    url = urllib.parse.urljoin(index, hls.attributes(line)["URI"])
    lines = http.fetch(url).text.split("\n")
    init = next(hls.attributes(line)["URI"] for line in lines if line.startswith("#EXT-X-MAP:"))
    head = http.fetch(urllib.parse.urljoin(url, init)).good().body
    ranges = [line.partition(":")[2] for line in lines if line.startswith("#EXT-X-BYTERANGE:")]
    names = [line for line in lines if line and not line.startswith("#")]
    assert len(ranges) == len(names) >= 2
    for number, (place, name) in enumerate(zip(ranges[-2:], names[-2:])):
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
    assert live.playlist(0, "?_HLS_msn=1&_HLS_part=0").last >= (3, 0)


def test_a_client_that_blocks_by_segment_alone_is_answered_with_all_of_it(live):
    """RFC 8216bis §6.2.5.2: a request with only _HLS_msn gets its response when that segment is complete."""
    for number in range(len(live.urls)):
        awaited = live.playlist(number).next[0] + 1
        answer = http.fetch(f"{live.urls[number]}?_HLS_msn={awaited}").good()
        playlist = llhls.parse(answer.text, live.urls[number])
        whole = [segment for segment in playlist.segments if segment.uri is not None]
        assert whole[-1].sequence == awaited, "all of the segment, and nothing later"
        assert answer.headers["cache-control"] == f"public, max-age={6 * playlist.target}"


def test_cache_lifetimes(live):
    playlist = live.playlist()
    assert http.fetch(live.urls[0]).headers["cache-control"] == "public, max-age=1"
    awaited = http.fetch(f"{live.urls[0]}?_HLS_msn={playlist.next[0]}&_HLS_part={playlist.next[1]}")
    assert awaited.headers["cache-control"] == f"public, max-age={6 * playlist.target}"
    for uri in (playlist.segments[0].uri, "init-1.mp4"):
        assert "immutable" in http.fetch(urllib.parse.urljoin(live.urls[0], uri)).headers["cache-control"]


def crowd(live: Shape, count: int) -> list[tuple[float, bytes]]:
    """So many players that wait for one part at once: when each has its playlist, and the playlist."""
    place = urllib.parse.urlsplit(live.urls[0])
    sockets: list[socket.socket] = []
    try:
        for _ in range(5):
            # The last part of the next segment: all are there before it. After a delay they ask for that of a later one.
            segment = live.playlist().next[0] + 1
            request = f"GET {place.path}?_HLS_msn={segment}&_HLS_part=4 HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
            for _ in range(count):
                sockets.append(socket.create_connection((place.hostname, place.port), timeout=20))
                sockets[-1].sendall(request)
            if live.playlist().next <= (segment, 4):
                break
            while sockets:
                sockets.pop().close()
        assert sockets, "they were never all there in time"
        found = []
        for connection in sockets:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(1 << 16)
            at = time.monotonic()
            head, _, body = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))[15:])
            while len(body) < length:
                body += connection.recv(1 << 16)
            found.append((at, body))
        return found
    finally:
        for connection in sockets:
            connection.close()


def test_many_players_wait_for_one_part_and_are_answered_alike(live):
    """C22: one thread for each would not suffice."""
    assert len({body for _, body in crowd(live, 300)}) == 1


# MARK: Ends


def waiter(url: str, answers: list) -> threading.Thread:
    def run() -> None:
        answers.append(http.fetch(url, timeout=30))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_the_end_answers_all_waiting_requests(start):
    weir = start("--no-record")
    publisher = publishers.ffmpeg(FILM, f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        (url,) = playlists(weir)
        playlist = llhls.parse(http.fetch(url).text, url)
        answers: list = []
        # Two segments ahead: this position is not reached before the end.
        threads = [waiter(f"{url}?_HLS_msn={playlist.next[0] + 1}&_HLS_part=12", answers) for _ in range(20)]
        time.sleep(0.2)
        publisher.interrupt()
        publisher.outcome(10)
        for thread in threads:
            thread.join(10)
        assert len(answers) == 20
        for answer in answers:
            if not answer.text.endswith("#EXT-X-ENDLIST\n"):
                assert llhls.parse(answer.text, url).last[0] > playlist.next[0]
        last = http.fetch(f"{url}?_HLS_msn=4000&_HLS_part=3")
        assert last.status == 200 and last.text.endswith("#EXT-X-ENDLIST\n"), "C17"
        newest = llhls.parse(last.text, url).segments[-1]
        pieces = [http.fetch(urllib.parse.urljoin(url, uri)).body for uri in [newest.uri, *(part.uri for part in newest.parts)]]
        assert pieces[0] == b"".join(pieces[1:]), "the parts of the newest segments stay in the list"
    finally:
        publisher.kill()


def test_a_hinted_part_is_empty_when_the_publisher_stays_away(start):
    """Shaka Player takes a second 503 for the end of the programme."""
    weir = start("--no-record", "--segment-duration", "1s")
    publisher = publishers.ffmpeg(FILM, f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        (url,) = playlists(weir)
    finally:
        publisher.kill()
    weir.wait_state(NAME, "reconnecting")
    early = llhls.parse(http.fetch(url).text, url)
    # It turns out to be a gap, which is listed after a second.
    gap = http.fetch(urllib.parse.urljoin(url, early.hint["URI"]), timeout=30)
    assert gap.status == 200 and gap.body[4:8] == b"styp" and b"moof" in gap.body, gap
    playlist = llhls.parse(http.fetch(url).text, url)
    assert "GAP=YES" in playlist.text and playlist.hint["URI"] != early.hint["URI"], playlist.text
    began = time.monotonic()
    answer = http.fetch(urllib.parse.urljoin(url, playlist.hint["URI"]), timeout=30)
    assert 3 * playlist.target - 0.5 <= time.monotonic() - began <= 3 * playlist.target + 5
    assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.body[4:8] == b"styp" and int.from_bytes(answer.body[:4], "big") == len(answer.body)


def test_a_publisher_that_stops_sending_makes_no_request_wait_for_ever(start):
    weir = start("--no-record", "--segment-duration", "1s")
    publisher = publishers.ffmpeg(FILM, f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        (url,) = playlists(weir)
        http.fetch(url).good()  # has a segment
        publisher.process.send_signal(19)

        def is_quiet() -> bool:
            before = weir.stream(NAME)["received"]["videoFrames"]
            time.sleep(1)  # real time: what was on its way is there
            return weir.stream(NAME)["received"]["videoFrames"] == before

        weir.wait(is_quiet, 10, "nothing more comes")
        playlist = llhls.parse(http.fetch(url).text, url)
        start_time = time.monotonic()
        answer = http.fetch(f"{url}?_HLS_msn={playlist.next[0]}&_HLS_part={playlist.next[1]}", timeout=30)
        waited = time.monotonic() - start_time
        assert answer.status == 503 and answer.headers["retry-after"] == "1"
        assert 3 * playlist.target - 0.5 <= waited <= 3 * playlist.target + 5, "C13"
        publisher.process.send_signal(18)
        weir.wait(lambda: http.fetch(f"{url}?_HLS_msn={playlist.next[0]}&_HLS_part={playlist.next[1]}").status == 200, 30, "the part")
    finally:
        publisher.process.send_signal(18)
        publisher.kill()


# MARK: Players that we did not write


@pytest.fixture(scope="module")
def strangers(shapes):
    """ffmpeg and GStreamer with each shape, all at once."""
    found = {}
    for name, live in shapes.items():
        found["ffmpeg", name] = tools.subprocess.Popen(
            [tools.FFMPEG, "-hide_banner", "-nostdin", "-v", "error", "-stats", "-i", live.index(), "-t", "4", "-f", "null", "-"],
            stdin=tools.subprocess.DEVNULL, stdout=tools.subprocess.PIPE, stderr=tools.subprocess.STDOUT, text=True)
        found["gstreamer", name] = tools.subprocess.Popen(
            ["gst-launch-1.0", "playbin3", f"uri={live.index()}", "video-sink=fakesink num-buffers=90",
             "audio-sink=fakesink num-buffers=90"],
            stdin=tools.subprocess.DEVNULL, stdout=tools.subprocess.PIPE, stderr=tools.subprocess.STDOUT, text=True)
    yield found
    for process in found.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("player, proof", [("ffmpeg", "frame="), ("gstreamer", "EOS")])
def test_players_that_we_did_not_write_play_the_same_addresses(live, strangers, player, proof):
    """GStreamer's is hlsdemux2."""
    process = strangers[player, live.name]
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 0, said
    assert proof in said


# MARK: What was followed meanwhile


def test_what_a_playlist_promises_is_delivered(live):
    for player, played in zip(live.players, live.played):
        played.result(60)
        # One state for each part.
        assert len(player.playlists) == 45 and len(player.parts) >= 40
        assert hls.unexplained(player.problems, live.weir.text(), live.name) == [], player.url


def test_delta_updates_leave_out_what_the_client_has(live):
    player, full = live.skipping.result(60)
    assert player.problems == []
    deltas = [playlist for _, playlist in player.playlists if playlist.skipped]
    assert len(deltas) >= 10
    shown = {s.sequence: (s.uri, s.duration) for s in full.segments if s.uri}
    compared = 0
    for delta in deltas:
        for segment in delta.segments:
            if segment.uri and segment.sequence in shown:
                assert shown[segment.sequence] == (segment.uri, segment.duration)
                compared += 1
        assert delta.sequence + delta.skipped == delta.segments[0].sequence
    assert compared >= 10


# MARK: By the clock


@pytest.mark.quiet
def test_parts_come_in_even_steps_and_to_all_at_once(start):
    """When playlists, chunks and the answers to a crowd arrive, and that the newest part is as old as its date says."""
    weir = start("--no-record", "--segment-duration", "1s")
    publisher = publishers.ffmpeg(FILM, f"{weir.rtmp}/live/interleaved-url", loop=-1)
    try:
        live = Shape(weir, "interleaved-url")
        _, stream = live.in_the_making(http.Stream)
        assert stream.status == 200
        chunks: list[float] = []
        while stream.answer.read1(1 << 20):
            chunks.append(time.monotonic())
        arrivals = [at for at, _ in crowd(live, 300)]
        player = llhls.Player(live.urls[0]).play(3)
    finally:
        publisher.kill()
    times = [at for at, _ in player.playlists[1:]]
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert len(gaps) >= 11 and gaps[len(gaps) // 2] == pytest.approx(PART, abs=0.05), "C06"
    assert gaps[-2] < 0.6 and gaps[-1] < 1.2, gaps
    assert 0.5 < chunks[-1] - chunks[0] < 1.2, "a chunk comes with its part"
    assert arrivals[-1] - arrivals[0] < 0.5, "C22"
    clock = time.time() - time.monotonic()
    ages = sorted(age for at, playlist in player.playlists[1:] if (age := llhls.age(playlist, at + clock)) is not None)
    assert len(ages) >= 8 and -0.002 <= ages[0] and ages[len(ages) // 4] <= 0.060, ages
