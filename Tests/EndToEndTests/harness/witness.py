"""A receiver of WebRTC that is not the server: what a page's own reports (RTCP) say of its flashes and beeps. aiortc receives and
decodes the tracks."""

import array
import asyncio
import contextlib
import statistics
import threading

import aiortc
import aiortc.rtp
import av


class Marks:
    """Flashes and beeps of what is decoded, by their times in seconds."""

    #: Samples that are louder are of a beep.
    LOUD = 3000

    def __init__(self):
        self.flashes: dict[int, float] = {}  # by the second that they are of, without the time by which they were drawn late
        self.beeps: list[float] = []
        self._was_lit, self._quiet = True, 0.0
        self._resampler = av.AudioResampler("s16", "mono", 48000)

    def see(self, frame: av.VideoFrame, time: float) -> None:
        """A picture with the time at which it was drawn in its first lines: milliseconds by 32 squares, and a sum by 8."""
        plane = frame.planes[0]
        luma, line = memoryview(plane), plane.line_size
        row = frame.height * 16 // 360
        bits = [luma[row * line + int((bit + 0.5) * frame.width / 40)] > 128 for bit in range(40)]
        drawn, total = (sum(bit << place for place, bit in enumerate(reversed(some))) for some in (bits[:32], bits[32:]))
        if total != (drawn ^ drawn >> 8 ^ drawn >> 16 ^ drawn >> 24) & 255:
            return
        is_lit = luma[frame.height // 2 * line + frame.width // 2] > 128
        if is_lit and not self._was_lit and drawn % 1000 < 300:
            self.flashes[drawn // 1000] = time - drawn % 1000 / 1000
        self._was_lit = is_lit

    def hear(self, frame: av.AudioFrame, time: float) -> None:
        for part in self._resampler.resample(frame):
            samples = array.array("h", bytes(part.planes[0])[:2 * part.samples])
            if max(map(abs, samples), default=0) < self.LOUD:
                self._quiet += len(samples) / 48000
                continue
            for at, sample in enumerate(samples):
                if abs(sample) < self.LOUD:
                    self._quiet += 1 / 48000
                    continue
                if self._quiet > 0.5:
                    self.beeps.append(time + at / 48000)
                self._quiet = 0.0

    def distances(self, shift=lambda _: 0.0) -> dict[int, float]:
        """Seconds from flash to beep, by the second that they are of. `shift`: of the clock of beeps against that of flashes, at a time
        of these."""
        found = {}
        for second, flash in self.flashes.items():
            moved = flash - shift(flash)
            near = min(self.beeps, key=lambda beep: abs(beep - moved), default=None)
            if near is not None and abs(near - moved) < 0.3:
                found[second] = near - moved
        return found


def of_file(movie) -> dict[int, float]:
    """The distances in a recording."""
    marks = Marks()
    with av.open(str(movie)) as film:
        for frame in film.decode(video=0):
            marks.see(frame, frame.time)
    with av.open(str(movie)) as film:
        for frame in film.decode(audio=0):
            marks.hear(frame, frame.time)
    return marks.distances()


class Witness:
    """Receives on a thread of its own, until `stop`."""

    RATES = {"video": 90_000, "audio": 48_000}
    #: Seconds within which reports count: of audio one comes each 5 s.
    AROUND = 30

    def __init__(self):
        self.marks = Marks()
        self.reports: dict[str, list[tuple[float, int]]] = {}  # the sender's time of day, and its media clock in ticks
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def answer(self, offer: str) -> str:
        return asyncio.run_coroutine_threadsafe(self._answer(offer), self.loop).result(20)

    async def _answer(self, offer: str) -> str:
        self.peer = aiortc.RTCPeerConnection()
        self.watching = []
        self.peer.on("track", lambda track: self.watching.append(asyncio.ensure_future(self._follow(track))))
        await self.peer.setRemoteDescription(aiortc.RTCSessionDescription(sdp=offer, type="offer"))
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        self.receivers = {one.track.kind: one for one in self.peer.getReceivers()}
        for kind, receiver in self.receivers.items():
            receiver._handle_rtcp_packet = self._note(kind, receiver._handle_rtcp_packet)
        return self.peer.localDescription.sdp

    def _note(self, kind: str, handle):
        async def noted(packet) -> None:
            if isinstance(packet, aiortc.rtp.RtcpSrPacket):
                report = packet.sender_info
                self.reports.setdefault(kind, []).append((report.ntp_timestamp / 2 ** 32, report.rtp_timestamp))
            await handle(packet)
        return noted

    async def _follow(self, track) -> None:
        with contextlib.suppress(aiortc.mediastreams.MediaStreamError):
            while True:
                frame = await track.recv()
                take = self.marks.see if track.kind == "video" else self.marks.hear
                take(frame, frame.pts / self.RATES[track.kind])

    def stop(self) -> "Witness":
        """`distances`: those of flash and beep by the mean of the sender's reports around them. `jitter`: how far a report is off this
        mean at most, in seconds."""
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()
        begin = min(clock for some in self.reports.values() for clock, _ in some)
        offsets: dict[str, list[tuple[float, float]]] = {}
        for kind, some in self.reports.items():
            times = [self._passed(kind, ticks) for _, ticks in some]
            offsets[kind] = [(at, clock - begin - at) for at, (clock, _) in zip(times, some)]

        def mean(kind: str, time: float) -> float:
            return statistics.fmean([one for at, one in offsets[kind] if abs(at - time) <= self.AROUND])

        self.jitter = {kind: max(abs(one - mean(kind, at)) for at, one in some) for kind, some in offsets.items()}
        self.distances = self.marks.distances(lambda time: mean("audio", time) - mean("video", time))
        return self

    def _passed(self, kind: str, ticks: int) -> float:
        """Seconds on the clock of what is decoded, which begins with the first packet."""
        origin = self.receivers[kind]._RTCRtpReceiver__timestamp_mapper._origin
        return ((ticks - origin + (1 << 31)) % (1 << 32) - (1 << 31)) / self.RATES[kind]

    async def _close(self) -> None:
        await self.peer.close()
        await asyncio.gather(*self.watching)
