"""Recordings of streams whose frames are all known: over all files, no frame is missing and none occurs twice."""

import dataclasses
import threading

from . import boxes, recordings
from .marathon import Reel


@dataclasses.dataclass
class Account:
    """One stream: the content of its finished files, by kind of track."""

    counts: dict[str, int] = dataclasses.field(default_factory=lambda: {"video": 0, "audio": 0})
    files: list[str] = dataclasses.field(default_factory=list)
    #: Samples that are longer than they should be: the publisher was absent there.
    pauses: int = 0


class Ledger:
    """Reads each recording of these streams when it is finished, before retention removes it."""

    def __init__(self, weir, reel: Reel, names: list[str]):
        self.weir, self.reel = weir, reel
        self.accounts = {name: Account() for name in names}
        self.problems: list[str] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(3):
            try:
                self.take()
            except (AssertionError, OSError) as error:
                self.problems.append(repr(error))

    def take(self) -> None:
        """Reads the recordings that were finished since the last call."""
        for name, account in self.accounts.items():
            done = self.weir.json(f"/api/v1/recordings?stream={name}&state=completed")["recordings"]
            for entry in sorted(done, key=lambda entry: entry["file"]):
                if entry["file"] not in account.files:
                    account.files.append(entry["file"])
                    self._read(name, account, entry)

    def _read(self, name: str, account: Account, entry: dict) -> None:
        path = self.weir.recordings / name / entry["file"]
        data = path.read_bytes()
        if len(account.files) == 1:
            # Only one file of each stream is checked box by box, because that takes long.
            self.problems += [f"{path}: {problem}" for problem in recordings.check_recording(path)]
        movie = boxes.read_movie(data)
        for track in movie.tracks.values():
            known, first = self.reel.samples[track.kind], account.counts[track.kind]
            tables = recordings.read_tables(movie, track)
            for number, sample in enumerate(tables, first):
                if data[sample.offset:sample.offset + sample.size] != known[number % len(known)]:
                    self.problems.append(f"{path}: {track.kind} {number - first} of {len(tables)} is not frame {number} of its stream")
                    break
            account.counts[track.kind] += len(tables)
            usual = sorted(sample.duration for sample in tables)[len(tables) // 2]
            account.pauses += sum(sample.duration > usual * 1.5 for sample in tables)

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()
