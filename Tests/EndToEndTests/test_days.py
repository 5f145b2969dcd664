"""A sender for days, in seconds: what it uploads was made earlier, so that it comes as fast as it is taken. Its clock of 33 bits
wraps twice, for which 26.5 hours are the least. With WEIR_FAULTS=long it sends for 64 hours, which takes a minute."""

import os
import pathlib
from fractions import Fraction

import pytest

from harness import nothing_wrong, publishers, tools
from harness.days import Days
from harness.transport import WRAP

HOURS = 64 if os.environ.get("WEIR_FAULTS") == "long" else 26.6
#: Seconds from the beginning to the first wrap, and from there to the second one.
FIRST, DAY = 60 if HOURS < 50 else 8 * 3600, WRAP / 90_000
#: PTS and DTS in ticks of 90 kHz.
Times = list[tuple[Fraction, Fraction]]


def times(target: str | pathlib.Path, stream: str) -> Times:
    """Of a track's packets, in the order of decoding."""
    rows = [row.split(",") for row in tools.output(
        tools.FFPROBE, "-v", "error", "-select_streams", stream, "-show_entries", "stream=time_base:packet=pts,dts", "-of", "csv",
        target).decode().split()]
    tick = 90_000 * Fraction(next(row[1] for row in rows if row[0] == "stream"))
    return [(int(row[1]) * tick, int(row[2]) * tick) for row in rows if row[0] == "packet"]


def shifts(sent: Times, got: Times) -> list[Fraction]:
    """By how many ticks each time differs, of as many frames."""
    return [mine - its for before, after in zip(sent, got) for its, mine in zip(before, after)]


@pytest.mark.long
def test_times_are_exact_through_two_wraps(start, tmp_path):
    """Each PTS and DTS of video with B-frames, and of audio that is there around both wraps: within one tick of what was sent, up to
    one constant, in each recording and in the last minute by HLS. Nothing is missing, and nothing breaks the timeline. Another
    recording begins where audio is silent for half a day: no sample of an MP4 file can last longer."""
    assert FIRST + DAY + 20 < HOURS * 3600
    film = Days(HOURS, WRAP - FIRST * 90_000, heard=[0, FIRST - 6, FIRST + DAY - 6, HOURS * 3600 - 20])
    film.write(tmp_path / "days.ts")
    weir = start()
    publishers.Publisher([
        "curl", "-sS", "--fail", "--max-time", "300", "-o", "/dev/null", "-T", str(tmp_path / "days.ts"),
        f"{weir.web}/live/days/ingest"]).wait(300)
    files = 2 if HOURS < 50 else 3
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("days")] == ["completed"] * files, 60, f"{files} recordings")
    stream = weir.stream("days")
    assert stream["received"]["lostVideoFrames"] == stream["received"]["lostAudioFrames"] == 0, stream
    assert all(r["gaps"] == [] for r in weir.recordings_of("days")), weir.recordings_of("days")
    playlist = f"{weir.web}/live/days/index.m3u8"
    text = weir.get(next(
        f"/live/days/{line}" for line in weir.get("/live/days/index.m3u8").good().text.splitlines() if "/av/" in line)).good().text
    assert "#EXT-X-ENDLIST" in text and "#EXT-X-DISCONTINUITY" not in text, text
    # In the order of their making: names are times of day, which are set right while media comes.
    recorded = sorted((weir.recordings / "days").glob("*Z.mp4"), key=lambda path: path.stat().st_mtime_ns)
    targets = {path.name: path for path in recorded} | {"HLS": playlist}
    problems, constants = [], {name: [] for name in targets}
    for kind, units in (("v:0", film.video), ("a:0", [unit for spell in film.spells for unit in spell])):
        sent, at = [(unit.pts, unit.dts) for unit in units], 0
        for name, target in targets.items():
            got = times(target, kind)
            if name == "HLS":
                # The last 20 s at least, of which audio has twelve.
                if not (5 if kind == "v:0" else 500) < len(got) < len(sent):
                    problems.append(f"{kind}: {len(got)} by HLS")
                at = len(sent) - len(got)
            found = shifts(sent[at:], got)
            at += len(got)
            if max(found) - min(found) > 1:
                problems.append(f"{kind}, {name}: shifted by {float(min(found))} to {float(max(found))} ticks")
            constants[name].append(min(found))
            if target == recorded[-1] and at != len(sent):
                problems.append(f"{kind}: {at} of {len(sent)} are recorded")
    for name, both in constants.items():
        # An edit list counts milliseconds.
        if max(both) - min(both) > 90:
            problems.append(f"{name}: video and audio are {float(max(both) - min(both))} ticks apart")
    nothing_wrong(problems)
