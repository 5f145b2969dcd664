"""A finished recording: the sample tables of a progressive MP4 (ISO/IEC 14496-12 §8.6, §8.7) and rules E01 to E09."""

import pathlib
import struct

from . import box_rules, boxes
from .boxes import BoxError, Movie, Sample, Track, full


def read_tables(movie: Movie, track: Track) -> list[Sample]:
    """All samples of a track, from its tables."""
    data = movie.data
    stbl = track.box.one(b"mdia", b"minf", b"stbl")

    def table(name: bytes) -> tuple[int, int] | None:
        found = stbl.all(name)
        if len(found) > 1:
            raise BoxError(f"{name!r} twice")
        if not found:
            return None
        version, _, at = full(data, found[0])
        return version, at

    _, at = table(b"stsz") or (0, 0)
    fixed, count = struct.unpack_from(">II", data, at)
    sizes = [fixed] * count if fixed else list(struct.unpack_from(f">{count}I", data, at + 8))

    durations: list[int] = []
    _, at = table(b"stts") or (0, 0)
    for index in range(struct.unpack_from(">I", data, at)[0]):
        times, delta = struct.unpack_from(">II", data, at + 4 + index * 8)
        durations += [delta] * times

    offsets = [0] * count
    ctts = table(b"ctts")
    if ctts:
        version, at = ctts
        offsets = []
        for index in range(struct.unpack_from(">I", data, at)[0]):
            times, offset = struct.unpack_from(">Ii" if version else ">II", data, at + 4 + index * 8)
            offsets += [offset] * times

    stss = table(b"stss")
    sync = set(range(1, count + 1))
    if stss:
        (entries,) = struct.unpack_from(">I", data, stss[1])
        sync = set(struct.unpack_from(f">{entries}I", data, stss[1] + 4))

    chunks = table(b"co64")
    shape = ">%dQ"
    if not chunks:
        chunks, shape = table(b"stco"), ">%dI"
    if not chunks:
        raise BoxError(f"track {track.id} has no chunk offsets")
    (entries,) = struct.unpack_from(">I", data, chunks[1])
    starts = struct.unpack_from(shape % entries, data, chunks[1] + 4)
    _, at = table(b"stsc") or (0, 0)
    rows = [struct.unpack_from(">III", data, at + 4 + i * 12) for i in range(struct.unpack_from(">I", data, at)[0])]

    if not len(sizes) == len(durations) == len(offsets):
        raise BoxError(f"E02 track {track.id}: stsz {len(sizes)}, stts {len(durations)}, ctts {len(offsets)} samples")
    samples: list[Sample] = []
    clock = 0
    for chunk, start in enumerate(starts, 1):
        per_chunk = next((row[1] for row in reversed(rows) if row[0] <= chunk), 0)
        position = start
        for _ in range(per_chunk):
            index = len(samples)
            if index >= count:
                raise BoxError(f"E02 track {track.id}: the chunks hold more than {count} samples")
            flags = 0 if index + 1 in sync else 0x10000
            samples.append(Sample(clock, position, sizes[index], durations[index], offsets[index], flags))
            clock += durations[index]
            position += sizes[index]
    if len(samples) != count:
        raise BoxError(f"E02 track {track.id}: the chunks hold {len(samples)} of {count} samples")
    return samples


def check_recording(path: pathlib.Path, hole: float = 0) -> list[str]:
    """The errors in a finished recording, of which this many seconds are missing at one position by its metadata: the
    sample before a gap lasts for the whole gap."""
    data = path.read_bytes()
    movie = boxes.read_movie(data)
    kinds = [box.type for box in movie.boxes]
    problems = []
    significant = [kind for kind in kinds if kind not in (b"free", b"skip", b"wide")]
    if significant[:3] != [b"ftyp", b"moov", b"mdat"]:
        problems.append(f"E01 the file is {kinds}, not ftyp moov mdat")
    if b"moof" in kinds:
        problems.append("E01 the finished file is fragmented")
    moov = next(box for box in movie.boxes if box.type == b"moov")
    if moov.all(b"mvex"):
        problems.append("E01 mvex in a finished file")
    spans = [(box.body, box.end) for box in movie.boxes if box.type == b"mdat"]
    longest = 0.0
    for track in movie.tracks.values():
        name = f"track {track.id} ({track.kind})"
        samples = read_tables(movie, track)
        if not samples:
            problems.append(f"E02 {name}: no samples")
            continue
        outside = [s for s in samples if not any(a <= s.offset and s.offset + s.size <= b for a, b in spans)]
        if outside:
            problems.append(f"E02 {name}: {len(outside)} samples lie outside the mdat, the first at {outside[0].offset}")
            continue
        if track.duration != sum(sample.duration for sample in samples):
            problems.append(f"E02 {name}: mdhd says {track.duration}, the samples {sum(s.duration for s in samples)}")
        if track.kind == "video":
            for index, sample in enumerate(samples):
                problems += box_rules.check_bitstream(data, sample, track, f"E02 {name}, sample {index}")
        # An empty edit, which delays a track, counts too.
        longest = max(longest, sum(duration for duration, _, _ in track.edits) / movie.timescale)
        for _, _, rate in track.edits:
            if rate != 0x10000:
                problems.append(f"E03 {name}: edit rate {rate:#x}")
        problems += box_rules.check_tkhd(data, track, name)
    problems += _check_interleave(movie, hole)
    overlaps = _overlap(movie)
    if overlaps:
        problems.append(overlaps)
    if longest and abs(movie.duration / movie.timescale - longest) > 0.001:
        problems.append(f"E03 mvhd says {movie.duration / movie.timescale} s, the longest edit {longest} s")
    return problems


def _check_interleave(movie: Movie, hole: float) -> list[str]:
    """E06: interleaving. Neither of two tracks may run ahead of the other by more than a second (and rounding)."""
    if len(movie.tracks) < 2:
        return []
    pieces = sorted(
        (sample.offset, track.id, sample.duration / track.timescale)
        for track in movie.tracks.values() for sample in read_tables(movie, track))
    length, current = 0.0, None
    for _, track, duration in pieces:
        length = length + duration if track == current else duration
        current = track
        if length > 1.1 + hole:
            return [f"E06 track {track} runs on for more than {length:.2f} s without the other"]
    return []


def _overlap(movie: Movie) -> str | None:
    pieces = sorted((s.offset, s.size) for track in movie.tracks.values() for s in read_tables(movie, track))
    for (a, size), (b, _) in zip(pieces, pieces[1:]):
        if a + size > b:
            return f"E02 samples at {a} (+{size}) and {b} overlap"
    return None
