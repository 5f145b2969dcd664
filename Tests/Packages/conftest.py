"""Fixtures of the tests of packages: the package, built once, and machines made of an empty Debian."""

import os
import pathlib
import subprocess

import pytest

from harness import tools
from machine import Machine, Unavailable, base, ready


def make(script: str, folder: pathlib.Path, **environment: str) -> pathlib.Path:
    """What a script of packaging/ made of the binary, in `folder`."""
    done = subprocess.run([tools.ROOT / "packaging" / script, tools.weir_binary(), folder], capture_output=True, text=True,
                          timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return pathlib.Path(done.stdout.splitlines()[-1])


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


def _machine(debian: pathlib.Path, folder: pathlib.Path):
    one = Machine(debian, folder)
    try:
        yield one
    finally:
        one.stop()


@pytest.fixture
def empty_machine(debian, tmp_path):
    """An empty Debian that has just been started, with systemd and a network of its own."""
    yield from _machine(debian, tmp_path / "machine")


@pytest.fixture(scope="session")
def prepared(debian, deb) -> pathlib.Path:
    return ready(debian, deb)


@pytest.fixture
def machine(prepared, tmp_path):
    """The same with the libraries that the package needs."""
    yield from _machine(prepared, tmp_path / "machine")
