"""GStreamer's webrtcbin as a client of WHIP and WHEP with video in HEVC. A program of its own, run by the system's Python, which has
GStreamer's bindings: `PYTHON -P webrtcbin.py publish|watch URL SECONDS [KEY]` (-P: this folder's `http` is not Python's). It prints what
became of it, as JSON."""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import gi

for name in ("Gst", "GstSdp", "GstWebRTC"):
    gi.require_version(name, "1.0")
from gi.repository import Gst, GstSdp, GstWebRTC  # noqa: E402  (the versions stand above)

RATE, WIDTH, HEIGHT = 30, 640, 360
CAPS = "application/x-rtp,media=video,encoding-name=H265,payload=96,clock-rate=90000"
PUBLISH = (
    "webrtcbin name=peer bundle-policy=max-bundle videotestsrc is-live=true pattern=ball ! "
    f"video/x-raw,format=I420,width={WIDTH},height={HEIGHT},framerate={RATE}/1 ! "
    "x265enc name=encoder tune=zerolatency speed-preset=ultrafast key-int-max=60 bitrate=800 ! video/x-h265,profile=main ! "
    f"rtph265pay config-interval=-1 aggregate-mode=zero-latency ! {CAPS} ! peer.")
#: Seconds until a peer has to be connected, and until what was sent has arrived.
PATIENCE = 15


def request(method: str, url: str, key: str, body: str | None = None):
    """Status, text, the address of the session, and the fields of the response."""
    fields = {"Content-Type": "application/sdp"} | ({"Authorization": f"Bearer {key}"} if key else {})
    asked = urllib.request.Request(url, method=method, data=body.encode() if body else None, headers=fields)
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            place = urllib.parse.urljoin(url, answer.headers.get("Location", ""))
            return answer.status, answer.read().decode(), place, answer.headers
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode(), "", refusal.headers


def arrived(url: str) -> int:
    """Video frames that the server has of the stream that is published at this address."""
    with urllib.request.urlopen(url.replace("/whip/", "/live/") + "/status.json", timeout=10) as answer:
        return json.load(answer)["received"]["videoFrames"]


def ask(peer, signal: str, *parts):
    """Waits for webrtcbin's answer to one of its signals. Returns the promise and its reply: both have to live as long as what is
    taken of it."""
    promise = Gst.Promise.new()
    peer.emit(signal, *parts, promise)
    if promise.wait() != Gst.PromiseResult.REPLIED:
        sys.exit(f"webrtcbin does not answer {signal}")
    reply = promise.get_reply()
    if reply is not None and reply.has_field("error"):
        sys.exit(f"{signal}: {reply.to_string()}")
    return promise, reply


class Decoder:
    """Depacketizes and decodes what a peer receives, and counts frames. `seconds`: from the first one to the last, by their times."""

    def __init__(self, pipe, peer):
        self.pipe, self.frames, self.size, self.first, self.last = pipe, 0, (0, 0), None, 0
        peer.connect("pad-added", self._added)

    def _added(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        chain = Gst.parse_bin_from_description("rtph265depay ! h265parse ! avdec_h265 ! fakesink name=shown sync=false", True)
        self.pipe.add(chain)
        chain.get_by_name("shown").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self._shown)
        chain.sync_state_with_parent()
        pad.link(chain.get_static_pad("sink"))

    @property
    def seconds(self):
        return 0 if self.first is None else (self.last - self.first) / Gst.SECOND

    def _shown(self, pad, info):
        self.frames += 1
        self.last = info.get_buffer().pts
        self.first = self.last if self.first is None else self.first
        shape = pad.get_current_caps().get_structure(0)
        self.size = (shape.get_value("width"), shape.get_value("height"))
        return Gst.PadProbeReturn.OK


class Encoder:
    """Counts the frames that go out, and drops all beyond a limit: nothing is on its way when the session ends."""

    def __init__(self, pipe, limit: int):
        self.frames, self.limit = 0, limit
        pipe.get_by_name("encoder").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self._encoded)

    def _encoded(self, *_):
        if self.frames >= self.limit:
            return Gst.PadProbeReturn.DROP
        self.frames += 1
        return Gst.PadProbeReturn.OK


def errors(pipe) -> list[str]:
    """What the elements of a pipeline complain about."""
    found = []
    while message := pipe.get_bus().pop_filtered(Gst.MessageType.ERROR | Gst.MessageType.WARNING):
        parsed = message.parse_error() if message.type == Gst.MessageType.ERROR else message.parse_warning()
        found.append(f"{message.src.get_name()}: {parsed[0].message}: {parsed[1]}")
    return found


def main(role: str, url: str, seconds: float, key: str = "") -> dict:
    Gst.init(None)
    if role == "publish":
        pipe = Gst.parse_launch(PUBLISH)
        peer, media = pipe.get_by_name("peer"), Encoder(pipe, round(seconds * RATE))
        line = peer.emit("get-transceiver", 0)
        line.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
        line.set_property("do-nack", True)
    else:
        pipe = Gst.Pipeline.new()
        peer = Gst.ElementFactory.make("webrtcbin", "peer")
        peer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        # Milliseconds. What is later is thrown away.
        peer.set_property("latency", 3000)
        # Times are the sender's: an encoder that is held up sends fewer frames a second.
        Gst.util_set_object_arg(peer.get_by_name("rtpbin"), "buffer-mode", "none")
        pipe.add(peer)
        media = Decoder(pipe, peer)
        pipe.set_state(Gst.State.READY)
        line = peer.emit("add-transceiver", GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY, Gst.Caps.from_string(CAPS))
        line.set_property("do-nack", True)
    pipe.set_state(Gst.State.PLAYING)
    try:
        offered = ask(peer, "create-offer", None)
        offer = offered[1].get_value("offer")
        ask(peer, "set-local-description", offer)
        text = offer.sdp.as_text()
        status, answer, place, fields = request("POST", url, key, text)
        result = {"status": status, "offer": text, "answer": answer, "replaced": fields.get("Weir-Replaced")}
        if status != 201:
            return result
        _, message = GstSdp.SDPMessage.new()
        GstSdp.sdp_message_parse_buffer(answer.encode(), message)
        ask(peer, "set-remote-description", GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message))
        end = time.monotonic() + PATIENCE
        while peer.get_property("connection-state") != GstWebRTC.WebRTCPeerConnectionState.CONNECTED:
            if time.monotonic() > end:
                return result | {"errors": ["it is not connected", *errors(pipe)]}
            time.sleep(0.02)
        end = time.monotonic() + seconds + PATIENCE
        if role == "publish":
            while media.frames < media.limit and time.monotonic() < end:
                time.sleep(0.05)
            end = time.monotonic() + PATIENCE
            while arrived(url) < media.frames and time.monotonic() < end:
                time.sleep(0.1)
        else:
            while media.seconds < seconds and time.monotonic() < end:
                time.sleep(0.05)
            result["seconds"] = media.seconds
        result |= {"frames": media.frames, "size": getattr(media, "size", (WIDTH, HEIGHT)), "errors": errors(pipe)}
        return result | {"ended": request("DELETE", place, key)[0]}
    finally:
        pipe.set_state(Gst.State.NULL)


if __name__ == "__main__":
    role, url, seconds, *rest = sys.argv[1:]
    print(json.dumps(main(role, url, float(seconds), *rest)))
