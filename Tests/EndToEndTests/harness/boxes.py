"""An independent reader of ISO BMFF (ISO/IEC 14496-12): boxes, init segments, movie fragments, progressive movies.

It shares nothing with weir's own writer or with ffmpeg's demuxer. It only reads; the rules are in `box_rules.py`.
"""

import dataclasses
import hashlib
import struct
from fractions import Fraction

CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"mvex", b"moof", b"traf", b"edts", b"dinf", b"udta"}


class BoxError(AssertionError):
    """The bytes are not valid boxes. The text has the position."""


@dataclasses.dataclass
class Box:
    """One box: `start` and `end` are offsets in the data it was read from, `body` begins after the header."""

    type: bytes
    start: int
    body: int
    end: int
    children: list["Box"]

    def all(self, *path: bytes) -> list["Box"]:
        found = [self]
        for name in path:
            found = [child for box in found for child in box.children if child.type == name]
        return found

    def one(self, *path: bytes) -> "Box":
        found = self.all(*path)
        if len(found) != 1:
            raise BoxError(f"{len(found)} boxes at {self.type!r}/{b'/'.join(path)!r}, expected one")
        return found[0]


def read_boxes(data: bytes, start: int = 0, end: int | None = None) -> list[Box]:
    """The boxes that fill `data[start:end]` without a gap."""
    end = len(data) if end is None else end
    boxes = []
    at = start
    while at < end:
        if end - at < 8:
            raise BoxError(f"{end - at} stray bytes at {at}")
        size, kind = struct.unpack_from(">I4s", data, at)
        body = at + 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, body)
            body += 8
        elif size == 0:
            size = end - at
        if size < body - at or at + size > end:
            raise BoxError(f"box {kind!r} at {at} says {size} bytes, {end - at} are there")
        box = Box(kind, at, body, at + size, [])
        if kind in CONTAINERS:
            box.children = read_boxes(data, body, box.end)
        boxes.append(box)
        at += size
    return boxes


def full(data: bytes, box: Box) -> tuple[int, int, int]:
    """Version, flags and the offset after them, of a FullBox."""
    (word,) = struct.unpack_from(">I", data, box.body)
    return word >> 24, word & 0xFFFFFF, box.body + 4


@dataclasses.dataclass
class Track:
    """A track as the moov describes it."""

    id: int
    kind: str  # "video" or "audio"
    timescale: int
    entry: bytes  # sample entry: avc1, hvc1, av01, mp4a, Opus
    config: bytes  # body of avcC, hvcC, av1C, vpcC, esds, dOps
    width: int
    height: int
    duration: int
    edits: list[tuple[int, int, int]]  # (segment_duration, media_time, rate)
    defaults: tuple[int, int, int] | None  # trex: duration, size, flags
    box: Box


@dataclasses.dataclass
class Movie:
    """An init segment, or the moov of a finished recording."""

    data: bytes
    boxes: list[Box]
    brands: list[bytes]
    timescale: int
    duration: int
    tracks: dict[int, Track]


def read_movie(data: bytes) -> Movie:
    boxes = read_boxes(data)
    brands = read_brands(data, boxes[0]) if boxes and boxes[0].type == b"ftyp" else []
    moovs = [box for box in boxes if box.type == b"moov"]
    if len(moovs) != 1:
        raise BoxError(f"{len(moovs)} moov boxes among {[box.type for box in boxes]}")
    moov = moovs[0]
    mvhd = moov.one(b"mvhd")
    version, _, at = full(data, mvhd)
    timescale, duration = struct.unpack_from(">IQ", data, at + 16) if version else struct.unpack_from(">II", data, at + 8)
    defaults = {}
    for trex in moov.all(b"mvex", b"trex"):
        _, _, at = full(data, trex)
        track, _, length, size, flags = struct.unpack_from(">5I", data, at)
        defaults[track] = (length, size, flags)
    tracks = {}
    for trak in moov.all(b"trak"):
        track = _read_track(data, trak, defaults)
        if track.id in tracks:
            raise BoxError(f"track {track.id} twice")
        tracks[track.id] = track
    return Movie(data, boxes, brands, timescale, duration, tracks)


def read_brands(data: bytes, box: Box) -> list[bytes]:
    """The major brand, followed by the compatible brands."""
    words = [data[at : at + 4] for at in range(box.body, box.end, 4)]
    return words[:1] + words[2:]


def _read_track(data: bytes, trak: Box, defaults: dict) -> Track:
    version, _, at = full(data, trak.one(b"tkhd"))
    (track,) = struct.unpack_from(">I", data, at + (16 if version else 8))
    width, height = struct.unpack_from(">II", data, trak.one(b"tkhd").end - 8)
    version, _, at = full(data, trak.one(b"mdia", b"mdhd"))
    timescale, duration = struct.unpack_from(">IQ", data, at + 16) if version else struct.unpack_from(">II", data, at + 8)
    hdlr = trak.one(b"mdia", b"hdlr")
    kind = {b"vide": "video", b"soun": "audio"}.get(data[hdlr.body + 8 : hdlr.body + 12], "other")
    stsd = trak.one(b"mdia", b"minf", b"stbl", b"stsd")
    _, _, at = full(data, stsd)
    entries = read_boxes(data, at + 4, stsd.end)
    if not entries:
        raise BoxError(f"track {track} has no sample entry")
    entry = entries[0]
    inner = read_boxes(data, entry.body + (78 if kind == "video" else 28), entry.end)
    config = next((box for box in inner if box.type in (b"avcC", b"hvcC", b"av1C", b"vpcC", b"esds", b"dOps")), None)
    edits = []
    for elst in trak.all(b"edts", b"elst"):
        version, _, at = full(data, elst)
        (count,) = struct.unpack_from(">I", data, at)
        shape = ">QqI" if version else ">IiI"
        edits = [struct.unpack_from(shape, data, at + 4 + i * struct.calcsize(shape)) for i in range(count)]
    return Track(
        track, kind, timescale, entry.type, data[config.body : config.end] if config else b"", width >> 16,
        height >> 16, duration, edits, defaults.get(track), trak)


@dataclasses.dataclass
class Sample:
    """A sample of a fragment, or of a movie's tables; times in ticks of its track."""

    dts: int
    offset: int  # of its bytes in the data
    size: int
    duration: int
    cts: int
    flags: int
    digest: str = ""

    @property
    def is_sync(self) -> bool:
        return not self.flags & 0x10000


@dataclasses.dataclass
class Run:
    """A traf with its samples."""

    track: int
    tfhd_flags: int
    tfdt: int
    tfdt_version: int
    trun_versions: list[int]
    trun_flags: list[int]
    samples: list[Sample]


@dataclasses.dataclass
class Fragment:
    """A moof and the mdat after it."""

    sequence: int
    moof: Box
    mdat: Box
    runs: list[Run]


@dataclasses.dataclass
class Segment:
    """A media segment: the brands of its styp (empty: none), its fragments, all its top-level boxes."""

    data: bytes
    brands: list[bytes]
    boxes: list[Box]
    fragments: list[Fragment]


def read_segment(data: bytes, movie: Movie) -> Segment:
    """Reads styp? (moof mdat)*; other top-level boxes are kept in `boxes`."""
    boxes = read_boxes(data)
    brands = read_brands(data, boxes[0]) if boxes and boxes[0].type == b"styp" else []
    fragments = []
    for index, box in enumerate(boxes):
        if box.type != b"moof":
            continue
        if index + 1 >= len(boxes) or boxes[index + 1].type != b"mdat":
            raise BoxError(f"no mdat after the moof at {box.start}")
        fragments.append(_read_fragment(data, box, boxes[index + 1], movie))
    return Segment(data, brands, boxes, fragments)


def _read_fragment(data: bytes, moof: Box, mdat: Box, movie: Movie) -> Fragment:
    _, _, at = full(data, moof.one(b"mfhd"))
    (sequence,) = struct.unpack_from(">I", data, at)
    runs = []
    for traf in moof.all(b"traf"):
        runs.append(_read_run(data, moof, traf, movie))
    return Fragment(sequence, moof, mdat, runs)


def _read_run(data: bytes, moof: Box, traf: Box, movie: Movie) -> Run:
    _, tfhd_flags, at = full(data, traf.one(b"tfhd"))
    (track,) = struct.unpack_from(">I", data, at)
    at += 4
    base = moof.start
    if track not in movie.tracks:
        raise BoxError(f"traf of track {track}, which the init segment does not have")
    length, size, flags = movie.tracks[track].defaults or (0, 0, 0)
    if tfhd_flags & 0x01:
        (base,) = struct.unpack_from(">Q", data, at)
        at += 8
    if tfhd_flags & 0x02:
        at += 4
    for bit in (0x08, 0x10, 0x20):
        if tfhd_flags & bit:
            (word,) = struct.unpack_from(">I", data, at)
            at += 4
            length, size, flags = (
                (word, size, flags) if bit == 8 else (length, word, flags) if bit == 0x10 else (length, size, word))
    version, _, at = full(data, traf.one(b"tfdt"))
    (tfdt,) = struct.unpack_from(">Q" if version else ">I", data, at)
    run = Run(track, tfhd_flags, tfdt, version, [], [], [])
    clock = tfdt
    position = base
    for trun in traf.all(b"trun"):
        trun_version, trun_flags, at = full(data, trun)
        (count,) = struct.unpack_from(">I", data, at)
        at += 4
        run.trun_versions.append(trun_version)
        run.trun_flags.append(trun_flags)
        if trun_flags & 0x01:
            (offset,) = struct.unpack_from(">i", data, at)
            position = base + offset
            at += 4
        first_flags = None
        if trun_flags & 0x04:
            (first_flags,) = struct.unpack_from(">I", data, at)
            at += 4
        for index in range(count):
            s_length, s_size, s_flags, cts = length, size, flags, 0
            if index == 0 and first_flags is not None:
                s_flags = first_flags
            if trun_flags & 0x100:
                (s_length,) = struct.unpack_from(">I", data, at)
                at += 4
            if trun_flags & 0x200:
                (s_size,) = struct.unpack_from(">I", data, at)
                at += 4
            if trun_flags & 0x400:
                (s_flags,) = struct.unpack_from(">I", data, at)
                at += 4
            if trun_flags & 0x800:
                (cts,) = struct.unpack_from(">i" if trun_version else ">I", data, at)
                at += 4
            digest = hashlib.md5(data[position : position + s_size]).hexdigest()
            run.samples.append(Sample(clock, position, s_size, s_length, cts, s_flags, digest))
            clock += s_length
            position += s_size
        if at != trun.end:
            raise BoxError(f"trun at {trun.start} has {trun.end - at} bytes too many")
    return run


@dataclasses.dataclass(frozen=True)
class ProducerReferenceTime:
    """A prft: at `wall`, in seconds since 1970, the track was at `time`, in its ticks."""

    version: int
    flags: int
    track: int
    wall: Fraction
    time: int


def read_prft(data: bytes, box: Box) -> ProducerReferenceTime:
    version, flags, at = full(data, box)
    track, seconds, fraction, time = struct.unpack_from(">IIIQ" if version else ">IIII", data, at)
    if box.end - at != (20 if version else 16):
        raise BoxError(f"prft at {box.start} has {box.end - at} bytes")
    return ProducerReferenceTime(version, flags, track, seconds - 2_208_988_800 + Fraction(fraction, 1 << 32), time)


def nal_units(data: bytes, sample: Sample) -> list[bytes]:
    """The NAL units of an H.264 or HEVC sample, split by four-byte lengths; BoxError if the lengths are wrong."""
    units = []
    at, end = sample.offset, sample.offset + sample.size
    while at < end:
        if end - at < 4:
            raise BoxError(f"{end - at} stray bytes in a sample")
        (size,) = struct.unpack_from(">I", data, at)
        if at + 4 + size > end:
            raise BoxError(f"a NAL unit of {size} bytes, {end - at - 4} are there")
        units.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return units


def obu_types(data: bytes, sample: Sample) -> list[int]:
    """The types of an AV1 sample's OBUs (each with its size field)."""
    types = []
    at, end = sample.offset, sample.offset + sample.size
    while at < end:
        header = data[at]
        types.append(header >> 3 & 15)
        at += 2 if header & 4 else 1
        if not header & 2:
            break  # the last OBU may leave its size out
        size = shift = 0
        while at < end:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        at += size
    if at > end:
        raise BoxError("an OBU ends behind its sample")
    return types
