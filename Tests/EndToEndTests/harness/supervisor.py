"""A service manager like systemd: it opens the sockets, starts weir with them (sd_listen_fds), receives its progress
(sd_notify), and restarts it 100 ms after any end."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

from . import http, tools
from .weir import clean_environment


class Supervisor:
    """weir as a service. `web` and `rtmp` are its addresses; they stay the same over restarts."""

    RESTART_SECONDS = 0.1

    def __init__(self, *flags, folder: pathlib.Path, environment: dict[str, str] | None = None):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.flags = [str(flag) for flag in flags]
        self.environment = environment or {}
        self.sockets = {}
        for name in ("http", "rtmp"):
            listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
            self.sockets[name] = listener
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(str(folder / "notify"))
        self.notices.settimeout(0.2)
        self.web = "http://127.0.0.1:%d" % self.sockets["http"].getsockname()[1]
        self.rtmp = "rtmp://127.0.0.1:%d" % self.sockets["rtmp"].getsockname()[1]
        self.log = open(folder / "log", "ab")
        self.ends: list[tuple[float, int]] = []  # when weir ended, and how
        self.ready: list[float] = []
        self.stops = False
        self.process = self._spawn()
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._watch, self._listen)]
        for thread in self.threads:
            thread.start()
        self.wait_ready(1)

    def _spawn(self) -> subprocess.Popen:
        http_socket, rtmp_socket = self.sockets["http"].fileno(), self.sockets["rtmp"].fileno()
        environment = {**clean_environment(), "SWIFT_BACKTRACE": "enable=no", "LISTEN_FDS": "2",
                       "LISTEN_FDNAMES": "http:rtmp", "NOTIFY_SOCKET": str(self.folder / "notify"), **self.environment}
        line = ["bash", "-c", f'export LISTEN_PID=$$; exec "$@" 3<&{http_socket + 100} 4<&{rtmp_socket + 100}', "weir",
                tools.weir_binary(), "serve", *self.flags]
        copies = [os.dup2(number, number + 100) for number in (http_socket, rtmp_socket)]
        try:
            return subprocess.Popen(line, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                    env=environment, pass_fds=copies)
        finally:
            for copy in copies:
                os.close(copy)

    def _watch(self) -> None:
        while True:
            code = self.process.wait()
            self.ends.append((time.monotonic(), code))
            if self.stops:
                return
            time.sleep(self.RESTART_SECONDS)
            self.process = self._spawn()

    def _listen(self) -> None:
        while not self.stops:
            try:
                if b"READY=1" in self.notices.recv(4096):
                    self.ready.append(time.monotonic())
            except TimeoutError:
                pass

    def wait_ready(self, count: int, seconds: float = 15) -> float:
        """Waits until weir has been ready this many times. Returns the time of the last one."""
        end = time.monotonic() + seconds
        while len(self.ready) < count:
            if time.monotonic() > end or len(self.ends) > 3 * count + 3:
                raise AssertionError(f"weir was ready {len(self.ready)} of {count} times, ended {self.ends}:\n{self.text()}")
            time.sleep(0.01)
        return self.ready[count - 1]

    def wait(self, condition, seconds: float, what: str):
        """The first true result of `condition`; AssertionError after `seconds`."""
        end = time.monotonic() + seconds
        while not (answer := condition()):
            assert time.monotonic() < end, f"not within {seconds} s: {what}\n{self.text()}"
            time.sleep(0.05)
        return answer

    def text(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-8000:]

    def get(self, path: str, **options):
        return http.fetch(self.web + path, **options)

    def epoch(self, name: str, seconds: float = 20) -> str:
        """The epoch to which players of the stream are sent, once there is one."""
        end = time.monotonic() + seconds
        while (answer := self.get(f"/live/{name}/index.m3u8", timeout=20)).status != 200 and time.monotonic() < end:
            time.sleep(0.05)
        return re.search(r"^([0-9a-z]+)/", answer.good().text, re.M)[1]

    def stop(self, seconds: float = 8) -> None:
        """Stops it without a restart."""
        self.stops = True
        process = self.process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        for thread in self.threads:
            thread.join(3)
        if self.process.poll() is None:  # started again in the last moment
            self.process.kill()
            self.process.wait()
        for listener in self.sockets.values():
            listener.close()
        self.notices.close()
        self.log.close()
