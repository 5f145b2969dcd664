"""Recordings when weir is killed or the power fails. The rest is finished at the next start. Losses are counted by
comparison with what a viewer received.

A test run does each a few times; `make torture` as often as docs/figures.md says (WEIR_TORTURE).
"""

import concurrent.futures
import errno
import os
import pathlib
import random
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

from harness import boxes, dash, flv, hls, http, nothing_wrong, packets, publishers, sources, tools
from harness.disks import Disk, Faults, needs
from harness.fragments import Standing, Viewer, check_movie, sample_counts, total, whole_fragments
from harness.groups import MemoryGroup
from harness.metrics import Metrics
from harness.rawrtmp import RawRTMP
from harness.weir import Weir

TORTURE = "WEIR_TORTURE" in os.environ
TOKEN = "a-token-of-this-test"


def count(name: str, usual: int, long: int) -> int:
    """Number of repetitions: WEIR_TORTURE_<NAME>, or the count of a long or an ordinary run."""
    return int(os.environ.get(f"WEIR_TORTURE_{name}", long if TORTURE else usual))


#: Number of streams recorded at a time, and their speed as a multiple of real time.
STREAMS = 4
RATE = 4


class Recorded:
    """Streams that are published, recorded and watched."""

    def __init__(self, weir, streams: int = STREAMS, rate: float = RATE, film: str = "short"):
        self.weir = weir
        self.names = [f"s{index}" for index in range(streams)]
        self.publishers = [
            publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", loop=-1, rate=rate) for name in self.names]
        self.viewers = {}
        for name in self.names:
            weir.wait(lambda: self.running(name), 15, f"{name} is recorded", every=0.02)
            self.viewers[name] = Viewer(weir, name)

    def running(self, name: str):
        stream = self.weir.stream(name)
        return stream and stream["recording"] and stream["recording"]["state"] == "running"

    def stop(self) -> None:
        for publisher in self.publishers:
            publisher.kill()
        for viewer in self.viewers.values():
            viewer.close()


def parts(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The unfinished files by stream."""
    return {path.parent.name: path for path in folder.glob("*/*.part.mp4")}


def salvage(folder: pathlib.Path, tmp: pathlib.Path, number) -> None:
    """Starts weir and stops it again, so that leftovers are finished."""
    home = tmp / f"again-{number}"
    home.mkdir()
    weir = Weir(folder=home, recordings=folder)
    try:
        weir.wait(lambda: not list(folder.glob("*/*.part.mp4")), 20, "the leftovers are finished")
        weir.stop()
    finally:
        weir.kill()


def finish_and_count(weir: Weir, recorded: Recorded, home: pathlib.Path, decode: bool, most: int = 1) -> list[int]:
    """Finishes the leftovers of a killed weir. Returns for each stream how many of the parts that its viewer received are
    missing in the file, `most` at most."""
    left = parts(weir.recordings)
    assert sorted(left) == recorded.names
    expected, lost = {}, []
    for name, path in left.items():
        fragments = whole_fragments(path.read_bytes())
        seen = recorded.viewers[name].fragments()
        lost.append(max(0, seen[-1][0] - fragments[-1][0]) if seen else 0)
        assert lost[-1] <= most, f"{path}: {lost[-1]} parts that a viewer has are not in the file"
        expected[name] = total(fragments)
    salvage(weir.recordings, home, "a")
    movies = sorted(weir.recordings.glob("*/*"))
    assert [path.parent.name for path in movies] == recorded.names, "one file each, and nothing else"
    for path in movies:
        assert sample_counts(path) == expected[path.parent.name]
        check_movie(path, decode=decode)
    return lost


def told(lost: dict[int, int]) -> str:
    return "parts lost " + ", ".join(f"{parts}: {times} files" for parts, times in sorted(lost.items()))


def test_killed_while_recording(tmp_path, record_property):
    """kill -9 at a random moment: every file is playable and finished at the next start. At most one part of what viewers
    received is missing."""
    rounds = count("KILLS", 2, 250)
    lost: dict[int, int] = {}
    chance = random.Random(7)
    for number in range(rounds):
        home = tmp_path / f"{number}"
        home.mkdir()
        weir = Weir(folder=home)
        # At their own pace: faster ones run ahead of a disk that is busy.
        recorded = Recorded(weir, rate=1)
        weir.wait(lambda: all(whole_fragments(path.read_bytes()) for path in parts(weir.recordings).values()), 15, "something in each")
        time.sleep(chance.uniform(0.1, 2.0))
        weir.process.kill()
        weir.kill()
        recorded.stop()
        for missing in finish_and_count(weir, recorded, home, decode=number % 5 == 0):
            lost[missing] = lost.get(missing, 0) + 1
        shutil.rmtree(home)
    files = rounds * STREAMS
    record_property("figure", f"kill -9 while recording: {rounds} kills, {files} files, {files} playable; {told(lost)}")


#: Takes more memory than its control group has.
GLUTTON = "import sys; open(sys.argv[1], 'w').write('0'); eaten = [b'x' * (1 << 20) for _ in range(4096)]"


@pytest.mark.parametrize("most", [3, pytest.param(1, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_killed_for_want_of_memory(tmp_path, most, record_property):
    """The kernel kills weir because its control group is out of memory. Before that, what is written waits for memory, too: longer
    beside others."""
    rounds = count("OOM", 1, 20)
    lost: dict[int, int] = {}
    for number in range(rounds):
        home = tmp_path / f"{number}"
        home.mkdir()
        group = MemoryGroup(192 << 20)
        try:
            weir = Weir(folder=home)
            group.add(weir.process.pid)
            pathlib.Path(f"/proc/{weir.process.pid}/oom_score_adj").write_text("1000")
            recorded = Recorded(weir, STREAMS if TORTURE else 2, rate=1)
            weir.wait(lambda: all(whole_fragments(path.read_bytes()) for path in parts(weir.recordings).values()), 15, "something in each")
            time.sleep(0.5)
            glutton = subprocess.Popen([sys.executable, "-c", GLUTTON, group.folder / "cgroup.procs"],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                assert weir.process.wait(20) == -signal.SIGKILL and group.kills() >= 1
            finally:
                glutton.kill()
                glutton.wait()
                weir.kill()
                recorded.stop()
        finally:
            group.remove()
        for missing in finish_and_count(weir, recorded, home, decode=number == 0, most=most):
            lost[missing] = lost.get(missing, 0) + 1
        shutil.rmtree(home)
    files = sum(lost.values())
    record_property("figure", f"killed for want of memory: {rounds} kills, {files} files, {files} playable; {told(lost)}")


def test_what_only_memory_has_is_not_taken_for_whole(tmp_path):
    """A write failed, and the process that knew of it was killed: the page cache has data that the disk lacks. The stored
    recording ends before that data."""
    needs("mount", "mkfs.ext4", "findmnt")
    with Disk("ext4", 64) as disk:
        weir = Weir("--keep-free", "0MB", folder=tmp_path, recordings=disk.path / "recordings")
        with Standing(weir) as recording:
            weir.process.kill()
            weir.kill()
        part = recording.part
        before = part.read_bytes()
        fragments = whole_fragments(before)
        lost = disk.lose(part, fragments[-1][2] - 1)
        assert part.read_bytes() == before, "memory has it"
        kept = [fragment for fragment in fragments if fragment[2] <= lost.start]
        assert 0 < len(kept) < len(fragments)
        salvage(disk.path / "recordings", tmp_path, "again")
        disk.remount()
        (movie,) = part.parent.iterdir()
        assert sample_counts(movie) == total(kept)
        check_movie(movie)
        checked = tools.run(tools.weir_binary(), "record", "verify", movie)
        assert checked.returncode == 0 and "all checksums right" in checked.stdout, checked.stdout


# MARK: ended and halted

class Crowd:
    """Viewers on one thread: of `stream.mp4`, and others that wait for a playlist's next segment."""

    def __init__(self, weir, names: list[str], count: int):
        self.weir = weir
        self.selector = selectors.DefaultSelector()
        self.there = 0
        #: Responses to the requests that waited for a playlist.
        self.waiting: list[bytearray] = []
        self.address = urllib.parse.urlsplit(weir.web)
        for number in range(count):
            self._ask(f"/live/{names[number % len(names)]}/stream.mp4", None)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _ask(self, path: str, answer: bytearray | None) -> None:
        connection = socket.create_connection((self.address.hostname, self.address.port), timeout=10)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.address.netloc}\r\n\r\n".encode())
        connection.setblocking(False)
        self.there += 1
        self.selector.register(connection, selectors.EVENT_READ, answer)

    def wait_for(self, url: str, count: int) -> None:
        """Adds this many requests that wait for media that does not exist yet."""
        parts = urllib.parse.urlsplit(url)
        for _ in range(count):
            self.waiting.append(bytearray())
            self._ask(f"{parts.path}?{parts.query}", self.waiting[-1])

    def _read(self) -> None:
        while self.there:
            for key, _ in self.selector.select(0.2):
                try:
                    piece = key.fileobj.recv(1 << 18)
                except BlockingIOError:
                    continue
                except OSError:
                    piece = b""
                if key.data is not None:
                    key.data.extend(piece)
                if not piece:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
                    self.there -= 1

    def close(self) -> None:
        for key in list(self.selector.get_map().values()):
            self.selector.unregister(key.fileobj)
            key.fileobj.close()
        self.there = 0


def test_ended_with_many_viewers(tmp_path, record_property):
    """SIGTERM while four streams are recorded and have many viewers: within five seconds the files are movies, playlists end,
    every connection is closed, and weir has exited without an error."""
    many = count("VIEWERS", 200, 1000)
    weir = Weir("--max-viewers", "5000", folder=tmp_path)
    recorded = Recorded(weir, rate=1)
    crowd = Crowd(weir, recorded.names, many - many // 4)
    try:
        index = f"{weir.web}/live/s0/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist")
        top = hls.parse_multivariant(http.fetch(index).text, index)
        url = top.absolute(top.variants[0].uri)
        # On a machine that is busy what they wait for may come before all are there. Then others wait.
        for _ in range(3):
            text = weir.wait(lambda: "#EXT-X-MEDIA-SEQUENCE:" in (text := http.fetch(url).text) and text, 10, "a media playlist")
            ahead = int(re.search(r"#EXT-X-MEDIA-SEQUENCE:(\d+)", text)[1]) + text.count("#EXTINF") + 1
            crowd.wait_for(f"{url}?_HLS_msn={ahead}", many // 4)
            time.sleep(0.3)
            waiting = crowd.waiting[-(many // 4):]
            if not any(waiting):
                break
        wanted = many - many // 4 + len(crowd.waiting)
        assert crowd.there == wanted, f"only {crowd.there} of {wanted} are there"
        took = weir.stop(seconds=5)
        end = time.monotonic() + 5
        while crowd.there and time.monotonic() < end:
            time.sleep(0.05)
        assert crowd.there == 0, "connections are left"
    finally:
        crowd.close()
        recorded.stop()
        weir.kill()
    answered = sum(answer.startswith(b"HTTP/1.1 200 ") and b"#EXT-X-ENDLIST" in answer for answer in waiting)
    assert answered == len(waiting), f"{answered} of {len(waiting)} that waited heard that it is over"
    movies = sorted(weir.recordings.glob("*/*"))
    assert [(path.parent.name, path.suffixes) for path in movies] == [(name, [".mp4"]) for name in recorded.names]
    for path in movies:
        check_movie(path)
    record_property("figure", f"SIGTERM with {many} viewers and {STREAMS} recordings: ended after {took:.2f} s, every "
                    "playlist and file too")


def stream_problems(data: bytes) -> list[str]:
    """Forbidden anywhere in a stream: a number or a time that goes back, a sample without a duration, or with the duration that
    a negative one would give."""
    movie = boxes.read_movie(data[:data.index(b"moof") - 4])
    problems, number, clock = [], -1, {}
    for fragment in boxes.read_segment(data[:whole_fragments(data)[-1][2]], movie).fragments:
        if fragment.sequence <= number:
            problems.append(f"fragment {fragment.sequence} comes after {number}")
        number = fragment.sequence
        for run in fragment.runs:
            if run.tfdt < clock.get(run.track, 0):
                problems.append(f"fragment {number}, track {run.track}: {run.tfdt} comes after {clock[run.track]}")
            clock[run.track] = run.tfdt + sum(sample.duration for sample in run.samples)
            scale = movie.tracks[run.track].timescale
            problems += [f"fragment {number}, track {run.track}: a sample of {sample.duration} ticks"
                         for sample in run.samples if not 0 < sample.duration <= scale]
    return problems


def is_of_the_halt(problem: str, halted: float) -> bool:
    """It does not respond meanwhile. Media that became available is listed when it continues."""
    late = re.search(r"is listed ([\d.]+) s after its availability time", problem)
    return bool(re.search("refused|timed out", problem)) or late is not None and float(late[1]) <= halted + 2.5


def came(viewer: Viewer, since: float, seconds: float) -> int:
    """Frames that a viewer received completely within this time after a moment."""
    def length(moment: float) -> int:
        return max((size for at, size in viewer.arrivals if at <= moment), default=0)

    first, last = length(since), length(since + seconds)
    return sum(counts.get(1, 0) for _, counts, end in viewer.fragments() if first < end <= last)


def test_halted_for_a_while(tmp_path, record_property):
    """A virtual machine is paused: no peer counts as gone; playlists, manifests and streams stay correct; the recording has
    every frame. weir's own source continues with the present frame, without the frames of the pause."""
    halted = 30 if TORTURE else 5.5
    weir = Weir("--target-duration", "2", "--test-pattern", "demo", folder=tmp_path)
    watches = [hls.Watch(f"{weir.web}/live/{name}/index.m3u8", every=0.1) for name in ("cam", "demo")]
    watches += [dash.Watch(f"{weir.web}/live/{name}/manifest.mpd", f"{weir.web}/time") for name in ("cam", "demo")]
    # It is sent at real-time pace, and faster while it is behind.
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam")
    viewers = {}
    try:
        weir.wait(lambda: list(weir.recordings.glob("cam/*.part.mp4")), 15, "it is recorded")
        viewers = {name: Viewer(weir, name, halted + 20) for name in ("cam", "demo")}
        for name, viewer in viewers.items():
            weir.wait(lambda viewer=viewer: len(viewer.fragments()) > 3, 15, f"a viewer of {name}")
        weir.send(signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(halted)  # real time: it is halted for so long
        lines = len(weir.lines)
        weir.send(signal.SIGCONT)
        went_on = time.monotonic()
        halted = went_on - began
        publisher.wait(60)
        weir.wait(lambda: list(weir.recordings.glob("cam/*Z.mp4")), 20, "it is finished")
        weir.wait(lambda: came(viewers["demo"], went_on, 60) >= 60, 20, "two seconds of the test source")
        frames, passed = came(viewers["demo"], went_on, 60), time.monotonic() - went_on
        said = [line for _, line in weir.lines[lines:]]
        for watch in watches:
            watch.stop()
        for viewer in viewers.values():
            viewer.close()
        weir.stop()
    finally:
        publisher.kill()
        for viewer in viewers.values():
            viewer.close()
        weir.kill()
    (movie,) = weir.recordings.glob("cam/*")
    check_movie(movie)
    film = [packet.digest for packet in packets.probe(sources.source("h264-30"))["video"]]
    assert [packet.digest for packet in packets.probe(movie)["video"]] == film
    for watch, name in zip(watches, ("cam", "demo", "cam", "demo")):
        assert len(watch.states) >= 2
        problems = [problem for problem in watch.problems if not is_of_the_halt(problem, halted)]
        assert hls.unexplained(problems, weir.text(), name) == []
    for name, viewer in viewers.items():
        nothing_wrong(stream_problems(bytes(viewer.data)))
    texts = [state.text for _, state in watches[0].states]
    assert not any("#EXT-X-DISCONTINUITY\n" in text for text in texts), "nothing was interrupted"
    assert all(segment.duration > 0 for watch in watches[:2] for _, state in watch.states for segment in state.segments)
    assert came(viewers["cam"], went_on, 60), "its viewer's connection is the one of before"
    # A second has 30 of them, and the part in progress comes at once. The halt alone would have 165.
    assert frames <= 30 * passed + 40, f"{frames} frames within {passed:.1f} s"
    assert len(said) < 30, "\n".join(said)
    record_property("figure", f"halted for {halted:.1f} s: {len(film)} of {len(film)} frames recorded, {len(texts)} playlists, "
                    f"none wrong; the test source's frames in the {passed:.1f} s after it: {frames}")


# MARK: within finalising and salvage

#: The system calls of finishing a file; weir is killed on entering one of them.
STEPS = ("fdatasync", "fsync", "fallocate", "renameat", "ftruncate", "pwrite64", "copy_file_range", "unlinkat", "ioctl",
         "statfs,fstatfs")


def places() -> list[pathlib.Path]:
    """Folders on file systems that can insert space, and on ones that need a copy."""
    return [pathlib.Path("/var/tmp"), pathlib.Path("/dev/shm")]


@pytest.fixture(scope="module", params=places(), ids=lambda path: path.name)
def kind_of_place(request):
    return request.param


@pytest.fixture
def place(kind_of_place):
    folder = kind_of_place / f"weir-crash-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def leave_recordings(folder: pathlib.Path, home: pathlib.Path, streams: int = 3) -> dict[str, dict[int, int]]:
    """Recordings as a killed weir leaves them, and their complete samples."""
    weir = Weir(folder=home, recordings=folder)
    # At its pace: what comes faster waits for a second at first, and all of that is in them.
    recorded = Recorded(weir, streams, rate=1)
    weir.wait(lambda: all(len(viewer.fragments()) >= 15 for viewer in recorded.viewers.values()), 30, "three seconds of each")
    weir.process.kill()
    weir.kill()
    recorded.stop()
    return {name: total(whole_fragments(path.read_bytes())) for name, path in parts(folder).items()}


@pytest.fixture(scope="module")
def left_behind(kind_of_place, tmp_path_factory):
    """Three recordings that a killed weir made at such a place, copied to another, and their complete samples."""
    needs("strace", root=False)
    home = tmp_path_factory.mktemp("behind")
    (home / "first").mkdir()
    made = kind_of_place / f"weir-crash-left-{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir()
    try:
        expected = leave_recordings(made, home / "first")
        shutil.copytree(made, home / "pristine")
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return home / "pristine", expected


def start_and_be_killed(home: pathlib.Path, folder: pathlib.Path, step: str, when: int) -> str:
    """Starts weir so that it is killed on entering that call in one of its threads for the `when`th time."""
    home.mkdir()
    wrapper = ("strace", "-D", "-f", "-qq", "-o", str(home / "trace"), "-e", f"trace={step}",
               "-e", f"inject={step}:signal=KILL:when={when}")
    try:
        weir = Weir(folder=home, recordings=folder, wrapper=wrapper, listeners=("http",))
    except AssertionError as error:
        if "ended at start with -9" in str(error) or "(exit code -9)" in str(error):
            return "killed"
        raise
    end = time.monotonic() + 10
    while weir.process.poll() is None and parts(folder) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.3)
    ended = weir.process.poll() is not None
    weir.kill()
    return "killed" if ended else "survived"


@pytest.mark.parametrize("third", range(3))
def test_killed_within_salvage(place, left_behind, third, tmp_path, record_property):
    """Killed at each system call that finishes leftovers, and once more at another: the movies are the same."""
    pristine, expected = left_behind
    numbers = range(third, count("SALVAGES", 6, 200), 3)

    def kill_twice(number: int) -> int:
        """The number of kills that met a call."""
        chance, killed = random.Random(11 + number), 0
        folder = place / f"{number}"
        shutil.copytree(pristine, folder)
        for attempt in range(2):
            step = STEPS[number % len(STEPS)] if attempt == 0 else chance.choice(STEPS)
            when = 1 + number // len(STEPS) % 6 if attempt == 0 else chance.randint(1, 4)
            outcome = start_and_be_killed(tmp_path / f"k{number}-{attempt}", folder, step, when)
            killed += outcome == "killed"
        salvage(folder, tmp_path, number)
        movies = sorted(folder.glob("*/*"))
        assert [path.suffixes for path in movies] == [[".mp4"]] * len(expected), f"{movies} after {step} {when}"
        for path in movies:
            assert sample_counts(path) == expected[path.parent.name]
            check_movie(path, decode=False)
        shutil.rmtree(folder)
        return killed

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        killed = sum(pool.map(kill_twice, numbers))
    assert killed > len(numbers) / 4, "hardly any of them met a call"
    record_property("figure", f"killed within salvage ({place.parent}, {third + 1} of 3): {killed} kills in {len(numbers)} rounds of "
                    f"{len(expected)} files, all finished once, none lost a whole fragment")


#: System calls that finish a file, with inserted space or with a copy, and the number of the call on which weir is killed.
#: An ordinary run tries the first ones.
INSERTING = [("pwrite64", 2), ("renameat", 1), ("fdatasync", 1), ("fallocate", 1), ("pwrite64", 1), ("fdatasync", 2),
             ("fsync", 1), ("ftruncate", 1)]
COPYING = [("copy_file_range", 1), ("renameat", 1), ("unlinkat", 3), ("fdatasync", 1), ("pwrite64", 1), ("fsync", 1),
           ("ioctl", 1), ("fallocate", 1), ("unlinkat", 1)]


@pytest.mark.parametrize("third", range(3))
def test_killed_within_finalising(place, third, tmp_path, record_property):
    """A recording is stopped, and weir is killed at one of the system calls that finish its file. The next start makes one movie
    with every sample."""
    needs("strace", root=False)
    numbers = range(third, count("FINALS", 3, 100), 3)
    steps = COPYING if place.parent.name == "shm" else INSERTING

    def kill_once(number: int) -> None:
        folder, home = place / f"{number}", tmp_path / f"{number}"
        home.mkdir()
        step, when = steps[number % len(steps)]
        weir = Weir("--record-sync", "200ms", folder=home, recordings=folder, environment={"WEIR_ADMIN_TOKEN": TOKEN})
        try:
            with Standing(weir, token=TOKEN) as recording:
                part = recording.part
                temporary = part.with_name(part.name.replace(".part.mp4", ".tmp"))
                with Faults(weir, home / "trace", f"{step}:signal=KILL:when={when}",
                            paths=(part, part.parent, temporary)):
                    recording.end()
                    try:
                        weir.process.wait(10)
                    except subprocess.TimeoutExpired:
                        pytest.fail(f"{step} {when} is not met within finishing")
        finally:
            weir.kill()
        salvage(folder, tmp_path, f"f{number}")
        left = sorted(folder.glob("*/*"))
        assert len(left) == 1 and left[0].suffixes == [".mp4"], f"{left} after {step} {when}"
        assert sample_counts(left[0]) == recording.samples, f"after {step} {when}"
        check_movie(left[0])
        shutil.rmtree(folder, ignore_errors=True)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(kill_once, numbers))
    record_property("figure", f"killed within finalising ({place.parent}, {third + 1} of 3): {len(numbers)} kills, one movie with every sample "
                    "each")


def test_the_server_answers_while_leftovers_are_finished(place, left_behind, tmp_path, record_property):
    """A disk with slow reads: the server serves at once, reports the leftovers, records beside them, and reads each head
    once."""
    pristine, samples = left_behind
    expected = {name: samples[name] for name in ("s0", "s1")}
    film = flv.read(sources.flv("short"))

    def record_beside(weir: Weir, left: dict[str, pathlib.Path]) -> bool:
        """False if what was left was finished before another recording began: two seconds are not enough for a machine that is busy."""
        told = weir.json("/api/v1/recordings")["recordings"]
        is_there = all(path.exists() for path in left.values())
        # A program would begin too late.
        with RawRTMP(weir.rtmp).start("s0") as client:
            # At its pace: what comes faster waits until it is known when it was made.
            client.play_out(film, until=1.5)
            weir.wait(lambda: len(list(place.glob("s0/*.part.mp4"))) == 2 or not left["s0"].exists(), 15, "another is recorded beside it")
            is_there = is_there and left["s0"].exists()
            client.finish()
        if is_there:
            assert {entry["stream"] for entry in told} == set(expected)
            assert all(0 <= entry["finishing"] < 1 for entry in told)
        return is_there

    for number in range(3):
        shutil.rmtree(place)
        home = tmp_path / f"{number}"
        home.mkdir()
        trace = home / "trace"
        for name in expected:
            shutil.copytree(pristine / name, place / name)
        left = parts(place)
        fragments = {path: len(whole_fragments(path.read_bytes())) for path in left.values()}
        watched = [word for path in left.values() for word in ("-P", str(path))]
        wrapper = ("strace", "-D", "-f", "-qq", "-y", "-o", str(trace), *watched, "-e", "trace=pread64", "-e",
                   "inject=pread64:delay_enter=120000")
        began = time.monotonic()
        weir = Weir(folder=home, recordings=place, wrapper=wrapper)
        answered, is_shown = time.monotonic() - began, False
        try:
            is_shown = record_beside(weir, left)
        finally:
            if not is_shown:
                weir.kill()
        if is_shown:
            break
    assert is_shown, "there is nothing slow about it: nothing is shown here"
    try:
        weir.wait(lambda: not parts(place), 120, "all is finished")
        took = time.monotonic() - began
        weir.wait(lambda: {entry["state"] for entry in weir.json("/api/v1/recordings")["recordings"]} == {"completed"}, 15,
                  "it is told")
        weir.stop(seconds=15)
    finally:
        weir.kill()
    said = weir.text("err")
    for path, there in fragments.items():
        movie = path.with_name(path.name.replace(".part.mp4", ".mp4"))
        assert sample_counts(movie) == expected[path.parent.name]
        check_movie(movie)
        reads = trace.read_text().count(f"{path}>")
        if place.parent.name != "shm":  # where it is copied, it is looked through once more before
            assert reads <= 2 * there + 20, f"{reads} reads for {there} fragments"
        finished = re.search(rf"finished a recording.*{re.escape(str(movie))}", said)
        assert finished and said.index(" started") < finished.start(), f"{movie} was finished before weir served"
    record_property("figure", f"leftovers on a disk of 120 ms a read ({place.parent}): the server answers after "
                    f"{answered:.1f} s, they are finished after {took:.1f} s")


# MARK: within `weir record finalize`

#: Its system calls, and the number of the call on which it is killed.
FINALIZING = [("fdatasync", 1), ("fdatasync", 2), ("fdatasync", 3), ("fallocate", 1), ("pwrite64", 1), ("pwrite64", 2),
              ("ioctl", 1), ("copy_file_range", 1), ("ftruncate", 1), ("renameat", 1), ("fsync", 1), ("unlinkat", 1),
              ("unlinkat", 2)]


@pytest.fixture(params=["/var/tmp", "/dev/shm", "ext4 with blocks of 1 KiB"])
def any_place(request):
    """Folders on file systems that insert space in units of 4 KiB, that need a copy, and that insert in units of 1 KiB."""
    if not request.param.startswith("/"):
        with Disk("ext4", 64, "-b", "1024") as disk:
            yield disk.path
        return
    folder = pathlib.Path(request.param) / f"weir-finalize-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def fragmented(tmp_path_factory):
    """A fragmented file by ffmpeg, and one by a killed weir: their bytes and samples."""
    home = tmp_path_factory.mktemp("fragmented")
    film = home / "film.mp4"
    made = tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("short"), "-c", "copy", "-movflags",
                     "frag_keyframe+empty_moov+default_base_moof", film)
    assert made.returncode == 0, made.stderr
    (home / "left").mkdir()
    leave_recordings(home / "recordings", home / "left", streams=1)
    (part,) = (home / "recordings").glob("*/*.part.mp4")
    return {"film.mp4": film.read_bytes(), part.name: part.read_bytes()}


def test_killed_while_finalizing_by_hand(any_place, fragmented, record_property):
    """`weir record finalize` is killed at each of its system calls: the same command finishes any such file."""
    needs("strace", root=False)

    def kill_once(name: str, step: str, when: int) -> tuple[bool, bool]:
        """Whether it was killed, and whether its head was missing then."""
        data = fragmented[name]
        folder = any_place / f"{name}-{step}-{when}"
        (folder / "cam").mkdir(parents=True)
        path = folder / "cam" / name
        path.write_bytes(data)
        done = subprocess.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={step}", "-e",
             f"inject={step}:signal=KILL:when={when}", tools.weir_binary(), "record", "finalize", path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        begins_with_zeros = path.exists() and path.read_bytes()[:8] == bytes(8)
        again = tools.run(tools.weir_binary(), "record", "finalize", folder if ".part." in name else path)
        assert again.returncode == 0, f"{name} after {step} {when}: {again.stdout}"
        (movie,) = (folder / "cam").iterdir()
        assert sample_counts(movie) == total(whole_fragments(data)), f"{name} after {step} {when}"
        check_movie(movie, decode=False)
        shutil.rmtree(folder)
        return done.returncode != 0, begins_with_zeros

    # Mostly they wait for the disk and for strace.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [pool.submit(kill_once, name, step, when) for name in fragmented for step, when in FINALIZING]
    killed = sum(one.result()[0] for one in done)
    begins_with_zeros = sum(one.result()[1] for one in done)
    assert killed >= len(FINALIZING), "hardly any of them met a call"
    if any_place.parts[:2] != ("/", "dev"):
        assert begins_with_zeros >= 2, "none was killed while its head was missing"
    record_property("figure", f"killed within weir record finalize ({any_place.parent}): {killed} kills, each file "
                    "finished by the next run")


@pytest.mark.parametrize("step,when,error", [
    ("fallocate", 1, "ENOSPC"), ("pwrite64", 1, "ENOSPC"), ("pwrite64", 2, "EDQUOT"), ("fdatasync", 2, "EIO"),
    ("fdatasync", 3, "EIO")])
def test_a_finalizing_that_fails_leaves_the_file_as_it_was(place, fragmented, step, when, error):
    """The disk is full after space was inserted, or while a copy is made. The inserted space or the copy is removed again, the
    reason is reported, and the same command finishes the file when the disk has space."""
    needs("strace", root=False)
    if place.parent.name == "shm" and (step, when) in (("fallocate", 1), ("fdatasync", 3), ("pwrite64", 2)):
        pytest.skip("skipped: a copy takes fewer of these calls")
    for name, data in fragmented.items():
        path = place / "cam" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        done = subprocess.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={step}", "-e",
             f"inject={step}:error={error}:when={when}", tools.weir_binary(), "record", "finalize", path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        said = done.stdout.decode()
        assert done.returncode == 1 and os.strerror(getattr(errno, error)) in said, said
        whole = whole_fragments(data)[-1][2]
        assert path.read_bytes()[:whole] == data[:whole] and [path] == list(path.parent.iterdir()), said
        assert tools.run(tools.weir_binary(), "record", "finalize", path).returncode == 0
        (movie,) = path.parent.iterdir()
        assert sample_counts(movie) == total(whole_fragments(data))
        movie.unlink()


# MARK: power

@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_power_cut(kind, tmp_path, record_property):
    """The power fails while recording: at most --record-sync and one part are missing, and media reported as stored is there.
    Every other time nothing else is recorded whose syncs would make it durable as well, and the power fails as soon as it was
    reported."""
    needs("xfs_io", "strace", f"mkfs.{kind}")
    rounds = count("CUTS", 2, 100)
    worst = 0.0
    stored = 0
    chance = random.Random(17)
    with Disk(kind, 400) as disk:
        for number in range(rounds):
            home = tmp_path / f"{number}"
            home.mkdir()
            weir = Weir("--keep-free", "0MB", folder=home, recordings=disk.path / "recordings")
            done = publishers.ffmpeg("short", f"{weir.rtmp}/live/done", rate=4)
            alone = number % 2 == 0
            recorded = Recorded(weir, streams=0 if alone else 2, rate=1)
            weir.wait(lambda: "done: recorded " in weir.text("err"), 15, "it is stored", every=0.001)
            if not alone:
                time.sleep(chance.uniform(1.2, 3.2))
            lags = {name: Metrics(weir)("weir_recording_lag_seconds", stream=name) for name in recorded.names}
            seen = {name: viewer.fragments() for name, viewer in recorded.viewers.items()}
            disk.cut_power()
            weir.process.kill()
            weir.kill()
            done.kill()
            recorded.stop()
            disk.restart()
            salvage(disk.path / "recordings", home, "a")
            movies = {path.parent.name: path for path in (disk.path / "recordings").glob("*/*.mp4")}
            assert "done" in movies, "it was told to be stored"
            assert sample_counts(movies["done"])[1] == 120
            check_movie(movies["done"], decode=False)
            stored += 1
            for name in recorded.names:
                assert name in movies, f"nothing is left of {name}, of which {len(seen[name])} parts were sent"
                check_movie(movies[name])
                # The film has 30 frames per second. The viewer began with the newest key frame.
                data = movies[name].read_bytes()
                kept = whole_fragments(data[data.index(b"ftyp", 8) - 4:])[-1][0]
                missing = [counts.get(1, 0) for sequence, counts, _ in seen[name] if sequence > kept]
                worst = max(worst, sum(missing) / 30)
                # What waits for a disk that is busy is missing, too, and told: seconds at most.
                most = 1.0 + min(lags[name], 3) + 2 * 0.2 + 0.3
                assert sum(missing) / 30 <= most, f"{name}: {sum(missing) / 30:.2f} s are missing, told {lags[name]:.2f} s"
            shutil.rmtree(disk.path / "recordings")
            shutil.rmtree(home)
    record_property("figure", f"power cuts on {kind}: {rounds}; at most {worst:.2f} s of a running recording missing; "
                    f"{stored} of {stored} stored recordings there")
