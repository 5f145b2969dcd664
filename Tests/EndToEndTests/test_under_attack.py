"""Servers in control groups of 256 MiB and 1 GiB under each attack of harness/floods.py and harness/attacks.py (docs/limits.md). The
attackers are held to one processor. Beside them are an honest stream with its viewers, and a probe. Nothing ends but the attacker, no
part comes much later than without the attack, and the server tells at once that it lives.

It takes half a minute for each attack and size, so that only `make faults` runs it (WEIR_FAULTS=long)."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.parse

import pytest

from harness import floods, hls, http, publishers, sources, tools
from harness.attacks import ATTACKS, Attack
from harness.floods import FLOODS
from harness.followers import Beside
from harness.groups import MemoryGroup
from harness.probes import Probes

pytestmark = [
    pytest.mark.quiet, pytest.mark.long, pytest.mark.skipif(os.environ.get("WEIR_FAULTS") != "long", reason="WEIR_FAULTS=long")]

MEBIBYTE = 1 << 20
SMALL, LARGE = 256 * MEBIBYTE, 1024 * MEBIBYTE
NAME, VIEWERS = "honest", 3
#: Counts of the honest stream that stay 0.
FAULTS = re.compile(r"weir_(ingest_timestamp_jumps_total|ingest_frames_lost_total|recording_gap_seconds)")
#: Seconds: until the server knows the intervals of key frames and parts are even; of the calm time that is compared with; of the
#: attack; and behind it, when what it held is closed.
WARM, CALM, SECONDS, AFTER = 6, 6, 12, 2
#: Seconds by which a part may be later than the latest one of the calm time.
LATE = 0.15
#: Seconds within which 99 of 100 probes are answered, and each.
SOON, LATEST = 0.1, 1.0
#: The processor of the attackers.
HELD = ("taskset", "-c", str(max(os.sched_getaffinity(0))))

#: What takes memory or connections is tried with little memory, too.
CASES = [
    *[(attack, memory) for attack in (*FLOODS, "stopped_clock") for memory in (SMALL, LARGE)],
    *[(attack, LARGE) for attack in ATTACKS if attack != "stopped_clock"]]


class Scene:
    """The server with its honest stream, and with one that readers of large segments ask for."""

    def __init__(self, start, folder: pathlib.Path, group: MemoryGroup):
        self.group, self.publishers = group, []
        for film in ("steady", "megabyte"):
            sources.source(film)
        certificate, key = tools.make_certificate(folder / "tls")
        settings = folder / "weir.yaml"
        settings.write_text('streams:\n  "attack*":\n    record: {mode: never}\n  wide:\n    record: {mode: never}\n')
        inside = ("sh", "-c", f'echo $$ > {group.folder}/cgroup.procs && exec "$@"', "sh")
        self.weir = start(
            "--config", settings, "--target-duration", "2", "--admin-token", "a-token-that-nobody-guesses", "--https", "127.0.0.1:0",
            "--tls-cert", certificate, "--tls-key", key, "--srt", "127.0.0.1:0", "--webrtc", "127.0.0.1:0",
            listeners=("http", "https", "rtmp", "srt", "webrtc"), wrapper=inside)

    def begin(self) -> None:
        floods.lay_out(self.weir.recordings)
        self.publishers += [
            publishers.ffmpeg(film, f"{self.weir.rtmp}/live/{name}", loop=-1)
            for name, film in ((NAME, "steady"), (floods.WIDE, "megabyte"))]
        self.url = hls.first_playlist(f"{self.weir.web}/live/{NAME}/index.m3u8")
        self.weir.wait(
            lambda: http.fetch(self.weir.web + floods.ADDRESS, method="HEAD").status == 200, 15, "the recording is served")
        self.before = {name: self.weir.wait_state(name, "live") for name in (NAME, floods.WIDE)}

    def lost_nothing(self) -> None:
        assert self.weir.process.poll() is None, self.weir.tail()
        assert self.group.kills() == 0
        for publisher in self.publishers:
            assert publisher.process.poll() is None, "an honest publisher has ended"
        for name, before in self.before.items():
            stream = self.weir.stream(name)
            assert stream["state"] == "live" and stream["startedAt"] == before["startedAt"], stream
        assert not self.weir.stream(NAME)["warnings"], self.weir.stream(NAME)["warnings"]
        for line in self.weir.get("/metrics").good().text.splitlines():
            if f'stream="{NAME}"' in line and FAULTS.match(line):
                assert float(line.rsplit(" ", 1)[1]) == 0, line

    def close(self) -> None:
        for publisher in self.publishers:
            publisher.kill()
        if self.weir.process.poll() is None:
            self.weir.stop()
        shutil.rmtree(self.weir.recordings, ignore_errors=True)


@pytest.fixture
def scene(request, start, tmp_path):
    group = MemoryGroup(request.param)
    try:
        made = Scene(start, tmp_path, group)
        try:
            made.begin()
            yield made
        finally:
            made.close()
    finally:
        for weir in start.running:
            weir.kill()
        group.remove()


class Attacked:
    """A calm time, and then an attack. `look` is called twice a second while it lasts."""

    def __init__(self, scene: Scene, attack: str, look=lambda: None):
        self.scene = scene
        self.crowd, self.probes = Beside(scene.url, VIEWERS), Probes(scene.weir.web)
        try:
            self.crowd.ready()
            time.sleep(WARM)
            self.began = time.monotonic()
            time.sleep(CALM)
            self.begin = time.monotonic()
            running = Attack(
                attack, scene.weir, SECONDS, "harness.floods", HELD, (json.dumps(scene.weir.addresses),))
            # It may end after its seconds.
            running.enough()
            while running.process.poll() is None and time.monotonic() < self.begin + SECONDS + 60:
                look()
                time.sleep(0.5)
            self.told = running.told()
            time.sleep(AFTER)
            self.end = time.monotonic()
            self.crowd.stop()
            self.probes.stop()
        finally:
            self.crowd.kill()
            self.probes.kill()

    def later(self, share: float) -> float:
        """By how much this share of the parts was later than in the calm time, in seconds."""
        return self.crowd.late(self.begin, self.end, share) - self.crowd.late(self.began, self.begin, share)

    def judge(self, record_property, what: str) -> None:
        answers = self.probes.between(self.begin, self.end)
        times = sorted(seconds for _, seconds, _ in answers)
        late = times[min(len(times) - 1, int(len(times) * 0.99))]
        record_property("figure", (
            f"{what}: a part {self.later(1) * 1000:.0f} ms later at most, {len(times)} probes, 99 of 100 within {late * 1000:.0f} ms, the "
            f"latest {times[-1] * 1000:.0f} ms, at most {self.scene.group.most >> 20} MiB"))
        print(self.told)
        self.scene.lost_nothing()
        for viewer in self.crowd.viewers:
            assert not viewer.errors, viewer.errors[:3]
            assert viewer.went_on(self.end - AFTER), "a viewer has no parts at the end"
        assert {status for _, _, status in answers} == {200}, [answer for answer in answers if answer[2] != 200][:5]
        assert late <= SOON and times[-1] <= LATEST, times[-5:]
        assert self.later(1) <= LATE


@pytest.mark.parametrize(
    ("attack", "scene"), [pytest.param(*case, id=f"{case[0]}-{case[1] // MEBIBYTE}") for case in CASES], indirect=["scene"])
def test_an_attack_ends_nothing_and_makes_nobody_wait(scene, attack, record_property):
    what = f"{attack} in {int((scene.group.folder / 'memory.limit_in_bytes').read_text()) >> 20} MiB"
    Attacked(scene, attack).judge(record_property, what)


#: Of row 61 of the fault table: readers, bytes that are not sent of each, bytes of the server's own memory for each, and seconds by which
#: 99 of 100 parts of others may be later. The system looks at the bound before each packet, so one more may be on top.
READERS, UNSENT, OWN, DELAY = 2000, (32 << 10) + 1400, 8 << 10, 0.02


def unsent(port: int) -> list[int]:
    """Bytes that were not sent, of each connection of a server that has such."""
    listed = subprocess.run(
        ["ss", "-tinH", "state", "established", f"( sport = :{port} )"], capture_output=True, text=True, check=True, timeout=30).stdout
    return [int(count) for count in re.findall(r"\bnotsent:(\d+)", listed)]


def own(process: int) -> int:
    """Bytes of a process's own memory."""
    return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{process}/status").read_text())[1]) << 10


@pytest.mark.parametrize("scene", [LARGE], indirect=True)
def test_two_thousand_readers_of_a_byte_a_second_cost_little_and_hold_up_nobody(scene, record_property):
    process, port = scene.weir.process.pid, urllib.parse.urlsplit(scene.weir.web).port
    before, held, grown = own(process), [], []

    def look() -> None:
        held.append(unsent(port))
        grown.append(own(process) - before)

    attacked = Attacked(scene, "readers", look)
    most = max(held, key=len)
    mean = sum(most) / max(1, len(most))
    record_property("figure", (
        f"{len(most)} readers of a byte a second: {mean / 1024:.1f} KiB of each are not sent, {max(most, default=0) / 1024:.1f} at most, "
        f"{max(grown) / READERS / 1024:.1f} KiB of memory each, 99 of 100 parts {attacked.later(0.99) * 1000:.0f} ms later"))
    attacked.judge(record_property, "readers")
    assert len(most) >= READERS * 0.95, attacked.told
    assert mean <= UNSENT
    assert max(grown) <= READERS * OWN
    assert attacked.later(0.99) <= DELAY
