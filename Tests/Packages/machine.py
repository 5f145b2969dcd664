"""Machines for the tests of packages: an empty Debian by debootstrap, with a network of its own. systemd-nspawn starts it with its
own systemd; where that cannot be, a chroot has the package's scripts, and the test starts what systemd would. Nothing of them
stays but the empty Debian, in .build/debian."""

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
#: Runs a command in a folder as if it was a machine, with this machine's devices; what it mounts is gone with it.
ENTER = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGTERM", "sh", "-c",
         'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$@"']


class Unavailable(Exception):
    """Why there can be no such machine here."""


def base(deb: pathlib.Path) -> pathlib.Path:
    """The folder of an empty Debian whose cache has all that `deb` needs. Made once; later only what is new is fetched."""
    if os.geteuid() != 0:
        raise Unavailable("it needs root")
    for program in ("debootstrap", "nsenter", "unshare"):
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


def clean(**more: str) -> list[str]:
    """Variables that a command has in such a machine, and no others."""
    given = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no", **more}
    return ["env", "-i", *(f"{name}={value}" for name, value in given.items())]


def _change(folder: pathlib.Path, deb: pathlib.Path, commands: str) -> None:
    """Runs commands in a folder, with the package at hand and the network of this machine."""
    shutil.copy(deb, f"{folder}{PLACE}")
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    done = subprocess.run([*ENTER, folder, folder, *clean(), "bash", "-c", commands], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    os.unlink(f"{folder}{PLACE}")
    if done.returncode != 0:
        raise Unavailable(f"apt-get: {done.stdout[-200:]}{done.stderr[-400:]}")


class Debian:
    """A copy of a Debian that changes nothing of it, with processes and a network of its own. Commands run in it as root;
    `beside` runs programs of this machine in its network."""

    #: Whether its systemd does what the package's scripts ask for.
    has_systemd = False
    #: Namespaces of the first process that commands enter.
    namespaces: tuple[str, ...] = ()

    def __init__(self, debian: pathlib.Path, folder: pathlib.Path):
        self.root, self.leader = folder / "root", 0
        for name in ("root", "changes", "work"):
            (folder / name).mkdir(parents=True)
        options = f"lowerdir={debian},upperdir={folder}/changes,workdir={folder}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.root], check=True)
        self.log = open(folder / "log", "wb")
        self.process = None
        try:
            self.process = subprocess.Popen(self.first(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
            self.until(self._is_up, 60, "the machine is up")
        except BaseException:
            self.stop()
            raise

    def first(self) -> list[str]:
        """The command line of its first process, whose child is the leader."""
        raise NotImplementedError

    def _is_up(self) -> bool:
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not children:
            assert self.process.poll() is None, (self.root.parent / "log").read_text(errors="replace")[-2000:]
            return False
        self.leader = int(children[0])
        return self.is_up()

    def is_up(self) -> bool:
        raise NotImplementedError

    def inside(self, *command) -> list[str]:
        """A command line that runs in the machine."""
        return ["nsenter", "-t", str(self.leader), *self.namespaces, "-r", "-w", *clean(), *map(str, command)]

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

    # The service

    def enable(self) -> None:
        """The second command of docs/install.md."""
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def serving(self) -> str:
        """The process that serves, by its number in the machine; 0 without one."""
        raise NotImplementedError

    def restart_unless_scripts_did(self) -> None:
        """Where no systemd restarts the service at the word of the package's scripts, it is still the old process."""

    def stop_unless_scripts_do(self) -> None:
        """The same before the package is removed."""

    def tail(self) -> str:
        """The end of weir's log."""
        return ""

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.end()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        subprocess.run(["umount", self.root], check=False)

    def end(self) -> None:
        """Ends the first process, and what runs in the machine with it."""
        self.process.send_signal(signal.SIGTERM)


class Machine(Debian):
    """It runs its own systemd."""

    has_systemd = True
    namespaces = ("-m", "-u", "-i", "-n", "-p", "-C")

    def first(self) -> list[str]:
        return ["systemd-nspawn", "-q", "-D", str(self.root), "--boot", "--private-network", "--register=no", "--keep-unit",
                "--console=pipe"]

    def is_up(self) -> bool:
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")

    def enable(self) -> None:
        self.run("systemctl", "enable", "--now", "weir")

    def start(self) -> None:
        self.run("systemctl", "start", "weir")

    def serving(self) -> str:
        return self.run("systemctl", "show", "-P", "MainPID", "weir").stdout.strip()

    def tail(self) -> str:
        if not self.leader:
            return ""
        return self.run("journalctl", "-n", "40", "--no-pager", "-u", "weir*", check=False).stdout
