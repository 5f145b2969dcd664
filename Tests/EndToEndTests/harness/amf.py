"""AMF0 (the Action Message Format of RTMP commands): Python values to bytes and back."""

import struct


class AMFError(AssertionError):
    """The bytes are not AMF0."""


def encode(*values) -> bytes:
    """None, bool, number, str, dict (object) and list (strict array)."""
    return b"".join(_encode(value) for value in values)


def _encode(value) -> bytes:
    if value is None:
        return b"\x05"
    if isinstance(value, bool):
        return b"\x01" + bytes([value])
    if isinstance(value, (int, float)):
        return b"\x00" + struct.pack(">d", value)
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        if len(raw) > 0xFFFF:
            return b"\x0c" + struct.pack(">I", len(raw)) + raw
        return b"\x02" + struct.pack(">H", len(raw)) + raw
    if isinstance(value, dict):
        fields = b"".join(struct.pack(">H", len(k.encode())) + k.encode() + _encode(v) for k, v in value.items())
        return b"\x03" + fields + b"\x00\x00\x09"
    if isinstance(value, list):
        return b"\x0a" + struct.pack(">I", len(value)) + b"".join(_encode(item) for item in value)
    raise TypeError(f"no AMF0 for {value!r}")


def decode(data: bytes) -> list:
    """All values in the bytes."""
    values, at = [], 0
    while at < len(data):
        value, at = _decode(data, at)
        values.append(value)
    return values


def _decode(data: bytes, at: int):
    if at >= len(data):
        raise AMFError(f"a value is missing at {at}")
    kind = data[at]
    at += 1
    if kind == 0:
        return struct.unpack_from(">d", data, at)[0], at + 8
    if kind == 1:
        return bool(data[at]), at + 1
    if kind == 2:
        (size,) = struct.unpack_from(">H", data, at)
        return data[at + 2 : at + 2 + size].decode("utf-8", "replace"), at + 2 + size
    if kind in (3, 8):
        at += 4 if kind == 8 else 0
        fields = {}
        while True:
            (size,) = struct.unpack_from(">H", data, at)
            key = data[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
            if not size and data[at] == 9:
                return fields, at + 1
            fields[key], at = _decode(data, at)
    if kind in (5, 6):
        return None, at
    if kind == 10:
        (count,) = struct.unpack_from(">I", data, at)
        at += 4
        items = []
        for _ in range(count):
            item, at = _decode(data, at)
            items.append(item)
        return items, at
    if kind == 12:
        (size,) = struct.unpack_from(">I", data, at)
        return data[at + 4 : at + 4 + size].decode("utf-8", "replace"), at + 4 + size
    raise AMFError(f"AMF0 type {kind} at {at - 1}")
