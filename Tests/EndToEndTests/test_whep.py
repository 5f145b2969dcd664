"""Viewers by WebRTC (WHEP): pages in Chromium and Firefox, aiortc, the watch page, and clients that may not or cannot."""

import asyncio
import contextlib
import json
import re
import socket
import statistics
import threading
import time
from collections.abc import Sequence

import browsers
import pytest
import watching

from harness import offers, publishers, relay
from harness.programs import free_port
from harness.traps import Trap
from test_whip import REPAIRS, patch

#: What a page does to watch: an offer, the answer of WHEP, and both media in one element. `only` leaves some candidates of the
#: answer: a protocol's, or an address's. `candidates`: lines that each section of the offer has besides.
WATCH = """(async (path, only, candidates) => {
  const peer = new RTCPeerConnection();
  const media = new MediaStream();
  peer.ontrack = ({ track }) => media.addTrack(track);
  for (const kind of ['video', 'audio']) peer.addTransceiver(kind, { direction: 'recvonly' });
  await peer.setLocalDescription();
  const offer = peer.localDescription.sdp.replace(/a=mid:.*\\r\\n/g, (line) => [line, ...candidates.map((one) => one + '\\r\\n')].join(''));
  const response = await fetch(path, { method: 'POST', body: offer, headers: { 'Content-Type': 'application/sdp' } });
  const [leftOut, replaced] = ['Weir-Left-Out', 'Weir-Replaced'].map((name) => response.headers.get(name));
  if (response.status !== 201) return { status: response.status, problem: await response.json() };
  let sdp = await response.text();
  if (only) sdp = sdp.split('\\r\\n').filter((line) => !/^a=candidate/.test(line) || line.includes(` ${only} `)).join('\\r\\n');
  await peer.setRemoteDescription({ type: 'answer', sdp });
  const video = document.body.appendChild(document.createElement('video'));
  Object.assign(video, { srcObject: media, muted: true });
  const plays = await Promise.race([video.play().then(() => true), new Promise((done) => setTimeout(done, 30_000))]);
  if (!plays) {
    const stats = [...(await peer.getStats()).values()].filter(({ type }) => /inbound-rtp|candidate-pair|transport/.test(type));
    return { status: `nothing plays: ${peer.connectionState}, ${media.getTracks().map(({ kind, muted }) => `${kind} ${muted}`)}`, stats };
  }
  video.muted = false;
  Object.assign(window, { peer, video, session: new URL(response.headers.get('Location'), response.url).href });
  return { status: response.status, session: window.session, etag: response.headers.get('ETag'), leftOut, replaced, sdp, offer };
})"""

#: What its peer connection has received.
RECEIVED = """(async () => {
  const result = { state: window.peer.connectionState, width: window.video.videoWidth, height: window.video.videoHeight };
  for (const one of (await window.peer.getStats()).values()) {
    // Frames that are decoded, and those that a busy browser drops instead, being late.
    if (one.type === 'inbound-rtp') result[one.kind] = { ...one, framesTaken: one.framesDecoded + (one.framesDropped ?? 0) };
    if (one.type === 'candidate-pair' && one.nominated) result.pair = one;
  }
  return result;
})()"""

OFFER = offers.offer("recvonly")

#: Films that are published over and over: name of the stream, film, what is coded anew.
FILMS = {
    "plain": ("straight", ("-c:a", "libopus")), "aac": ("straight", ()), "reordered": ("loop", ("-c:a", "libopus")),
    "large": ("megabyte", ("-c:a", "libopus")),
    "vp9": ("vp9-opus", ()), "av1": ("av1-opus", ()), "hevc": ("hevc", ("-c:a", "libopus")),
}


@contextlib.contextmanager
def published(weir, *names: str):
    """Publishes films until the end, and waits until they can be watched."""
    running = [
        publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", loop=-1, version="new", options=options)
        for name, (film, options) in ((name, FILMS[name]) for name in names)]
    try:
        for name in names:
            weir.wait_state(name, "live", seconds=40)
        yield
    finally:
        for publisher in running:
            publisher.kill()


@pytest.fixture(scope="module")
def weir(start_shared):
    weir = start_shared(
        "--webrtc", ":0", "--no-record", "--webrtc-ice-server", "stun:stun.example.net", listeners=("http", "rtmp", "webrtc"))
    with published(weir, "plain"):
        yield weir


@pytest.fixture(scope="module")
def more(weir):
    """The same server with more streams, which all begin at once."""
    with published(weir, "vp9", "av1", "large", "reordered"):
        yield weir


def ask(weir, method: str, path: str, body: str = "", **fields):
    """Status, fields and text of a response."""
    answer = weir.get(
        path, method=method, headers={name.replace("_", "-"): value for name, value in fields.items()},
        body=body.encode() or None)
    return answer.status, answer.headers, answer.text


def offer(weir, name: str, sdp: str = OFFER, **fields):
    return ask(weir, "POST", f"/whep/{name}", sdp, Content_Type="application/sdp", **fields)


def replaced(weir, name: str) -> str:
    """What an offer is told of the video that it would get in place of the stream's own. The session is ended at once."""
    _, fields, _ = offer(weir, name)
    if "location" in fields:
        ask(weir, "DELETE", fields["location"])
    return str(fields.get("weir-replaced"))


def sessions(weir) -> int:
    """Viewers of "plain" by WebRTC, as /metrics counts them: of a moment ago, as it is kept for a while."""
    lines = [line for line in weir.get("/metrics").text.split("\n") if line.startswith("weir_viewers{")]
    return sum(int(line.split()[-1]) for line in lines if 'protocol="webrtc"' in line and 'stream="plain"' in line)


def watch(browser, weir, name: str, only: str = "", candidates: Sequence[str] = ()) -> dict:
    browser.open(weir.web + "/time")
    if browser.name == "chromium":
        # Somebody was there: from now on the page may be heard.
        browser.call("Runtime.evaluate", expression="1", userGesture=True)
    return browser.evaluate(f"{WATCH}({json.dumps(f'/whep/{name}')}, {json.dumps(only)}, {json.dumps(candidates)})")


#: Seconds for which a browser may be behind. What comes late counts; what is lost does not come.
PATIENCE = 10


def lacks(first: dict, last: dict, kind: str, figure: str, rate: float) -> float:
    """How much of a figure is missing between two reports, in seconds of media."""
    before, after = first[kind], last[kind]
    return (after["timestamp"] - before["timestamp"]) / 1000 - (after[figure] - before[figure]) / rate


def keeps_up(browser, size: tuple[int, int] | None, seconds: float = 4, rate: float = 30) -> tuple[dict, dict]:
    """Frames are decoded as they come, in full size, and so is the audio, which is not silent. Of the time that passes by the browser's
    own clock, a tenth of `seconds` may be missing in either, however long it lasts; frames that a busy browser drops instead of showing
    them too late have come. Returns the first report and the last one."""
    browser.wait("window.video.videoWidth > 0 && window.video.currentTime > 1")
    first = last = browser.evaluate(RECEIVED)

    def missing() -> list[float]:
        return [lacks(first, last, "video", "framesTaken", rate), lacks(first, last, "audio", "totalSamplesReceived", 48000)]

    def passed() -> float:
        return (last["video"]["timestamp"] - first["video"]["timestamp"]) / 1000

    end = time.monotonic() + seconds + PATIENCE
    while (passed() < seconds or max(missing()) > 0.1 * seconds) and time.monotonic() < end:
        time.sleep(0.2)
        last = browser.evaluate(RECEIVED)
    assert size is None or (last["width"], last["height"]) == size, last
    assert passed() >= seconds and max(missing()) <= 0.1 * seconds, (passed(), missing(), first, last)
    if "totalAudioEnergy" in last["audio"]:
        assert last["audio"]["totalAudioEnergy"] > first["audio"]["totalAudioEnergy"], last["audio"]
    return first, last


def judge(browser, size: tuple[int, int] | None, seconds: float = 4) -> dict:
    """It keeps up, and no packet of the video is lost for good. Returns the last report."""
    _, last = keeps_up(browser, size, seconds)
    # A packet that comes again counts as lost until it has come.
    browser.wait(f"{RECEIVED}.then((now) => (now.video.packetsLost ?? 0) <= 0)", PATIENCE)
    return last


def leave(browser) -> int:
    status = browser.evaluate("fetch(window.session, { method: 'DELETE' }).then((r) => r.status)")
    browser.evaluate("window.peer.close()")
    return status


class Left:
    """Two viewers that are left to themselves: one never connects, of the other one the network becomes silent while it plays. The
    server ends both by itself, while other tests run."""

    def __init__(self, weir):
        self.weir, self.begun, self.ended = weir, {}, {}  # when each was left, and when it was seen that the server had ended it
        self.sessions: dict[str, str] = {}
        self.error: BaseException | None = None
        self.plays = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except BaseException as error:  # noqa: BLE001  (told by `wait`)
            self.error = error
        finally:
            self.plays.set()

    async def _watch(self) -> None:
        aiortc = pytest.importorskip("aiortc")
        peer, shown = aiortc.RTCPeerConnection(), 0

        async def count(track) -> None:
            nonlocal shown
            with contextlib.suppress(aiortc.mediastreams.MediaStreamError):
                while True:
                    await track.recv()
                    shown += 1

        counting = []
        peer.on("track", lambda track: counting.append(asyncio.ensure_future(count(track))))
        try:
            peer.addTransceiver("video", direction="recvonly")
            await peer.setLocalDescription(await peer.createOffer())
            status, fields, text = await asyncio.to_thread(offer, self.weir, "plain", peer.localDescription.sdp)
            assert status == 201, text
            await peer.setRemoteDescription(aiortc.RTCSessionDescription(sdp=text, type="answer"))
            while shown < 10:
                await asyncio.sleep(0.05)
            # Not sooner: it is ended after 15 s, and both are to be there at once.
            _, other, _ = await asyncio.to_thread(offer, self.weir, "plain")
            self._leave("unconnected", other)
            self.weir.network.hole(60)
            self._leave("silent", fields)
            self.plays.set()
            while len(self.ended) < 2 and not self._over.is_set():
                for name, path in self.sessions.items():
                    if name not in self.ended and (await asyncio.to_thread(ask, self.weir, "GET", path))[0] == 410:
                        self.ended[name] = time.monotonic()
                await asyncio.sleep(0.2)
        finally:
            await peer.close()
            await asyncio.gather(*counting)

    def _leave(self, name: str, fields) -> None:
        self.begun[name], self.sessions[name] = time.monotonic(), fields["location"]

    def wait(self) -> None:
        """Until both are ended."""
        self.weir.wait(lambda: len(self.ended) == 2 or self.error, 60, "the end of both viewers")
        self._thread.join(20)
        if self.error:
            raise self.error

    def lasted(self, name: str) -> float:
        return self.ended[name] - self.begun[name]

    def stop(self) -> None:
        self._over.set()
        self._thread.join(20)


@pytest.fixture(scope="module")
def left(start_shared):
    port = free_port()
    network = relay.Relay(port)
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}", "--no-record",
        listeners=("http", "rtmp", "webrtc"))
    weir.network = network
    with published(weir, "plain"):
        made = Left(weir)
        yield made
        made.stop()
    network.stop()


def test_viewers_that_will_be_left_are_viewers(left):
    """They are left at the beginning of this file, and are judged at its end: meanwhile the server may forget them."""
    assert left.plays.wait(60)
    assert left.error is None, left.error
    left.weir.wait(lambda: sessions(left.weir) == 2, 10, "two viewers by WebRTC")


@pytest.mark.parametrize("only", ["", "tcp"])
def test_chromium_plays_what_is_published_by_rtmp(weir, chromium, only):
    """H.264 and Opus by UDP, and by TCP alone. It is a viewer as others are, until it leaves."""
    answer = watch(chromium, weir, "plain", only)
    assert answer["status"] == 201 and answer["leftOut"] is None, answer
    assert REPAIRS.search(answer["offer"]) and not REPAIRS.search(answer["sdp"]), answer
    # Of the video alone, by the number that it offered.
    numbers = [re.findall(r"a=extmap:(\d+) \S+/abs-send-time", answer[side]) for side in ("offer", "sdp")]
    assert numbers[0] and numbers[1] == numbers[0][:1], numbers
    weir.wait(lambda: sessions(weir) == 1, 20, "a viewer by WebRTC")
    received = judge(chromium, (320, 180))
    # One clock for both: what is shown together was sent together. A browser that was held up puts them together again.
    if all(received[kind].get("estimatedPlayoutTimestamp") for kind in ("video", "audio")):
        chromium.wait(f"{RECEIVED}.then(({{ video, audio }}) => Math.abs(video.estimatedPlayoutTimestamp - audio.estimatedPlayoutTimestamp) < 150)")
    assert leave(chromium) == 200
    weir.wait(lambda: sessions(weir) == 0, 20, "no viewer by WebRTC")


@pytest.mark.quiet
def test_chromium_plays_without_a_freeze(weir, chromium):
    watch(chromium, weir, "plain")
    received = judge(chromium, (320, 180))
    assert received["video"]["freezeCount"] == 0, received["video"]
    assert leave(chromium) == 200


@pytest.mark.parametrize("name", ["vp9", "av1"])
def test_chromium_plays_other_codecs(more, chromium, name):
    answer = watch(chromium, more, name)
    assert answer["status"] == 201 and f"{name.upper()}/90000" in answer["sdp"], answer
    judge(chromium, (320, 180))
    leave(chromium)


def test_more_than_a_browser_begins_with_is_not_held_back(more, chromium):
    """4 Mbit/s, of which the viewer reports what it could take."""
    watch(chromium, more, "large")
    received = judge(chromium, (640, 360))
    assert received["video"]["pliCount"] == 0, received["video"]
    leave(chromium)


@pytest.fixture
def own(start):
    """A server of the test's own: no other one has made it start a worker."""
    return start("--webrtc", ":0", "--no-record", listeners=("http", "rtmp", "webrtc"))


def test_aac_becomes_opus_while_somebody_watches(own, chromium):
    with published(own, "aac"):
        assert not own.children()
        assert watch(chromium, own, "aac")["leftOut"] is None
        judge(chromium, (320, 180))
        assert len(own.children()) == 1
        leave(chromium)


@pytest.fixture(scope="module")
def firefox():
    with browsers.Firefox(**{
        "media.peerconnection.ice.loopback": True, "media.autoplay.default": 0, "media.autoplay.blocking_policy": 0,
    }) as firefox:
        yield firefox


def test_firefox_plays_vp9(more, firefox):
    answer = watch(firefox, more, "vp9")
    assert answer["status"] == 201, answer
    judge(firefox, (320, 180))
    assert leave(firefox) == 200


@pytest.mark.parametrize(("name", "code"), [("reordered", "b-frames"), ("hevc", "not-offered")])
def test_video_that_does_not_fit_is_encoded_anew_while_somebody_watches(own, chromium, name, code):
    """B-frames, and a codec that the viewer does not offer. The answer tells of it."""
    with published(own, name):
        if code == "b-frames":
            own.wait(lambda: code in replaced(own, name), 30, "B-frames that are noticed")
        else:
            assert not own.children()
        answer = watch(chromium, own, name)
        assert answer["status"] == 201 and answer["leftOut"] is None, answer
        assert answer["replaced"].startswith(f"video;rung=180p;code={code};"), answer
        judge(chromium, (320, 180))
        assert len(own.children()) == 1
        leave(chromium)


#: A second viewer of a page, of the audio alone. The first one stays as it is.
LISTEN = """(async (path) => {
  const peer = new RTCPeerConnection();
  peer.addTransceiver('audio', { direction: 'recvonly' });
  await peer.setLocalDescription();
  const response = await fetch(path, {
    method: 'POST', body: peer.localDescription.sdp, headers: { 'Content-Type': 'application/sdp' } });
  await peer.setRemoteDescription({ type: 'answer', sdp: await response.text() });
  window.listener = peer;
  return new URL(response.headers.get('Location'), response.url).href;
})"""

#: How much the second viewer has received.
HEARD = """(async () => {
  const all = [...(await window.listener.getStats()).values()];
  return all.find((one) => one.type === 'inbound-rtp')?.packetsReceived ?? 0;
})()"""


#: Keeps what a page watches, while it begins to watch once more; and goes back to that.
KEEP, BACK = "void (window.kept = { peer, video, session })", "void Object.assign(window, kept)"


@pytest.fixture
def encoded(own):
    """Three streams of which nothing is sent as it is: a codec, audio, and B-frames, which have been noticed."""
    with published(own, "hevc", "aac", "reordered"):
        own.wait(lambda: "b-frames" in replaced(own, "reordered"), 30, "B-frames that are noticed")
        yield own


@pytest.mark.long
def test_workers_end_soon_after_their_last_viewer_though_others_go_on(encoded, chromium):
    """Ten seconds later. Who hears the audio alone does not keep the encoder that another viewer has started. A worker that is used for
    longer is kept."""
    watch(chromium, encoded, "hevc")
    chromium.wait("window.video.videoWidth > 0 && window.video.currentTime > 0.5")
    used = set(encoded.children())
    chromium.evaluate(KEEP)
    chromium.evaluate("void (window.others = [])")
    *statuses, listening = chromium.evaluate(f"""Promise.all([
      ...['/whep/aac', '/whep/reordered'].map((path) => {WATCH}(path, '', []).then(({{ status }}) => {{
        others.push({{ peer, video, session }});
        return status;
      }})), {LISTEN}('/whep/reordered')])""")
    assert statuses == [201, 201]
    chromium.wait("others.every(({ video }) => video.videoWidth > 0 && video.currentTime > 0.5)")
    chromium.wait(f"{HEARD}.then((packets) => packets > 20)")
    assert len(encoded.children()) == 3, encoded.children()
    chromium.evaluate("""Promise.all(others.map(async ({ peer, session }) => {
      await fetch(session, { method: 'DELETE' });
      peer.close();
    }))""")
    encoded.wait(lambda: len(encoded.children()) == 1, 40, "the end of two workers")
    assert set(encoded.children()) <= used, "the one that is used is kept"
    before = chromium.evaluate(HEARD)
    chromium.wait(f"{HEARD}.then((packets) => packets > {before + 20})")
    assert chromium.evaluate(f"fetch({json.dumps(listening)}, {{ method: 'DELETE' }}).then((r) => r.status)") == 200
    chromium.evaluate("window.listener.close()")
    chromium.evaluate(BACK)
    before = chromium.evaluate(RECEIVED)["video"]["framesDecoded"]
    chromium.wait(f"{RECEIVED}.then(({{ video }}) => video.framesDecoded > {before + 15})")
    assert leave(chromium) == 200


def play_by_webrtc(chromium, weir, name: str) -> None:
    """Opens the watch page with the lowest delay, and sees two seconds of it, by WebRTC."""
    chromium.open(f"{weir.web}/watch/{name}?player=webrtc")
    chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
    frames = "document.querySelector('#video').getVideoPlaybackQuality().totalVideoFrames"
    before = chromium.evaluate(frames)
    chromium.wait(f"{frames} > {before + 60}")
    assert chromium.evaluate("document.querySelector('#fallback').hidden")


def test_the_watch_page_plays_b_frames_with_the_lowest_delay(more, chromium):
    play_by_webrtc(chromium, more, "reordered")
    chromium.open("about:blank")


def test_where_nothing_may_be_encoded_b_frames_are_refused_with_the_reason(chromium, start_shared):
    """The audio alone is sent where an offer has both."""
    weir = start_shared("--webrtc", ":0", "--no-record", "--webrtc-encoding", "off", listeners=("http", "rtmp", "webrtc"))
    with published(weir, "reordered"):
        weir.wait(lambda: "b-frames" in str(offer(weir, "reordered")[1].get("weir-left-out")), 30, "B-frames that are noticed")
        answer = watch(chromium, weir, "reordered")
        assert answer["status"] == 201 and answer["leftOut"].startswith("video;code=b-frames;"), answer
        assert "a=inactive" in answer["sdp"] and not weir.children()
        video = OFFER.replace("BUNDLE 0 1", "BUNDLE 1").replace("m=audio 9", "m=audio 0")
        status, _, text = offer(weir, "reordered", video)
        assert (status, json.loads(text)["code"]) == (422, "nothing-fits") and "B-frames" in text, text
        leave(chromium)
        # The watch page plays it in another way, and says so.
        chromium.open(f"{weir.web}/watch/reordered?player=webrtc")
        chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
        chromium.wait("/B-frames/.test(document.querySelector('#fallback').textContent)")
        chromium.open("about:blank")


@pytest.fixture(scope="module")
def slow(start_shared):
    """A server with ladders whose media goes through a relay, which may be slow."""
    port = free_port()
    network = relay.Relay(port)
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}", "--no-record",
        "--ladder", "reordered=120p@200k,90p@100k", "--ladder", "large=180p@300k", listeners=("http", "rtmp", "webrtc"))
    weir.network = network
    yield weir
    network.stop()


def test_of_a_ladder_the_largest_rung_takes_the_place_of_b_frames(slow, chromium):
    with published(slow, "reordered"):
        slow.wait(lambda: "rung=120p" in replaced(slow, "reordered"), 30, "B-frames that are noticed")
        answer = watch(chromium, slow, "reordered")
        assert answer["status"] == 201 and answer["replaced"].startswith("video;rung=120p;code=b-frames;"), answer
        # Nothing is made but the ladder.
        assert len(slow.children()) == 1
        chromium.wait("window.video.videoHeight === 120")
        # A smaller one may follow: where the machine is busy, the network seems to be narrow.
        judge(chromium, None)
        leave(chromium)


@pytest.mark.parametrize("freezes", [pytest.param(True, marks=pytest.mark.long), pytest.param(False, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_a_viewer_whose_network_is_slow_gets_a_smaller_video(slow, chromium, freezes):
    """4 Mbit/s and 300 kbit/s through 1 Mbit/s. The session goes on, and the picture is shown at its rate. Where nothing else holds the
    browser up, it never stops for long."""
    with published(slow, "large"):
        slow.wait(lambda: slow.stream("large")["ladder"]["renditions"], 20, "a rung")
        assert watch(chromium, slow, "large")["replaced"] is None
        chromium.wait("window.video.videoHeight === 360 && window.video.currentTime > 2")
        slow.network.back = relay.Path(rate=125_000)
        try:
            chromium.wait("window.video.videoHeight === 180", 40)
            time.sleep(1)  # real time: what waits in the narrow network comes first
            first, last = keeps_up(chromium, (320, 180))
        finally:
            slow.network.back = relay.Path()
        assert last["state"] == "connected", last
        assert freezes or last["video"]["freezeCount"] == first["video"]["freezeCount"], last["video"]
        leave(chromium)


@pytest.fixture
def two_ways(start_shared):
    """A server whose media goes to viewers by two ways, the one that they choose: straight, and through a relay."""
    port = free_port()
    network = relay.Relay(port)
    try:
        weir = start_shared(
            "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}", "--webrtc-address", f"127.0.0.1:{port}",
            "--no-record", listeners=("http", "rtmp", "webrtc"))
        weir.network, weir.port = network, port
        with published(weir, "large"):
            yield weir
    finally:
        network.stop()


@pytest.mark.long
def test_a_viewer_that_cannot_keep_up_is_ended_with_the_reason_and_others_go_on(chromium, two_ways):
    """4 Mbit/s through half a megabit, and nothing smaller to send. Another viewer, by a way of its own, loses nothing."""
    network = two_ways.network
    answer = watch(chromium, two_ways, "large", f"127.0.0.1 {two_ways.port}")
    assert answer["status"] == 201, answer
    chromium.evaluate(KEEP)
    arguments = json.dumps(["/whep/large", f"127.0.0.1 {network.port}", []])
    assert chromium.evaluate(f"{WATCH}(...{arguments})")["status"] == 201
    chromium.wait("[kept.video, window.video].every((one) => one.videoHeight === 360 && one.currentTime > 1)")
    assert network.passed > 100, network.passed
    network.back = relay.Path(rate=60_000)
    chromium.evaluate("void (window.narrow = { peer, session })")
    chromium.evaluate(BACK)
    judge(chromium, (640, 360), 2)
    ask_session = "fetch(window.narrow.session).then(async (response) => [response.status, await response.text()])"
    status, text = chromium.wait(f"{ask_session}.then((told) => told[0] === 410 && told)", 60)
    assert json.loads(text)["detail"] == "its connection is too slow for the stream", text
    chromium.evaluate("window.narrow.peer.close()")
    judge(chromium, (640, 360), 1)
    assert leave(chromium) == 200


def test_the_watch_page_plays_with_the_lowest_delay(weir, chromium):
    play_by_webrtc(chromium, weir, "plain")
    chromium.evaluate("document.querySelector('#info').click()")
    chromium.wait("/WebRTC, UDP/.test(document.querySelector('#figures').textContent)")
    chromium.wait("!document.querySelector('#choose-webrtc').hidden")
    weir.wait(lambda: sessions(weir) == 1, 20, "a viewer by WebRTC")
    # Leaving the page ends the session.
    chromium.open("about:blank")
    weir.wait(lambda: sessions(weir) == 0, 20, "no viewer by WebRTC")


def test_the_lowest_delay_is_chosen_in_the_menu_of_the_watch_page(weir, chromium):
    """The page plays in its usual way until then."""
    chromium.open(f"{weir.web}/watch/plain")
    chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
    chromium.click("document.querySelector('#info')")
    choice = "document.querySelector('#choose-webrtc')"
    chromium.wait(f"{choice}.checkVisibility()")
    assert "lowest delay" in chromium.evaluate(f"{choice}.innerText")
    figures = "document.querySelector('#figures')?.innerText ?? ''"
    chromium.wait(f"/\\d/.test({figures})")
    assert "WebRTC" not in chromium.evaluate(figures) and sessions(weir) == 0
    chromium.click(choice)
    chromium.wait("location.search === '?player=webrtc' && document.querySelector('#stage')?.dataset.phase === 'playing'")
    chromium.evaluate("document.querySelector('#details').hidden && document.querySelector('#info').click()")
    chromium.wait(f"/WebRTC, UDP/.test({figures})")
    assert chromium.evaluate("document.querySelector('#fallback').hidden")
    weir.wait(lambda: sessions(weir) == 1, 20, "a viewer by WebRTC")
    chromium.open("about:blank")
    weir.wait(lambda: sessions(weir) == 0, 20, "no viewer by WebRTC")


def test_the_watch_page_asks_the_ice_servers_that_it_is_told(chromium, start_shared):
    """They are known before the browser looks for its addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(10)
        other = start_shared(
            "--webrtc", ":0", "--no-record", "--webrtc-ice-server", f"stun:127.0.0.1:{stun.getsockname()[1]}",
            listeners=("http", "rtmp", "webrtc"))
        with published(other, "plain"):
            play_by_webrtc(chromium, other, "plain")
            # A Binding request of STUN (RFC 8489 §5).
            asked = stun.recv(1500)
            assert asked[:2] == b"\x00\x01" and asked[4:8] == b"\x21\x12\xa4\x42", asked
            chromium.open("about:blank")


def test_the_watch_page_says_why_the_server_ended_it(chromium, start_shared, canary):
    """It asks the session's address, and plays in another way after the second time."""
    other = start_shared("--webrtc", ":0", "--no-record", "--admin-token", f"{canary}-admin", listeners=("http", "rtmp", "webrtc"))
    other.secrets += [canary]
    admin = {"Authorization": f"Bearer {canary}-admin"}

    def viewers() -> list[str]:
        listed = json.loads(other.get("/api/v1/sessions", headers=admin).good().body)["sessions"]
        return [one["id"] for one in listed if (one["kind"], one["protocol"]) == ("viewer", "webrtc")]

    with published(other, "plain"), chromium.answering("*/whep/plain/*", lambda _: (410, '{"detail": "It is enough."}')):
        play_by_webrtc(chromium, other, "plain")
        fallback = "document.querySelector('#fallback').innerText"
        ended = set()
        for _ in range(80):
            if chromium.evaluate(fallback):
                break
            for session in set(viewers()) - ended:
                other.get(f"/api/v1/sessions/{session}", method="DELETE", headers=admin).good()
                ended.add(session)
            time.sleep(0.5)
        assert "the server has ended its connection (It is enough)" in chromium.evaluate(fallback)
        assert 2 <= len(ended) <= 3, ended
        chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
        chromium.open("about:blank")


@pytest.mark.quiet
def test_glass_to_glass_is_within_half_a_second(chromium, start_shared, record_property):
    """The burned-in time of the test pattern, whose AAC becomes Opus."""
    demo = start_shared("--webrtc", ":0", "--no-record", "--test-pattern", "demo", listeners=("http", "rtmp", "webrtc"))
    watching.watch(chromium, demo, "demo", "?player=webrtc")
    chromium.wait("document.querySelector('#video').currentTime > 2")
    delays = chromium.evaluate(watching.GLASS_TO_GLASS)
    assert len(delays) > 10, f"the burned-in time could be read {len(delays)} times"
    median = statistics.median(delays)
    record_property("figure", f"glass to glass, Chromium, webrtc: median {median:.2f} s")
    assert chromium.evaluate("document.querySelector('#fallback').hidden")
    assert median <= 0.5, median
    chromium.open("about:blank")


def test_a_page_that_no_media_reaches_plays_in_another_way(weir, chromium, start_shared):
    """The server's port for WebRTC is not the one that it names."""
    other = start_shared("--webrtc", ":0", "--no-record", "--webrtc-address", "127.0.0.1:9", listeners=("http", "rtmp", "webrtc"))
    with published(other, "plain"):
        chromium.open(f"{other.web}/watch/plain?player=webrtc")
        chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
        chromium.wait("/firewall/.test(document.querySelector('#fallback').textContent)")
        chromium.open("about:blank")


def test_aiortc_plays_with_losses(weir, monkeypatch):
    """An independent client: each tenth packet of video does not reach it at first, and it asks for it again."""
    aiortc = pytest.importorskip("aiortc")
    import aioice  # noqa: PLC0415

    dropped, repeated = set(), set()
    times = {"audio": [], "video": []}  # of what was decoded, in seconds of media
    video_type = None
    receive = aioice.Connection.recv

    async def lossy(self):
        while True:
            data = await receive(self)
            number = int.from_bytes(data[2:4], "big")
            if data[0] >> 6 == 2 and data[1] & 0x7F == video_type:
                if number % 10 == 0 and number not in dropped:
                    dropped.add(number)
                    continue
                if number in dropped:
                    repeated.add(number)
            return data

    async def count(track):
        with contextlib.suppress(aiortc.mediastreams.MediaStreamError):
            while True:
                frame = await track.recv()
                times[track.kind].append(frame.pts * frame.time_base)

    async def run():
        nonlocal video_type
        peer = aiortc.RTCPeerConnection()
        counting = []
        peer.on("track", lambda track: counting.append(asyncio.ensure_future(count(track))))
        try:
            for kind in ("audio", "video"):
                peer.addTransceiver(kind, direction="recvonly")
            await peer.setLocalDescription(await peer.createOffer())
            status, fields, text = offer(weir, "plain", peer.localDescription.sdp)
            assert status == 201, text
            video_type = int(re.search(r"m=video \d+ \S+ (\d+)", text)[1])
            await peer.setRemoteDescription(aiortc.RTCSessionDescription(sdp=text, type="answer"))
            while min(map(len, times.values())) < 150 or len(dropped) < 20:
                await asyncio.sleep(0.1)
            assert ask(weir, "DELETE", fields["location"])[0] == 200
        finally:
            await peer.close()
            await asyncio.gather(*counting)

    monkeypatch.setattr(aioice.Connection, "recv", lossy)
    asyncio.run(asyncio.wait_for(run(), 60))
    assert len(repeated) >= 0.8 * len(dropped), (len(dropped), len(repeated))
    for kind, rate in (("audio", 50), ("video", 30)):
        found = times[kind]
        assert len(found) >= 0.9 * rate * (found[-1] - found[0]), (kind, len(found), float(found[-1] - found[0]))


def test_however_often_viewers_ask_the_publisher_is_asked_for_a_key_frame_twice_a_second(start_shared, record_property):
    """aiortc publishes and watches twice. Each viewer asks fifty times a second."""
    aiortc = pytest.importorskip("aiortc")
    weir = start_shared("--webrtc", "127.0.0.1:0", "--no-record", listeners=("http", "rtmp", "webrtc"))
    seconds = 5
    asked: list[float] = []
    shown = [0, 0]

    async def connect(peer, path: str) -> tuple[str, str]:
        """The answer, and the address of the session."""
        await peer.setLocalDescription(await peer.createOffer())
        status, fields, text = await asyncio.to_thread(
            ask, weir, "POST", path, peer.localDescription.sdp, Content_Type="application/sdp")
        assert status == 201, text
        await peer.setRemoteDescription(aiortc.RTCSessionDescription(sdp=text, type="answer"))
        return text, fields["location"]

    async def watch_it(place: int, track) -> None:
        with contextlib.suppress(aiortc.mediastreams.MediaStreamError):
            while True:
                await track.recv()
                shown[place] += 1

    async def complain(receiver, source: int, until: float) -> int:
        count = 0
        while time.monotonic() < until or count < 20 * seconds:
            await receiver._send_rtcp_pli(source)
            count += 1
            await asyncio.sleep(0.02)
        return count

    class Pictures(aiortc.VideoStreamTrack):
        count = 0

        async def recv(self):
            self.count += 1
            return await super().recv()

    pictures = Pictures()

    async def run() -> tuple[list[int], float, int]:
        publisher, viewers = aiortc.RTCPeerConnection(), [aiortc.RTCPeerConnection() for _ in shown]
        watching = []
        try:
            sender = publisher.addTransceiver(pictures, direction="sendonly").sender
            encode = sender._send_keyframe

            def note() -> None:
                asked.append(time.monotonic())
                encode()

            sender._send_keyframe = note
            await connect(publisher, "/whip/asked")
            await asyncio.to_thread(weir.wait_state, "asked", "live", seconds=20)
            sources, receivers = [], []
            for place, viewer in enumerate(viewers):
                viewer.on("track", lambda track, place=place: watching.append(asyncio.ensure_future(watch_it(place, track))))
                receivers.append(viewer.addTransceiver("video", direction="recvonly").receiver)
                text, _ = await connect(viewer, "/whep/asked")
                sources.append(int(re.search(r"a=ssrc:(\d+)", text)[1]))
            while min(shown) < 10:
                await asyncio.sleep(0.05)
            shown[:] = [0, 0]
            asked.clear()
            begun, before = time.monotonic(), pictures.count
            requests = await asyncio.gather(*(complain(*pair, begun + seconds) for pair in zip(receivers, sources)))
            return requests, time.monotonic() - begun, pictures.count - before
        finally:
            for peer in (publisher, *viewers):
                await peer.close()
            await asyncio.gather(*watching)

    requests, spent, sent = asyncio.run(asyncio.wait_for(run(), 60))
    record_property("figure", f"WebRTC, requests for key frames within {spent:.1f} s: {sum(requests)} of viewers, {len(asked)} to the publisher")
    # In what distances they are sent, StreamRelayTests judges.
    assert spent - 1 <= len(asked) <= 2 * spent + 1, (len(asked), spent)
    assert sum(requests) >= 10 * len(asked), (requests, len(asked))
    assert min(shown) >= 0.8 * sent - 10, (shown, sent)


def test_candidates_of_viewers_are_never_contacted(weir, chromium):
    """Those of an offer and of a change, by UDP and by TCP: the server answers where it is asked, and sends media nowhere else."""
    with Trap("127.0.5.1") as first, Trap("127.0.5.2") as second:
        answer = watch(chromium, weir, "plain", candidates=first.candidates)
        assert answer["status"] == 201, answer
        assert all(answer["offer"].count(f"{line}\r\n") == 2 for line in first.candidates), answer["offer"]
        judge(chromium, (320, 180), 2)
        status, text = patch(weir, answer, second.candidates)
        assert status == 204, text
        judge(chromium, (320, 180), 2)
        assert leave(chromium) == 200
        assert first.caught() == second.caught() == []
        assert first.works() and second.works()


def test_media_goes_only_to_addresses_that_answer(weir):
    """Who knows a session's password asks for its media in the name of other addresses."""
    aiortc = pytest.importorskip("aiortc")
    from aioice import stun  # noqa: PLC0415

    def claim(host: str, target, ours, theirs, answers: bool) -> tuple[int, int, int]:
        """Bytes that went and came, and packets of media among them."""
        sent = received = media = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as claimant:
            claimant.bind((host, 0))
            claimant.settimeout(0.05)
            begun = time.monotonic()
            for number in range(30):
                request = stun.Message(stun.Method.BINDING, stun.Class.REQUEST, attributes={
                    "USERNAME": f"{theirs[0]}:{ours[0]}", "PRIORITY": 1, "ICE-CONTROLLING": 1, "USE-CANDIDATE": None})
                request.add_message_integrity(theirs[1].encode())
                sent += claimant.sendto(bytes(request), target)
                while time.monotonic() < begun + 0.1 * (number + 1):
                    try:
                        data = claimant.recv(2048)
                    except TimeoutError:
                        continue
                    received += len(data)
                    media += data[0] >> 6 == 2
                    message = stun.parse_message(data) if data[0] < 4 else None
                    if answers and message is not None and message.message_class == stun.Class.REQUEST:
                        answer = stun.Message(
                            stun.Method.BINDING, stun.Class.RESPONSE, message.transaction_id,
                            {"XOR-MAPPED-ADDRESS": target})
                        answer.add_message_integrity(ours[1].encode())
                        claimant.sendto(bytes(answer), target)
        return sent, received, media

    def credentials(text: str) -> tuple[str, str]:
        return re.search(r"a=ice-ufrag:(\S+)", text)[1], re.search(r"a=ice-pwd:(\S+)", text)[1]

    async def run():
        peer = aiortc.RTCPeerConnection()
        try:
            for kind in ("audio", "video"):
                peer.addTransceiver(kind, direction="recvonly")
            await peer.setLocalDescription(await peer.createOffer())
            status, fields, text = offer(weir, "plain", peer.localDescription.sdp)
            assert status == 201, text
            await peer.setRemoteDescription(aiortc.RTCSessionDescription(sdp=text, type="answer"))
            while peer.connectionState != "connected":
                await asyncio.sleep(0.1)
            port = re.search(r"a=candidate:\S+ 1 udp \d+ \S+ (\d+)", text, re.I)[1]
            known = (("127.0.0.1", int(port)), credentials(peer.localDescription.sdp), credentials(text))
            sent, received, media = await asyncio.to_thread(claim, "127.0.0.2", *known, answers=False)
            assert received <= sent and media == 0, "more than came went to an address that answers nothing"
            _, _, media = await asyncio.to_thread(claim, "127.0.0.3", *known, answers=True)
            assert media > 20, "a viewer goes on from another address of its own"
            assert ask(weir, "DELETE", fields["location"])[0] == 200
        finally:
            await peer.close()

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.long
def test_chromium_whose_network_is_silent_is_ended_within_thirty_seconds(slow, chromium, record_property):
    """As below. What it shows until then is judged, and what its page is told."""
    with published(slow, "plain"):
        answer = watch(chromium, slow, "plain")
        assert answer["status"] == 201, answer
        judge(chromium, (320, 180), 2)
        slow.wait(lambda: sessions(slow) == 1, 20, "a viewer by WebRTC")
        slow.network.hole(60)
        cut = time.monotonic()
        try:
            time.sleep(10)  # real time: the outage that is judged
            assert sessions(slow) == 1, "an outage of ten seconds ends nobody"
            slow.wait(lambda: sessions(slow) == 0, cut + 30 - time.monotonic(), "no viewer by WebRTC")
            record_property("figure", f"WebRTC, a viewer whose network is silent is ended after {time.monotonic() - cut:.1f} s")
        finally:
            slow.network.hole(0)
        assert leave(chromium) == 410


def test_an_offer_is_answered_by_the_rules(weir):
    status, fields, answer = offer(weir, "plain", Origin="https://other.example")
    assert status == 201 and fields["content-type"] == "application/sdp", (status, answer)
    assert fields["access-control-allow-origin"] == "*" and "Location" in fields["access-control-expose-headers"]
    assert '<stun:stun.example.net>; rel="ice-server"' in fields["link"]
    session, tag = fields["location"], fields["etag"]
    assert re.fullmatch(r"/whep/plain/[0-9a-f]{32}", session)
    lines = answer.split("\r\n")
    assert [line for line in lines if line.startswith("m=")] == [
        "m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96"]
    for line in ("a=ice-lite", "a=sendonly", "a=setup:passive", "a=rtcp-mux"):
        assert line in lines, line
    kind = {"Content_Type": "application/trickle-ice-sdpfrag"}
    fragment = "a=ice-ufrag:efgh\r\na=ice-pwd:0123456789abcdefghijklmn\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
    assert ask(weir, "PATCH", session, fragment, If_Match='"other"', **kind)[0] == 412
    status, again, text = ask(weir, "PATCH", session, fragment, If_Match=tag, **kind)
    assert status == 200 and again["etag"] != tag and "a=ice-ufrag:" in text
    # A session of a viewer is none of a publisher.
    assert ask(weir, "DELETE", session.replace("whep", "whip"))[0] == 404
    status, fields, _ = ask(weir, "OPTIONS", "/whep/plain", Origin="https://other.example")
    assert status == 204 and fields["access-control-allow-methods"] == "POST, OPTIONS", fields
    assert ask(weir, "GET", "/whep/plain")[0] == 405
    assert ask(weir, "DELETE", session)[0] == 200
    assert ask(weir, "DELETE", session)[0] == 404
    weir.wait(lambda: sessions(weir) == 0, 20, "no viewer by WebRTC")


@pytest.mark.parametrize(("change", "status", "code"), [
    (lambda sdp: sdp.replace("H264", "VP8").replace("opus", "x"), 422, "nothing-fits"),
    (lambda sdp: sdp.replace("a=recvonly", "a=sendonly"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("a=fingerprint:", "a=x:"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("BUNDLE 0 1", "BUNDLE 0"), 422, "offer-not-taken"),
    (lambda sdp: "hello", 400, "bad-request"),
    (lambda sdp: sdp + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 1000, 400, "bad-request"),
    (lambda sdp: sdp + "a=x:" + "y" * (1 << 20), 413, "body-too-large"),
])
def test_an_offer_that_cannot_be_taken_is_refused_with_the_reason(weir, change, status, code):
    found, _, text = offer(weir, "plain", change(OFFER))
    assert (found, json.loads(text)["code"]) == (status, code), text
    weir.wait(lambda: sessions(weir) == 0, 20, "no viewer by WebRTC")


def test_who_may_not_watch_gets_no_answer(start_shared):
    """A stream that wants a token: in the path, or as a bearer. A server without WebRTC says so."""
    import test_viewer_tokens as tokens  # noqa: PLC0415

    weir = start_shared(
        "--webrtc", ":0", "--no-record", listeners=("http", "rtmp", "webrtc"),
        environment={"WEIR_VIEWERS": "token", "WEIR_JWT_SECRET": tokens.SECRET, "WEIR_ADMIN_TOKEN": tokens.ADMIN})
    film, options = FILMS["plain"]
    publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/cam-1", loop=-1, version="new", options=options)
    try:
        admin = {"Authorization": f"Bearer {tokens.ADMIN}"}
        weir.wait(lambda: weir.get("/live/cam-1/index.m3u8", headers=admin).status == 200, 20, "cam-1 is live")
        assert offer(weir, "cam-1")[0] == 403
        assert offer(weir, "cam-1", Authorization="Bearer wrong")[0] == 403
        assert offer(weir, "cam-1", Authorization=f"Bearer {tokens.token(weir={'watch': 'other'})}")[0] == 403
        status, fields, _ = offer(weir, "cam-1", Authorization=f"Bearer {tokens.token()}")
        assert status == 201
        assert ask(weir, "DELETE", fields["location"])[0] == 200
        good = tokens.token()
        status, fields, _ = ask(weir, "POST", f"/~{good}/whep/cam-1", OFFER, Content_Type="application/sdp")
        assert status == 201 and fields["location"].startswith(f"/~{good}/whep/cam-1/"), fields
        assert ask(weir, "DELETE", fields["location"])[0] == 200
    finally:
        publisher.kill()
    off = start_shared("--no-record")
    status, _, text = offer(off, "plain")
    assert (status, json.loads(text)["code"]) == (404, "webrtc-off"), text


def test_viewers_that_were_left_free_their_places(left, record_property):
    """One that never connects after 15 s. One that plays, and from which nothing comes any more, within 30 s: its consent is over
    (RFC 7675). An outage of ten seconds ends nobody."""
    left.wait()
    record_property("figure", f"WebRTC, a viewer whose network is silent is ended after {left.lasted('silent'):.1f} s")
    assert 14 <= left.lasted("unconnected") <= 20, left.lasted("unconnected")
    assert 10 < left.lasted("silent") <= 30, left.lasted("silent")
    left.weir.wait(lambda: sessions(left.weir) == 0, 10, "no viewer by WebRTC")
    assert [ask(left.weir, "DELETE", path)[0] for path in left.sessions.values()] == [410, 410]
