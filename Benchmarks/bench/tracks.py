"""Several tracks: CPU per byte of three sizes of picture and four languages in one publication, beside one and one."""

import subprocess
import time

from harness import tools

from . import meter, peers

SECONDS = 20
PICTURE = ("-f", "lavfi", "-i", "testsrc2=s=1280x720:r=30")
VIDEO = ("-c:v", "libx264", "-preset", "superfast", "-g", "60", "-keyint_min", "60", "-sc_threshold", "0", "-pix_fmt", "yuv420p")
ONE = ("-map", "0:v", "-map", "1:a", "-b:v:0", "3M", "-minrate:v:0", "3M", "-maxrate:v:0", "3M", "-bufsize:v:0", "3M")
MANY = ("-filter_complex", "[0:v]split=3[a][b0][c0];[b0]scale=854:480[b];[c0]scale=426:240[c]", "-map", "[a]", "-map", "[b]",
        "-map", "[c]", *["-map", "1:a"] * 4,
        *(word for n, rate in enumerate(("3M", "1500k", "500k")) for option in ("b", "minrate", "maxrate", "bufsize")
          for word in (f"-{option}:v:{n}", rate)))
FILMS = {"one and one": ONE, "three sizes, four languages": MANY}


def _measure(film, count: int, settle: float, seconds: float) -> tuple[float, float]:
    """Microseconds of CPU per kilobyte, and megabits a second of each."""
    with peers.weir("--max-names", "1000") as server:
        running = [
            subprocess.Popen(
                [tools.new_ffmpeg(), "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(film), "-map", "0", "-c",
                 "copy", "-f", "flv", f"{server.rtmp}/live/bench{number}"],
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for number in range(count)]
        try:
            time.sleep(settle)
            began, before = time.monotonic(), meter.cpu_seconds(server.process.pid)
            time.sleep(seconds)
            cpu, took = meter.cpu_seconds(server.process.pid) - before, time.monotonic() - began
            if any(process.poll() is not None for process in running):
                raise RuntimeError("a publisher ended")
        finally:
            for process in running:
                process.kill()
                process.wait()
    rate = film.stat().st_size / SECONDS
    return 1e9 * cpu / took / count / rate, 8 * rate / 1e6


def run(rounds: int, count: int = 10, settle: float = 12, seconds: float = 16) -> str:
    rows: dict[str, list[tuple[float, float]]] = {}
    with peers.folder() as folder:
        films = {}
        for number, (name, tracks) in enumerate(FILMS.items()):
            films[name] = folder / f"{number}.flv"
            subprocess.run(
                [tools.new_ffmpeg(), "-v", "error", *PICTURE, "-f", "lavfi", "-i", "sine=440:r=48000", "-t", str(SECONDS), *tracks,
                 *VIDEO, "-x264-params", "nal-hrd=cbr", "-c:a", "aac", "-b:a", "128k", str(films[name])], check=True)
        for turn in range(rounds):
            for name, film in films.items():
                rows.setdefault(name, []).append(_measure(film, count, settle, seconds))
            print(f"tracks round {turn + 1}/{rounds}: " + "; ".join(
                f"{name} {values[-1][0]:.2f} µs/kB" for name, values in rows.items()), flush=True)
    base = rows["one and one"]
    body = [[name, f"{found[0][1]:.1f}", meter.spread([cpu for cpu, _ in found]),
             meter.spread([own / plain for (own, _), (plain, _) in zip(found, base)])] for name, found in rows.items()]
    return (f"Several tracks by Enhanced RTMP, {count} publications, no viewers: CPU for each byte that comes, median (min–max) of "
            f"{rounds} rounds.\n\n" + meter.table(["tracks", "Mbit/s each", "µs/kB", "÷ one and one"], body))
