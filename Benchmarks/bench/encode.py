"""The built-in source at 720p30: the delay of a frame from its time to its part at a waiting client, and the cost of making,
encoding, packaging and serving it, beside ffmpeg, which encodes the same frames with the same settings."""

import datetime
import pathlib
import re
import subprocess
import time

from harness import http as plain
from harness import tools

from . import lowlatency, meter, peers

SECONDS = 10
#: Time of frame 0 of those that ffmpeg encodes.
FIRST = "2026-11-21T07:24:10.500Z"
#: Encoder settings of weir's own source.
CODING = [
    "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-threads", "1", "-b:v", "2M", "-maxrate", "2M",
    "-bufsize", "2M", "-g", "60", "-bf", "0", "-x264-params", "sliced-threads=0:scenecut=0:b-adapt=0:b-pyramid=none",
    "-c:a", "aac", "-b:a", "96k"]


def run(rounds: int) -> str:
    with peers.folder("/dev/shm") as folder:
        frames = folder / "frames.y4m"
        frames.write_bytes(subprocess.run(
            [tools.weir_binary(), "pattern", "--start", FIRST, "--count", str(30 * SECONDS)], stdout=subprocess.PIPE,
            check=True).stdout)
        qualities = quality_of_weir(folder), quality_of_ffmpeg(folder, frames)
        weirs, ffmpegs, spoiled = [], [], 0
        while len(weirs) < rounds:
            made = weir()
            if made["leftOut"]:
                # Fewer frames were encoded than ffmpeg encodes, so there is no comparison.
                spoiled += 1
                if spoiled > rounds:
                    raise RuntimeError("the machine is too busy: weir left frames out in every other run")
                continue
            weirs.append(made)
            ffmpegs.append(ffmpeg(folder, frames))
    ratio = meter.median([w["cpu"] / f for w, f in zip(weirs, ffmpegs)])
    delays = sorted(delay for w in weirs for delay in w["delays"])
    rows = [
        ["weir: frames made, coded, cut and served", meter.spread([w["cpu"] for w in weirs]), f"{ratio:.2f}", qualities[0]],
        ["ffmpeg: the same frames from memory, coded, HLS fMP4 to tmpfs", meter.spread(ffmpegs), "1", qualities[1]],
    ]
    return (
        "### Encoding\n\n720p30 by libx264 (veryfast, zerolatency, 2 Mbit/s, one thread) and AAC (96 kbit/s); median of "
        f"{rounds} interleaved runs of {SECONDS} s.\n\n" + meter.table(
            ["", "CPU, % of a core", "ratio", "PSNR, dB"], rows)
        + f"\nFrom the time of a part's last frame to the part's last byte at a waiting client: "
        f"{delays[len(delays) // 2]:.1f} ms (median of {len(delays)} parts), {delays[len(delays) * 99 // 100]:.1f} ms "
        f"(99 %); coding the frame takes {meter.median([w['encode'] for w in weirs]):.1f} ms of it.\n")


def weir() -> dict:
    with peers.weir("--test-pattern", "demo") as server:
        url = lowlatency.playlist(server, "demo")
        before, began = meter.cpu_seconds(server.process.pid), time.monotonic()
        delays = parts(url)
        cpu = (meter.cpu_seconds(server.process.pid) - before) / (time.monotonic() - began)
        video = server.stream("demo")["capture"]["video"]
        encode = video["encodeMicroseconds"] / 1000
        return {"cpu": 100 * cpu, "delays": delays, "encode": encode, "leftOut": video["dropped"]}


def quality_of_weir(folder: pathlib.Path) -> str:
    """PSNR of the stream's first seconds against the drawn frames."""
    copy, drawn = folder / "copy.mp4", folder / "drawn.y4m"
    with peers.weir("--test-pattern", "demo") as server:
        lowlatency.playlist(server, "demo")
        tools.run(tools.FFMPEG, "-v", "error", "-y", "-t", SECONDS, "-i", f"{server.web}/live/demo/index.m3u8", "-an", "-c",
                  "copy", copy, timeout=60)
        since = re.search(r'availabilityStartTime="([^"]+)"', plain.fetch(f"{server.web}/live/demo/manifest.mpd").text).group(1)
        if server.stream("demo")["capture"]["video"]["dropped"]:
            raise RuntimeError("the machine is too busy: weir left frames out")
    with drawn.open("wb") as file:
        # The stream is copied from its first frame on, within its first seconds.
        subprocess.run([tools.weir_binary(), "pattern", "--start", since, "--count", str(30 * SECONDS)], stdout=file, check=True)
    try:
        return psnr(copy, drawn)
    finally:
        drawn.unlink()


def quality_of_ffmpeg(folder: pathlib.Path, frames: pathlib.Path) -> str:
    coded = folder / "coded.mp4"
    tools.run(tools.FFMPEG, "-v", "error", "-y", "-i", frames, *CODING, coded, timeout=120)
    return psnr(coded, frames)


def psnr(copy: pathlib.Path, drawn: pathlib.Path) -> str:
    judged = tools.run(
        tools.FFMPEG, "-nostdin", "-i", copy, "-i", drawn, "-lavfi",
        "[0:v]setpts=PTS-STARTPTS+0.5/30/TB[a];[1:v]setpts=PTS-STARTPTS[b];[a][b]psnr=shortest=1", "-f", "null", "-",
        timeout=120)
    found = re.search(r"average:([\d.]+)", judged.stderr)
    if not found or float(found.group(1)) < 30:
        raise RuntimeError(f"{copy.name} and {drawn.name} are not the same frames: {judged.stderr[-400:]}")
    return f"{float(found.group(1)):.1f}"


def parts(url: str) -> list[float]:
    """Milliseconds from the wall clock of each part's last frame to the part at one waiting client."""
    wall = time.time() - time.monotonic()
    return [(arrived + wall - last_frame(text, segment, part)) * 1000
            for segment, part, arrived, text in lowlatency.hinted_parts(url, SECONDS)]


def last_frame(playlist: str, segment: int, part: int) -> float:
    """Wall clock of the last frame of a part. The playlist states that of its segment, and six frames make a part."""
    stated = None
    for line in playlist.splitlines():
        if line.startswith("#EXT-X-PROGRAM-DATE-TIME:"):
            stated = datetime.datetime.fromisoformat(line.split(":", 1)[1].replace("Z", "+00:00")).timestamp()
        if f'URI="{segment}.0.m4s"' in line and stated is not None:
            return stated + (part * 6 + 5) / 30
    raise RuntimeError(f"part {segment}.{part} is not in the playlist")


def ffmpeg(folder: pathlib.Path, frames: pathlib.Path) -> float:
    """CPU of ffmpeg in % of a core, at the frames' real-time pace."""
    process = subprocess.Popen(
        [tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(frames), "-f", "lavfi", "-i", "sine=1000:r=48000", *CODING, "-f", "hls",
         "-hls_segment_type", "fmp4", "-hls_time", "2", "-hls_flags", "delete_segments", str(folder / "ffmpeg.m3u8")])
    try:
        time.sleep(2)
        before, began = meter.cpu_seconds(process.pid), time.monotonic()
        time.sleep(SECONDS)
        return 100 * (meter.cpu_seconds(process.pid) - before) / (time.monotonic() - began)
    finally:
        process.terminate()
        process.wait(10)
