"""Recordings on disks that are full, slow, frozen, broken or removed. The live stream continues without a stall, written
media is kept, the reason is reported, and recording resumes when the disk works again.

The server tries again every two seconds, and looks for room every few. So most of these are tried at the same time, each with
a disk and a server of its own. WEIR_TORTURE, set by `make torture`, tries more of the same.
"""

import contextlib
import os
import pathlib
import re
import shutil
import threading
import time

import pytest

from harness import publishers, sources, tools
from harness.disks import Disk, Faults, command, needs
from harness.fragments import Standing, Viewer, check_movie, sample_counts, whole_fragments
from harness.metrics import Metrics
from harness.together import Case, Together
from harness.weir import Weir

TORTURE = "WEIR_TORTURE" in os.environ

#: A viewer without data for this many seconds counts as stalled: alone on the machine, and beside other tests.
STALL, STALL_BESIDE_OTHERS = 1.5, 5
#: Seconds to wait for what the server does at its next try.
PATIENCE = 30

TRIED = Together()


class Scene:
    """One stream that is published, recorded and watched, on a disk that will fail."""

    def __init__(self, start_home: pathlib.Path, folder: pathlib.Path, *flags, film: str = "loop", rate: float = 1,
                 wrapper: tuple[str, ...] = (), environment: dict[str, str] | None = None):
        flags = ("--reconnect-window", "1s", "--segment-duration", "500ms", *flags)
        flags = flags if "--keep-free" in flags else ("--keep-free", "0MB", *flags)
        self.weir = Weir(*flags, folder=start_home, recordings=folder, wrapper=wrapper, environment=environment)
        self.publisher = publishers.ffmpeg(film, f"{self.weir.rtmp}/live/cam", loop=-1, rate=rate)
        self.weir.wait_state("cam", "live", "starting")
        self.weir.wait(lambda: (self.weir.stream("cam") or {}).get("bitrate"), 15, "the first segment is there")
        self.viewer = Viewer(self.weir, "cam")
        self.began = time.monotonic()

    @property
    def recording(self) -> dict:
        return self.weir.stream("cam")["recording"]

    def wait_recording(self, state: str) -> dict:
        return self.weir.wait(lambda: self.recording if self.recording["state"] == state else None, PATIENCE,
                              f"the recording is {state}")

    def wait_recorded(self, seconds: float = 0.5) -> None:
        """Until this much media is in a file that is being written."""
        self.weir.wait(lambda: any(r["state"] == "running" and r["seconds"] >= seconds for r in self.weir.recordings_of("cam")),
                       PATIENCE, f"{seconds} s are recorded")

    @property
    def stall(self) -> float:
        """The longest time without data for the viewer, in seconds."""
        return self.viewer.longest_pause(self.began + 0.5)

    def end(self) -> list[pathlib.Path]:
        """Ends the stream and the server, and returns the finished files."""
        self.publisher.interrupt()
        self.publisher.outcome(10)
        self.weir.wait_state("cam", "ended", seconds=20)
        self.weir.wait(lambda: not list(self.weir.recordings.glob("*/*.part.mp4")), 20, "the files are finished")
        self.viewer.close()
        self.weir.stop()
        return sorted(self.weir.recordings.glob("*/*.mp4"))

    def finish(self, hole: float = 0) -> list[pathlib.Path]:
        """Ends the stream and returns the finished files. They are movies of which every frame decodes. `hole`: seconds that are
        missing at one position, as was told."""
        movies = self.end()
        for movie in movies:
            check_movie(movie, hole=hole)
        return movies

    def close(self) -> None:
        if not self.publisher.process.stderr.closed:
            self.publisher.kill()
        self.viewer.close()
        self.weir.kill()


def scene(case: Case, folder: pathlib.Path, *flags, **options) -> Scene:
    """Makes the scene of a case, which ends it."""
    made = Scene(case.folder("home"), folder, *flags, **options)
    case.stack.callback(made.close)
    return made


def seconds_of(path: pathlib.Path) -> float:
    return sample_counts(path)[1] / 30


@TRIED.case("ext4", name="finishing needs no copy on ext4")
@TRIED.case("xfs", name="finishing needs no copy on xfs")
@TRIED.case("btrfs", name="finishing needs no copy on btrfs")
def finishing_needs_no_copy(case, kind):
    """Space is inserted or blocks are shared, depending on the file system."""
    with Disk(kind, 400) as disk:
        stage = scene(case, disk.path / "recordings", rate=2)
        stage.wait_recorded(1)
        movies = stage.finish()
        assert len(movies) == 1
        assert "finishing it needs a copy" not in stage.weir.text()
        assert re.search("recording stops: the stream ended", stage.weir.text())
        assert re.search("recorded .* to ", stage.weir.text())


@TRIED.case(name="a full disk")
def a_full_disk(case):
    """Reported, also by an event. The file is finished with the space that was reserved for it. Recording resumes within ten
    seconds of free space."""
    with Disk("ext4", 128) as disk:
        stage = scene(case, disk.path / "recordings", film="heavy")
        stage.wait_recorded(1)
        ballast = disk.fill(leaving_megabytes=1)
        # The space reserved for the movie header and for the next seconds of media is used first.
        filler = disk.path / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 65536)
            except OSError:
                pass
        filled = time.monotonic()
        told = stage.wait_recording("failed")
        took = time.monotonic() - filled
        assert "No space left" in told["reason"] and "free space" in told["reason"]
        # It is told before the file is finished, and counted after that.
        stage.weir.wait(lambda: Metrics(stage.weir)("weir_recordings_total", event="failed") == 1, 10, "it is counted")
        stage.weir.wait(lambda: not list(stage.weir.recordings.glob("cam/*.part.mp4")), 10, "it is finished")
        assert list(stage.weir.recordings.glob("cam/*.mp4")), "from the reserve"
        ballast.unlink()
        filler.unlink()
        freed = time.monotonic()
        stage.wait_recording("running")
        resumed = time.monotonic() - freed
        assert resumed <= 10
        stage.wait_recorded()
        stall = stage.stall
        assert Metrics(stage.weir)("weir_recordings_total", event="failed") == 1
        movies = stage.finish()
        assert len(movies) == 2
        assert stall < STALL_BESIDE_OTHERS
    case.figure(f"full disk (ext4): told {took:.1f} s after the last byte was taken, finished from the "
                f"reserve, on again {resumed:.1f} s after there was room, longest pause of a viewer {stall:.2f} s")


@TRIED.case(name="below the free space to keep")
def below_the_free_space_to_keep(case):
    with Disk("ext4", 200) as disk:
        stage = scene(case, disk.path / "recordings", "--keep-free", "50MB")
        stage.wait_recorded()
        ballast = disk.fill(leaving_megabytes=40)
        assert "--keep-free" in stage.wait_recording("failed")["reason"]
        ballast.unlink()
        stage.wait_recording("running")
        stage.wait_recorded()
        assert len(stage.finish()) == 2


@TRIED.case((), name="what is evicted frees its room")
@TRIED.case(("--rewind", "1h"), name="what is evicted frees its room with rewind")
def what_is_evicted_frees_its_room(case, flags):
    """Finished recordings stay open for replay. Removed ones must be closed; otherwise the disk stays full, and all of them are
    removed."""
    floor = 40_000_000
    with Disk("ext4", 120) as disk:
        stage = scene(case, disk.path / "recordings", "--keep-free", f"{floor}B", "--when-full", "evict", "--record-split",
                      "each:8s", *flags, film="megabyte", rate=8)

        def removed() -> int:
            return sum("nearly as full as --keep-free allows" in line for _, line in stage.weir.lines)

        # Before the first goes, there are some.
        stage.weir.wait(lambda: removed() >= 1, 60, "the oldest is removed")
        least_free, fewest, states = 1 << 60, 1 << 30, set()
        begun, end = removed(), time.monotonic() + 60
        while removed() < begun + 6:
            assert time.monotonic() < end, f"only {removed() - begun} more were removed:\n{stage.weir.tail()}"
            state = os.statvfs(disk.path)
            least_free = min(least_free, state.f_bavail * state.f_frsize)
            fewest = min(fewest, len(list(stage.weir.recordings.glob("cam/*Z*.mp4"))))
            states.add(stage.recording["state"])
            time.sleep(0.1)
        assert states == {"running"}, stage.weir.tail()
        assert fewest >= 4, f"only {fewest} recordings were left"
        assert least_free > floor - 15_000_000, f"only {least_free} bytes were free"
        assert "the disk has not gained free space" not in stage.weir.text()

        def kept() -> list[str]:
            return [name for name in open_files(stage.weir) if name.endswith("(deleted)") and ".mp4" in name]

        stage.weir.wait(lambda: len(kept()) <= 1, 10, "removed files are closed")


def open_files(weir) -> list[str]:
    names = []
    for link in pathlib.Path(f"/proc/{weir.process.pid}/fd").iterdir():
        try:
            names.append(os.readlink(link))
        except OSError:
            pass
    return names


@TRIED.case(name="while removed recordings are still read the others stay")
def while_removed_recordings_are_still_read_the_others_stay(case):
    """The oldest one is being downloaded slowly: removing it frees nothing, and removing the others would not help either."""
    floor = 40_000_000
    with Disk("ext4", 120) as disk:
        stage = scene(case, disk.path / "recordings", "--keep-free", f"{floor}B", "--when-full", "evict", "--record-split",
                      "each:8s", film="megabyte", rate=8)
        old = disk.path / "recordings" / "cam"
        reader = {}

        def finished() -> list[pathlib.Path]:
            return [path for path in sorted(old.glob("*Z*.mp4")) if ".part" not in path.name]

        def is_told() -> bool:
            for path in finished():
                if path not in reader:
                    reader[path] = open(path, "rb")
            return "the disk has not gained free space" in stage.weir.text()

        try:
            stage.weir.wait(is_told, 90, "it is told", every=0.1)
            left = len(finished())
            assert left >= 4, f"only {left} recordings were left"
            time.sleep(6)  # real time: the server looks for room each five seconds
            assert len(finished()) >= left - 1
        finally:
            for file in reader.values():
                file.close()


@TRIED.case(name="no inodes left")
def no_inodes_left(case):
    needs("mount")
    folder = pathlib.Path("/dev/shm") / f"weir-inodes-{os.getpid()}"
    folder.mkdir()
    try:
        command("mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=16", "tmpfs", folder)
        try:
            for number in range(13):
                (folder / f"{number}").touch()
            stage = scene(case, folder / "recordings")
            told = stage.wait_recording("failed")
            assert "No space left" in told["reason"] and "df -i" in told["reason"]
            for number in range(13):
                (folder / f"{number}").unlink()
            stage.wait_recording("running")
            stage.wait_recorded()
            assert len(stage.finish()) == 1
        finally:
            command("umount", "-l", folder, check=False)
    finally:
        folder.rmdir()


@TRIED.case(name="a file size limit")
def a_file_size_limit(case):
    """EFBIG is an error of the file, not a signal that ends the server. The recording continues in another file."""
    stage = scene(case, case.path / "recordings", wrapper=("prlimit", "--fsize=300000"), rate=2)
    told = stage.weir.wait_log(r"recording stops: .*File too large", 30)
    assert "ulimit -f" in told
    stage.weir.wait(lambda: len(list(stage.weir.recordings.glob("cam/*"))) >= 2, PATIENCE, "a second file begins")
    assert stage.weir.process.poll() is None
    assert stage.stall < STALL_BESIDE_OTHERS
    stage.publisher.kill()
    stage.weir.stop()


#: An error, and the report of it.
BROKEN = ("EIO", r"Input/output error.*dmesg")
OVER_QUOTA = ("EDQUOT", r"Disk quota exceeded.*quota")
#: A call, which of them fails, and how.
FAILING = [
    # Each of weir's threads counts its own calls, and four threads share the syncs.
    *((call, nth, BROKEN) for call, last in (("sendfile", 200), ("fdatasync", 30))
      for nth in (range(1, last + 1) if TORTURE else (2,))),
    # For the stream's new folder and the one above it.
    *([("fsync", 1, BROKEN), ("fsync", 2, BROKEN)] if TORTURE else [("fsync", 1, BROKEN)]),
    # A quota is noticed when space is reserved, when it is used, or when delayed blocks are written.
    # The first call of a file asks which features the file system has.
    ("fallocate", 2, OVER_QUOTA),
    *((call, nth, OVER_QUOTA) for call in ("sendfile", "fdatasync") for nth in (range(1, 11) if TORTURE else (1,)))]


def the_nth_write_or_sync_fails(case, call, nth, error):
    """EIO or EDQUOT when space is reserved, on a write, or on a sync: the file is ended at its last known good position, and
    another begins."""
    needs("strace", root=False)
    # If there is no space for the next seconds, a smaller amount is requested.
    times = f"..{nth + 1}" if call == "fallocate" else ""
    wrapper = ("strace", "-D", "-f", "-qq", "-o", str(case.path / "trace"), "-e", f"trace={call}",
               "-e", f"inject={call}:error={error[0]}:when={nth}{times}")
    # Without a viewer, only the recorder calls sendfile.
    weir = Weir("--keep-free", "0MB", "--record-sync", "200ms", "--reconnect-window", "1s", folder=case.folder("home"),
                wrapper=wrapper)
    case.stack.callback(weir.kill)
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1, rate=4)
    case.stack.callback(publisher.kill)
    weir.wait_log(rf"recording stops: .*{error[1]}", PATIENCE + nth / 5)
    weir.wait(lambda: any(r["state"] == "running" and r["seconds"] >= 1 for r in weir.recordings_of("cam")), PATIENCE, "it goes on")
    publisher.interrupt()
    publisher.outcome(10)
    weir.wait_state("cam", "ended")
    weir.stop()
    again = Weir(folder=case.folder("again"), recordings=weir.recordings)
    case.stack.callback(again.kill)
    again.wait(lambda: not list(weir.recordings.glob("*/*.part.mp4")), 20, "the leftovers are finished")
    again.stop()
    movies = sorted(weir.recordings.glob("*/*.mp4"))
    assert movies
    for movie in movies:
        check_movie(movie)


for failing in FAILING:
    TRIED.case(*failing, name=f"{failing[0]} fails the {failing[1]}. time with {failing[2][0]}")(the_nth_write_or_sync_fails)

TOKEN = "a-token-of-this-test"


@contextlib.contextmanager
def standing(case):
    """A server, and a recording of it on ext4 that is complete and receives nothing more."""
    needs("strace")
    with Disk("ext4", 100) as disk:
        weir = Weir("--keep-free", "0MB", "--record-sync", "200ms", folder=case.folder("home"), recordings=disk.path / "recordings",
                    environment={"WEIR_ADMIN_TOKEN": TOKEN})
        try:
            with Standing(weir, token=TOKEN) as recording:
                yield weir, recording
        finally:
            weir.kill()


@TRIED.case(name="a folder that is not durable costs a finished file nothing")
def a_folder_that_is_not_durable_costs_a_finished_file_nothing(case):
    """fsync fails after the rename, when the head lies before complete and durable media: no byte of the file is changed any
    more."""
    with standing(case) as (weir, recording):
        with Faults(weir, case.path / "trace", "fsync:error=EIO", paths=(recording.part.parent,)):
            recording.end()
            weir.wait_log("cannot be finished: .*Input/output error", PATIENCE)
        movie, = weir.recordings.glob("cam/*")
        assert movie.suffixes == [".mp4"]
        assert movie.read_bytes().endswith(recording.media)
        assert sample_counts(movie) == recording.samples
        check_movie(movie)
        checked = tools.run(tools.weir_binary(), "record", "verify", movie)
        assert checked.returncode == 0 and "all checksums right" in checked.stdout, checked.stdout
        # When the disk works again, it is reported as stored.
        weir.wait_log(r"cam: recorded to .*\.mp4", PATIENCE)
        told = weir.wait(lambda: next((r for r in weir.recordings_of("cam") if r["state"] == "completed"), None), 10, "it is listed")
        assert told["url"] and told["reason"] is None and not told["salvaged"]
        probed = tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", movie)
        assert told["bytes"] == movie.stat().st_size and told["seconds"] == pytest.approx(float(probed.stdout), abs=0.05)


@TRIED.case(name="a head that the disk neither takes nor gives back costs no media")
def a_head_that_the_disk_neither_takes_nor_gives_back_costs_no_media(case):
    """Space was inserted, but the movie header cannot be written and the space cannot be removed: the file keeps all of its media after
    that space, and the next process that opens it makes the movie."""
    with standing(case) as (weir, recording):
        with Faults(weir, case.path / "trace", "pwrite64:error=EIO", "fallocate:error=EIO:when=2+", paths=(recording.part,)):
            recording.end()
            weir.wait_log("cannot be finished: .*Input/output error", PATIENCE)
            weir.wait_log("is tried again in a while", 10)
            # As long as it fails: when it is tried again, it may succeed.
            left = recording.part.read_bytes()
        assert left[:8] == bytes(8), "no room was inserted: nothing is shown here"
        assert len(left) > len(recording.media) and left.endswith(recording.media), "media was cut off"
        weir.wait(lambda: not recording.part.exists(), PATIENCE, "it is tried again")
        movie, = weir.recordings.glob("cam/*.mp4")
        assert movie.read_bytes().endswith(recording.media)
        assert sample_counts(movie) == recording.samples
        check_movie(movie)
        told = weir.wait(lambda: next((r for r in weir.recordings_of("cam") if r["state"] == "completed"), None), 10, "it is listed")
        assert told["url"] and told["reason"] is None and not told["salvaged"]
        weir.wait(lambda: (weir.stream("cam")["recording"] or {}).get("state") == "completed", 10, "the stream tells it")


@TRIED.case(name="a copy leaves free what is to stay free")
def a_copy_leaves_free_what_is_to_stay_free(case):
    """--keep-free also applies to the copy that finishes a leftover: it waits until there is space."""
    needs("mount")
    fragmented = fragmented_file(case.path)
    folder = pathlib.Path("/dev/shm") / f"weir-room-{os.getpid()}"
    folder.mkdir()
    try:
        command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder)
        try:
            left = folder / "recordings" / "cam" / "20261121T072410Z.part.mp4"
            left.parent.mkdir(parents=True)
            left.write_bytes(fragmented)
            ballast = folder / "ballast"
            free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            command("fallocate", "-l", free - 50_000_000 - len(fragmented) // 2, ballast)
            weir = Weir("--keep-free", "50MB", folder=case.folder("home"), recordings=folder / "recordings")
            try:
                weir.wait_log(r"stays unfinished, for now: .*--keep-free", PATIENCE)
                assert list(left.parent.iterdir()) == [left] and left.read_bytes() == fragmented
                ballast.unlink()
                weir.wait(lambda: not left.exists(), PATIENCE, "there is room")
                movie, = left.parent.glob("*.mp4")
                check_movie(movie)
            finally:
                weir.kill()
        finally:
            command("umount", "-l", folder, check=False)
    finally:
        folder.rmdir()


def fragmented_file(folder: pathlib.Path) -> bytes:
    """Some megabytes of fragments as ffmpeg writes them."""
    path = folder / "fragmented.mp4"
    made = tools.run(tools.FFMPEG, "-v", "error", "-stream_loop", "20", "-i", sources.source("short"), "-c", "copy",
                     "-movflags", "frag_keyframe+empty_moov+default_base_moof", path)
    assert made.returncode == 0, made.stderr
    return path.read_bytes()


@TRIED.case(name="a start on a frozen disk")
def a_start_on_a_frozen_disk(case):
    """Leftovers are on a disk that does not respond: the server serves, and finishes them when the disk works."""
    needs("fsfreeze")
    with Disk("ext4", 100) as disk:
        weir = Weir("--keep-free", "0MB", folder=case.folder("a"), recordings=disk.path / "recordings")
        with Standing(weir) as recording:
            weir.process.kill()
            weir.kill()
        disk.freeze()
        weir = Weir(folder=case.folder("b"), recordings=disk.path / "recordings")
        try:
            # It serves, and the disk is frozen.
            assert recording.part.exists()
            weir.get("/live/nobody/index.m3u8", timeout=10)
            disk.thaw()
            weir.wait(lambda: not recording.part.exists(), PATIENCE, "it is finished")
            movie, = weir.recordings.glob("cam/*.mp4")
            assert sample_counts(movie) == recording.samples
            weir.stop()
        finally:
            disk.thaw()
            weir.kill()


@TRIED.case(name="a frozen disk")
def a_frozen_disk(case):
    """The stream continues, and data that fits into the queue is not lost. Data in the catalogue on that disk is served, or an
    error that it is not available now, while the disk is frozen."""
    needs("fsfreeze")
    frozen = 60 if TORTURE else 6
    with Disk("ext4", 300) as disk:
        stage = scene(case, disk.path / "recordings", environment={"WEIR_ADMIN_TOKEN": TOKEN})
        stage.wait_recorded()
        # A finished one, to be changed while the disk is frozen, and one that is being written.
        for action in ("stop", "start"):
            control(stage, action)
        stage.wait_recorded()
        file = stage.weir.wait(lambda: next((r["file"] for r in stage.weir.recordings_of("cam")
                                             if r["state"] == "completed"), None), 10, "one is stored")
        disk.freeze()
        time.sleep(0.9)
        protect = f"/api/v1/recordings/cam/{file}/protect"
        asked = {path: [] for path in ("/api/v1/recordings", "/api/v1/storage", f"/api/v1/recordings/cam/{file}", protect)}

        def ask(path: str) -> None:
            while disk.frozen:
                method = "POST" if path == protect else "GET"
                answer = stage.weir.get(path, method=method, headers=ADMIN, timeout=20 + frozen)
                asked[path].append((answer.status, disk.frozen))
                time.sleep(0.2)

        askers = [threading.Thread(target=ask, args=(path,)) for path in asked]
        for asker in askers:
            asker.start()
        time.sleep(frozen)  # real time: the disk is frozen for so long
        stage.weir.wait(
            lambda: all(any(is_frozen for _, is_frozen in list(heard)) for heard in asked.values()), 20, "an answer to each meanwhile")
        disk.thaw()
        for asker in askers:
            asker.join(30)
        for path, heard in asked.items():
            assert heard and {code for code, _ in heard} <= {200, 503}, f"{path}: {heard}"
            assert any(is_frozen for _, is_frozen in heard), f"{path} waits for the disk: {heard}"
        assert 503 in {code for code, _ in asked[protect]}, "the disk was not frozen"
        stage.weir.wait(lambda: next(r for r in stage.weir.recordings_of("cam") if r["file"] == file)["protected"], 10,
                        "what was asked for is done")
        sent = stage.viewer.fragments()[-1][0]
        stall = stage.stall
        stage.wait_recorded(frozen + 1)
        movies = stage.finish()
        assert len(movies) == 2
        kept = numbers(movies[1:])
        assert set(range(min(kept), sent + 1)) <= kept.keys(), "nothing was lost"
        assert stall < STALL_BESIDE_OTHERS
    case.figure(f"disk frozen for {frozen} s: longest pause of a viewer {stall:.2f} s, no frame lost")


ADMIN = {"Authorization": f"Bearer {TOKEN}"}


def control(stage: Scene, action: str) -> None:
    """Each is waited for: who starts again before the end of a stop is refused."""
    stage.weir.get(f"/api/v1/streams/cam/recording/{action}?wait=20s", method="POST", headers=ADMIN).good()


@TRIED.case(name="a device that is gone")
def a_device_that_is_gone(case):
    """All disk operations fail: it is reported, nothing is reported as stored, and the stream continues."""
    needs("findmnt", "losetup")
    with Disk("ext4", 100) as disk:
        stage = scene(case, disk.path / "recordings")
        stage.wait_recorded()
        disk.take_away()
        told = stage.wait_recording("failed")
        assert str(disk.path) in told["reason"] and re.search("Input/output|Read-only", told["reason"])
        stage.weir.wait(lambda: Metrics(stage.weir)("weir_recordings_total", event="failed") >= 1, 10, "it is counted")
        time.sleep(4)  # real time: it is tried again each two seconds
        assert stage.recording["state"] == "failed" and stage.recording["reason"]
        assert stage.stall < STALL_BESIDE_OTHERS
        assert Metrics(stage.weir)("weir_recordings_total", event="stored") == 0
        stage.publisher.kill()
        stage.weir.stop(seconds=10)


@TRIED.case(name="a disk that becomes read only")
def a_disk_that_becomes_read_only(case):
    with Disk("ext4", 100) as disk:
        stage = scene(case, disk.path / "recordings")
        stage.wait_recorded()
        if command("mount", "-o", "remount,abort", disk.path, check=False).returncode != 0:
            pytest.skip("skipped: this kernel cannot abort an ext4 file system")
        told = stage.wait_recording("failed")
        assert str(disk.path) in told["reason"] and re.search("Read-only|Input/output", told["reason"])
        time.sleep(3)  # real time: it is tried again each two seconds
        assert stage.recording["state"] == "failed"
        assert stage.stall < STALL_BESIDE_OTHERS
        stage.publisher.kill()
        stage.weir.kill()


@TRIED.case(name="a folder that is removed")
def a_folder_that_is_removed(case):
    folder = case.path / "recordings"
    stage = scene(case, folder)
    stage.wait_recorded()
    shutil.rmtree(folder)
    told = stage.wait_recording("failed")
    assert str(folder) in told["reason"]
    stage.weir.wait_log(r"was removed while it was being recorded", 10)
    stage.weir.wait(lambda: "make the folder again" in stage.recording["reason"], PATIENCE, "it says what to do")
    folder.mkdir()
    stage.wait_recording("running")
    stage.wait_recorded()
    assert stage.stall < STALL_BESIDE_OTHERS
    assert len(stage.finish()) == 1


@TRIED.case(name="a folder of another owner")
def a_folder_of_another_owner(case):
    """Reported with the path and what to do. It is recorded once weir may write there."""
    needs("setpriv")
    folder = case.path / "recordings"
    stage = scene(case, folder, wrapper=("setpriv", "--bounding-set", "-dac_override,-dac_read_search"),
                  environment={"WEIR_ADMIN_TOKEN": TOKEN})
    stage.wait_recording("running")
    control(stage, "stop")
    stage.wait_recording("completed")
    os.chown(folder / "cam", 12345, 12345)
    control(stage, "start")
    told = stage.wait_recording("failed")["reason"]
    assert all(part in told for part in (f"{folder}/cam", "Permission denied", "give weir's user the right to write"))
    os.chown(folder / "cam", 0, 0)
    stage.wait_recording("running")
    stage.wait_recorded()
    assert stage.stall < STALL_BESIDE_OTHERS
    assert len(stage.finish()) == 2


@TRIED.case(name="a step of the wall clock")
def a_step_of_the_wall_clock(case):
    """A year forward, an hour back: one file, as long as the recorded media."""
    needs("faketime", root=False)
    library = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
    if library is None:
        pytest.skip("skipped: libfaketime is not installed")
    stamp = case.path / "time"
    stamp.write_text("+0")
    stage = scene(case, case.path / "recordings", environment={
        "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(stamp), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    stage.wait_recording("running")
    for step in ("+1y", "-1h", "+0"):
        stamp.write_text(step)
        fragments = len(stage.viewer.fragments())
        stage.weir.wait(lambda: len(stage.viewer.fragments()) > fragments + 5, PATIENCE, "a second of media")
    sent = sum(counts.get(1, 0) for _, counts, _ in stage.viewer.fragments())
    movies = stage.finish()
    assert len(movies) == 1
    assert sample_counts(movies[0])[1] >= sent > 60
    assert abs(length_of(movies[0]) - seconds_of(movies[0])) < 0.5


def length_of(path: pathlib.Path) -> float:
    """The seconds that a movie says it lasts."""
    probed = tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path)
    return float(probed.stdout)


@pytest.fixture(scope="module")
def together(request, tmp_path_factory):
    """How each case ended."""
    return TRIED.run(request, tmp_path_factory)


@pytest.mark.parametrize("name", TRIED.cases)
def test_while_it_is_recorded(together, name, record_property):
    for figure in together[name].result():
        record_property("figure", figure)


@pytest.fixture
def case(tmp_path):
    """One that runs by itself."""
    made = Case(tmp_path)
    with made.stack:
        yield made


@pytest.mark.quiet
def test_no_disk_delays_viewers_and_responses(case, record_property):
    """A frozen disk, and one that is gone: 99 of 100 responses come within 50 ms, viewers do not stall, and the loss is reported
    within two seconds."""
    needs("fsfreeze", "findmnt", "losetup")
    frozen = 60 if TORTURE else 2.5
    with Disk("ext4", 100) as disk:
        stage = scene(case, disk.path / "recordings")
        stage.wait_recorded()
        usual, _ = slowest_but_one_in_a_hundred(stage.weir, 1.5)
        disk.freeze()
        slow, answers = slowest_but_one_in_a_hundred(stage.weir, frozen)
        disk.thaw()
        stage.wait_recorded(frozen)
        disk.take_away()
        gone = time.monotonic()
        stage.wait_recording("failed")
        took = time.monotonic() - gone
        stall = stage.stall
        assert took <= 2, f"told {took:.1f} s after the device was gone"
        assert stall < STALL
        # On cores that are busy with other work it takes longer, frozen or not.
        assert slow <= max(0.05, 2 * usual), f"{slow * 1000:.0f} ms, {usual * 1000:.0f} ms before"
        stage.publisher.kill()
        stage.weir.stop(seconds=10)
    record_property("figure", f"disk frozen for {frozen} s, then gone (ext4): told after {took:.1f} s, longest pause of a viewer "
                    f"{stall:.2f} s, 99 % of {answers} API answers within {slow * 1000:.0f} ms ({usual * 1000:.0f} ms before)")


def slowest_but_one_in_a_hundred(weir, seconds: float) -> tuple[float, int]:
    """Sends requests that need no disk for this long. Returns the seconds in which 99 of 100 had a response, or of fewer all but
    one, and their number."""
    answers = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        weir.get("/api/v1/streams").good()
        answers.append(time.monotonic() - began)
        time.sleep(0.02)
    answers.sort()
    return answers[min(int(len(answers) * 0.99), len(answers) - 2)], len(answers)


def memory_of_segments(weir) -> float:
    """Megabytes of media in weir's memory, for viewers or for the disk."""
    total, seen = 0, set()
    for link in pathlib.Path(f"/proc/{weir.process.pid}/fd").iterdir():
        try:
            if "memfd:weir-segment" in os.readlink(link):
                status = os.stat(link)
                if status.st_ino not in seen:
                    seen.add(status.st_ino)
                    total += status.st_blocks * 512
        except OSError:
            pass
    return total / (1 << 20)


#: Of the measured values, in MiB: they are not measured at the same moment.
SLACK = 4


def most_memory(weir, seconds: float) -> tuple[float, float]:
    """Maximum of kept media and of resident memory within this many seconds, in MiB."""
    most = (0.0, 0.0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = (memory_of_segments(weir), weir.resident_kilobytes() / 1024)
        most = (max(most[0], now[0]), max(most[1], now[1]))
        time.sleep(0.1)
    return most


class Overflown:
    """A stream on a disk that was frozen for longer than the queue of its recording holds, and its files when it has ended."""

    def __init__(self, home: pathlib.Path, disk: Disk):
        stage = Scene(home, disk.path / "recordings", "--window", "2s", film="heavy", rate=4)
        try:
            stage.wait_recorded(3)  # the window is full
            self.usual = most_memory(stage.weir, 0.9)[0]
            disk.freeze()
            frozen = 30 if TORTURE else 0
            self.most, reason, end = 0.0, "", time.monotonic() + frozen
            while "left out" not in reason or time.monotonic() < end:
                assert time.monotonic() < end + 60, "it is told while it happens"
                self.most = max(self.most, memory_of_segments(stage.weir))
                reason = stage.recording["reason"] or ""
                time.sleep(0.2)
            self.most = max(self.most, most_memory(stage.weir, 0.9)[0])
            disk.thaw()
            stage.weir.wait_log(r"s are missing in the recording: the disk was too slow", 30)
            stage.wait_recorded()
            self.stall = stage.stall
            #: Video frames that a viewer received, by the number of their fragment.
            self.sent = {number: counts.get(1, 0) for number, counts, _ in stage.viewer.fragments()}
            self.gaps = [float(found) for found in re.findall(r"([\d.]+) s are missing", stage.weir.text())]
            self.movies = stage.end()
        finally:
            disk.thaw()
            stage.close()


@pytest.fixture(scope="module")
def overflown(tmp_path_factory):
    needs("fsfreeze")
    with Disk("ext4", 500) as disk:
        yield Overflown(tmp_path_factory.mktemp("overflown"), disk)


def test_a_frozen_disk_and_more_than_the_queue_holds(overflown, record_property):
    """Whole GOPs are dropped, the gap is reported, memory stays bounded, and recording resumes."""
    usual, most, stall, gap = overflown.usual, overflown.most, overflown.stall, sum(overflown.gaps)
    assert 1 <= len(overflown.movies) <= 2
    kept = numbers(overflown.movies)
    missing = sum(frames for number, frames in overflown.sent.items() if number not in kept)
    # Between two rounds of the film there are 11 ms, because the audio ends after the video.
    assert abs(gap - missing / 30) <= 0.1 * len(overflown.gaps) + 0.003 * gap, f"{gap:.1f} s told, {missing} frames are missing"
    assert most <= usual + 64 + SLACK, f"{most:.0f} MB of segments, {usual:.0f} MB before"
    assert stall < STALL_BESIDE_OTHERS
    record_property("figure", f"disk frozen for more than the queue holds, at 160 Mbit/s: {gap:.1f} s left out and told, media in memory "
                    f"{usual:.0f} -> at most {most:.0f} MB, longest pause of a viewer {stall:.2f} s")


def test_what_is_kept_of_a_recording_with_a_gap_is_a_movie(overflown):
    for movie in overflown.movies:
        check_movie(movie, hole=max(overflown.gaps))


@pytest.mark.skipif(not TORTURE, reason="skipped: it takes 15 s (make torture)")
def test_a_stream_that_ends_while_the_disk_is_frozen(case, record_property):
    """No media follows the last dropped frames. They are reported all the same, as a gap at the end."""
    needs("fsfreeze")
    with Disk("ext4", 700) as disk:
        stage = scene(case, disk.path / "recordings", "--window", "6s", film="heavy", rate=4)
        stage.wait_recorded(6)
        disk.freeze()
        stage.weir.wait(lambda: "left out" in (stage.recording["reason"] or ""), 20, "the queue is full")
        time.sleep(2)  # real time: that much more is left out
        stage.publisher.interrupt()
        stage.publisher.outcome(10)
        stage.weir.wait_state("cam", "ended", seconds=20)
        disk.thaw()
        told = stage.weir.wait(lambda: next((r for r in stage.weir.recordings_of("cam") if r["url"]), None), 20,
                               "it is stored")
        stage.viewer.close()
        stage.weir.stop()
        (movie,) = stage.weir.recordings.glob("cam/*")
        check_movie(movie)
        (gap,) = told["gaps"]
        assert "too slow" in gap["reason"] and gap["at"] == pytest.approx(told["seconds"], abs=0.01)
        kept = numbers([movie])
        missing = sum(counts.get(1, 0) for number, counts, _ in stage.viewer.fragments() if number not in kept)
        assert missing and gap["seconds"] == pytest.approx(missing / 30, abs=0.5)
    record_property("figure", f"stream of 160 Mbit/s that ends while the disk is frozen: {missing} frames left out at its "
                    f"end, {gap['seconds']:.1f} s told")


@contextlib.contextmanager
def slow(disk: Disk, weir: Weir):
    """Sets the limit of a program's own writes to that disk in bytes per second; 0: no limit."""
    root = pathlib.Path("/sys/fs/cgroup/blkio")
    if not (root / "blkio.throttle.write_bps_device").exists() and not (root / "blkio.weight").exists():
        pytest.skip("skipped: there is no blkio cgroup (v1) here")
    group = root / f"weir-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"skipped: no cgroup can be made: {error}")
    try:
        (group / "cgroup.procs").write_text(str(weir.process.pid))
        yield lambda rate: (group / "blkio.throttle.write_bps_device").write_text(f"{disk.device} {rate}")
    finally:
        weir.kill()
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def numbers(movies: list[pathlib.Path]) -> dict[int, int]:
    """Frames of each fragment in any of them, by its number in the stream."""
    found = {}
    for movie in movies:
        data = movie.read_bytes()
        found |= {number: counts.get(1, 0) for number, counts, _ in whole_fragments(data[data.index(b"ftyp", 8) - 4:])}
    return found


@pytest.mark.parametrize("streams,film,rate,settling,seconds", [
    pytest.param(1, "heavy", 4, 4, 9, id="20-MB/s", marks=pytest.mark.long),
    # Four of 8 Mbit/s.
    pytest.param(4, "megabyte", 2, 16, 90, id="4-MB/s", marks=pytest.mark.skipif(
        not TORTURE, reason="skipped: it takes minutes (make torture)"))])
def test_a_slow_disk(streams, film, rate, settling, seconds, tmp_path, record_property):
    """One megabyte per second of a higher rate: whole GOPs are dropped, each is reported, media that is not reported missing is
    there, memory stays bounded, and viewers are not affected."""
    needs("findmnt")
    names = [f"s{index}" for index in range(streams)]
    with Disk("ext4", 1500) as disk:
        weir = Weir("--keep-free", "0MB", "--segment-duration", "1s", "--window", "4s", "--reconnect-window", "1s", folder=tmp_path,
                    recordings=disk.path / "recordings")
        with slow(disk, weir) as limit:
            sources_of = [publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", loop=-1, rate=rate) for name in names]
            try:
                for name in names:
                    weir.wait_state(name, "live", "starting")
                    weir.wait(lambda: (weir.stream(name) or {}).get("bitrate"), 15, "the first segment is there")
                viewers = [Viewer(weir, name) for name in names]
                time.sleep(settling)  # real time: the window fills
                usual = most_memory(weir, 0.9)
                began = time.monotonic()
                limit(1_000_000)
                most = most_memory(weir, seconds)
                stall = max(viewer.longest_pause(began) for viewer in viewers)
                limit(0)
                weir.wait(lambda: not any(weir.stream(name)["recording"]["reason"] for name in names), 60,
                          "nothing is left out any more")
                # The gap is reported with the next key frame, after the queued events.
                # A long one made another file.
                written = lambda: [sum(r["seconds"] for r in weir.recordings_of(name)) for name in names]
                before = written()
                weir.wait(lambda: all(now >= then + 3 for now, then in zip(written(), before, strict=True)), PATIENCE, "it goes on")
                for publisher in sources_of:
                    publisher.interrupt()
                    publisher.outcome(20)
                weir.wait(lambda: not list(weir.recordings.glob("*/*.part.mp4")), 60, "the files are finished")
                gaps = {(name, recording["file"]): recording["gaps"] for name in names
                        for recording in weir.recordings_of(name)}
                told = [gap for listed in gaps.values() for gap in listed]
                missing = 0
                for name, viewer in zip(names, viewers):
                    movies = sorted(weir.recordings.glob(f"{name}/*.mp4"))
                    for movie in movies:
                        # Media missing before a file begins is no gap in it.
                        holes = [gap["seconds"] for gap in gaps[name, movie.name] if gap["at"] > 0]
                        assert all(hole <= 10.1 for hole in holes), "a longer one makes another file"
                        check_movie(movie, hole=max(holes, default=0))
                    kept = numbers(movies)
                    # The last ones may have arrived after the viewer was stopped.
                    sent = {number: counts.get(1, 0) for number, counts, _ in viewer.fragments()}
                    missing += sum(frames for number, frames in sent.items() if number not in kept)
                    viewer.close()
            finally:
                for publisher in sources_of:
                    publisher.kill()
    assert missing, "nothing was left out: nothing is shown here"
    seconds_told = sum(gap["seconds"] for gap in told)
    assert all("too slow" in gap["reason"] for gap in told)
    assert stall < STALL_BESIDE_OTHERS
    assert all(after - before <= 64 + SLACK for before, after in zip(usual, most)), f"{usual} to {most} MiB"
    # Between two rounds of a film of 4 s there are 11 ms, because the audio ends after the video.
    assert abs(seconds_told - missing / 30) <= 0.1 * len(told) + 0.003 * seconds_told, (
        f"{seconds_told:.1f} s told, {missing} frames are missing")
    record_property("figure", f"disk of 1 MB/s, {streams} streams of {film} at {rate} times their speed for {seconds} s: "
                    f"{missing} frames left out, {seconds_told:.1f} s told; media in memory {usual[0]:.0f} to "
                    f"{most[0]:.0f} MiB, RSS {usual[1]:.0f} to {most[1]:.0f} MiB, longest pause of a viewer {stall:.2f} s")
