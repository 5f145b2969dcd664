"""WebRTC: what 200 viewers cost the server, each with its own DTLS and SRTP, and what one real browser beside them sees; and what
publishers cost, beside those of RTMP."""

import contextlib
import json
import subprocess
import time

import browser.browsers as browsers
import test_whep as whep
from harness import sources, tools
from harness.sources import Recipe

from . import lowlatency, meter, peers

SECONDS = 15
RATE = "3M"
PUBLISHERS = 20
#: 2.5 Mbit/s of 720p30 without B-frames; noise keeps the encoder at its rate.
FILMS = {
    kind: Recipe(
        f"bench-2500k-{kind}", seconds=16, rate="30", gop=60, size="1280x720", filter="noise=alls=12:allf=t", audio=audio,
        video=("-c:v", "libx264", "-preset", "superfast", "-pix_fmt", "yuv420p", "-profile:v", "main", "-bf", "0", "-b:v", "2400k",
               "-maxrate", "2400k", "-bufsize", "2400k", "-x264-params", "nal-hrd=cbr"))
    for kind, audio in (("RTMP", "aac"), ("WHIP", "libopus"))}


def program(folder):
    """The crowd (whep.c), compiled now."""
    made = folder / "whep"
    subprocess.run(["cc", "-O2", "-o", str(made), str(peers.HERE / "bench" / "whep.c"), "-lssl", "-lcrypto", "-lsrtp2"], check=True)
    return made


def crowd(made, server, name: str, count: int, seconds: float) -> subprocess.Popen:
    host, port = server.web.removeprefix("http://").rsplit(":", 1)
    return subprocess.Popen(
        [str(made), host, port, f"/whep/{name}", str(count), str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def watched(chromium) -> dict:
    return chromium.evaluate(whep.RECEIVED)["video"]


def measure(made, server, chromium, name: str, count: int) -> dict:
    """CPU of the server while `count` viewers watch, what they got, and what the browser beside them has seen."""
    process = crowd(made, server, name, count, SECONDS + 4)
    if "connected" not in process.stderr.readline():
        raise RuntimeError(f"the crowd did not begin: {process.stderr.read()}")
    time.sleep(3)  # whep.c waits for 2 s before it counts
    first, before, began = watched(chromium), meter.split_cpu_seconds(server.process.pid), time.monotonic()
    own = meter.cpu_seconds(process.pid)
    time.sleep(SECONDS)
    last, after, took = watched(chromium), meter.split_cpu_seconds(server.process.pid), time.monotonic() - began
    own = meter.cpu_seconds(process.pid) - own
    report = json.loads(process.communicate(timeout=90)[0])
    if report["connected"] != count or report["lasting"] != count or report["refused"]:
        raise RuntimeError(f"{count} viewers: {report}")
    return {**report, "user": 100 * (after[0] - before[0]) / took, "system": 100 * (after[1] - before[1]) / took,
            "crowd": 100 * own / took, "shown": (last["framesDecoded"] - first["framesDecoded"]) / took,
            "frozen": last["freezeCount"] - first["freezeCount"], "lost": last.get("packetsLost", 0) - first.get("packetsLost", 0)}


@contextlib.contextmanager
def publishing(server, kind: str, count: int):
    """So many publishers by one protocol, all with the same film, which nothing encodes."""
    film = FILMS[kind]
    sources.RECIPES[film.name] = film
    command = [tools.new_ffmpeg(), "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(sources.source(film.name)), "-c", "copy"]
    made = []
    try:
        for number in range(count):
            name = f"{kind.lower()}{number}"
            out = ["-f", "flv", f"{server.rtmp}/live/{name}"] if kind == "RTMP" else ["-f", "whip", f"{server.web}/whip/{name}"]
            made.append(subprocess.Popen(command + out))
            # Not all at once: so their key frames come at different times.
            time.sleep(0.1)
        for number in range(count):
            server.wait_state(f"{kind.lower()}{number}", "live", seconds=60)
        yield
        if any(process.poll() is not None for process in made):
            raise RuntimeError(f"a publisher by {kind} has ended")
    finally:
        for process in made:
            process.kill()
            process.wait()


def publishers(rounds: int) -> str:
    """CPU of the server for each publisher, by RTMP and by WHIP in turn."""
    found: dict[str, list[float]] = {"RTMP": [], "WHIP": []}
    for turn in range(rounds):
        for kind in found if turn % 2 else reversed(found):
            with peers.weir("--webrtc", "127.0.0.1:0", listeners=("http", "rtmp", "webrtc")) as server, \
                    publishing(server, kind, PUBLISHERS):
                time.sleep(3)
                before, began = meter.cpu_seconds(server.process.pid), time.monotonic()
                time.sleep(SECONDS)
                found[kind].append(
                    100 * (meter.cpu_seconds(server.process.pid) - before) / (time.monotonic() - began) / PUBLISHERS)
        print(f"webrtc publishers round {turn + 1}/{rounds}: {found}", flush=True)
    more = meter.median(a - b for a, b in zip(found["WHIP"], found["RTMP"]))
    return (f"{PUBLISHERS} publishers of 2.5 Mbit/s (720p30) that encode nothing, by RTMP with AAC and by WHIP with Opus (DTLS, SRTP), "
            f"{SECONDS} s a run, median (min–max) of {rounds} rounds in turn. WHIP costs {more:.2f} % of a core more each.\n\n"
            + meter.table(["publishers by", "server % of a core each"], [[kind, meter.spread(all)] for kind, all in found.items()]))


def run(rounds: int, counts: tuple[int, ...] = (50, 200)) -> str:
    rows = []
    with peers.folder() as folder, peers.weir("--webrtc", "127.0.0.1:0", listeners=("http", "rtmp", "webrtc")) as server, \
            browsers.Chromium("--autoplay-policy=no-user-gesture-required") as chromium:
        made = program(folder)
        publisher = lowlatency.Publisher(server.rtmp, "crowd", 60 + rounds * len(counts) * (SECONDS + 30), RATE)
        lowlatency.playlist(server, "crowd")
        answer = whep.watch(chromium, server, "crowd")
        if answer["status"] != 201:
            raise RuntimeError(answer)
        chromium.wait("window.video.currentTime > 2")
        found: dict[int, list[dict]] = {count: [] for count in counts}
        for turn in range(rounds):
            for count in counts:
                found[count].append(measure(made, server, chromium, "crowd", count))
                print(f"webrtc round {turn + 1}/{rounds}: {count} viewers {found[count][-1]}", flush=True)
        publisher.stop()
    text = publishers(rounds)
    for count, all in found.items():
        rows.append([
            f"{count}", meter.spread([one["user"] + one["system"] for one in all]), meter.spread([one["system"] for one in all]),
            meter.spread([(one["user"] + one["system"]) / count for one in all]),
            meter.spread([one["bytes"] * 8 / one["seconds"] / count / 1e6 for one in all]),
            f"{sum(one['missing'] for one in all)} of {sum(one['packets'] for one in all):,}",
            meter.spread([one["longest_gap_ms"] for one in all]), meter.spread([one["shown"] for one in all]),
            f"{sum(one['frozen'] for one in all)}, {sum(one['lost'] for one in all)}"])
    return (f"Viewers by WebRTC of one stream of 3 Mbit/s (720p30, AAC made Opus): each completes ICE and DTLS, and checks each packet "
            f"(SRTP, AES-128-GCM); {SECONDS} s a run, median (min–max) of {rounds} rounds. One Chromium beside them.\n\n"
            + meter.table(["viewers", "server % of a core", "of that in the kernel", "% a viewer", "Mbit/s a viewer", "packets lost",
                           "longest time without video, ms", "frames/s in Chromium", "its freezes, losses"], rows) + "\n" + text)
