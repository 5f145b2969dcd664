"""Publishers by WebRTC (WHIP, RFC 9725): Chromium with its fake devices, ffmpeg's own muxer, and clients that may not."""

import contextlib
import json
import os
import re
import socket
import struct
import time

import pytest

from harness import packets, publishers, sources, tools

#: What a page does to publish: devices, an offer, and the answer of WHIP. `only` leaves some candidates of the answer.
PUBLISH = """(async (name, key, only) => {
  const media = await navigator.mediaDevices.getUserMedia(
    { video: { width: 1280, height: 720, frameRate: 30 }, audio: true });
  const peer = new RTCPeerConnection();
  for (const track of media.getTracks()) {
    peer.addTransceiver(track, { direction: 'sendonly', streams: [media] });
  }
  const sender = peer.getSenders().find((s) => s.track.kind === 'video');
  const parameters = sender.getParameters();
  parameters.degradationPreference = 'maintain-resolution';
  await sender.setParameters(parameters);
  await peer.setLocalDescription();
  const response = await fetch(`/whip/${name}`, {
    method: 'POST', body: peer.localDescription.sdp,
    headers: { 'Content-Type': 'application/sdp', Authorization: `Bearer ${key}` } });
  if (response.status !== 201) return { status: response.status, text: await response.text() };
  let sdp = await response.text();
  if (only) sdp = sdp.split('\\r\\n').filter((line) => !/^a=candidate/.test(line) || line.includes(` ${only} `)).join('\\r\\n');
  await peer.setRemoteDescription({ type: 'answer', sdp });
  window.peer = peer;
  window.session = response.headers.get('Location');
  return { status: response.status, session: window.session, etag: response.headers.get('ETag'), sdp };
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

OFFER = "\r\n".join("""v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0 1
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=ice-ufrag:abcd
a=ice-pwd:0123456789abcdefghijklmn
a=fingerprint:sha-256 FINGERPRINT
a=setup:actpass
a=mid:0
a=sendonly
a=rtcp-mux
a=rtpmap:111 opus/48000/2
m=video 9 UDP/TLS/RTP/SAVPF 96
c=IN IP4 0.0.0.0
a=ice-ufrag:abcd
a=ice-pwd:0123456789abcdefghijklmn
a=fingerprint:sha-256 FINGERPRINT
a=setup:actpass
a=mid:1
a=sendonly
a=rtcp-mux
a=rtpmap:96 CODEC/90000
a=fmtp:96 packetization-mode=1;profile-level-id=42e01f
""".replace("FINGERPRINT", ":".join(["AB"] * 32)).split("\n"))


def free_port() -> int:
    """A port that nobody has, neither by UDP nor by TCP."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.socket() as streams:
            datagrams.bind(("127.0.0.1", 0))
            with contextlib.suppress(OSError):
                streams.bind(datagrams.getsockname())
                return datagrams.getsockname()[1]


@pytest.fixture(scope="module")
def weir(start_shared, canary):
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{free_port()}", "--publish-key", f"{canary}-all", listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    weir.key = f"{canary}-all"
    return weir


@pytest.fixture(scope="module")
def chromium():
    import browser.browsers as browsers  # noqa: PLC0415  (the folder is no package)

    with browsers.Chromium(
            "--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream") as chromium:
        yield chromium


def ask(weir, method: str, path: str, body: str = "", **fields):
    """Status, fields and text of a response."""
    answer = weir.get(
        path, method=method, headers={name.replace("_", "-"): value for name, value in fields.items()},
        body=body.encode() or None)
    return answer.status, answer.headers, answer.text


def offer(weir, name: str, sdp: str = OFFER.replace("CODEC", "H264"), key: str | None = None, **fields):
    return ask(weir, "POST", f"/whip/{name}", sdp, Content_Type="application/sdp",
               Authorization=f"Bearer {key or weir.key}", **fields)


def recording(weir, name: str):
    """The only recording of a stream, once its publisher has ended it."""
    def there():
        found = weir.recordings_of(name)
        return found if found and all(r["state"] == "completed" for r in found) else None

    assert len(weir.wait(there, 15, f"the recording of {name}")) == 1
    return next((weir.recordings / name).glob("*.mp4"))


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


@pytest.mark.parametrize("only", ["", "tcp"])
def test_what_chromium_publishes_is_live_and_recorded(weir, chromium, only):
    """Its fake camera and microphone in full size, by UDP and by TCP alone: each frame that it sent is recorded."""
    name = f"chromium{only}"
    # Pages may not use a camera, but for the one that publishes. This is none.
    chromium.open(weir.web + "/time")
    answer = chromium.evaluate(f"{PUBLISH}({json.dumps(name)}, {json.dumps(weir.key)}, {json.dumps(only)})")
    assert answer["status"] == 201, answer
    weir.wait_state(name, "live", seconds=20)
    time.sleep(6)
    sent = chromium.evaluate(SENT)
    live = packets.probe(f"{weir.web}/live/{name}/stream.mp4", "-read_intervals", "%+2")
    assert {"video", "audio"} <= set(live), live.keys()
    chromium.evaluate("fetch(window.session, { method: 'DELETE' }).then((r) => r.status)")
    chromium.evaluate("window.peer.close()")
    found = judge(recording(weir, name), 5)
    assert sent["video"]["frameWidth"] == 1280, sent["video"]
    assert len(found["video"]) >= 0.98 * sent["video"]["framesSent"], (len(found["video"]), sent["video"]["framesSent"])


@pytest.mark.parametrize("role", ["", "dtls_active"])
def test_what_ffmpeg_publishes_is_recorded(weir, role):
    """ffmpeg's own muxer, which waits for the first message of DTLS unless it is told to send it."""
    name = f"ffmpeg{role}".replace("_", "-")
    client = publishers.Publisher([
        tools.new_ffmpeg(), "-v", "warning", "-nostdin", "-re", "-t", "5", "-i", str(sources.source("h264-30")),
        "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-profile:v", "baseline", "-g", "30", "-bf", "0",
        "-pix_fmt", "yuv420p", "-c:a", "libopus", "-ar", "48000", "-ac", "2",
        *(["-whip_flags", role] if role else []), "-authorization", weir.key, "-f", "whip", f"{weir.web}/whip/{name}"])
    code, log = client.outcome(40)
    assert code == 0, log
    found = judge(recording(weir, name), 4)
    assert len(found["video"]) >= 145, len(found["video"])


def test_an_offer_is_answered_by_the_rules(weir):
    """RFC 9725 §4.2 and §4.3: the answer, its address and its tag; changes under conditions; the end."""
    status, fields, answer = offer(weir, "rules")
    assert status == 201 and fields["content-type"] == "application/sdp", (status, answer)
    session, tag = fields["location"], fields["etag"]
    assert re.fullmatch(r"/whip/rules/[0-9a-f]{32}", session) and re.fullmatch('"[^"]+"', tag)
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


@pytest.mark.parametrize(("change", "status", "code"), [
    (lambda sdp: sdp.replace("H264", "VP8"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("a=sendonly", "a=recvonly"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("a=fingerprint:", "a=x:"), 422, "offer-not-taken"),
    (lambda sdp: sdp.replace("BUNDLE 0 1", "BUNDLE 0"), 422, "offer-not-taken"),
    (lambda sdp: "hello", 400, "bad-request"),
    (lambda sdp: sdp + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 1000, 400, "bad-request"),
    (lambda sdp: sdp + "a=x\r\n" * 5000, 400, "bad-request"),
    (lambda sdp: sdp + "a=x:" + "y" * (1 << 20), 413, "body-too-large"),
])
def test_an_offer_that_cannot_be_taken_is_refused_with_the_reason(weir, change, status, code):
    found, _, text = offer(weir, "refused", change(OFFER.replace("CODEC", "H264")))
    assert (found, json.loads(text)["code"]) == (status, code), text
    assert weir.stream("refused") is None


def test_a_publisher_without_the_key_is_refused(weir):
    status, fields, _ = offer(weir, "keyless", key="wrong")
    assert status == 401 and fields["www-authenticate"].startswith("Bearer")
    assert offer(weir, "keyless", Origin="https://other.example")[0] == 403
    assert ask(weir, "POST", "/whip/keyless", "x", Content_Type="text/plain")[0] == 415


def binding(user: str) -> bytes:
    """A request of STUN with a wrong message integrity."""
    name = user.encode()
    body = struct.pack(">HH", 6, len(name)) + name + b"\0" * (-len(name) % 4) + struct.pack(">HH", 8, 20) + b"\0" * 20
    return struct.pack(">HHI", 1, len(body), 0x2112A442) + os.urandom(12) + body


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
        one.settimeout(8)
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
