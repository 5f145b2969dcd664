"""The view of ffprobe and ffmpeg on a file or URL, and the comparison of two such views."""

import dataclasses
import json
from fractions import Fraction

from .tools import FFMPEG, FFPROBE, new_ffmpeg, run

#: RTMP times are whole milliseconds. This is the largest rounding error between two tracks.
PROTOCOL_ROUNDING = Fraction(1, 1000)


@dataclasses.dataclass(frozen=True)
class Packet:
    """One coded frame; times in exact seconds."""

    dts: Fraction
    pts: Fraction
    tick: Fraction  # one tick of its track, in seconds
    size: int
    digest: str
    is_key: bool


class ProbeError(AssertionError):
    """ffprobe could not read the file or URL."""


def probe(target, *options: str, prober: str = FFPROBE, timeout: float = 60) -> dict[str, list[Packet]]:
    """All packets of the first video and the first audio track, by "video" and "audio"."""
    done = run(
        prober, "-v", "error", *options, "-show_streams", "-show_packets", "-show_data_hash", "md5", "-of", "json",
        target, timeout=timeout,
    )
    if done.returncode != 0 or done.stderr.strip():
        raise ProbeError(f"ffprobe {target}: exit {done.returncode}: {done.stderr.strip()[:2000]}")
    report = json.loads(done.stdout)
    kinds: dict[int, tuple[str, Fraction]] = {}
    for stream in report["streams"]:
        if stream["codec_type"] in ("video", "audio") and stream["codec_type"] not in [k for k, _ in kinds.values()]:
            kinds[stream["index"]] = (stream["codec_type"], Fraction(stream["time_base"]))
    found: dict[str, list[Packet]] = {kind: [] for kind, _ in kinds.values()}
    for packet in report["packets"]:
        if packet["stream_index"] not in kinds:
            continue
        kind, tick = kinds[packet["stream_index"]]
        if "pts" not in packet or "dts" not in packet:
            raise ProbeError(f"ffprobe {target}: a {kind} packet without pts or dts: {packet}")
        found[kind].append(
            Packet(packet["dts"] * tick, packet["pts"] * tick, tick, int(packet["size"]), packet["data_hash"],
                   packet["flags"].startswith("K")))
    return found


def compare(
    published: dict[str, list[Packet]], served: dict[str, list[Packet]], *, variable: bool = False,
    whole: bool = True, trusted_from: int = 0, skew: Fraction = Fraction(0)
) -> list[str]:
    """The errors in `served` if `published` is what the publisher sent; empty if there are none.

    Every video frame must be there with the same bytes. Audio frames before the first video frame may be missing. With a
    constant rate, decode and presentation times are the published ones plus one exact constant for each track. With a
    variable rate they are so within the protocol's rounding. The constants of the tracks differ at most by that rounding.
    `whole` is false for a view that may begin later and end earlier, but without holes. The decode times of the first
    `trusted_from` video frames are not compared, and the tracks may differ by `skew` seconds. This is for a publisher
    whose muxer cannot send negative times.
    """
    problems: list[str] = []
    if sorted(published) != sorted(served):
        return [f"tracks published: {sorted(published)}, served: {sorted(served)}"]
    shifts: dict[str, Fraction] = {}
    for kind, sent in published.items():
        got = served[kind]
        if not got:
            problems.append(f"{kind}: no packet served, {len(sent)} published")
            continue
        first = _find(sent, got)
        if first is None:
            problems.append(f"{kind}: the first served packet ({got[0].size} B) is none that was published")
            continue
        if first and whole:
            opening = published["video"][0].pts if "video" in published else sent[0].pts
            allowed = kind == "audio" and "video" in published and sent[first - 1].pts < opening
            if not allowed:
                problems.append(f"{kind}: the first {first} packets are missing")
        expected = sent[first:]
        if whole and len(got) != len(expected):
            problems.append(f"{kind}: {len(got)} packets served, {len(expected)} expected")
        wrong = [index for index, (a, b) in enumerate(zip(expected, got)) if a.digest != b.digest]
        if wrong:
            problems.append(f"{kind}: {len(wrong)} packets differ in bytes, the first is number {wrong[0]}")
            continue
        for name in ("pts", "dts"):
            skip = trusted_from if kind == "video" and name == "dts" else 0
            offsets = [getattr(b, name) - getattr(a, name) for a, b in zip(expected, got)][skip:]
            spread = max(offsets) - min(offsets)
            allowed_spread = (PROTOCOL_ROUNDING + got[0].tick) if variable and kind == "video" else 0
            if spread > allowed_spread:
                where = next(i for i, offset in enumerate(offsets) if abs(offset - offsets[0]) > allowed_spread / 2)
                problems.append(
                    f"{kind}: {name} is not the published one plus a constant: spread {float(spread * 1000):.3f} ms, "
                    f"first seen at packet {where + skip} ({float((offsets[where] - offsets[0]) * 1000):+.3f} ms)")
            if name == "pts":
                shifts[kind] = (max(offsets) + min(offsets)) / 2
        keys = [index for index, (a, b) in enumerate(zip(expected, got)) if a.is_key != b.is_key]
        if keys:
            problems.append(f"{kind}: the key flag differs at packets {keys[:5]}")
    if len(shifts) == 2:
        tolerance = skew + PROTOCOL_ROUNDING + sum(served[kind][0].tick for kind in shifts)
        apart = shifts["audio"] - shifts["video"]
        if abs(apart) > tolerance:
            problems.append(f"audio is {float(apart * 1000):+.3f} ms off the video, compared with the source")
    return problems


def _find(sent: list[Packet], got: list[Packet]) -> int | None:
    """Position of `got` in `sent`, by the bytes of its first packets."""
    head = [packet.digest for packet in got[:4]]
    for index in range(len(sent)):
        if [packet.digest for packet in sent[index : index + len(head)]] == head:
            return index
    return next((index for index, packet in enumerate(sent) if packet.digest == got[0].digest), None)


def decode(target, *options: str, decoder: str = FFMPEG, timeout: float = 90) -> tuple[str, dict[str, int]]:
    """Decodes everything at `target`. Returns ffmpeg's error lines (empty if none) and the number of frames by kind."""
    done = run(
        decoder, "-v", "error", "-xerror", *options, "-i", target, "-map", "0", "-fps_mode", "passthrough",
        "-f", "framehash", "-hash", "adler32", "-", timeout=timeout,
    )
    kinds: dict[str, str] = {}
    frames: dict[str, int] = {}
    for line in done.stdout.splitlines():
        if line.startswith("#media_type"):
            index, kind = line.removeprefix("#media_type").split(":")
            kinds[index.strip()] = kind.strip()
        elif line and not line.startswith("#"):
            kind = kinds[line.split(",")[0].strip()]
            frames[kind] = frames.get(kind, 0) + 1
    errors = done.stderr.strip()
    if done.returncode != 0 and not errors:
        errors = f"ffmpeg exits {done.returncode}"
    return errors, frames


def walked(movie, segments) -> dict[str, list[Packet]]:
    """The same view of segments (`boxes.Segment`) with one init segment, by our own parser without ffmpeg."""
    found: dict[str, list[Packet]] = {track.kind: [] for track in movie.tracks.values()}
    for segment in segments:
        for run in (run for fragment in segment.fragments for run in fragment.runs):
            track = movie.tracks[run.track]
            tick = Fraction(1, track.timescale)
            found[track.kind] += [
                Packet(s.dts * tick, (s.dts + s.cts) * tick, tick, s.size, f"MD5:{s.digest}", s.is_sync)
                for s in run.samples]
    return found


def decoder_for(name: str) -> str:
    """The ffmpeg that decodes the film fast and correctly: Debian's, or the newer one for films that Debian's sends badly."""
    return new_ffmpeg() if name.startswith("av1") else FFMPEG
