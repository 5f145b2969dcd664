"""Players that are separate programs: their output shows which frames they play, in the film's real time."""

import os
import re
import shutil
import subprocess
import threading
import time

from films import BITS, BLOCK, CHECK_BITS, HEIGHT, WIDTH
from harness.tools import FFMPEG, output

BLOCKS = BITS + CHECK_BITS
FRAME = WIDTH * HEIGHT
#: For the films shown to programs.
RATE = 30
#: The video as gray bytes on standard output, each frame at its time.
SINK = f"videoconvert ! videoscale ! video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT} ! fdsink fd=1 sync=true"
GSTREAMER = ("gst-launch-1.0", "-q")


def number_in(strip: bytes) -> int | None:
    """The number in a line of the blocks, as measure.js reads it."""
    word = 0
    for n in range(BLOCKS):
        word = word * 2 + (strip[n * BLOCK + BLOCK // 2] > 127)
    number, check = word >> CHECK_BITS, word & 15
    return number if (number ^ number >> 4 ^ number >> 8 ^ number >> 12) & 15 == check else None


def numbers_of(url: str) -> list[int]:
    """The numbers of a film's frames."""
    line = BLOCK // 2 * WIDTH
    data = output(FFMPEG, "-v", "error", "-nostdin", "-i", url, "-vsync", "passthrough", "-vf", f"scale={WIDTH}:{HEIGHT}", "-f",
                  "rawvideo", "-pix_fmt", "gray", "-")
    found = (number_in(data[at + line : at + line + WIDTH]) for at in range(0, len(data), FRAME))
    return [number for number in found if number is not None]


#: By name: the command, and its kind of output: frames, or a clock (the pattern of its seconds).
PROGRAMS = {
    "ffmpeg": (lambda url: [FFMPEG, "-v", "error", "-nostdin", "-i", url, "-map", "0:v:0", "-vsync", "passthrough", "-vf",
                            f"scale={WIDTH}:{HEIGHT}", "-f", "rawvideo", "-pix_fmt", "gray", "-"], None),
    "ffplay": (lambda url: ["ffplay", "-v", "info", "-stats", url],
               re.compile(rb"(?:^|\r)\s*(\d+\.\d+) [AMVx]")),
    "mpv": (lambda url: ["mpv", "--no-config", "--vo=null", "--ao=null", "--input-terminal=no", "--msg-level=all=status",
                         "--term-status-msg=POS ${=time-pos}", url], re.compile(rb"POS (\d+\.\d+)")),
    # Not playbin: its hlsdemux begins only after as much time as the stream is old (docs/playback.md).
    "hlsdemux2": (lambda url: [*GSTREAMER, "playbin3", f"uri={url}", "audio-sink=fakesink sync=true", f"video-sink={SINK}"], None),
}


def missing() -> dict[str, str]:
    found = {}
    for name, (command, _) in PROGRAMS.items():
        program = command("")[0]
        if not shutil.which(program):
            found[name] = f"{program} is not installed"
    return found


class Program:
    """One of them. Its record has the form of a browser's (measure.js)."""

    def __init__(self, name: str):
        self.player = name
        self.process: subprocess.Popen | None = None
        self.frames: list = []
        self.clock: list[tuple[float, float]] = []

    def begin(self, url: str) -> None:
        command, self.pattern = PROGRAMS[self.player]
        environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
        # GStreamer has two demuxers for playlists; each is tested.
        environment["GST_PLUGIN_FEATURE_RANK"] = f"{self.player}:MAX" if "demux" in self.player else ""
        self.began = time.time() * 1000
        self.process = subprocess.Popen(
            command(url), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self.pattern else subprocess.PIPE, env=environment)
        threading.Thread(target=self._read_clock if self.pattern else self._read_frames, daemon=True).start()
        self.said: list[bytes] = []
        if not self.pattern:
            threading.Thread(target=self._read_errors, daemon=True).start()

    def _read_errors(self) -> None:
        for line in self.process.stderr:
            self.said = [*self.said[-20:], line]

    def _read_frames(self) -> None:
        """Takes each frame when a player would show it: not before it exists, and one frame duration after the previous one. A
        decoder that runs ahead is held back by the pipe."""
        shown = 0.0
        while len(data := self.process.stdout.read(FRAME)) == FRAME:
            line = BLOCK // 2 * WIDTH
            count = len(self.frames) + 1
            time.sleep(max(0.0, shown / 1000 + 1 / RATE - time.time()))
            shown = time.time() * 1000
            self.frames.append([round(shown), count / RATE, number_in(data[line : line + WIDTH]), count, count, 0])

    def _read_clock(self) -> None:
        while data := self.process.stdout.read1(4096):
            for found in self.pattern.finditer(data):
                self.clock.append((time.time() * 1000, float(found[1])))
            if not self.pattern.search(data):
                self.said = [*self.said[-20:], data[-300:]]

    def end(self) -> dict:
        ended = self.process.poll()
        self.close()
        moments = [p[0] for p in self.frames] if self.frames else self._moves()
        now = time.time() * 1000
        stalls = [[a, (b - a) / 1000, 0] for a, b in zip(moments, [*moments[1:], now]) if b - a > 800]
        errors = [] if ended is None else [[now, "fatal", f"ended with {ended}: {b''.join(self.said[-3:]).decode(errors='replace')[-200:]}"]]
        return {
            "began": self.began, "first": moments[0] if moments else None, "frames": self.frames, "stalls": stalls, "jumps": [],
            "errors": errors, "requests": [], "beeps": [], "ended": None, "sizes": [], "now": now,
            "frozen": bool(moments) and now - moments[-1] > 800,
        }

    def _moves(self) -> list[float]:
        """When its clock advanced."""
        return [at for (at, value), (_, before) in zip(self.clock[1:], self.clock) if value != before]

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
