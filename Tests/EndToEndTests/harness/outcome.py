"""Everything that weir makes of one stream: the playlists are polled while it is live and stream.mp4 is captured. All
segments and the finished recording are kept on disk, so that they can be judged after the server has ended."""

import pathlib
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

from . import box_rules, boxes, dash, hls, http, packets
from .weir import Weir


class Outcome:
    """The received media of one stream. Create it before the stream is published, and call `collect()` after its end."""

    def __init__(self, weir: Weir, name: str, folder: pathlib.Path, *, progressive: bool = True):
        self.weir, self.name, self.folder = weir, name, folder / name
        self.folder.mkdir(parents=True)
        self.base = f"{weir.web}/live/{name}"
        self.hls = hls.Watch(f"{self.base}/index.m3u8")
        self.dash = dash.Watch(f"{self.base}/manifest.mpd", f"{weir.web}/time")
        self.progressive = self.folder / "stream.mp4"
        self.late = 0.0  # seconds from the last request that came too early to the response of the one that did not
        self.progressive_error = "stream.mp4 was not requested"
        self.recordings: list[pathlib.Path] = []
        self.catalogue: list[dict] = []
        self.api: dict | None = None
        self._stop = threading.Event()
        self._capture = threading.Thread(target=self._follow, daemon=True)
        if progressive:
            self._capture.start()

    def _follow(self) -> None:
        """Requests stream.mp4 until it exists, then keeps all of it."""
        missed = time.monotonic()
        try:
            while not self._stop.is_set():
                asked = time.monotonic()
                stream = http.Stream(f"{self.base}/stream.mp4", timeout=45)
                if stream.status == 200:
                    self.late = time.monotonic() - missed
                    self.progressive.write_bytes(stream.read(120))
                    self.progressive_error = ""
                    return
                stream.close()
                self.progressive_error = f"stream.mp4 answers {stream.status}"
                if stream.status not in (404, 503):
                    return
                missed = asked
                time.sleep(0.02)
        except (OSError, AssertionError) as error:
            self.progressive_error = f"stream.mp4: {error!r}"

    def collect(self, recordings: int = 1, seconds: float = 25) -> "Outcome":
        """After the publisher has gone: waits until the playlists have ended and the recordings are complete, and downloads
        everything. If they do not become complete, the judges report it."""
        self._wait(seconds, lambda: self.hls.last and self.hls.last.ended
                   and self.dash.last and self.dash.last.type == "static")
        self.api = self.weir.stream(self.name)
        self._stop.set()
        self.hls.stop()
        self.dash.stop()
        self._mirror_hls()
        self._mirror_dash()
        if self._capture.is_alive():
            self._capture.join(25)

        def recorded() -> bool:
            self.catalogue = self.weir.recordings_of(self.name)
            return len([r for r in self.catalogue if r["state"] == "completed"]) >= recordings

        self._wait(seconds, recorded)
        for entry in self.catalogue:
            if entry["state"] == "completed":
                path = self.folder / entry["file"]
                path.write_bytes(self.weir.get(entry["url"]).good().body)
                self.recordings.append(path)
        return self

    @staticmethod
    def _wait(seconds: float, condition) -> None:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _save(self, url: str) -> pathlib.Path:
        """Stores the resource at the URL below `mirror`, under the same path. It is fetched once."""
        path = self.folder / "mirror" / urllib.parse.urlsplit(url).path.lstrip("/")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(http.fetch(url).good().body)
        return path

    def _mirror_hls(self) -> None:
        answer = http.fetch(self.hls.index)
        if answer.status != 200:
            self.hls.note(f"after the end {self.hls.index} answers {answer.status}")
            return
        self.index = self._save(self.hls.index)
        top = hls.parse_multivariant(answer.text, self.hls.index)
        for variant in top.variants:
            url = top.absolute(variant.uri)
            playlist = hls.parse_media(self._save(url).read_text(), url)
            for uri in {s.map for s in playlist.present if s.map} | {s.uri for s in playlist.present}:
                self._save(playlist.absolute(uri))

    def _mirror_dash(self) -> None:
        answer = http.fetch(self.dash.url)
        if answer.status != 200:
            self.dash.note(f"D16 after the end {self.dash.url} answers {answer.status}")
            return
        self.manifest = self._save(self.dash.url)
        try:
            manifest = dash.parse(answer.text, self.dash.url)
        except (dash.ManifestError, ElementTree.ParseError) as error:
            self.dash.note(str(error))
            return
        for r in manifest.representations:
            self._save(r.init)
            for entry in r.entries:
                self._save(entry.url)

    # The mirror, read back

    def media(self) -> hls.Media:
        """The final media playlist."""
        if self.hls.last is None:
            raise AssertionError(f"{self.hls.index} never had a media playlist: {self.hls.problems}")
        return self.hls.last

    def bytes_of(self, url: str) -> bytes:
        return self._save(url).read_bytes()

    def check_hls_boxes(self) -> list[str]:
        """Checks every init segment and every segment of the final playlist by the box rules."""
        playlist = self.media()
        problems: list[str] = []
        state = box_rules.Continuity()
        movies: dict[str, boxes.Movie] = {}
        for segment in playlist.present:
            if segment.map not in movies:
                movies[segment.map] = boxes.read_movie(self.bytes_of(playlist.absolute(segment.map)))
                problems += box_rules.check_init(movies[segment.map], tracks="many")
            movie = movies[segment.map]
            if segment.discontinuity:
                state.clock.clear()
            read = boxes.read_segment(self.bytes_of(playlist.absolute(segment.uri)), movie)
            last = segment is playlist.present[-1]
            found = box_rules.check_segment(read, movie, state, tracks="many", last=last,
                                            independent=playlist.independent)
            lead = box_rules.lead(movie)
            length = box_rules.segment_length(read, movie, lead)
            frame = max((s.duration for f in read.fragments for r in f.runs if r.track == lead for s in r.samples),
                        default=0) / movie.tracks[lead].timescale
            if abs(length - segment.duration) > frame:
                found.append(f"B05 EXTINF {float(segment.duration)}, media {float(length)}")
            problems += [f"{segment.uri}: {problem}" for problem in found]
        return problems

    def walked_hls(self) -> dict[str, list[packets.Packet]]:
        """All packets of the final playlist by our own parser. Only for a stream with one init segment."""
        playlist = self.media()
        (uri,) = {segment.map for segment in playlist.present}
        movie = boxes.read_movie(self.bytes_of(playlist.absolute(uri)))
        return packets.walked(movie, [
            boxes.read_segment(self.bytes_of(playlist.absolute(s.uri)), movie) for s in playlist.present])

    def walked_dash(self) -> dict[str, list[packets.Packet]]:
        """All packets of the final manifest by our own parser, one Period after the other."""
        found: dict[str, list[packets.Packet]] = {}
        for r in self.dash.last.representations if self.dash.last else []:
            movie = boxes.read_movie(self.bytes_of(r.init))
            segments = [boxes.read_segment(self.bytes_of(e.url), movie) for e in r.entries]
            for kind, walked in packets.walked(movie, segments).items():
                found.setdefault(kind, []).extend(walked)
        return found

    def digests(self, kind: str) -> list[str]:
        """The digests of one kind's samples in the final playlist, over all its init segments."""
        playlist = self.media()
        found = []
        for segment in playlist.present:
            movie = boxes.read_movie(self.bytes_of(playlist.absolute(segment.map)))
            read = boxes.read_segment(self.bytes_of(playlist.absolute(segment.uri)), movie)
            found += [p.digest for p in packets.walked(movie, [read]).get(kind, [])]
        return found

    def decode_hls_by_map(self) -> tuple[str, dict[str, int]]:
        """Decodes each stretch between two changes of the init segment by itself, because ffmpeg's HLS demuxer keeps the first
        init segment. Returns error lines and the number of frames by kind."""
        playlist = self.media()
        errors, frames = "", {}
        for uri in dict.fromkeys(segment.map for segment in playlist.present):
            path = self.folder / f"stretch-{uri}"
            parts = [uri] + [segment.uri for segment in playlist.present if segment.map == uri]
            path.write_bytes(b"".join(self.bytes_of(playlist.absolute(part)) for part in parts))
            said, found = packets.decode(path)
            errors += said
            frames = {kind: frames.get(kind, 0) + found.get(kind, 0) for kind in {*frames, *found}}
        return errors, frames

    def check_progressive_boxes(self) -> list[str]:
        """Checks the captured stream.mp4 by the box rules."""
        if self.progressive_error:
            return [self.progressive_error]
        data = self.progressive.read_bytes()
        top = boxes.read_boxes(data)
        first = next((box.start for box in top if box.type in (b"moof", b"styp", b"prft")), len(data))
        movie = boxes.read_movie(data[:first])
        state = box_rules.Continuity()
        problems = box_rules.check_init(movie, tracks="many")
        for fragment in boxes.read_segment(data[first:], movie).fragments:
            problems += box_rules.check_fragment(data[first:], fragment, movie, state)
        return problems

    def check_dash_boxes(self) -> list[str]:
        """The same for every track of the final manifest. Its timeline is compared with the media times."""
        manifest = self.dash.last
        if manifest is None:
            return [f"{self.dash.url} never had a manifest: {self.dash.problems}"]
        problems: list[str] = []
        states: dict[str, box_rules.Continuity] = {}
        for r in manifest.representations:
            movie = boxes.read_movie(self.bytes_of(r.init))
            problems += [f"{r.id} init: {problem}" for problem in box_rules.check_init(movie, tracks="one")]
            (track,) = movie.tracks or (0,)
            if movie.tracks[track].timescale != r.timescale:
                problems.append(f"D06 {r.id}: timescale {r.timescale}, the media's is {movie.tracks[track].timescale}")
            state = states.setdefault(r.id, box_rules.Continuity())
            state.clock.clear()
            following = {a.url: b.time for a, b in zip(r.entries, r.entries[1:])}
            for entry in r.entries:
                read = boxes.read_segment(self.bytes_of(entry.url), movie)
                found = box_rules.check_segment(read, movie, state, tracks="one", last=entry is r.entries[-1])
                starts = [run.tfdt for f in read.fragments for run in f.runs][:1]
                earliest = box_rules.earliest_presentation(read, track)
                if earliest != entry.time:
                    found.append(f"D06 S@t {entry.time}, earliest presentation {earliest}, tfdt {starts}")
                length = sum(s.duration for f in read.fragments for run in f.runs for s in run.samples)
                # Up to the next segment's earliest presentation time. With a variable rate that is not the sum of durations.
                # The announcement of the last segment stays when its Period ends early, or ends with the remaining audio.
                left = 0 if entry.url in following else r.timescale * 3 // 10
                end = entry.time + entry.duration
                if end != following.get(entry.url, end) or end + left < entry.time + length and left:
                    found.append(f"D06 S@d {entry.duration}, media {length}, next at {following.get(entry.url)}")
                problems += [f"{entry.url.rsplit('/', 3)[1:]}: {problem}" for problem in found]
        return problems
