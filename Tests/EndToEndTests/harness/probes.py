"""Asks again and again whether a server lives, as a supervisor does: each time on a connection of its own, in a process of its own, so
that the test's work does not slow down the measurement.

`python -m harness.probes HTTP` asks until its standard input ends. Then it prints when it asked each time, how long the answer took, and
its status, as JSON."""

import contextlib
import itertools
import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import time
import urllib.parse

#: Seconds from one answer to the next question, and those that one is waited for.
PAUSE, PATIENCE = 0.05, 5


def ask(host: str, port: int, path: str) -> int:
    """The status of the answer; 0 if there is none."""
    answer = b""
    try:
        with socket.create_connection((host, port), PATIENCE) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            while b"\r\n" not in answer and (data := connection.recv(4096)):
                answer += data
        return int(answer.split(b" ", 2)[1])
    except (OSError, ValueError, IndexError):
        return 0


class Probes:
    """Runs it. `answers`: when it asked, the seconds until the answer, and its status, once it is stopped."""

    def __init__(self, web: str):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.probes", web], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=pathlib.Path(__file__).resolve().parents[1])
        self.answers: list[tuple[float, float, int]] = []

    def stop(self) -> "Probes":
        out, _ = self.process.communicate(timeout=60)
        self.answers = [tuple(answer) for answer in json.loads(out)]
        return self

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def between(self, begin: float, end: float) -> list[tuple[float, float, int]]:
        return [answer for answer in self.answers if begin <= answer[0] <= end]


def main() -> None:
    place = urllib.parse.urlsplit(sys.argv[1])
    # What is measured is the server, not when this process has its turn.
    with contextlib.suppress(OSError):
        os.nice(-10)
    answers: list[tuple[float, float, int]] = []
    for path in itertools.cycle(("/healthz", "/readyz")):
        began = time.monotonic()
        status = ask(place.hostname, place.port, path)
        answers.append((began, time.monotonic() - began, status))
        if select.select([sys.stdin], [], [], PAUSE)[0]:
            break
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
