"""An encoder whose settings change while it is live: the same connection continues with other parameters."""

import threading
import time

from films import Film
from harness import flv
from harness.rawrtmp import RawRTMP


class Encoder:
    """Sends a film in real time. Its interface is that of harness.publishers.Publisher."""

    def __init__(self, url: str, name: str, film: Film):
        self.next: Film | None = None
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
                began, shift, tags = time.monotonic(), 0, flv.read(film.path())
                while tags:
                    tags, shift = self._send(client, tags, shift, began)
                client.finish()
        except OSError as error:
            self.fault = error

    def _send(self, client: RawRTMP, tags: list, shift: int, began: float) -> tuple[list, int]:
        for tag in flv.shifted(tags, shift):
            if self.stops:
                break
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

    def poll(self) -> int | None:
        return None if self.thread.is_alive() else 1

    def outcome(self, _: float) -> tuple[int, str]:
        return 1, repr(self.fault)

    def kill(self) -> None:
        self.stops = True
        self.thread.join(5)
