"""Faults of publishers and their networks (resets, silent losses, outages, takeovers, floods), as often as a test run has
time for. `make faults` runs the promised counts.

The counts are in WEIR_FAULTS: "short" (the default) or "long". How soon something happens is judged where nothing else runs
(`in_time`): of the first test each time, of the others by `make test-long`.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import socket
import threading
import time
from http.client import HTTPException

import pytest

from harness import flv, hls, http, nothing_wrong, publishers, scripts, sources, tools
from harness.gauges import cpu_seconds
from harness.metrics import Metrics
from harness.rawrtmp import Closed, RawRTMP, Refused

LONG = os.environ.get("WEIR_FAULTS") == "long"
#: Parallel streams, and faults of each: 20 resets and 5 losses in a test run; 100 and 50 in a long one.
RESETS = (5, 20) if LONG else (5, 4)
LOSSES = (10, 5) if LONG else (5, 1)
GROUP = 1.0  # seconds between key frames of the film "short"


#: Whether it is judged how soon something happens.
in_time = pytest.mark.parametrize("in_time", [False, pytest.param(True, marks=[pytest.mark.quiet, pytest.mark.long])])


class Player:
    """Reads `stream.mp4` from beginning to end and records the arrival of each fragment."""

    def __init__(self, weir, name: str):
        self.stream = http.Stream(f"{weir.web}/live/{name}/stream.mp4")
        self.arrivals: list[float] = []
        self.ended = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        last = b""
        try:
            while piece := self.stream.answer.read1(1 << 16):
                if b"moof" in last + piece:
                    self.arrivals.append(time.monotonic())
                last = piece[-3:]
        except (OSError, ValueError, HTTPException):
            pass
        self.ended = True

    def first_after(self, moment: float, seconds: float) -> float:
        """Arrival of the first fragment after `moment`; AssertionError if there is none."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if later := [arrival for arrival in list(self.arrivals) if arrival > moment]:
                return later[0]
            time.sleep(0.01)
        raise AssertionError(f"no fragment within {seconds} s")

    def close(self) -> None:
        """An answer that is closed while it is read fails in its reader: so the reader ends first."""
        self.stream.interrupt()
        self.thread.join(10)
        assert not self.thread.is_alive(), "the reader of stream.mp4 does not end"
        self.stream.close()


def begin(weir, name: str, key: str, seconds: float = 2.5) -> RawRTMP:
    """Publishes the beginning of a film and returns the open connection."""
    client = RawRTMP(weir.rtmp).start(f"{name}?key={key}")
    client.play_out(scripts.tags_of("short"), until=seconds)
    return client


@pytest.fixture(scope="module")
def keyed(start_shared, canary):
    sources.flv("short")
    weir = start_shared("--publish-key", canary, "--no-record", "--target-duration", "2")
    weir.secrets.append(canary)
    return weir


def media_address(weir, name: str) -> str:
    """The media playlist's address, which contains the epoch."""
    url = f"{weir.web}/live/{name}/index.m3u8"
    return hls.parse_multivariant(http.fetch(url).good().text, url).variants[0].uri


def each(count: int, work) -> list:
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.mark.parametrize(("streams", "resets", "in_time"), [(*RESETS, False), pytest.param(1, 1, True, marks=pytest.mark.quiet)])
def test_after_a_reset_within_a_group_the_stream_goes_on_within_a_group_and_a_second(keyed, canary, streams, resets, in_time):
    def fight(number: int) -> list[float]:
        name = f"reset{number}-of-{streams}"
        client = begin(keyed, name, canary)
        keyed.wait_state(name, "live")
        player = Player(keyed, name)
        watch = hls.Watch(f"{keyed.web}/live/{name}/index.m3u8")
        times = []
        for _ in range(resets):
            player.first_after(0, 20)
            client.reset()
            keyed.wait_state(name, "reconnecting")
            # Buffered media was delivered when the connection was reset.
            time.sleep(0.3)
            back = time.monotonic()
            client = RawRTMP(keyed.rtmp).start(f"{name}?key={canary}")
            # It is in mid-GOP again at the next reset: 1.4 s into GOPs of a second.
            client.play_out(scripts.tags_of("short"), until=1.4)
            times.append(player.first_after(back, 20) - back)
        client.finish()
        keyed.wait_state(name, "ended")
        keyed.wait(lambda: watch.last and watch.last.ended, 10, "the end of the list")
        # It would see a change after the end, too.
        time.sleep(0.4)
        watch.stop()
        nothing_wrong(hls.unexplained(watch.problems, keyed.text(), name))
        playlist = watch.states[-1][1]
        assert playlist.ended
        numbers = [segment.sequence for _, state in watch.states for segment in state.segments]
        assert playlist.segments[-1].sequence == max(numbers)
        assert len({state.url for _, state in watch.states}) == 1, "one epoch"
        # One discontinuity for each reset, counted over all playlist entries.
        assert playlist.segments[-1].discontinuities == resets
        return times

    times = [seconds for found in each(streams, fight) for seconds in found]
    print(f"\nresets: {len(times)}, back after {sorted(times)[len(times) // 2]:.2f} s (median), {max(times):.2f} s (most)")
    assert len(times) == streams * resets
    assert not in_time or max(times) <= GROUP + 1, times


@in_time
def test_a_publisher_that_vanished_is_replaced_at_once(keyed, canary, in_time):
    def vanish(number: int) -> list[float]:
        name = f"lost{number}-{in_time}"
        silent = [begin(keyed, name, canary, seconds=1)]
        times = []
        for loss in range(LOSSES[1]):
            # The connection is dead: nothing is sent or received, and the old connection has no visible end.
            time.sleep(0.5)
            back = time.monotonic()
            client = RawRTMP(keyed.rtmp).start(f"{name}?key={canary}")
            times.append(time.monotonic() - back)
            client.play_out(scripts.tags_of("short"), until=0.5)
            silent.append(client)
            if loss + 1 < LOSSES[1]:
                time.sleep(4.7)  # real time: the promise to publishers is at most one takeover in five seconds
        silent.pop().finish()
        for client in silent:
            client.close()
        return times

    times = [seconds for found in each(LOSSES[0], vanish) for seconds in found]
    print(f"\nlosses: {len(times)}, accepted after {max(times) * 1000:.0f} ms (most)")
    assert len(times) == LOSSES[0] * LOSSES[1]
    assert max(times) <= (1 if in_time else 10), times


def test_two_encoders_that_fight_for_a_name_take_turns_of_five_seconds(keyed, canary):
    switches: list[tuple[float, float, int]] = []  # between which times who was admitted
    refused: list[str] = []
    ports: dict[int, set[int]] = {0: set(), 1: set()}
    clients: dict[int, RawRTMP] = {}
    over = threading.Event()

    def encoder(number: int) -> None:
        """Publishes, and reconnects at once after each disconnection."""
        while not over.is_set():
            asked = time.monotonic()
            client = clients[number] = RawRTMP(keyed.rtmp)
            try:
                client.start(f"fight?key={canary}")
                switches.append((asked, time.monotonic(), number))
                ports[number].add(client.socket.getsockname()[1])
                client.play_out(scripts.tags_of("short"))
                client.wait_closed(30)
            except Refused as error:
                refused.append(str(error))
                time.sleep(0.05)
            except (Closed, OSError, AssertionError):
                pass
            finally:
                client.close()

    fighters = [threading.Thread(target=encoder, args=(number,)) for number in (0, 1)]
    for fighter in fighters:
        fighter.start()
        time.sleep(0.3)

    def changes() -> int:
        return sum(a != b for (*_, a), (*_, b) in zip(switches, switches[1:]))

    try:
        keyed.wait(lambda: changes() >= 2, 30, "two changes of who publishes")
        # When one leaves the name for good, the other has it at once.
        fought = switches[:]
    finally:
        over.set()
        for number, fighter in enumerate(fighters):
            while fighter.is_alive():
                with contextlib.suppress(OSError, KeyError):
                    clients[number].socket.shutdown(socket.SHUT_RDWR)
                fighter.join(0.1)
    # From the earliest time at which one may have been admitted to the latest one of the next.
    gaps = [later - earlier for (earlier, _, a), (_, later, b) in zip(fought, fought[1:]) if a != b]
    assert len(gaps) >= 2, fought
    # The first takeover follows the first publisher at once.
    assert min(gaps[1:]) >= 5, gaps
    assert any("fighting" in text for text in refused), refused[:3]
    line = keyed.wait_log(r"takes over from 127\.0\.0\.1:\d+")
    named = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", line)}
    assert len(named) == 2, "the warning names both addresses"


@pytest.mark.parametrize(("seconds", "in_time"), [
    (5, False), pytest.param(10, True, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_an_outage_costs_no_more_than_its_time(keyed, canary, seconds, in_time):
    name = f"outage{seconds}"
    client = begin(keyed, name, canary)
    keyed.wait_state(name, "live")
    player = Player(keyed, name)
    player.first_after(0, 20)
    address = media_address(keyed, name)
    client.reset()
    began = time.monotonic()
    keyed.wait_state(name, "reconnecting")
    time.sleep(max(0, seconds - (time.monotonic() - began)))
    assert keyed.stream(name)["state"] == "reconnecting"
    client = begin(keyed, name, canary)
    gap = player.first_after(began + 1, 20) - began
    print(f"\noutage: back after {gap:.2f} s")
    assert gap <= seconds + (2 if in_time else 12)
    assert not player.ended, "no viewer that plays is dropped"
    assert media_address(keyed, name) == address, "the epoch goes on"
    client.finish()


@in_time
def test_a_thousand_reconnects_a_second_cost_half_a_core_at_most_and_disturb_nobody(keyed, canary, in_time):
    """By the processor's own clock. Where nothing else runs, viewers of another stream see nothing of it."""
    host, port = keyed.rtmp.removeprefix("rtmp://").rsplit(":", 1)
    name = f"steady-{in_time}"
    good = begin(keyed, name, canary, seconds=1)
    stop = threading.Event()
    tags = [tag for tag in scripts.tags_of("short") if tag.type == flv.VIDEO and not tag.is_header]

    def publish() -> None:
        clock = 1100
        while not stop.is_set():
            for tag in tags:
                if stop.is_set():
                    return
                clock += 33
                good.drain()
                good.tag(flv.Tag(tag.type, clock, tag.body))
                time.sleep(0.033)

    publisher = threading.Thread(target=publish)
    publisher.start()
    keyed.wait_state(name, "live")
    player = Player(keyed, name)
    player.first_after(0, 20)
    seconds, rate = 4, 1000
    idle, began, made = cpu_seconds(keyed.process.pid), time.monotonic(), 0
    hello = b"\x03" + bytes(1536)
    try:
        while time.monotonic() - began < seconds:
            ahead = made / rate - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
            with socket.create_connection((host, int(port)), timeout=20) as knocker:
                try:
                    knocker.sendall(hello)
                except OSError:
                    pass  # closed at once, as it should be
            made += 1
        took = time.monotonic() - began
        used = cpu_seconds(keyed.process.pid) - idle
        gaps = [b - a for a, b in zip(player.arrivals, player.arrivals[1:]) if a > began]
        assert keyed.stream(name)["state"] == "live"
    finally:
        stop.set()
        publisher.join(5)
    good.finish()
    print(f"\nreconnects: {made / took:.0f}/s, {used / took * 100:.0f} % of a core, longest gap {max(gaps, default=took):.2f} s")
    assert used / took <= 0.5 * max(1, made / took / rate)
    if in_time:
        assert made / took >= 0.5 * rate, "this machine is too busy to ask so often"
        assert max(gaps, default=took) < 1, "the good publisher's viewers see nothing of it"
    # A client that rarely connects is accepted again.
    keyed.wait(lambda: may_publish(keyed, canary), 20, "the address is listened to again", every=0.25)


def may_publish(weir, key: str) -> bool:
    """Whether a new client from this address is admitted."""
    try:
        with RawRTMP(weir.rtmp) as client:
            client.start(f"after?key={key}")
            client.finish()
        return True
    except (Closed, OSError):
        return False


class Uplink:
    """A connection between a publisher and the server with a limit in bytes per second, or without one."""

    def __init__(self, rtmp: str):
        self.rate: float | None = None
        self.bytes = 0
        host, port = rtmp.removeprefix("rtmp://").rsplit(":", 1)
        self.server = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.rtmp = f"rtmp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        near, _ = self.listener.accept()
        far = socket.create_connection(self.server)
        threading.Thread(target=self._carry, args=(far, near, False), daemon=True).start()
        self._carry(near, far, True)

    def _carry(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:
        try:
            while data := source.recv(2048):
                if counts:
                    self.bytes += len(data)
                    if self.rate:
                        time.sleep(len(data) / self.rate)
                sink.sendall(data)
        except OSError:
            pass
        sink.close()

    def close(self) -> None:
        self.listener.close()


@in_time
def test_a_publisher_whose_uplink_is_too_narrow_is_told_of_within_five_seconds(keyed, canary, in_time):
    uplink, name = Uplink(keyed.rtmp), f"narrow-{in_time}"
    publisher = publishers.ffmpeg("h264-30", f"{uplink.rtmp}/live/{name}?key={canary}", loop=-1)

    def is_warned() -> bool:
        return any("arrives more slowly" in warning for warning in keyed.stream(name)["warnings"])

    try:
        keyed.wait_state(name, "live")
        began, before = time.monotonic(), uplink.bytes
        time.sleep(3)  # real time: the publisher's bit rate is measured
        keyed.wait(lambda: not is_warned(), 30, "no warning of a line that is wide enough")
        uplink.rate = (uplink.bytes - before) / (time.monotonic() - began) / 2
        narrow, resident = time.monotonic(), keyed.resident_kilobytes()
        keyed.wait(is_warned, 30, "a warning")
        took = time.monotonic() - narrow
        # Data that does not get through waits at the publisher.
        assert keyed.resident_kilobytes() - resident < 8 << 10
        uplink.rate = None
        keyed.wait(lambda: not is_warned(), 30, "no warning any more")
    finally:
        publisher.kill()
        uplink.close()
    print(f"\nuplink of half the bit rate: told after {took:.1f} s")
    assert not in_time or took <= 5


#: Probabilities of a wrong bit and of a truncated message; seconds of media; speed as a multiple of real time.
WRONG_BIT, CUT_OFF = 1e-5, 0.01
DAMAGED_SECONDS, HASTE = (3600, 20) if LONG else (48, 6)


def damaged(tag: flv.Tag, dice: random.Random) -> flv.Tag:
    """The tag after a bad line or encoder. Sequence headers stay intact, because without them there is no stream."""
    if tag.type == flv.DATA or tag.is_header:
        return tag
    body = bytearray(tag.body)
    at = int(dice.expovariate(WRONG_BIT))
    while at < 8 * len(body):
        body[at // 8] ^= 1 << at % 8
        at += 1 + int(dice.expovariate(WRONG_BIT))
    if dice.random() < CUT_OFF:
        del body[dice.randrange(len(body)):]
    return dataclasses.replace(tag, body=bytes(body))


def returned(weir, name: str) -> RawRTMP:
    """A connection that publishes, as soon as the server has let go of the one before."""
    end = time.monotonic() + 20
    while True:
        client = RawRTMP(weir.rtmp)
        try:
            return client.start(name)
        except Refused:
            client.close()
            assert time.monotonic() < end, "the name is still taken"
            time.sleep(0.1)


@in_time
def test_wrong_bits_and_cut_off_frames_harm_no_other_stream(keyed, canary, record_property, in_time):
    broken, whole_stream = f"damaged-{in_time}", f"unharmed-{in_time}"
    dice = random.Random(32)
    film = scripts.tags_of("h264-30")
    length = film[-1].milliseconds + 34
    good = publishers.ffmpeg("short", f"{keyed.rtmp}/live/{whole_stream}?key={canary}", loop=-1)
    refused = 0
    try:
        keyed.wait_state(whole_stream, "live", seconds=20)
        viewer = Player(keyed, whole_stream)
        began, at = time.monotonic(), 0.0
        while at < DAMAGED_SECONDS:
            with returned(keyed, f"{broken}?key={canary}") as client:
                try:
                    while at < DAMAGED_SECONDS:
                        tags = [damaged(tag, dice) for tag in flv.shifted(film, int(at * 1000))]
                        client.play_out(tags, speed=HASTE, origin=int(at * 1000))
                        at += length / 1000
                except (Closed, OSError):
                    # A wrong byte may name a codec that does not exist. The encoder reconnects.
                    refused += 1
                    at += length / 1000
        lost = Metrics(keyed).total("weir_ingest_frames_lost_total", stream=broken)
        index = hls.parse_multivariant(
            http.fetch(f"{keyed.web}/live/{broken}/index.m3u8").good().text, f"{keyed.web}/live/{broken}/index.m3u8")
        whole = tools.run(tools.FFPROBE, "-v", "quiet", "-count_packets", "-select_streams", "v", "-show_entries",
                          "stream=nb_read_packets", "-of", "csv=p=0", "-read_intervals", "%+4",
                          index.absolute(index.variants[0].uri))
        assert int(whole.stdout.split()[0].rstrip(",")) > 60, f"{whole.stdout}{whole.stderr}"
        arrivals = [a for a in viewer.arrivals if a > began]
        longest = max((b - a for a, b in zip(arrivals, arrivals[1:])), default=time.monotonic() - began)
        viewer.close()
        record_property("figure", f"{at:.0f} s of media with wrong bits and cut-off frames: {refused} connections refused, "
                                  f"{lost:.0f} units left out; another stream's longest pause {longest:.2f} s")
        assert longest < (1.5 if in_time else 10)
        assert keyed.process.poll() is None
    finally:
        good.kill()


class TenthOfACore:
    """A control group (version 1) whose processes share a tenth of a core; `skip` if it cannot be created."""

    def __init__(self):
        self.folder = pathlib.Path("/sys/fs/cgroup/cpu") / f"weir-test-{os.getpid()}"
        try:
            self.folder.mkdir()
            (self.folder / "cpu.cfs_period_us").write_text("100000")
            (self.folder / "cpu.cfs_quota_us").write_text("10000")
        except OSError as error:
            if self.folder.exists():
                self.folder.rmdir()
            pytest.skip(f"cannot make a control group of processors: {error}")

    def take(self, process: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(process))

    @property
    def throttled(self) -> int:
        """Number of periods in which they were throttled."""
        text = (self.folder / "cpu.stat").read_text()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("nr_throttled ")))

    def remove(self) -> None:
        root = self.folder.parent / "cgroup.procs"
        for process in (self.folder / "cgroup.procs").read_text().split():
            try:
                root.write_text(process)
            except OSError:
                pass  # it has ended meanwhile
        self.folder.rmdir()


def frames_in(path) -> int:
    probed = tools.run(tools.FFPROBE, "-v", "error", "-select_streams", "v", "-count_packets", "-show_entries",
                       "stream=nb_read_packets", "-of", "csv=p=0", path)
    return int(probed.stdout.strip().strip(","))


@pytest.mark.skipif(not LONG, reason="only in long runs (WEIR_FAULTS=long)")
def test_a_tenth_of_a_core_costs_rungs_their_frames_and_publishers_none(start, record_property):
    """Four publishers whose ladders need far more CPU than there is: encoders drop frames, but received media is kept."""
    film = sources.source("h264-30")
    published = frames_in(film)
    names = [f"cam{number}" for number in range(4)]
    weir = start("--ladder", "144p@400k:preset=medium,90p@200k:preset=medium", listeners=("http", "rtmp"))
    group = TenthOfACore()
    try:
        group.take(weir.process.pid)
        running = [publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}") for name in names]
        dropped: dict[str, int] = {}
        for publisher in running:
            while publisher.process.poll() is None:
                for stream in weir.json("/api/v1/streams")["streams"]:
                    dropped[stream["name"]] = max(dropped.get(stream["name"], 0),
                                                  (stream["ladder"] or {}).get("droppedFrames", 0))
                time.sleep(0.5)
        publishers.wait_all(running, 30)
        throttled = group.throttled
    finally:
        group.remove()
    for name in names:
        (recording,) = weir.wait(lambda: [r for r in weir.recordings_of(name) if r["state"] == "completed"], 30, "its recording")
        assert frames_in(weir.recordings / name / recording["file"]) == published, f"{name} lost frames"
    record_property("figure", f"a tenth of a core: {throttled} periods without time, rungs left out {dropped}")
    print(f"\n{throttled} periods without time, frames left out of rungs: {dropped}")
    assert throttled > 20 and sum(dropped.values()) > 0, "this machine had time enough"
