"""Judges the short case: judge_short.py FOLDER. Exits with 1 where something failed, and with 3 where the machine did not give
the guest its processors, and nothing but what has to keep time failed."""

import datetime
import json
import statistics
import sys

from media import CAPTION, audio_times, boxes, decoded, errors_of, images, onsets
from verdict import FOLDER, beep_times, compare, continuous, expect, failures, held_up, load, steps, text

#: Grey levels of the two patterns between which each camera flashes (guest.py), and how far a frame's may be from them.
LEVELS, FAR = {"/dev/video0": (0, 255), "/dev/video1": (76, 150)}, 12

seen, log = load("second camera", "ended")
took, schedule = seen["seconds"], json.loads(text("schedule.json") or "{}")
late: list[str] = []


def in_time(condition, what: str) -> None:
    """Only a guest that has its processors can keep time."""
    before = len(failures)
    expect(condition, what)
    if len(failures) > before:
        late.append(failures.pop())


def within(what: str, limit: float) -> None:
    in_time(took.get(what) is not None and took[what] <= limit, f"{what}: {took.get(what)} s, at most {limit:g}")


print(f"        the guest's threads ran for {schedule.get('ran', 0):.0f} s and waited for a processor for "
      f"{schedule.get('waited', 0):.0f} s; weir took {took.get('weir answers')} s to start")
within("weir answers", 12)
within("other camera runs", 3)

# Frames: each camera writes its clock and a number into its own.
frames, shown, audio = decoded(FOLDER / "cam.mp4"), images(FOLDER / "cam.mp4"), audio_times(FOLDER / "cam.mp4")
times, captions = [at for at, _ in frames], [CAPTION.read(image) for image in shown]
span = times[-1] - times[0] if times else 0
expect(len(shown) == len(frames) and span > 8, f"stream.mp4: {len(frames)} frames decoded over {span:.1f} s")
in_time(len(frames) >= 5 * span * 0.6, f"stream.mp4: {len(frames) / span if span else 0:.1f} frames a second of 5")
expect(all(step > 0 for step in steps(times)), "stream.mp4: frames in order")
real = [at for at, caption in enumerate(captions) if caption]
backwards = [after for before, after in zip(real, real[1:]) if captions[after][0] <= captions[before][0]]
expect(len(backwards) == 1, f"stream.mp4: clocks read back from {len(real)} frames, they begin anew {len(backwards)} times of 1")
switch = backwards[0] if backwards else len(frames)
cameras = {"/dev/video0": [at for at in real if at < switch], "/dev/video1": [at for at in real if at >= switch]}
# A camera that is held up may give two frames one number.
missing = sum(max(0, step - 1) for part in cameras.values() for step in steps([captions[at][1] for at in part]))
streams = {s["name"]: s for s in json.loads(text("streams.json") or "{}").get("streams", [])}
counted = streams["cam"]["capture"]["video"]
known = counted["lost"] + counted["dropped"] + counted["corrupt"]
expect(missing <= known, f"stream.mp4: {missing} of {missing + len(real)} frames are missing, {known} counted as lost")
for path, part in cameras.items():
    apart = [times[at] - captions[at][0] for at in part] or [99]
    middle = statistics.median(apart)
    far = [shift for shift in apart if abs(shift - middle) > 0.02]
    in_time(10 * len(far) <= len(apart),
            f"{path}: {len(apart) - len(far)} of {len(apart)} frames within 20 ms of the camera's clock")
slates = [at for at in range(len(frames)) if not captions[at]]
between = cameras["/dev/video0"][-1:] + cameras["/dev/video1"][:1]
in_time(all(at > between[0] and at < between[-1] for at in slates), f"slates: {len(slates)}, between the cameras only")
across = max(steps(times[between[0]:between[-1] + 1]), default=99) if len(between) == 2 else 99
in_time(across < 1, f"the switch: the longest frame lasts {across:.2f} s, at most 1")
longest = max(steps(times), default=99)
in_time(longest < 1, f"stream.mp4: the longest frame lasts {longest:.2f} s, at most 1")
expect(seen["second camera"]["capture"]["video"]["device"] == "/dev/video1", "the other camera runs")

# Audio: beeps that were played twice a second.
expect(len(audio) > 46 * span * 0.9 and continuous(audio), f"stream.mp4: {len(audio)} audio frames without a gap")
anchor = streams["cam"]["anchor"]
clock = datetime.datetime.fromisoformat(anchor["wall"].replace("Z", "+00:00")).timestamp() - anchor["mediaSeconds"] - seen["wall"]
heard, played = onsets(FOLDER / "cam.mp4"), beep_times(seen)
# Each beep that was played while the stream was recorded, and how much later than by the stream's clock it is in the stream.
shifts = {beep: min((at + clock - beep for at in heard), key=abs, default=99)
          for beep in played if heard and heard[0] - 0.25 < beep - clock < heard[-1] + 0.25}
offset = statistics.median(shifts.values()) if shifts else 99
near = [beep for beep, shift in shifts.items() if abs(shift - offset) <= 0.02]
in_time(len(shifts) > 1.6 * span - 3, f"beeps: it is known of {len(shifts)} when they were played in {span:.1f} s")
in_time(10 * len(near) >= 9 * len(shifts), f"beeps: {len(near)} of these within 20 ms of their places, {len(heard)} heard")
capture = {name: seen[name]["capture"]["audio"] for name in ("first camera", "second camera")}
bridged = (capture["second camera"]["bridgedSamples"] - capture["first camera"]["bridgedSamples"]) / 48000
in_time(bridged < 0.05, f"audio: {1000 * bridged:.0f} ms of silence put in over the switch, at most 50")
skew = capture["second camera"]["skewMicroseconds"]
in_time(abs(skew) <= 20_000, f"A/V: weir's own figure of the skew: {skew} µs, at most 20000")

# Video against audio: the first frame of a pattern was drawn after the pattern was set, and the frame before it was not.
bounds, flashes = [], 0
for path, part in cameras.items():
    set_at = [(before, after) for camera, before, after in seen["flashes"] if camera == path]
    level = [shown[at][-20 * 320 - 20] for at in part]
    state = [min((0, 1), key=lambda n: abs(value - LEVELS[path][n])) for value in level]
    expect(all(abs(value - LEVELS[path][n]) <= FAR for value, n in zip(level, state)),
           f"{path}: each of {len(part)} frames has one of its two patterns")
    changes = [n for n in range(1, len(part)) if state[n] != state[n - 1]]
    in_time(len(changes) == len(set_at), f"{path}: {len(changes)} changes of {len(set_at)} are seen")
    for n, (before, after) in zip(reversed(changes), reversed(set_at)):
        # By how much video may be later than audio.
        bounds.append((times[part[n - 1]] + clock - after - offset, times[part[n]] + clock - before - offset))
ends = sorted({end for bound in bounds for end in bound})
# One flash in ten may be set while the guest itself stands still.
possible = [end for end in ends if 10 * sum(low <= end <= high for low, high in bounds) >= 9 * len(bounds)]
least, most = (1000 * possible[0], 1000 * possible[-1]) if possible else (99, -99)
in_time(possible and least <= 20 and most >= -20,
        f"A/V: by {len(bounds)} flashes and {len(near)} beeps, video is between {least:+.0f} and {most:+.0f} ms later; within 20")

# What else was watched and recorded.
files = compare(frames, 0.6)
expect(len(files) == 1, f"recordings: {[file.name for file in files]}")
within("first recording is complete", 15)
for file in files:
    kinds = boxes(file)
    expect("moov" in kinds and "mdat" in kinds and kinds.index("moov") < kinds.index("mdat") and "moof" not in kinds,
           f"the recording: {' '.join(kinds)}; moov is in front of the media")
    expect(not errors_of(file), f"the recording: ffmpeg decodes it without a warning {errors_of(file)}")
    recorded = [caption[0] for caption in map(CAPTION.read, images(file)) if caption]
    expect(sum(step < 0 for step in steps(recorded)) == 1 and recorded[-1] > 4,
           f"the recording: {len(recorded)} frames of both cameras, {recorded[-1] if recorded else 0:.1f} s of the second")
expect(seen["live after stop"] == "live", "live after the recording")
expect(seen["ended"] == 0 and "weir: stopped" in log, f"weir ends with {seen['ended']}")
wrong = [line for line in log.splitlines() if " error " in line or "Fatal" in line]
expect(not wrong, f"weir reports no error {wrong}")

if failures:
    sys.exit(f"error: failed: {'; '.join(failures + late)}")
if late and held_up():
    print(f"cannot: {held_up()}, and this is not judged: {'; '.join(late)}")
    sys.exit(3)
if late:
    sys.exit(f"error: failed: {'; '.join(late)}")
