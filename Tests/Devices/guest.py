"""Runs inside the guest: what a person does with cameras and microphones, and what happens to them. What is seen is left in
the folder that the host shares, and judged there (judge.py)."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from devices import FedCamera, Loudspeaker, controller, get_control, occupy, set_control

OUT = pathlib.Path("/tmp/out")
WEB = "http://127.0.0.1:8080"
FIRST, SECOND, JPEG, CODED = "/dev/video0", "/dev/video1", "/dev/video10", "/dev/video11"
MICROPHONE = "hw:1,1,1"
CARD, DRIVER = "hw:2,0", pathlib.Path("/sys/bus/platform/drivers/snd_dummy")
# Emulated processors are slow, at floating point above all: few frames, few bits, and little to hear.
USUAL = "preset=ultrafast"
# Patterns of vivid between which each camera flashes in the short case: black and white, red and green.
PATTERNS = {FIRST: (5, 6), SECOND: (7, 8)}
RATE = 5
# Seconds that `counting` may take: four times what it takes where processors are emulated on a quick machine.
MOST_COUNTING = 0.02
hasFed = os.path.exists(JPEG)
seen: dict = {"fed": hasFed, "moments": {}, "seconds": {}, "wall": time.time() - time.monotonic()}


def say(words: str) -> None:
    print(f"{time.monotonic():8.1f}  {words}", flush=True)


def moment(name: str) -> None:
    """Notes the wall-clock time of what happens now."""
    seen["moments"][name] = time.time()
    say(name)


def ask(path: str, body: str | None = None):
    """The API's answer, with its code where it refuses."""
    request = urllib.request.Request(
        WEB + path, None if body is None else body.encode(), {"Authorization": "Bearer devices"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            data = answer.read()
    except urllib.error.HTTPError as refusal:
        data = refusal.read()
    except OSError:
        return {}
    return data if path.startswith("/live") else json.loads(data or b"{}")


def status(name: str = "cam", base: str = "") -> dict:
    return ask(f"{base}/api/v1/streams/{name}")


def capture(kind: str) -> dict:
    return (status().get("capture") or {}).get(kind) or {}


def change(subject: str, wanted: str):
    return ask(f"/api/v1/streams/cam/capture/{subject}", wanted)


def counting() -> float:
    """Seconds of some plain work, the quickest of ten times: how fast the guest's processors are. weir has no part in it."""
    quickest = 99.0
    for _ in range(10):
        began, total = time.monotonic(), 0
        for number in range(20_000):
            total += number
        quickest = min(quickest, time.monotonic() - began)
    return round(quickest, 4)


def until(what: str, condition, seconds: float = 20) -> None:
    """Waits, and notes how long that took; none where it did not come to pass."""
    began = time.monotonic()
    while not (isSo := condition()) and time.monotonic() - began < seconds:
        time.sleep(0.05)
    seen["seconds"][what] = round(time.monotonic() - began, 2) if isSo else None
    say(f"{what}: {seen['seconds'][what]} s")


def log() -> str:
    return (OUT / "weir.log").read_text(errors="replace")


def keep(name: str, **more) -> None:
    seen[name] = {"capture": status().get("capture"), "recording": status().get("recording"), **more}


def threads(weir: subprocess.Popen) -> dict[str, float]:
    """Seconds of processor time that each of its threads has used."""
    used: dict[str, float] = {}
    for task in pathlib.Path(f"/proc/{weir.pid}/task").iterdir():
        name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        used[name] = round(used.get(name, 0) + sum(map(int, rest.split()[11:13])) / 100, 2)
    return used


def recording(action: str, state: str, what: str) -> None:
    ask(f"/api/v1/streams/cam/recording/{action}", "")
    until(what, lambda: (status().get("recording") or {}).get("state") == state, 15)


def listing() -> None:
    (OUT / "devices.json").write_bytes(subprocess.run(["./weir", "devices", "--json"], capture_output=True).stdout)
    text = subprocess.run(["./weir", "devices"], capture_output=True, text=True).stdout
    (OUT / "devices.txt").write_text(text)
    # A user who is in neither of the groups video and audio.
    outsider = {"stdout": (OUT / "forbidden.txt").open("w"), "stderr": subprocess.STDOUT, "user": 65534, "group": 65534}
    subprocess.run(["./weir", "devices"], **outsider)
    deaf = subprocess.Popen(
        ["./weir", "capture", "--camera", "none", "--no-open", "--no-record", "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0"],
        **outsider)
    until("a forbidden microphone is told", lambda: "the microphone default" in (OUT / "forbidden.txt").read_text(), 30)
    deaf.terminate()
    deaf.wait(20)
    say("listed")


def start(gop: str, microphone: str, *sources: str) -> subprocess.Popen:
    """`weir capture` with the first camera, and with more sources; it is live."""
    weir = subprocess.Popen(
        ["./weir", "capture", "--camera", f"{FIRST}?size=320x180&fps={RATE}&{USUAL}&gop={gop}",
         "--microphone", f"{microphone}?bitrate=32k", *[word for source in sources for word in ("--source", source)],
         "--no-open", "--http", "0.0.0.0:8080", "--rtmp", "127.0.0.1:1935", "--admin-token", "devices",
         "--record", "/tmp/recordings", "--record-mode", "manual", "--keep-free", "10MB"],
        stdout=(OUT / "weir.log").open("w"), stderr=subprocess.STDOUT)
    until("weir answers", lambda: ask("/api/v1/streams") or weir.poll() is not None, 40)
    if weir.poll() is not None or seen["seconds"]["weir answers"] is None:
        sys.exit(f"weir does not answer; its exit status: {weir.poll()}")
    wanted = {"cam", "mjpeg", "coded"} if hasFed and sources else {"cam"}
    until("live", lambda: wanted <= {
        s["name"] for s in ask("/api/v1/streams").get("streams", []) if s["state"] == "live"}, 30)
    if seen["seconds"]["live"] is None:
        sys.exit("weir answers, but its sources are not live")
    return weir


def controls() -> None:
    time.sleep(1)
    moment("controls are set")
    change("controls", "brightness=250&contrast=100")
    until("controls set", lambda: get_control(FIRST, "Brightness") == 250)
    listed = {c["name"]: c["value"] for c in capture("video").get("controls", [])}
    seen["controls"] = {
        "api": [listed.get("brightness"), listed.get("contrast")],
        "driver": [get_control(FIRST, "Brightness"), get_control(FIRST, "Contrast")],
        "unknown": change("controls", "glow=1"), "outside": change("controls", "brightness=1000")}
    time.sleep(0.5)
    for number in (1, 2, 3):
        change("keyframe", "")
        moment(f"key frame {number}")
        time.sleep(1.2)
    change("controls", "brightness=128&contrast=128")


def switching() -> None:
    held = occupy(SECOND)
    moment("busy camera")
    change("camera", f"v4l2:{SECOND}")
    until("busy is told", lambda: f"the camera {SECOND} is in use by another program" in log())
    time.sleep(1)
    os.close(held)
    until("taken when free", lambda: capture("video").get("state") == "running", 10)
    keep("second camera")
    time.sleep(2)
    # vivid tells the times of its frames as of years ahead: times that must not be believed.
    taken = capture("video").get("captured", 0)
    change("camera", f"v4l2:{SECOND}?control.wrap_timestamp=1")
    until("camera with a wrong clock runs", lambda: capture("video").get("captured", 0) > taken + 3
          and capture("video").get("state") == "running", 10)
    time.sleep(2)
    keep("wrong clock")
    if hasFed:
        seen["coded camera's key frame"] = ask("/api/v1/streams/coded/capture/keyframe", "")
        change("microphone", "alsa:hw:1,1,0")
        until("busy microphone is told", lambda: "the microphone hw:1,1,0 is in use by another program" in log())
    moment("other microphone")
    change("microphone", f"alsa:{MICROPHONE}")
    until("other microphone runs", lambda: capture("audio").get("state") == "running"
          and capture("audio").get("device") == MICROPHONE, 10)
    keep("second microphone")
    time.sleep(2)
    change("camera", f"v4l2:{FIRST}")
    until("first camera again", lambda: capture("video").get("device") == FIRST
          and capture("video").get("state") == "running", 10)
    time.sleep(1)


def injections() -> None:
    keep("before injections")
    change("controls", "percentage_of_dropped_buffers=40")
    time.sleep(3)
    change("controls", "percentage_of_dropped_buffers=0")
    camera = os.open(FIRST, os.O_RDWR)
    for _ in range(5):
        set_control(camera, "Inject V4L2_BUF_FLAG_ERROR", 1)
        time.sleep(0.4)
    keep("after injections")
    moment("fatal error")
    taken = capture("video").get("captured", 0)
    set_control(camera, "Inject Fatal Streaming Error", 1)
    os.close(camera)
    until("told of the fatal error", lambda: f"device lost: the camera {FIRST}" in log(), 5)
    until("back from a fatal error", lambda: capture("video").get("captured", 0) > taken + 3, 10)


def unplugging() -> None:
    """vivid stays away for as long as a process holds the device."""
    before = log().count("device lost")
    camera = os.open(FIRST, os.O_RDWR)
    set_control(camera, "Disconnect", 1)
    moment("unplugged")
    until("loss is told", lambda: log().count("device lost") > before, 5)
    time.sleep(4)
    keep("away")
    back = log().count("back again: the camera")
    os.close(camera)
    moment("plugged in")
    until("back after its return", lambda: log().count("back again: the camera") > back, 10)
    if hasFed:
        # A camera that codes itself falls silent: slate from an encoder, and its own frames again.
        coded.isFed, coded.fallsSilent = False, coded.written[-1][0] + 1
        until("silence is told", lambda: f"device lost: the camera {CODED}" in log(), 6)
        until("silence is told with what to do", lambda: f"the camera {CODED} is present, but sends nothing" in log(), 20)
        seen["came and went"] = log().count("coded: back again")
        coded.isFed = True
        moment("feeds again")
        until("coded camera back", lambda: "coded: back again: the camera" in log(), 10)


def pulled_out() -> None:
    """A sound card's driver lets go of it, as when it is pulled out."""
    change("microphone", f"alsa:{CARD}")
    until("sound card runs", lambda: capture("audio").get("device") == CARD and capture("audio").get("state") == "running", 10)
    time.sleep(2)
    keep("before pulling out")
    # The driver's call lasts until no process holds the card any more.
    letting = threading.Thread(target=(DRIVER / "unbind").write_text, args=("snd_dummy.0",))
    letting.start()
    moment("pulled out")
    until("loss of the sound card is told", lambda: f"device lost: the microphone {CARD}" in log(), 5)
    letting.join(20)
    seen["let go"] = not letting.is_alive()
    time.sleep(4)
    keep("pulled out")
    (DRIVER / "bind").write_text("snd_dummy.0")
    moment("put in again")
    until("sound card back after its return", lambda: f"back again: the microphone {CARD}" in log(), 10)
    change("microphone", f"alsa:{MICROPHONE}")
    until("microphone of before", lambda: capture("audio").get("device") == MICROPHONE
          and capture("audio").get("state") == "running", 10)
    time.sleep(2)


def starvation(weir: subprocess.Popen) -> None:
    """For longer than the microphone's buffer of 2 s."""
    keep("before starvation")
    before = log().count("device lost: the microphone")
    moment("stopped")
    weir.send_signal(signal.SIGSTOP)
    time.sleep(3.5)
    weir.send_signal(signal.SIGCONT)
    moment("continued")
    counted = [0, -1]
    until("starvation is made up for", lambda: counted.append(capture("audio").get("bridgedSamples", 0)) or (
        time.sleep(0.5) or counted[-1] == counted[-2] and counted[-1] > seen["before starvation"]["capture"]["audio"][
            "bridgedSamples"]), 15)
    keep("after starvation", lost=log().count("device lost: the microphone") - before)


def sessions() -> None:
    """Recording is one thing, being live another."""
    recording("stop", "completed", "first recording is complete")
    seen["live after stop"] = status().get("state")
    recording("start", "running", "second recording runs")
    time.sleep(1.5)
    seen["files before cancel"] = len(list(pathlib.Path("/tmp/recordings/cam").glob("*.mp4")))
    recording("cancel", "cancelled", "second recording is cancelled")
    time.sleep(1)
    seen["files after cancel"] = len(list(pathlib.Path("/tmp/recordings/cam").glob("*.mp4")))


def playlist() -> str:
    base = "/live/cam/"
    multivariant = ask(base + "index.m3u8").decode()
    media = next(line for line in multivariant.splitlines() if line and not line.startswith("#"))
    return ask(base + media).decode()


def parameters() -> None:
    (OUT / "same.m3u8").write_text(playlist())
    recording("start", "running", "third recording runs")
    moment("another size")
    change("camera", f"v4l2:{FIRST}?size=640x360&fps=5")
    until("another size runs", lambda: any(t.get("width") == 640 for t in status().get("tracks", [])), 10)
    time.sleep(2)
    moment("turned")
    change("camera", f"v4l2:{FIRST}?size=640x360&fps=5&rotate=90")
    time.sleep(4)
    (OUT / "changed.m3u8").write_text(playlist())
    keep("turned")
    recording("stop", "completed", "third recording is complete")


def bare() -> None:
    """`weir capture` as a person calls it, with a recording that ends by itself while the stream goes on."""
    weir = subprocess.Popen(
        ["./weir", "capture", "--no-open", "--record", "/tmp/limited", "--record-max-duration", "3s", "--keep-free", "10MB"],
        stdout=(OUT / "bare.log").open("w"), stderr=subprocess.STDOUT)
    until("weir capture is live", lambda: status().get("state") == "live", 30)
    until("weir capture's recording is complete",
          lambda: (status().get("recording") or {}).get("state") == "completed", 60)
    time.sleep(1)
    seen["bare"] = {key: status().get(key) for key in ("state", "recording", "capture")}
    weir.terminate()
    seen["bare ended"] = weir.wait(20)


def flashes(path: str, patterns: tuple[int, int], count: int = 8) -> None:
    """A camera shows one pattern, then the other, and so on. The times move on through a frame's duration."""
    camera = os.open(path, os.O_RDWR)
    show, began = controller(camera, "Test Pattern"), time.monotonic()
    for number in range(1, count + 1):
        time.sleep(max(0, began + number * (3 + 1 / count) / RATE - time.monotonic()))
        before = time.monotonic()
        show(patterns[number % 2])
        seen["flashes"].append((path, before, time.monotonic()))
    time.sleep(3 / RATE)
    os.close(camera)


def stop(weir: subprocess.Popen) -> None:
    (OUT / "streams.json").write_text(json.dumps(ask("/api/v1/streams"), indent=1))
    (OUT / "events.json").write_text(json.dumps(ask("/api/v1/events?after=0&limit=1000"), indent=1))
    seen["threads"] = threads(weir)
    weir.terminate()
    seen["ended"] = weir.wait(30)


def viewed() -> None:
    until("viewers came", lambda: status().get("viewers", 0) >= 2, 30)
    recording("start", "running", "first recording runs")


def everything() -> None:
    listing()
    sources = [f"none=v4l2:/dev/video9?size=160x90&fps=2&{USUAL}"]
    if hasFed:
        sources += [f"mjpeg=v4l2:{JPEG}?{USUAL}&gop=1s,alsa:hw:1,1,0?bitrate=32k", f"coded=v4l2:{CODED}"]
    weir = start("3s", "hw:0,1", *sources)
    viewed()
    time.sleep(3)
    for step in (controls, switching, injections, unplugging, pulled_out):
        step()
    starvation(weir)
    sessions()
    parameters()
    stop(weir)
    bare()


def short() -> None:
    """A camera and a microphone are watched and recorded while the camera is switched."""
    took = counting()
    say(f"counting took {took} s")
    if took > MOST_COUNTING:
        sys.exit(f"cannot: the machine is too slow: counting took the guest {took} s, {MOST_COUNTING} at most")
    seen["flashes"] = []
    for path, (pattern, _) in PATTERNS.items():
        camera = os.open(path, os.O_RDWR)
        set_control(camera, "Test Pattern", pattern)
        set_control(camera, "Timestamp Source", 1)  # A frame's time is that at which it begins to be drawn.
        os.close(camera)
    weir = start("1s", MICROPHONE)
    viewed()
    flashes(FIRST, PATTERNS[FIRST])
    keep("first camera")
    moment("other camera")
    change("camera", f"v4l2:{SECOND}")
    until("other camera runs", lambda: capture("video").get("device") == SECOND
          and capture("video").get("state") == "running", 10)
    flashes(SECOND, PATTERNS[SECOND])
    keep("second camera")
    recording("stop", "completed", "first recording is complete")
    seen["live after stop"] = status().get("state")
    stop(weir)


PARTS = {"everything": everything, "short": short}
chosen = sys.argv[1] if len(sys.argv) > 1 else "everything"
os.environ.update(HOME="/tmp", PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
os.chdir("/tmp")
shutil.copy(OUT / "weir", "weir")
if hasFed:
    jpeg = FedCamera(JPEG, b"MJPG", f"{OUT}/mjpeg", (320, 180), RATE)
    coded = FedCamera(CODED, b"H264", f"{OUT}/h264", (320, 180), RATE)
    Loudspeaker.shift_rate("hw:1", 0, 100010)
    speaker = Loudspeaker("hw:1,0,0", [jpeg.due(n) for n in range(0, 10000, 2 * RATE)])
    for thread in (jpeg, coded, speaker):
        thread.start()
now = time.monotonic()
beeper = Loudspeaker("hw:1,0,1", [now + n / 2 for n in range(1, 2000)])
beeper.start()
try:
    PARTS[chosen]()
finally:
    for folder in ("recordings", "limited"):
        if os.path.exists(f"/tmp/{folder}"):
            shutil.copytree(f"/tmp/{folder}", OUT / folder, dirs_exist_ok=True)
    if hasFed:
        fed = [number for number, *_ in coded.written if number < coded.fallsSilent]
        seen["unsent"] = fed[-1] - fed[0] + 1 - len(fed)
        seen["frames"], seen["heard"], seen["beeped"] = jpeg.written, speaker.heard, speaker.beeped
    elif chosen == "short":
        seen["heard"], seen["beeped"] = beeper.heard, beeper.beeped
    (OUT / "seen.json").write_text(json.dumps(seen, indent=1))
    say("done")
