"""A machine without systemd: a chroot with the package's scripts. The test does what systemd would, by the units as they are
installed: it opens the sockets, starts weir with them as its user, and restarts it after an upgrade."""

import ctypes
import os
import pathlib
import re
import shlex
import socket
import subprocess
import threading

from machine import ENTER, Debian

UNITS = "lib/systemd/system"
CLONE_NEWNET = 0x40000000


class Chroot(Debian):
    """weir runs without a manager."""

    namespaces = ("-m", "-n", "-p")

    def __init__(self, debian: pathlib.Path, folder: pathlib.Path):
        self.sockets: dict[str, socket.socket] = {}
        self.weir: subprocess.Popen | None = None
        super().__init__(debian, folder)

    def first(self) -> list[str]:
        script = f"ip link set lo up && mount -t tmpfs tmpfs \"$0/run\" && {ENTER[-1]}"
        return ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, str(self.root), str(self.root), "sleep",
                "infinity"]

    def is_up(self) -> bool:
        return self.run("cat", "/proc/1/comm", check=False).stdout == "sleep\n"

    def enable(self) -> None:
        for unit in sorted((self.root / UNITS).glob("weir-*.socket")):
            settings = read(unit)
            self.sockets[settings["FileDescriptorName"]] = self._listen(int(settings["ListenStream"]), int(settings["Backlog"]))
        self.start()

    def _listen(self, port: int, backlog: int) -> socket.socket:
        """A socket in the network of the machine."""
        made = []

        def work() -> None:
            # A thread may be in another network than its process.
            with open(f"/proc/{self.leader}/ns/net") as network:
                if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET) == 0:
                    made.append(socket.create_server(("::", port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert made, f"no socket at port {port}"
        return made[0]

    def start(self) -> None:
        if not self.sockets:
            return self.enable()
        unit = read(self.root / UNITS / "weir.service")
        variables = dict(pair.split("=", 1) for line in unit["Environment"].split("\n") for pair in shlex.split(line))
        variables = {name: value.replace("%S", "/var/lib") for name, value in variables.items()}
        user, folder = unit["User"], f"/run/{unit['RuntimeDirectory']}"
        self.run("install", "-d", "-o", user, "-g", user, folder)
        numbers = [listener.fileno() for listener in self.sockets.values()]
        # Beyond those that bash itself uses.
        copies = [os.dup2(number, number + 100) for number in numbers]
        passed = " ".join(f"{3 + place}<&{copy}" for place, copy in enumerate(copies))
        line = ["env", *(f"{name}={value}" for name, value in variables.items()), f"LISTEN_FDS={len(copies)}",
                f"LISTEN_FDNAMES={':'.join(self.sockets)}", "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups",
                "bash", "-c", f'umask {unit["UMask"]}; export LISTEN_PID=$$; exec "$@" {passed}', "weir", *shlex.split(unit["ExecStart"])]
        try:
            self.weir = subprocess.Popen(self.inside(*line), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                         pass_fds=copies)
        finally:
            for copy in copies:
                os.close(copy)
        self.until(lambda: self.get("/healthz"), 20, "weir answers")

    def serving(self) -> str:
        return self.run("pgrep", "-o", "-x", "weir", check=False).stdout.strip() or "0"

    def restart_unless_scripts_did(self) -> None:
        self._end_weir()
        self.start()

    def stop_unless_scripts_do(self) -> None:
        self._end_weir()
        self._close()

    def _end_weir(self) -> None:
        assert self.weir and self.weir.poll() is None, f"weir has ended by itself\n{self.tail()}"
        self.run("kill", "-TERM", self.serving())
        self.weir.wait(20)

    def _close(self) -> None:
        for listener in self.sockets.values():
            listener.close()
        self.sockets.clear()

    def tail(self) -> str:
        return (self.root.parent / "log").read_text(errors="replace")[-4000:]

    def end(self) -> None:
        # With its first process everything in the machine ends.
        if self.leader:
            os.kill(self.leader, 9)
        if self.weir:
            self.weir.wait(20)
        self._close()


def read(unit: pathlib.Path) -> dict[str, str]:
    """The settings of a unit; what stands several times is several lines."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.M):
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found
