"""Endless publishers: a repeated film, many times faster than real time, of which every frame is counted."""

import itertools
import time

from . import flv, scripts
from .rawrtmp import RawRTMP

#: One round of the film "light" lasts 16 s: video frames of 100 ms, audio frames of 1024 samples at 24 kHz.
ROUND = 16_000
VIDEO_FRAMES, AUDIO_FRAMES = 160, 375


class Reel:
    """One round of the film: its sequence headers, and its frames in sending order."""

    def __init__(self):
        tags = scripts.tags_of("light")
        self.headers = [tag for tag in tags if tag.is_header]
        video = [tag.body for tag in tags if tag.type == flv.VIDEO and not tag.is_header][:VIDEO_FRAMES]
        audio = [tag.body for tag in tags if tag.type == flv.AUDIO and not tag.is_header][:AUDIO_FRAMES]
        assert len(video) == VIDEO_FRAMES and len(audio) == AUDIO_FRAMES
        #: Content of a recording, by kind of track.
        self.samples = {"video": [body[5:] for body in video], "audio": [body[2:] for body in audio]}
        self.tags = sorted(
            [flv.Tag(flv.VIDEO, number * ROUND // VIDEO_FRAMES, body) for number, body in enumerate(video)]
            + [flv.Tag(flv.AUDIO, number * ROUND // AUDIO_FRAMES, body) for number, body in enumerate(audio)],
            key=lambda tag: tag.milliseconds)


class Runner:
    """Publishes whole rounds of a reel under one name, in successive publications."""

    #: Seconds between two sends.
    PACE = 0.05

    def __init__(self, url: str, name: str, key: str, reel: Reel, speed: float):
        self.url, self.name, self.key, self.reel, self.speed = url, name, key, reel, speed
        #: Number of sent rounds in all publications.
        self.rounds = 0
        self.client: RawRTMP | None = None

    def begin(self) -> None:
        self.client = RawRTMP(self.url).start(f"{self.name}?key={self.key}", chunk_size=1 << 16)
        for tag in self.reel.headers:
            self.client.tag(tag)

    def run(self, seconds: float) -> None:
        """Publishes for this long, and then to the end of the round."""
        client, began = self.client, time.monotonic()
        for turn in itertools.count():
            if time.monotonic() - began >= seconds:
                return
            self._send_round(client, turn * ROUND, began)
            self.rounds += 1

    def _send_round(self, client: RawRTMP, origin: int, began: float) -> None:
        waiting, until = [], 0
        for tag in self.reel.tags:
            when = origin + tag.milliseconds
            if when >= until:
                self._flush(client, waiting)
                delay = began + when / 1000 / self.speed - time.monotonic()
                if delay > 0:
                    time.sleep(delay)
                until = when + self.PACE * 1000 * self.speed
            waiting.append(client.chunks(6 if tag.type == flv.VIDEO else 4, tag.type, when % (1 << 32), tag.body, client.stream))
        self._flush(client, waiting)

    @staticmethod
    def _flush(client: RawRTMP, waiting: list[bytes]) -> None:
        client.drain()
        client.socket.sendall(b"".join(waiting))
        waiting.clear()
