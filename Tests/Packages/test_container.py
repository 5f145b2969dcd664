"""packaging/Containerfile, built by buildah on an empty Debian, and its steps in a chroot: weir runs as its own user, and says
whether it is well.

The image that compiles cannot be fetched here. In its place stands one whose `make deb` gives out the package that was built
already; each line of the file runs."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from harness import tools
from harness.programs import free_port
from machine import ENTER, PATH


@pytest.fixture
def buildah(tmp_path):
    """Runs buildah with a storage of its own."""
    if not shutil.which("buildah"):
        print("skipped: the container: there is no buildah")
        pytest.skip("there is no buildah")
    place = ["--root", str(tmp_path / "images"), "--runroot", str(tmp_path / "run"), "--storage-driver", "overlay"]
    if subprocess.run(["buildah", *place, "info"], capture_output=True).returncode != 0:
        place[-1] = "vfs"
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def run(*arguments, check: bool = True, seconds: float = 300) -> str:
        done = subprocess.run(["buildah", *place, *map(str, arguments)], capture_output=True, text=True, timeout=seconds,
                              env=environment, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
        return done.stdout.strip()

    run.line = lambda *arguments: ["buildah", *place, *map(str, arguments)]
    run.environment = environment
    yield run
    run("rm", "--all", check=False)
    run("rmi", "--all", "--force", check=False)


def test_the_image_is_built_and_is_healthy(buildah, debian, deb, tmp_path):
    packed = tmp_path / "debian.tar"
    subprocess.run(["tar", "-C", debian, "--exclude=./var/cache/apt/archives/*.deb", "--exclude=./proc/*", "--exclude=./sys/*",
                    "--exclude=./dev/*", "-cf", packed, "."], check=True)
    base = buildah("from", "scratch")
    buildah("add", "-q", base, packed, "/")
    buildah("commit", "-q", base, "localhost/debian")
    buildah("copy", "-q", "--chmod", "755", base, write(tmp_path / "make", "#!/bin/sh\nmkdir -p /package && cp /src/*.deb /package\n"),
            "/usr/local/bin/make")
    buildah("commit", "-q", base, "localhost/builder")
    context = tmp_path / "context"
    context.mkdir()
    shutil.copy(deb, context)
    buildah("build", "-q", "-f", tools.ROOT / "packaging/Containerfile", "--build-arg", "BUILDER=localhost/builder", "--build-arg",
            "BASE=localhost/debian", "--format", "docker", "-v", f"{debian}/var/cache/apt/archives:/var/cache/apt/archives",
            "-t", "localhost/weir", context, seconds=600)

    settings = json.loads(buildah("inspect", "--type", "image", "localhost/weir"))["Docker"]["config"]
    assert settings["User"] == "weir" and set(settings["ExposedPorts"]) == {"8080/tcp", "1935/tcp"}
    assert settings["Healthcheck"]["Test"] == ["CMD", "weir", "streams"]
    assert settings["Entrypoint"] + settings["Cmd"] == ["weir", "serve"]
    assert not re.search("make|build", " ".join(settings.get("Env", [])), re.I)

    port = free_port()
    one = buildah("from", "localhost/weir")
    health = settings["Healthcheck"]["Test"][1:]
    flags = ["--http", f"127.0.0.1:{port}", "--rtmp", "127.0.0.1:0", "--test-pattern", "demo"]
    assert subprocess.run(buildah.line("run", one, "--", *health), capture_output=True, env=buildah.environment).returncode != 0
    process = subprocess.Popen(buildah.line("run", one, "--", *settings["Entrypoint"], *settings["Cmd"], *flags),
                               env=buildah.environment, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + 30
        while "demo" not in buildah("run", one, "--", *health, check=False):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.3)
        assert buildah("run", one, "--", "id", "-un") == "weir"
        seen = tools.run(tools.FFMPEG, "-v", "error", "-nostdin", "-i", f"http://127.0.0.1:{port}/live/demo/index.m3u8",
                         "-frames:v", "1", "-f", "framemd5", "-")
        assert re.search("^0, ", seen.stdout, re.M), seen.stderr
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def steps(file: pathlib.Path) -> list[list[str]]:
    """The instructions of the last stage: each word of a Containerfile, and what follows."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", file.read_text(), flags=re.M))
    found = [line.split(None, 1) for line in text.split("\n") if line.strip()]
    last = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    return found[last + 1:]


@contextlib.contextmanager
def chroot(base: pathlib.Path, folder: pathlib.Path):
    """A copy of a Debian that changes nothing of it: its folder, and the line that runs a command there."""
    root, changes, work = (folder / name for name in ("root", "changes", "work"))
    for made in (root, changes, work):
        made.mkdir()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={base},upperdir={changes},workdir={work}", root], check=True)

    def line(command: list[str], user: str, environment: dict[str, str]) -> list[str]:
        given = [f"{name}={value}" for name, value in {"PATH": PATH, "HOME": "/", "LC_ALL": "C.UTF-8", **environment}.items()]
        return [*ENTER, str(root), f"--userspec={user}", str(root), "env", "-i", *given, *command]

    try:
        yield root, line
    finally:
        subprocess.run(["umount", root], check=True)


def test_without_buildah_the_steps_of_the_file_work_in_a_chroot(debian, deb, tmp_path):
    with chroot(debian, tmp_path) as (root, line):
        user, environment, settings = "root", {"DEBIAN_FRONTEND": "noninteractive"}, {}
        for word, rest in steps(tools.ROOT / "packaging/Containerfile"):
            if word == "COPY":
                assert rest == "--from=build /package/*.deb /tmp/"
                shutil.copy(deb, root / "tmp")
            elif word == "RUN":
                done = subprocess.run(line(["sh", "-c", rest], user, environment), capture_output=True, text=True, timeout=600)
                assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            elif word == "ENV":
                environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            elif word == "USER":
                user = rest
            elif word in ("ENTRYPOINT", "CMD"):
                settings[word] = json.loads(rest)
            elif word == "HEALTHCHECK":
                settings[word] = json.loads(rest[rest.index("CMD ") + 4:])
            else:
                assert word in ("VOLUME", "EXPOSE"), word
        assert user == "weir"
        assert list((root / "tmp").glob("*.deb")) == []
        port = free_port()
        flags = ["--http", f"127.0.0.1:{port}", "--rtmp", "127.0.0.1:0", "--test-pattern", "demo"]

        def healthy() -> bool:
            said = subprocess.run(line(settings["HEALTHCHECK"], user, environment), capture_output=True, text=True, timeout=30)
            return said.returncode == 0 and "demo" in said.stdout

        assert not healthy()
        process = subprocess.Popen(line([*settings["ENTRYPOINT"], *settings["CMD"], *flags], user, environment),
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            end = time.monotonic() + 30
            while not healthy():
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.3)
            seen = tools.run(tools.FFMPEG, "-v", "error", "-nostdin", "-i", f"http://127.0.0.1:{port}/live/demo/index.m3u8",
                             "-frames:v", "1", "-f", "framemd5", "-")
            assert re.search("^0, ", seen.stdout, re.M), seen.stderr
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)


def write(path, text: str):
    path.write_text(text)
    return path
