"""Publications that stock clients cannot make. Each is a function (url, name) that publishes and returns.

All are paced like live encoders. The media comes from the same films, as FLV tags.
"""

import dataclasses
import random
import struct
import time

from . import flv, packets, sources
from .flv import AUDIO, DATA, VIDEO, Tag
from .rawrtmp import AGGREGATE, RawRTMP


def tags_of(film: str) -> list[Tag]:
    return flv.read(sources.flv(film))


def whole(url: str, name: str, tags: list[Tag], *, speed: float = 1, **options) -> None:
    """Publishes the tags and ends the publication."""
    with RawRTMP(url, **options).start(name) as client:
        client.play_out(tags, speed=speed)
        client.finish()


def starting_at(milliseconds: int, **options):
    """The film with its first time at `milliseconds`. Its last times may exceed 24, 31 or 32 bits."""

    def publish(url: str, name: str) -> None:
        whole(url, name, flv.shifted(tags_of("h264-30"), milliseconds), **options)

    return publish


def headers_before_every_key_frame(url: str, name: str) -> None:
    tags = tags_of("h264-30")
    headers = [tag for tag in tags if tag.is_header]
    out = []
    for tag in tags:
        if tag.is_key:
            out += [dataclasses.replace(header, milliseconds=tag.milliseconds) for header in headers]
        out.append(tag)
    whole(url, name, out)


def audio_never_comes(url: str, name: str) -> None:
    """The metadata announces audio, but only video follows."""
    whole(url, name, flv.only(tags_of("h264-30"), VIDEO, DATA))


def audio_comes_late(url: str, name: str) -> None:
    """The first 5 s have no audio, not even its header. The metadata does not mention audio."""
    tags = flv.only(tags_of("h264-30"), VIDEO, AUDIO)
    late = [t for t in tags if t.type == VIDEO or (t.milliseconds >= 5000 and not t.is_header)]
    header = next(t for t in tags if t.type == AUDIO and t.is_header)
    at = next(i for i, t in enumerate(late) if t.type == AUDIO)
    late.insert(at, dataclasses.replace(header, milliseconds=late[at].milliseconds))
    whole(url, name, late)


def audio_arrives_ahead(url: str, name: str) -> None:
    """Audio is sent 700 ms before the video of the same time, as encoders with a look-ahead do."""
    tags = tags_of("h264-30")
    headers = [tag for tag in tags if tag.is_header or tag.type == DATA]
    rest = [tag for tag in tags if not tag.is_header and tag.type != DATA]
    rest.sort(key=lambda tag: tag.milliseconds - (700 if tag.type == AUDIO else 0))
    with RawRTMP(url).start(name) as client:
        for tag in headers:
            client.tag(tag)
        began = time.monotonic()
        for tag in rest:
            delay = began + (tag.milliseconds - (700 if tag.type == AUDIO else 0)) / 1000 - time.monotonic()
            if delay > 0:
                time.sleep(delay)
            client.drain()
            client.tag(tag)
        client.finish()


def joined(first: str, second: str, gap_milliseconds: int = 0) -> list[Tag]:
    """Two successive films on one clock: the second begins one frame (and the gap) after the end of the first."""
    a, b = tags_of(first), tags_of(second)
    end = max(tag.milliseconds for tag in a if tag.type == VIDEO) + 33
    return a + flv.shifted(b, end + gap_milliseconds)


def parameters_change(second: str):
    """A film, then one with other parameters, on one connection."""

    def publish(url: str, name: str) -> None:
        whole(url, name, joined("short", second))

    return publish


def audio_changes_between_key_frames(url: str, name: str) -> None:
    """Mono in place of stereo from 3 s on, a second after a key frame and a second before the next one."""
    stereo = [tag for tag in tags_of("h264-30") if tag.type != AUDIO or tag.milliseconds < 3000]
    mono = flv.only(tags_of("h264-25"), AUDIO)
    header = dataclasses.replace(next(tag for tag in mono if tag.is_header), milliseconds=3000)
    late = [header] + [tag for tag in mono if tag.milliseconds >= 3000]
    whole(url, name, sorted(stereo + late, key=lambda tag: tag.milliseconds))


def grows_at_once(url: str, name: str) -> None:
    """Half a second of a small picture, then a larger one: what a browser sends that finds its line to be good."""
    small = [tag for tag in tags_of("small") if tag.milliseconds < 500]
    whole(url, name, small + flv.shifted(tags_of("short"), 500))


def two_formats_in_turn(first: str, second: str, count: int, *, step: int, filler: int) -> list[Tag]:
    """The sequence headers of two H.264 films in turn, each followed by one key frame with this many bytes of filler."""
    pair = []
    for film in (first, second):
        tags = flv.only(tags_of(film), VIDEO)
        key = next(tag for tag in tags if tag.is_key)
        key = dataclasses.replace(key, body=key.body + struct.pack(">IB", filler + 1, 12) + b"\xff" * filler)
        pair.append((next(tag for tag in tags if tag.is_header), key))
    return [dataclasses.replace(tag, milliseconds=at * step) for at in range(count) for tag in pair[at % 2]]


def garbled(tags: list[Tag], seed: int = 1) -> list[Tag]:
    """The same with random bytes in each H.264 NAL unit, after its length and its first byte."""
    chance = random.Random(seed)
    out = []
    for tag in tags:
        if tag.type == VIDEO and not tag.is_header:
            body, at = bytearray(tag.body), 5
            while at + 5 <= len(body):
                end = min(at + 4 + struct.unpack_from(">I", body, at)[0], len(body))
                body[at + 5:end] = chance.randbytes(max(0, end - at - 5))
                at = end
            tag = dataclasses.replace(tag, body=bytes(body))
        out.append(tag)
    return out


def clock_jumps(milliseconds: int):
    """The encoder's clock jumps between two films with the same parameters."""

    def publish(url: str, name: str) -> None:
        first, second = tags_of("short"), [tag for tag in tags_of("short") if not tag.is_header]
        with RawRTMP(url).start(name) as client:
            start = max(0, -milliseconds)
            client.play_out(flv.shifted(first, start))
            end = start + 4000 + milliseconds
            client.play_out(flv.shifted(second, end))
            client.finish()

    return publish


def line_drops(pause: float, noted: dict[str, float] | None = None, is_missed=lambda: True):
    """A film with a connection reset in its middle, `pause` seconds without data, and the film again from time 0. `is_missed` returns
    once the server has missed it. `noted` gets the moments of the film's `first` tag, its `last` one, and that of the `return`."""
    noted = {} if noted is None else noted

    def publish(url: str, name: str) -> None:
        client = RawRTMP(url).start(name)
        noted["first"] = time.monotonic()
        client.play_out(tags_of("short"))
        noted["last"] = time.monotonic()
        client.reset()
        time.sleep(pause)
        is_missed()
        with RawRTMP(url).start(name) as client:
            noted["return"] = time.monotonic()
            client.play_out(tags_of("short"))
            client.finish()

    return publish


def ends_and_returns(url: str, name: str) -> None:
    """Two publications; the first is ended properly."""
    whole(url, name, tags_of("short"))
    time.sleep(1)
    whole(url, name, tags_of("short"))


def in_aggregates(url: str, name: str) -> None:
    """Media in aggregate messages of eight tags (RTMP §7.1.6). Their times are relative to the message's."""
    tags = tags_of("h264-30")
    with RawRTMP(url).start(name) as client:
        for tag in [t for t in tags if t.type == DATA or t.is_header]:
            client.tag(tag)
        rest = [t for t in tags if t.type != DATA and not t.is_header]
        began = time.monotonic()
        for at in range(0, len(rest), 8):
            group = rest[at : at + 8]
            delay = began + group[-1].milliseconds / 1000 - time.monotonic()
            if delay > 0:
                time.sleep(delay)
            body = b""
            for tag in group:
                head = bytes([tag.type]) + len(tag.body).to_bytes(3, "big")
                head += (tag.milliseconds & 0xFFFFFF).to_bytes(3, "big") + bytes([tag.milliseconds >> 24]) + b"\0\0\0"
                body += head + tag.body + struct.pack(">I", len(tag.body) + 11)
            client.drain()
            client.send(6, AGGREGATE, body, timestamp=group[0].milliseconds, stream=client.stream)
        client.finish()


def with_oddities(url: str, name: str) -> None:
    """Empty tags, command frames, an end-of-sequence tag and unknown data messages: tolerated, without losses."""
    tags = tags_of("h264-30")
    out = []
    for number, tag in enumerate(tags):
        if number in (30, 60, 90):
            out += [Tag(VIDEO, tag.milliseconds, b""), Tag(AUDIO, tag.milliseconds, b""),
                    Tag(VIDEO, tag.milliseconds, b"\x57\x00"), Tag(VIDEO, tag.milliseconds, b"\x57\x01\0\0\0"),
                    Tag(DATA, tag.milliseconds, b"\x02\x00\x03foo\x05")]
        out.append(tag)
    out.append(Tag(VIDEO, tags[-1].milliseconds, b"\x17\x02\x00\x00\x00"))
    whole(url, name, out)


def frames(film: str) -> dict[str, list[str]]:
    """The digests of a film's packets by kind."""
    return {kind: [p.digest for p in found] for kind, found in packets.probe(sources.source(film)).items()}
