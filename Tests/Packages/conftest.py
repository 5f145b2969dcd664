"""Fixtures of the tests of packages: the package, built once, and machines made of an empty Debian."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from chroot import Chroot
from harness import sources, tools
from machine import Debian, Machine, Unavailable, base, ready


def make(script: str, folder: pathlib.Path, **environment: str) -> pathlib.Path:
    """What a script of packaging/ made of the binary, in `folder`."""
    process = subprocess.Popen([tools.ROOT / "packaging" / script, tools.weir_binary(), folder], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, **environment})
    try:
        # xz takes one minute of a processor, which others may use, too.
        said, errors = process.communicate(timeout=900)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, said + errors
    return pathlib.Path(said.splitlines()[-1])


@pytest.fixture(scope="session")
def deb(tmp_path_factory) -> pathlib.Path:
    """The package as it is, but not compressed, which takes most of the time."""
    return make("build-deb", tmp_path_factory.mktemp("deb"), COMPRESSION="none")


@pytest.fixture(scope="session")
def newer(tmp_path_factory) -> pathlib.Path:
    """A package of a later version, for upgrades."""
    return make("build-deb", tmp_path_factory.mktemp("newer"), DEB_VERSION="0.1.0+newer", COMPRESSION="none")


@pytest.fixture(scope="session")
def tarball(tmp_path_factory) -> pathlib.Path:
    return make("build-tarball", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def debian(deb) -> pathlib.Path:
    """An empty Debian with the files that the package needs downloaded, and nothing of them installed."""
    try:
        return base(deb)
    except Unavailable as why:
        print(f"skipped: tests in a machine of their own: {why}")
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def kind(debian, tmp_path_factory) -> type[Debian]:
    """How machines are made here: with systemd where it can be started. WEIR_MACHINE=chroot does without."""
    asked = os.environ.get("WEIR_MACHINE", "")
    if asked in ("chroot", "systemd"):
        return Chroot if asked == "chroot" else Machine
    if not shutil.which("systemd-nspawn"):
        why = "there is no systemd-nspawn"
    else:
        try:
            Machine(debian, tmp_path_factory.mktemp("try") / "machine").stop()
            return Machine
        except AssertionError as error:
            why = f"systemd cannot be started: {error}"
    print(f"machines are chroots, without systemd: {why}")
    return Chroot


def _machine(kind: type[Debian], debian: pathlib.Path, folder: pathlib.Path):
    one = kind(debian, folder)
    try:
        yield one
    finally:
        one.stop()


@pytest.fixture
def empty_machine(kind, debian, tmp_path):
    """An empty Debian that has just been started, with a network of its own."""
    yield from _machine(kind, debian, tmp_path / "machine")


@pytest.fixture(scope="session")
def prepared(debian, deb) -> pathlib.Path:
    return ready(debian, deb)


@pytest.fixture
def machine(kind, prepared, tmp_path):
    """The same with the libraries that the package needs."""
    yield from _machine(kind, prepared, tmp_path / "machine")


@pytest.fixture
def systemd_machine(kind, prepared, tmp_path):
    """One with systemd, for what is about its units."""
    if not kind.has_systemd:
        print("skipped: units of systemd: it cannot be started here")
        pytest.skip("systemd cannot be started here")
    yield from _machine(kind, prepared, tmp_path / "machine")


@pytest.fixture
def publisher():
    running = []

    def begin(machine, name: str):
        running.append(subprocess.Popen(
            machine.beside(tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", sources.source("h264-30"),
                           "-c", "copy", "-f", "flv", f"rtmp://127.0.0.1/live/{name}")))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()
