"""A sender for days, in seconds: what it uploads was made earlier, so that it comes as fast as it is taken. Its clock of 33 bits
wraps twice, for which 26.5 hours are the least. With WEIR_FAULTS=long it sends for 64 hours, which takes a minute."""

import os
import pathlib
from fractions import Fraction

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
    """By how many ticks each time differs. What is left out at the beginning counts as such, nothing else may be missing."""
    pairs = zip(sent[len(sent) - len(got):], got)
    return [mine - its for before, after in pairs for its, mine in zip(before, after)]


def test_times_are_exact_through_two_wraps(start, tmp_path):
    """Each PTS and DTS of video with B-frames, and of audio that is there around both wraps: within one tick of what was sent, up to
    one constant, in the recording and in the last minute by HLS. Nothing is missing, and nothing breaks the timeline."""
    assert FIRST + DAY + 20 < HOURS * 3600
    # No sample of an MP4 file may last longer than 32 bits of its track's ticks: a day at 48 kHz.
    heard = [0, FIRST - 6, FIRST + DAY - 6, HOURS * 3600 - 20, *range(4 * 3600, int(HOURS - 1) * 3600, 8 * 3600)]
    film = Days(HOURS, WRAP - FIRST * 90_000, heard=sorted(heard))
    film.write(tmp_path / "days.ts")
    weir = start()
    publishers.Publisher([
        "curl", "-sS", "--fail", "--max-time", "300", "-o", "/dev/null", "-T", str(tmp_path / "days.ts"),
        f"{weir.web}/live/days/ingest"]).wait(300)
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("days")] == ["completed"], 60, "the recording")
    stream = weir.stream("days")
    assert stream["received"]["lostVideoFrames"] == stream["received"]["lostAudioFrames"] == 0, stream
    assert stream["recording"]["gaps"] == [], stream
    playlist = f"{weir.web}/live/days/index.m3u8"
    text = weir.get(next(
        f"/live/days/{line}" for line in weir.get("/live/days/index.m3u8").good().text.splitlines() if "/av/" in line)).good().text
    assert "#EXT-X-ENDLIST" in text and "#EXT-X-DISCONTINUITY" not in text, text
    problems, constants = [], []
    for kind, sent in (("v:0", film.video), ("a:0", [unit for spell in film.spells for unit in spell])):
        sent = [(unit.pts, unit.dts) for unit in sent]
        recorded, live = times(next((weir.recordings / "days").glob("*Z.mp4")), kind), times(playlist, kind)
        if len(recorded) != len(sent):
            problems.append(f"{kind}: {len(recorded)} of {len(sent)} are recorded")
        # The last 20 s, of which audio has twelve.
        if not (5 if kind == "v:0" else 500) < len(live) < len(sent):
            problems.append(f"{kind}: {len(live)} by HLS")
        for name, got in (("recorded", recorded), ("HLS", live)):
            found = shifts(sent, got)
            if max(found) - min(found) > 1:
                problems.append(f"{kind}, {name}: shifted by {float(min(found))} to {float(max(found))} ticks")
            constants.append((name, min(found)))
    for name in ("recorded", "HLS"):
        both = [constant for whose, constant in constants if whose == name]
        # An edit list counts milliseconds.
        if max(both) - min(both) > 90:
            problems.append(f"{name}: video and audio are {float(max(both) - min(both))} ticks apart")
    nothing_wrong(problems)
