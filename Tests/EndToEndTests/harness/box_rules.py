"""The rules of fragmented MP4 (ISO/IEC 14496-12, CMAF 23000-19, 14496-15). Each is a check that returns violations. A
returned line begins with the number of the rule in Tests/RULES.md."""

import dataclasses
import struct
from fractions import Fraction

from . import boxes
from .boxes import Fragment, Movie, Run, Segment, full

BASE_IS_MOOF = 0x020000
BASE_DATA_OFFSET = 0x000001
UNITY = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def check_init(movie: Movie, *, tracks: str) -> list[str]:
    """`tracks`: "one" for a CMAF track, "many" for the interleaved layout."""
    data, problems = movie.data, []
    kinds = [box.type for box in movie.boxes]
    if kinds != [b"ftyp", b"moov"]:
        problems.append(f"A01 init is {kinds}, not ftyp moov")
    if not {b"iso6", b"iso8", b"iso9"} & set(movie.brands):
        problems.append(f"A01 no iso6 or later among the brands {movie.brands}")
    if tracks == "one" and b"cmfc" not in movie.brands:
        problems.append(f"A01 no cmfc brand on a one-track init: {movie.brands}")
    if tracks == "many" and len(movie.tracks) > 1 and b"cmfc" in movie.brands:
        problems.append("A01 cmfc brand on an interleaved init")
    if tracks == "one" and len(movie.tracks) != 1:
        problems.append(f"A04 {len(movie.tracks)} tracks in a one-track init")
    if movie.duration:
        problems.append(f"A05 mvhd duration {movie.duration}")
    moov = movie.boxes[-1]
    if moov.all(b"mvex", b"mehd"):
        problems.append("A05 mehd in a live init")
    for track in movie.tracks.values():
        name = f"track {track.id} ({track.kind})"
        if track.defaults is None:
            problems.append(f"A05 {name}: no trex")
        if track.duration:
            problems.append(f"A05 {name}: mdhd duration {track.duration}")
        stbl = track.box.one(b"mdia", b"minf", b"stbl")
        for table in (b"stts", b"stsc", b"stsz", b"stco"):
            found = stbl.all(table)
            if len(found) != 1:
                problems.append(f"A05 {name}: {len(found)} {table!r}")
            elif any(data[found[0].body + 4 : found[0].end]):
                problems.append(f"A05 {name}: {table!r} is not empty")
        problems += check_tkhd(data, track, name)
        for _, media_time, _ in track.edits:
            if media_time == -1:
                problems.append(f"A16 {name}: an empty edit")
            if media_time:
                problems.append(f"A17 {name}: an edit with media time {media_time} in a live init")
        if not track.config:
            problems.append(f"A19-A24 {name}: no configuration record in {track.entry!r}")
        problems += _check_config(track, name)
    return problems


def check_tkhd(data: bytes, track: boxes.Track, name: str) -> list[str]:
    problems = []
    tkhd = track.box.one(b"tkhd")
    version, flags, at = full(data, tkhd)
    if flags & 3 != 3:
        problems.append(f"A06 {name}: tkhd flags {flags:#x}")
    duration = struct.unpack_from(">Q" if version else ">I", data, at + (24 if version else 16))[0]
    if duration and track.defaults is not None:
        problems.append(f"A05 {name}: tkhd duration {duration}")
    at += 32 if version else 20
    (volume,) = struct.unpack_from(">12xh", data, at)
    if volume != (0x100 if track.kind == "audio" else 0):
        problems.append(f"A06 {name}: volume {volume:#x}")
    matrix = data[at + 16 : at + 52]
    if matrix != UNITY:
        problems.append(f"A06 {name}: matrix {matrix.hex()}")
    if track.kind == "video" and not (track.width and track.height):
        problems.append(f"A06 {name}: size {track.width}x{track.height}")
    return problems


def _check_config(track: boxes.Track, name: str) -> list[str]:
    config, problems = track.config, []
    if track.entry == b"avc1" and config:
        if config[0] != 1 or config[4] & 3 != 3:
            problems.append(f"A21 {name}: avcC begins {config[:6].hex()}")
        count = config[5] & 31
        (length,) = struct.unpack_from(">H", config, 6)
        sps = config[8 : 8 + length]
        if count < 1 or sps[1:4] != config[1:4]:
            problems.append(f"A19 {name}: profile {config[1:4].hex()} in avcC, {sps[1:4].hex()} in the SPS")
    elif track.entry == b"hvc1" and config:
        at = 23
        kinds = []
        for _ in range(config[22]):
            kinds.append(config[at] & 63)
            if not config[at] & 0x80:
                problems.append(f"A20 {name}: array_completeness 0 for type {config[at] & 63}")
            (units,) = struct.unpack_from(">H", config, at + 1)
            at += 3
            for _ in range(units):
                at += 2 + struct.unpack_from(">H", config, at)[0]
        if not {32, 33, 34} <= set(kinds):
            problems.append(f"A20 {name}: hvcC holds types {kinds}")
    elif track.entry == b"av01" and config:
        if config[0] != 0x81:
            problems.append(f"A22 {name}: av1C begins {config[0]:#x}")
        if len(config) < 6 or config[4] >> 3 & 15 != 1:
            problems.append(f"A22 {name}: no sequence header in av1C")
    elif track.entry == b"vp09" and config:
        if len(config) != 12 or config[:4] != b"\x01\0\0\0":
            problems.append(f"A22 {name}: vpcC {config.hex()}")
    elif track.entry == b"Opus" and config:
        if config[0] != 0:
            problems.append(f"A23 {name}: dOps version {config[0]}")
        if track.timescale != 48000:
            problems.append(f"A23 {name}: timescale {track.timescale}")
    elif track.entry not in (b"mp4a",):
        problems.append(f"A19 {name}: sample entry {track.entry!r}")
    return problems


@dataclasses.dataclass
class Continuity:
    """What the next fragment must continue: the decode time of each track, and the sequence number."""

    clock: dict[int, int] = dataclasses.field(default_factory=dict)
    sequence: int = -1


def check_segment(
    segment: Segment, movie: Movie, state: Continuity, *, tracks: str, independent: bool = True, last: bool = False
) -> list[str]:
    """Checks one whole segment and updates `state`. `independent`: it must begin with a sync sample."""
    problems = []
    kinds = [box.type for box in segment.boxes]
    if kinds[:1] != [b"styp"]:
        problems.append(f"A02 the segment begins with {kinds[:1]}")
    elif b"msdh" not in segment.brands:
        problems.append(f"A02 no msdh in styp: {segment.brands}")
    if b"msix" in segment.brands and b"sidx" not in kinds:
        problems.append("A02 msix without sidx")
    if tracks == "many" and len(movie.tracks) > 1 and {b"cmfs", b"cmff"} & set(segment.brands):
        problems.append("A02 CMAF segment brand on an interleaved segment")
    if b"lmsg" in segment.brands and not last:
        problems.append("A03 lmsg on a segment that is not the last")
    if not segment.fragments:
        problems.append("A07 no fragment")
    for kind in kinds:
        if kind not in (b"styp", b"prft", b"emsg", b"sidx", b"moof", b"mdat"):
            problems.append(f"A07 top-level box {kind!r}")
    problems += check_reference_times(segment, movie)
    for index, fragment in enumerate(segment.fragments):
        problems += check_fragment(segment.data, fragment, movie, state)
        if index == 0 and independent:
            for run in fragment.runs:
                if movie.tracks[run.track].kind == "video" and run.samples and not run.samples[0].is_sync:
                    problems.append("A15 the segment does not begin with a sync sample")
    return problems


def check_reference_times(segment: Segment, movie: Movie) -> list[str]:
    """A prft stands before the first fragment. It has the earliest presentation time of its track there."""
    kinds = [box.type for box in segment.boxes]
    if b"moof" not in kinds or kinds[: kinds.index(b"moof")].count(b"prft") != 1:
        return [f"A27 the segment begins with {kinds[:3]}"]
    reference = boxes.read_prft(segment.data, segment.boxes[kinds.index(b"prft")])
    starts = [min(s.dts + s.cts for s in run.samples)
              for run in segment.fragments[0].runs if run.track == reference.track and run.samples]
    if reference.version != 1 or reference.track not in movie.tracks or starts != [reference.time]:
        return [f"A27 {reference}, the fragment's first presentation times are {starts}"]
    return []


def check_fragment(data: bytes, fragment: Fragment, movie: Movie, state: Continuity) -> list[str]:
    problems = []
    where = f"fragment {fragment.sequence}"
    if fragment.sequence <= state.sequence:
        problems.append(f"A10 sequence number {fragment.sequence} after {state.sequence}")
    state.sequence = fragment.sequence
    pieces = []
    for run in fragment.runs:
        track = movie.tracks[run.track]
        name = f"{where}, track {run.track} ({track.kind})"
        if not run.tfhd_flags & BASE_IS_MOOF or run.tfhd_flags & BASE_DATA_OFFSET:
            problems.append(f"A08 {name}: tfhd flags {run.tfhd_flags:#x}")
        if run.tfdt_version != 1:
            problems.append(f"A11 {name}: tfdt version {run.tfdt_version}")
        expected = state.clock.get(run.track)
        if expected is not None and run.tfdt != expected:
            problems.append(f"A11 {name}: tfdt {run.tfdt}, previous end {expected}")
        if any(version != 1 for version in run.trun_versions):
            problems.append(f"A12 {name}: trun version {run.trun_versions}")
        if any(flags & 0x404 == 0x404 for flags in run.trun_flags):
            problems.append(f"A14 {name}: first-sample-flags and sample-flags both")
        if not run.samples:
            problems.append(f"A09 {name}: no sample")
        problems += _check_samples(data, run, track, name)
        state.clock[run.track] = run.tfdt + sum(sample.duration for sample in run.samples)
        pieces += [(sample.offset, sample.size) for sample in run.samples]
    problems += _check_fill(fragment, pieces, where)
    return problems


def _check_fill(fragment: Fragment, pieces: list[tuple[int, int]], where: str) -> list[str]:
    at = fragment.mdat.body
    for offset, size in sorted(piece for piece in pieces if piece[1]):
        if offset != at:
            return [f"A09 {where}: sample bytes at {offset}, expected {at} (mdat {fragment.mdat.body}..{fragment.mdat.end})"]
        at += size
    if at != fragment.mdat.end:
        return [f"A09 {where}: {fragment.mdat.end - at} bytes of the mdat belong to no sample"]
    return []


def _check_samples(data: bytes, run: Run, track: boxes.Track, name: str) -> list[str]:
    problems = []
    for index, sample in enumerate(run.samples):
        if not 0 < sample.duration < 10 * track.timescale:
            problems.append(f"A13 {name}: sample {index} lasts {sample.duration} ticks")
        depends = sample.flags >> 24 & 3
        if track.kind == "audio":
            if not sample.is_sync:
                problems.append(f"A14 {name}: audio sample {index} is not sync")
            continue
        if depends != (2 if sample.is_sync else 1):
            problems.append(f"A14 {name}: sample {index} sync={sample.is_sync} with depends_on {depends}")
        problems += check_bitstream(data, sample, track, f"{name}, sample {index}")
    return problems


def is_recovery_point(unit: bytes) -> bool:
    """Whether a SEI NAL unit has a recovery point at this frame (ITU-T H.264 D.1.8): an open group of pictures."""
    payload, at = unit.replace(b"\0\0\3", b"\0\0"), 1
    while unit[0] & 31 == 6 and at + 2 < len(payload):
        numbers = []
        for _ in range(2):
            number = 0
            while at < len(payload) and payload[at] == 255:
                number, at = number + 255, at + 1
            if at >= len(payload):
                return False
            numbers.append(number + payload[at])
            at += 1
        kind, size = numbers
        if kind == 6:
            return payload[at] & 0x80 != 0  # recovery_frame_cnt is ue(v) of 0
        at += size
    return False


def check_bitstream(data: bytes, sample: boxes.Sample, track: boxes.Track, name: str) -> list[str]:
    """A15, A19, A20, A22: the flags agree with the coded frame, and no parameter sets are in it."""
    problems = []
    if track.entry == b"avc1":
        units = [unit for unit in boxes.nal_units(data, sample) if unit]
        kinds = [unit[0] & 31 for unit in units]
        if (5 in kinds or any(is_recovery_point(unit) for unit in units)) != sample.is_sync:
            problems.append(f"A15 {name}: sync={sample.is_sync}, NAL types {kinds}")
        if {7, 8, 9} & set(kinds):
            problems.append(f"A19 {name}: NAL types {kinds}")
    elif track.entry == b"hvc1":
        kinds = [unit[0] >> 1 & 63 for unit in boxes.nal_units(data, sample) if unit]
        if any(16 <= kind <= 21 for kind in kinds) != sample.is_sync:
            problems.append(f"A15 {name}: sync={sample.is_sync}, NAL types {kinds}")
        if {32, 33, 34, 35} & set(kinds):
            problems.append(f"A20 {name}: NAL types {kinds}")
    elif track.entry == b"av01":
        kinds = boxes.obu_types(data, sample)
        if 2 in kinds:
            problems.append(f"A22 {name}: a temporal delimiter in the sample")
        if sample.is_sync and 1 not in kinds:
            problems.append(f"A15 {name}: sync without a sequence header")
    return problems


def earliest_presentation(segment: Segment, track: int) -> int:
    """The earliest presentation time of a track in a segment, in its ticks."""
    return min(s.dts + s.cts for f in segment.fragments for r in f.runs if r.track == track for s in r.samples)


def segment_length(segment: Segment, movie: Movie, track: int) -> Fraction:
    """Seconds of one track's samples in a segment, from the first presentation time to the end of the last."""
    samples = [s for f in segment.fragments for r in f.runs if r.track == track for s in r.samples]
    if not samples:
        return Fraction(0)
    ticks = max(s.dts + s.cts + s.duration for s in samples) - min(s.dts + s.cts for s in samples)
    return Fraction(ticks, movie.tracks[track].timescale)


def lead(movie: Movie) -> int:
    """The track that determines the length of a segment: the video if there is one."""
    return min(movie.tracks, key=lambda track: movie.tracks[track].kind != "video")
