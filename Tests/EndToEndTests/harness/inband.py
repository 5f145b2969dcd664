"""What a transport stream carries beside its media: sections and packets put into a film."""

import struct

from .transport import PACKET

#: Elementary streams for a program map: the stream type, and descriptors.
SPLICES = (0x86, b"\x05\x04CUEI")
KLV = (0x06, b"\x05\x04KLVA")


def checksum(section: bytes) -> bytes:
    """The CRC of MPEG-2 sections (ISO/IEC 13818-1 annex A)."""
    value = 0xFFFFFFFF
    for byte in section:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return struct.pack(">I", value)


def _packets(pid: int, payload: bytes, counter: int) -> list[bytes]:
    """A payload that begins a unit, in as many packets as it takes, filled up with 0xFF."""
    parts = [payload[at:at + 184] for at in range(0, len(payload), 184)]
    return [
        bytes([0x47, pid >> 8 | (0x40 if n == 0 else 0), pid & 255, 0x10 | (counter + n) & 15]) + part.ljust(184, b"\xff")
        for n, part in enumerate(parts)
    ]


def _with_elements(packet: bytes, elements: dict[int, tuple[int, bytes]]) -> bytes:
    """The packet of a program map, with more elementary streams."""
    start = 5 + packet[4]
    length = int.from_bytes(packet[start + 1:start + 3]) & 0xFFF
    body = packet[start:start + 3 + length - 4]
    for pid, (kind, descriptors) in elements.items():
        body += struct.pack(">BHH", kind, 0xE000 | pid, 0xF000 | len(descriptors)) + descriptors
    body = body[:1] + struct.pack(">H", 0xB000 | len(body) - 3 + 4) + body[3:]
    whole = packet[:4] + b"\x00" + body + checksum(body)
    assert len(whole) <= PACKET
    return whole.ljust(PACKET, b"\xff")


def carry(stream: bytes, elements: dict[int, tuple[int, bytes]], added: list[tuple[float, int, bytes]]) -> bytes:
    """The stream with elementary streams by PID, and `added`: payloads, each with its PID and its place, 0 to 1."""
    out, counters, maps = [], {}, set()
    count = len(stream) // PACKET
    waiting = sorted(((round(place * count), pid, payload) for place, pid, payload in added), key=lambda a: a[0])
    for index in range(count):
        while waiting and waiting[0][0] <= index:
            _, pid, payload = waiting.pop(0)
            made = _packets(pid, payload, counters.get(pid, 0))
            counters[pid] = counters.get(pid, 0) + len(made)
            out += made
        packet = stream[index * PACKET:(index + 1) * PACKET]
        pid = int.from_bytes(packet[1:3]) & 0x1FFF
        if pid == 0:
            # Program maps, by the association table.
            entries = packet[13:8 + (int.from_bytes(packet[6:8]) & 0xFFF) - 4]
            maps |= {int.from_bytes(entries[at + 2:at + 4]) & 0x1FFF for at in range(0, len(entries), 4)}
        out.append(_with_elements(packet, elements) if pid in maps else packet)
    return b"".join(out)


def _entries(packet: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """What precedes the elementary streams in a program map, and the PID and the bytes of each of them."""
    start = 5 + packet[4]
    end = start + 3 + (int.from_bytes(packet[start + 1:start + 3]) & 0xFFF) - 4
    at = start + 12 + (int.from_bytes(packet[start + 10:start + 12]) & 0xFFF)
    head, found = packet[start:at], []
    while at < end:
        length = 5 + (int.from_bytes(packet[at + 3:at + 5]) & 0xFFF)
        found.append((int.from_bytes(packet[at + 1:at + 3]) & 0x1FFF, packet[at:at + length]))
        at += length
    return head, found


def with_changing_map(stream: bytes, stages: list[tuple[float, set[int]]], kinds: dict[int, int] | None = None) -> bytes:
    """The stream with these elementary streams alone, by PID: each stage holds from its place on, 0 to 1. The program map changes
    with it. `kinds`: other stream types by PID."""
    out, maps, count = [], set(), len(stream) // PACKET
    for index in range(count):
        packet = stream[index * PACKET:(index + 1) * PACKET]
        pid = int.from_bytes(packet[1:3]) & 0x1FFF
        version = max(n for n, (place, _) in enumerate(stages) if place * count <= index)
        wanted = stages[version][1]
        if pid == 0:
            entries = packet[13:8 + (int.from_bytes(packet[6:8]) & 0xFFF) - 4]
            maps |= {int.from_bytes(entries[at + 2:at + 4]) & 0x1FFF for at in range(0, len(entries), 4)}
        elif pid in maps:
            head, found = _entries(packet)
            own = [bytes([(kinds or {}).get(p, entry[0])]) + entry[1:] for p, entry in found if p in wanted]
            body = bytearray(head + b"".join(own))
            body[1:3] = struct.pack(">H", 0xB000 | len(body) - 3 + 4)
            body[5] = 0xC1 | version << 1
            packet = (packet[:4] + b"\x00" + bytes(body) + checksum(bytes(body))).ljust(PACKET, b"\xff")
        elif pid not in wanted and 0x20 <= pid < 0x1FFF:
            continue
        out.append(packet)
    return b"".join(out)
