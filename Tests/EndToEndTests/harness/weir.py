"""The server under test: started with flags, addressed by the ports it prints, and ended by its process id."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from . import http, tools

URL = re.compile(r"\b(https?|rtmps?|srt|webrtc)://(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(\d+)")
#: Words in crash messages of Swift's runtime, a sanitizer or the kernel.
CRASHES = re.compile(r"Fatal error|Illegal instruction|Program crashed|Swift runtime failure|Segmentation|"
                     r"AddressSanitizer|ThreadSanitizer|LeakSanitizer|ERROR: libFuzzer|terminated by signal", re.I)


def clean_environment() -> dict[str, str]:
    """The environment without weir's variables, so that a test sets all of them itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}


def still_running(processes: dict[int, bytes], seconds: float = 5) -> list[str]:
    """Of these (id: command line), those that have not ended within the time."""
    end = time.monotonic() + seconds
    while True:
        left = []
        for number, line in processes.items():
            try:
                with open(f"/proc/{number}/cmdline", "rb") as now:
                    if line and now.read() == line:
                        left.append(f"{number} {line.replace(bytes(1), b' ').decode(errors='replace').strip()}")
            except (FileNotFoundError, ProcessLookupError):
                pass
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)


#: Servers of this process that run, for the logs of a failed test.
RUNNING: list["Weir"] = []


class Weir:
    """A running server. `http`, `https`, `rtmp`, `rtmps` and `srt` are its addresses, as scheme://host:port."""

    def __init__(self, *flags, folder: pathlib.Path, environment: dict[str, str] | None = None,
                 listeners: tuple[str, ...] = ("http", "rtmp"), defaults: bool = True,
                 recordings: pathlib.Path | None = None, wrapper: tuple[str, ...] = (), patience: float = 15,
                 command: str = "serve"):
        """`wrapper`: a command that runs weir under its own process id (`strace -D …`)."""
        self.folder = folder
        self.recordings = recordings or folder / "recordings"
        line = [*wrapper, tools.weir_binary(), command]
        given = [str(flag) for flag in flags]
        if defaults:
            for flag, value in (("--http", "127.0.0.1:0"), ("--rtmp", "127.0.0.1:0")):
                if flag not in given:
                    line += [flag, value]
            if "--record" not in given and "--no-record" not in given:
                line += ["--record", str(self.recordings)]
        line += given
        self.secrets: list[str] = []
        self.lines: list[tuple[str, str]] = []
        self.addresses: dict[str, str] = {}
        self.process = subprocess.Popen(
            line, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**clean_environment(), "SWIFT_BACKTRACE": "enable=no", **(environment or {})})
        self.ended = False
        RUNNING.append(self)
        self._ready = threading.Condition()
        self._open = 2  # pipes that are not read to their end
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe), daemon=True)
            for name, pipe in (("out", self.process.stdout), ("err", self.process.stderr))]
        for reader in self._readers:
            reader.start()
        self._wait_for(listeners, patience)

    def _read(self, name: str, pipe) -> None:
        rest = b""
        while piece := pipe.read1(1 << 16):
            *whole, rest = (rest + piece).split(b"\n")
            self._take(name, whole)
        self._take(name, [rest] if rest else [])
        with self._ready:
            self._open -= 1
            self._ready.notify_all()

    def _take(self, name: str, lines: list[bytes]) -> None:
        """All at once: who finds an address in what weir prints at its start finds the rest of it, too."""
        with self._ready:
            for line in (raw.decode("utf-8", "replace") for raw in lines):
                self.lines.append((name, line))
                # With --log json the addresses are in the log.
                if name == "out" or line.startswith("{") and " started" in line:
                    for scheme, host, port in URL.findall(line):
                        self.addresses.setdefault(scheme, f"{scheme}://{host}:{port}")
            self._ready.notify_all()

    def _wait_for(self, listeners: tuple[str, ...], seconds: float = 15) -> None:
        end = time.monotonic() + seconds
        with self._ready:
            while not set(listeners) <= set(self.addresses):
                if self.process.poll() is not None:
                    self._ready.wait_for(lambda: self._open == 0, 5)
                    raise AssertionError(f"weir ended at start with {self.process.returncode}:\n{self.text()}")
                if time.monotonic() > end:
                    self.process.kill()
                    raise AssertionError(f"weir printed no address for {listeners} in {seconds} s:\n{self.text()}")
                self._ready.wait(0.05)
        while True:
            try:
                if http.fetch(self.web + "/healthz", timeout=2).status == 200:
                    return
            except OSError:
                pass
            code = self.process.poll()
            if time.monotonic() > end or code is not None:
                self.process.kill()
                raise AssertionError(f"/healthz does not answer (exit code {code}):\n{self.text()}")
            time.sleep(0.02)

    @property
    def web(self) -> str:
        return self.addresses.get("http") or self.addresses["https"]

    @property
    def rtmp(self) -> str:
        return self.addresses["rtmp"]

    @property
    def srt(self) -> str:
        return self.addresses["srt"]

    def text(self, source: str | None = None) -> str:
        """All its output; `source`: only "out" or only "err"."""
        return "\n".join(line for name, line in list(self.lines) if source in (None, name))

    def get(self, path: str, **options) -> http.Response:
        return http.fetch(path if "://" in path else self.web + path, **options)

    def json(self, path: str):
        return json.loads(self.get(path).good().body)

    def stream(self, name: str) -> dict | None:
        """The API's data of a stream."""
        return next((s for s in self.json("/api/v1/streams")["streams"] if s["name"] == name), None)

    def recordings_of(self, name: str) -> list[dict]:
        return [r for r in self.json("/api/v1/recordings")["recordings"] if r["stream"] == name]

    def only_recording(self, name: str) -> pathlib.Path:
        """The file of a stream's only recording, once its publisher has ended it."""
        files = self.whole_recordings(name)
        assert len(files) == 1, f"{[file.name for file in files]}:\n{self.tail()}"
        return files[0]

    def whole_recordings(self, name: str) -> list[pathlib.Path]:
        """The files of a stream's recordings, oldest first, once its publisher has ended them."""
        def there():
            found = self.recordings_of(name)
            return found if found and all(r["state"] == "completed" for r in found) else None

        self.wait(there, 40, f"the recording of {name}")
        return sorted((self.recordings / name).glob("*.mp4"))

    def wait(self, condition, seconds: float, what: str, every: float = 0.05):
        """The first true result of `condition`; AssertionError after `seconds`."""
        end = time.monotonic() + seconds
        while True:
            answer = condition()
            if answer:
                return answer
            if self.process.poll() is not None:
                raise AssertionError(f"weir ended with {self.process.returncode} while waiting for {what}:\n{self.tail()}")
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}\n{self.tail()}")
            time.sleep(every)

    def wait_state(self, name: str, *states: str, seconds: float = 15) -> dict:
        def there():
            stream = self.stream(name)
            return stream if stream and stream["state"] in states else None

        return self.wait(there, seconds, f"stream {name} is {' or '.join(states)}")

    def wait_log(self, pattern: str, seconds: float = 15) -> str:
        return self.wait(lambda: next((l for _, l in list(self.lines) if re.search(pattern, l)), None), seconds,
                         f"a log line like {pattern!r}")

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.text().splitlines()[-lines:])

    def resident_kilobytes(self) -> int:
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def children(self) -> dict[int, bytes]:
        """Its running child processes: the process id and command line of each."""
        found = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                with open(f"/proc/{entry.name}/stat") as stat, open(f"/proc/{entry.name}/cmdline", "rb") as line:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                        found[int(entry.name)] = line.read()
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended meanwhile
        return found

    def send(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 5) -> float:
        """Stops it, waits, and checks how it ended. Returns the seconds it took."""
        if self.ended:
            return 0
        self.ended = True
        began = time.monotonic()
        problems = []
        if self.process.poll() is not None:
            problems.append(f"it had ended by itself with {self.process.returncode}")
        else:
            workers = self.children()
            self.process.send_signal(number)
            try:
                code = self.process.wait(seconds)
                if code != 0:
                    problems.append(f"exit code {code} after signal {number}")
            except subprocess.TimeoutExpired:
                problems.append(f"still running {seconds} s after signal {number}")
                self.process.kill()
                self.process.wait()
            problems += [f"it left a process behind: {left}" for left in still_running(workers)]
        took = time.monotonic() - began
        for reader in self._readers:
            reader.join(10)
        self._forget()
        everything = self.text()
        if CRASHES.search(self.text("err")):
            problems.append("the log speaks of a crash")
        problems += [f"the secret {secret[:6]}… is in its output" for secret in self.secrets if secret in everything]
        if problems:
            raise AssertionError("weir: " + "; ".join(problems) + f"\n{self.tail()}")
        return took

    def kill(self) -> None:
        """Kills it at the end of a failed test, without checks."""
        self.ended = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._forget()

    def _forget(self) -> None:
        if self in RUNNING:
            RUNNING.remove(self)
