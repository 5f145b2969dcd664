"""The shapes of streams that are shown to players."""

import dataclasses
import pathlib
import tempfile
import time
from collections.abc import Callable

from films import SECOND, X264_OPEN, X265_OPEN, Film
from programs import PROGRAMS
from scene import NAME, Scene

BROWSER = ("hls.js", "shaka-hls", "dash.js", "shaka-dash")
ALL_PLAYERS = (*BROWSER, "chromium", "page", *PROGRAMS)


def nothing(_: Scene) -> None:
    pass


@dataclasses.dataclass(frozen=True)
class Shape:
    """`act`: events during playback; it begins with the players."""

    name: str
    what: str
    flags: tuple[str, ...] = ("--window", "20s")
    window: float = 20
    film: Film = Film()
    act: Callable[[Scene], None] = nothing
    players: tuple[str, ...] = BROWSER
    seconds: float = 45
    height: int | None = None
    supervised: bool = False
    #: Seconds at the beginning of the film without audio.
    silent: float = 0
    #: Seconds of the film that its publisher sends at once.
    burst: float = 0
    #: Preparation before the players start. It may choose an address to play in place of the live stream.
    first: Callable[[Scene], None] = nothing


def away(seconds: float) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        time.sleep(15)
        scene.away(seconds)

    return act


def changed(at_key: bool) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        time.sleep(15)
        scene.change(Film(first=SECOND, size=(640, 360), container="flv"), at_key)

    return act


def strictly(scene: Scene) -> None:
    scene.expectation.lost, scene.expectation.apart, scene.expectation.drift = 1, 0.02, 0.02


#: Seconds by which Chromium plays audio earlier once it has become mono, in each player. The media have it where it was
#: (docs/players.md).
CHROMIUM_MONO = 0.05


def relayed(scene: Scene) -> None:
    """A relay switches to another source: another size, and mono."""
    strictly(scene)
    scene.expectation.apart = scene.expectation.drift = CHROMIUM_MONO
    time.sleep(15)
    scene.change(Film(first=SECOND, size=(640, 360), container="flv", channels=1))


def heard(scene: Scene) -> None:
    """Mono in place of stereo, wherever the group of pictures is."""
    strictly(scene)
    scene.expectation.apart = scene.expectation.drift = CHROMIUM_MONO
    time.sleep(15)
    scene.change_audio(Film(container="flv", channels=1))


def outage(scene: Scene) -> None:
    scene.expectation.once = True
    away(25)(scene)


def returned(scene: Scene) -> None:
    """With its last group of pictures, as a relay does."""
    strictly(scene)
    time.sleep(15)
    scene.burst = 4.2
    scene.away(12, Film(first=SECOND, container="flv"))


def rested(scene: Scene) -> None:
    """The publisher stops, and the next one comes two minutes later. The stream waits for it (docs/channels.md)."""
    time.sleep(15)
    scene.away(120, Film(first=SECOND, size=(640, 360)), cleanly=True)


def channel() -> tuple[str, ...]:
    """Flags of a server whose stream waits for the next publisher."""
    path = pathlib.Path(tempfile.gettempdir()) / "weir-players-channel.yaml"
    path.write_text(f"streams:\n  {NAME}:\n    end: never\n")
    return ("--config", str(path))


def ended(scene: Scene) -> None:
    time.sleep(20)
    scene.finish()


def killed(scene: Scene) -> None:
    time.sleep(15)
    scene.kill_server()


def programme(scene: Scene) -> None:
    """The whole programme is played, of which little is in memory."""
    time.sleep(15)
    scene.finish()
    scene.expectation.live, scene.expectation.begins = False, 0
    scene.playlist = f"/live/{NAME}/dvr.m3u8"


def later_file(scene: Scene) -> None:
    """A file that is not the first of its programme."""
    time.sleep(5)
    scene.finish()
    scene.play_recording(1)


SHORT = ("--window", "20s")
OPUS = Film(audio=("-c:a", "libopus", "-b:a", "96k"), container="mkv")
AC3 = Film(audio=("-c:a", "ac3", "-b:a", "192k"), container="mkv")
MP3 = Film(audio=("-c:a", "libmp3lame", "-b:a", "128k"))
LADDER = (*SHORT, "--ladder", "90p@120k")

SHAPES = [
    Shape("defaults", "default settings", flags=(), window=60),
    Shape("separate", "video and audio in playlists of their own", flags=(*SHORT, "--hls-layout", "separate")),
    Shape("rung", "players held to a rung of the ladder", flags=LADDER, height=90),
    Shape("reconnect-4", "the publisher is away for 4 s", act=away(4), players=ALL_PLAYERS),
    # GStreamer requests media that it has not loaded yet, so that media must still be available.
    Shape("reconnect-25", "the publisher is away for 25 s", flags=(), window=60, act=away(25), seconds=65, players=ALL_PLAYERS),
    Shape("parameters", "another frame size while watched", act=changed(at_key=False), film=Film(container="flv")),
    Shape("parameters-key", "another frame size just where a group of pictures ends", act=changed(at_key=True),
          film=Film(container="flv"), players=("hls.js", "shaka-hls")),
    Shape("change-both", "another frame size and mono while watched", act=relayed, film=Film(container="flv"), players=ALL_PLAYERS),
    Shape("change-audio", "mono in place of stereo between key frames", act=heard, film=Film(container="flv"),
          players=ALL_PLAYERS),
    Shape("late-audio", "audio began 8 s after the video, and is listed", flags=(), film=Film(container="flv"), silent=8,
          act=strictly, players=ALL_PLAYERS),
    Shape("outage-25", "the publisher is away for 25 s: nothing is shown twice", flags=(), window=60, act=outage, seconds=65,
          players=ALL_PLAYERS),
    Shape("return-burst", "the publisher returns with a burst of 4.2 s", act=returned, players=ALL_PLAYERS),
    Shape("burst-10", "the publisher began with 10 s at once", burst=10, film=Film(container="flv"), act=strictly,
          players=ALL_PLAYERS),
    Shape("off-air", "the publisher stops, and the next one comes after two minutes with another size", flags=channel(), window=60,
          act=rested, seconds=165, players=ALL_PLAYERS),
    Shape("end", "the stream ends", act=ended, seconds=35),
    Shape("kill", "kill -9 of weir behind a supervisor's sockets", act=killed, supervised=True, players=ALL_PLAYERS),
    Shape("open-gop", "H.264 with open groups of pictures", film=Film(video=X264_OPEN)),
    Shape("variable", "a variable frame rate", film=Film(uneven=True)),
    Shape("video-only", "no audio", film=Film(audio=None)),
    Shape("audio-only", "no video", film=Film(video=None)),
    Shape("opus", "AAC made of Opus", flags=(*SHORT, "--audio-codec", "aac"), film=OPUS),
    Shape("opus-separate", "AAC made of Opus, in playlists of its own",
          flags=(*SHORT, "--audio-codec", "aac", "--hls-layout", "separate"), film=OPUS, players=("hls.js", "shaka-hls")),
    Shape("ac3", "AC-3, with AAC beside it", film=AC3),
    Shape("mp3", "MP3, decoded", film=MP3),
    Shape("captions", "closed captions are declared", flags=(*SHORT, "--captions", "CC1=en,SERVICE1=de")),
    Shape("replay", "a programme whose recording was split every ten seconds",
          flags=("--window", "8s", "--rewind", "10m", "--record-split", "each:10s"), first=programme,
          players=("hls.js", "shaka-hls"), seconds=50),
    Shape("replay-file", "the second file of a recording that was split every ten seconds",
          flags=("--window", "8s", "--record-split", "each:10s", "--cors", "*"), first=later_file, seconds=20),
    Shape("hevc", "HEVC with open groups of pictures, as x265 makes them: programs, and rules of timing",
          film=Film(video=X265_OPEN), players=("ffmpeg", "mpv", "hlsdemux2", "timing"), seconds=30),
    Shape("long", "two players for ten minutes, default settings", flags=(), window=60, seconds=600, film=Film(seconds=720),
          players=("hls.js", "shaka-dash")),
]
