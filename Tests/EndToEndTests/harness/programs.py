"""Programs of others that run beside weir during a test: caches, proxies, web servers."""

import contextlib
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import time


#: Lower than those that the system gives to connections (from 32768 on): such a port may be a connection's a moment later. Each
#: worker of each lane has its own.
_LANE = {"browser": 8, "quiet": 10, "rules": 11}.get(os.environ.get("WEIR_LANE", ""), 0)
_WORKER = _LANE + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_ports = itertools.cycle(random.sample(range(20_000 + _WORKER % 16 * 750, 20_750 + _WORKER % 16 * 750), 750))


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has now, neither by UDP nor by TCP, and nobody gets by chance."""
    for port in itertools.islice(_ports, 750):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.socket() as streams, contextlib.suppress(OSError):
            streams.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            datagrams.bind(("127.0.0.1", port))
            streams.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port is taken")


class Program:
    """Starts a program, and waits until it is ready. Its output is in `log`."""

    def __init__(self, command: list, log: pathlib.Path, is_ready, seconds: float = 20, environment: dict | None = None):
        self._log = log.open("wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env=environment)
        end = time.monotonic() + seconds
        while not is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise AssertionError(f"{command[0]} is not ready: {log.read_text()}")
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


def accepts(port: int) -> bool:
    """Whether something listens at a TCP port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
