"""The n-th call for a descriptor, for memory or to a disk fails, while publishers, viewers, recordings, replay and a ladder
run. Only the operation of that call may end, and it must recover."""

import contextlib
import itertools
import os
import random
import re
import threading
import time

import pytest

from harness import publishers, tools
from harness.calls import FAULTS, Calls
from harness.followers import Crowd
from harness.weir import Weir

LONG = os.environ.get("WEIR_CALLS") == "long"
#: Which calls of a kind fail: the first, the second … after a time without such calls.
NUMBERS = range(1, int(os.environ.get("WEIR_CALLS_COUNT", 300)) + 1) if LONG else (1, 2, 7)
#: Kinds of which a running server makes no call: NIO makes its event loops at the start, and nothing is duplicated.
ONLY_AT_START = ("event", "duplicate")
#: Kinds that no stream needs: a recording, a replay or a download fails, and its stream goes on.
ENDS_NO_STREAM = ("read", "sync", "name")
#: Seconds to wait for a call.
PATIENCE = 8 if LONG else 2
NAMES = ("a", "b", "c")
TOKEN = "a-token-of-this-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


class Scene:
    """A server with all activities that take descriptors, memory and disks."""

    def __init__(self, folder, calls: Calls):
        folder.mkdir()
        self.calls = calls
        self.weir = Weir("--ladder", "90p@100k", "--rewind", "1m", "--window", "6s", "--record-sync", "200ms",
                         "--keep-free", "0MB", "--record-max-files", "100000", folder=folder,
                         environment={"WEIR_ADMIN_TOKEN": TOKEN, **calls.environment})
        self.publishers = {name: publishers.Returning("short", f"{self.weir.rtmp}/live/{name}") for name in NAMES}
        self.over = False
        for name in NAMES:
            self.weir.wait_state(name, "live")
        crowd = Crowd(f"{self.weir.web}/live/a/{self._epoch('a')}/video/index.m3u8", 5)
        self._threads = [threading.Thread(target=self._ask, args=(name,), daemon=True) for name in NAMES]
        self._threads.append(threading.Thread(target=self._come_and_go, daemon=True))
        self._threads.append(threading.Thread(target=crowd.watch, args=(time.monotonic() + 7200,), daemon=True))
        for thread in self._threads:
            thread.start()

    def _epoch(self, name: str) -> str:
        return re.search(r"(\w+)/\w+/index\.m3u8", self.weir.get(f"/live/{name}/index.m3u8").good().text)[1]

    def _come_and_go(self) -> None:
        """A short stream every few seconds, each with a name of its own: with its memory, its worker and its recording."""
        for number in itertools.count():
            if self.over:
                return
            publisher = publishers.ffmpeg("short", f"{self.weir.rtmp}/live/short-{number}", rate=2)
            publisher.outcome(10)
            # An address without a key may use so many new names a minute.
            time.sleep(2)  # real time: names of an address are counted by the minute

    def _ask(self, name: str) -> None:
        """Requests everything that a stream has, each on its own connection. Its recordings stop and start."""
        for turn in itertools.count():
            if self.over:
                return
            try:
                recorded = self.weir.recordings_of(name)
                done = [f"/recordings/{name}/{entry['file'][:-4]}" for entry in recorded if entry["state"] == "completed"]
                some = random.choice(done) if done else f"/recordings/{name}/none"
                epoch = self._epoch(name)
                for path in (f"/live/{name}/{epoch}/video/index.m3u8", f"/live/{name}/{epoch}/video/dvr.m3u8",
                             f"/live/{name}/manifest.mpd", f"/live/{name}/thumbnail.jpg", f"{some}/video/index.m3u8",
                             f"{some}/video/0.m4s", f"{some}.jpg", f"{some}.mp4", "/metrics", "/",
                             f"/api/v1/recordings/{name}/{some.split('/')[-1]}.mp4/clip?from=0&to=1"):
                    self.weir.get(path, timeout=5)
                if turn % 10 in (0, 1):
                    action = ("stop", "start")[turn % 10]
                    self.weir.get(f"/api/v1/streams/{name}/recording/{action}", method="POST", headers=ADMIN, timeout=5)
                if len(done) > 3:
                    self.weir.get(f"/api/v1/recordings/{name}/{recorded[-1]['file']}", method="DELETE", headers=ADMIN)
                time.sleep(0.05)
            except (OSError, AssertionError, ValueError, KeyError, IndexError):
                time.sleep(0.05)

    @property
    def starts(self) -> int:
        return sum(publisher.starts for publisher in self.publishers.values())

    def newest(self) -> dict[str, tuple[int, int]]:
        """Next segment and part of each live stream."""
        streams = {stream["name"]: stream["state"] for stream in self.weir.json("/api/v1/streams")["streams"]}
        live = [name for name in NAMES if streams.get(name) == "live"]
        lists = {name: self.weir.get(f"/live/{name}/{self._epoch(name)}/video/index.m3u8").good().text for name in live}
        hints = {name: re.search(r'PRELOAD-HINT:TYPE=PART,URI="(\d+)\.(\d+)', text) for name, text in lists.items()}
        return {name: (int(hint[1]), int(hint[2])) for name, hint in hints.items() if hint}

    def objection(self, kind: str, error: str, nth: int) -> str | None:
        """The problems after that call failed, or None. Raises if there are not that many calls."""
        before = self.starts
        self.calls.arm(kind, error, nth)
        end = time.monotonic() + PATIENCE
        while not self.calls.has_failed and time.monotonic() < end and self.weir.process.poll() is None:
            time.sleep(0.01)
        has_failed = self.calls.has_failed
        self.calls.disarm()
        time.sleep(0.25)
        if self.weir.process.poll() is not None:
            return f"the server ended with {self.weir.process.returncode}: {self.weir.tail(5)}"
        if not has_failed:
            raise StopIteration

        def goes_on() -> dict[str, tuple[int, int]]:
            # A stream that begins anew has no list for a moment.
            with contextlib.suppress(AssertionError, OSError, TypeError):
                return self.newest()
            return {}

        def is_there() -> bool:
            # A failed call may end a connection, and on a busy machine a response takes longer.
            with contextlib.suppress(OSError):
                return self.weir.get("/healthz", timeout=2).status == 200
            return False

        try:
            self.weir.wait(is_there, 10, "the server answers")
            first = self.weir.wait(lambda: len(now := goes_on()) == len(NAMES) and now, 20, "all streams are live")
            self.weir.wait(lambda: len(now := goes_on()) == len(NAMES) and all(now[n] > first[n] for n in NAMES), 20,
                           "all go on")
        except (AssertionError, OSError, ValueError) as problem:
            return f"{str(problem).splitlines()[0]}\n{self._complaints()}"
        if self.starts > before + (kind not in ENDS_NO_STREAM):
            return f"{self.starts - before} publishers were ended\n{self._complaints()}"
        return None

    def _complaints(self) -> str:
        return "\n".join([line for line in self.weir.text().splitlines() if " notice " not in line][-8:])

    def stop(self) -> None:
        self.over = True
        for publisher in self.publishers.values():
            publisher.stop()
        self.weir.kill()


class Scenes:
    """The scene of all tests here. One whose server has ended is replaced."""

    def __init__(self, folder):
        self._folder, self._calls, self._count = folder, Calls(folder), 0
        self.folders = []
        self.renew()

    def renew(self) -> None:
        if self._count:
            self.scene.stop()
        self.folders.append(self._folder / f"scene{self._count}")
        self._count += 1
        self.scene = Scene(self.folders[-1], self._calls)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    made = Scenes(tmp_path_factory.mktemp("calls"))
    yield made
    made.scene.stop()


@pytest.mark.parametrize("kind, error", FAULTS)
def test_the_nth_call_fails(scenes, kind, error, record_property):
    objections, failed, most = [], 0, max(NUMBERS)
    for turn in NUMBERS:
        # Rare calls fail as often, with as many numbers as there are.
        nth = (turn - 1) % most + 1
        try:
            objection = scenes.scene.objection(kind, error, nth)
        except StopIteration:
            most = nth - 1
            if most == 0:
                break
            continue
        failed += 1
        if objection:
            objections.append(f"{error} at call {nth} ({kind}): {objection}")
            print(objections[-1], flush=True)
            if scenes.scene.weir.process.poll() is not None:
                scenes.renew()
    print(f"{error} ({kind}): {failed} calls", flush=True)
    record_property("figure", f"calls that fail, {error} ({kind}): {failed}")
    assert not objections, "\n".join(objections)
    assert not LONG or (failed == 0) == (kind in ONLY_AT_START)


def test_the_recordings_of_all_this_are_whole(scenes):
    scenes.scene.over = True
    scenes.scene.weir.stop(seconds=20)
    movies = sorted(movie for folder in scenes.folders for movie in folder.glob("recordings/*/*.mp4"))
    assert movies
    verified = tools.run(tools.weir_binary(), "record", "verify", *movies)
    assert verified.returncode == 0, verified.stdout + verified.stderr
