"""From a browser's camera to other browsers: the publish page in one Chromium, the watch page in another, through a network that
may be bad. Each frame has the time at which it was drawn in it, as 40 squares, so that the viewer can tell its age."""

import collections
import dataclasses
import json
import os
import statistics
import subprocess
import time

import pytest

import browsers
import watching
from harness import hls, http, packets, relay, tools
from harness.programs import free_port
from test_publish_devices import standing_in
from test_publish_page import open_page, playlists, start, stop

#: How long flash and beep of the publish page are watched: ten minutes in long runs.
SYNC_SECONDS = 600 if os.environ.get("WEIR_FAULTS") == "long" else 20
#: Flashes before the second report of audio: one comes each 5 s.
EARLY = 8

#: Laid over the page before its own scripts run: the camera's frames pass a canvas that writes the time into them, in
#: milliseconds by 32 bits, and 8 bits of a sum. Noise keeps an encoder at its rate. The connection is kept for its figures.
MARK = """(() => {
  const Peer = globalThis.RTCPeerConnection;
  globalThis.RTCPeerConnection = class extends Peer {
    constructor(...given) {
      super(...given);
      globalThis.peer = this;
      globalThis.sizes = [];
      const look = setInterval(async () => {
        if (this.connectionState === "closed") return clearInterval(look);
        for (const one of (await this.getStats()).values()) {
          if (one.type === "outbound-rtp" && one.kind === "video") {
            globalThis.sizes.push([performance.now(), one.bytesSent, one.frameWidth ?? 0, one.framesSent ?? 0, this.connectionState]);
          }
        }
      }, 100);
    }
  };
  const devices = navigator.mediaDevices;
  if (devices === undefined) return;
  const open = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wanted) => {
    const media = await open(wanted);
    const [camera] = media.getVideoTracks();
    if (camera === undefined) return media;
    const video = document.body.appendChild(document.createElement("video"));
    Object.assign(video.style, { position: "fixed", right: 0, bottom: 0, width: "2px", height: "2px" });
    Object.assign(video, { muted: true, srcObject: new MediaStream([camera]) });
    await video.play();
    const canvas = document.createElement("canvas"), noise = document.createElement("canvas");
    const { videoWidth: width, videoHeight: height } = video;
    [canvas.width, canvas.height, noise.width, noise.height] = [width, height, 2 * width, 2 * height];
    const pen = canvas.getContext("2d"), source = noise.getContext("2d");
    if (width >= 1280) {
      const image = source.createImageData(noise.width, noise.height);
      for (let n = 0; n < image.data.length; n += 4) {
        image.data.fill(256 * Math.random(), n, n + 3);
        image.data[n + 3] = 48;
      }
      source.putImageData(image, 0, 0);
    }
    const draw = () => {
      video.requestVideoFrameCallback(draw);
      pen.drawImage(video, 0, 0, width, height);
      if (width >= 1280) pen.drawImage(noise, -width * Math.random(), -height * Math.random());
      const time = Date.now() % 2 ** 32, sum = (time ^ time >> 8 ^ time >> 16 ^ time >> 24) & 255;
      for (let bit = 0; bit < 40; bit += 1) {
        const isSet = bit < 32 ? time >>> 31 - bit & 1 : sum >> 39 - bit & 1;
        pen.fillStyle = isSet ? "white" : "black";
        pen.fillRect(bit * width / 40, 0, width / 40, 32);
      }
    };
    video.requestVideoFrameCallback(draw);
    const [track] = canvas.captureStream().getVideoTracks();
    const end = track.stop.bind(track);
    track.getSettings = () => camera.getSettings();
    track.stop = () => { camera.stop(); end(); };
    return new MediaStream([track, ...media.getAudioTracks()]);
  };
})()"""

#: A camera that flashes at each second of the clock of a microphone that beeps then. Each frame has the time at which it was drawn
#: in it, in milliseconds by that clock, as 40 squares: a flash is up to a frame late. Both may be sent to a witness, too.
FLASHES = """async (wanted, open, made) => {
  const media = await open(wanted);
  const [camera] = media.getVideoTracks(), [microphone] = media.getAudioTracks();
  const context = new AudioContext({ sampleRate: 48000 }), end = new MediaStreamAudioDestinationNode(context);
  const tone = new OscillatorNode(context, { frequency: 1000 }), gate = new GainNode(context, { gain: 0 });
  tone.connect(gate).connect(end);
  tone.start();
  const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 360 });
  const pen = canvas.getContext("2d");
  const now = () => {
    const { contextTime, performanceTime } = context.getOutputTimestamp();
    return contextTime + (performance.now() - performanceTime) / 1000;
  };
  let last = -Infinity, second = Math.ceil(context.currentTime) + 1;
  const draw = (at) => {
    if (camera.readyState === "ended") return;
    requestAnimationFrame(draw);
    if (at - last < 30) return;
    last = at;
    for (; second < context.currentTime + 3; second += 1) {
      gate.gain.setValueAtTime(0.5, second);
      gate.gain.setValueAtTime(0, second + 0.1);
    }
    const time = Math.max(0, Math.round(1000 * now())), sum = (time ^ time >> 8 ^ time >> 16 ^ time >> 24) & 255;
    pen.fillStyle = time % 1000 < 300 ? "white" : "black";
    pen.fillRect(0, 32, 640, 328);
    for (let bit = 0; bit < 40; bit += 1) {
      pen.fillStyle = (bit < 32 ? time >>> 31 - bit & 1 : sum >> 39 - bit & 1) ? "white" : "black";
      pen.fillRect(bit * 16, 0, 16, 32);
    }
  };
  requestAnimationFrame(draw);
  const [flash] = canvas.captureStream().getVideoTracks(), [beep] = end.stream.getAudioTracks();
  globalThis.offer = async () => {
    const peer = globalThis.witness = new RTCPeerConnection();
    for (const track of [flash.clone(), beep.clone()]) peer.addTransceiver(track, { direction: "sendonly" });
    await peer.setLocalDescription();
    while (peer.iceGatheringState !== "complete") await new Promise((done) => setTimeout(done, 50));
    return peer.localDescription.sdp;
  };
  globalThis.take = (sdp) => globalThis.witness.setRemoteDescription({ type: "answer", sdp });
  return new MediaStream([made(beep, microphone), made(flash, camera)]);
}"""

#: Frames that are shown within some seconds: the time in it, its age in milliseconds, and how many were shown until then.
SHOWN = """(async (seconds) => {
  const video = document.querySelector("#video"), canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const read = () => {
    const { videoWidth: width } = video;
    if (canvas.width !== width) [canvas.width, canvas.height] = [width, 1];
    pen.drawImage(video, 0, 12, width, 8, 0, 0, width, 1);
    const { data } = pen.getImageData(0, 0, width, 1);
    const bits = Array.from({ length: 40 }, (_, bit) => data[4 * Math.floor((bit + 0.5) * width / 40) + 1] > 128 ? 1 : 0);
    const number = (some) => some.reduce((sum, bit) => 2 * sum + bit, 0);
    const time = number(bits.slice(0, 32));
    return number(bits.slice(32)) === ((time ^ time >> 8 ^ time >> 16 ^ time >> 24) & 255) ? time : null;
  };
  const found = [];
  for (const until = performance.now() + 1000 * seconds; performance.now() < until;) {
    const frame = await new Promise((resume) => video.requestVideoFrameCallback((_, frame) => resume(frame)));
    // Of a call that comes late the picture is a newer one than the frame that it tells of.
    const time = read(), shown = Date.now() + Math.max(0, frame.expectedDisplayTime - performance.now());
    if (time !== null) found.push([time, (shown - time + 2 ** 32) % 2 ** 32, frame.presentedFrames]);
  }
  return found;
})"""

#: When the first frame was shown since the page was asked, in milliseconds since 1970.
FIRST = """void document.querySelector("#video").requestVideoFrameCallback(() => { window.firstShown = Date.now(); })"""


@dataclasses.dataclass
class Case:
    """A network in either direction, a way to watch, and the longest median age of a frame in seconds."""

    way: str
    most: float
    path: relay.Path = relay.Path()


CASES = {
    "hls": Case("hls", 1.0), "hls-lossy": Case("hls", 1.0, relay.Path(delay=0.025, loss=0.05)), "webrtc": Case("webrtc", 0.3),
}


@pytest.fixture(scope="module")
def weir(start_shared, canary):
    port = free_port()
    network = relay.Relay(port)
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}", "--publish-key", f"{canary}-all",
        "--segment-duration", "1s",
        listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    weir.key, weir.network = f"{canary}-all", network
    yield weir
    network.stop()


@pytest.fixture(scope="module")
def studio():
    """The Chromium that publishes."""
    with browsers.chromium("--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream",
                           "--autoplay-policy=no-user-gesture-required") as one:
        one.call("Page.addScriptToEvaluateOnNewDocument", source=MARK)
        yield one


@pytest.fixture
def publisher(studio):
    yield studio
    studio.evaluate("void (BeforeUnloadEvent.prototype.preventDefault = () => {})")
    studio.open("about:blank")


@pytest.fixture
def viewer(chromium):
    yield chromium
    watching.leave(chromium)


def marks(movie) -> list[int | None]:
    """The times in the frames of a recording; None where there is none."""
    found = subprocess.run(
        [tools.FFMPEG, "-v", "error", "-i", str(movie), "-an", "-vf", "crop=iw:8:0:12,scale=40:1:flags=area,format=gray", "-vsync",
         "passthrough", "-f", "rawvideo", "-"], capture_output=True, timeout=60, check=True).stdout
    times = []
    for at in range(0, len(found), 40):
        bits = [byte > 128 for byte in found[at:at + 40]]
        time_, total = (sum(bit << place for place, bit in enumerate(reversed(some))) for some in (bits[:32], bits[32:]))
        times.append(time_ if total == (time_ ^ time_ >> 8 ^ time_ >> 16 ^ time_ >> 24) & 255 else None)
    return times


def share(shown: list, recorded: list[int | None]) -> float:
    """Frames that were shown, of those that were recorded from the first one shown to the last."""
    (first, _, before), (last, _, after) = shown[0], shown[-1]
    there = [time_ for time_ in recorded if time_ is not None and first <= time_ <= last]
    return (after - before + 1) / len(there)


def sent_and_recorded(publisher, viewer, weir, name, case: Case, seconds: int) -> tuple[list, list[int | None]]:
    """The frames that a viewer was shown within some seconds, and those of the recording. Of these nothing is broken, invented or
    lost without being told."""
    weir.network.forth = weir.network.back = case.path
    lost = weir.network.lost
    try:
        open_page(publisher, weir, name, weir.key, copy=False)
        start(publisher)
        weir.wait_state(name, "live")
        watching.watch(viewer, weir, name, f"?player={case.way}")
        # The start is over: the playhead is where it stays.
        watching.play_on(viewer, 3)
        shown = viewer.evaluate(f"{SHOWN}({seconds})")
        assert viewer.evaluate("document.querySelector('#fallback').hidden")
        lists = [weir.get(f"/live/{name}/{path}").good().text for path in playlists(weir, name)]
        stop(publisher)
        sent = max(frames for _, _, _, frames, _ in publisher.evaluate("window.sizes"))
    finally:
        weir.network.forth = weir.network.back = relay.Path()
    movie = weir.only_recording(name)
    received = weir.stream(name)["received"]
    recorded = marks(movie)
    assert not any("EXT-X-DISCONTINUITY" in text for text in lists)
    assert not case.path.loss or weir.network.lost - lost >= 20, weir.network.lost
    video = packets.probe(movie)["video"]
    times = [packet.dts for packet in video]
    assert times == sorted(set(times)) and len(video) == received["videoFrames"] == len(recorded)
    # Some were sent after the last look at them, some after the end of the session.
    told = received["videoFrames"] + received["earlyVideoFrames"] + received["lostVideoFrames"]
    # Browsers probe by packets that only pad. They go by a sender of their own, so that a lost one is no lost frame.
    assert 0.99 * sent - 15 <= told, (received, sent)
    assert told <= sent + 15, (received, sent)
    assert received["videoFrames"] <= sent + 15, (received, sent)
    assert recorded.count(None) <= 0.01 * len(recorded), recorded.count(None)
    read = [time_ for time_ in recorded if time_ is not None]
    doubled = [time_ for time_, count in collections.Counter(read).items() if count > 1]
    # Asked for a key frame, a browser that is held up encodes its last frame once more. What the server doubles has the same bytes.
    assert len({packet.digest for packet in video}) == len(video) and len(doubled) <= 0.02 * len(read), doubled
    return shown, recorded


@pytest.fixture
def whole(request, publisher, viewer, weir):
    """What is shown of two seconds of a camera, and what is recorded."""
    return sent_and_recorded(publisher, viewer, weir, f"whole-{request.param}", CASES[request.param], 2)


@pytest.mark.parametrize(
    "whole", ["webrtc", pytest.param("hls-lossy", marks=[pytest.mark.quiet, pytest.mark.long])], indirect=True)
def test_of_a_camera_nothing_is_broken_or_lost_without_being_told(whole):
    shown, recorded = whole
    assert {time_ for time_, _, _ in shown} & set(recorded), "what is shown is what is recorded"


@pytest.mark.quiet
@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_camera_is_seen_soon_and_whole(publisher, viewer, weir, name, record_property):
    """Glass to glass; what arrived whole is shown."""
    case = CASES[name]
    seen, recorded = sent_and_recorded(publisher, viewer, weir, name, case, 8)
    assert len(seen) >= 100, f"the time could be read in {len(seen)} frames"
    ages, shown = sorted(age / 1000 for _, age, _ in seen), share(seen, recorded)
    record_property("figure", f"camera to screen, {name}: median {statistics.median(ages):.2f} s, p95 {ages[int(0.95 * len(ages))]:.2f} s; "
                              f"{100 * shown:.1f} % of the frames shown")
    assert statistics.median(ages) <= case.most, ages
    assert shown >= 0.99


@pytest.mark.long
def test_the_wall_clock_is_the_senders(publisher, weir, tmp_path, record_property):
    """A network takes 200 ms. Segments have the time at which their first frame was drawn, not that at which it came."""
    name = "wall-clock"
    weir.network.forth = weir.network.back = relay.Path(delay=0.2)
    try:
        open_page(publisher, weir, name, weir.key, copy=False)
        start(publisher)
        weir.wait_state(name, "live")
        url = hls.first_playlist(f"{weir.web}/live/{name}/index.m3u8")

        def there() -> hls.Media | None:
            media = hls.parse_media(http.fetch(url).good().text, url)
            return media if len(media.present) >= 7 else None

        media = weir.wait(there, 40, "seven segments")
        apart = []
        for segment in media.present[-5:]:
            movie = tmp_path / f"{segment.sequence}.mp4"
            movie.write_bytes(b"".join(http.fetch(media.absolute(part)).good().body for part in (segment.map, segment.uri)))
            if not packets.probe(movie)["video"][0].is_key:
                continue  # a busy encoder's key frame came too late: nobody can read the first frame
            drawn = marks(movie)[0]
            assert drawn is not None and segment.date is not None, (drawn, segment)
            late = (round(1000 * segment.date.timestamp()) - drawn) % 2 ** 32
            apart.append(late - 2 ** 32 if late >= 2 ** 31 else late)
        stop(publisher)
    finally:
        weir.network.forth = weir.network.back = relay.Path()
    record_property("figure", f"EXT-X-PROGRAM-DATE-TIME after the time at which a frame was drawn, 200 ms away: {apart} ms")
    # A busy machine draws a frame late now and then.
    assert len(apart) >= 3 and abs(statistics.median(apart)) <= 50, apart


@pytest.mark.quiet
@pytest.mark.long
@pytest.mark.parametrize("way", ["hls", "webrtc"])
def test_the_first_picture_is_seen_soon_after_start(publisher, viewer, weir, way, record_property):
    """The preview runs, and a viewer's page is open and waits."""
    name = f"first-{way}"
    open_page(publisher, weir, name, weir.key, copy=False)
    viewer.open(f"{weir.web}/watch/{name}?player={way}")
    watching.wait_phase(viewer, "notStarted")
    viewer.evaluate(FIRST)
    time.sleep(2.2)  # real time: the page waits, and its requests have settled
    began = publisher.evaluate("(() => { const now = Date.now(); document.querySelector('#start').click(); return now; })()")
    taken = (viewer.wait("window.firstShown", 20) - began) / 1000
    assert viewer.evaluate("document.querySelector('#fallback').hidden")
    stop(publisher)
    record_property("figure", f"first picture after Start, {way}: {taken:.2f} s")
    assert taken <= 1.5


def sizes_of_720p(publisher, weir, name, seconds: float) -> list:
    """What was sent within some seconds of the first frame. No frame is sent in a smaller size, and none of the stream has one."""
    open_page(publisher, weir, name, weir.key, preset="720p30", copy=False)
    start(publisher)
    publisher.wait(f"(([first]) => first && sizes.at(-1)[0] - first[0] > {1000 * seconds})(sizes.filter(([, , , frames]) => frames > 0))")
    seen = publisher.evaluate("window.sizes")
    stop(publisher)
    widths = {width for _, _, width, frames, _ in seen if frames > 0}
    assert widths == {1280}, widths
    lines = tools.run(
        tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "frame=width,height", "-of", "csv=p=0",
        weir.only_recording(name)).stdout.split()
    assert set(lines) == {"1280,720"}, set(lines)
    return seen


def test_720p_has_its_size_at_once(publisher, weir):
    sizes_of_720p(publisher, weir, "full", 2)


@pytest.mark.quiet
@pytest.mark.long
def test_720p_has_its_rate_within_three_seconds(publisher, weir, record_property):
    """2.5 Mbit/s are wanted."""
    seen = sizes_of_720p(publisher, weir, "full-rate", 3.2)
    began = next(at for at, _, _, frames, _ in seen if frames > 0)
    late = [one for one in seen if 1.9 <= (one[0] - began) / 1000 <= 3.1]
    rate = 8 * (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0]) / 1000
    record_property("figure", f"720p30 from the publish page: {rate:.1f} Mbit/s in the third second")
    assert rate >= 2


@pytest.mark.encoder
def test_the_bit_rate_that_is_chosen_while_live_is_sent(publisher, weir, record_property):
    """Of a picture that needs more: less at once, and more again. The stream goes on in its size."""
    def sent(seconds: float) -> float:
        """Mbit/s of the newest seconds."""
        seen = publisher.evaluate("window.sizes")
        if len(seen) < 20:
            return 0
        first = next(one for one in seen if one[0] >= seen[-1][0] - 1000 * seconds)
        return 8 * (seen[-1][1] - first[1]) / (seen[-1][0] - first[0]) / 1000

    name, rates = "tuned", []
    open_page(publisher, weir, name, weir.key, preset="720p30", copy=False)
    start(publisher)
    begun = weir.wait_state(name, "live")["startedAt"]
    for least, most, wanted in ((2, 3.5, None), (0.6, 1.3, 1000), (2, 3.5, 2500)):
        if wanted is not None:
            publisher.evaluate(f"""(() => {{
              const field = document.querySelector('#bit-rate');
              field.value = {wanted};
              field.dispatchEvent(new Event('change'));
            }})()""")
        weir.wait(lambda: least <= sent(1) <= most, 40, f"{least} to {most} Mbit/s", every=0.2)
        rates.append(sent(1))
    widths = {width for _, _, width, frames, _ in publisher.evaluate("window.sizes") if frames > 0}
    assert widths == {1280} and weir.stream(name)["startedAt"] == begun, widths
    record_property("figure", f"publish page, 2.5, 1 and 2.5 Mbit/s chosen: {', '.join(f'{one:.1f}' for one in rates)} sent")
    stop(publisher)


def told(some) -> str:
    values = sorted(1000 * one for one in some)
    return f"median {statistics.median(values):.1f} ms ({values[0]:.1f} to {values[-1]:.1f})"


@pytest.mark.long
def test_flash_and_beep_of_the_publish_page_stay_together(weir, tmp_path, record_property):
    """The browser's canvas and its audio have a distance of their own, which its reports tell every receiver. A witness gets the same
    tracks by another connection: the recording and HLS may differ by 20 ms from what it finds."""
    witness = pytest.importorskip("harness.witness", reason="aiortc receives the same tracks", exc_type=ImportError)
    name, other = "flashes", witness.Witness()
    with browsers.chromium("--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream",
                           "--autoplay-policy=no-user-gesture-required") as page:
        with standing_in(page, FLASHES):
            open_page(page, weir, name, weir.key, copy=False)
        page.evaluate(f"take({json.dumps(other.answer(page.evaluate('offer()')))})")
        start(page)
        weir.wait_state(name, "live")
        time.sleep(SYNC_SECONDS - 8)  # real time: as many flashes are watched
        live = tmp_path / "live.mp4"
        tools.run(
            tools.FFMPEG, "-v", "error", "-i", f"{weir.web}/live/{name}/index.m3u8", "-t", "8", "-c", "copy", live, timeout=60)
        time.sleep(4)  # real time: flashes on either side of what was read
        stop(page)
        other.stop()
        page.evaluate("void (BeforeUnloadEvent.prototype.preventDefault = () => {})")
        page.open("about:blank")
    theirs, ours, seen = other.distances, witness.of_file(weir.only_recording(name)), witness.of_file(live)
    apart = [ours[second] - theirs[second] for second in sorted(ours) if second in theirs]
    shown = [seen[second] - theirs[second] for second in sorted(seen) if second in theirs]
    moved = statistics.fmean(apart[-10:]) - statistics.fmean(apart[:10])
    record_property(
        "figure", f"publish page, flash to beep within {SYNC_SECONDS} s: recorded {told(ours.values())}, by the browser's reports "
        f"{told(theirs.values())}, between them {told(apart)} at {len(apart)} flashes, moved by {1000 * moved:.1f} ms; by HLS "
        f"{told(shown)} at {len(shown)}; reports are {1000 * other.jitter['audio']:.1f} ms off (audio) and {1000 * other.jitter['video']:.1f} (video)")
    assert len(apart) >= 0.9 * SYNC_SECONDS, (len(apart), len(theirs), len(ours))
    assert len(shown) >= 5, (seen, theirs)
    assert abs(statistics.median(apart)) <= 0.020 and abs(statistics.median(shown)) <= 0.020, (apart, shown)
    # Reports are dated some milliseconds off: by so much the witness may be wrong.
    assert max(map(abs, [*apart[EARLY:], *shown])) <= 0.020 + max(other.jitter.values()), (apart, shown)
    # Before the first reports of audio arrival counts, which may be a frame off.
    assert max(map(abs, apart[:EARLY])) <= 0.020 + 1 / 30, apart
