"""HLS playlists: parsed, judged alone (rules B of Tests/RULES.md), and polled over time (a listed entry must never change)."""

import dataclasses
import datetime
import re
import threading
import time
import urllib.parse
from http.client import HTTPException
from fractions import Fraction

from . import http

TAG = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)')


class PlaylistError(AssertionError):
    """The text is no playlist."""


def attributes(line: str) -> dict[str, str]:
    return {key: value.strip('"') for key, value in TAG.findall(line.split(":", 1)[1])}


@dataclasses.dataclass(frozen=True)
class Segment:
    """A media segment as listed; `sequence` and `discontinuities` are absolute numbers."""

    uri: str
    duration: Fraction
    extinf: str
    sequence: int
    map: str | None
    discontinuity: bool  # EXT-X-DISCONTINUITY stands before it
    discontinuities: int  # its discontinuity sequence number
    date: datetime.datetime | None
    gap: bool = False  # EXT-X-GAP: it has no media


@dataclasses.dataclass(frozen=True)
class Media:
    """A media playlist."""

    text: str
    url: str
    version: int
    target: int
    sequence: int
    segments: list[Segment]
    ended: bool
    independent: bool
    type: str | None

    @property
    def present(self) -> list[Segment]:
        """Its segments that have media."""
        return [segment for segment in self.segments if not segment.gap]

    def absolute(self, uri: str) -> str:
        return urllib.parse.urljoin(self.url, uri)


@dataclasses.dataclass(frozen=True)
class Variant:
    uri: str
    attributes: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Multivariant:
    text: str
    url: str
    variants: list[Variant]
    media: list[dict[str, str]]
    independent: bool

    def absolute(self, uri: str) -> str:
        return urllib.parse.urljoin(self.url, uri)


def _lines(text: str) -> list[str]:
    if text.startswith("\ufeff"):
        raise PlaylistError("B01 the playlist begins with a byte order mark")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0] != "#EXTM3U":
        raise PlaylistError(f"B01 the first line is {lines[0]!r}")
    return [line for line in lines if line]


def parse_multivariant(text: str, url: str) -> Multivariant:
    variants, media, pending, independent = [], [], None, False
    for line in _lines(text):
        if line.startswith("#EXT-X-STREAM-INF:"):
            pending = attributes(line)
        elif line.startswith("#EXT-X-MEDIA:"):
            media.append(attributes(line))
        elif line == "#EXT-X-INDEPENDENT-SEGMENTS":
            independent = True
        elif line.startswith("#EXTINF"):
            raise PlaylistError(f"{url} is a media playlist, not a multivariant one")
        elif not line.startswith("#"):
            if pending is None:
                raise PlaylistError(f"a URI without EXT-X-STREAM-INF: {line}")
            variants.append(Variant(line, pending))
            pending = None
    return Multivariant(text, url, variants, media, independent)


def first_playlist(index: str, seconds: float = 20) -> str:
    """The address of the first media playlist that a multivariant one names, once that one is there."""
    end = time.monotonic() + seconds
    while (answer := http.fetch(index)).status != 200 and time.monotonic() < end:
        time.sleep(0.05)
    top = parse_multivariant(answer.good().text, index)
    return top.absolute(top.variants[0].uri)


def parse_media(text: str, url: str) -> Media:
    version, target, sequence, base, ended, independent, kind = 1, None, 0, 0, False, False, None
    segments: list[Segment] = []
    extinf, mapped, broken, date, gap = None, None, False, None, False
    count = 0
    for line in _lines(text):
        if line == "#EXT-X-GAP":
            gap = True
        elif line.startswith("#EXT-X-VERSION:"):
            version = int(line.split(":")[1])
        elif line.startswith("#EXT-X-TARGETDURATION:"):
            target = int(line.split(":")[1])
        elif line.startswith("#EXT-X-MEDIA-SEQUENCE:"):
            sequence = int(line.split(":")[1])
        elif line.startswith("#EXT-X-DISCONTINUITY-SEQUENCE:"):
            base = int(line.split(":")[1])
        elif line.startswith("#EXT-X-PLAYLIST-TYPE:"):
            kind = line.split(":")[1]
        elif line == "#EXT-X-ENDLIST":
            ended = True
        elif line == "#EXT-X-INDEPENDENT-SEGMENTS":
            independent = True
        elif line == "#EXT-X-DISCONTINUITY":
            broken = True
            count += 1
        elif line.startswith("#EXT-X-MAP:"):
            mapped = attributes(line)["URI"]
        elif line.startswith("#EXT-X-PROGRAM-DATE-TIME:"):
            date = datetime.datetime.fromisoformat(line.split(":", 1)[1].replace("Z", "+00:00"))
        elif line.startswith("#EXTINF:"):
            extinf = line
        elif line.startswith("#EXT-X-STREAM-INF"):
            raise PlaylistError(f"{url} is a multivariant playlist, not a media one")
        elif not line.startswith("#"):
            if extinf is None:
                raise PlaylistError(f"a URI without EXTINF: {line}")
            if "," not in extinf:
                raise PlaylistError(f"B05 no comma in {extinf}")
            duration = Fraction(extinf[8:].split(",")[0])
            segments.append(Segment(
                line, duration, extinf, sequence + len(segments), mapped, broken, base + count, date, gap))
            extinf, broken, date, gap = None, False, None, False
    if target is None:
        raise PlaylistError(f"B02 no EXT-X-TARGETDURATION in {url}")
    return Media(text, url, version, target, sequence, segments, ended, independent, kind)


def check_media(playlist: Media) -> list[str]:
    """The violations in one state of a media playlist."""
    problems = []
    if playlist.target < 1:
        problems.append(f"B02 target duration {playlist.target}")
    for segment in playlist.segments:
        rounded = int(segment.duration + Fraction(1, 2))
        if rounded > playlist.target:
            problems.append(f"B02 {segment.uri} lasts {float(segment.duration)} s, target {playlist.target}")
        decimals = segment.extinf[8:].split(",")[0].partition(".")[2]
        if len(decimals) < 3:
            problems.append(f"B05 {segment.extinf} has {len(decimals)} decimals")
        if segment.map is None:
            problems.append(f"B12 {segment.uri} has no EXT-X-MAP")
    if playlist.version < 6:
        problems.append(f"B04 version {playlist.version} with EXT-X-MAP")
    if playlist.type is not None and not playlist.ended:
        problems.append(f"B14 a live playlist of type {playlist.type}")
    if playlist.sequence < 1:
        problems.append(f"B06 media sequence {playlist.sequence}")
    dates = [(segment, segment.date) for segment in playlist.segments]
    if playlist.segments and not any(date for _, date in dates):
        problems.append("B11 no EXT-X-PROGRAM-DATE-TIME")
    reference = None
    for segment in playlist.segments:
        if segment.date is not None and segment.date.tzinfo is None:
            problems.append(f"B11 a date without a zone: {segment.date}")
        if segment.discontinuity:
            if segment.date is None:
                problems.append(f"B11 no date after the discontinuity at {segment.uri}")
            reference = None
        if segment.date is not None:
            if reference is not None:
                drift = (segment.date - reference).total_seconds()
                if abs(drift) > 0.1:
                    problems.append(f"B11 the date of {segment.uri} is {drift * 1000:+.0f} ms off the durations")
            reference = segment.date
        if reference is not None:
            reference += datetime.timedelta(seconds=float(segment.duration))
    return problems


def check_multivariant(playlist: Multivariant, *, has_video: bool) -> list[str]:
    problems = []
    if not playlist.variants:
        problems.append("B16 no variant")
    for variant in playlist.variants:
        attributes = variant.attributes
        for name in ("BANDWIDTH", "AVERAGE-BANDWIDTH", "CODECS") + (("RESOLUTION", "FRAME-RATE") if has_video else ()):
            if not attributes.get(name):
                problems.append(f"B16 {variant.uri}: no {name}")
        if not has_video and ("RESOLUTION" in attributes or "FRAME-RATE" in attributes):
            problems.append(f"B21 {variant.uri}: RESOLUTION or FRAME-RATE without video")
        if int(attributes.get("BANDWIDTH", 0)) < int(attributes.get("AVERAGE-BANDWIDTH", 0)):
            problems.append(f"B16 {variant.uri}: BANDWIDTH below AVERAGE-BANDWIDTH")
        rate = attributes.get("FRAME-RATE")
        if rate and len(rate.partition(".")[2]) > 3:
            problems.append(f"B16 {variant.uri}: FRAME-RATE {rate}")
        group = attributes.get("AUDIO")
        if group and not any(m.get("TYPE") == "AUDIO" and m.get("GROUP-ID") == group for m in playlist.media):
            problems.append(f"B19 {variant.uri}: no audio group {group}")
    return problems


class Watch:
    """Polls a stream's playlists as a player would, from before it starts. Records forbidden changes.

    `index` is the stable URL; the media playlist's URL is taken from the multivariant one, again when a new epoch
    shows up there.
    """

    def __init__(self, index: str, every: float = 0.3):
        self.index = index
        self.every = every
        self.problems: list[str] = []
        self.states: list[tuple[float, Media]] = []  # every distinct text, with the time it was first seen
        self.first_seen: dict[str, float] = {}  # absolute segment URL → time
        self.bodies: dict[str, int] = {}  # absolute URL → hash of its bytes when it was first listed
        self.variants: list[Multivariant] = []
        self._listed: dict[str, tuple] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        url = None
        while not self._stop.is_set():
            try:
                answer = http.fetch(self.index)
                if answer.status == 200:
                    top = parse_multivariant(answer.text, self.index)
                    if not self.variants or self.variants[-1].text != top.text:
                        self.variants.append(top)
                    if top.variants:
                        url = top.absolute(top.variants[0].uri)
                elif answer.status not in (404, 503):
                    self.note(f"{self.index}: status {answer.status}")
                if url:
                    answer = http.fetch(url)
                    if answer.status == 200:
                        self._take(parse_media(answer.text, url))
                    elif answer.status not in (404, 503):
                        self.note(f"{url}: status {answer.status}")
            except PlaylistError as error:
                self.note(str(error))
            # A server that is killed answers in part.
            except (OSError, HTTPException) as error:
                self.note(f"{self.index}: {error!r}")
            self._stop.wait(self.every)

    def note(self, problem: str) -> None:
        if problem not in self.problems and len(self.problems) < 50:
            self.problems.append(problem)

    def _take(self, playlist: Media) -> None:
        previous = next((state for _, state in reversed(self.states) if state.url == playlist.url), None)
        if previous is not None and previous.text == playlist.text:
            return
        self.states.append((time.monotonic(), playlist))
        for problem in check_media(playlist):
            self.note(problem)
        if previous is not None:
            if playlist.target != previous.target:
                self.note(f"B02 the target duration went from {previous.target} to {playlist.target}")
            if playlist.sequence < previous.sequence:
                self.note(f"B06 the media sequence fell from {previous.sequence} to {playlist.sequence}")
            if previous.ended:
                self.note("B15 the playlist changed after EXT-X-ENDLIST")
            old = [segment.uri for segment in previous.segments][playlist.sequence - previous.sequence :]
            new = [segment.uri for segment in playlist.segments]
            if new[: len(old)] != old:
                self.note(f"B08 the list was not only appended to: {old[-3:]} became {new[:len(old)][-3:]}")
        for segment in playlist.segments:
            key = playlist.absolute(segment.uri)
            line = (segment.extinf, segment.map, segment.sequence, segment.discontinuities, segment.date)
            if key not in self._listed:
                self._listed[key] = line
                self.first_seen[key] = time.monotonic()
                for target in (key, playlist.absolute(segment.map) if segment.map else None):
                    if target and target not in self.bodies:
                        answer = http.fetch(target)
                        if answer.status != 200:
                            self.note(f"B26 {target} is listed but answers {answer.status}")
                        self.bodies[target] = hash(answer.body)
            elif self._listed[key][:4] != line[:4] or (line[4] and self._listed[key][4] and line[4] != self._listed[key][4]):
                self.note(f"B08 the entry of {segment.uri} changed from {self._listed[key]} to {line}")

    @property
    def last(self) -> Media | None:
        return self.states[-1][1] if self.states else None

    def stop(self) -> "Watch":
        self._stop.set()
        self._thread.join(15)
        return self


#: The server logs this where a publisher's first media came late, and where a publisher by WebRTC tells when media was made. Dates that
#: were listed before are too late by as much.
LATE = (r" {name}: (?:the first media came late; times of day are set|times of day are the publisher's own: frames ended) (\d+) ms "
        r"(?:earlier|before they came)")


def steps_told(log: str, name: str) -> list[int]:
    """By how many milliseconds the times of day of a stream were set earlier, by the log. Each may be some steps of dates."""
    return [int(step) for step in re.findall(LATE.format(name=re.escape(name)), log)]


def unexplained(problems: list[str], log: str, name: str) -> list[str]:
    """The problems that are left when such lines of the log have explained steps of the dates: of as much in all, and of 80 ms each at
    most (ListedClock)."""
    told = sum(steps_told(log, name))
    left = []
    for problem in problems:
        found = re.search(r"^B11 .* is -(\d+) ms off the durations$", problem)
        step = int(found[1]) if found else 0
        if 0 < step <= 82 and step <= told + 2:
            told -= step
        else:
            left.append(problem)
    return left
