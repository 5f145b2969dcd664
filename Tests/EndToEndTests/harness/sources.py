"""The published films: made once by ffmpeg, kept in a temporary folder, and named by their recipe."""

import dataclasses
import fcntl
import hashlib
import os
import pathlib
import subprocess
import tempfile

from .tools import FFMPEG, new_ffmpeg

#: Audio whose coded frames all differ, so that a frame can be found by its bytes.
NOISE = "anoisesrc=color=pink:seed=7:amplitude=0.3:sample_rate={rate}"
X264 = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "400k", "-bf", "3"]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a film is made, and what a judge may expect of it."""

    name: str
    seconds: float = 8
    rate: str | None = "30"  # frames per second; None: no video
    gop: int = 60  # frames between sync samples
    video: tuple[str, ...] = tuple(X264)
    filter: str = "null"
    size: str = "320x180"
    audio: str | None = "aac"
    audio_rate: int = 48000
    channels: int = 2
    encoder: str = "debian"  # whose ffmpeg makes it
    publisher: str = "debian"  # whose ffmpeg can send it
    variable: bool = False  # no constant frame rate

    def command(self) -> list[str]:
        command = [new_ffmpeg() if self.encoder == "new" else FFMPEG, "-v", "error", "-y"]
        if self.rate:
            command += ["-f", "lavfi", "-i", f"testsrc2=size={self.size}:rate={self.rate}"]
        if self.audio:
            command += ["-f", "lavfi", "-i", NOISE.format(rate=self.audio_rate)]
        command += ["-t", str(self.seconds)]
        if self.rate:
            command += [*self.video, "-g", str(self.gop), "-keyint_min", str(self.gop), "-vf", self.filter]
            if "libx264" in self.video:
                command += ["-sc_threshold", "0"]
            if self.variable:
                command += ["-vsync", "vfr"]
        if self.audio:
            command += ["-c:a", self.audio, "-ac", str(self.channels), "-b:a", "96k"]
        return command + ["-f", "mp4"]


HEVC = ("-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "400k", "-tag:v", "hvc1",
        "-x265-params", "keyint=60:min-keyint=60:scenecut=0:bframes=3:open-gop=0:log-level=error")
HEVC_10 = (*HEVC[:5], "yuv420p10le", *HEVC[6:])
HEVC_PQ = (*HEVC_10[:-1], HEVC_10[-1] + ":colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc")
VP9 = ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0", "-auto-alt-ref", "0",
       "-pix_fmt", "yuv420p", "-b:v", "400k")
AV1 = ("-c:v", "libsvtav1", "-preset", "12", "-pix_fmt", "yuv420p", "-b:v", "400k")

RECIPES = {
    recipe.name: recipe
    for recipe in [
        Recipe("h264-30"),
        Recipe("h264-2997", rate="30000/1001", audio_rate=44100),
        Recipe("h264-25", rate="25", gop=50, channels=1),
        Recipe("h264-23976", rate="24000/1001", gop=48),
        Recipe("h264-60", rate="60", gop=120),
        Recipe("hevc", video=HEVC, publisher="new"),
        # After each key frame come frames that are shown before it. x265 makes them by default.
        Recipe("h264-open", seconds=7, video=(*X264, "-x264-params", "open-gop=1:b-adapt=0")),
        Recipe("hevc-open", seconds=7, video=(*HEVC[:-1], HEVC[-1].replace("open-gop=0", "open-gop=1")), publisher="new"),
        # Ten bits: one without colour metadata, one with PQ in the bitstream.
        Recipe("hevc-10", seconds=5, video=HEVC_10, audio=None, encoder="new", publisher="new"),
        Recipe("hevc-pq", seconds=5, video=HEVC_PQ, audio=None, encoder="new", publisher="new"),
        Recipe("portrait", seconds=5, size="360x640", audio=None),
        # A shape that is a whole number of macroblocks in no rung.
        Recipe("odd", seconds=4, size="354x190", audio=None),
        Recipe("av1-opus", video=AV1, audio="libopus", encoder="new", publisher="new"),
        Recipe("vp9-opus", video=VP9, audio="libopus", publisher="new"),
        Recipe("h264-opus", audio="libopus", publisher="new"),
        Recipe("audio-only", rate=None),
        Recipe("video-only", audio=None),
        Recipe("long-gop", seconds=18, gop=250),
        Recipe("clip", seconds=4),
        # For what goes round.
        Recipe("brief", seconds=2, gop=30),
        Recipe("vfr", filter="select='not(eq(mod(n\\,7)\\,3)+eq(mod(n\\,11)\\,5)+eq(mod(n\\,5)\\,4))'", variable=True),
        # GOPs that do not fill the segment target of 2 s.
        Recipe("gop-1920", rate="25", gop=48),
        Recipe("gop-1500", gop=45),
        # GOPs of twice that.
        Recipe("gop-4000", seconds=16, gop=120),
        # The same codec with another frame size and another sample rate, for changes in mid-stream.
        Recipe("small", seconds=4, size="256x144", gop=30),
        Recipe("small-mono", seconds=4, size="256x144", gop=30, channels=1),
        Recipe("audio-441", seconds=4, gop=30, audio_rate=44100),
        Recipe("short", seconds=4, gop=30),
        # Regular GOPs, followed by irregular ones.
        Recipe("uneven", seconds=15, gop=600, video=(*X264, "-force_key_frames", "0,2,4,6,8,9.4,11,13")),
        # 40 Mbit/s of noise, for disks that cannot keep up.
        Recipe("heavy", seconds=4, gop=30, size="640x360", filter="noise=alls=100:allf=t",
               video=("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "40M",
                      "-minrate", "40M", "-maxrate", "40M", "-bufsize", "10M")),
        # Segments of a megabyte. The film is long enough not to start again while parts are timed.
        Recipe("megabyte", seconds=60, size="640x360", video=(
            "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "4M", "-minrate", "4M",
            "-maxrate", "4M", "-bufsize", "2M", "-x264-params", "nal-hrd=cbr")),
        # 1 Mbit/s with its audio, for servers with many publishers.
        Recipe("megabit", seconds=16, video=(
            "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "900k", "-minrate", "900k",
            "-maxrate", "900k", "-bufsize", "450k", "-x264-params", "nal-hrd=cbr")),
        # What a file source plays for pages and lists: what is judged there does not depend on the media.
        # Eight seconds are whole audio frames: it goes round without a hole.
        Recipe("loop", seconds=8, gop=15),
        # What a ladder is made of: a source of much more than its rungs, as small as can be.
        Recipe("rungs", seconds=10, gop=30, size="640x360", video=(
            "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "1600k", "-minrate", "1600k",
            "-maxrate", "1600k", "-bufsize", "800k", "-x264-params", "nal-hrd=cbr")),
        Recipe("loop-opus", seconds=8, gop=15, audio="libopus", publisher="new"),
        # Key frames each half second. Its audio frames fill it, so that it goes on evenly where it begins again.
        Recipe("half-seconds", seconds=16, gop=15),
        # Without B-frames.
        Recipe("straight", seconds=4, video=(
            "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "400k", "-bf", "0")),
        # Light enough for sixty times real time: 375 audio frames and 160 video frames are exactly 16 s.
        Recipe("light", seconds=16.5, rate="10", gop=20, size="160x90", audio_rate=24000, channels=1, video=(
            "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "48k", "-bf", "0")),
        # Long enough to be measured while it is live. Its audio frames fill it, so that it goes on evenly where it begins again.
        Recipe("steady", seconds=64),
    ]
}


def folder() -> pathlib.Path:
    """Folder in which films are kept between runs; $WEIR_E2E_SOURCES overrides it."""
    chosen = os.environ.get("WEIR_E2E_SOURCES")
    path = pathlib.Path(chosen) if chosen else pathlib.Path(tempfile.gettempdir()) / f"weir-e2e-sources-{os.getuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user; remove it or set WEIR_E2E_SOURCES")
    return path


def source(name: str) -> pathlib.Path:
    """The film of that name as MP4. It is made now if it does not exist."""
    recipe = RECIPES[name]
    return made(name, ".mp4", recipe.command())


def flv(name: str) -> pathlib.Path:
    """The same film as FLV: exactly the tags that an RTMP publisher sends."""
    maker = new_ffmpeg() if RECIPES[name].publisher == "new" else FFMPEG
    command = [maker, "-v", "error", "-y", "-i", str(source(name)), "-c", "copy",
               "-flvflags", "no_duration_filesize", "-f", "flv"]
    return made(name, ".flv", command)


def ts(name: str) -> pathlib.Path:
    """The same film as an MPEG transport stream."""
    return made(name, ".ts", [FFMPEG, "-v", "error", "-y", "-i", str(source(name)), "-c", "copy", "-f", "mpegts"])


def film(name: str, suffix: str, *arguments) -> pathlib.Path:
    """A film of a test's own, kept as the others: the arguments of Debian's ffmpeg, without the file that it writes."""
    return made(name, suffix, [FFMPEG, "-v", "error", "-y", *map(str, arguments)])


def made(name: str, suffix: str, command: list[str]) -> pathlib.Path:
    """What a command makes in the file whose name is put behind it; made once, and kept like the films."""
    stamp = hashlib.sha256("\0".join(command).encode()).hexdigest()[:10]
    path = folder() / f"{name}-{stamp}{suffix}"
    if path.exists():
        return path
    with open(folder() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once make each film once
        if not path.exists():
            half = path.with_suffix(".half")
            subprocess.run([*command, str(half)], check=True, stdin=subprocess.DEVNULL, timeout=120,
                           env={**os.environ, "SVT_LOG": "0"})
            half.rename(path)
    return path

