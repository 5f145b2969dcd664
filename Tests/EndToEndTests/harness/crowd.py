"""The crowd of low-latency players of the benchmarks (Benchmarks/bench/players.c): each waits for the next part of the playlist, fetches
it, and waits again, on one connection for all of its time."""

import json
import pathlib
import subprocess
import urllib.parse

from . import tools


class Crowd:
    """Compiles the players now."""

    def __init__(self, folder: pathlib.Path):
        self.program = folder / "players"
        done = tools.run("cc", "-O2", "-o", self.program, tools.ROOT / "Benchmarks" / "bench" / "players.c")
        assert done.returncode == 0, done.stderr
        self.running: list[subprocess.Popen] = []

    def watch(self, url: str, count: int, seconds: float) -> None:
        """`count` players of a media playlist, for so long."""
        parts = urllib.parse.urlsplit(url)
        self.running.append(subprocess.Popen(
            [str(self.program), parts.hostname, str(parts.port), parts.path, str(count), str(seconds), "parts"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def reports(self, seconds: float) -> list[dict]:
        """What they tell at their end: `requests`, `failures` (connections that were lost, answers other than 200), and for each
        position of the playlist how far the last of them was behind the first."""
        found = []
        for process in self.running:
            out, problems = process.communicate(timeout=seconds)
            assert process.returncode == 0, problems
            found.append({**json.loads(out), "problems": problems})
        return found

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.communicate()
