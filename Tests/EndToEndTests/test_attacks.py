"""Attacks on a small server that also has an honest publisher and ten viewers. The attacker gets a reason, memory stays
bounded, and the others are not affected (docs/limits.md). The attacks are in harness/attacks.py.

What is counted is judged beside other tests. How late the others' parts come is measured alone: of one attack each time, of
all by `make test-long`. The counts are in WEIR_FAULTS: "short" (the default) or "long", as in test_faults.py.
"""

import contextlib
import os
import pathlib
import re
import shutil
import statistics
import time

import pytest

from harness import publishers
from harness.attacks import ATTACKS, STREAM, Attack
from harness.followers import Beside
from harness.groups import MemoryGroup

LONG = os.environ.get("WEIR_FAULTS") == "long"
SECONDS = 8 if LONG else 4
#: Stretches of an attack whose median is judged.
ROUNDS = 5 if LONG else 3
#: Seconds by which parts of the honest stream may be later during an attack. A machine that is not only for the server may
#: delay them so many times as it delays those of an idle server at the same time.
LIMIT, TIMES = 0.02, 3
#: The attack whose lateness is measured each time: its requests cost the server most.
USUAL = "bodies"
NAME, VIEWERS = "honest", 10
#: Seconds of a part.
PART = 0.2
MEBIBYTE = 1 << 20
#: Room for the attackers' recordings: at the long counts they send 34 GB. With less, `--keep-free` ends the honest one as well.
ROOM = (40 if LONG else 4) << 30
MEMORY, DESCRIPTORS = 512 * MEBIBYTE, 1024
#: Limits for the server's own memory and for its memfds.
MOST = 400 * MEBIBYTE
#: Limit for lines of the log in a second: 200 of one cause in 10 s.
LINES = 20

#: Signs by which an attacker is told: a response, the reason of a refusal, a warning of its stream, or its own findings.
TOLD = {
    # On a slow machine new names are given again before the first are used up, and the bound on streams is met first.
    "jumps": "--max-jumps", "names": "names without a key|half of the streams that fit", "large": "--stream-memory", "stopped_clock": "--stream-memory",
    "burst": "200", "flips": "--max-changes", "tiny": "slowed", "bodies": "413", "agents": "429|503", "lying_file": "404",
    "bare_connections": "closed", "admin_tokens": "429",
}


def memory(process: int) -> int:
    """Bytes of its own memory and of memfds."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    held = int(re.search(r"RssAnon:\s+(\d+)", status)[1]) << 10
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(entry).startswith("/memfd:"):
                held += os.stat(entry).st_blocks * 512
    return held


class Scene:
    """The small server with its stream, and an idle one to compare with, where lateness is measured."""

    def __init__(self, start, folder: pathlib.Path, *flags, listeners: tuple[str, ...] = ("http", "rtmp"), compares: bool = not LONG):
        free = shutil.disk_usage(folder).free
        assert free >= ROOM, f"the recordings of all attacks take up to {ROOM >> 30} GiB; {folder} has {free >> 30}"
        # Where no control group can be created, its limits are set by flags, and memory is measured all the same.
        few = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}")
        try:
            self.group = MemoryGroup(MEMORY)
            inside = ("sh", "-c", f'echo $$ > {self.group.folder}/cgroup.procs && exec "$@"', "sh")
            self.weir = self._started(start, *flags, listeners=listeners, wrapper=(*inside, *few))
        except pytest.skip.Exception as reason:
            self.group = None
            print(f"without a memory control group, memory is watched alone: {reason}")
            self.weir = self._started(
                start, "--stream-memory", "128MiB", "--media-memory", "256MiB", *flags, listeners=listeners, wrapper=few)
        self.neighbour = self._started(start, "--no-record") if compares else None
        self.servers = [weir for weir in (self.weir, self.neighbour) if weir]
        self.publishers = [publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1) for weir in self.servers]
        self.lists = [self._playlist(weir) for weir in self.servers]
        # Its recording runs, and the server knows the interval of its key frames.
        self.weir.wait(lambda: self.weir.stream(NAME)["recording"]["seconds"] > 2, 15, "a recording")
        self.before = self.weir.stream(NAME)

    @staticmethod
    def _started(start, *flags, **options):
        return start("--target-duration", "2", "--admin-token", "a-token-that-nobody-guesses", *flags, **options)

    @staticmethod
    def _playlist(weir) -> str:
        weir.wait_state(NAME, "live")
        top = weir.get(f"/live/{NAME}/index.m3u8", timeout=20).good().text
        return f"{weir.web}/live/{NAME}/" + next(line for line in top.splitlines() if line and not line.startswith("#"))

    def honest_lost_nothing(self) -> None:
        assert self.weir.process.poll() is None and self.publishers[0].process.poll() is None
        stream = self.weir.stream(NAME)
        assert stream["state"] == "live" and stream["startedAt"] == self.before["startedAt"]
        assert not stream["warnings"] and stream["recording"]["state"] == "running", stream
        for line in self.weir.get("/metrics").good().text.splitlines():
            if f'stream="{NAME}"' in line and re.match(r"weir_(ingest_timestamp_jumps_total|ingest_frames_lost_total|recording_gap_seconds)", line):
                assert float(line.rsplit(" ", 1)[1]) == 0, line

    def heard(self, attack: str) -> str:
        """The API's data of an attacker's streams."""
        refusals = [r["reason"] for r in self.weir.json("/api/v1/refusals")["refusals"]
                    if (r["stream"] or "").startswith(f"{STREAM}-{attack}")]
        streams = [s for s in self.weir.json("/api/v1/streams")["streams"] if s["name"].startswith(f"{STREAM}-{attack}")]
        return "\n".join(refusals + [warning for stream in streams for warning in stream["warnings"]])

    def close(self) -> None:
        for publisher in self.publishers:
            publisher.kill()
        if self.group:
            assert self.group.kills() == 0
            self.weir.stop()
            self.group.remove()
        shutil.rmtree(self.weir.recordings, ignore_errors=True)


@pytest.fixture(scope="module")
def scene(start_shared, tmp_path_factory):
    made = Scene(start_shared, tmp_path_factory.getbasetemp(), compares=False)
    yield made
    made.close()


@pytest.fixture(scope="module")
def measured(start_shared, tmp_path_factory):
    made = Scene(start_shared, tmp_path_factory.getbasetemp())
    yield made
    made.close()


class Attacked:
    """The honest viewers and the server during some rounds of an attack, each after a calm time of so many seconds."""

    def __init__(self, scene: Scene, attack: str, rounds: int, calm: float):
        self.scene, self.attack, self.told, self.most, before = scene, attack, "", 0, len(scene.weir.lines)
        #: When each calm time and each attack began, and when that ended.
        self.stretches: list[tuple[float, float, float]] = []
        self.crowds = [Beside(url, VIEWERS) for url in scene.lists]
        try:
            for crowd in self.crowds:
                crowd.ready()
            for _ in range(rounds):
                self._round(calm)
            for crowd in self.crowds:
                crowd.stop()
        finally:
            for crowd in self.crowds:
                crowd.kill()
        self.lines = len(scene.weir.lines) - before

    def _round(self, calm: float) -> None:
        began = time.monotonic()
        if calm:
            time.sleep(calm)
        begin = time.monotonic()
        running = Attack(self.attack, self.scene.weir, SECONDS)
        while running.process.poll() is None and time.monotonic() < begin + SECONDS + 60:
            self.most = max(self.most, memory(self.scene.weir.process.pid))
            self.told += self.scene.heard(self.attack)
            if time.monotonic() > begin + SECONDS and re.search(TOLD[self.attack], self.told + running.said()):
                running.enough()
            time.sleep(0.2)
        self.stretches.append((began, begin, time.monotonic()))
        self.told += running.told() + self.scene.heard(self.attack)

    def counts(self) -> str:
        return f"{self.most / MEBIBYTE:.0f} MiB, {self.lines} lines of the log"

    def judge(self) -> None:
        """All that is no matter of time."""
        self.scene.honest_lost_nothing()
        for viewer in self.crowds[0].viewers:
            assert not viewer.errors, viewer.errors[:3]
            came = sum(begin < at < end for at, *_ in viewer.got for _, begin, end in self.stretches)
            assert came >= sum(end - begin for _, begin, end in self.stretches) / PART / 2, f"{came} parts came during the attack"
        assert self.most < MOST
        assert self.lines < LINES * sum(end - begin for _, begin, end in self.stretches)
        assert re.search(TOLD[self.attack], self.told), self.told[:2000]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_costs_only_the_attacker(scene, attack, record_property):
    attacked = Attacked(scene, attack, rounds=1, calm=0)
    record_property("figure", f"{attack}: {attacked.counts()}")
    attacked.judge()


def late(scene: Scene, attack: str, rounds: int, calm: float, record_property) -> None:
    attacked = Attacked(scene, attack, rounds, calm)

    def later(crowd: Beside, first: int) -> float:
        """Of 95 % of the parts, by the stretches' median."""
        return statistics.median(crowd.late(stretch[first], stretch[first + 1], 0.95) for stretch in attacked.stretches)

    calm, rough = later(attacked.crowds[0], 0), later(attacked.crowds[0], 1)
    figure = (f"{attack}: 95 % of the parts at most {rough * 1000:.0f} ms late, {calm * 1000:.0f} ms without it, "
              f"{attacked.counts()}")
    if scene.neighbour:
        beside = later(attacked.crowds[1], 1)
        record_property("figure", f"{figure}, {beside * 1000:.0f} ms beside it")
        assert rough < TIMES * max(beside, LIMIT)
    else:
        record_property("figure", figure)
        assert rough - calm < LIMIT
    attacked.judge()


@pytest.mark.quiet
def test_an_attack_makes_no_part_late(measured, record_property):
    late(measured, USUAL, 1, 2, record_property)


@pytest.mark.quiet
@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_makes_parts_late(measured, attack, record_property):
    late(measured, attack, ROUNDS, SECONDS, record_property)
