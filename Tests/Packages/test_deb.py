"""The Debian package in an empty Debian: from its file to a picture, who may read what, and what stays."""

import pathlib
import re
import resource
import shlex
import subprocess
import sys
import time

import conftest
import pytest

from harness import sources, tools

LARGEST = 25_000_000


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> pathlib.Path:
    """The package as it is given to others."""
    return conftest.make("build-deb", tmp_path_factory.mktemp("shipped"))


def test_the_package_is_small_and_says_what_it_needs(shipped):
    deb = shipped
    assert re.fullmatch(r"weir_\d+\.\d+\.\d+_\w+\.deb", deb.name)
    print(f"{deb.name}: {deb.stat().st_size / 1e6:.1f} MB")
    assert deb.stat().st_size <= LARGEST
    needs = tools.run("dpkg-deb", "-f", deb, "Depends").stdout
    for package in ("adduser", "libavcodec59", "libsqlite3-0", "libssl3", "libc6"):
        assert package in needs, needs
    assert "libsrt1.5-gnutls (>= 1.5.1-1+deb12u2)" in needs
    assert tools.run("dpkg-deb", "-I", deb, "conffiles").stdout == "/etc/weir/weir.yaml\n"
    checked = subprocess.run(["sha256sum", "-c", f"{deb.name}.sha256"], cwd=deb.parent, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_same_binary_makes_the_same_bytes(newer, tmp_path):
    again = conftest.make("build-deb", tmp_path, DEB_VERSION="0.1.0+newer", COMPRESSION="none")
    assert again.name == newer.name and again.read_bytes() == newer.read_bytes()


def test_lintian_finds_no_error(shipped):
    if tools.run("lintian", "--version").returncode != 0:
        pytest.skip("there is no lintian")
    said = tools.run("lintian", "--allow-root", "--tag-display-limit", "0", shipped, timeout=300)
    print(said.stdout)
    assert not re.findall(r"^E: .*", said.stdout, re.M), said.stdout
    assert said.returncode == 0, said.stderr


def picture(machine, name: str) -> bool:
    """Whether a frame can be decoded."""
    seen = subprocess.run(
        machine.beside(tools.FFMPEG, "-v", "error", "-nostdin", "-i", f"http://127.0.0.1:8080/live/{name}/index.m3u8", "-frames:v",
                       "1", "-f", "framemd5", "-"), capture_output=True, text=True, timeout=60)
    return bool(re.search(r"^0, ", seen.stdout, re.M))


def processor_seconds() -> float:
    """Of all that this process began and that has ended. A busy machine needs longer for the same."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_from_the_file_to_a_picture_and_back(empty_machine, deb, publisher):
    machine = empty_machine
    file = machine.put(deb)
    film = sources.source("h264-30")  # made now, and not while the time runs
    assert film
    # The two commands of the guide.
    install, enable = re.search(r"```sh\n(.*?)```", (tools.ROOT / "docs/install.md").read_text(), re.S)[1].strip().split("\n")
    assert enable == "sudo systemctl enable --now weir" and "./weir_0.1.0_amd64.deb" in install
    install = install.removeprefix("sudo ").replace("./weir_0.1.0_amd64.deb", file).replace("install", "install -y", 1)
    began, busy = time.monotonic(), processor_seconds()
    said = machine.run(*shlex.split(install), seconds=400).stdout
    installed, busy = time.monotonic(), processor_seconds() - busy
    machine.enable()
    publisher(machine, "cam")
    machine.until(lambda: picture(machine, "cam"), 60, "a picture")
    took = time.monotonic() - began
    print(f"from the file to a decoded picture: {took:.1f} s, {installed - began:.1f} s of them the installation of"
          f" {len(re.findall('^Setting up', said, re.M))} packages, which took {busy:.1f} s of a processor")
    assert "systemctl enable --now weir" in said

    # It runs as its own user, and reports to root alone.
    assert machine.run("ps", "-o", "user=", "-p", machine.serving()).stdout.strip() == "weir"
    assert "cam" in machine.run("weir", "streams").stdout
    doctor = machine.run("weir", "doctor", "--config", "/etc/weir/weir.yaml", "--record", "/var/lib/weir/recordings", check=False)
    assert "(weir) has it" in doctor.stdout, doctor.stdout

    # An archivist reads recordings, and neither keys nor state.
    recording = machine.until(
        lambda: machine.run("find", "/var/lib/weir/recordings", "-name", "*.mp4").stdout.split(), 20, "a recording")[0]
    machine.run("useradd", "-m", "-G", "weir-recordings", "archivist")
    machine.run("useradd", "-m", "stranger")

    def reads(user: str, path: str) -> bool:
        return machine.run("runuser", "-u", user, "--", "test", "-r", path, check=False).returncode == 0

    assert reads("archivist", recording) and not reads("stranger", recording)
    assert not reads("archivist", "/etc/weir/weir.yaml") and not reads("stranger", "/etc/weir/weir.yaml")
    states = machine.run("find", "/var/lib/weir", "-maxdepth", "1", "-name", "*.sqlite").stdout.split()
    assert states and not any(reads(user, path) for user in ("archivist", "stranger") for path in states)

    # Manual and completions are where Debian looks for them.
    for path in ("man/man1/weir.1.gz", "man/man1/weir-serve.1.gz", "bash-completion/completions/weir",
                 "zsh/vendor-completions/_weir", "fish/vendor_completions.d/weir.fish"):
        machine.run("test", "-s", f"/usr/share/{path}")

    machine.stop_unless_scripts_do()
    # Removed, its settings and recordings stay; purged, its recordings do. Neither asks.
    machine.run("apt-get", "remove", "-y", "weir")
    assert machine.get("/healthz") == ""
    assert machine.run("ls", "/usr/bin/weir", check=False).returncode != 0
    assert machine.run("ls", "/etc/weir/weir.yaml", recording.replace(".part.mp4", ".mp4"), check=False).returncode == 0
    said = machine.run("apt-get", "purge", "-y", "weir").stdout
    assert "Recordings, and what weir did not make, stay in /var/lib/weir" in said
    assert machine.run("find", "/var/lib/weir", "-name", "*.mp4").stdout.strip() == recording.replace(".part.mp4", ".mp4")
    assert machine.run("find", "/var/lib/weir", "-maxdepth", "1", "-name", "*.sqlite*").stdout == ""
    assert machine.run("ls", "/etc/weir", check=False).returncode != 0
    left = machine.run("find", "/usr", "/lib/systemd", "/etc", "-name", "*weir*", check=False).stdout.split()
    assert [path for path in left if "weir-test" not in path] == []

    # Installed again, it finds them.
    machine.run("apt-get", "install", "-y", file, seconds=120)
    machine.start()
    machine.until(lambda: "completed" in machine.get("/api/v1/recordings"), 20, "the recordings of before")
    assert took <= 60


def kilobytes(machine, process: str, *names: str) -> int:
    """The sum of lines of what the kernel says of a process' memory."""
    text = machine.run("cat", f"/proc/{process}/smaps_rollup").stdout
    return sum(int(size) for name, size in re.findall(r"^(\w+): +(\d+) kB", text, re.M) if name in names)


def most_resident(*command) -> int:
    """The most memory that a program has while it runs, in kilobytes. Linux counts that of the process that began it, too, which
    is therefore a small one."""
    small = ("import os, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1,"
             " '/dev/null', os.O_WRONLY, 0)]); print(os.wait4(pid, 0)[2].ru_maxrss)")
    return int(tools.run(sys.executable, "-S", "-c", small, *command).stdout)


def test_idle_it_takes_little_and_without_recordings_nothing_stays(machine, deb):
    machine.run("apt-get", "install", "-y", machine.put(deb), seconds=300)
    machine.start()
    machine.until(lambda: machine.get("/healthz"), 20, "an answer")
    time.sleep(3)
    process = machine.serving()
    # Its own memory. Pages of the program and of libraries belong to their files: the kernel can drop and read them again.
    private = kilobytes(machine, process, "Anonymous")
    print(f"idle: {private / 1024:.1f} MiB private, {kilobytes(machine, process, 'Rss') / 1024:.1f} MiB resident; ffmpeg -version"
          f" {most_resident(tools.FFMPEG, '-version') / 1024:.1f} MiB resident")
    assert private <= 10 << 10
    machine.stop_unless_scripts_do()
    machine.run("apt-get", "purge", "-y", "weir")
    assert machine.run("ls", "/var/lib/weir", check=False).returncode != 0
    assert "weir" not in machine.run("getent", "passwd").stdout + machine.run("getent", "group").stdout
