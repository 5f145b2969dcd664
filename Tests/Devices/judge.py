"""Judges what the guest and its viewers have left; each line is something that was seen."""

import datetime
import json
import re
import sys

from media import FLASH, audio_times, decoded, images, key_frames, loudness, onsets, packet_hashes, sent_hashes, sizes
from verdict import FOLDER, beep_times, compare, continuous, expect, failures, load, steps, text

seen, log = load("away", "ended")
took = seen.get("seconds", {})

# A machine with other work emulates slowly: what took four seconds on one without tells how much longer everything may take.
slowness = max(1, (took.get("weir answers") or 4) / 4)
expect(slowness <= 3, f"the machine is quick enough to judge by: weir took {took.get('weir answers')} s to start, 12 at most")
slowness = min(slowness, 3)
print(f"        weir took {took.get('weir answers')} s to start: limits are stretched by {slowness:.1f}")


def within(what: str, limit: float) -> None:
    value, limit = took.get(what), round(limit * slowness, 1)
    expect(value is not None and value <= limit, f"{what}: {'never' if value is None else value} s, at most {limit:g}")


def figure(moment: str, kind: str, name: str) -> int:
    return seen[moment]["capture"][kind][name]


# Lists, and what cannot be had.
listed = json.loads(text("devices.json") or "{}")
cameras = {c["device"]: c for c in listed.get("cameras", [])}
formats = {d: {(m["format"], m["width"], m["height"]) for m in c.get("modes", [])} for d, c in cameras.items()}
first = cameras.get("v4l2:/dev/video0", {})
expect(first.get("name") == "vivid" and "v4l2:/dev/video1" in cameras, f"{len(cameras)} cameras are listed by name")
expect({("yuyv", 320, 180), ("nv12", 640, 360), ("yu12", 320, 180)} <= formats.get("v4l2:/dev/video0", set()),
       f"the first one's {len(first.get('modes', []))} modes are listed")
expect("brightness" in [c["name"] for c in first.get("controls", [])], "its controls are listed")
expect({"alsa:hw:0,1", "alsa:hw:1,1"} <= {m["device"] for m in listed.get("microphones", [])}, "microphones are listed")
expect(any(e["name"] == "libx264" and e["works"] for e in listed.get("encoders", [])), "libx264 works")
expect("weir may not use the camera /dev/video0; add its user to the group video" in text("forbidden.txt"),
       "a forbidden camera is told with what to do")
expect(all(f"weir may not use the microphone {name}; add its user to the group audio" in text("forbidden.txt")
           for name in ("hw:0,1", "hw:2,0", "default")), "forbidden microphones are listed so, and told with what to do")
expect("there is no camera /dev/video9; plug it in" in log, "a missing camera is told with what to do")
expect(took.get("busy is told") is not None, "a busy camera is told with what to do")

# The stream of raw frames, through everything that happens to it, until its size changes.
frames, audio = decoded(FOLDER / "cam.mp4"), audio_times(FOLDER / "cam.mp4")
times = [at for at, _ in frames]
span = times[-1] - times[0] if times else 0
expect(span > 30, f"stream.mp4: {len(frames)} frames decoded over {span:.1f} s")
# The guest's processors are emulated: on a busy machine frames are left out, and counted.
expect(len(frames) >= 5 * span * 0.6, f"stream.mp4: {len(frames) / span if span else 0:.1f} frames a second of 5")
expect(all(step > 0 for step in steps(times)), "stream.mp4: frames in order")
widest = max(steps(times), default=99)
expect(widest < 4.5, f"stream.mp4: the longest frame lasts {widest:.2f} s (the process was stopped for 3.5 s)")
expect(len(audio) > 46 * span * 0.9 and continuous(audio),
       f"stream.mp4: {len(audio)} frames of audio without a gap")

files = compare(frames, 0.7)
# The turn is told in the head: another file.
expect(len(files) == 3, f"recordings: {[f.name for f in files]}; the cancelled one has gone")

# Controls and key frames.
controls = seen["controls"]
expect(controls["api"] == [250, 100] and controls["driver"] == [250, 100], f"controls set and read back: {controls['api']}")
expect("has no control glow" in json.dumps(controls["unknown"]) and "outside 0 to 255" in json.dumps(controls["outside"]),
       "unknown controls and values out of range are refused")
streams = {s["name"]: s for s in json.loads(text("streams.json") or "{}").get("streams", [])}
anchor = streams["cam"]["anchor"]
wall = datetime.datetime.fromisoformat(anchor["wall"].replace("Z", "+00:00")).timestamp() - anchor["mediaSeconds"]
asked = seen["moments"]["controls are set"] - wall
shown = [(at - asked, sum(image)) for (at, _), image in zip(frames, images(FOLDER / "cam.mp4"))]
before = [light for at, light in shown if -3 < at < 0]
after = [light for at, light in shown if 1 < at < 3]
brighter = sum(after) / max(1, len(after)) / max(1, sum(before) / max(1, len(before)))
expect(before and brighter > 1.2, f"frames are brighter by {100 * brighter - 100:.0f} %")
keys = key_frames(FOLDER / "cam.mp4")
for number in (1, 2, 3):
    asked = seen["moments"][f"key frame {number}"] - wall
    after = [key - asked for key in keys if key > asked - 0.15]
    expect(after and after[0] < 0.8 * slowness, f"key frame asked for: there after {after[0] if after else 99:.2f} s")

# Switching.
expect(figure("second camera", "video", "device") == "/dev/video1", "the other camera runs")
within("taken when free", 3)
within("camera with a wrong clock runs", 5)
expect(figure("wrong clock", "video", "state") == "running"
       and figure("wrong clock", "video", "captured") - figure("second camera", "video", "captured") > 8,
       "a camera whose times are years ahead goes on (how long its frames last is seen above)")
if seen["fed"]:
    expect(took.get("busy microphone is told") is not None, "a busy microphone is told with what to do")
expect(figure("second microphone", "audio", "device") == "hw:1,1,1", "the other microphone runs")
within("other microphone runs", 3)
switched = seen["moments"]["other microphone"] - wall
quiet, loud = loudness(FOLDER / "cam.mp4", switched - 3, switched), loudness(FOLDER / "cam.mp4", switched + 1, switched + 3)
expect(quiet < 50 < 1000 < loud, f"its tone is heard from then on: {quiet:.0f} before, {loud:.0f} after")
within("first camera again", 3)

# What drivers do.
lost = figure("after injections", "video", "lost") - figure("before injections", "video", "lost")
broken = figure("after injections", "video", "corrupt") - figure("before injections", "video", "corrupt")
expect(lost >= 3, f"dropped buffers: {lost} frames counted as lost by the driver")
expect(broken >= 4, f"error flags: {broken} frames of 5 counted as broken")
within("back from a fatal error", 3)
expect(took.get("loss is told") is not None and figure("away", "video", "state") == "away", "unplugged: told by name")
within("back after its return", 3)
if seen["fed"]:
    expect(took.get("silence is told") is not None, "a camera that falls silent is told by name")
    expect(took.get("silence is told with what to do") is not None and seen["came and went"] == 0,
           "it counts as back with its first frame")
    within("coded camera back", 3)

within("sound card runs", 3)
expect(took.get("loss of the sound card is told") is not None and seen["let go"]
       and figure("pulled out", "audio", "state") == "away", "a sound card pulled out: told by name, and let go")
filled = (figure("pulled out", "audio", "bridgedSamples") - figure("before pulling out", "audio", "bridgedSamples")) / 48000
expect(filled > 3.5, f"a sound card pulled out for 4 s: bridged with {filled:.1f} s of silence")
within("sound card back after its return", 3)

# The same as events.
told = [(event["kind"], event["data"]["device"]) for event in json.loads(text("events.json") or '{"events": []}')["events"]
        if event["kind"].startswith("source.") and event["stream"] == "cam"]
for device in ("/dev/video0", "hw:2,0"):
    kinds = [kind for kind, of in told if of == device]
    expect(("source.away", "source.back") in zip(kinds, kinds[1:]), f"{device} went and came back by events, too: {', '.join(kinds)}")

# A process that gets no processor for longer than the microphone's buffer of 2 s.
away = seen["moments"]["continued"] - seen["moments"]["stopped"]
overruns = figure("after starvation", "audio", "overruns") - figure("before starvation", "audio", "overruns")
bridged = (figure("after starvation", "audio", "bridgedSamples") - figure("before starvation", "audio", "bridgedSamples")) / 48000
expect(overruns >= 1, f"starved for {away:.2f} s: {overruns} overrun counted")
others = figure("before starvation", "audio", "overruns")
# Where the guest cannot keep up with the audio by itself, some is bridged before, and some of its own after.
calm = others == 0 and overruns == 1
expect(away - (0.15 if calm else 1) < bridged < away + (0.5 if calm else 8),
       f"starved: bridged with {bridged:.3f} s of silence ({others} overruns before, of the guest's own slowness)")
expect(seen["after starvation"]["lost"] == 0, "starved: the microphone is not taken for lost")
skew = figure("after starvation", "audio", "skewMicroseconds")
expect(abs(skew) <= 20_000, f"starved: {skew} µs off the clock afterwards")

# Recording is one thing, being live another.
for what in ("first recording runs", "first recording is complete", "second recording runs", "second recording is cancelled",
             "third recording runs", "third recording is complete"):
    within(what, 15)
expect(seen["live after stop"] == "live", "live without a recording, too")
expect(seen["files before cancel"] == 2 and seen["files after cancel"] == 1, "a cancelled recording's file is removed")

# Parameters.
unchanged, changed = text("same.m3u8"), text("changed.m3u8")
expect(unchanged and "#EXT-X-DISCONTINUITY\n" not in unchanged, "no discontinuity as long as the size stays")
breaks = changed.count("#EXT-X-DISCONTINUITY\n")
expect(breaks == 2, f"{breaks} discontinuities: another size, and a turn")
dates = [datetime.datetime.fromisoformat(d.replace("Z", "+00:00")).timestamp()
         for d in re.findall(r"PROGRAM-DATE-TIME:(\S+)\n#EXTINF", unchanged)]
lengths = [float(d) for d in re.findall(r"PROGRAM-DATE-TIME:\S+\n#EXTINF:([\d.]+)", unchanged)]
holes = [b - a - length for a, b, length in zip(dates, dates[1:], lengths)]
# A camera that is opened anew sends nothing meanwhile, which an emulated processor makes long.
expect(holes and -0.05 < min(holes) and max(holes) < 2.5 and sum(hole > 0.05 for hole in holes) < 3,
       f"wall-clock times of {len(dates)} segments follow from their lengths, the longest hole is {max(holes, default=99):.2f} s")
if len(files) > 1:
    kinds = sizes(files[1])
    expect({(320, 180), (640, 360)} <= set(kinds), f"the recording went on over the change: {kinds}")

# `weir capture` without anything.
bare = seen["bare"]
within("weir capture is live", 30)
expect(bare["recording"]["state"] == "completed" and bare["state"] == "live",
       f"weir capture: its recording ended after 3 s, and it is {bare['state']} ({bare['capture']['video']['mode']})")
limited = list((FOLDER / "limited/cam").glob("*.mp4"))
length = [decoded(file)[-1][0] - decoded(file)[0][0] for file in limited if decoded(file)]
expect(len(length) == 1 and 1.5 < length[0] < 3.2, f"weir capture: {length} s are recorded")
expect(seen["ended"] == 0 and seen["bare ended"] == 0, "weir ends with 0")

if not seen["fed"]:
    print(text("skipped").strip())
    sys.exit(1 if failures else 0)

# A camera that sends JPEGs, with a microphone whose clock is 100 ppm slow.
expect(("mjpeg", 320, 180) in formats["v4l2:/dev/video10"], "MJPEG: the camera is listed")
shown = images(FOLDER / "mjpeg.mp4")
times = [at for at, _ in decoded(FOLDER / "mjpeg.mp4")]
span = times[-1] - times[0] if times else 0
expect(len(shown) == len(times) > 2.5 * span > 75, f"MJPEG: {len(shown)} frames decoded over {span:.1f} s")
# The clip goes round: when a frame was shown tells which of those with its number it is.
anchor = streams["mjpeg"]["anchor"]
clock = datetime.datetime.fromisoformat(anchor["wall"].replace("Z", "+00:00")).timestamp() - anchor["mediaSeconds"] - seen["wall"]
written, laps = {number: (begun, done) for number, begun, done in seen["frames"]}, {}
for number in written:
    laps.setdefault(number % FLASH.COUNT, []).append(number)
numbers = [min(laps.get(FLASH.number(image), [-1]), key=lambda n: abs(written.get(n, (0, 0))[0] - at - clock))
           for at, image in zip(times, shown)]
expect(all(step > 0 for step in steps(numbers)) and -1 not in numbers, "MJPEG: numbers read back: none twice or out of order")
# The driver's time is one between the beginning and the end of the call that wrote it.
late = sorted(at + clock - min(max(at + clock, written[number][0]), written[number][1])
              for at, number in zip(times, numbers) if number in written)
expect(late and max(abs(late[0]), abs(late[-1])) <= 0.02,
       f"MJPEG: frames have the times at which they were written, {1000 * late[0]:+.1f} to {1000 * late[-1]:+.1f} ms")
counted = streams["mjpeg"]["capture"]["video"]
missing = sum(1 for number in written if numbers[0] < number < numbers[-1]) - len(numbers) + 2
known = counted["lost"] + counted["dropped"] + counted["corrupt"]
expect(missing <= known, f"MJPEG: {missing} of {missing + len(numbers)} frames are missing, {known} counted as lost")
truth = beep_times(seen)
errors, beeps = [], onsets(FOLDER / "mjpeg.mp4")
for at, number, image in zip(times, numbers, shown):
    begun, done = written.get(number, (0, 0))
    beep = min(beeps, key=lambda b: abs(b - at), default=99)
    beeped = min(truth, key=lambda b: abs(b - begun), default=99)
    if FLASH.isWhite(image) and done - begun < 0.005 and abs(beep - at) < 0.3 and abs(beeped - begun) < 0.3:
        errors.append(1000 * ((beep - at) - (beeped - begun)))
expect(len(errors) > 5, f"A/V: {len(errors)} flashes with their beeps")
if errors:
    half, far = len(errors) // 2, sum(1 for error in errors if abs(error) > 20)
    # Where the guest itself was starved, a beep may be cut off by the silence that bridged it.
    expect(10 * far <= len(errors), f"A/V with a microphone 100 ppm slow: {len(errors) - far} of {len(errors)} within 20 ms, "
           f"the farthest {max(map(abs, errors)):.1f} ms, "
           f"{sum(errors[:half]) / max(1, half):+.1f} ms in the first half, {sum(errors[half:]) / (len(errors) - half):+.1f} after")
skew = streams["mjpeg"]["capture"]["audio"]["skewMicroseconds"]
expect(abs(skew) <= 20_000, f"A/V: weir's own figure of the skew: {skew} µs")

# A camera that sends H.264.
expect("cannot be asked for a key frame" in json.dumps(seen["coded camera's key frame"]),
       "H.264: a camera that has no control for key frames says so")
expect(("h264", 320, 180) in formats["v4l2:/dev/video11"], "H.264: the camera is listed")
passed, sent = packet_hashes(FOLDER / "coded.mp4"), sent_hashes(FOLDER / "h264")
order: list[int | None] = []
for digest in passed:
    last = order[-1] if order and order[-1] is not None else 0
    order.append(min(sent.get(digest, [None]), key=lambda n: 0 if n is None else (n - last - 1) % FLASH.COUNT))
expect(len(order) > 50 and None not in order, f"H.264: {len(order)} access units, each byte for byte as it was sent")
gaps = [(b - a) % FLASH.COUNT for a, b in zip(order, order[1:]) if None not in (a, b)]
expect(all(0 < gap < 100 for gap in gaps), "H.264: none twice or out of order")
missing, known = sum(gap - 1 for gap in gaps), streams["coded"]["capture"]["video"]["lost"]
expect(missing <= known + seen["unsent"], f"H.264: {missing} of {sum(gaps)} are missing, {known} counted as lost, "
       f"{seen['unsent']} not sent by a starved feeder")
count = len(decoded(FOLDER / "coded.mp4"))
expect(count >= len(passed) - 4, f"H.264: {count} frames decoded of {len(passed)}")
sys.exit(1 if failures else 0)
