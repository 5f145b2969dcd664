"""A server with one stream, and events during playback."""

import pathlib
import shutil
import tempfile
import time
from datetime import datetime

from encoder import Encoder
from films import SECOND, Film
from harness import publishers
from harness.supervisor import Supervisor
from harness.weir import Weir
from judgement import Expectation
from programs import numbers_of

NAME = "cam"


class Scene:
    """`web`: the address for players. `expectation` grows with the events."""

    def __init__(self, flags: tuple[str, ...], film: Film, window: float, supervised: bool = False, silent: float = 0,
                 burst: float = 0):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-players-run-"))
        self.film, self.window, self.flags, self.supervised, self.silent = film, window, flags, supervised, silent
        self.burst = burst
        self.server: Weir | Supervisor | None = None
        self.publisher: publishers.Publisher | Encoder | None = None
        #: Address to play in place of the live stream, by HLS and by DASH.
        self.playlist: str | None = None
        self.manifest: str | None = None
        self.expectation = Expectation(
            numbers=film.numbers, rate=film.rate, has_video=bool(film.video), has_audio=bool(film.audio))

    # Preparing

    def prepare(self) -> "Scene":
        """Waits until the stream is older than its window."""
        flags = [*self.flags]
        if self.supervised:
            (self.folder / "state").mkdir()
            self.server = Supervisor("--state", self.folder / "state", *flags, folder=self.folder)
        else:
            self.server = Weir(*flags, folder=self.folder)
        self.publish(self.film)
        began = time.monotonic()
        while time.monotonic() < began + self.window + 3:
            self.check()
            time.sleep(0.2)
        return self

    @property
    def web(self) -> str:
        return self.server.web

    def check(self) -> None:
        if self.publisher and self.publisher.process.poll() is not None:
            raise AssertionError(f"the publisher ended: {self.publisher.outcome(1)[1]}")

    def publish(self, film: Film) -> None:
        """Starts to publish a film. Returns when the stream is live."""
        version = "new" if film.container == "mkv" or film.video and "libx265" in film.video else "debian"
        known = self.stream()
        if film.container == "flv":
            self.publisher = Encoder(self.server.rtmp, NAME, film, self.silent, self.burst)
        else:
            self.publisher = publishers.ffmpeg(film.path(), f"{self.server.rtmp}/live/{NAME}", version=version)
        end = time.monotonic() + 30
        while not ((stream := self.stream()) and stream["state"] == "live" and stream.get("tracks")):
            self.check()
            if time.monotonic() > end:
                raise AssertionError(f"{NAME} does not become live: {stream}")
            time.sleep(0.02)
        self.film = film
        if known is None:
            # When the first frame was taken. Real-time publishing continues from there.
            started = datetime.fromisoformat(stream["startedAt"]).timestamp() * 1000
            self.expectation.anchors[film.first] = started - self.burst * 1000
        else:
            self.expectation.anchors[film.first] = time.time() * 1000 - self.burst * 1000
            self.expectation.numbers = sorted({*self.expectation.numbers, *film.numbers})

    def stream(self) -> dict | None:
        try:
            answer = self.server.get("/api/v1/streams", timeout=5)
        except OSError:
            return None
        return next((s for s in answer.json["streams"] if s["name"] == NAME), None)

    # What happens

    def away(self, seconds: float, film: Film | None = None, cleanly: bool = False) -> None:
        """The publisher's connection is lost, or it stops, and it returns with another film."""
        film = film or Film(first=SECOND)
        film.path()  # Made now where it is needed for the first time: that takes longer than the outage.
        gone = time.time() * 1000
        if cleanly:
            self.publisher.interrupt()
            self.publisher.outcome(10)
        else:
            self.publisher.kill()
        time.sleep(seconds)
        self.publish(film)
        self.expectation.outages.append((gone, time.time() * 1000))

    def change(self, film: Film, at_key: bool = False) -> None:
        """The encoder continues with other parameters on the same connection: at once, or at the end of a GOP."""
        when = self.publisher.change(film, at_key)
        self.film = film
        self.expectation.anchors[film.first] = when
        self.expectation.numbers = sorted({*self.expectation.numbers, *film.numbers})
        self.expectation.outages.append((when, when))

    def change_audio(self, film: Film) -> None:
        """The encoder continues with the audio of another film on the same connection. The video goes on."""
        self.publisher.change_audio(film)

    def kill_server(self) -> None:
        """kill -9. The supervisor restarts the server, and the publisher reconnects as encoders do."""
        film = Film(first=SECOND)
        film.path()
        gone = time.time() * 1000
        count = len(self.server.ready)
        self.server.process.kill()
        self.server.wait_ready(count + 1)
        self.publisher.kill()
        self.publish(film)
        self.expectation.outages.append((gone, time.time() * 1000))

    def finish(self) -> None:
        """The publisher ends the publication."""
        before = time.time() * 1000
        self.publisher.interrupt()
        self.publisher.outcome(10)
        self.publisher = None
        self.expectation.ends = True
        anchor = self.expectation.anchors[self.film.first]
        # Data that ffmpeg has read by now; a little of it is in transit.
        self.expectation.last = self.film.first + int((before - anchor) / 1000 * self.film.rate) - 5

    def play_recording(self, index: int) -> None:
        """Makes players play a file of the recordings; 0 is the oldest."""
        end = time.monotonic() + 20
        while len(files := self.recordings()) <= index or not all(r["url"] for r in files):
            if time.monotonic() > end:
                raise AssertionError(f"no such recordings: {files}")
            time.sleep(0.2)
        path = files[index]["url"].removesuffix(".mp4")
        self.playlist, self.manifest = f"{path}/index.m3u8", f"{path}/manifest.mpd"
        numbers = numbers_of(f"{self.web}{files[index]['url']}")
        self.expectation.begins, self.expectation.last = numbers[0], numbers[-1]
        self.expectation.live = False

    def path_for(self, player: str) -> str | None:
        return self.manifest if "dash" in player else self.playlist

    def recordings(self) -> list[dict]:
        return sorted(self.server.get("/api/v1/recordings").json["recordings"], key=lambda r: r["startedAt"])

    def close(self) -> None:
        if self.publisher:
            self.publisher.kill()
        if self.server:
            if self.supervised:
                self.server.stop()
            else:
                self.server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
