"""A player of Low-Latency HLS that judges the server: blocking reloads, hinted parts, delta updates, reports.

Rules have their numbers of RFC 8216bis. Each promise of a playlist is compared with what is then delivered.
"""

import dataclasses
import datetime
import http.client
import re
import threading
import time
import urllib.parse
from http.client import HTTPException

from . import http as plain
from .hls import PlaylistError, attributes


POSITION = re.compile(r"(\d+)\.(\d+)\.m4s")


@dataclasses.dataclass(frozen=True)
class Part:
    uri: str
    duration: float
    independent: bool
    range: tuple[int, int] | None  # length, offset
    segment: int
    index: int

    @property
    def position(self) -> tuple[int, int]:
        return self.segment, self.index


@dataclasses.dataclass
class Segment:
    sequence: int
    uri: str | None = None  # None while it is made
    duration: float | None = None
    parts: list[Part] = dataclasses.field(default_factory=list)
    discontinuity: bool = False
    gap: bool = False
    map: str | None = None


@dataclasses.dataclass
class Playlist:
    text: str
    url: str
    version: int = 1
    target: int = 0
    sequence: int = 0
    skipped: int = 0
    control: dict[str, str] = dataclasses.field(default_factory=dict)
    part_target: float | None = None
    segments: list[Segment] = dataclasses.field(default_factory=list)
    hint: dict[str, str] | None = None
    reports: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    ended: bool = False
    dates: dict[int, datetime.datetime] = dataclasses.field(default_factory=dict)  # of segments that have one of their own

    @property
    def parts(self) -> list[Part]:
        return [part for segment in self.segments for part in segment.parts]

    @property
    def last(self) -> tuple[int, int]:
        """The newest part; or the newest segment, as the part after all of its parts."""
        newest = self.segments[-1]
        return (newest.sequence, len(newest.parts) - 1) if newest.uri is None else (newest.sequence, 1 << 20)

    @property
    def next(self) -> tuple[int, int]:
        newest = self.segments[-1]
        return (newest.sequence, len(newest.parts)) if newest.uri is None else (newest.sequence + 1, 0)


def parse(text: str, url: str) -> Playlist:
    lines = [line for line in text.split("\n") if line]
    if not lines or lines[0] != "#EXTM3U":
        raise PlaylistError(f"{url}: no playlist: {text[:80]!r}")
    result = Playlist(text, url)
    current: Segment | None = None
    mapped = None

    def segment() -> Segment:
        nonlocal current
        if current is None:
            current = Segment(result.sequence + result.skipped + len(result.segments), map=mapped)
        return current

    for line in lines[1:]:
        name, _, value = line.partition(":")
        match name:
            case "#EXT-X-VERSION": result.version = int(value)
            case "#EXT-X-TARGETDURATION": result.target = int(value)
            case "#EXT-X-MEDIA-SEQUENCE": result.sequence = int(value)
            case "#EXT-X-SERVER-CONTROL": result.control = attributes(line)
            case "#EXT-X-PART-INF": result.part_target = float(attributes(line)["PART-TARGET"])
            case "#EXT-X-SKIP": result.skipped = int(attributes(line)["SKIPPED-SEGMENTS"])
            case "#EXT-X-ENDLIST": result.ended = True
            case "#EXT-X-DISCONTINUITY": segment().discontinuity = True
            case "#EXT-X-GAP": segment().gap = True
            case "#EXT-X-PROGRAM-DATE-TIME":
                result.dates[segment().sequence] = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
            case "#EXT-X-MAP":
                mapped = attributes(line)["URI"]
                segment().map = mapped
            case "#EXTINF": segment().duration = float(value.split(",")[0])
            case "#EXT-X-PART":
                values = attributes(line)
                ranged = None
                if "BYTERANGE" in values:
                    length, _, offset = values["BYTERANGE"].partition("@")
                    ranged = int(length), int(offset)
                owner = segment()
                owner.parts.append(Part(
                    values["URI"], float(values["DURATION"]), values.get("INDEPENDENT") == "YES", ranged,
                    owner.sequence, len(owner.parts)))
            case "#EXT-X-PRELOAD-HINT":
                if result.hint is not None:
                    raise PlaylistError("C14 more than one hint of a type")
                result.hint = attributes(line)
            case "#EXT-X-RENDITION-REPORT":
                values = attributes(line)
                result.reports[values["URI"]] = int(values["LAST-MSN"]), int(values["LAST-PART"])
            case _ if not line.startswith("#"):
                owner = segment()
                owner.uri = line
                result.segments.append(owner)
                current = None
    if current is not None and current.parts:
        result.segments.append(current)
    return result


def judge(playlist: Playlist) -> list[str]:
    """The violations in one state of a live low-latency playlist."""
    problems = []
    control, target = playlist.control, playlist.part_target
    if control.get("CAN-BLOCK-RELOAD") != "YES":
        problems.append("C01 no CAN-BLOCK-RELOAD=YES")
    if target is None:
        return problems + ["C03 no PART-TARGET"]
    if float(control.get("PART-HOLD-BACK", 0)) < 3 * target - 1e-6:
        problems.append(f"C01 PART-HOLD-BACK {control.get('PART-HOLD-BACK')} for PART-TARGET {target}")
    if float(control.get("HOLD-BACK", 3 * playlist.target)) < 3 * playlist.target:
        problems.append(f"C01 HOLD-BACK {control['HOLD-BACK']}")
    if float(control.get("CAN-SKIP-UNTIL", 0)) < 6 * playlist.target:
        problems.append(f"C02 CAN-SKIP-UNTIL {control.get('CAN-SKIP-UNTIL')}")
    if playlist.skipped and playlist.version < 9:
        problems.append(f"C19 EXT-X-SKIP with version {playlist.version}")
    if playlist.hint is None:
        problems.append("C14 no hint")
    elif playlist.hint.get("TYPE") != "PART":
        problems.append(f"C14 a hint of type {playlist.hint.get('TYPE')}")
    else:
        problems += judge_hint(playlist)
    if "#EXT-X-PROGRAM-DATE-TIME:" not in playlist.text:
        problems.append("C20 no PROGRAM-DATE-TIME")
    following = playlist.segments[1:] + [None]
    for segment, after in zip(playlist.segments, following):
        for part in segment.parts:
            if part.duration > target + 1e-6:
                problems.append(f"C03 {part.uri} lasts {part.duration}, PART-TARGET {target}")
            if part.duration < 0.0025:
                problems.append(f"C03 {part.uri} has no length")
            is_last = segment.uri is not None and part is segment.parts[-1]
            # The very first part may be short, so that viewers have a frame at once: it is INDEPENDENT (RFC 8216bis §4.4.4.9).
            is_first = part.position == (1, 0) and part.independent
            if part.duration < 0.85 * target - 1e-6 and not is_last and not is_first:
                problems.append(f"C03 {part.uri} lasts only {part.duration} of {target}")
        if segment.uri is not None and segment.parts:
            total = sum(part.duration for part in segment.parts)
            if abs(total - segment.duration) > 1e-3:
                problems.append(f"C04 the parts of {segment.uri} last {total}, EXTINF {segment.duration}")
        if segment.parts and segment.parts[0].index == 0 and not segment.parts[0].independent:
            problems.append(f"C05 {segment.parts[0].uri} is not INDEPENDENT")
    listed = [segment for segment in playlist.segments if segment.parts]
    behind = sum(s.duration or sum(p.duration for p in s.parts) for s in listed)
    have = sum(s.duration or sum(p.duration for p in s.parts) for s in playlist.segments)
    if behind < min(3 * playlist.target, have) - playlist.target - 0.01:
        problems.append(f"C07 parts of only {behind} s")
    if behind > 4 * playlist.target + 1:
        problems.append(f"C07 parts of {behind} s")
    return problems


def judge_hint(playlist: Playlist) -> list[str]:
    """The hint names the next part after all existing ones."""
    problems = []
    lines = playlist.text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("#EXT-X-PRELOAD-HINT"))
    if any(line.startswith(("#EXT-X-PART:", "#EXTINF")) for line in lines[at:]):
        problems.append("C14 the hint stands before media that is there")
    uri, start = playlist.hint.get("URI", ""), int(playlist.hint.get("BYTERANGE-START", 0))
    if any(part.uri == uri and (part.range is None or part.range[1] >= start) for part in playlist.parts):
        problems.append(f"C14 {uri} is hinted and is there")
    if found := POSITION.search(uri):
        segment, part = map(int, found.groups())
        # Before its end is known, a segment may end with any of its parts.
        if (segment, part) not in (playlist.next, (playlist.next[0] + 1, 0)):
            problems.append(f"C14 {uri} is hinted after {playlist.last}")
    return problems


class Connection:
    """Successive requests on one connection, as players send them."""

    def __init__(self, url: str, timeout: float = 30):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def get(self, url: str, headers: dict[str, str] | None = None) -> plain.Response:
        parts = urllib.parse.urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        self.connection.request("GET", path, headers=headers or {})
        answer = self.connection.getresponse()
        body = answer.read()
        return plain.Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, body, url)

    def close(self) -> None:
        self.connection.close()


def age(playlist: Playlist, now: float) -> float | None:
    """The wall clock `now`, minus the wall clock of the end of the newest part, in seconds. None between two segments."""
    newest = playlist.segments[-1]
    if not newest.parts or newest.uri is not None:
        return None
    date = re.findall(r"#EXT-X-PROGRAM-DATE-TIME:(\S+)", playlist.text)[-1]
    begin = datetime.datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()
    return now - begin - sum(part.duration for part in newest.parts)


class Player:
    """Follows one media playlist for a while, and requests each hinted part before it exists."""

    def __init__(self, url: str, *, skips: bool = False):
        self.url = url
        self.skips = skips
        self.problems: list[str] = []
        self.playlists: list[tuple[float, Playlist]] = []
        self.hinted: dict[tuple, tuple[float, plain.Response]] = {}  # (uri, offset) → when it was whole, and what
        self.parts: dict[tuple[int, int], Part] = {}
        self.segments: dict[int, Segment] = {}
        self.segment_urls: dict[int, str] = {}

    def note(self, problem: str) -> None:
        if problem not in self.problems and len(self.problems) < 40:
            self.problems.append(problem)

    def play(self, seconds: float = 60, states: int = 1 << 20) -> "Player":
        """For so long, or until it has seen so many playlists."""
        end = time.monotonic() + seconds
        connection = Connection(self.url)
        fetchers: list[threading.Thread] = []
        try:
            playlist = self._load(connection, None)
            while time.monotonic() < end and len(self.playlists) < states and not playlist.ended:
                fetchers.append(self._fetch_hint(playlist))
                playlist = self._load(connection, playlist)
            for fetcher in fetchers:
                fetcher.join(15)
        finally:
            connection.close()
        return self

    def _load(self, connection: Connection, before: Playlist | None) -> Playlist:
        url = self.url
        if before is not None:
            url += f"?_HLS_msn={before.next[0]}&_HLS_part={before.next[1]}" + ("&_HLS_skip=YES" if self.skips else "")
        answer = connection.get(url).good()
        playlist = parse(answer.text, self.url)
        self.playlists.append((time.monotonic(), playlist))
        if not playlist.ended:
            for problem in judge(playlist):
                self.note(problem)
        self._take(playlist, before)
        return playlist

    def _take(self, playlist: Playlist, before: Playlist | None) -> None:
        for segment in playlist.segments:
            for part in segment.parts:
                known = self.parts.setdefault(part.position, part)
                if known != part:
                    self.note(f"B08 {part.position} was {known}, is {part}")
            if segment.uri is not None:
                self.segments.setdefault(segment.sequence, segment)
                self.segment_urls[segment.sequence] = urllib.parse.urljoin(self.url, segment.uri)
        if before is None or playlist.ended:
            return
        if playlist.last < before.next:
            self.note(f"C09 asked for {before.next}, answered with {playlist.last}")
        if playlist.skipped:
            shown = playlist.segments[0].sequence
            if before.sequence + before.skipped > shown:
                self.note(f"C19 skipped beyond what the client has: {shown}")
            age = sum(s.duration or sum(p.duration for p in s.parts) for s in playlist.segments)
            if age < 6 * playlist.target:
                self.note(f"C19 only {age} s are left behind EXT-X-SKIP")

    def _fetch_hint(self, playlist: Playlist) -> threading.Thread:
        hint = playlist.hint or {}
        url = urllib.parse.urljoin(self.url, hint.get("URI", ""))
        offset = int(hint["BYTERANGE-START"]) if "BYTERANGE-START" in hint else None
        key = (hint.get("URI"), offset)

        def run() -> None:
            if key in self.hinted or "URI" not in hint:
                return
            try:
                headers = {"Range": f"bytes={offset}-"} if offset else {}
                answer = Connection(url).get(url, headers)
                self.hinted[key] = time.monotonic(), answer
            # A server that is killed answers in part.
            except (OSError, HTTPException) as error:
                self.note(f"C15 {key}: {error!r}")

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def judge_steps(self, length: float) -> "Player":
        """Parts follow each other without a gap, usually of this length, and dates follow from lengths: what the names of parts and
        PROGRAM-DATE-TIME tell of the steps in which a playlist grows. `hls.unexplained` passes over a clock that was set."""
        places = sorted(self.parts)
        for before, after in zip(places, places[1:]):
            if after not in ((before[0], before[1] + 1), (before[0] + 1, 0)):
                self.note(f"C06 {after} follows {before}")
        lengths = sorted(part.duration for part in self.parts.values())
        if not lengths or abs(lengths[len(lengths) // 2] - length) > 0.05:
            self.note(f"C06 parts last {lengths[len(lengths) // 2] if lengths else None}")
        dates: dict[int, datetime.datetime] = {}
        for _, playlist in self.playlists:
            dates |= playlist.dates
        for number, date in dates.items():
            segment, then = self.segments.get(number), dates.get(number + 1)
            if segment is not None and then is not None and not segment.gap:
                off = (then - date).total_seconds() - segment.duration
                if abs(off) > 0.002:
                    self.note(f"B11 the date of {number + 1} is {off * 1000:+.0f} ms off the durations")
        return self

    def judge_media(self) -> "Player":
        """Fetches every segment seen, and compares it with its parts and with the responses to the hints."""
        connection = Connection(self.url)
        checked = 0
        for number, segment in sorted(self.segments.items()):
            answer = connection.get(self.segment_urls[number])
            if answer.status == 404 or segment.gap:
                continue
            whole = answer.good().body
            parts = [self.parts[key] for key in sorted(self.parts) if key[0] == number]
            if not parts or len(parts) != len(segment.parts or parts):
                continue
            joined = b""
            for part in parts:
                url = urllib.parse.urljoin(self.url, part.uri)
                if part.range is None:
                    body = connection.get(url).good().body
                    key = (part.uri, None)
                else:
                    length, offset = part.range
                    got = connection.get(url, {"Range": f"bytes={offset}-{offset + length - 1}"})
                    if got.status != 206:
                        self.note(f"C16 a range of {part.uri}: {got.status}")
                    body, key = got.body, (part.uri, offset)
                joined += body
                if key in self.hinted:
                    hint = self.hinted[key][1]
                    if hint.status not in (200, 206):
                        self.note(f"C15 the hinted {key}: {hint.status}")
                    elif part.range is None and hint.body != body:
                        self.note(f"C15 the hinted {key} had {len(hint.body)} bytes, now {len(body)}")
                    elif part.range is not None and hint.body != whole[part.range[1]:]:
                        self.note(f"C16 from {part.range[1]} on {part.uri} had {len(hint.body)} bytes")
                    checked += 1
            if joined != whole:
                self.note(f"C04 the parts of segment {number} are not the segment: {len(joined)}, {len(whole)} bytes")
        connection.close()
        if not checked:
            self.note("no hinted part could be compared")
        if self.playlists and not self.playlists[-1][1].ended:
            for key, (_, answer) in self.hinted.items():
                if answer.status not in (200, 206):
                    self.note(f"C14 the hinted {key} never came: {answer.status}")
        return self
