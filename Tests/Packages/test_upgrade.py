"""An upgrade of the package while it is live: no viewer reloads, publishers come back into their epochs, and an upgrade that
is killed half-way loses nothing."""

import json
import os
import re
import subprocess
import sys
import pathlib
import time

import pytest

from harness import sources, tools
from harness.followers import Viewer

LONG = bool(os.environ.get("WEIR_PACKAGES"))
STREAMS, VIEWERS = (20, 300) if LONG else (4, 40)
SETTINGS = 'streams:\n  "*":\n    partDuration: 500ms\n'
HARNESS = pathlib.Path(tools.ROOT) / "Tests" / "EndToEndTests"

#: ffmpeg in a loop: it begins again as soon as its connection ends.
LOOP = "while true; do {}; sleep 0.2; done"


class Audience:
    """Viewers of a stream in a process of their own, in the machine's network."""

    def __init__(self, machine, name: str, epoch: str, count: int):
        url = f"http://127.0.0.1:8080/live/{name}/{epoch}/av/index.m3u8"
        self.process = subprocess.Popen(
            machine.beside(sys.executable, "-m", "harness.followers", url, str(count)), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=HARNESS)
        self.viewers: list[Viewer] = []

    def stop(self) -> list[Viewer]:
        out, _ = self.process.communicate(timeout=60)
        self.viewers = [Viewer(**viewer) for viewer in json.loads(out)]
        return self.viewers

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def live(machine, deb):
    """The package, running, with publishers in loops and viewers of each."""
    machine.run("apt-get", "install", "-y", machine.put(deb), seconds=300)
    film = sources.source("h264-30")
    machine.run("bash", "-c", f"cat > /etc/weir/weir.yaml <<'END'\n{SETTINGS}END")
    machine.enable()
    names = [f"cam-{number}" for number in range(STREAMS)]
    publishers, audiences = [], []
    try:
        for name in names:
            line = (f"{tools.FFMPEG} -v error -nostdin -re -stream_loop -1 -i {film} -c copy -f flv"
                    f" rtmp://127.0.0.1/live/{name} 2>/dev/null")
            publishers.append(subprocess.Popen(machine.beside("bash", "-c", LOOP.format(line)), start_new_session=True))
        epochs = {name: machine.until(lambda: epoch(machine, name), 60, f"{name} is live") for name in names}
        audiences += [Audience(machine, name, epochs[name], VIEWERS // STREAMS) for name in names]
        time.sleep(6)
        yield machine, epochs, audiences
    finally:
        for process in publishers:
            os.killpg(process.pid, 9)
            process.wait()
        for audience in audiences:
            audience.kill()


def epoch(machine, name: str) -> str | None:
    found = re.search(r"^([0-9a-z]+)/", machine.get(f"/live/{name}/index.m3u8"), re.M)
    return found[1] if found else None


def opened(machine) -> str | None:
    """When systemd opened the socket; in a chroot it is the test that keeps it open."""
    if machine.has_systemd:
        return machine.run("systemctl", "show", "-P", "ActiveEnterTimestampMonotonic", "weir-http.socket").stdout
    return None


def judge(live, began: float, what: str) -> None:
    """Nobody reloaded, waited for long or saw a number twice; each stream is in its epoch."""
    machine, epochs, audiences = live
    time.sleep(6)
    now = time.monotonic()
    viewers = [viewer for audience in audiences for viewer in audience.stop()]
    assert len(viewers) == VIEWERS
    gone_on = [viewer for viewer in viewers if viewer.went_on(now - 3)]
    waits = sorted(viewer.longest_wait(began, now) for viewer in viewers)
    print(f"{what}: {len(gone_on)} of {VIEWERS} viewers of {STREAMS} streams went on; the longest wait for a part"
          f" {waits[-1]:.2f} s, half of them {waits[len(waits) // 2]:.2f} s")
    assert len(gone_on) == VIEWERS, [viewer.errors[-3:] for viewer in viewers if viewer not in gone_on][:3]
    assert waits[-1] <= 5
    for viewer in viewers:
        positions = [(segment, part) for _, segment, part in viewer.got]
        assert positions == sorted(set(positions)), "no number was given to two parts"
    assert {name: epoch(machine, name) for name in epochs} == epochs
    states = {stream["name"]: stream["state"] for stream in json.loads(machine.get("/api/v1/streams"))["streams"]}
    assert set(states) == set(epochs) and set(states.values()) == {"live"}, states


def test_nobody_reloads_over_an_upgrade(live, newer):
    machine, _, _ = live
    before = machine.serving()
    sockets = opened(machine)
    file = machine.put(newer)
    began = time.monotonic()
    machine.run("apt-get", "install", "-y", file, seconds=120)
    machine.restart_unless_scripts_did()
    print(f"the upgrade took {time.monotonic() - began:.1f} s")
    assert machine.serving() not in ("0", before)
    assert opened(machine) == sockets
    assert "+newer" in machine.run("dpkg-query", "-W", "weir").stdout
    judge(live, began, "an upgrade")
    # The administrator's file is as it was.
    assert machine.run("cat", "/etc/weir/weir.yaml").stdout == SETTINGS


@pytest.mark.parametrize("sign, mends", [
    # Some of the files may be there; dpkg asks for the package again then.
    ("processing: upgrade: weir", ("dpkg", "--force-confold", "-i", "/root/weir_0.1.0+newer_amd64.deb")),
    # All files are there, and nothing is configured.
    ("processing: configure: weir", ("dpkg", "--configure", "-a")),
], ids=["while it unpacks", "before it configures"])
def test_an_upgrade_that_is_killed_half_way_loses_nothing(live, newer, sign, mends):
    machine, epochs, _ = live
    before = machine.serving()
    file = machine.put(newer)
    began = time.monotonic()
    # dpkg tells what it does; at the sign it is killed, with what it has started.
    process = subprocess.Popen(machine.inside("dpkg", "--force-confold", "--status-fd", "1", "-i", file),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if line.startswith(sign):
            machine.run("pkill", "-9", "-f", "^dpkg|^/bin/sh /var/lib/dpkg")
            break
    process.wait(20)
    process.stdout.close()
    state = machine.run("dpkg-query", "-W", "-f", "${Status}", "weir").stdout
    assert not state.endswith(" installed"), state
    # The old process goes on as if nothing had been.
    assert machine.serving() == before
    assert json.loads(machine.get("/healthz") and machine.get("/api/v1/streams"))["streams"]
    time.sleep(2)
    machine.run(*mends)
    machine.restart_unless_scripts_did()
    assert machine.serving() not in ("0", before)
    assert machine.run("dpkg-query", "-W", "-f", "${Status} ${Version}", "weir").stdout == "install ok installed 0.1.0+newer"
    judge(live, began, f"an upgrade killed at {sign!r} ({state})")
    assert machine.run("cat", "/etc/weir/weir.yaml").stdout == SETTINGS
