"""DASH manifests (ISO/IEC 23009-1): parsed, judged, and polled over time (rules D of Tests/RULES.md)."""

import dataclasses
import datetime
import re
import threading
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from http.client import HTTPException
from fractions import Fraction

from . import boxes, http

NAMESPACE = "urn:mpeg:dash:schema:mpd:2011"
DURATION = re.compile(r"^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$")


class ManifestError(AssertionError):
    """The text is no manifest, or one that this parser does not support."""


def seconds(text: str | None) -> Fraction | None:
    """An xs:duration in seconds."""
    if text is None:
        return None
    match = DURATION.match(text)
    if not match:
        raise ManifestError(f"D01 {text!r} is no duration")
    days, hours, minutes, rest = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + Fraction(rest or 0)


def moment(text: str | None) -> datetime.datetime | None:
    if text is None:
        return None
    when = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    if when.tzinfo is None:
        raise ManifestError(f"D02 {text!r} has no zone")
    return when


@dataclasses.dataclass(frozen=True)
class Entry:
    """A segment: its start and length in the timescale's ticks, its URL."""

    time: int
    duration: int
    url: str


@dataclasses.dataclass(frozen=True)
class Representation:
    period: str
    period_start: Fraction
    kind: str
    id: str
    codecs: str
    bandwidth: int
    timescale: int
    offset: int  # presentationTimeOffset
    init: str
    entries: list[Entry]
    attributes: dict[str, str]
    template: dict[str, str]  # attributes of the SegmentTemplate

    @property
    def early(self) -> Fraction:
        """How long before its end a segment becomes available (availabilityTimeOffset), in seconds."""
        return Fraction(self.template.get("availabilityTimeOffset", "0"))


@dataclasses.dataclass(frozen=True)
class Manifest:
    text: str
    url: str
    type: str
    attributes: dict[str, str]
    start: datetime.datetime | None  # availabilityStartTime
    published: datetime.datetime | None
    representations: list[Representation]
    timing: list[tuple[str, str]]  # scheme, value

    def available(self, representation: Representation, time: int, duration: int) -> datetime.datetime:
        """When a segment of these ticks becomes available (§5.3.9.5.3)."""
        ticks = time + duration - representation.offset
        after = representation.period_start + Fraction(ticks, representation.timescale) - representation.early
        return self.start + datetime.timedelta(seconds=float(after))

    def wall(self, representation: Representation, ticks: int) -> datetime.datetime:
        """The wall-clock time of a media time."""
        after = representation.period_start + Fraction(ticks - representation.offset, representation.timescale)
        return self.start + datetime.timedelta(seconds=float(after))


def _name(tag: str) -> str:
    return f"{{{NAMESPACE}}}{tag}"


def parse(text: str, url: str) -> Manifest:
    if re.search(r"<!--.*<MPD", text, re.S):
        raise ManifestError("D19 a comment before <MPD")
    root = ElementTree.fromstring(text)
    if root.tag != _name("MPD"):
        raise ManifestError(f"D01 the root is {root.tag}")
    found = []
    clock = Fraction(0)
    for index, period in enumerate(root.findall(_name("Period"))):
        start = seconds(period.get("start"))
        start = clock if start is None else start
        for group in period.findall(_name("AdaptationSet")):
            for item in group.findall(_name("Representation")):
                found.append(_representation(root, url, period, index, start, group, item))
        clock = start + (seconds(period.get("duration")) or 0)
    timing = [(t.get("schemeIdUri", ""), t.get("value", "")) for t in root.findall(_name("UTCTiming"))]
    return Manifest(
        text, url, root.get("type", "static"), dict(root.attrib), moment(root.get("availabilityStartTime")),
        moment(root.get("publishTime")), found, timing)


def _representation(root, url, period, index, start, group, item) -> Representation:
    base = url
    for level in (root, period, group, item):
        node = level.find(_name("BaseURL"))
        if node is not None:
            base = urllib.parse.urljoin(base, node.text.strip())
    template: dict[str, str] = {}
    timeline = None
    for level in (period, group, item):
        node = level.find(_name("SegmentTemplate"))
        if node is not None:
            template |= node.attrib
            timeline = node.find(_name("SegmentTimeline")) if node.find(_name("SegmentTimeline")) is not None else timeline
    if timeline is None:
        raise ManifestError("D06 no SegmentTimeline")
    values = {**group.attrib, **item.attrib}
    number = int(template.get("startNumber", 1))
    entries = []
    clock = 0
    for s in timeline.findall(_name("S")):
        clock = int(s.get("t", clock))
        if int(s.get("r", 0)) < 0:
            raise ManifestError("D06 a negative repeat")
        for _ in range(int(s.get("r", 0)) + 1):
            name = _fill(template["media"], values["id"], values.get("bandwidth", "0"), number, clock)
            entries.append(Entry(clock, int(s.get("d")), urllib.parse.urljoin(base, name)))
            number += 1
            clock += int(s.get("d"))
    init = _fill(template["initialization"], values["id"], values.get("bandwidth", "0"), 0, 0)
    kind = values.get("contentType") or values.get("mimeType", "").split("/")[0]
    return Representation(
        period.get("id", str(index)), start, kind, values["id"], values.get("codecs", ""),
        int(values.get("bandwidth", 0)), int(template.get("timescale", 1)),
        int(template.get("presentationTimeOffset", 0)), urllib.parse.urljoin(base, init), entries, values, template)


def _fill(template: str, identity: str, bandwidth: str, number: int, when: int) -> str:
    values = {"RepresentationID": identity, "Bandwidth": bandwidth, "Number": number, "Time": when}

    def replace(match: re.Match) -> str:
        value = values[match.group(1)]
        return (match.group(2) or "%s") % (int(value) if match.group(2) else value)

    return re.sub(r"\$(\w+)(%0\d+d)?\$", replace, template)


def begins_with_key(r: Representation, entry: Entry) -> bool:
    """By the segment itself."""
    init, segment = http.fetch(r.init), http.fetch(entry.url)
    # One that is gone shows nothing.
    if (init.status, segment.status) != (200, 200):
        return True
    fragments = boxes.read_segment(segment.body, boxes.read_movie(init.body)).fragments
    return all(run.samples[0].is_sync for run in fragments[0].runs if run.samples)


def overlaps(manifest: Manifest) -> list[float]:
    """For each Period but the first: by how many seconds it begins before the media of the one before end."""
    ends: dict[tuple[Fraction, str], Fraction] = {}
    for r in manifest.representations:
        if r.entries:
            ticks = r.entries[-1].time + r.entries[-1].duration - r.offset
            key = (r.period_start, r.period)
            # Audio goes on for up to a frame.
            if r.kind == "video" or key not in ends:
                ends[key] = r.period_start + Fraction(ticks, r.timescale)
    periods = sorted(ends)
    return [float(ends[before] - after[0]) for before, after in zip(periods, periods[1:])]


def check(manifest: Manifest, begins: Callable[[Representation, Entry], bool] | None = None) -> list[str]:
    """The violations in one state of a manifest. `begins` looks whether a segment begins with a key frame. Without it all are
    expected to."""
    problems = []
    have = manifest.attributes
    for name in ("profiles", "minBufferTime"):
        if name not in have:
            problems.append(f"D01 no MPD@{name}")
    if manifest.type == "dynamic":
        for name in ("availabilityStartTime", "publishTime", "minimumUpdatePeriod", "timeShiftBufferDepth",
                     "suggestedPresentationDelay"):
            if name not in have:
                problems.append(f"D02 no MPD@{name} in a dynamic manifest")
        if not manifest.timing:
            problems.append("D04 no UTCTiming")
    else:
        if "mediaPresentationDuration" not in have:
            problems.append("D16 a static manifest without mediaPresentationDuration")
        if "minimumUpdatePeriod" in have:
            problems.append("D16 a static manifest with minimumUpdatePeriod")
    identities = [(r.period, r.id) for r in manifest.representations]
    if len(set(identities)) != len(identities):
        problems.append(f"D11 Representation ids are not unique: {identities}")
    longest = seconds(have.get("maxSegmentDuration"))
    unpromised = _unpromised(manifest, begins) if begins else set()
    for r in manifest.representations:
        name = f"{r.period}/{r.id}"
        if not r.codecs or not r.bandwidth or not r.attributes.get("mimeType"):
            problems.append(f"D11 {name}: codecs {r.codecs!r}, bandwidth {r.bandwidth}, {r.attributes.get('mimeType')}")
        if r.kind == "video":
            for key in ("width", "height", "frameRate", "sar"):
                if key not in r.attributes:
                    problems.append(f"D11 {name}: no {key}")
        if r.kind == "audio" and "audioSamplingRate" not in r.attributes:
            problems.append(f"D11 {name}: no audioSamplingRate")
        # 3: an open group of pictures. Without it nobody promises that segments begin with a key frame (ISO/IEC 23009-1 §5.3.7.2):
        # that is right where one of them does not.
        allowed = (None,) if (r.period, r.id) in unpromised else ("1", "3")
        if r.attributes.get("startWithSAP") not in allowed or r.attributes.get("segmentAlignment") != "true":
            problems.append(f"D11 {name} of {manifest.url}: startWithSAP {r.attributes.get('startWithSAP')}, "
                            f"segmentAlignment {r.attributes.get('segmentAlignment')}")
        early = "availabilityTimeOffset" in r.template
        if early != (r.template.get("availabilityTimeComplete") == "false"):
            problems.append(f"D12 {name}: {r.template}")
        if early and manifest.type == "static":
            problems.append(f"D16 {name}: availabilityTimeOffset in a static manifest")
        for a, b in zip(r.entries, r.entries[1:]):
            if a.time + a.duration != b.time:
                problems.append(f"D06 {name}: a hole between {a} and {b}")
        if longest is not None:
            over = [e for e in r.entries if Fraction(e.duration, r.timescale) > longest]
            if over:
                problems.append(f"D11 {name}: a segment of {over[0].duration}/{r.timescale} s, maximum {float(longest)}")
    over = max(overlaps(manifest), default=0)
    if over > 0.7:
        problems.append(f"D21 a Period of {manifest.url} begins {over:.3f} s before the media of the one before end")
    return problems


def _unpromised(manifest: Manifest, begins: Callable[[Representation, Entry], bool]) -> set[tuple[str, str]]:
    """Videos without startWithSAP whose Period lists a segment that begins without a key frame."""
    silent = [r for r in manifest.representations if r.kind == "video" and "startWithSAP" not in r.attributes]
    cut = {r.period for r in silent if not all(begins(r, entry) for entry in r.entries)}
    return {(r.period, r.id) for r in silent if r.period in cut}


class Watch:
    """Polls a manifest from before the stream starts. Records forbidden changes, and segments that are announced before
    they are available."""

    def __init__(self, url: str, clock: str, every: float = 0.4):
        self.url, self.clock, self.every = url, clock, every
        self.problems: list[str] = []
        self.states: list[Manifest] = []
        self._listed: dict[str, tuple[int, int]] = {}
        self._corrected: set[str] = set()
        self._begins: dict[str, bool] = {}
        #: When the last manifest was asked for, and this one: what is new was not listed at the first, however late it is seen.
        self._looked = self._looks = datetime.datetime.now(datetime.timezone.utc)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._looked, self._looks = self._looks, datetime.datetime.now(datetime.timezone.utc)
            try:
                answer = http.fetch(self.url)
                if answer.status == 200:
                    self._take(parse(answer.text, self.url))
                elif answer.status not in (404, 503):
                    self.note(f"{self.url}: status {answer.status}")
            except (ManifestError, ElementTree.ParseError) as error:
                self.note(f"{error}")
            # A server that is killed answers in part.
            except (OSError, HTTPException) as error:
                self.note(f"{self.url}: {error!r}")
            self._stop.wait(self.every)

    def note(self, problem: str) -> None:
        if problem not in self.problems and len(self.problems) < 50:
            self.problems.append(problem)

    def _take(self, manifest: Manifest) -> None:
        if self.states and self.states[-1].text == manifest.text:
            return
        previous = self.states[-1] if self.states else None
        self.states.append(manifest)
        for problem in check(manifest, self._begins_with_key):
            self.note(problem)
        if previous is not None and previous.type == manifest.type == "dynamic" and previous.start == manifest.start:
            if previous.published and manifest.published and manifest.published < previous.published:
                self.note(f"D03 publishTime went back from {previous.published} to {manifest.published}")
        elif previous is not None and manifest.type == "dynamic" and self._same_epoch(previous, manifest):
            self.note(f"D02 availabilityStartTime went from {previous.start} to {manifest.start}")
        now = moment(http.fetch(self.clock).good().text)
        absent = self._looked + (now - datetime.datetime.now(datetime.timezone.utc))
        for r in manifest.representations:
            for entry in r.entries:
                known = self._listed.get(entry.url)
                if known is None:
                    self._listed[entry.url] = (entry.time, entry.duration)
                    self._check_available(manifest, r, entry, now, absent, bool(previous))
                elif known == (entry.time, entry.duration):
                    continue
                elif entry == r.entries[-1] and known[0] == entry.time and entry.url not in self._corrected:
                    # The announced end of a Period's last segment is corrected once, when the Period ends.
                    self._corrected.add(entry.url)
                    self._listed[entry.url] = (entry.time, entry.duration)
                else:
                    self.note(f"D06 {entry.url} was {known}, is {(entry.time, entry.duration)}")

    def _begins_with_key(self, r: Representation, entry: Entry) -> bool:
        if entry.url not in self._begins:
            self._begins[entry.url] = begins_with_key(r, entry)
        return self._begins[entry.url]

    @staticmethod
    def _same_epoch(a: Manifest, b: Manifest) -> bool:
        return bool({r.init for r in a.representations} & {r.init for r in b.representations})

    def _check_available(self, manifest: Manifest, r: Representation, entry: Entry, now, absent, watched: bool) -> None:
        """By the server's clock: `now`, and a time at which it was not listed."""
        # A segment in progress is delivered until it is complete. Its head is enough.
        answer = http.Stream(entry.url)
        answer.close()
        if answer.status != 200:
            self.note(f"D08 {entry.url} is listed but answers {answer.status}")
        if manifest.type != "dynamic" or manifest.start is None or not watched:
            return
        ahead = (manifest.available(r, entry.time, entry.duration) - now).total_seconds()
        # A publisher that begins with a burst (half a second with newer ffmpegs) stays early. That is harmless.
        if ahead > 0.8:
            self.note(f"D15 {entry.url} is listed {ahead * 1000:.0f} ms before its availability time")
        # An earlier segment was listed when it was complete. Since then the manifest announces segments earlier.
        late = (absent - manifest.available(r, entry.time, entry.duration)).total_seconds()
        if late > 2.5 and (entry == r.entries[-1] or not r.early):
            self.note(f"D08 {entry.url} is listed more than {late:.2f} s after its availability time")

    @property
    def last(self) -> Manifest | None:
        return self.states[-1] if self.states else None

    def stop(self) -> "Watch":
        self._stop.set()
        self._thread.join(15)
        return self
