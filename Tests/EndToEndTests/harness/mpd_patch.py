"""MPD patches (ISO/IEC 23009-1 §5.15), applied by the rules of RFC 5261 with only the standard library."""

import re
import xml.etree.ElementTree as ElementTree

from .dash import NAMESPACE

PATCH = "urn:mpeg:dash:schema:mpd-patch:2020"
STEP = re.compile(r"(\w+)(?:\[(?:(\d+)|@(\w+)='([^']*)')\])?$")


class PatchError(AssertionError):
    """The patch does not fit the manifest."""


def canonical(text: str) -> str:
    """The canonical form of a document: the same for equal documents, including white space."""
    return ElementTree.canonicalize(text)


def apply(manifest: str, patch: str) -> str:
    """The patched manifest, in its canonical form."""
    root, changes = ElementTree.fromstring(manifest), ElementTree.fromstring(patch)
    if changes.tag != f"{{{PATCH}}}Patch":
        raise PatchError(f"D18 the root is {changes.tag}")
    if changes.get("mpdId") != root.get("id"):
        raise PatchError(f"D18 a patch of {changes.get('mpdId')}, the manifest is {root.get('id')}")
    if changes.get("originalPublishTime") != root.get("publishTime"):
        raise PatchError(f"D18 from {changes.get('originalPublishTime')}, the manifest is of {root.get('publishTime')}")
    if not len(changes):
        raise PatchError("D18 no operation")
    for operation in changes:
        _operate(root, operation)
    if root.get("publishTime") != changes.get("publishTime"):
        raise PatchError(f"D18 leads to {root.get('publishTime')}, says {changes.get('publishTime')}")
    ElementTree.register_namespace("", NAMESPACE)
    return canonical(ElementTree.tostring(root, encoding="unicode"))


def _operate(root, operation) -> None:
    name = operation.tag.removeprefix(f"{{{PATCH}}}")
    selector = operation.get("sel", "")
    steps = selector.split("/")
    if steps[:2] != ["", "MPD"]:
        raise PatchError(f"D18 {selector!r} does not begin at the root")
    steps = steps[2:]
    attribute = steps.pop()[1:] if steps and steps[-1].startswith("@") else None
    parent, target = None, root
    for step in steps:
        parent, target = target, _child(target, step, selector)
    if attribute is not None:
        if attribute not in target.attrib:
            raise PatchError(f"D18 {selector!r}: there is no such attribute")
        if name == "remove":
            del target.attrib[attribute]
        elif name == "replace":
            target.set(attribute, operation.text or "")
        else:
            raise PatchError(f"D18 {name} of {selector!r}")
        return
    new = [_adopted(element) for element in operation]
    kind = operation.get("type")
    if name == "add" and kind is not None:
        if kind[:1] != "@" or kind[1:] in target.attrib:
            raise PatchError(f"D18 add {kind!r} to {selector!r}")
        target.set(kind[1:], operation.text or "")
    elif name == "add":
        _add(parent, target, new, operation.get("pos"), selector)
    elif name == "remove" and parent is not None:
        parent.remove(target)
    elif name == "replace" and parent is not None and len(new) == 1:
        parent[list(parent).index(target)] = new[0]
    else:
        raise PatchError(f"D18 {name} of {selector!r}")


def _add(parent, target, new, position, selector) -> None:
    if position is None:
        target.extend(new)
    elif position == "prepend":
        target[:0] = new
    elif position in ("before", "after") and parent is not None:
        at = list(parent).index(target) + (position == "after")
        parent[at:at] = new
    else:
        raise PatchError(f"D18 add at {position!r} of {selector!r}")


def _child(element, step, selector):
    match = STEP.match(step)
    if not match:
        raise PatchError(f"D18 the step {step!r} of {selector!r}")
    name, position, attribute, value = match.groups()
    found = element.findall(f"{{{NAMESPACE}}}{name}")
    if position is not None:
        found = found[int(position) - 1 : int(position)]
    elif attribute is not None:
        found = [child for child in found if child.get(attribute) == value]
    if len(found) != 1:
        raise PatchError(f"D18 {selector!r} finds {len(found)} elements at {step!r}")
    return found[0]


def _adopted(element):
    """Elements of a patch are in the patch's namespace. In the manifest they get the manifest's namespace."""
    new = ElementTree.Element(element.tag.replace(PATCH, NAMESPACE), element.attrib)
    new.text = element.text
    new.extend(_adopted(child) for child in element)
    return new
