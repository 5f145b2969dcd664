"""Streams continue over restarts of weir (faults 42 and 43): a restart and a crash, with viewers who never reload. How long that
takes is measured alone, by `make test-long`."""

import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import pytest

from harness import dash, hls, publishers, sources, tools
from harness.followers import Crowd
from harness.http import fetch
from harness.programs import free_port
from harness.publishers import Returning
from harness.supervisor import Supervisor
from harness.weir import clean_environment

LONG = bool(os.environ.get("WEIR_FAULTS"))
VIEWERS = 300 if LONG else 40

#: A signal that makes the process trap in its own code, like a failed precondition. A signal from outside does not end a
#: program in the way that its own illegal instruction does.
TRAP = r"""
#include <signal.h>
static void trap(int number) { __builtin_trap(); }
__attribute__((constructor)) static void plant(void) { signal(SIGUSR2, trap); }
"""


@pytest.fixture(scope="module")
def trap(tmp_path_factory) -> pathlib.Path:
    """A library that contains a trap."""
    folder = tmp_path_factory.mktemp("trap")
    (folder / "trap.c").write_text(TRAP)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "trap.so", folder / "trap.c"], check=True, timeout=60)
    return folder / "trap.so"


def remembers(state: pathlib.Path, epoch: str) -> bool:
    """Whether the state folder has the epoch. Without it, a crash begins a new one."""
    # weir keeps the database locked, so its bytes are looked at.
    return any(epoch.encode() in path.read_bytes() for path in state.glob("streams.sqlite*"))


def bring_down(service: Supervisor, how: str) -> float:
    """Stops weir, once it remembers its stream. Returns when that began."""
    state = pathlib.Path(service.flags[service.flags.index("--state") + 1])
    epoch = service.epoch("cam")
    service.wait(lambda: remembers(state, epoch), 15, "the epoch in the state folder")
    began = time.monotonic()
    number = {"stop": signal.SIGTERM, "kill": signal.SIGKILL, "trap": signal.SIGUSR2}[how]
    service.process.send_signal(number)
    return began


@pytest.mark.parametrize("is_timed", [False, pytest.param(True, marks=[pytest.mark.quiet, pytest.mark.long])], ids=["counts", "time"])
@pytest.mark.parametrize("how", ["stop", "kill", "trap"])
def test_viewers_go_on_over_a_restart_without_reading_the_multivariant_playlist_again(supervise, trap, how, is_timed):
    service = supervise("--part-duration", "500ms", environment={"LD_PRELOAD": str(trap)})
    publisher = Returning("h264-30", f"{service.rtmp}/live/cam")
    try:
        epoch = service.epoch("cam")
        crowd = Crowd(f"{service.web}/live/cam/{epoch}/av/index.m3u8", VIEWERS)
        watching = threading.Thread(target=crowd.watch, args=(time.monotonic() + 120,), daemon=True)
        watching.start()
        service.wait(lambda: all(len(viewer.got) >= 4 for viewer in crowd.viewers), 30, "parts at each viewer")
        began = bring_down(service, how)
        back = service.wait_ready(2)
        # The publisher comes back, and media with it.
        service.wait(lambda: sum(viewer.went_on(back + (3 if is_timed else 0.5)) for viewer in crowd.viewers) >= 0.99 * VIEWERS, 30,
                     "viewers that go on")
        crowd.over = True
        watching.join(30)
    finally:
        publisher.stop()
    ended, code = service.ends[0]
    assert code == {"stop": 0, "kill": -signal.SIGKILL, "trap": -signal.SIGILL}[how], service.text()
    assert not is_timed or back - ended <= 1, f"back {back - ended:.2f} s after it had ended"
    assert service.epoch("cam") == epoch
    gone_on = [viewer for viewer in crowd.viewers if viewer.went_on(back)]
    assert len(gone_on) >= 0.99 * VIEWERS, [viewer.errors[-3:] for viewer in crowd.viewers if viewer not in gone_on][:3]
    waits = sorted(viewer.longest_wait(began, back + 3) for viewer in gone_on)
    print(f"{how}: ended after {ended - began:.2f} s, back {back - ended:.2f} s later, {len(gone_on)} of {VIEWERS} viewers went on,"
          f" the longest wait for a part {waits[-1]:.2f} s, half of them {waits[len(waits) // 2]:.2f} s")
    assert not is_timed or waits[-1] <= 3, waits[-5:]
    for viewer in gone_on:
        positions = [(segment, part) for _, segment, part in viewer.got]
        assert positions == sorted(set(positions)), "no number was given to two parts"
        numbers = [(first, breaks) for _, first, breaks in viewer.sequences]
        assert numbers == [(max(n for n, _ in numbers[: i + 1]), max(b for _, b in numbers[: i + 1]))
                           for i in range(len(numbers))], [pair for pair in zip(numbers, numbers[1:]) if pair[0] != pair[1]]
    playlist = service.get(f"/live/cam/{epoch}/av/index.m3u8").good().text
    assert "#EXT-X-ENDLIST" not in playlist


def test_no_judge_of_playlists_and_manifests_finds_a_restart_or_a_crash(supervise):
    """Separate video and audio, with a rung: earlier statements stay true, also about media that is no longer listed."""
    service = supervise("--hls-layout", "separate", "--ladder", "160p@200k", "--segment-duration", "500ms")
    publisher = Returning("loop", f"{service.rtmp}/live/cam")
    try:
        epoch = service.epoch("cam")
        watches = [hls.Watch(f"{service.web}/live/cam/index.m3u8"),
                   dash.Watch(f"{service.web}/live/cam/manifest.mpd", f"{service.web}/time")]
        for count, how in ((2, "stop"), (3, "kill"), (0, None)):
            before = [len(watch.states) for watch in watches], len(watches[0].first_seen)
            service.wait(lambda: len(watches[0].first_seen) >= before[1] + 4 and all(
                len(watch.states) > known + 2 for watch, known in zip(watches, before[0])), 30, "four segments, and what was told of them")
            if how:
                bring_down(service, how)
                service.wait_ready(count)
        for watch in watches:
            watch.stop()
        assert service.epoch("cam") == epoch
        lists = {name: service.get(f"/live/cam/{epoch}/{name}/index.m3u8").good().text for name in ("video", "160p")}
    finally:
        publisher.stop()
    for watch in watches:
        # Connections end with the process.
        problems = [problem for problem in watch.problems if not re.search("Connection|RemoteDisconnected|closed", problem)]
        problems = hls.unexplained(problems, (service.folder / "log").read_text(errors="replace"), "cam")
        assert not problems, problems
    playlists, manifests = watches
    assert {attempt.target for _, attempt in playlists.states} == {playlists.last.target}
    periods = [period for manifest in manifests.states for period in sorted({r.period for r in manifest.representations})]
    assert len(set(periods)) >= 3 and {manifest.start for manifest in manifests.states} == {manifests.last.start}
    # The rung ends with its source.
    heads = {name: [line for line in text.split("\n") if line.startswith(("#EXT-X-MEDIA-SEQUENCE", "#EXT-X-DISCONTINUITY"))]
             for name, text in lists.items()}
    assert heads["video"] == heads["160p"] != [], heads


def test_what_a_player_records_over_a_restart_is_on_both_sides_of_it(supervise, tmp_path):
    """ffmpeg's own HLS player."""
    service = supervise("--segment-duration", "500ms")
    publisher = Returning("loop", f"{service.rtmp}/live/cam")
    film, player = tmp_path / "seen.mkv", None
    try:
        service.epoch("cam")
        player = subprocess.Popen(
            [tools.FFMPEG, "-hide_banner", "-nostdin", "-v", "warning", "-i", f"{service.web}/live/cam/index.m3u8", "-c", "copy",
             "-y", str(film)], stderr=subprocess.PIPE)
        service.wait(lambda: film.exists() and film.stat().st_size > 60_000, 20, "a second at the player")
        bring_down(service, "stop")
        service.wait_ready(2)
        # What it reads first may be of before.
        before = film.stat().st_size
        service.wait(lambda: film.stat().st_size > before + 150_000, 30, "two and a half seconds more at the player")
        player.send_signal(signal.SIGINT)
        _, log = player.communicate(timeout=20)
    finally:
        publisher.stop()
        if player:
            player.kill()
    assert player.returncode in (0, 255), log.decode()

    packets = subprocess.run(
        [tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", film],
        capture_output=True, text=True, timeout=30).stdout.split()
    times = sorted(map(float, packets))
    steps = [later - earlier for earlier, later in zip(times, times[1:])]
    # The longest is that of the publisher's absence.
    split = steps.index(max(steps)) + 1
    assert min(split, len(times) - split) >= 30 and len(times) >= 4 * 30, (split, len(times), log.decode())
    print(f"{split} frames, a step of {max(steps):.2f} s, {len(times) - split} frames")


def test_who_does_not_come_back_has_ended_and_the_next_start_begins_anew(supervise):
    service = supervise("--reconnect-window", "1s")
    publisher = Returning("h264-30", f"{service.rtmp}/live/cam")
    epoch = service.epoch("cam")
    head = f"/live/cam/{epoch}/av/init-1.mp4"
    known = service.get(head).good().body
    publisher.stop()
    service.process.kill()
    service.wait_ready(2)
    # Who has read the list a moment before asks for it now.
    assert service.get(head, timeout=5).good().body == known
    deadline = time.monotonic() + 10
    while "cam" in service.get("/api/v1/streams").text and '"ended"' not in service.get("/api/v1/streams").text:
        assert time.monotonic() < deadline, service.get("/api/v1/streams").text
        time.sleep(0.1)
    # Its players get a list that says so, and nobody gets another.
    final = service.get(f"/live/cam/{epoch}/av/index.m3u8", timeout=5).good().text
    assert final.rstrip().endswith("#EXT-X-ENDLIST") and "#EXT-X-GAP" in final, final
    assert service.get("/live/cam/index.m3u8", timeout=5).status == 404
    service.process.send_signal(signal.SIGTERM)
    service.wait_ready(3)
    assert '"cam"' not in service.get("/api/v1/streams").text
    publisher = Returning("h264-30", f"{service.rtmp}/live/cam")
    try:
        assert service.epoch("cam") != epoch
    finally:
        publisher.stop()


def test_a_stream_that_ended_stays_ended_over_a_restart(supervise):
    service = supervise("--target-duration", "2")
    publisher = publishers.ffmpeg("short", f"{service.rtmp}/live/cam", rate=2)
    epoch = service.epoch("cam")
    publisher.wait(20)
    deadline = time.monotonic() + 15
    while '"state":"ended"' not in service.get("/api/v1/streams").text:
        assert time.monotonic() < deadline, service.get("/api/v1/streams").text
        time.sleep(0.05)
    service.process.send_signal(signal.SIGTERM)
    service.wait_ready(2)
    assert service.get("/api/v1/streams").json["streams"] == []
    for path in ("index.m3u8", f"{epoch}/av/index.m3u8", "stream.mp4"):
        # Asked of a stream that may come back, they would wait (HTTPLimits).
        assert service.get(f"/live/cam/{path}", timeout=5).status == 404


def test_other_lengths_than_players_were_told_begin_a_new_epoch(supervise):
    service = supervise("--source", f"demo=file:{sources.source('loop')}")
    epoch = service.epoch("demo")
    service.flags += ["--part-duration", "400ms"]
    service.process.send_signal(signal.SIGTERM)
    service.wait_ready(2)
    assert service.epoch("demo") != epoch
    assert re.search("demo: begins anew: the lengths or layouts in the settings have changed", service.text())


UNITS = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "systemd"

#: Settings that need the manager of a whole system.
SANDBOX = re.compile(
    r"^(DynamicUser|SupplementaryGroups|AmbientCapabilities|CapabilityBoundingSet|Private\w+|Protect\w+|Restrict\w+"
    r"|LockPersonality|SystemCallArchitectures|LimitNOFILE|StateDirectory)=.*\n", re.M)

#: A systemd instance with this machine's units, independent of the machine's own instance.
MANAGER = """
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/manager
export XDG_RUNTIME_DIR=/run/manager XDG_CONFIG_HOME={folder}/config SYSTEMD_LOG_TARGET=console
exec /lib/systemd/systemd --user --unit=weir.service
"""


def test_systemd_brings_it_back_by_the_units_that_are_shipped(tmp_path, trap):
    """The units of packaging/systemd, without settings for a whole system, under systemd itself."""
    if os.geteuid() != 0:
        pytest.skip("a systemd of one's own needs root")
    if not os.access("/lib/systemd/systemd", os.X_OK):
        pytest.skip("systemd is not installed")
    units = tmp_path / "config" / "systemd" / "user"
    state = tmp_path / "state"
    units.mkdir(parents=True)
    state.mkdir()
    ports = {name: free_port() for name in ("http", "rtmp")}
    for name, port in ports.items():
        text = (UNITS / f"weir-{name}.socket").read_text()
        (units / f"weir-{name}.socket").write_text(re.sub(r"ListenStream=.*", f"ListenStream=127.0.0.1:{port}", text))
    text = SANDBOX.sub("", (UNITS / "weir.service").read_text())
    text = text.replace("@PREFIX@/bin/weir", tools.weir_binary()).replace("%S/weir", str(state))
    # Settings in /etc/weir.env override the unit.
    settings, elsewhere = tmp_path / "weir.env", tmp_path / "elsewhere"
    settings.write_text(f"WEIR_RECORD={elsewhere}\n")
    text = text.replace("/etc/weir.env", str(settings))
    (units / "weir.service").write_text(
        text.replace("[Service]", f"[Service]\nEnvironment=WEIR_SOURCE=demo=file:{sources.source('loop')} LD_PRELOAD={trap}"))
    web = f"http://127.0.0.1:{ports['http']}"
    log = open(tmp_path / "log", "wb")
    manager = subprocess.Popen(
        ["unshare", "--mount", "--fork", "--kill-child", "bash", "-c", MANAGER.format(folder=tmp_path)],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment())

    def epoch() -> str:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if found := re.search(r"^([0-9a-z]+)/", fetch(f"{web}/live/demo/index.m3u8", timeout=20).text, re.M):
                    return found[1]
            except OSError:
                pass  # systemd is not up yet
            time.sleep(0.05)
        raise AssertionError((tmp_path / "log").read_text(errors="replace")[-3000:])

    def weirs() -> list[int]:
        line, setting = f"{tools.weir_binary()}\0serve\0".encode(), f"WEIR_STATE={state}\0".encode()
        return [int(entry.name) for entry in pathlib.Path("/proc").iterdir()
                if entry.name.isdigit() and reads(entry / "cmdline") == line and setting in reads(entry / "environ")]

    try:
        first = epoch()
        assert elsewhere.is_dir() and not (state / "recordings").exists()
        end = time.monotonic() + 15
        while not remembers(state, first):
            assert time.monotonic() < end
            time.sleep(0.1)
        [process] = weirs()
        os.kill(process, signal.SIGUSR2)
        began = time.monotonic()
        while reads(pathlib.Path(f"/proc/{process}/cmdline")):
            assert time.monotonic() - began < 15
            time.sleep(0.01)
        # No client is refused: the request waits in the socket's queue.
        answer = fetch(f"{web}/healthz", timeout=10)
        back = time.monotonic() - began
        assert answer.status == 200 and weirs() not in ([], [process])
        print(f"systemd: an answer {back:.2f} s after the trap")
        assert back <= 10
        assert epoch() == first
    finally:
        for child in pathlib.Path(f"/proc/{manager.pid}/task/{manager.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGTERM)
        try:
            manager.wait(15)
        except subprocess.TimeoutExpired:
            manager.kill()
            manager.wait()
        for left in weirs():
            os.kill(left, signal.SIGKILL)
        log.close()


def reads(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
