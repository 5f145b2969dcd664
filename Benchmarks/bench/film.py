"""The load: a short film that joins its own end exactly, as RTMP messages of any length.

16 s hold 480 video frames at 30 per second and 750 AAC frames at 48 kHz, so it can be repeated with continuous times.
"""

import dataclasses
import struct

from harness import flv, sources
from harness.flv import AUDIO, DATA, VIDEO, Tag
from harness.sources import Recipe

LOOP_MILLISECONDS = 16_000
CHUNK_SIZE = 4096


def _recipe(name: str, rate: str, b_frames: int) -> Recipe:
    """Noise keeps the encoder at its rate; filler makes it constant."""
    return Recipe(
        name, seconds=17, rate="30", gop=60, size="1280x720", filter="noise=alls=12:allf=t",
        video=("-c:v", "libx264", "-preset", "superfast", "-pix_fmt", "yuv420p", "-profile:v", "main", "-bf",
               str(b_frames), "-b:v", rate, "-maxrate", rate, "-bufsize", rate, "-x264-params", "nal-hrd=cbr"))


FILMS = {
    "3M": _recipe("bench-3M", "3M", 0),  # ingest: 720p30, no B-frames
    "1M": _recipe("bench-1M", "1M", 0),  # curves, as 6M and 12M
    "6M": _recipe("bench-6M", "6M", 0),
    "12M": _recipe("bench-12M", "12M", 0),
    "5M": _recipe("bench-5M", "5M", 2),  # mux: B-frames
    "4M": _recipe("bench-4M", "4100k", 0),  # delivery: a segment of 2 s is about 1 MB
}


def loop(name: str) -> tuple[list[Tag], list[Tag]]:
    """The film's headers, and one loop of its media."""
    recipe = FILMS[name]
    sources.RECIPES[recipe.name] = recipe
    tags = flv.read(sources.flv(recipe.name))
    headers = [tag for tag in tags if tag.is_header or tag.type == DATA]
    media = [tag for tag in tags if not tag.is_header and tag.type != DATA]
    video = [tag for tag in media if tag.type == VIDEO][:480]
    audio = [tag for tag in media if tag.type == AUDIO][:750]
    if len(video) != 480 or len(audio) != 750:
        raise AssertionError(f"{recipe.name} has {len(video)} frames of video and {len(audio)} of audio")
    return headers, sorted(video + audio, key=lambda tag: tag.milliseconds)


def media(name: str, seconds: int) -> tuple[list[Tag], list[Tag]]:
    """The headers, and at least `seconds` of media with continuous times."""
    headers, once = loop(name)
    repeats = -(-seconds * 1000 // LOOP_MILLISECONDS)
    return headers, [
        dataclasses.replace(tag, milliseconds=tag.milliseconds + turn * LOOP_MILLISECONDS)
        for turn in range(repeats) for tag in once]


def message(tag: Tag, stream: int = 1) -> bytes:
    """A tag as RTMP chunks of CHUNK_SIZE: a type-0 chunk and type-3 chunks."""
    csid = {AUDIO: 4, VIDEO: 6, DATA: 5}[tag.type]
    stamp = min(tag.milliseconds, 0xFFFFFF)
    extended = struct.pack(">I", tag.milliseconds) if stamp == 0xFFFFFF else b""
    out = [bytes([csid]), stamp.to_bytes(3, "big"), len(tag.body).to_bytes(3, "big"), bytes([tag.type]),
           struct.pack("<I", stream), extended, tag.body[:CHUNK_SIZE]]
    for at in range(CHUNK_SIZE, len(tag.body), CHUNK_SIZE):
        out += [bytes([0xC0 | csid]), extended, tag.body[at : at + CHUNK_SIZE]]
    return b"".join(out)
