"""Days of a transport stream in seconds: few frames, by a muxer of our own, with a sender's times through wraps of 33 bits."""

import dataclasses
import pathlib

from .inband import _packets, checksum
from .sources import made
from .tools import FFMPEG, FFPROBE, output
from .transport import PACKET, WRAP

TABLES, VIDEO, AUDIO = 0x1000, 0x100, 0x101
#: Frames of a group, and ticks of 90 kHz from one to the next: 9 s in all, which one segment takes as it is.
GROUP, STEP = 4, 202_500
#: A frame of AAC at 48 kHz.
AUDIO_STEP = 1920
#: Frames of audio in one PES packet.
TOGETHER = 5


@dataclasses.dataclass(frozen=True)
class Unit:
    """A frame. Times in ticks of 90 kHz since the beginning, without wraps."""

    pts: int
    dts: int
    data: bytes
    is_key: bool = False


def _group() -> list[Unit]:
    """A closed group of pictures with a B-frame, its first frame shown at 0."""
    rate = f"{90_000}/{STEP}"
    path = made("days", ".ts", [
        FFMPEG, "-v", "error", "-y", "-f", "lavfi", "-i", f"testsrc=size=32x32:rate={rate}", "-frames:v", str(2 * GROUP), "-c:v",
        "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-x264-params",
        f"keyint={GROUP}:min-keyint={GROUP}:scenecut=0:bframes=1:b-adapt=0:aud=1:threads=1", "-bsf:v", "filter_units=remove_types=6", "-muxdelay", "0", "-muxpreload", "0",
        "-f", "mpegts"])
    times = [tuple(map(int, line.split(",")[:2])) for line in output(
        FFPROBE, "-v", "error", "-show_entries", "packet=pts,dts", "-of", "csv=p=0", path).decode().split()]
    bytes_ = output(FFMPEG, "-v", "error", "-i", path, "-c", "copy", "-f", "h264", "-")
    delimiter = b"\0\0\0\1\x09"
    units = [delimiter + part for part in bytes_.split(delimiter)[1:]]
    assert len(units) == len(times) == 2 * GROUP, (len(units), times)
    first = times[0][0]
    return [Unit(pts - first, dts - first, data) for (pts, dts), data in zip(times, units)][:GROUP]


def _audio(seconds: int) -> list[bytes]:
    """Frames of AAC with their ADTS headers."""
    path = made("days-audio", ".aac", [
        FFMPEG, "-v", "error", "-y", "-f", "lavfi", "-i", f"sine=440:sample_rate=48000:duration={seconds}", "-ac", "1", "-c:a", "aac",
        "-b:a", "32k", "-f", "adts"])
    data, frames = path.read_bytes(), []
    while data:
        length = (data[3] & 3) << 11 | data[4] << 3 | data[5] >> 5
        frames.append(data[:length])
        data = data[length:]
    return frames


def _stamp(prefix: int, ticks: int) -> bytes:
    """A PTS or DTS of a PES packet (ISO/IEC 13818-1 §2.4.3.7)."""
    ticks %= WRAP
    return bytes([prefix << 4 | ticks >> 29 & 0x0E | 1, ticks >> 22 & 0xFF, ticks >> 14 & 0xFE | 1, ticks >> 7 & 0xFF,
                  ticks << 1 & 0xFE | 1])


def _pes(stream: int, pts: int, dts: int, data: bytes) -> bytes:
    times = _stamp(2, pts) if pts == dts else _stamp(3, pts) + _stamp(1, dts)
    body = bytes([0x80, 0x80 if pts == dts else 0xC0, len(times)]) + times + data
    # The length of video may stay open.
    return bytes([0, 0, 1, stream]) + (0 if stream == 0xE0 else len(body)).to_bytes(2) + body


def _section(number: int, extension: int, body: bytes) -> bytes:
    """A section behind its pointer, in its first version."""
    whole = bytes([number]) + (0xB000 | len(body) + 9).to_bytes(2) + extension.to_bytes(2) + b"\xc1\0\0" + body
    return b"\0" + whole + checksum(whole)


class Muxer:
    """Packets of a programme. Each PES packet begins a packet of its own and fills its last one up."""

    MAP = _section(2, 1, (0xE000 | VIDEO).to_bytes(2) + b"\xf0\0" + b"".join(
        bytes([kind]) + (0xE000 | pid).to_bytes(2) + b"\xf0\0" for kind, pid in ((0x1B, VIDEO), (0x0F, AUDIO))))
    ASSOCIATION = _section(0, 1, (1).to_bytes(2) + (0xE000 | TABLES).to_bytes(2))

    def __init__(self):
        self._counters = dict.fromkeys((0, TABLES, VIDEO, AUDIO), 0)

    def tables(self) -> bytes:
        out = b""
        for pid, section in ((0, self.ASSOCIATION), (TABLES, self.MAP)):
            out += b"".join(_packets(pid, section, self._counters[pid]))
            self._counters[pid] += 1
        return out

    def add(self, pid: int, payload: bytes, clock: int | None = None) -> bytes:
        """`clock`: the reference in the first packet, in ticks of 90 kHz."""
        out, at = b"", 0
        while at < len(payload):
            field = b"" if clock is None or at else b"\x10" + ((clock % WRAP) << 15 | 0x7E00).to_bytes(6)
            room = 184 - (len(field) + 1 if field else 0)
            part = payload[at:at + room]
            if len(part) < room or field:
                missing = room - len(part)
                if not field and missing:
                    field, missing = b"\0" if missing > 1 else b"", max(0, missing - 2)
                field = bytes([len(field) + missing]) + field + b"\xff" * missing
            control = 0x30 if field else 0x10
            out += bytes([0x47, pid >> 8 | (0 if at else 0x40), pid & 255, control | self._counters[pid] & 15]) + field + part
            self._counters[pid] += 1
            at += room
        assert len(out) % PACKET == 0
        return out


class Days:
    """`hours` of video without a hole, and `spell` seconds of audio at each of the times `heard` (seconds). The sender's clock
    begins at `first`."""

    def __init__(self, hours: float, first: int, heard: list[float], spell: int = 12):
        self.first = first
        group, frames = _group(), _audio(spell)
        self.video = [
            Unit(unit.pts + at, unit.dts + at, unit.data, unit is group[0])
            for at in range(0, int(hours * 3600 * 90_000), GROUP * STEP) for unit in group]
        self.spells = [
            [Unit(time, time, frame) for time, frame in zip(range(round(start * 90_000), 1 << 62, AUDIO_STEP), frames)]
            for start in heard]

    def write(self, path: pathlib.Path) -> None:
        """With PAT and PMT before each key frame, and a clock reference in each frame of the video."""
        muxer = Muxer()
        pieces = [(unit.dts, VIDEO, unit) for unit in self.video]
        for spell in self.spells:
            for at in range(0, len(spell), TOGETHER):
                part = spell[at:at + TOGETHER]
                pieces.append((part[0].dts, AUDIO, Unit(part[0].pts, part[0].dts, b"".join(unit.data for unit in part))))
        pieces.sort(key=lambda piece: piece[0])
        with open(path, "wb") as out:
            for dts, pid, unit in pieces:
                if unit.is_key:
                    out.write(muxer.tables())
                data = _pes(0xE0 if pid == VIDEO else 0xC0, self.first + unit.pts, self.first + dts, unit.data)
                out.write(muxer.add(pid, data, self.first + dts - 63_000 if pid == VIDEO else None))
