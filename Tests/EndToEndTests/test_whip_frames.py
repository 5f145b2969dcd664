"""A publisher by WebRTC whose frames have the times and sizes that a test wants: aiortc, an independent client of WHIP."""

import asyncio
import fractions
import itertools
import json
import os
import random
import threading
import time

import browsers
import pytest

from harness import hls, http, nothing_wrong, packets, tools
from harness.metrics import Metrics
from test_whip import end_camera, finish, more, parts, publish, recorded

aiortc = pytest.importorskip("aiortc")
av = pytest.importorskip("av")

KEY = "a-key-of-frames"

#: Ticks of 90 kHz between frames: mostly 40 ms, some sooner, three pauses in 40 frames.
UNEVEN = [3600] * 9 + [3200, 3600, 3450] * 3 + [9000] + [3600] * 8 + [3300, 36000] + [3600, 3500] + [3600] * 3 + [20000] + [3600] * 5


class Pictures(aiortc.VideoStreamTrack):
    """Frames at given times, in given sizes."""

    def __init__(self, plan):
        """`plan` gives the time of each frame, in ticks of 90 kHz, and its size."""
        super().__init__()
        self.plan = plan
        self.begun = None
        #: Times of the frames that were sent.
        self.sent = []

    async def recv(self):
        ticks, (width, height) = next(self.plan)
        self.begun = self.begun or time.monotonic()
        await asyncio.sleep(max(0, self.begun + ticks / 90_000 - time.monotonic()))
        frame = av.VideoFrame(width, height, "yuv420p")
        for number, plane in enumerate(frame.planes):
            plane.update(self.paint(number, plane.buffer_size))
        frame.pts, frame.time_base = ticks, fractions.Fraction(1, 90_000)
        self.sent.append(ticks)
        return frame

    def paint(self, plane: int, size: int) -> bytes:
        """Another grey with each frame, so that none is skipped as nothing new."""
        return bytes([len(self.sent) * 3 % 200 + 20 if plane == 0 else 128]) * size


class Noise(Pictures):
    """Frames that need any bit rate."""

    def paint(self, plane: int, size: int) -> bytes:
        return os.urandom(size)


class Publisher:
    """Publishes on a thread of its own, until `stop`."""

    def __init__(self, weir, name: str, plan, kind=Pictures):
        self.weir, self.name, self.plan, self.kind = weir, name, plan, kind
        self.error = None
        self.loop = asyncio.new_event_loop()
        self.stopping = asyncio.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        try:
            self.loop.run_until_complete(self._publish())
        except Exception as error:  # noqa: BLE001  (told by `stop`)
            self.error = error
        finally:
            self.loop.close()

    async def _publish(self):
        peer = aiortc.RTCPeerConnection()
        self.pictures = self.kind(self.plan)
        try:
            self.sender = peer.addTransceiver(self.pictures, direction="sendonly").sender
            await peer.setLocalDescription(await peer.createOffer())
            answer = self.weir.get(
                f"/whip/{self.name}", method="POST", body=peer.localDescription.sdp.encode(),
                headers={"Content-Type": "application/sdp", "Authorization": f"Bearer {KEY}"})
            assert answer.status == 201, answer.text
            self.answer = answer.text
            await peer.setRemoteDescription(aiortc.RTCSessionDescription(sdp=answer.text, type="answer"))
            await self.stopping.wait()
            self.ended = self.weir.get(answer.headers["location"], method="DELETE").status
        finally:
            await peer.close()

    def stop(self, status: int = 200) -> list[int]:
        """Ends the session, which is answered by a status, and returns the times of the frames that were sent."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(20)
        if self.error is not None:
            raise self.error
        assert self.ended == status, self.ended
        return self.pictures.sent


@pytest.fixture(scope="module")
def weir(start_shared):
    weir = start_shared("--webrtc", ":0", "--publish-key", KEY, listeners=("http", "rtmp", "webrtc"))
    weir.key = KEY
    return weir


def uneven(size=(320, 180)):
    ticks = 0
    for step in itertools.cycle(UNEVEN):
        yield ticks, size
        ticks += step


def published(weir, name: str, plan, segments: int) -> tuple[str, list[list[list[float]]], float, list[int]]:
    """Publishes until so many segments are listed. Returns the playlist's address, the parts of its segments but the first,
    PART-TARGET, and the times of the frames that were sent."""
    publisher = Publisher(weir, name, plan)
    try:
        weir.wait_state(name, "live", seconds=40)
        url = hls.first_playlist(f"{weir.web}/live/{name}/index.m3u8")
        weir.wait(lambda: len(hls.parse_media(http.fetch(url).text, url).present) >= segments, 60, f"{segments} segments")
        playlist = hls.parse_media(http.fetch(url).text, url)
        found = parts(playlist)
    finally:
        sent = publisher.stop()
    return url, found, part_target(playlist.text), sent


def recorded_as_sent(weir, name: str, sent: list[int]) -> None:
    """All frames but the last few are in the recording, and the time between two is to the tick what the sender gave."""
    times = [round(packet.dts * 90_000) for packet in packets.probe(weir.only_recording(name))["video"]]
    assert len(times) >= len(sent) - 10, (len(times), len(sent))
    steps, expected = ([after - before for before, after in itertools.pairwise(some)] for some in (times, sent))
    starts = range(len(expected) - len(steps) + 1)
    assert any(steps == expected[start:start + len(steps)] for start in starts), (steps[:40], expected[:40])


def test_frames_of_aiortc_keep_their_times_and_parts_their_rule(weir, record_property):
    """A variable rate. Each frame is recorded once, at the time that its sender gave it, to a tick of its track. No part of several
    samples is longer than PART-TARGET. A part below 85 % of it is the last of its segment, or has or precedes a frame that comes
    later than usual. The server counts these."""
    url, found, target, sent = published(weir, "uneven", uneven(), 6)
    usual = 0.040
    counts = {"parts": 0, "short": 0, "late": 0}
    for segment in found:
        for number, durations in enumerate(segment):
            length = sum(durations)
            counts["parts"] += 1
            counts["late"] += len(durations) == 1 and length > target
            assert len(durations) == 1 or length <= target + 1e-6, (durations, target)
            if length < 0.85 * target and number + 1 < len(segment):
                near = [*durations, segment[number + 1][0]]
                assert max(near) > usual * 1.05, (near, target)
                counts["short"] += 1
    record_property("figure", f"parts of a variable rate by WebRTC: {counts}, PART-TARGET {target}")
    rounds = sum(len(durations) for segment in found for durations in segment) / len(UNEVEN) + 1
    # Three frames of a round are late. Each shortens its own part and the one before at most, and one is a part by itself.
    assert counts["parts"] >= 30 and 1 <= counts["short"] <= 6 * rounds and 1 <= counts["late"] <= rounds, counts
    whole = hls.parse_media(http.fetch(url).text, url)
    assert whole.ended and whole.sequence == 1, whole.text
    # The first part of all is short, so that a viewer gets a frame at once: there is no target yet.
    short = sum(
        sum(durations) < 0.85 * target
        for number, segment in enumerate(parts(whole, skip=0)) for durations in segment[number == 0:-1])
    assert Metrics(weir)("weir_parts_short_total", stream="uneven") == short >= counts["short"], (short, counts)
    recorded_as_sent(weir, "uneven", sent)


def test_a_camera_that_almost_keeps_to_a_rate_keeps_its_own_times(weir):
    """Each picture is up to 0.7 ms off the thirtieth of a second that its parameter sets state. None is moved by a tick, and all parts
    obey their rule."""
    dice = random.Random(5)
    plan = ((number * 3000 + dice.randint(-60, 60) * (number > 0), (320, 180)) for number in itertools.count())
    _, found, target, sent = published(weir, "almost", plan, 4)
    for segment in found:
        for number, durations in enumerate(segment):
            assert sum(durations) <= target + 1e-6, (durations, target)
            assert sum(durations) >= 0.85 * target or number + 1 == len(segment), (durations, target)
    recorded_as_sent(weir, "almost", sent)


class Stray:
    """Makes the sequence number of one packet of aiortc wrong. libsrtp encrypts no number that is far behind, so that packet gets a
    session of its own, with the same keys."""

    def __init__(self, monkeypatch, ahead: int):
        transport, sender = aiortc.rtcdtlstransport, aiortc.rtcrtpsender
        made, send, self.policy = transport.Session, transport.RTCDtlsTransport._send_rtp, None
        #: Set when the next packet of media is to be the one, and when it went.
        self.wanted, self.at = False, 0.0

        def session(policy):
            # The last one is that of what is sent.
            self.policy = policy
            return made(policy)

        async def send_rtp(own, data):
            if not self.wanted or 64 <= data[1] & 0x7F < 96:
                return await send(own, data)
            self.wanted, self.at = False, time.monotonic()
            number = int.from_bytes(data[2:4], "big") + ahead
            await own.transport._send(made(self.policy).protect(data[:2] + number.to_bytes(2, "big") + data[4:]))

        monkeypatch.setattr(transport, "Session", session)
        monkeypatch.setattr(transport.RTCDtlsTransport, "_send_rtp", send_rtp)
        # No wrap of the numbers within this test.
        monkeypatch.setattr(sender, "random_sequence_number", lambda: 1000)


def test_a_packet_with_a_number_far_ahead_is_told_and_the_pictures_go_on(weir, monkeypatch):
    """Such a packet took the picture until its sender had come there. (How soon is judged by the unit tests.)"""
    stray = Stray(monkeypatch, 1500)
    publisher = Publisher(weir, "stray", ((number * 3000, (320, 180)) for number in itertools.count()))
    try:
        weir.wait_state("stray", "live", seconds=40)
        before = weir.stream("stray")["received"]["videoFrames"]
        stray.wanted = True
        weir.wait(lambda: any("sequence numbers" in text for text in weir.stream("stray")["warnings"]), 10, "a warning of the numbers")
        told = time.monotonic() - stray.at
        weir.wait(lambda: weir.stream("stray")["received"]["videoFrames"] >= before + 90, 10, "three seconds of pictures")
        again = time.monotonic() - stray.at
    finally:
        publisher.stop()
    assert told <= 5 and again <= 10, (told, again)


@pytest.mark.long
@pytest.mark.parametrize("stands", [False, True])
def test_a_pause_of_twelve_seconds_is_listed_as_an_outage(weir, stands):
    """The playlist has gaps of that length, one discontinuity behind them, and dates that follow from lengths. `stands`: the sender's
    timestamps do not go on meanwhile."""
    name = f"pause-{stands}".lower()

    def plan():
        for number in range(150):
            yield number * 3000, (320, 180)
        ticks = 150 * 3000 + (0 if stands else 12 * 90_000)
        if stands:
            publisher.pictures.begun += 12
        for number in itertools.count():
            yield ticks + number * 3000, (320, 180)

    publisher = Publisher(weir, name, plan())
    watch = None
    try:
        weir.wait_state(name, "live", seconds=40)
        watch = hls.Watch(f"{weir.web}/live/{name}/index.m3u8")
        weir.wait(lambda: watch.last and any("#EXT-X-GAP" in state.text for _, state in watch.states), 40, "a gap")
        more(weir, name, 120)
    finally:
        publisher.stop()
        if watch:
            watch.stop()
    text = watch.last.text
    assert text.count("#EXT-X-DISCONTINUITY\n") == 1, text
    assert abs(sum(segment.duration for segment in watch.last.segments if segment.gap) - 12) < 1, text
    nothing_wrong(hls.unexplained(watch.problems, weir.text(), name))


def test_a_sender_without_numbers_of_transport_is_told_the_rate_that_comes_through(weir, record_property):
    """aiortc knows REMB alone, and begins with 1 Mbit/s. What it is told lets it send more."""
    from aiortc.codecs import h264  # noqa: PLC0415

    publisher = Publisher(weir, "rate", ((number * 3000, (320, 180)) for number in itertools.count()), Noise)

    def target() -> int:
        """Of its encoder, which is there from the first frame on."""
        return getattr(publisher.sender._RTCRtpSender__encoder, "target_bitrate", 0)

    try:
        weir.wait_state("rate", "live", seconds=40)
        assert "goog-remb" in publisher.answer and "transport-cc" not in publisher.answer, publisher.answer
        weir.wait(lambda: target() > 1.5 * h264.DEFAULT_BITRATE, 40, "more than 1.5 Mbit/s of the encoder")
        before = weir.stream("rate")["received"]
        more(weir, "rate", 90)
        after = weir.stream("rate")["received"]
        # A second of media has thirty frames.
        rate = 8 * (after["bytes"] - before["bytes"]) / ((after["videoFrames"] - before["videoFrames"]) / 30)
        record_property("figure", f"WebRTC, aiortc by REMB: {target() / 1e6:.1f} Mbit/s wanted, {rate / 1e6:.1f} received")
        assert rate > 1.2 * h264.DEFAULT_BITRATE, rate
    finally:
        publisher.stop()


#: Frames that the watch page has shown since `NOTE`.
SHOWN = "document.querySelector('#video').getVideoPlaybackQuality().totalVideoFrames - frames"
#: Notes each phase of the watch page from now on, and each size of its video.
NOTE = """(() => {
  const [stage, video] = [document.querySelector('#stage'), document.querySelector('#video')];
  Object.assign(window, { phases: [], begun: 0, sizes: [video.videoHeight], frames: video.getVideoPlaybackQuality().totalVideoFrames });
  new MutationObserver(() => phases.push(stage.dataset.phase)).observe(stage, { attributeFilter: ['data-phase'] });
  video.addEventListener('emptied', () => { begun += 1; });
  video.addEventListener('resize', () => sizes.push(video.videoHeight));
})()"""


def watch(chromium) -> None:
    """Waits until the watch page plays the video in its first size, and notes what it shows."""
    chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
    chromium.wait("document.querySelector('#video').videoHeight === 360")
    chromium.evaluate(NOTE)


def shows(chromium, height: int) -> None:
    """Waits until it shows the video in a size, and two seconds of it."""
    chromium.wait(f"document.querySelector('#video').videoHeight === {height}")
    shown = chromium.evaluate(SHOWN)
    chromium.wait(f"{SHOWN} >= {shown + 60}")


def goes_on(seen: dict, pauses: bool) -> bool:
    """The page's player was not begun anew. It may wait for media where `pauses`: where the sender or the browser is held up."""
    return seen["begun"] == 0 and set(seen["phases"]) <= {"playing", *(["waiting"] if pauses else [])}


PAUSES = pytest.mark.parametrize("pauses", [True, pytest.param(False, marks=[pytest.mark.quiet, pytest.mark.long])])


@pytest.mark.parametrize("way", ["", "?player=webrtc"])
@PAUSES
def test_a_true_change_of_size_loses_no_viewer(weir, chromium, way, pauses):
    """The sender's frames are smaller from a time on, and large again later. The watch page goes on without a pause."""
    name = f"sizes{'-webrtc' if way else ''}{'' if pauses else '-alone'}"
    small = threading.Event()

    def plan():
        for number in itertools.count():
            yield number * 3000, (320, 180) if small.is_set() else (640, 360)

    publisher = Publisher(weir, name, plan())
    try:
        weir.wait_state(name, "live", seconds=40)
        chromium.open(f"{weir.web}/watch/{name}{way}")
        watch(chromium)
        small.set()
        shows(chromium, 180)
        small.clear()
        shows(chromium, 360)
        seen = chromium.evaluate("({ phases, sizes, begun })")
        chromium.open("about:blank")
        assert weir.stream(name)["state"] == "live", weir.stream(name)
    finally:
        publisher.stop()
    assert seen["sizes"] == [360, 180, 360] and goes_on(seen, pauses), seen


#: In place of a camera, before a page's own scripts run: a canvas that is drawn thirty times a second, in a size that `resize` changes.
CANVAS = """navigator.mediaDevices.getUserMedia = async () => {
  const canvas = document.body.appendChild(document.createElement('canvas'));
  const pen = canvas.getContext('2d');
  window.resize = (width, height) => { [canvas.width, canvas.height] = [width, height]; };
  window.resize(640, 360);
  let count = 0;
  setInterval(() => {
    count += 1;
    for (let bar = 0; bar < 16; bar += 1) {
      pen.fillStyle = `hsl(${(count * 5 + bar * 40) % 360} 70% 50%)`;
      pen.fillRect(bar * canvas.width / 16, 0, canvas.width / 16, canvas.height);
    }
  }, 1000 / 30);
  return canvas.captureStream();
}"""


@pytest.fixture(scope="module")
def studio():
    with browsers.Chromium() as studio:
        studio.call("Page.addScriptToEvaluateOnNewDocument", source=CANVAS)
        yield studio


@pytest.fixture
def filmed(weir, chromium, studio, codec, pauses):
    """The name of a stream that Chromium publishes in a codec, that another one watches, and that is recorded."""
    name = f"sizes-{codec.lower()}{'' if pauses else '-alone'}"
    answer = publish(studio, weir, name, types=[f"video/{codec}"])
    assert f"{codec}/90000" in answer["sdp"], answer["sdp"]
    chromium.open(f"{weir.web}/watch/{name}")
    watch(chromium)
    # The recording has begun, about a second behind the stream. A change before it leaves out what came first.
    weir.wait(lambda: weir.stream(name)["recording"]["seconds"] > 0, 40, "a recording")
    return name


@pytest.mark.parametrize("codec", ["VP9", "AV1"])
@PAUSES
def test_a_true_change_of_size_in_other_codecs_loses_no_viewer_and_no_frame(weir, chromium, studio, codec, pauses, filmed, tmp_path):
    """Chromium to Chromium by HLS. Each frame that was sent is recorded, in its own size, or told as lost."""
    name = filmed
    for width, height in ((320, 180), (640, 360)):
        studio.evaluate(f"resize({width}, {height})")
        shows(chromium, height)
    seen = chromium.evaluate("({ phases, sizes, begun })")
    chromium.open("about:blank")
    end_camera(studio)
    stream = weir.stream(name)
    sent = finish(studio)["video"]
    (tmp_path / "weir.log").write_text(weir.text())
    (tmp_path / "told.json").write_text(json.dumps({"stream": stream, "sent": sent, "seen": seen}, indent=1))
    assert stream["state"] == "live", stream
    assert seen["sizes"] == [360, 180, 360] and goes_on(seen, pauses), seen
    heights = []
    for movie in recorded(weir, name):
        errors, _ = packets.decode(movie)
        assert not errors, (movie, errors)
        times = [packet.dts for packet in packets.probe(movie)["video"]]
        assert times == sorted(set(times)), "times that do not rise"
        heights += tools.output(
            tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "frame=height", "-of", "csv=p=0", movie).split()
    assert [height.rstrip(b",") for height, _ in itertools.groupby(heights)] == [b"360", b"180", b"360"], heights
    came, early, lost = (stream["received"][name] for name in ("videoFrames", "earlyVideoFrames", "lostVideoFrames"))
    assert len(heights) == came, (len(heights), stream["received"], sent)
    assert 0 <= sent["framesSent"] - came - early - lost <= 1, (stream["received"], sent)


def part_target(text: str) -> float:
    return float(next(line for line in text.split("\n") if line.startswith("#EXT-X-PART-INF")).split("PART-TARGET=")[1])
