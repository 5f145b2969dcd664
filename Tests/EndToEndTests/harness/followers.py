"""Many cheap viewers of one Low-Latency HLS playlist, up to hundreds. Each keeps its connection, waits for the next part,
fetches it, and retries after an error, as players do. None of them reads the multivariant playlist again.

`python -m harness.followers PLAYLIST COUNT` runs them until its standard input ends. It prints an empty line once each has a part
(one with a space if some have none in time), and at its end their results as JSON."""

import asyncio
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse

SEQUENCE = re.compile(r"#EXT-X-MEDIA-SEQUENCE:(\d+)")
BREAKS = re.compile(r"#EXT-X-DISCONTINUITY-SEQUENCE:(\d+)")
PART = re.compile(r'#EXT-X-PART:.*?URI="((\d+)\.(\d+)\.m4s)"')


@dataclasses.dataclass
class Viewer:
    got: list[tuple[float, int, int]] = dataclasses.field(default_factory=list)  # when, segment, part
    sequences: list[tuple[float, int, int]] = dataclasses.field(default_factory=list)  # when, first number, breaks
    errors: list[tuple[float, str]] = dataclasses.field(default_factory=list)

    def longest_wait(self, begin: float, end: float) -> float:
        """Time between two successive parts around a period of time."""
        times = [when for when, *_ in self.got]
        pairs = [(a, b) for a, b in zip(times, times[1:]) if b >= begin and a <= end]
        return max((b - a for a, b in pairs), default=float("inf"))

    def went_on(self, after: float) -> bool:
        return any(when > after for when, *_ in self.got)


class Crowd:
    """Viewers of a media playlist, until a time or until they are `over`."""

    RETRY_SECONDS = 0.25

    def __init__(self, url: str, count: int):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path
        self.folder = self.path.rsplit("/", 1)[0]
        self.viewers = [Viewer() for _ in range(count)]
        self.over = False

    def watch(self, until: float) -> "Crowd":
        async def all_of_them() -> None:
            await asyncio.gather(*(self._watch(viewer, until) for viewer in self.viewers))

        asyncio.run(all_of_them())
        return self

    async def _watch(self, viewer: Viewer, until: float) -> None:
        streams = None
        last: tuple[int, int] | None = None
        while (now := time.monotonic()) < until and not self.over:
            try:
                if streams is None:
                    streams = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), 10)
                query = "" if last is None else f"?_HLS_msn={last[0]}&_HLS_part={last[1] + 1}"
                status, body = await self._get(streams, self.path + query)
                if status != 200:
                    raise OSError(f"playlist {status}")
                text = body.decode()
                breaks = BREAKS.search(text)
                viewer.sequences.append(
                    (time.monotonic(), int(SEQUENCE.search(text)[1]), int(breaks[1]) if breaks else 0))
                found = [(int(s), int(p), uri) for uri, s, p in PART.findall(text)]
                fresh = [part for part in found if last is None or part[:2] > last]
                for segment, part, uri in fresh[-1:] if last is None else fresh[-3:]:
                    status, body = await self._get(streams, f"{self.folder}/{uri}")
                    if status != 200:
                        raise OSError(f"{uri} {status}")
                    viewer.got.append((time.monotonic(), segment, part))
                    last = segment, part
                if not fresh:
                    await asyncio.sleep(self.RETRY_SECONDS)
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError) as error:
                viewer.errors.append((now, repr(error)))
                if streams is not None:
                    streams[1].close()
                streams = None
                await asyncio.sleep(self.RETRY_SECONDS)
        if streams is not None:
            streams[1].close()

    async def _get(self, streams, path: str) -> tuple[int, bytes]:
        reader, writer = streams
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        body = await asyncio.wait_for(reader.readexactly(int(length[1]) if length else 0), 20)
        return int(head.split(b" ", 2)[1]), body


#: For parts of 200 ms in segments of 2 s, as the tests publish them.
PART_SECONDS, PARTS = 0.2, 10
#: Seconds within which each viewer has its first part.
PATIENCE = 30


class Beside:
    """Viewers in their own process, so that the test's own work does not slow down the measurement."""

    def __init__(self, url: str, count: int):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.followers", url, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=pathlib.Path(__file__).resolve().parents[1])
        self.viewers: list[Viewer] = []

    def ready(self) -> "Beside":
        """Waits until each viewer has a part."""
        assert self.process.stdout.readline() == "\n", "a viewer got no part"
        return self

    def stop(self) -> "Beside":
        out, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        self.viewers = [Viewer(**viewer) for viewer in json.loads(out)]
        return self

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def late(self, begin: float, end: float, share: float) -> float:
        """Seconds by which this share of the parts of a period was late at most."""
        lateness = [(at, at - (segment * PARTS + part) * PART_SECONDS) for viewer in self.viewers for at, segment, part in viewer.got]
        least = min(late for _, late in lateness)
        values = sorted(late - least for at, late in lateness if begin <= at <= end)
        assert len(values) >= 5 * len(self.viewers), f"only {len(values)} parts in {end - begin:.1f} s"
        return values[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    crowd = Crowd(sys.argv[1], int(sys.argv[2]))
    threading.Thread(target=crowd.watch, args=(float("inf"),), daemon=True).start()
    end = time.monotonic() + PATIENCE
    while not all(viewer.got for viewer in crowd.viewers) and time.monotonic() < end:
        time.sleep(0.05)
    print("" if all(viewer.got for viewer in crowd.viewers) else " ", flush=True)
    sys.stdin.read()
    print(json.dumps([dataclasses.asdict(viewer) for viewer in crowd.viewers]))


if __name__ == "__main__":
    main()
