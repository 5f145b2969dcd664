"""Recordings on file systems that can neither insert space nor share blocks: the movie's head goes into space that the file
reserved at its front from the beginning, and no media is copied.

`make torture` (WEIR_TORTURE) kills weir at each of the calls that do it.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.request

import pytest

from harness import boxes, http, tools
from harness.disks import Disk, Faults, needs
from harness.fragments import Standing, check_movie, sample_counts, total, whole_fragments
from harness.weir import Weir

TORTURE = "WEIR_TORTURE" in os.environ
TOKEN = "a-token-of-this-test"

#: Files of at most two minutes reserve 256 KiB in front, a small part of four megabytes.
SHORT = ("--record-split", "each:2m")
ROOM = 256 << 10
#: Parts of a film of 4 Mbit/s that make five megabytes.
ENOUGH = 50

PLACES = ["memory", "ext2", "ext3"]


@contextlib.contextmanager
def room(kind: str):
    """A folder on such a file system."""
    if kind != "memory":
        with Disk(kind, 200) as disk:
            yield disk.path
        return
    folder = pathlib.Path("/dev/shm") / f"weir-front-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def place(request):
    """The test's parameter is the kind of the file system."""
    with room(request.param) as folder:
        yield folder


def outer(path: pathlib.Path) -> list[tuple[bytes, int]]:
    """Types and positions of a file's top-level boxes."""
    return [(box.type, box.start) for box in boxes.read_boxes(path.read_bytes())]


def check_filled(movie: pathlib.Path, media: bytes) -> None:
    """A movie in the space of a file whose first bytes were these. No byte after that space has moved."""
    kinds = outer(movie)
    assert [kind for kind, _ in kinds] == [b"ftyp", b"moov", b"free", b"mdat"] and kinds[3][1] == ROOM - 16, kinds
    assert movie.read_bytes()[ROOM:len(media)] == media[ROOM:]
    check_movie(movie)
    checked = tools.run(tools.weir_binary(), "record", "verify", movie)
    assert checked.returncode == 0 and "all checksums right" in checked.stdout, checked.stdout


def decode_by_gstreamer(movie: pathlib.Path, shown: pathlib.Path) -> None:
    """qtdemux finds every frame by the tables alone."""
    done = tools.run(
        "timeout", "60", tools.GSTREAMER, "-q", "filesrc", f"location={movie}", "!", "qtdemux", "name=d",
        "d.video_0", "!", "queue", "!", "decodebin", "!", "videoconvert", "!", "video/x-raw,format=GRAY8", "!",
        "videoscale", "!", "video/x-raw,width=8,height=8", "!", "filesink", f"location={shown}",
        "d.audio_0", "!", "queue", "!", "decodebin", "!", "fakesink", "sync=false", timeout=70)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert shown.stat().st_size == sample_counts(movie)[1] * 64


class Filled:
    """A recording that is finished while a viewer plays it by HLS."""

    def __init__(self, place: pathlib.Path, tmp_path: pathlib.Path):
        self.weir = weir = Weir("--keep-free", "0MB", *SHORT, folder=tmp_path, recordings=place / "recordings",
                                environment={"WEIR_ADMIN_TOKEN": TOKEN})
        try:
            with Standing(weir, token=TOKEN, film="megabyte", fragments=ENOUGH) as recording:
                self.media, self.samples = recording.media, recording.samples
                # It plays as it is.
                self.probed = tools.run(tools.FFPROBE, "-v", "error", "-count_packets", "-show_entries", "stream=nb_read_packets",
                                        "-of", "csv=p=0", recording.part)
                self.kinds = [kind for kind, _ in outer(recording.part)]
                self.stem = recording.part.name.removesuffix(".part.mp4")
                index = weir.get(f"/recordings/cam/{self.stem}/av/index.m3u8").good().text
                paths = [f"/recordings/cam/{self.stem}/av/{name}" for name in re.findall(r"^\d+\.m4s$", index, re.M)]
                assert paths
                self.before = [weir.get(path).good().body for path in paths]
                slow = urllib.request.urlopen(weir.web + paths[0], timeout=20)
                begun = slow.read(1000)
                recording.end()
                self.movie = recording.part.with_name(f"{self.stem}.mp4")
                weir.wait(self.movie.exists, 20, "it is finished", every=0.005)
                self.slow = begun + slow.read()
                slow.close()
                self.after = [weir.get(path).good().body for path in paths]
                self.told = weir.wait(
                    lambda: next((r for r in weir.recordings_of("cam") if r["state"] == "completed"), None), 15, "it is listed")
        except BaseException:
            weir.kill()
            raise


@pytest.fixture(scope="module", params=PLACES)
def filled(request, tmp_path_factory):
    with room(request.param) as place:
        made = Filled(place, tmp_path_factory.mktemp("filled"))
        try:
            yield made
            made.weir.stop()
        finally:
            made.weir.kill()


def test_the_head_goes_into_the_room(filled):
    """The viewer is not affected, and the server serves the movie and clips of it."""
    weir, movie, stem = filled.weir, filled.movie, filled.stem
    assert filled.kinds[:4] == [b"ftyp", b"free", b"moov", b"free"]
    assert sorted(map(int, filled.probed.stdout.split())) == sorted(filled.samples.values()) and not filled.probed.stderr
    assert filled.slow == filled.before[0]
    assert filled.after == filled.before
    assert "finishing it needs a copy" not in weir.text()
    assert sample_counts(movie) == filled.samples
    assert http.fetch(f"{weir.web}/recordings/cam/{stem}.mp4").body == movie.read_bytes()
    assert filled.told["url"] and filled.told["bytes"] == movie.stat().st_size


def test_every_judge_finds_every_sample_of_the_movie_in_the_room(filled):
    check_filled(filled.movie, filled.media)


def test_gstreamer_shows_every_frame_of_the_movie_in_the_room(filled, tmp_path):
    if not tools.GSTREAMER:
        pytest.skip("there is no GStreamer")
    decode_by_gstreamer(filled.movie, tmp_path / "shown")


def test_a_clip_of_the_movie_in_the_room_is_a_movie(filled, tmp_path):
    clip = filled.weir.get(f"/api/v1/recordings/cam/{filled.stem}.mp4/clip?from=1&to=3").good().body
    (tmp_path / "clip.mp4").write_bytes(clip)
    check_movie(tmp_path / "clip.mp4", decode=False)  # an edit list cuts some of them


@pytest.mark.parametrize("place", ["memory"], indirect=True)
def test_a_short_recording_is_finished_at_once_when_weir_ends(place, tmp_path):
    """A copy would be left to the next start."""
    weir = Weir("--keep-free", "0MB", folder=tmp_path, recordings=place / "recordings")
    try:
        with Standing(weir) as recording:
            weir.stop(seconds=5)
    finally:
        weir.kill()
    movie, = recording.part.parent.iterdir()
    counts = sample_counts(movie)
    # With the media in memory, the part in progress.
    assert movie.suffixes == [".mp4"] and all(counts[track] >= most for track, most in recording.samples.items())
    check_movie(movie)
    assert movie.stat().st_blocks * 512 < len(recording.media) - (31 << 20), "what is left over is a hole"


#: System calls that finish a file in its reserved space, and the number of the call on which weir is killed.
FILLING = [("pwrite64", 1), ("pwrite64", 2), ("pwrite64", 3), ("fdatasync", 1), ("fdatasync", 2), ("ftruncate", 1),
           ("renameat", 1), ("fsync", 1)]


@pytest.mark.parametrize("place", ["memory", "ext2"] if TORTURE else ["memory"], indirect=True)
def test_killed_while_the_head_is_written(place, tmp_path, record_property):
    """The next start makes one movie with every sample. Its media has not moved."""
    needs("strace", root=False)
    rounds = int(os.environ.get("WEIR_TORTURE_FINALS", 100)) if TORTURE else 1
    for number in range(rounds):
        folder, home = place / f"{number}", tmp_path / f"{number}"
        home.mkdir()
        # The first is the one after which it is a movie without its final name.
        step, when = FILLING[(number + 4) % len(FILLING)]
        weir = Weir("--keep-free", "0MB", "--record-sync", "200ms", *SHORT, folder=home, recordings=folder,
                    environment={"WEIR_ADMIN_TOKEN": TOKEN})
        try:
            with Standing(weir, token=TOKEN, film="megabyte", fragments=ENOUGH) as recording:
                part = recording.part
                with Faults(weir, home / "trace", f"{step}:signal=KILL:when={when}", paths=(part, part.parent)):
                    recording.end()
                    try:
                        weir.process.wait(10)
                    except subprocess.TimeoutExpired:
                        pytest.fail(f"{step} {when} is not met within finishing")
        finally:
            weir.kill()
        left, = folder.glob("*/*")
        assert left.read_bytes()[ROOM:] == recording.media[ROOM:]
        check_plays(left, recording.samples)
        (home / "again").mkdir()
        weir = Weir("--keep-free", "0MB", folder=home / "again", recordings=folder)
        try:
            weir.wait(lambda: not list(folder.glob("*/*.part.mp4")), 20, "it is finished")
            weir.stop()
        finally:
            weir.kill()
        movie, = folder.glob("*/*")
        assert movie.suffixes == [".mp4"] and sample_counts(movie) == recording.samples, f"after {step} {when}"
        check_filled(movie, recording.media)
        shutil.rmtree(folder)
        shutil.rmtree(home)
    record_property("figure", f"killed while the movie header is written into the space reserved in front ({place.parent}): {rounds} kills, "
                    "each file playable as it was left, and one movie with every sample each")


def check_plays(path: pathlib.Path, samples: dict[int, int]) -> None:
    """Players find every sample of it, whether it is a movie or not."""
    done = tools.run(tools.FFPROBE, "-v", "error", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of",
                     "csv=p=0", path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert sorted(map(int, done.stdout.split())) == sorted(samples.values())


@pytest.fixture(scope="module")
def left_in_memory(tmp_path_factory):
    """A file with reserved space by a killed weir: its name and bytes."""
    home = tmp_path_factory.mktemp("left")
    folder = pathlib.Path("/dev/shm") / f"weir-left-{os.getpid()}"
    weir = Weir("--keep-free", "0MB", *SHORT, folder=home, recordings=folder)
    try:
        with Standing(weir, film="megabyte", fragments=ENOUGH) as recording:
            weir.process.kill()
        return recording.part.name, recording.media
    finally:
        weir.kill()
        shutil.rmtree(folder, ignore_errors=True)


#: The system calls of `weir record finalize` on such a file.
FINALIZING = [("pwrite64", 1), ("pwrite64", 2), ("pwrite64", 3), *(("fdatasync", when) for when in (1, 2, 3, 4)),
              ("ftruncate", 1), ("renameat", 1), ("fsync", 1)]


@pytest.mark.parametrize("place", PLACES if TORTURE else ["memory"], indirect=True)
@pytest.mark.parametrize("torn", [0, 1000])
@pytest.mark.parametrize("is_recording", [True, False])
def test_killed_while_finalizing_by_hand(place, left_in_memory, torn, is_recording, record_property):
    """The same command finishes it: a recording or a file with another name, also one with a torn end."""
    needs("strace", root=False)
    name, data = left_in_memory
    data = data[:len(data) - torn]
    fragments = whole_fragments(data)
    killed, file = 0, name if is_recording else "film.mp4"
    for step, when in FINALIZING:
        path = place / "cam" / file
        path.parent.mkdir()
        path.write_bytes(data)
        done = subprocess.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-P", path.parent, "-e", f"trace={step}", "-e",
             f"inject={step}:signal=KILL:when={when}", tools.weir_binary(), "record", "finalize", path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        killed += done.returncode != 0
        again = tools.run(tools.weir_binary(), "record", "finalize", place / "cam" if ".part." in file else path)
        assert again.returncode == 0, f"{file} after {step} {when}: {again.stdout}"
        movie, = path.parent.iterdir()
        assert sample_counts(movie) == total(fragments), f"{file} after {step} {when}"
        check_movie(movie, decode=False)
        assert movie.read_bytes()[ROOM:].startswith(data[ROOM:fragments[-1][2]]), "it was copied"
        shutil.rmtree(path.parent)
    assert killed >= len(FINALIZING) / 2, f"only {killed} met a call"
    record_property("figure", f"killed within weir record finalize of a file with space reserved in front ({place.parent}): {killed} "
                    "kills, each file finished by the next call")
