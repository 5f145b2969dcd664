"""Evaluates a viewer's record: figures, and the rules they break."""

import bisect
import dataclasses
import re
import statistics

from films import SECOND

#: Limit of the requests for media by one viewer, per object.
REQUESTS = 1.1
#: Seconds to the first frame, and after a stream has returned.
START, RETURN = 10, 5
#: Programs other than browsers buffer before they begin.
PROGRAM_START = 25
#: Shorter stalls are caused by the machine, and so are losses in the first two seconds, while players find their position.
STALL, SETTLING = 0.3, 2
#: Three segments of two seconds, where programs begin.
HOLD_BACK = 6
#: Limits in seconds for the distance of audio and video, and for its change within a run.
APART, DRIFT = 0.25, 0.1

ADDRESS = re.compile(r'https?://[^ "]*')
#: Segments and parts. An init segment is requested again wherever a playlist names it again.
MEDIA = re.compile(r"/[^/?]*\.m4s(\?|$)")


@dataclasses.dataclass
class Figures:
    """Of one run of one player; times in seconds."""

    start: float | None = None
    latency: float | None = None
    stalls: int = 0
    stalled: float = 0
    missing: int = 0
    shown: int = 0
    jumps: list = dataclasses.field(default_factory=list)
    av: float | None = None
    av_drift: float | None = None
    requests: float | None = None
    manifests: float | None = None
    errors: list = dataclasses.field(default_factory=list)
    recovered: float | None = None
    sizes: list = dataclasses.field(default_factory=list)
    broken: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Expectation:
    """The expected behaviour for a shape. Times are milliseconds since 1970."""

    numbers: list[int]
    rate: int = 30
    #: When a frame number was published, in the latest publication that has it.
    anchors: dict[int, float] = dataclasses.field(default_factory=dict)
    #: (from, to): players may stand still between these times; `to` is when the stream was back.
    outages: list = dataclasses.field(default_factory=list)
    ends: bool = False
    has_video: bool = True
    has_audio: bool = True
    #: The first and the last existing frame, if a stream is played from its beginning or to its end.
    begins: int | None = None
    last: int | None = None
    live: bool = True
    #: The most that may be lost in all, in seconds, and limits for the distance of audio and video and its change.
    lost: float | None = None
    apart: float = APART
    drift: float = DRIFT
    #: Nothing may be shown twice.
    once: bool = False


def judge(record: dict, wanted: Expectation, is_browser: bool = True, *, by_segments: bool = False,
          stays_at_end: bool = False) -> Figures:
    """`by_segments`: a player that begins three segments behind, and shows an outage and the return later by as much.
    `stays_at_end`: one that shows the last frame and never signals the end (docs/playback.md)."""
    figures = Figures()
    if "failure" in record:
        figures.broken.append(record["failure"])
        return figures
    _start(record, figures, START if is_browser else PROGRAM_START)
    figures.errors = _errors(record, figures)
    if figures.start is None:
        return figures
    _stalls(record, figures, wanted, _delay(record, wanted) if by_segments else 0)
    if wanted.has_video:
        _frames(record, figures, wanted)
    if is_browser and record.get("muted") is not True:
        _audio(record, figures, wanted)
    _requests(record, figures)
    _end(record, figures, wanted, stays_at_end)
    return figures


def _start(record: dict, figures: Figures, limit: float) -> None:
    if record["first"] is None:
        figures.broken.append("never started")
        return
    figures.start = (record["first"] - record["began"]) / 1000
    if figures.start > limit:
        figures.broken.append(f"started after {figures.start:.1f} s")


def _errors(record: dict, figures: Figures) -> list[str]:
    seen: dict[str, int] = {}
    for _, severity, text in record["errors"]:
        key = f"{severity} {ADDRESS.sub('URL', text)}"[:160]
        seen[key] = seen.get(key, 0) + 1
        if severity == "fatal" and f"fatal: {key[6:]}" not in figures.broken:
            figures.broken.append(f"fatal: {key[6:]}")
    return [f"{count} × {key}" for key, count in seen.items()]


def _delays(frames: list, wanted: Expectation) -> list[float]:
    """Seconds from publishing to showing, for frames whose publication is known."""
    return [(at - wanted.anchors[first] - (number - first) * 1000 / wanted.rate) / 1000
            for at, _, number, *_ in frames
            for first in [max((f for f in wanted.anchors if f <= number), default=None)] if first is not None]


def _delay(record: dict, wanted: Expectation) -> float:
    """A viewer's delay before the first outage, in milliseconds. If only its clock is known: the three segments that libavformat
    begins behind."""
    gone = wanted.outages[0][0] if wanted.outages else float("inf")
    delays = _delays([p for p in record["frames"] if p[2] is not None and p[0] < gone], wanted)
    return statistics.median(delays) * 1000 if delays else HOLD_BACK * 1000


def _stalls(record: dict, figures: Figures, wanted: Expectation, delay: float) -> None:
    settled = record["first"] + SETTLING * 1000
    stalls = [(at, seconds) for at, seconds, _ in record["stalls"] if seconds >= STALL and at + seconds * 1000 > settled]
    # At the end of a stream it stands still for good.
    if wanted.ends and record["frozen"] and stalls:
        stalls.pop()
    figures.stalls, figures.stalled = len(stalls), sum(seconds for _, seconds in stalls)
    figures.jumps = [round(size, 2) for _, size, _ in record["jumps"]]
    for at, seconds in stalls:
        outage = next(((gone, back) for gone, back in wanted.outages
                       if at + seconds * 1000 > gone and at < back + RETURN * 1000 + delay), None)
        end = at + seconds * 1000
        if outage is None:
            figures.broken.append(f"stall of {seconds:.1f} s at {(at - record['began']) / 1000:.0f} s")
        elif end > outage[1] + RETURN * 1000 + delay:
            figures.broken.append(f"stands still until {(end - outage[1]) / 1000:.1f} s after the return")


def _frames(record: dict, figures: Figures, wanted: Expectation) -> None:
    """Missing frames: a jump of the number, minus the frames that the browser dropped before display."""
    frames = [p for p in record["frames"] if p[2] is not None]
    figures.shown, figures.sizes = len(frames), record["sizes"]
    unreadable = len(record["frames"]) - len(frames)
    if unreadable > max(3, len(record["frames"]) / 50):
        figures.broken.append(f"{unreadable} frames without a readable number")
    if wanted.begins is not None and frames and frames[0][2] - wanted.begins > 5:
        figures.missing += frames[0][2] - wanted.begins
        figures.broken.append(f"begins {frames[0][2] - wanted.begins} frames late")
    spare = 0
    for before, after in zip(frames, frames[1:]):
        skipped = _between(wanted.numbers, before[2], after[2])
        if skipped is None:
            continue
        unseen = max(after[4] - before[4] - 1, 0)
        # Decoded ahead of time or counted late: frames that were decoded but not shown may stand for frames near by.
        spare = min(spare + unseen, 30)
        taken = min(skipped, spare)
        spare -= taken
        if skipped > taken and after[0] > record["first"] + SETTLING * 1000:
            figures.missing += skipped - taken
            jump = after[1] - before[1]
            if not any(gone - 500 <= after[0] <= back + 60_000 for gone, back in wanted.outages):
                figures.broken.append(
                    f"{skipped - taken} frames missing at {(after[0] - record['began']) / 1000:.1f} s (jump of {jump:.2f} s)")
    if wanted.lost is not None and figures.missing > wanted.lost * wanted.rate:
        figures.broken.append(f"{figures.missing} frames missing in all")
    again = [after[2] for before, after in zip(frames, frames[1:])
             if after[2] < before[2] and after[2] // SECOND == before[2] // SECOND]
    if wanted.once and again:
        figures.broken.append(f"goes back {len(again)} times, to frames {again[:5]}")
    delays = _delays(frames, wanted)
    if delays and wanted.live:
        figures.latency = statistics.median(delays[len(delays) // 3:])
    if wanted.outages and frames:
        back = wanted.outages[-1][1]
        again = next((at for at, _, number, *_ in frames if number >= SECOND and at > wanted.outages[-1][0]), None)
        figures.recovered = (again - back) / 1000 if again else None
        if again is None:
            figures.broken.append("shows nothing of what came after the return")
        elif figures.recovered > RETURN + 2 + max(figures.latency or 0, 0):
            figures.broken.append(f"shows the new frames {figures.recovered:.1f} s after the return")


def _between(numbers: list[int], before: int, after: int) -> int | None:
    """Number of frames between two; None if the film restarted or the viewer went back."""
    if after <= before or before // SECOND != after // SECOND:
        return None
    return max(bisect.bisect_left(numbers, after) - bisect.bisect_right(numbers, before), 0)


def _audio(record: dict, figures: Figures, wanted: Expectation) -> None:
    if not wanted.has_audio:
        return
    if not record["beeps"]:
        figures.broken.append("no audio")
        return
    if not wanted.has_video:
        return
    frames = [p for p in record["frames"] if p[2] is not None]
    times = [p[0] for p in frames]
    offsets = []
    for at, _ in record["beeps"]:
        index = bisect.bisect_right(times, at) - 1
        if index < 0 or at - times[index] > 200:
            continue
        # By the element's clock, not by the moment on the screen, which is up to one of its refreshes (17 ms) later.
        _, media, number, *_, clock = frames[index]
        position = number % SECOND / wanted.rate + clock + at / 1000 - media
        offsets.append((position + 0.5) % 1 - 0.5)
    if len(offsets) >= 5:
        third = max(len(offsets) // 3, 2)
        figures.av = statistics.median(offsets)
        figures.av_drift = statistics.median(offsets[-third:]) - statistics.median(offsets[:third])
        if abs(figures.av) > wanted.apart:
            figures.broken.append(f"audio and video {figures.av * 1000:.0f} ms apart")
        if abs(figures.av_drift) > wanted.drift:
            figures.broken.append(f"audio moved {figures.av_drift * 1000:.0f} ms against the video")


def _requests(record: dict, figures: Figures) -> None:
    media = [(r["url"].split("?")[0], r["range"]) for r in record["requests"] if MEDIA.search(r["url"])]
    if media:
        figures.requests = len(media) / len(set(media))
        if figures.requests > REQUESTS:
            figures.broken.append(f"{figures.requests:.2f} requests for each piece of media")
    seconds = (record["now"] - record["began"]) / 1000
    manifests = [r for r in record["requests"] if re.search(r"\.(m3u8|mpd|mpp)(\?|$)", r["url"])]
    figures.manifests = len(manifests) / seconds


def _end(record: dict, figures: Figures, wanted: Expectation, stays_at_end: bool) -> None:
    if wanted.ends:
        if record["ended"] is None and not stays_at_end:
            figures.broken.append("the end is not reached")
        elif wanted.last is not None and (seen := [p[2] for p in record["frames"] if p[2] is not None]):
            if wanted.last - seen[-1] > 3:
                figures.broken.append(f"ended {wanted.last - seen[-1]} frames early")
        return
    if record["frozen"] and record["stalls"][-1][1] > 2:
        figures.broken.append(f"frozen at the end for {record['stalls'][-1][1]:.0f} s")
    if wanted.live and record["frames"] and record["now"] - record["frames"][-1][0] > 3000:
        figures.broken.append(f"no frame for the last {(record['now'] - record['frames'][-1][0]) / 1000:.0f} s")
