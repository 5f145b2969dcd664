"""FLV tags: the data of an RTMP publisher, with timestamps."""

import dataclasses
import pathlib
import struct

AUDIO, VIDEO, DATA = 8, 9, 18


@dataclasses.dataclass(frozen=True)
class Tag:
    type: int
    milliseconds: int
    body: bytes

    @property
    def is_header(self) -> bool:
        """Whether this is a sequence header, plain or of Enhanced RTMP."""
        if self.type == VIDEO:
            return self.body[0] & 0x0F == 0 if self.body[0] & 0x80 else self.body[:1] != b"" and self.body[1] == 0
        if self.type == AUDIO:
            return self.body[0] & 0x0F == 0 if self.body[0] >> 4 == 9 else self.body[0] >> 4 == 10 and self.body[1] == 0
        return False

    @property
    def is_key(self) -> bool:
        return self.type == VIDEO and self.body[0] >> 4 & 7 == 1 and not self.is_header


def read(path: pathlib.Path) -> list[Tag]:
    """All tags of the file except an end-of-sequence tag."""
    data = path.read_bytes()
    if data[:3] != b"FLV":
        raise AssertionError(f"{path} is no FLV")
    at = struct.unpack_from(">I", data, 5)[0] + 4
    tags = []
    while at + 11 <= len(data):
        kind = data[at]
        size = int.from_bytes(data[at + 1 : at + 4], "big")
        when = int.from_bytes(data[at + 4 : at + 7], "big") | data[at + 7] << 24
        body = data[at + 11 : at + 11 + size]
        at += 15 + size
        if kind == VIDEO and body[:1] and not body[0] & 0x80 and body[1] == 2:
            continue
        tags.append(Tag(kind, when, body))
    return tags


def shifted(tags: list[Tag], milliseconds: int) -> list[Tag]:
    """The same tags at later or earlier times, without wrapping."""
    return [dataclasses.replace(tag, milliseconds=tag.milliseconds + milliseconds) for tag in tags]


def only(tags: list[Tag], *types: int) -> list[Tag]:
    return [tag for tag in tags if tag.type in types]
