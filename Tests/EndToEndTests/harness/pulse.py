"""A viewer of the live edge in its own process, so that the test's own work does not slow down the measurement.
`python -m harness.pulse PLAYLIST` prints when each part was announced."""

import http.client
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

PART = re.compile(r'^#EXT-X-PART:DURATION=([0-9.]+),URI="(\d+)\.(\d+)\.m4s"', re.M)
HINT = re.compile(r'PRELOAD-HINT:TYPE=PART,URI="(\d+)\.(\d+)\.m4s"')


def follow(url: str) -> None:
    """Prints the time of each response, and the seconds of media announced until then."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    query, newest, media = "", (0, -1), 0.0
    while True:
        connection.request("GET", parts.path + query)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        if answer.status != 200:
            print(f"{answer.status} {text[:100]!r}", file=sys.stderr)
            sys.exit(1)
        if "#EXT-X-ENDLIST" in text:
            return
        for duration, *number in PART.findall(text):
            if (position := tuple(map(int, number))) > newest:
                newest, media = position, media + float(duration)
        print(f"{time.monotonic():.6f} {media:.6f}", flush=True)
        segment, part = map(int, HINT.search(text).groups())
        query = f"?_HLS_msn={segment}&_HLS_part={part}"


class Pulse:
    """Starts one. `late` gives the lateness of parts within a period."""

    def __init__(self, url: str):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.pulse", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=pathlib.Path(__file__).resolve().parents[1])
        self.began = time.monotonic()
        self._read: list[str] = []

    def comes(self, after: float = 0) -> float:
        """Waits for a part that comes after that time, and returns when it came."""
        while line := self.process.stdout.readline():
            self._read.append(line)
            if (at := float(line.split()[0])) > after:
                return at
        raise AssertionError(f"the viewer at the live edge gave up: {self.process.stderr.read()}")

    def stop(self) -> "Pulse":
        assert self.process.poll() is None, f"the viewer at the live edge gave up: {self.process.stderr.read()}"
        self.process.kill()
        out, _ = self.process.communicate()
        lines = [line.split() for line in [*self._read, *out.splitlines()] if len(line.split()) == 2]
        found = [(float(at), float(media)) for at, media in lines]
        # The earliest part, relative to its media time, defines when the others would have arrived at best.
        least = min(at - media for at, media in found)
        self.lateness = [(at, at - media - least) for at, media in found]
        return self

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def late(self, begin: float, end: float, share: float = 0.99) -> float:
        """Seconds by which this share of the parts announced in a period was late at most."""
        values = sorted(late for at, late in self.lateness if begin <= at <= end)
        assert len(values) >= 5, f"only {len(values)} parts in {end - begin:.1f} s"
        return values[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    follow(sys.argv[1])
