"""A peer of WebRTC that is admitted, and what it sends with the keys of its session that is none of RTP or RTCP. aiortc connects it,
and encodes its honest frames."""

import asyncio
import fractions
import hashlib
import itertools
import os
import random
import re
import struct
import time

import aiortc
import av
from aiortc import rtcdtlstransport
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: Of payloads: as many bytes as senders use at most.
LONG = 1180
#: The head of a fragment of H.264 (FU-A) that neither begins a unit nor ends one.
MIDDLE = b"\x7c\x05"
#: RTCP: reports, descriptions, goodbyes, applications', feedback of the transport and of payloads.
SR, RR, SDES, BYE, APP, TRANSPORT, PAYLOAD = 200, 201, 202, 203, 204, 205, 206


class Sealer:
    """SRTP by AES-GCM (RFC 7714), of packets that libsrtp does not encrypt because their headers lie."""

    def __init__(self, key: bytes, salt: bytes):
        self.cipher, self.salt = AESGCM(self._derive(key, salt, 0, 16)), self._derive(key, salt, 2, 12)

    @staticmethod
    def _derive(key: bytes, salt: bytes, label: int, size: int) -> bytes:
        """RFC 3711 §4.3.3, with a salt of 96 bits."""
        counter = (int.from_bytes(salt, "big") << 16 ^ label << 48) << 16
        return Cipher(algorithms.AES(key), modes.CTR(counter.to_bytes(16, "big"))).encryptor().update(bytes(size))

    def rtp(self, packet: bytes, turns: int, header: int) -> bytes:
        """`header` bytes stay in clear. `turns`: how often the sequence number has begun again."""
        vector = bytes(2) + packet[8:12] + struct.pack(">I", turns) + packet[2:4]
        vector = bytes(a ^ b for a, b in zip(vector, self.salt))
        return packet[:header] + self.cipher.encrypt(vector, packet[header:], packet[:header])


class Grey(aiortc.VideoStreamTrack):
    """A small picture that changes with each frame, 30 times a second."""

    async def recv(self) -> av.VideoFrame:
        time_, _ = await self.next_timestamp()
        frame = av.VideoFrame(320, 180, "yuv420p")
        for number, plane in enumerate(frame.planes):
            plane.update(bytes([time_ // 3000 * 3 % 200 + 20 if number == 0 else 128]) * plane.buffer_size)
        frame.pts, frame.time_base = time_, fractions.Fraction(1, 90_000)
        return frame


class Peer:
    """A session. Its packets of RTP are numbered and encrypted here, so that others may come between them."""

    def __init__(self, weir, path: str):
        self.weir, self.path = weir, path
        self.connection = aiortc.RTCPeerConnection()
        self.numbers: dict[int, int] = {}  # by the sender (SSRC): its newest number, with its turns
        self.asked: list[float] = []  # when it was asked for a key frame
        self.arrived: dict[int, list[int]] = {}  # by the sender: the numbers of what came
        self.bytes = self.sent = 0  # bytes of payload that came, also again, and datagrams that went
        self.holds = False  # honest frames are kept back
        self.frames: list[list[bytearray]] = []  # the units of its honest frames, as they went
        self.begun: list[bytearray] = []  # those of a frame that is not whole yet

    async def __aenter__(self) -> "Peer":
        return self

    async def __aexit__(self, *_) -> None:
        await self.connection.close()

    async def publish(self) -> "Peer":
        line = self.connection.addTransceiver(Grey(), direction="sendonly")
        self.sender = line.sender
        codecs = aiortc.RTCRtpSender.getCapabilities("video").codecs
        line.setCodecPreferences([codec for codec in codecs if codec.mimeType != "video/VP8"])
        encode = self.sender._send_keyframe

        def note() -> None:
            self.asked.append(time.monotonic())
            encode()

        async def forget(_) -> None:
            """What is asked for again has another number here."""

        self.sender._send_keyframe, self.sender._retransmit = note, forget
        self.sender.transport._send_rtp = self._pass_on
        await self._connect()
        return self

    async def watch(self) -> "Peer":
        """Counts what comes, and decodes nothing."""
        receiver = self.connection.addTransceiver("video", direction="recvonly").receiver
        self.sender = receiver
        ice = receiver.transport.transport
        receive = ice._recv

        async def measure() -> bytes:
            data = await receive()
            # Without the header and the check of its integrity.
            self.bytes += max(0, len(data) - 12 - 16)
            return data

        async def count(data: bytes, arrival_time_ms: int) -> None:
            number, source = struct.unpack(">2xH4xI", data[:12])
            self.arrived.setdefault(source, []).append(number)

        ice._recv, receiver.transport._handle_rtp_data = measure, count
        await self._connect()
        return self

    async def _connect(self) -> None:
        transport = self.sender.transport
        transport._srtp_profiles = [rtcdtlstransport.SRTP_AEAD_AES_128_GCM]
        await self.connection.setLocalDescription(await self.connection.createOffer())
        answer = await asyncio.to_thread(
            self.weir.get, self.path, method="POST", headers={"Content-Type": "application/sdp"},
            body=self.connection.localDescription.sdp.encode())
        assert answer.status == 201, answer.text
        self.answer, self.session = answer.text, answer.headers["location"]
        self.repairs = [int(number) for number in re.findall(r"a=rtpmap:(\d+) rtx", answer.text)]
        await self.connection.setRemoteDescription(aiortc.RTCSessionDescription(sdp=answer.text, type="answer"))
        while self.connection.connectionState != "connected":
            await asyncio.sleep(0.02)

    async def leave(self) -> int:
        """Ends the session. 410: the server had ended it."""
        return (await asyncio.to_thread(self.weir.get, self.session, method="DELETE")).status

    # MARK: packets

    @property
    def source(self) -> int:
        return self.sender._ssrc

    @property
    def sealer(self) -> Sealer:
        transport = self.sender.transport
        if not hasattr(self, "_sealer"):
            view = transport._ssl.export_keying_material(b"EXTRACTOR-dtls_srtp", 2 * (16 + 12))
            place = 1 if transport._role == "server" else 0
            self._sealer = Sealer(view[16 * place:][:16], view[32 + 12 * place:][:12])
        return self._sealer

    async def _pass_on(self, data: bytes) -> None:
        """An honest packet of aiortc's sender: under the next number, whatever came before."""
        if 192 <= data[1] <= 223:
            await self.report(data)
            return
        self.codec = data[1] & 0x7F
        self.newest = struct.unpack(">I", data[4:8])[0]
        # A frame is kept back whole, or not at all.
        if self.holds and not self.begun:
            return
        header = 12 + 4 * (data[0] & 15)
        if data[0] & 0x10:
            header += 4 + 4 * struct.unpack(">H", data[header + 2:header + 4])[0]
        self._note(data[header:], is_last=data[1] >> 7 == 1)
        await self.send(data, header)

    def _note(self, payload: bytes, *, is_last: bool) -> None:
        """The units of a payload of H.264 (RFC 6184): one, several (STAP-A), or a part of one (FU-A)."""
        kind = payload[0] & 31
        if kind == 28:
            if payload[1] & 0x80:
                self.begun.append(bytearray([payload[0] & 0xE0 | payload[1] & 31]))
            self.begun[-1] += payload[2:]
        elif kind == 24:
            place = 1
            while place < len(payload):
                size, = struct.unpack(">H", payload[place:place + 2])
                self.begun.append(bytearray(payload[place + 2:place + 2 + size]))
                place += 2 + size
        else:
            self.begun.append(bytearray(payload))
        if is_last:
            self.frames.append(self.begun)
            self.begun = []

    def honest(self) -> list[str]:
        """The hashes of its whole honest frames, as samples have them (ISO/IEC 14496-15), without parameter sets."""
        samples = (b"".join(struct.pack(">I", len(unit)) + unit for unit in units if unit[0] & 31 not in (7, 8)) for units in self.frames)
        return [f"MD5:{hashlib.md5(sample).hexdigest()}" for sample in samples]

    async def send(self, packet: bytes, header: int = 12, step: int = 1) -> None:
        """Under the number that is so many behind the newest of its sender."""
        source, = struct.unpack(">I", packet[8:12])
        number = self.numbers[source] = self.numbers.get(source, 100) + step
        packet = packet[:2] + struct.pack(">H", number & 0xFFFF) + packet[4:]
        await self._out(self.sealer.rtp(packet, number >> 16, min(header, len(packet))))

    async def report(self, packet: bytes) -> None:
        await self._out(self.sender.transport._tx_srtp.protect_rtcp(packet))

    async def _out(self, datagram: bytes) -> None:
        self.sent += 1
        try:
            await self.sender.transport.transport._send(datagram)
        except ConnectionError:
            pass  # the server has ended it
        if self.sent % 20 == 0:
            await asyncio.sleep(0.004)


def rtp(source: int, codec: int, timestamp: int, payload: bytes = b"", *, first: int = 0x80, marker: bool = False) -> bytes:
    """A packet whose number is to be written yet."""
    return struct.pack(">BBHII", first, codec | marker << 7, 0, timestamp & 0xFFFFFFFF, source) + payload


async def headers(peer: Peer) -> None:
    """Sources, extensions and padding beyond the end; elements of extensions beyond theirs; nothing behind the header; payload
    types and senders that nobody offered, by the hundred."""
    def lies():
        for count in range(1, 16):
            yield rtp(peer.source, peer.codec, peer.newest, bytes(4 * count - 1), first=0x80 | count), 4096
        for words in (1, 2, 255, 0x8000, 0xFFFF):
            yield rtp(peer.source, peer.codec, peer.newest, struct.pack(">HH", 0xBEDE, words), first=0x90), 4096
        yield rtp(peer.source, peer.codec, peer.newest, b"\xbe", first=0x90), 4096
        for profile, elements in itertools.product(
                (0xBEDE, 0x1000, 0x100F, 0), (b"\x1f\0\0\0", b"\xff\xff\xff\xff", b"\1\xff\0\0", b"\0\0\0\x10", os.urandom(64))):
            words = struct.pack(">HH", profile, len(elements) // 4)
            yield rtp(peer.source, peer.codec, peer.newest, words + elements, first=0x90), 16 + len(elements)
        for padding in (0, 2, 200, 255):
            yield rtp(peer.source, peer.codec, peer.newest, bytes([padding]), first=0xA0), 12
        yield rtp(peer.source, peer.codec, peer.newest, bytes(9) + b"\x0a", first=0xA0), 12
        yield rtp(peer.source, peer.codec, peer.newest, first=0xA0), 12
        yield rtp(peer.source, peer.codec, peer.newest), 12
        yield rtp(peer.source, peer.codec, peer.newest, bytes(60) + os.urandom(100), first=0xBF), 72

    for _ in range(40):
        for packet, header in lies():
            await peer.send(packet, header)
    for number in range(400):
        for codec in (number % 64, 96 + number % 32):
            # Its own would be those of another sender of its video, and of packets of its video that come again.
            if codec not in (peer.codec, *peer.repairs):
                await peer.send(rtp(0x1000 + number, codec, number, os.urandom(40), first=0x80))
    for size in range(1, 40):
        await peer._out(b"\x80" + bytes([peer.codec]) + os.urandom(size))


async def fragments(peer: Peer) -> None:
    """A unit in fragments that is begun and never ends, longer than a frame may be. Nothing else comes meanwhile."""
    peer.holds = True
    timestamp = peer.newest + 1500
    await peer.send(rtp(peer.source, peer.codec, timestamp, b"\x7c\x85" + bytes(LONG)))
    for _ in range(9000):
        await peer.send(rtp(peer.source, peer.codec, timestamp, MIDDLE + bytes(LONG)))
    peer.holds = False


async def units(peer: Peer) -> None:
    """Units that exceed their packet, that are empty, nested or of no type; fragments that only begin, or only end."""
    def words(*some: int) -> bytes:
        return struct.pack(f">{len(some)}H", *some)

    kinds = (
        b"\x78" + words(0xFFFF) + b"\x65" * 20, b"\x78" + words(0, 0, 0), b"\x78" + words(1, 0x6500, 0xFFFF), b"\x78\0", b"\x78",
        b"\x78" + words(9) + b"\x78" + words(6) + b"\x78" * 6, b"\x7c", b"\x7c\x85", b"\x7c\x45" + bytes(9), b"\x7c\x85" + bytes(9),
        b"\x7c\x87" + os.urandom(30), MIDDLE + os.urandom(LONG), *(bytes([kind]) + os.urandom(20) for kind in (0, 25, 26, 27, 29, 30, 31)))
    for number in range(200):
        for kind in kinds:
            await peer.send(rtp(peer.source, peer.codec, peer.newest + 20 * number, kind, marker=bool(number % 2)))


async def jumps(peer: Peer) -> None:
    """Numbers that leap by nearly half of their range, and back; 1,000 missing ones at a time."""
    for _ in range(300):
        for step in (0x7FF0, 1, -0x4000, 0x4000, 1000, 2, 2, -3):
            await peer.send(rtp(peer.source, peer.codec, peer.newest + 9, MIDDLE + os.urandom(20)), step=step)


def exponential(number: int) -> str:
    """Exp-Golomb (ITU-T H.264 §9.1)."""
    digits = bin(number + 1)[2:]
    return "0" * (len(digits) - 1) + digits


def parameter_set(width: int, height: int) -> bytes:
    """Of a sequence of H.264, baseline profile, in macroblocks."""
    bits = "".join(map(exponential, (0, 0, 2, 1))) + "0" + exponential(width - 1) + exponential(height - 1) + "11001"
    bits += "0" * (-len(bits) % 8)
    return b"\x67\x42\xc0\x1e" + bytes(int(bits[at:at + 8], 2) for at in range(0, len(bits), 8))


async def sizes(peer: Peer) -> None:
    """Key frames of rubbish, each in another size."""
    for number in range(1000):
        kept = parameter_set(1 + number % 50, 9), b"\x68\xce\x38\x80", b"\x65\x88" + os.urandom(30)
        units = b"".join(struct.pack(">H", len(unit)) + unit for unit in kept)
        await peer.send(rtp(peer.source, peer.codec, peer.newest + 20 * number, b"\x78" + units, marker=True))


async def senders(peer: Peer) -> None:
    """Packets that come again, of numbers that there are not; one sender of its video after the other, by the hundred: each takes the
    place of the one before."""
    for number in range(1500):
        for codec in peer.repairs:
            await peer.send(rtp(0x4000 + number % 40, codec, number, os.urandom(40)))
        await peer.send(rtp(0x2000 + number % 300, peer.codec, number, MIDDLE + bytes(20)))


def control(kind: int, count: int, body: bytes, words: int | None = None) -> bytes:
    """A packet of RTCP. `words`: a length that lies."""
    return struct.pack(">BBH", 0x80 | count, kind, len(body) // 4 if words is None else words) + body


def requests(source: int, ours: int, newest: int) -> list[bytes]:
    """What a receiver may ask for: everything again, key frames, and rates that there are not."""
    pair = struct.pack(">II", ours, source)
    remb = [b"REMB" + struct.pack(">BBHI", 1, exponent << 2 | 3, 0xFFFF, source) for exponent in (0, 17, 46, 63)]
    chunks = (0, b"\x3f\xff" * 2), (0xFFFF, b"\xff\xff" * 40), (7, b"")
    arrivals = [struct.pack(">HHI", base, 0xFFFF, 0) + some for base, some in chunks]
    every = [struct.pack(">HH", number & 0xFFFF, 0xFFFF) for number in range(0, 1 << 16, 17)]
    late = b"".join(struct.pack(">HH", newest - 17 * number & 0xFFFF, 0xFFFF) for number in range(1, 16))
    return [
        *[control(TRANSPORT, 1, pair + late)] * 10,
        *(control(TRANSPORT, 1, pair + b"".join(every[at:at + 280])) for at in range(0, len(every), 280)),
        control(PAYLOAD, 1, pair), control(PAYLOAD, 1, pair), control(PAYLOAD, 4, pair + struct.pack(">II", source, 0)),
        *(control(PAYLOAD, 15, struct.pack(">II", ours, 0) + one) for one in remb),
        control(PAYLOAD, 15, struct.pack(">II", ours, 0) + b"REMB\xff"), *(control(TRANSPORT, 15, pair + one) for one in arrivals)]


async def reports(peer: Peer, source: int | None = None) -> None:
    """Compounds whose lengths lie, of types that there are not; descriptions, goodbyes and applications' of 64 KiB by their lengths;
    reports of absurd times; floods of requests. `source`: of whom things are asked; its own, if it publishes."""
    asked, ours = source or peer.source, peer.source if source is None else 1
    newest = peer.arrived[source][-1] if source else 0
    stranger = struct.pack(">I", ours ^ 0x5555)
    clocks = (0, 0xFFFFFFFF_FFFFFFFF, 1 << 63, 0x83AA7E80_00000000, int(time.time() + 2_208_988_800) << 32)
    for turn in range(60):
        some = [
            *(control(SR, 0, struct.pack(">IQIII", ours, clock, random.getrandbits(32), 0xFFFFFFFF, 0xFFFFFFFF)) for clock in clocks),
            control(SR, 31, struct.pack(">IQIII", ours, clocks[1], 0, 0, 0)), control(RR, 31, struct.pack(">I", ours) + os.urandom(50)),
            # Of the media: any loss, any time of a report, and numbers that go anywhere.
            *(control(RR, 1, struct.pack(">II", ours, asked) + os.urandom(20)) for _ in range(3)),
            control(SR, 1, struct.pack(">IQIIII", ours, clocks[1], 0, 0, 0, asked) + b"\xff" * 20),
            control(SDES, 31, stranger + b"\1\xff" + os.urandom(90), 0x3FFF), control(SDES, 31, stranger * 100, 0xFFFF),
            control(BYE, 31, stranger * 3), control(BYE, 31, stranger * 31 + b"\xff" + bytes(99), 0xFFFF), control(BYE, 1, b"", 1),
            control(APP, 31, stranger + b"weir" + os.urandom(1000), 0xFFFF), control(APP, 0, b""),
            *(control(kind, turn % 32, stranger + os.urandom(4 * (turn % 50))) for kind in (192, 195, 199, 207, 208, 223)),
            *requests(asked, ours, newest)]
        random.shuffle(some)
        for packet in some:
            await peer.report(packet if len(packet) >= 8 else packet + bytes(8 - len(packet)))
        # Compounds: of whole ones, and cut anywhere.
        for _ in range(10):
            whole = b"".join(random.sample(some, 6))[:LONG]
            await peer.report(whole[:random.randrange(8, len(whole))])
        await peer.report(struct.pack(">BBHI", 0x80 | turn % 32, 192 + turn % 32, 0, ours) + b"\x80\xc8\0\0" * 280)


RUBBISH = {one.__name__: one for one in (headers, fragments, units, jumps, reports, sizes, senders)}
