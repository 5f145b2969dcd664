"""The test pattern as a film: what needs its numbers, flashes and beeps, and not that weir encodes them now."""

import array
import pathlib
import subprocess

from . import tools


def film(path: pathlib.Path, seconds: int, size: str, *audio: str) -> pathlib.Path:
    """Draws it in 720p at 30 frames a second, and writes it in this size with a key frame each second and a beep of 80 ms at each
    flash. `audio`: options of ffmpeg."""
    with subprocess.Popen([tools.weir_binary(), "pattern", "--count", str(30 * seconds)], stdout=subprocess.PIPE) as drawn:
        made = subprocess.run([
            tools.FFMPEG, "-v", "error", "-nostdin", "-i", "-", "-f", "lavfi", "-i",
            "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.08)':s=48000:c=stereo", "-t", str(seconds), "-vf",
            f"scale={size}", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "30",
            *audio, str(path)], stdin=drawn.stdout, timeout=120)
    assert made.returncode == 0 and drawn.returncode == 0
    return path


def beeps(samples: array.array) -> list[int]:
    """The first loud sample of each beep, of audio at 48 kHz."""
    found, last = [], -48000
    for begin in range(0, len(samples), 480):
        block = samples[begin:begin + 480]
        if max(block) <= 3000 and min(block) >= -3000:
            continue
        for at, value in enumerate(block, begin):
            if abs(value) > 3000:
                if at - last > 24000:
                    found.append(at)
                last = at
    return found
