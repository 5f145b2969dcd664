"""The films for players: each frame has its number in twenty black and white blocks, and each second begins with a beep.
They are made once by ffmpeg, kept in a temporary folder, and named by their recipe."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess
import tempfile
import threading

from harness.tools import FFMPEG, new_ffmpeg

WIDTH, HEIGHT, BLOCK = 320, 180, 16
#: Bits of the number and of its checksum, which is the exclusive or of the number's four nibbles.
BITS, CHECK_BITS = 16, 4
#: First number in films of a later publication of the same stream, so that it can be told from the earlier one.
SECOND = 1 << (BITS - 1)

X264 = ("-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "500k", "-bf", "2", "-sc_threshold", "0")
#: Without B-frames as references: at the beginning of a file, where one must be skipped that never existed, Chromium's decoder
#: fails, also in a plain file.
X264_OPEN = (*X264[:-4], "-bf", "3", "-x264-params", "open-gop=1:scenecut=0:b-pyramid=none")
X265_OPEN = ("-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "500k", "-tag:v", "hvc1",
             "-x265-params", "keyint=60:min-keyint=60:scenecut=0:bframes=3:open-gop=1:log-level=error")
#: Frames that a camera with a variable rate leaves out: now and then one, and once in three seconds half a second.
UNEVEN = "not(eq(mod(n\\,7)\\,3)+between(mod(n\\,90)\\,40\\,54))"

MAKING = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Film:
    """How a film is made. `first`: the number of its first frame."""

    seconds: int = 150
    first: int = 0
    rate: int = 30
    gop: int = 60
    video: tuple[str, ...] | None = X264
    size: tuple[int, int] = (WIDTH, HEIGHT)
    audio: tuple[str, ...] | None = ("-c:a", "aac", "-b:a", "96k")
    channels: int = 2
    uneven: bool = False
    container: str = "mp4"

    @property
    def numbers(self) -> list[int]:
        """The numbers of its frames, in order."""
        if not self.video:
            return []
        every = range(self.seconds * self.rate)
        return [self.first + n for n in every
                if not (self.uneven and (n % 7 == 3 or 40 <= n % 90 <= 54))]

    def path(self) -> pathlib.Path:
        """The file; made if it does not exist."""
        name = hashlib.sha256(repr(self).encode()).hexdigest()[:16]
        folder = pathlib.Path(tempfile.gettempdir()) / f"weir-players-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{name}.{self.container}"
        # Two players at a time watch the same film.
        with MAKING:
            if not path.exists():
                unfinished = path.with_suffix(f".{os.getpid()}.{self.container}")
                self._make(unfinished)
                unfinished.rename(path)
        return path

    def _make(self, path: pathlib.Path) -> None:
        program = new_ffmpeg() if self.container == "mkv" else FFMPEG
        command = [program, "-v", "error", "-y"]
        if self.video:
            command += ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{BLOCK}", "-r", str(self.rate), "-i", "-",
                        "-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate={self.rate}"]
        if self.audio:
            command += ["-f", "lavfi", "-i", "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.05)':s=48000"]
        graph = []
        if self.video:
            uneven = f",select='{UNEVEN}'" if self.uneven else ""
            graph = ["-filter_complex", "[1:v][0:v]overlay=format=yuv420"
                     f"{uneven},scale={self.size[0]}:{self.size[1]}:flags=neighbor[v]", "-map", "[v]", *self.video,
                     "-g", str(self.gop), "-keyint_min", str(self.gop)]
            if self.uneven:
                graph += ["-vsync", "vfr"]
        if self.audio:
            graph += ["-map", f"{2 if self.video else 0}:a", *self.audio, "-ac", str(self.channels)]
        command += [*graph, "-t", str(self.seconds), str(path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        if self.video:
            for number in range(self.first, self.first + self.seconds * self.rate):
                process.stdin.write(blocks(number))
        process.stdin.close()
        if process.wait() != 0:
            raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}")


def blocks(number: int) -> bytes:
    """A gray strip with a frame's number, the highest bit first."""
    check = (number ^ number >> 4 ^ number >> 8 ^ number >> 12) & 15
    word = number << CHECK_BITS | check
    row = b"".join((b"\xeb" if word >> bit & 1 else b"\x10") * BLOCK for bit in reversed(range(BITS + CHECK_BITS)))
    return row * BLOCK
