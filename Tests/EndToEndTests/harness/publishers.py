"""Stock publishers, each in its own process: ffmpeg 5.1, the newer ffmpeg, GStreamer."""

import pathlib
import subprocess
import threading
import time

from . import tools
from .sources import RECIPES, source


class Publisher:
    """A publishing process. `log`: its standard error."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)

    def wait(self, seconds: float = 60) -> "Publisher":
        """Waits for its end; AssertionError if it failed."""
        code, log = self.outcome(seconds)
        if code != 0:
            raise AssertionError(f"{' '.join(self.command)}: exit {code}\n{log}")
        return self

    def outcome(self, seconds: float = 30) -> tuple[int, str]:
        """Its exit code and its log."""
        try:
            _, log = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, log = self.process.communicate()
            return 124, log.decode("utf-8", "replace")
        return self.process.returncode, log.decode("utf-8", "replace")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def interrupt(self) -> None:
        """Stops it like Ctrl-C: ffmpeg then ends the publication properly."""
        self.process.send_signal(2)


def ffmpeg(film: str | pathlib.Path, url: str, *, version: str | None = None, paced: bool = True,
           loop: int = 0, options: tuple[str, ...] = (), rate: float = 1) -> Publisher:
    """Publishes a film (its name or a path) with `-c copy`, by the ffmpeg that supports it, at `rate` times real time."""
    path = source(film) if isinstance(film, str) else film
    version = version or (RECIPES[film].publisher if isinstance(film, str) else "debian")
    program = tools.new_ffmpeg() if version == "new" else tools.FFMPEG
    command = [program, "-hide_banner", "-nostdin", "-v", "warning"]
    command += ["-readrate", str(rate)] if paced else []
    # By itself it takes twenty seconds to catch up on one in which it was held up.
    command += ["-readrate_catchup", str(2 * rate)] if paced and version == "new" else []
    command += ["-stream_loop", str(loop)] if loop else []
    command += ["-i", str(path), "-c", "copy", *options, "-f", "flv", url]
    return Publisher(command)


def whip(film: str, url: str, key: str = "", *, loop: int = 0, seconds: float = 0, options: tuple[str, ...] = ()) -> Publisher:
    """Publishes a film by WebRTC in real time: coded anew without B-frames, with a key frame each second."""
    return Publisher([
        tools.new_ffmpeg(), "-v", "warning", "-nostdin", "-re", *(["-t", str(seconds)] if seconds else []),
        *(["-stream_loop", str(loop)] if loop else []), "-i", str(source(film)), "-c:v", "libx264", "-preset", "ultrafast",
        "-tune", "zerolatency", "-profile:v", "baseline", "-g", "30", "-bf", "0", "-pix_fmt", "yuv420p", "-c:a", "libopus", "-ar",
        "48000", "-ac", "2", *options, *(["-authorization", key] if key else []), "-f", "whip", url])


def gstreamer(film: str, url: str) -> Publisher:
    """Publishes a film by rtmp2sink: demuxed, parsed and muxed to FLV, without encoding."""
    if not tools.GSTREAMER:
        raise FileNotFoundError("gst-launch-1.0 is missing; install gstreamer1.0-tools and the good and bad plugins")
    return Publisher([
        tools.GSTREAMER, "-q", "filesrc", f"location={source(film)}", "!", "qtdemux", "name=d",
        "flvmux", "streamable=true", "name=m", "!", "rtmp2sink", f"location={url}", "sync=true",
        "d.video_0", "!", "queue", "!", "h264parse", "!", "m.video",
        "d.audio_0", "!", "queue", "!", "aacparse", "!", "m.audio"])


def wait_all(publishers: list[Publisher], seconds: float) -> None:
    """Waits for every publisher; AssertionError names all that failed."""
    end = time.monotonic() + seconds
    failures = []
    for publisher in publishers:
        try:
            publisher.wait(max(end - time.monotonic(), 0.1))
        except AssertionError as error:
            failures.append(str(error))
    if failures:
        raise AssertionError("\n".join(failures))


class Returning:
    """A publisher that reconnects at once, as encoders do: ffmpeg, started again when it ends."""

    RETURN_SECONDS = 0.2

    def __init__(self, film: str, url: str):
        self.film, self.url = film, url
        self.starts = 0
        self.stops = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stops:
            current = ffmpeg(self.film, self.url, loop=-1)
            self.starts += 1
            while current.process.poll() is None and not self.stops:
                time.sleep(0.02)
            current.kill()
            time.sleep(self.RETURN_SECONDS)

    def stop(self) -> None:
        self.stops = True
        self.thread.join(10)
