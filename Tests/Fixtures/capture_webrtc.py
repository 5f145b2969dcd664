#!/usr/bin/env python3
"""Keeps the beginning of a publisher's session of WebRTC, decrypted: a server of WHIP by aiortc, which writes down what comes.

    Tests/Fixtures/capture_webrtc.py NAME.webrtc CODEC [--limit 12000] [--listen 18181]

Start this in the tests' virtual environment, then the publisher with http://localhost:18181/whip/cam. A page of the same address
(any path) may publish, too. Of the offer the codec and Opus are left, so that weir takes the same payload types. All encodings
that are offered of the video (simulcast, RFC 8853) are taken.

A file is a row of records: one byte for the kind, two for the length (big-endian), the bytes. 0: a request of STUN. 1: a packet of
RTP. 2: of RTCP. 3: the offer.
"""

import argparse
import asyncio
import http.server
import pathlib
import re
import struct
import threading

import aioice.ice
from aiortc import RTCPeerConnection, RTCSessionDescription, codecs
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtcpFeedback, RTCRtpCodecParameters, RTCRtpHeaderExtensionParameters
from aiortc.rtcrtpreceiver import RTCRtpReceiver

STREAM_ID = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
TRANSPORT_WIDE = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", type=pathlib.Path)
parser.add_argument("codec", choices=["H264", "VP8", "VP9", "AV1"])
parser.add_argument("--limit", type=int, default=12_000, help="bytes that are kept")
parser.add_argument("--listen", type=int, default=18181, help="port of HTTP")
parser.add_argument("--seconds", type=float, default=4, help="from the first packet to the end")
given = parser.parse_args()

records: list[tuple[int, bytes]] = []
done = asyncio.Event()
is_full = False


def keep(kind: int, data: bytes) -> None:
    """Packets of media until one would exceed the limit, so that frames have no holes; a few of the others, also later ones."""
    global is_full
    if kind == 1:
        is_full = is_full or sum(3 + len(one) for _, one in records) + len(data) > given.limit
    if not is_full or kind != 1 and sum(one == kind for one, _ in records) < 6:
        records.append((kind, data))


def only(sdp: str, codec: str) -> str:
    """The offer without other codecs of video than the wanted one, in its first form."""
    sections = re.split(r"(?m)^(?=m=)", sdp)
    for place, section in enumerate(sections):
        if not section.startswith("m=video"):
            continue
        types = [number for number, name in re.findall(r"a=rtpmap:(\d+) ([^/\s]+)/", section) if name.upper() == codec]
        if codec == "H264":
            types = [number for number in types if re.search(rf"a=fmtp:{number} .*packetization-mode=1", section)]
        others = set(re.findall(r"a=rtpmap:(\d+) ", section)) - {types[0]}
        section = re.sub(r"(?m)^(m=video \S+ \S+).*?(\r?)$", rf"\1 {types[0]}\2", section)
        sections[place] = "".join(line for line in section.splitlines(True)
                                  if not re.match(r"a=(?:rtpmap|fmtp|rtcp-fb):(\d+)", line)
                                  or re.match(r"a=(?:rtpmap|fmtp|rtcp-fb):(\d+)", line)[1] not in others)
    return "".join(sections)


receive_rtp, receive_rtcp = RTCDtlsTransport._handle_rtp_data, RTCDtlsTransport._handle_rtcp_data
receive_datagram = aioice.ice.StunProtocol.datagram_received


async def rtp(self, data, arrival_time_ms):
    keep(1, data)
    await receive_rtp(self, data, arrival_time_ms)


async def rtcp(self, data):
    keep(2, data)
    await receive_rtcp(self, data)


def datagram(self, data, address):
    # Requests alone: what comes back was asked for by this side.
    if data[:2] == b"\0\1" and sum(kind == 0 for kind, _ in records) < 3:
        keep(0, data)
    receive_datagram(self, data, address)


async def ignore(self, packet, arrival_time_ms):
    """Nothing is decoded."""


RTCDtlsTransport._handle_rtp_data, RTCDtlsTransport._handle_rtcp_data = rtp, rtcp
aioice.ice.StunProtocol.datagram_received = datagram
RTCRtpReceiver._handle_rtp_packet = ignore
feedback = [RTCRtcpFeedback(type="nack"), RTCRtcpFeedback(type="nack", parameter="pli"), RTCRtcpFeedback(type="transport-cc")]
for number, name in enumerate(("VP9", "AV1")):
    codecs.CODECS["video"].append(RTCRtpCodecParameters(
        mimeType=f"video/{name}", clockRate=90000, payloadType=120 + number, rtcpFeedback=feedback))
for number, uri in enumerate((TRANSPORT_WIDE, STREAM_ID, STREAM_ID.replace("sdes:", "sdes:repaired-"))):
    codecs.HEADER_EXTENSIONS["video"].append(RTCRtpHeaderExtensionParameters(id=5 + number, uri=uri))


async def answer(offer: str) -> str:
    peer = RTCPeerConnection()
    text = only(offer, given.codec)
    records.append((3, text.encode()))
    await peer.setRemoteDescription(RTCSessionDescription(sdp=text, type="offer"))
    for transceiver in peer.getTransceivers():
        transceiver.direction = "recvonly"
    await peer.setLocalDescription(await peer.createAnswer())
    # aiortc keeps its own payload types where those of the offer lie below 96.
    made, offered = (re.search(r"m=video \S+ \S+ (\d+)", one)[1] for one in (peer.localDescription.sdp, text))
    head, section = peer.localDescription.sdp.split("m=video", 1)
    peers.append(peer)
    loop.call_later(given.seconds + 2, done.set)
    rids = re.findall(r"(?m)^a=rid:(\w+) send", text)
    layers = [f"a=rid:{rid} recv" for rid in rids] + ([f"a=simulcast:recv {';'.join(rids)}"] if rids else [])
    return head + "m=video" + re.sub(rf"(?<=[ :]){made}(?=\s)", offered, section) + "".join(f"{line}\r\n" for line in layers)


class WHIP(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        self.reply(200, "text/html", "<!doctype html><title>publish</title>")

    def do_POST(self):  # noqa: N802
        offer = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.reply(201, "application/sdp", asyncio.run_coroutine_threadsafe(answer(offer), loop).result(10))

    def do_DELETE(self):  # noqa: N802
        self.reply(200, "text/plain", "")

    def reply(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Location", "/whip/cam/1"), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def main() -> None:
    global loop
    loop = asyncio.get_running_loop()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", given.listen), WHIP)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("listening", flush=True)
    await asyncio.wait_for(done.wait(), 60)
    server.shutdown()
    for peer in peers:
        await peer.close()


peers: list[RTCPeerConnection] = []
asyncio.run(main())
given.file.write_bytes(b"".join(struct.pack(">BH", kind, len(data)) + data for kind, data in records))
print(given.file, ", ".join(f"{sum(kind == one for kind, _ in records)} {name}"
                            for one, name in enumerate(("STUN", "RTP", "RTCP", "offer"))))
