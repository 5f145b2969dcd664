"""Machines for the tests of packages: an empty Debian by debootstrap, started by systemd-nspawn with its own systemd and its
own network. Nothing of them stays but the empty Debian, in .build/debian."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from harness import tools

SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
SOURCES = f"""\
deb {MIRROR} {SUITE} main
deb {MIRROR} {SUITE}-updates main
deb http://deb.debian.org/debian-security {SUITE}-security main
"""
CACHE = tools.ROOT / ".build" / "debian"
#: The command of docs/install.md, but for the name of the file, and where the file lies.
INSTALL, PLACE = "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends", "/root/weir.deb"
#: What Debian sets for root.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Unavailable(Exception):
    """Why there can be no such machine here."""


def base(deb: pathlib.Path) -> pathlib.Path:
    """The folder of an empty Debian whose cache has all that `deb` needs. Made once; later only what is new is fetched."""
    if os.geteuid() != 0:
        raise Unavailable("it needs root")
    for program in ("debootstrap", "systemd-nspawn", "nsenter"):
        if not shutil.which(program):
            raise Unavailable(f"there is no {program}")
    folder = CACHE / SUITE
    if not (folder / "etc/weir-test-ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(["debootstrap", SUITE, folder, MIRROR], capture_output=True, text=True)
        if made.returncode != 0:
            raise Unavailable(f"debootstrap: {made.stdout.splitlines()[-1:]}")
        (folder / "etc/apt/sources.list").write_text(SOURCES)
        (folder / "etc/weir-test-ready").touch()
    stamp = folder / "etc/weir-test-needs"
    needs = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
    if not stamp.exists() or stamp.read_text() != needs:
        _change(folder, deb, f"apt-get update -qq && {INSTALL} --download-only {PLACE}")
        stamp.write_text(needs)
    return folder


def ready(debian: pathlib.Path, deb: pathlib.Path) -> pathlib.Path:
    """The same with all installed that the package needs, for tests that are about something else."""
    folder, needs = CACHE / "ready", (debian / "etc/weir-test-needs").read_text()
    stamp = folder / "etc/weir-test-ready"
    if not stamp.exists() or stamp.read_text() != needs:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cp", "-a", debian, folder], check=True)
        stamp.unlink()
        # Nothing of it has to outlive a power cut.
        (folder / "etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")
        # xz is for the tarball.
        _change(folder, deb, f"{INSTALL} {PLACE} xz-utils && apt-get purge -y weir")
        stamp.write_text(needs)
    return folder


def _change(folder: pathlib.Path, deb: pathlib.Path, commands: str) -> None:
    """Runs commands in a folder as if it was a machine, with the package at hand."""
    shutil.copy(deb, f"{folder}{PLACE}")
    done = subprocess.run(
        ["systemd-nspawn", "-q", "-D", folder, "--register=no", "--keep-unit", "--console=pipe", "--pipe", "bash", "-c", commands],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    os.unlink(f"{folder}{PLACE}")
    if done.returncode != 0:
        raise Unavailable(f"apt-get: {done.stdout[-200:]}{done.stderr[-400:]}")


class Machine:
    """A running machine. Commands run in it as root; `beside` runs programs of this machine in its network."""

    def __init__(self, debian: pathlib.Path, folder: pathlib.Path):
        self.root = folder / "root"
        for name in ("root", "changes", "work"):
            (folder / name).mkdir(parents=True)
        options = f"lowerdir={debian},upperdir={folder}/changes,workdir={folder}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.root], check=True)
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["systemd-nspawn", "-q", "-D", self.root, "--boot", "--private-network", "--register=no", "--keep-unit",
             "--console=pipe"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.leader = 0
        self.until(self._is_up, 60, "the machine is up")

    def _is_up(self) -> bool:
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not children:
            return False
        self.leader = int(children[0])
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")

    def inside(self, *command) -> list[str]:
        """A command line that runs in the machine."""
        return ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "env", "-i", f"PATH={PATH}",
                "HOME=/root", "LC_ALL=C.UTF-8", "SWIFT_BACKTRACE=enable=no", *map(str, command)]

    def beside(self, *command) -> list[str]:
        """A command line of this machine's program in the network of the other one."""
        return ["nsenter", "-t", str(self.leader), "-n", *map(str, command)]

    def run(self, *command, check: bool = True, seconds: float = 120) -> subprocess.CompletedProcess:
        done = subprocess.run(self.inside(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        assert not check or done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def get(self, path: str, port: int = 8080) -> str:
        """What weir answers; empty while it does not."""
        done = subprocess.run(self.beside("curl", "-sfm", "20", f"http://127.0.0.1:{port}{path}"), capture_output=True, text=True)
        return done.stdout

    def put(self, file: pathlib.Path, place: str = "/root") -> str:
        """Copies a file into the machine; its path there."""
        shutil.copy(file, f"{self.root}{place}/{file.name}")
        return f"{place}/{file.name}"

    def until(self, condition, seconds: float, what: str):
        """The first true result of `condition`."""
        end = time.monotonic() + seconds
        while not (answer := condition()):
            assert time.monotonic() < end, f"not within {seconds} s: {what}\n{self.tail()}"
            time.sleep(0.05)
        return answer

    def tail(self) -> str:
        if not self.leader:
            return ""
        return self.run("journalctl", "-n", "40", "--no-pager", "-u", "weir*", check=False).stdout

    def stop(self) -> None:
        if self.process.poll() is None:
            # nspawn shuts the machine down.
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        subprocess.run(["umount", self.root], check=False)
