"""How dash.js and Shaka Player follow a live manifest by patches. Their rules are not all of RFC 5261 and ISO/IEC 23009-1
§5.15. Each rule here is the behaviour of a release (dash.js 5.1, Shaka Player 5.2). A patch that obeys RFC 5261 but breaks
a player is useless.

Both accept a patch only if its `mpdId` and `originalPublishTime` are those of their manifest. On any other patch they
request the whole manifest and play on. Neither recovers from an error in a patch: dash.js stops requesting manifests, and
Shaka requests the same patch for ever. Shaka does the same if it gets a whole manifest in place of a patch."""

import copy
import datetime
import re
import xml.etree.ElementTree as ElementTree

from . import dash, http, mpd_patch
from .dash import NAMESPACE

PATCH = mpd_patch.PATCH
#: The time at which a manifest was sent, in the manifest itself. It is valid only at that moment.
DIRECT = "urn:mpeg:dash:utc:direct:2014"
#: What a patch may change: whole entries, Periods and the location of the next patch, each by position, and the publish
#: time, which both players compare.
PLAIN = re.compile(
    r"/MPD/(@publishTime|PatchLocation\[1\]|Period\[@id='[^']+'\]"
    r"(/AdaptationSet\[@id='[^']+'\]/Representation\[@id='[^']+'\]/SegmentTemplate/SegmentTimeline(/S\[\d+\])?)?)$")


class PlayerBroken(AssertionError):
    """A player would stop, or its state would differ from the manifest."""


def local(element) -> str:
    return element.tag.rsplit("}", 1)[-1]


def refuse(patch: str) -> list[str]:
    """The violations in a patch, independent of the player."""
    problems = []
    for operation in ElementTree.fromstring(patch):
        name, selector = local(operation), operation.get("sel", "")
        shown = f"P01 {name} of {selector}"
        if operation.get("type") or "/@" in selector and (name, selector) != ("replace", "/MPD/@publishTime"):
            problems.append(f"{shown} {operation.get('type', '')}: an attribute")
        elif not PLAIN.match(selector):
            problems.append(f"{shown}: a step without its position")
        elif selector.endswith("SegmentTimeline") and (name != "add" or operation.get("pos") not in (None, "prepend")):
            problems.append(f"{shown}: a whole timeline")
        elif name == "add" and not selector.endswith("SegmentTimeline") and operation.get("pos") not in ("before", "after"):
            problems.append(f"{shown}: no place beside it")
    return problems


class Follower:
    """Follows a manifest by the rules of RFC 5261, or as `dash.js` or `shaka` does. `manifest`: its present state."""

    def __init__(self, url: str, rules: str):
        self.url, self.rules = url, rules
        self.whole = self.patched = 0
        self.manifest = None
        self.fetch_whole()

    def fetch_whole(self) -> None:
        self.manifest = ElementTree.fromstring(http.fetch(self.url).good().text)
        self.whole += 1

    @property
    def patch_url(self) -> str | None:
        """The location of the next patch. If there are several, players take the first."""
        places = self.manifest.findall(f"{{{NAMESPACE}}}PatchLocation")
        return f"{self.url.rsplit('/', 1)[0]}/{places[0].text}" if places else None

    def update(self) -> str | None:
        """Takes the next update. Returns the patch that was applied, or None."""
        where = self.patch_url
        if where is None:
            self.fetch_whole()
            return None
        answer = http.fetch(where)
        if answer.status != 200:
            raise PlayerBroken(f"P02 {where}: {answer.status} stops dash.js for good, and Shaka asks for it for ever")
        patch = ElementTree.fromstring(answer.text)
        if patch.tag != f"{{{PATCH}}}Patch":
            raise PlayerBroken(f"P02 {where}: Shaka takes nothing but a patch there, not {local(patch)}")
        if not self._fits(patch):
            self.fetch_whole()
            return None
        if self.rules == "rfc5261":
            old = ElementTree.tostring(self.manifest, encoding="unicode")
            self.manifest = ElementTree.fromstring(mpd_patch.apply(old, answer.text))
        else:
            apply = {"dash.js": as_dash_js, "shaka": as_shaka}[self.rules]
            self.manifest = apply(self.manifest, patch)
        self.patched += 1
        return answer.text

    def stands_still(self, now: datetime.datetime) -> str | None:
        """Why dash.js would request no more media at that time; None if it would. It compares the end of the list with its own
        clock. If the end lies before the time-shift buffer, it sets its availability clock back by the difference, and never
        forward again. So all new media seems to be in the future. It also takes a last Period with a duration for the end of the
        stream."""
        if self.rules != "dash.js" or self.manifest.get("type") == "static":
            return None
        manifest = dash.parse(ElementTree.tostring(self.manifest, encoding="unicode"), self.url)
        depth = float(dash.seconds(self.manifest.get("timeShiftBufferDepth")))
        newest = max(manifest.wall(r, r.entries[-1].time + r.entries[-1].duration) for r in manifest.representations)
        behind = (now - newest).total_seconds()
        if behind > depth:
            return f"P05 the newest segment ended {behind:.1f} s ago, timeShiftBufferDepth is {depth:.1f} s: dash.js stands still"
        if self.manifest.findall(f"{{{NAMESPACE}}}Period")[-1].get("duration"):
            return "P06 the last Period of a live manifest tells its duration: dash.js ends there"
        return None

    def _fits(self, patch) -> bool:
        """dash.js also requests the whole manifest if a patch is not newer than its manifest."""
        newer = dash.moment(patch.get("publishTime")) > dash.moment(self.manifest.get("publishTime"))
        return (patch.get("mpdId") == self.manifest.get("id") and (newer or self.rules != "dash.js")
                and patch.get("originalPublishTime") == self.manifest.get("publishTime"))


def difference(a, b, where: str = "") -> str | None:
    """The first difference between the player's state and the manifest."""
    path = f"{where}/{local(a)}" + (f"[{a.get('id')}]" if a.get("id") else "")
    if local(a) == local(b) == "UTCTiming" and a.get("schemeIdUri") == b.get("schemeIdUri") == DIRECT:
        return None
    if a.attrib != b.attrib or (a.text or "").strip() != (b.text or "").strip():
        return f"{path}: {a.attrib} {a.text or ''} instead of {b.attrib} {b.text or ''}"
    # The time at which a manifest was made is only in whole manifests. It is for players without a clock source.
    names = [name for name in dict.fromkeys(local(child) for child in [*a, *b]) if name != "UTCTiming"]
    for name in names:
        left, right = ([child for child in one if local(child) == name] for one in (a, b))
        for x, y in zip(left, right):
            if found := difference(x, y, path):
                return found
        if len(left) != len(right):
            return f"{path}: {len(left)} × {name} instead of {len(right)}"
    return None


# dash.js

#: Elements that dash.js keeps in lists. It fails on an operation that removes, replaces or stands beside another one.
DASH_JS_LISTS = {
    "Accessibility", "AdaptationSet", "AudioChannelConfiguration", "BaseURL", "ContentComponent", "ContentProtection",
    "EssentialProperty", "Event", "EventStream", "InbandEventStream", "Label", "Location", "Metrics", "PatchLocation",
    "Period", "ProducerReferenceTime", "Reporting", "Representation", "Role", "S", "SegmentURL", "ServiceDescription",
    "SupplementalProperty", "UTCTiming",
}
#: Attributes that it keeps as text or reads again. Others are numbers, and a patch turns them into text: 1 + 1 = 11.
DASH_JS_TEXTS = {"publishTime", "type", "id", "codecs", "media", "initialization", "contentType", "mimeType", "lang"}


def as_dash_js(manifest, patch):
    """A step without a position means the first element of that name. A path that finds nothing is ignored."""
    root = copy.deepcopy(manifest)
    for operation in patch:
        name, selector = local(operation), operation.get("sel", "")
        attribute = operation.get("type", "").lstrip("@") if name == "add" else ""
        steps = selector.split("/")[2:]
        if steps and steps[-1].startswith("@"):
            attribute = steps.pop()[1:]
        parent, target = None, root
        for step in steps:
            parent, target = target, None if target is None else _step(target, step, default=0)
        if target is None:
            continue
        if attribute:
            if attribute not in DASH_JS_TEXTS:
                raise PlayerBroken(f"P03 dash.js makes text of {selector} {attribute}")
            target.set(attribute, operation.text or "") if name != "remove" else target.attrib.pop(attribute, None)
            continue
        beside = name != "add" or operation.get("pos") in ("before", "after")
        if beside and (parent is None or local(target) not in DASH_JS_LISTS):
            raise PlayerBroken(f"P03 dash.js fails at {name} of {selector}: indexOf is not a function")
        new = [mpd_patch._adopted(child) for child in operation]
        if name == "add" and not beside:
            _put(target, new, 0 if operation.get("pos") == "prepend" else None)
        else:
            at = list(parent).index(target)
            if name != "add":
                parent.remove(target)
            _put(parent, new, at + (name == "add" and operation.get("pos") == "after"))
    if root.get("publishTime") != patch.get("publishTime"):
        raise PlayerBroken("P03 dash.js takes a patch that leaves publishTime alone for one that failed")
    if root.get("type") == "static":
        raise PlayerBroken("P03 dash.js does not see the end of a stream in a patch")
    return root


# Shaka Player


def as_shaka(manifest, patch):
    """Only some operations are supported; the others are ignored. A step without a position means the end of its list."""
    root = copy.deepcopy(manifest)
    for operation in patch:
        name, selector = local(operation), operation.get("sel", "")
        steps = selector.split("/")[1:]
        attribute = steps.pop()[1:] if steps[-1].startswith("@") else None
        last = re.match(r"\w*", steps[-1])[0]
        new = [mpd_patch._adopted(child) for child in operation]
        if last == "MPD" and attribute in ("publishTime", "type", "mediaPresentationDuration"):
            root.set(attribute, operation.text or "")
        elif last == "PatchLocation":
            _modify(root, "PatchLocation", steps[-1], name, operation.get("pos"), new, attribute, operation.text)
        elif last in ("MPD", "Period") and name == "add" and not attribute:
            # Appended after all others, independent of the position.
            periods = [child for child in new if local(child) == "Period"]
            at = max((n for n, child in enumerate(root) if local(child) == "Period"), default=-1)
            _put(root, periods, at + 1)
        elif last == "Period" and name == "remove":
            _remove_period(root, steps[-1])
        elif last in ("SegmentTimeline", "S"):
            for timeline in _timelines(root, steps):
                _modify(timeline, "S", steps[-1], name, operation.get("pos"), new, attribute, operation.text)
    return root


def _remove_period(root, step: str) -> None:
    found = re.search(r"@id='(.*?)'", step)
    if not found:
        return
    for period in root.findall(f"{{{NAMESPACE}}}Period"):
        if period.get("id") == found[1]:
            root.remove(period)
        elif period.get("id").startswith(found[1]):
            raise PlayerBroken(f"P04 Shaka empties Period {period.get('id')} with Period {found[1]}: one id begins with the other")


def _timelines(root, steps: list[str]):
    """The representations that a path selects, by the ids in it."""
    ids = {re.match(r"\w*", step)[0]: found[1] for step in steps if (found := re.search(r"@id='(.*?)'", step))}
    for period in root.findall(f"{{{NAMESPACE}}}Period"):
        for group in period.findall(f"{{{NAMESPACE}}}AdaptationSet"):
            for one in group.findall(f"{{{NAMESPACE}}}Representation"):
                meant = (one.get("id") == ids["Representation"] if "Representation" in ids
                         else group.get("id") == ids.get("AdaptationSet"))
                if period.get("id") == ids.get("Period") and meant:
                    yield from one.iter(f"{{{NAMESPACE}}}SegmentTimeline")


def _modify(parent, kind: str, step: str, name: str, place: str | None, new: list, attribute: str | None, text) -> None:
    nodes = parent.findall(f"{{{NAMESPACE}}}{kind}")
    position, time = re.search(r"\[(\d+)\]", step), re.search(r"@t='(\d+)'", step)
    index = int(position[1]) - 1 if position else None
    if index is None and time:
        index = next((n for n, node in enumerate(nodes) if node.get("t") == time[1]), None)
    if index is None:
        index = 0 if place == "prepend" else len(nodes)
    elif place == "prepend":
        index -= 1
    elif place == "after":
        index += 1
    if attribute and 0 <= index < len(nodes):
        nodes[index].set(attribute, text or "") if name != "remove" else nodes[index].attrib.pop(attribute, None)
        return
    at = list(parent).index(nodes[0]) if nodes else len(parent)
    for node in nodes:
        parent.remove(node)
    if name in ("remove", "replace"):
        del nodes[index : index + 1]
    if name in ("add", "replace"):
        nodes[index:index] = new
    parent[at:at] = nodes


# Both


def _step(element, step: str, default: int):
    name = re.match(r"\w*", step)[0]
    children = element.findall(f"{{{NAMESPACE}}}{name}")
    position, attribute = re.search(r"\[(\d+)\]", step), re.search(r"\[@(\w+)=['\"](.*?)['\"]\]", step)
    if attribute:
        return next((child for child in children if child.get(attribute[1]) == attribute[2]), None)
    index = int(position[1]) - 1 if position else default
    return children[index] if index < len(children) else None


def _put(parent, new: list, at: int | None) -> None:
    parent[len(parent) if at is None else at : len(parent) if at is None else at] = new
