"""Publishers by WebRTC (WHIP, RFC 9725): Chromium and Firefox with their fake devices, ffmpeg's own muxer, and clients that may
not."""

import array
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import time

import browsers
import pytest

from harness import boxes, hls, http, offers, packets, pattern, publishers, relay, tools
from harness.handshakes import binding
from harness.programs import free_port
from harness.traps import Trap

#: What a page does to publish: devices, an offer, and the answer of WHIP. `only` leaves some candidates of the answer, `types`
#: names the only codecs that are offered, `rids` the encodings of simulcast, `size` that of the frames, `candidates` lines that each
#: section of the offer has besides. `twice`: the camera is sent by two sections of the offer. `pauses`: packets of silence are left
#: out (DTX, RFC 7587 §3.1.3).
PUBLISH = """(async (name, key, {
  only = '', types = [], rids = [], candidates = [], twice = false, pauses = false, size: [width, height] = [1280, 720] }) => {
  const media = await navigator.mediaDevices.getUserMedia({ video: { width, height, frameRate: 30 }, audio: true });
  const peer = new RTCPeerConnection();
  for (const track of [...media.getTracks(), ...(twice ? media.getVideoTracks().map((one) => one.clone()) : [])]) {
    const sendEncodings = rids.map((rid, place) => ({ rid, scaleResolutionDownBy: 2 ** place }));
    const line = peer.addTransceiver(track, {
      direction: 'sendonly', streams: [media], ...(track.kind === 'video' && rids.length ? { sendEncodings } : {}) });
    const chosen = RTCRtpSender.getCapabilities(track.kind).codecs.filter(({ mimeType }) => types.includes(mimeType));
    if (chosen.length > 0) line.setCodecPreferences(chosen);
  }
  const sender = peer.getSenders().find((s) => s.track.kind === 'video');
  const parameters = sender.getParameters();
  parameters.degradationPreference = 'maintain-resolution';
  await sender.setParameters(parameters);
  await peer.setLocalDescription();
  const offer = peer.localDescription.sdp.replace(/a=mid:.*\\r\\n/g, (line) => [line, ...candidates.map((one) => one + '\\r\\n')].join(''));
  const response = await fetch(`/whip/${name}`, {
    method: 'POST', body: offer,
    headers: { 'Content-Type': 'application/sdp', Authorization: `Bearer ${key}` } });
  if (response.status !== 201) return { status: response.status, text: await response.text() };
  let sdp = await response.text();
  if (only) sdp = sdp.split('\\r\\n').filter((line) => !/^a=candidate/.test(line) || line.includes(` ${only} `)).join('\\r\\n');
  if (pauses) sdp = sdp.replace(/a=rtpmap:(\\d+) opus.*\\r\\n/, (line, number) => `${line}a=fmtp:${number} usedtx=1\\r\\n`);
  await peer.setRemoteDescription({ type: 'answer', sdp });
  window.peer = peer;
  window.session = response.headers.get('Location');
  return { status: response.status, session: window.session, etag: response.headers.get('ETag'), sdp, offer };
})"""

#: What its peer connection has sent.
SENT = """(async () => {
  const result = { state: window.peer.connectionState };
  for (const one of (await window.peer.getStats()).values()) {
    if (one.type === 'outbound-rtp') result[one.kind] = one;
    if (one.type === 'candidate-pair' && one.nominated) result.pair = one;
  }
  return result;
})()"""

OFFER = offers.offer("sendonly")
#: Codecs that repair others (RFC 2198, 5109, 8627).
REPAIRS = re.compile(r"(?im)^a=rtpmap:\d+ (red|ulpfec|flexfec[-0-9]*)/|^a=ssrc-group:FEC")
#: Offers of real clients.
OFFERS = pathlib.Path(__file__).parent.parent / "Fixtures" / "sdp"

#: How long flash and beep are watched: ten minutes in long runs. Reports put the clocks together within the first seconds.
LONG = os.environ.get("WEIR_FAULTS") == "long"
SYNC_SECONDS = 600 if LONG else 8


@pytest.fixture(scope="module")
def weir(start_shared, canary):
    weir = start_shared(
        "--webrtc", ":0", "--webrtc-ice-server", "stun:stun.example.net",
        "--webrtc-ice-server", "turn:ann:p4ss@turn.example.net:3478?transport=udp", "--publish-key", f"{canary}-all", listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    weir.key = f"{canary}-all"
    return weir


@pytest.fixture(scope="module")
def chromium():
    with browsers.Chromium(
            "--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream") as chromium:
        yield chromium


def ask(weir, method: str, path: str, body: str = "", **fields):
    """Status, fields and text of a response."""
    answer = weir.get(
        path, method=method, headers={name.replace("_", "-"): value for name, value in fields.items()},
        body=body.encode() or None)
    return answer.status, answer.headers, answer.text


def offer(weir, name: str, sdp: str = OFFER, key: str | None = None, **fields):
    return ask(weir, "POST", f"/whip/{name}", sdp, Content_Type="application/sdp",
               Authorization=f"Bearer {key or weir.key}", **fields)


def judge(movie, seconds: float) -> dict:
    """Packets of a recording: their times rise, it decodes without an error, and it is so long at least."""
    found = packets.probe(movie)
    for kind, some in found.items():
        times = [packet.dts for packet in some]
        assert times == sorted(set(times)), f"{kind}: times that do not rise"
        assert times[-1] - times[0] >= seconds, f"{kind}: {times[-1] - times[0]} s"
    errors, _ = packets.decode(movie)
    assert not errors, errors
    return found


def publish(browser, weir, name: str, **choices) -> dict:
    """Publishes from a page of the server, and returns what its peer was answered once the stream is live."""
    # Pages may not use a camera, but for the one that publishes. This is none.
    browser.open(weir.web + "/time")
    answer = browser.evaluate(f"{PUBLISH}({json.dumps(name)}, {json.dumps(weir.key)}, {json.dumps(choices)})")
    assert answer["status"] == 201, answer
    weir.wait_state(name, "live", seconds=40)
    return answer


def finish(browser) -> dict:
    """Ends what a page publishes, and returns what it had sent."""
    sent = browser.evaluate(SENT)
    browser.evaluate("fetch(window.session, { method: 'DELETE' }).then((r) => r.status)")
    browser.evaluate("window.peer.close()")
    return sent


def patch(weir, answer: dict, candidates: list[str]) -> tuple[int, str]:
    """Tells the server of further candidates (RFC 9725 §4.3.1): the status, and the text."""
    given = re.search(r"a=ice-ufrag:\S+\r\na=ice-pwd:\S+\r\n", answer["offer"])[0]
    fragment = "\r\n".join(["m=audio 9 UDP/TLS/RTP/SAVPF 0", "a=mid:0", *candidates, ""])
    status, _, text = ask(
        weir, "PATCH", answer["session"], given + fragment, If_Match=answer["etag"], Content_Type="application/trickle-ice-sdpfrag")
    return status, text


def end_camera(browser) -> None:
    """Ends what the camera sends, and waits until it is through. What is on its way, or asked for again, when a session ends is lost
    with it."""
    browser.evaluate("""(async () => {
      await window.peer.getSenders().find((s) => s.track?.kind === 'video').replaceTrack(null);
      const count = async () => [...(await window.peer.getStats()).values()]
        .filter((one) => one.type === 'outbound-rtp' && one.kind === 'video').reduce((sum, one) => sum + one.framesSent, 0);
      for (let before = -1, now = await count(); now !== before;) {
        await new Promise((done) => setTimeout(done, 500));
        [before, now] = [now, await count()];
      }
    })()""")
    time.sleep(1.5)  # real time: what is lost now is asked for again up to six times, and waited for up to 600 ms


def frames(weir, name: str) -> int:
    """Frames of video that have come."""
    return weir.stream(name)["received"]["videoFrames"]


def more(weir, name: str, count: int) -> None:
    """Waits until so many further frames have come."""
    until = frames(weir, name) + count
    weir.wait(lambda: frames(weir, name) >= until, 30, f"{count} frames of {name}")


def segments(weir, name: str, count: int = 3) -> hls.Media:
    """The first rendition's playlist, when it has so many segments."""
    def there():
        index = weir.get(f"/live/{name}/index.m3u8")
        if index.status != 200:
            return None
        whole = hls.parse_multivariant(index.text, f"{weir.web}/live/{name}/index.m3u8")
        url = whole.absolute(whole.variants[0].uri)
        media = hls.parse_media(weir.get(url).text, url)
        return media if len(media.present) >= count else None

    return weir.wait(there, 40, f"{count} segments of {name}")


def parts(playlist, skip: int = 1) -> list[list[list[float]]]:
    """Of each complete segment but the first ones the parts, of each part how long its samples last, in seconds."""
    found = []
    for segment in playlist.present[skip:]:
        movie = boxes.read_movie(http.fetch(playlist.absolute(segment.map)).good().body)
        track = next(track for track in movie.tracks.values() if track.kind == "video")
        media = boxes.read_segment(http.fetch(playlist.absolute(segment.uri)).good().body, movie)
        found.append([
            [sample.duration / track.timescale for run in fragment.runs if run.track == track.id for sample in run.samples]
            for fragment in media.fragments])
    return found


def lengths(media: hls.Media) -> list[float]:
    """Seconds of each segment up to the last frame of its video. How long that one is shown is the sender's doing: a browser that is
    held up sends nothing for a while."""
    return [sum(list(itertools.chain(*segment))[:-1]) for segment in parts(media, skip=0)]


#: Seconds that a segment may last where key frames are asked for: by the rules of the playlist, whose target is 2 s; and where nothing
#: holds the browser up that makes them.
MOST, MOST_IN_TIME = 2.499, 2.05


@pytest.fixture
def of_chromium(request, weir, chromium):
    """What Chromium publishes, once it has four segments: its name, the page's answer, and the playlist."""
    only, most = (request.node.callspec.params[name] for name in ("only", "most"))
    name = f"chromium{only}{'-in-time' if most < MOST else ''}"
    answer = publish(chromium, weir, name, only=only)
    return name, answer, segments(weir, name, 4)


@pytest.mark.parametrize(("only", "most"), [
    ("", MOST), ("tcp", MOST), pytest.param("", MOST_IN_TIME, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_what_chromium_publishes_is_live_and_recorded(weir, chromium, only, most, of_chromium):
    """Its fake camera and microphone in full size, by UDP and by TCP alone: each frame that it sent is recorded. Key frames are
    asked for, so that each segment begins with one and keeps to the target."""
    name, answer, media = of_chromium
    assert REPAIRS.search(answer["offer"]) and not REPAIRS.search(answer["sdp"]), answer
    durations = lengths(media) if most == MOST else [segment.duration for segment in media.present]
    assert media.target == 2 and max(durations) <= most, durations
    assert not any("key frame" in warning for warning in weir.stream(name)["warnings"]), weir.stream(name)["warnings"]
    live = packets.probe(f"{weir.web}/live/{name}/stream.mp4", "-read_intervals", "%+2")
    assert {"video", "audio"} <= set(live), live.keys()
    end_camera(chromium)
    sent = finish(chromium)
    found = judge(weir.only_recording(name), 5)
    assert sent["video"]["frameWidth"] == 1280, sent["video"]
    assert len(found["video"]) >= 0.98 * sent["video"]["framesSent"], (len(found["video"]), sent["video"]["framesSent"])


def test_vp9_and_g711_of_chromium_are_served(weir, chromium):
    """VP9 goes on as it is, G.711 is decoded and coded anew as AAC."""
    name = "vp9"
    answer = publish(chromium, weir, name, types=["video/VP9", "audio/PCMU"])
    assert "VP9/90000" in answer["sdp"] and "PCMU/8000" in answer["sdp"], answer["sdp"]
    media = segments(weir, name)
    assert max(lengths(media)) <= MOST, media
    index = weir.get(f"/live/{name}/index.m3u8").text
    assert re.search('CODECS="vp09\\.00\\.40\\.08[^"]*,mp4a\\.40\\.2"', index), index
    assert 'codecs="vp09.00.40.08' in weir.get(f"/live/{name}/manifest.mpd").text
    # It may have to wait for its turn.
    picture = weir.wait(lambda: (found := weir.get(f"/live/{name}/thumbnail.jpg")).status != 503 and found, 20, "a thumbnail")
    assert picture.status == 200 and picture.body[:2] == b"\xff\xd8", picture.status
    end_camera(chromium)
    sent = finish(chromium)
    found = judge(weir.only_recording(name), 5)
    assert len(found["video"]) >= 0.98 * sent["video"]["framesSent"], (len(found["video"]), sent["video"]["framesSent"])


def test_av1_of_chromium_is_served(weir, chromium):
    name = "av1"
    answer = publish(chromium, weir, name, types=["video/AV1"])
    assert "AV1/90000" in answer["sdp"], answer["sdp"]
    media = segments(weir, name)
    assert max(lengths(media)) <= MOST, media
    assert re.search('CODECS="av01\\.0\\.', weir.get(f"/live/{name}/index.m3u8").text)
    end_camera(chromium)
    sent = finish(chromium)
    found = judge(weir.only_recording(name), 5)
    assert len(found["video"]) >= 0.98 * sent["video"]["framesSent"], (len(found["video"]), sent["video"]["framesSent"])


def publish_through(start_shared, canary, chromium, name: str, count: int, tmp_path, *, later: relay.Path | None = None, **network):
    """Chromium's camera through a relay to a server of its own, for so many frames: the server, the relay, its answer, what Chromium
    sent, and the frames that the server told as lost. `later`: how the network is in both directions, once the stream is live. The
    datagrams and the log are kept in the test's folder."""
    port = free_port()
    between = relay.Relay(port, **network)
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{between.port}", "--publish-key", f"{canary}-all",
        "--log-level", "debug", listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    weir.key = f"{canary}-all"
    told = {}
    try:
        told["answer"] = answer = publish(chromium, weir, name)
        if later:
            between.forth = between.back = later
        more(weir, name, count)
        end_camera(chromium)
        told["stream"] = weir.stream(name)
        told["sent"] = sent = finish(chromium)
    finally:
        between.stop()
        between.write(tmp_path / "datagrams.txt")
        (tmp_path / "weir.log").write_text(weir.text())
        (tmp_path / "told.json").write_text(json.dumps(told, indent=1))
    received = told["stream"]["received"]
    return weir, between, answer, sent, received["lostVideoFrames"] + received["earlyVideoFrames"]


@pytest.fixture
def lossy(start_shared, canary, chromium, tmp_path):
    """What Chromium published through a network that loses packets in either direction."""
    path = relay.Path(delay=0.025)
    return publish_through(
        start_shared, canary, chromium, "lossy", 240, tmp_path, forth=path, back=path, later=relay.Path(delay=0.025, loss=0.05))


def test_a_network_that_loses_packets_costs_no_frames(lossy):
    """5 % of the packets in either direction, with a round trip of 50 ms: what is lost is asked for again, in time. Of the first packet
    of all no number shows that it is missing: what that costs is judged below, and here none is lost before the stream is live."""
    weir, network, answer, sent, lost = lossy
    assert network.lost >= 50, network.lost
    found = judge(weir.only_recording("lossy"), 7)
    # What browsers send to probe the network is none of the video: lost, it is no lost frame.
    assert "rtx/90000" in answer["sdp"] and sent["video"]["retransmittedPacketsSent"] > 0, (answer["sdp"], sent["video"])
    # Each is there or told, but for the last one: nothing comes behind it that shows that a part of it is missing.
    assert 0 <= sent["video"]["framesSent"] - len(found["video"]) - lost <= 1, (len(found["video"]), lost, sent["video"]["framesSent"])
    assert len(found["video"]) >= 0.98 * sent["video"]["framesSent"], (len(found["video"]), sent["video"]["framesSent"])


@pytest.mark.parametrize(("comes", "frames"), [
    (True, 0), (False, 60), pytest.param(False, 12, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_a_beginning_that_is_lost_is_told_and_comes_again_at_once(start_shared, canary, chromium, tmp_path, comes, frames):
    """The first packet of the video, which has its parameter sets. No number shows that it is missing, and no frame can be shown
    without it: it and a key frame are asked for at once. Where it does not come, the frames before the key frame are told as lost.
    `frames`: how many those may be, where the browser is held up, and where nothing else runs. Chromium sometimes sends the key
    frame alone, though it is asked for the packet, too, each 60 ms: then it is as where the packet is lost once more."""
    swallowed: list[bytes] = []
    chromium.open("about:blank")
    offered = chromium.evaluate("""(async () => {
      const peer = new RTCPeerConnection();
      for (const kind of ['audio', 'video']) peer.addTransceiver(kind);
      return (await peer.createOffer()).sdp;
    })()""")
    # By it Chromium probes the network before there is a frame.
    others = {int(kind) for kind in re.findall(r"a=rtpmap:(\d+) (?:rtx|opus)/", offered)}
    repairs = {int(kind) for kind in re.findall(r"a=rtpmap:(\d+) rtx/", offered)}
    until = 0.0

    def is_first_of_video(datagram: bytes) -> bool:
        nonlocal until
        # RTP, and no RTCP.
        if not 128 <= datagram[0] < 192 or 192 <= datagram[1] < 224:
            return False
        if datagram[1] & 127 in others:
            return not comes and datagram[1] & 127 in repairs and time.monotonic() < until
        if swallowed:
            return False
        swallowed.append(datagram)
        until = time.monotonic() + 0.3
        return True

    path, stream = relay.Path(delay=0.025), f"beheaded-{comes}-{frames}"
    weir, network, _, sent, lost = publish_through(
        start_shared, canary, chromium, stream, 100, tmp_path, forth=path, back=path, swallows=is_first_of_video)
    assert swallowed and (network.lost == 1 or not comes), network.lost
    # Again it has its number in front (RFC 4588 §4).
    came = any(to_server and not lost and head[1] & 127 in repairs and 128 <= head[0] < 192 and abs(size - len(swallowed[0])) <= 8
               for _, to_server, size, lost, head in network.noted)
    if comes and not came:
        assert sent["video"]["nackCount"] >= 1, "the packet was asked for"
        comes, frames = False, 60
    found = judge(weir.only_recording(stream), 3)
    # The rest of the frame, two ways of 25 ms, a look of the server each 20 ms, and the encoder. Half a second would be 15 frames.
    assert (0 if comes else 1) <= lost <= frames, (lost, sent["video"]["framesSent"])
    assert 0 <= sent["video"]["framesSent"] - len(found["video"]) - lost <= 1, (len(found["video"]), lost, sent["video"]["framesSent"])


def test_a_server_that_stands_still_for_a_second_loses_no_frame(start_shared, canary, chromium):
    """As on a machine that is overloaded: what has waited in the socket is not late, and what found no room there is asked for again."""
    weir = start_shared("--webrtc", ":0", "--publish-key", f"{canary}-all", listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    weir.key = f"{canary}-all"
    publish(chromium, weir, "stalled")
    more(weir, "stalled", 60)
    weir.process.send_signal(signal.SIGSTOP)
    time.sleep(1)  # real time: the halt that is judged
    weir.process.send_signal(signal.SIGCONT)
    more(weir, "stalled", 90)
    end_camera(chromium)
    stream = weir.stream("stalled")
    sent = finish(chromium)
    assert stream["received"]["lostVideoFrames"] == 0 and not stream["warnings"], stream
    found = judge(weir.only_recording("stalled"), 5)
    assert 0 <= sent["video"]["framesSent"] - len(found["video"]) <= 1, (len(found["video"]), sent["video"]["framesSent"])


@pytest.fixture(scope="module")
def firefox():
    with browsers.Firefox(**{
        "media.navigator.streams.fake": True, "media.navigator.permission.disabled": True,
        "media.getusermedia.insecure.enabled": True, "media.peerconnection.ice.loopback": True,
    }) as firefox:
        yield firefox


@pytest.fixture
def vp9_of_firefox(weir, firefox):
    """A stream's name, and its playlist with the first segment."""
    answer = publish(firefox, weir, "firefox")
    assert "VP9/90000" in answer["sdp"], answer["sdp"]
    assert REPAIRS.search(answer["offer"]) and not REPAIRS.search(answer["sdp"]), answer
    return "firefox", segments(weir, "firefox", 1)


def test_what_firefox_publishes_in_vp9_plays_in_chromium(weir, firefox, vp9_of_firefox, chromium):
    """Firefox has no H.264. Its VP9 is taken, played by the watch page in Chromium, read as DASH, and recorded."""
    name, media = vp9_of_firefox
    assert max(lengths(media)) <= MOST, media
    chromium.open(f"{weir.web}/watch/{name}")
    chromium.wait("document.querySelector('#stage')?.dataset.phase === 'playing'")
    frames = "document.querySelector('#video').getVideoPlaybackQuality().totalVideoFrames"
    before = chromium.evaluate(frames)
    chromium.wait(f"{frames} > {before + 30}")
    chromium.open("about:blank")
    end_camera(firefox)
    received = weir.stream(name)["received"]
    lost = received["lostVideoFrames"] + received["earlyVideoFrames"]
    sent = finish(firefox)
    # When the stream has ended: of one that goes on, ffmpeg 5.1 reads a segment again and again where the next one begins within
    # the same second and is not there yet. A segment may begin without a key frame, where the browser made it late: a decoder
    # then tells that it lacks references.
    weir.wait(lambda: 'type="static"' in weir.get(f"/live/{name}/manifest.mpd").body.decode(), 5, "a manifest that has ended")
    periods = weir.get(f"/live/{name}/manifest.mpd").body.decode().count("<Period")
    dash = packets.probe(f"{weir.web}/live/{name}/manifest.mpd", "-v", "fatal")
    # A browser that is held up may send its sound more than two seconds late: then a file with it begins.
    *before, last = weir.whole_recordings(name)
    assert len(before) <= 1, before
    videos = [packets.probe(file)["video"] for file in before] + [judge(last, 5)["video"]]
    # Those of the recording, one after the other.
    whole, read = [packet.digest for video in videos for packet in video], [packet.digest for packet in dash["video"]]
    # ffmpeg reads one Period. Another one begins where Firefox changes its size or is held up, which may be just before the end.
    assert len(read) > (5 if periods == 1 else 0), (len(read), len(whole), periods)
    assert read == whole[(begin := whole.index(read[0])):begin + len(read)], (len(read), len(whole), periods)
    assert len(whole) + lost >= 0.95 * sent["video"]["framesSent"], (len(whole), lost, sent["video"]["framesSent"])
    # A browser that is held up answers too late.
    assert lost <= 0.3 * sent["video"]["framesSent"], (lost, sent["video"]["framesSent"])


def variants(weir, name: str) -> dict[str, str]:
    """The renditions of video that one playlist offers, and their sizes. Empty before it is there."""
    index = weir.get(f"/live/{name}/index.m3u8")
    if index.status != 200:
        return {}
    whole = hls.parse_multivariant(index.text, f"{weir.web}/live/{name}/index.m3u8")
    return {whole.absolute(variant.uri): variant.attributes.get("RESOLUTION", "") for variant in whole.variants}


def videos(weir, name: str) -> list[str]:
    return [track["rendition"] for track in weir.stream(name)["tracks"] if track["kind"] == "video"]


def recorded(weir, name: str) -> list:
    """The files of a stream's recordings, oldest first: another one where its tracks have changed. Two of one second have names that
    are sorted otherwise."""
    weir.wait(
        lambda: (found := weir.recordings_of(name)) and all(one["state"] == "completed" for one in found), 40,
        f"the recordings of {name}")
    return [weir.recordings / name / one["file"] for one in sorted(weir.recordings_of(name), key=lambda one: one["startedAt"])]


def pieces(url: str, sequences: list[int], path) -> list[float]:
    """Some segments of a rendition in one file, decoded by ffmpeg without a word. Returns the times of their frames."""
    media = hls.parse_media(http.fetch(url).good().text, url)
    found = [segment for segment in media.present if segment.sequence in sequences]
    assert [segment.sequence for segment in found] == sequences, (sequences, media.text)
    names = [found[0].map, *[segment.uri for segment in found]]
    path.write_bytes(b"".join(http.fetch(media.absolute(one)).good().body for one in names))
    errors, _ = packets.decode(path)
    assert not errors, (url, errors)
    video = packets.probe(path)["video"]
    assert video[0].is_key, url
    return [float(packet.pts) for packet in video]


def test_two_videos_of_a_page_are_two_renditions(weir, chromium, tmp_path):
    """Two sections of one offer: two tracks, each with its own playlist, and both in the recording."""
    name = "two-videos"
    answer = publish(chromium, weir, name, twice=True, size=[640, 360])
    assert answer["sdp"].count("m=video 9 ") == 2, answer["sdp"]
    weir.wait(lambda: videos(weir, name) == ["video", "video-2"], 20, "two videos")
    address = f"{weir.web}/live/{name}/index.m3u8"

    def second():
        found = hls.parse_multivariant(http.fetch(f"{address}?video=2").good().text, address)
        url = found.absolute(found.variants[0].uri)
        media = hls.parse_media(http.fetch(url).good().text, url)
        return url if len(media.present) >= 2 else None

    urls = [hls.first_playlist(address), weir.wait(second, 40, "two segments of the second video")]
    assert [url.split("/")[-2] for url in urls] == ["video", "video-2"], urls
    for place, url in enumerate(urls):
        media = hls.parse_media(http.fetch(url).good().text, url)
        times = pieces(url, [segment.sequence for segment in media.present[-2:]], tmp_path / f"{place}.mp4")
        assert len(times) >= 30 and times == sorted(set(times)), times
    finish(chromium)
    kinds = tools.output(
        tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_type", "-of", "csv=p=0", weir.only_recording(name))
    assert sorted(line.rstrip(",") for line in kinds.decode().split()) == ["audio", "video", "video"], kinds


def test_encodings_of_simulcast_are_renditions_of_one_picture(weir, chromium, tmp_path):
    """Three sizes that Chromium sends are variants of one playlist. Each is decoded by itself, with key frames at the same times."""
    name = "simulcast"
    answer = publish(chromium, weir, name, rids=["h", "m", "l"], size=[960, 540])
    assert "a=simulcast:recv h;m;l\r\n" in answer["sdp"], answer["sdp"]
    urls = weir.wait(lambda: (found := variants(weir, name)) and len(found) == 3 and found, 40, "three variants")
    widths = {url.split("/")[-2]: int(size.split("x")[0]) for url, size in urls.items()}
    assert widths["video"] == 960 and widths["video-2"] == 480 and 200 <= widths["video-3"] <= 240, widths

    def common() -> list[int] | None:
        """Two segments that all have."""
        found = [{one.sequence for one in hls.parse_media(http.fetch(url).good().text, url).present} for url in urls]
        newest = max(set.intersection(*found), default=0)
        return [newest - 1, newest] if all(newest - 1 in one for one in found) else None

    sequences = weir.wait(common, 20, "two segments of all")
    times = [pieces(url, sequences, tmp_path / f"{place}.mp4") for place, url in enumerate(urls)]
    assert all(len(one) >= 30 for one in times), [len(one) for one in times]
    assert max(one[0] for one in times) - min(one[0] for one in times) < 0.0001, [one[0] for one in times]
    # Frames of one time have one time in all: none of a smaller one lies beside the grid of the largest.
    largest = set(round(time * 90000) for time in times[0])
    assert all(len(largest & set(round(time * 90000) for time in one)) >= 0.8 * len(one) for one in times), times
    finish(chromium)
    kinds = [
        sorted(line.rstrip(",") for line in tools.output(
            tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_type,width", "-of", "csv=p=0", movie).decode().split())
        for movie in recorded(weir, name)]
    assert sorted(["audio", *[f"video,{width}" for width in widths.values()]]) in kinds, kinds


def test_an_encoding_that_is_turned_off_leaves_and_the_others_go_on(weir, chromium):
    """The largest one, as browsers do it in narrow networks; and it comes back."""
    name = "layers"
    publish(chromium, weir, name, rids=["h", "m", "l"], size=[960, 540])
    weir.wait(lambda: videos(weir, name) == ["video", "video-2", "video-3"], 20, "three videos")
    urls = weir.wait(lambda: (found := variants(weir, name)) and len(found) == 3 and list(found), 40, "three variants")
    turn = """(async (active) => {
      const sender = window.peer.getSenders().find((s) => s.track.kind === 'video');
      const parameters = sender.getParameters();
      parameters.encodings[0].active = active;
      await sender.setParameters(parameters);
    })"""
    chromium.evaluate(f"{turn}(false)")
    weir.wait(lambda: videos(weir, name) == ["video-2", "video-3"], 30, "two videos")
    url = next(url for url in urls if url.split("/")[-2] == "video-3")
    before = hls.parse_media(http.fetch(url).good().text, url).present[-1].sequence
    later = weir.wait(
        lambda: (media := hls.parse_media(http.fetch(url).good().text, url)).present[-1].sequence >= before + 2 and media, 30,
        "the others' segments")
    assert max(segment.duration for segment in later.present if segment.sequence > before) <= MOST, later.text
    assert weir.stream(name)["state"] == "live"
    chromium.evaluate(f"{turn}(true)")
    weir.wait(lambda: videos(weir, name) == ["video", "video-2", "video-3"], 30, "three videos again")
    finish(chromium)
    for movie in recorded(weir, name):
        errors, _ = packets.decode(movie)
        assert not errors, (movie, errors)


@pytest.mark.parametrize("role", ["", "dtls_active"])
def test_what_ffmpeg_publishes_is_recorded(weir, role):
    """ffmpeg's own muxer, which waits for the first message of DTLS unless it is told to send it."""
    name = f"ffmpeg{role}".replace("_", "-")
    client = publishers.whip(
        "h264-30", f"{weir.web}/whip/{name}", weir.key, seconds=5, options=("-whip_flags", role) if role else ())
    code, log = client.outcome(40)
    assert code == 0, log
    found = judge(weir.only_recording(name), 4)
    assert len(found["video"]) >= 145, len(found["video"])


def apart(movie) -> list[float]:
    """Seconds from each flash of the test pattern (720p) to its beep."""
    levels = tools.output(
        tools.FFMPEG, "-v", "error", "-i", movie, "-an", "-vf", "crop=8:8:640:240,scale=1:1:flags=area,format=gray", "-vsync",
        "passthrough", "-f", "rawvideo", "-", timeout=SYNC_SECONDS + 60)
    times = [float(packet.pts) for packet in packets.probe(movie)["video"]]
    assert len(times) == len(levels), (len(times), len(levels))
    begun = tools.run(
        tools.FFPROBE, "-v", "error", "-select_streams", "a", "-read_intervals", "%+1", "-show_entries", "frame=pts_time", "-of",
        "csv=p=0", movie).stdout.split()[0]
    samples = array.array("h", tools.output(tools.FFMPEG, "-v", "error", "-i", movie, "-vn", "-ac", "1", "-f", "s16le", "-"))
    beeps, last = [], -48000
    for at, value in enumerate(samples):
        if abs(value) > 3000:
            if at - last > 24000:
                beeps.append(float(begun.rstrip(",")) + at / 48000)
            last = at
    flashes = [times[at] for at in range(1, len(levels)) if levels[at] > 128 >= levels[at - 1]]
    return [beep - flash for flash in flashes for beep in beeps if abs(beep - flash) < 0.3]


@pytest.mark.encoder
def test_flash_and_beep_stay_together(weir, start, tmp_path, record_property):
    """The server's own pattern, published by ffmpeg: two clocks of RTP, which reports put together."""
    if LONG:
        demo = start("--test-pattern", "demo", "--no-record")
        demo.wait_state("demo", "live")
        film = ["-i", f"{demo.web}/live/demo/stream.mp4"]
    else:
        film = ["-re", "-i", pattern.film(tmp_path / "pattern.mp4", SYNC_SECONDS, "1280:720", "-c:a", "aac")]
    client = publishers.Publisher([
        tools.new_ffmpeg(), "-v", "warning", "-nostdin", "-t", str(SYNC_SECONDS), *map(str, film),
        "-c:v", "copy", "-c:a", "libopus", "-ar", "48000", "-ac", "2", "-authorization", weir.key, "-f", "whip",
        f"{weir.web}/whip/flashes"])
    code, log = client.outcome(SYNC_SECONDS + 40)
    assert code == 0, log
    distances = apart(weir.only_recording("flashes"))
    record_property("figure", f"WebRTC, flash and beep within {SYNC_SECONDS} s: {1000 * min(distances):.1f} to {1000 * max(distances):.1f} ms apart")
    # One flash is at the beginning, where there is no frame before it.
    assert len(distances) >= (0.9 * SYNC_SECONDS if LONG else SYNC_SECONDS - 1), len(distances)
    assert max(abs(distance) for distance in distances) <= 0.020, distances


def test_an_offer_is_answered_by_the_rules(weir):
    """RFC 9725 §4.2 and §4.3: the answer, its address and its tag; changes under conditions; the end."""
    status, fields, answer = offer(weir, "rules")
    assert status == 201 and fields["content-type"] == "application/sdp", (status, answer)
    session, tag = fields["location"], fields["etag"]
    assert re.fullmatch(r"/whip/rules/[0-9a-f]{32}", session) and re.fullmatch('"[^"]+"', tag)
    links = fields["link"]
    assert '<stun:stun.example.net>; rel="ice-server"' in links
    assert '<turn:turn.example.net:3478?transport=udp>; rel="ice-server"; username="ann"; credential="p4ss"' in links
    lines = answer.split("\r\n")
    assert [line for line in lines if line.startswith("m=")] == [
        "m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96"]
    for line in ("a=ice-lite", "a=group:BUNDLE 0 1", "a=rtcp-mux", "a=recvonly", "a=setup:passive", "a=mid:1"):
        assert line in lines, line
    assert {" udp ", " tcp "} <= {found[0] for found in re.findall("( udp | tcp )(.*typ host)", answer)}
    fragment = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n" \
        "a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n"
    kind = {"Content_Type": "application/trickle-ice-sdpfrag"}
    assert ask(weir, "PATCH", session, fragment, **kind)[0] == 428
    assert ask(weir, "PATCH", session, fragment, If_Match='"other"', **kind)[0] == 412
    assert ask(weir, "PATCH", session, fragment, If_Match=tag, Content_Type="text/plain")[0] == 415
    assert ask(weir, "PATCH", session, fragment, If_Match=tag, **kind)[0] == 204
    status, again, text = ask(weir, "PATCH", session, fragment.replace("abcd", "efgh"), If_Match="*", **kind)
    assert status == 200 and again["etag"] != tag and "a=ice-ufrag:" in text and "a=ice-pwd:" in text
    status, fields, _ = ask(weir, "OPTIONS", "/whip/rules")
    assert status == 204 and fields["accept-post"] == "application/sdp" and fields["allow"] == "POST, OPTIONS"
    assert ask(weir, "GET", "/whip/rules")[0] == 405
    assert ask(weir, "DELETE", session)[0] == 200
    assert ask(weir, "DELETE", session)[0] == 404


def test_silence_that_is_not_sent_leaves_no_hole(weir, chromium):
    """Chromium sends a packet now and then while its microphone is off, in place of fifty a second. The recording has as much audio
    as video, and the silence in its place."""
    name = "pauses"
    publish(chromium, weir, name, pauses=True, size=[640, 360])
    microphone = "window.peer.getSenders().find((s) => s.track.kind === 'audio').track.enabled"
    more(weir, name, 60)
    chromium.evaluate(f"void ({microphone} = false)")
    first = chromium.evaluate(SENT)["audio"]
    time.sleep(3)  # real time: the silence that is judged
    last = chromium.evaluate(SENT)["audio"]
    chromium.evaluate(f"void ({microphone} = true)")
    # By the clock of the browser's own reports.
    count, muted = last["packetsSent"] - first["packetsSent"], (last["timestamp"] - first["timestamp"]) / 1000
    more(weir, name, 60)
    received = weir.stream(name)["received"]
    finish(chromium)
    assert count <= 0.3 * 50 * muted, f"nothing is left out: {count} packets in {muted} s"
    assert received["lostAudioFrames"] == 0 and weir.stream(name)["warnings"] == [], weir.stream(name)
    movie = weir.only_recording(name)
    found = judge(movie, 6)
    times = [float(packet.dts) for packet in found["audio"]]
    steps = [after - earlier for earlier, after in itertools.pairwise(times)]
    assert max(abs(step - 0.020) for step in steps) < 0.001, max(steps)
    assert abs(times[-1] - float(found["video"][-1].dts)) < 0.1, (times[-1], found["video"][-1])
    samples = array.array("h", tools.output(tools.FFMPEG, "-v", "error", "-i", movie, "-vn", "-ac", "1", "-ar", "8000", "-f", "s16le", "-"))
    loud = [at / 8000 for at, value in enumerate(samples) if abs(value) > 1000]
    # The fake microphone beeps twice a second.
    quiet = max(after - earlier for earlier, after in itertools.pairwise(loud))
    assert muted - 0.2 <= quiet <= muted + 1.1, (quiet, muted)


def test_candidates_of_publishers_are_never_contacted(weir, chromium):
    """Those of an offer and of a change, by UDP and by TCP: the server answers where it is asked, and nowhere else."""
    name = "elsewhere"
    with Trap("127.0.5.1") as first, Trap("127.0.5.2") as second:
        answer = publish(chromium, weir, name, size=[640, 360], candidates=first.candidates)
        assert all(answer["offer"].count(f"{line}\r\n") == 2 for line in first.candidates), answer["offer"]
        more(weir, name, 60)
        status, text = patch(weir, answer, second.candidates)
        assert status == 204, text
        more(weir, name, 60)
        finish(chromium)
        assert first.caught() == second.caught() == []
        assert first.works() and second.works()


@pytest.mark.parametrize("client", sorted(path.stem for path in OFFERS.glob("*.sdp")))
def test_redundancy_is_not_asked_for(weir, client):
    """Of what real clients offer, all that browsers have of it. What is lost is asked for again instead."""
    text = (OFFERS / f"{client}.sdp").read_bytes().decode()
    end = "\r\n" if "\r\n" in text else "\n"
    if client.startswith("chromium"):
        # It offers this by a switch alone.
        text = re.sub(r"(?m)^(m=video \d+ \S+ .*?)(\r?)$", r"\1 49\2", text, count=1) + "".join(
            f"{line}{end}" for line in ("a=rtpmap:49 flexfec-03/90000", "a=fmtp:49 repair-window=10000000"))
        assert {found.lower() for found in REPAIRS.findall(text)} == {"red", "ulpfec", "flexfec-03"}
    status, fields, answer = offer(weir, f"of-{client.replace('.', '-')}", text)
    assert status == 201, answer
    assert REPAIRS.search(answer) is None, answer
    taken = {kind for line in re.findall(r"(?m)^m=\S+ [1-9]\d* \S+ (.*)$", answer) for kind in line.split()}
    assert taken and taken == set(re.findall(r"(?m)^a=rtpmap:(\d+) ", answer)) | (taken & {"0", "8"}), answer
    assert ask(weir, "DELETE", fields["location"])[0] == 200


def test_vp8_of_chromium_is_encoded_anew(weir, chromium):
    """Decoded and coded as H.264 in its size, in segments that keep to the target. Each frame is there, or told as lost. Chromium's
    encoder is too slow for a larger size."""
    name = "vp8"
    answer = publish(chromium, weir, name, types=["video/VP8"], size=[640, 360])
    assert "VP8/90000" in answer["sdp"], answer["sdp"]
    media = segments(weir, name)
    assert max(lengths(media)) <= MOST, media
    assert re.search('CODECS="avc1\\.', weir.get(f"/live/{name}/index.m3u8").text)
    end_camera(chromium)
    received = weir.stream(name)["received"]
    lost = received["lostVideoFrames"] + received["earlyVideoFrames"]
    sent = finish(chromium)
    movie = weir.only_recording(name)
    found = judge(movie, 4)
    assert len(found["video"]) >= 0.95 * (sent["video"]["framesSent"] - lost), (len(found["video"]), sent["video"]["framesSent"], lost)
    shape = tools.output(
        tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0", movie)
    assert shape.decode().strip() == "h264,640,360", shape


def test_where_nothing_may_be_encoded_an_offer_of_vp8_alone_names_what_is_taken(start_shared):
    weir = start_shared(
        "--webrtc", ":0", "--no-record", "--webrtc-encoding", "off", "--publish-key", "a-key-of-vp8", listeners=("http", "rtmp", "webrtc"))
    status, _, text = offer(weir, "vp8", offers.offer("sendonly", "VP8"), key="a-key-of-vp8")
    assert (status, json.loads(text)["code"]) == (422, "offer-not-taken"), text
    assert "vp8 offered, H.264 (packetization-mode 0 or 1), VP9, AV1 and HEVC (Main or Main 10, one stream in decoding order) taken" in text, text
    status, fields, _ = offer(weir, "vp8", key="a-key-of-vp8")
    assert status == 201 and ask(weir, "DELETE", fields["location"])[0] == 200


@pytest.mark.parametrize(("change", "status", "code"), [
    (lambda sdp: sdp.replace("H264", "H266"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("a=sendonly", "a=recvonly"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("a=fingerprint:", "a=x:"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("BUNDLE 0 1", "BUNDLE 0"), 422, "offer-not-taken"),
    (lambda sdp: "hello", 400, "bad-request"),
    (lambda sdp: sdp + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 1000, 400, "bad-request"),
    (lambda sdp: sdp + "a=x\r\n" * 5000, 400, "bad-request"),
    (lambda sdp: sdp + "a=x:" + "y" * (1 << 20), 413, "body-too-large"),
])
def test_an_offer_that_cannot_be_taken_is_refused_with_the_reason(weir, change, status, code):
    found, _, text = offer(weir, "refused", change(OFFER))
    assert (found, json.loads(text)["code"]) == (status, code), text
    assert weir.stream("refused") is None


def test_a_publisher_without_the_key_is_refused(weir):
    status, fields, _ = offer(weir, "keyless", key="wrong")
    assert status == 401 and fields["www-authenticate"].startswith("Bearer")
    assert offer(weir, "keyless", Origin="https://other.example")[0] == 403
    assert ask(weir, "POST", "/whip/keyless", "x", Content_Type="text/plain")[0] == 415


def test_pages_of_named_origins_publish_with_a_key_and_others_stay_out(start):
    studio, key = "https://studio.example", "a-key-of-a-studio"
    weir = start("--webrtc", ":0", "--no-record", "--cors", studio, "--cors", "*", "--publish-key", f"cam={key}",
                 "--public-url", "https://www.example.com/media", listeners=("http", "rtmp", "webrtc"))

    def preflight(path: str, origin: str, method: str):
        status, fields, _ = ask(weir, "OPTIONS", path, Origin=origin, Access_Control_Request_Method=method,
                                Access_Control_Request_Headers="authorization,content-type")
        assert status == 204
        return {name: value for name, value in fields.items() if name.startswith("access-control-")}

    allowed = preflight("/whip/cam", studio, "POST")
    assert allowed["access-control-allow-origin"] == studio and "POST" in allowed["access-control-allow-methods"]
    assert {"Authorization", "Content-Type", "If-Match"} <= set(allowed["access-control-allow-headers"].split(", "))
    for origin in ("https://other.example", "null", "http://studio.example"):
        assert preflight("/whip/cam", origin, "POST") == {}
        status, fields, text = offer(weir, "cam", key=key, Origin=origin)
        assert (status, json.loads(text)["code"]) == (403, "other-origin") and "access-control-allow-origin" not in fields, origin
    for wrong in ({}, {"Authorization": "Bearer another"}):
        answer = weir.get("/whip/cam", method="POST", body=OFFER.encode(),
                          headers={"Content-Type": "application/sdp", "Origin": studio, **wrong})
        assert answer.status == 401 and answer.headers["access-control-allow-origin"] == studio, answer.text
    # Below the path of the public address, and without it.
    for start_of_path in ("", "/media"):
        status, fields, _ = ask(weir, "POST", f"{start_of_path}/whip/cam", OFFER, Content_Type="application/sdp",
                                Authorization=f"Bearer {key}", Origin=studio)
        session = fields["location"]
        assert status == 201 and re.fullmatch(r"/media/whip/cam/[0-9a-f]{32}", session), session
        assert {"Location", "ETag", "Link"} <= set(fields["access-control-expose-headers"].split(", "))
        assert "DELETE" in preflight(session, studio, "DELETE")["access-control-allow-methods"]
        assert ask(weir, "DELETE", session, Origin="https://other.example")[0] == 403
        assert ask(weir, "DELETE", session, Origin=studio)[0] == 200


def test_where_nobody_needs_a_key_pages_of_named_origins_do(start):
    studio = "https://studio.example"
    weir = start("--webrtc", ":0", "--no-record", "--cors", studio, "--publishers", "open", listeners=("http", "rtmp", "webrtc"))
    for wrong in ({}, {"Authorization": "Bearer anything"}):
        answer = weir.get("/whip/cam", method="POST", body=OFFER.encode(),
                          headers={"Content-Type": "application/sdp", "Origin": studio, **wrong})
        assert (answer.status, answer.json["code"]) == (401, "publish-key-wrong"), answer.text
    answer = weir.get("/whip/cam", method="POST", body=OFFER.encode(), headers={"Content-Type": "application/sdp"})
    assert answer.status == 201, "programs need none"
    assert ask(weir, "DELETE", answer.headers["location"])[0] == 200


def test_strangers_get_no_answer(weir):
    """Datagrams of no session, forged ones, and connections by TCP that say nothing: no byte comes back."""
    host, port = weir.addresses["webrtc"].removeprefix("webrtc://").rsplit(":", 1)
    _, fields, answer = offer(weir, "forged")
    user = re.search("a=ice-ufrag:(.*)\r", answer)[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(0.5)
        one.connect((host, int(port)))
        for datagram in (b"", b"\0", binding("nobody:abcd"), binding(f"{user}:abcd"), b"\x16\xfe\xff" + b"\0" * 60,
                         b"\x80\x60" + b"\0" * 60, os.urandom(1400), b"\x80" + b"\xff" * 2000):
            one.send(datagram)
        with pytest.raises(TimeoutError):
            one.recv(2048)
    with socket.create_connection((host, int(port))) as one:
        one.settimeout(30)
        one.sendall(b"\xff\xff" + b"\0" * 100)
        assert one.recv(100) == b""
    assert ask(weir, "DELETE", fields["location"])[0] == 200


def test_abandoned_sessions_are_bounded(weir):
    """An address has 32 sessions that are not connected; the next offer is told to wait."""
    begun, refused = [], None
    for number in range(40):
        status, fields, _ = offer(weir, f"abandoned{number}")
        if status != 201:
            refused = status, fields["retry-after"]
            break
        begun.append(fields["location"])
    assert refused == (429, "5") and len(begun) <= 32, (refused, len(begun))
    for session in begun:
        assert ask(weir, "DELETE", session)[0] == 200
