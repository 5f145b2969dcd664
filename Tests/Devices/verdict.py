"""What the judges share. Each printed line is one expectation. The folder with the results is the first argument."""

import bisect
import json
import pathlib
import sys

from media import audio_times, decoded

#: The guest's processors had too little time, where they waited for so much of the time that they wanted.
MOST_WAITED = 0.3
FOLDER = pathlib.Path(sys.argv[1])
failures: list[str] = []


def expect(condition, what: str) -> None:
    print(("ok      " if condition else "FAILED  ") + what)
    if not condition:
        failures.append(what)


def text(name: str) -> str:
    path = FOLDER / name
    return path.read_text(errors="replace") if path.exists() else ""


def steps(values) -> list:
    return [b - a for a, b in zip(values, values[1:])]


def continuous(audio: list[float]) -> bool:
    """AAC frames of 1024 samples each follow one another; the first may be shorter."""
    return len(audio) > 0 and all(abs(step - 1024 / 48000) < 1e-4 for step in steps(audio[1:]))


def load(*needed: str) -> tuple[dict, str]:
    """What the guest has seen, and weir's log; it must have come as far as what is named."""
    seen, log = json.loads(text("seen.json") or "{}"), text("weir.log")
    if not all(name in seen for name in needed):
        print(text("guest.log"), log[-4000:], sep="\n")
        sys.exit("error: the guest did not come to its end")
    return seen, log


def same(name: str, others: list, frames: list, least: int) -> None:
    """Frames are the very ones of stream.mp4, all of those between the first and the last that both have."""
    known = [digest for _, digest in frames]
    digests = [digest for _, digest in others]
    common = [digest for digest in digests if digest in set(known)]
    if not common:
        return expect(False, f"{name}: no frame of {len(digests)} is one of stream.mp4's {len(known)}")
    begin, end = known.index(common[0]), len(known) - 1 - known[::-1].index(common[-1])
    at, last = digests.index(common[0]), len(digests) - 1 - digests[::-1].index(common[-1])
    expect(digests[at:last + 1] == known[begin:end + 1] and end - begin >= least,
           f"{name}: {len(digests)} frames decoded, {end - begin + 1} of them compared with stream.mp4: the same")


def compare(frames: list, least: float) -> list[pathlib.Path]:
    """What the viewer of HLS got and what was recorded first, with stream.mp4; returns the recordings."""
    hls = [line.split(",") for line in text("hls.md5").splitlines() if line.startswith("0,")]
    same("HLS, read by ffmpeg", [(0, line[5].strip()) for line in hls], frames, int(len(frames) * 0.8))
    files = sorted((FOLDER / "recordings/cam").glob("*.mp4"))
    if files:
        same("the first recording", decoded(files[0]), frames, int(len(frames) * least))
        recorded = audio_times(files[0])
        expect(continuous(recorded), f"the first recording: {len(recorded)} frames of audio without a gap")
    return files


def beep_times(seen: dict) -> list[float]:
    """When each beep was heard, on the guest's monotonic clock."""
    heard, times = [tuple(look) for look in seen["heard"]], []
    for sample in seen["beeped"]:
        at = bisect.bisect_left([played for _, played in heard], sample)
        if 0 < at < len(heard) and heard[at][1] > heard[at - 1][1] and heard[at][0] - heard[at - 1][0] < 0.2:
            (t0, p0), (t1, p1) = heard[at - 1], heard[at]
            times.append(t0 + (t1 - t0) * (sample - p0) / (p1 - p0))
    return times


def held_up() -> str:
    """How this machine held up the guest; empty where it did not."""
    schedule = json.loads(text("schedule.json") or "{}")
    wanted = schedule.get("ran", 0) + schedule.get("waited", 0)
    waited = schedule.get("waited", 0) / wanted if wanted else 0
    return (f"the machine is too slow: the guest's threads waited for a processor for {waited:.0%} of the time that they "
            f"wanted one (at most {MOST_WAITED:.0%})") if waited > MOST_WAITED else ""


if __name__ == "__main__":
    print(held_up(), end="")
