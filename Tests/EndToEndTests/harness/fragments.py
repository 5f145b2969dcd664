"""Counts losses of a recording: the fragments that a viewer received, compared with those in the file."""

import http.client
import pathlib
import re
import signal
import struct
import threading
import time

from . import boxes, http as web, nothing_wrong, publishers, recordings, tools


def whole_fragments(data: bytes) -> list[tuple[int, dict[int, int], int]]:
    """For bytes that may end anywhere: (sequence number, samples by track, end offset) of each moof with a complete
    mdat."""
    found: list[tuple[int, dict[int, int], int]] = []
    at, moof = 0, None
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if size < 8 or at + size > len(data):
            break
        if kind == b"moof":
            moof = boxes.read_boxes(data, at, at + size)[0]
        elif kind == b"mdat" and moof:
            sequence = struct.unpack_from(">I", data, moof.one(b"mfhd").body + 4)[0]
            counts = {}
            for traf in moof.all(b"traf"):
                track = struct.unpack_from(">I", data, traf.one(b"tfhd").body + 4)[0]
                counts[track] = counts.get(track, 0) + struct.unpack_from(">I", data, traf.one(b"trun").body + 4)[0]
            found.append((sequence, counts, at + size))
            moof = None
        at += size
    return found


def total(fragments) -> dict[int, int]:
    counts: dict[int, int] = {}
    for _, tracks, _ in fragments:
        for track, count in tracks.items():
            counts[track] = counts.get(track, 0) + count
    return counts


def sample_counts(path: pathlib.Path) -> dict[int, int]:
    """Samples by track in a finished movie."""
    movie = boxes.read_movie(path.read_bytes())
    return {track.id: len(recordings.read_tables(movie, track)) for track in movie.tracks.values()}


def check_movie(path: pathlib.Path, decode: bool = True, hole: float = 0) -> None:
    """AssertionError unless it is an ordinary movie in which every frame can be decoded. `hole`: seconds that are missing
    at one position, by its metadata."""
    nothing_wrong(recordings.check_recording(path, hole))
    if not decode:
        return
    # In a constant frame rate, slightly uneven frames would fall together, and ffmpeg would drop one of them.
    done = tools.run(tools.FFMPEG, "-nostdin", "-v", "error", "-i", path, "-map", "0", "-fps_mode", "passthrough", "-f",
                     "framecrc", "-", timeout=120)
    assert done.returncode == 0 and not done.stderr, f"{path}: {done.stderr[:2000]}"
    frames = sum(line.startswith("0,") for line in done.stdout.splitlines())
    movie = boxes.read_movie(path.read_bytes())
    expected = next(len(recordings.read_tables(movie, t)) for t in movie.tracks.values() if t.kind == "video")
    assert frames == expected, f"{path}: {frames} frames of {expected} can be decoded"


class Viewer:
    """Reads and keeps `stream.mp4`, with the time of each received piece. Waits this many seconds for the next piece."""

    def __init__(self, weir, name: str, patience: float = 20):
        self.stream = web.Stream(f"{weir.web}/live/{name}/stream.mp4", patience)
        self.data = bytearray()
        self.arrivals: list[tuple[float, int]] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            while piece := self.stream.answer.read1(1 << 18):
                self.data += piece
                self.arrivals.append((time.monotonic(), len(self.data)))
        except (OSError, ValueError, http.client.HTTPException, AttributeError):  # the last: closed meanwhile
            pass

    def fragments(self):
        return whole_fragments(bytes(self.data))

    def longest_pause(self, since: float = 0) -> float:
        """Longest time in seconds without a byte since a moment."""
        times = [moment for moment, _ in list(self.arrivals) if moment >= since]
        return max((b - a for a, b in zip(times, times[1:])), default=float("inf"))

    def close(self) -> None:
        self.stream.close()
        self.thread.join(2)


class Standing:
    """A context with a recorded stream whose publisher pauses: all received media is in the file, durably."""

    def __init__(self, weir, name: str = "cam", token: str = "", film: str = "short", fragments: int = 8):
        self.weir, self.name = weir, name
        self._admin = {"Authorization": f"Bearer {token}"}
        self.publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", loop=-1, rate=4)
        try:
            self.part = weir.wait(lambda: next(weir.recordings.glob(f"{name}/*.part.mp4"), None), 15, "it is recorded")
            weir.wait(lambda: len(whole_fragments(self.part.read_bytes())) >= fragments, 15, "there is something in it")
            self.publisher.process.send_signal(signal.SIGSTOP)
            self.media = weir.wait(self._rest, 15, "nothing comes any more", every=0.7)
        except BaseException:
            self.publisher.kill()
            raise

    def _rest(self) -> bytes | None:
        before = self.part.read_bytes()
        time.sleep(0.7)
        told = self.weir.get("/metrics").good().text
        waiting = re.search(rf'^weir_recording_unsynced_bytes{{stream="{self.name}"}} (\S+)', told, re.M)
        return before if waiting and float(waiting[1]) == 0 and self.part.read_bytes() == before else None

    @property
    def samples(self) -> dict[int, int]:
        """Recorded samples by track."""
        return total(whole_fragments(self.media))

    def end(self) -> None:
        """Stops the recording by the API. This may kill weir."""
        try:
            self.weir.get(f"/api/v1/streams/{self.name}/recording/stop", method="POST", headers=self._admin)
        except (OSError, http.client.HTTPException):
            pass

    def __enter__(self) -> "Standing":
        return self

    def __exit__(self, *_) -> None:
        self.publisher.kill()
