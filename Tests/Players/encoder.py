"""An encoder whose settings change while it is live: the same connection continues with other parameters."""

import dataclasses
import threading
import time

from films import Film
from harness import flv
from harness.rawrtmp import RawRTMP


def with_audio(tags: list[flv.Tag], film: Film, since: int) -> list[flv.Tag]:
    """The same tags, with the audio of a film in place of their own from a time in milliseconds on."""
    others = flv.only(flv.read(film.path()), flv.AUDIO)
    heads = [dataclasses.replace(tag, milliseconds=since) for tag in others if tag.is_header]
    rest = [tag for tag in others if not tag.is_header and tag.milliseconds >= since]
    own = [tag for tag in tags if tag.type != flv.AUDIO or tag.milliseconds < since]
    return sorted([*own, *heads, *rest], key=lambda tag: tag.milliseconds)


class Encoder:
    """Sends a film in real time. Its interface is that of harness.publishers.Publisher. `silent`: seconds at its beginning without
    audio. `burst`: seconds of it that are sent at once, as a relay sends the last ones."""

    def __init__(self, url: str, name: str, film: Film, silent: float = 0, burst: float = 0):
        self.silent, self.burst = silent, burst
        self.next: Film | None = None
        self.voice: Film | None = None
        self.waits_for_key = False
        self.changed: float | None = None
        self.stops = False
        self.fault: Exception | None = None
        self.process = self
        self.thread = threading.Thread(target=self._run, args=(url, name, film), daemon=True)
        self.thread.start()

    def _run(self, url: str, name: str, film: Film) -> None:
        try:
            with RawRTMP(url).start(name) as client:
                began, shift, tags = time.monotonic() - self.burst, 0, flv.read(film.path())
                if self.silent:
                    tags = with_audio([tag for tag in tags if tag.type != flv.AUDIO], film, round(self.silent * 1000))
                while tags:
                    tags, shift = self._send(client, tags, shift, began)
                client.finish()
        except OSError as error:
            self.fault = error

    def _send(self, client: RawRTMP, tags: list, shift: int, began: float) -> tuple[list, int]:
        for at, tag in enumerate(flv.shifted(tags, shift)):
            if self.stops:
                break
            if self.voice and tag.type == flv.AUDIO:
                film, self.voice = self.voice, None
                self.changed = time.time() * 1000
                return with_audio(tags[at:], film, tags[at].milliseconds), shift
            if self.next and tag.type == flv.VIDEO and (tag.is_key or not self.waits_for_key):
                film, self.next = self.next, None
                self.changed = time.time() * 1000
                return flv.read(film.path()), tag.milliseconds
            time.sleep(max(0.0, began + tag.milliseconds / 1000 - time.monotonic()))
            client.drain()
            client.tag(tag)
        return [], 0

    def change(self, film: Film, at_key: bool = False) -> float:
        """From the next frame or the next key frame on. Returns the time of that, in milliseconds since 1970."""
        film.path()
        self.waits_for_key = at_key
        self.next = film
        while self.changed is None:
            time.sleep(0.01)
        return self.changed

    def change_audio(self, film: Film) -> None:
        """From the next audio frame on, that of another film at the same time. The video goes on."""
        film.path()
        self.voice = film
        while self.voice:
            time.sleep(0.01)

    def poll(self) -> int | None:
        return None if self.thread.is_alive() else 1

    def outcome(self, _: float) -> tuple[int, str]:
        return 1, repr(self.fault)

    def kill(self) -> None:
        self.stops = True
        self.thread.join(5)
