"""Films with closed captions that other programs make: pycaption writes CEA-608, GStreamer puts it into the video."""

import subprocess

from pycaption import SCCWriter, SRTReader

#: The system's Python, which has GStreamer's bindings.
PYTHON = "/usr/bin/python3"
RATE = 30

_INJECT = """
import sys, gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
pairs, out, encoder, first = bytes.fromhex(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
pipe = Gst.parse_launch(
    f"videotestsrc num-buffers={len(pairs) // 2} ! video/x-raw,width=320,height=180,framerate=30/1 ! cccombiner name=c ! "
    f"{encoder} ! mpegtsmux ! filesink location={out} "
    "appsrc name=a format=time caps=closedcaption/x-cea-608,format=raw,framerate=30/1 ! ccconverter ! "
    "closedcaption/x-cea-708,format=cc_data ! c.caption")
source = pipe.get_by_name("a")
pipe.set_state(Gst.State.PLAYING)
for n in range(first, len(pairs) // 2):
    buffer = Gst.Buffer.new_wrapped(pairs[2 * n:2 * n + 2])
    buffer.pts, buffer.duration = n * Gst.SECOND // 30, Gst.SECOND // 30
    source.emit("push-buffer", buffer)
source.emit("end-of-stream")
message = pipe.get_bus().timed_pop_filtered(60 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
pipe.set_state(Gst.State.NULL)
sys.exit(0 if message and message.type == Gst.MessageType.EOS else str(message and message.parse_error()))
"""

ENCODER = "x264enc key-int-max=60 bitrate=400 bframes=2 speed-preset=veryfast ! h264parse"


#: Commands of CEA-608 for CC1.
ROLL_UP, PAINT_ON, ERASE, RETURN = 0x25, 0x29, 0x2C, 0x2D


def pop_on(subtitles: str, seconds: int) -> list[bytes]:
    """Captions (SubRip in) as pairs of CEA-608, one a frame, by pycaption."""
    pairs = [b"\x80\x80"] * (seconds * RATE)
    for line in SCCWriter().write(SRTReader().read(subtitles)).splitlines():
        time, found, codes = line.partition("\t")
        if not found:
            continue
        hours, minutes, whole, frames = map(int, time.replace(";", ":").split(":"))
        start = ((hours * 60 + minutes) * 60 + whole) * RATE + frames
        for index, code in enumerate(codes.split()):
            if start + index < len(pairs):
                pairs[start + index] = bytes.fromhex(code)
    return pairs


def written(seconds: int, *lines: tuple[float, tuple[int, ...], str]) -> list[bytes]:
    """Pairs of lines that are written letter by letter: the second, the commands before it, the text. In the lowest row."""
    pairs = [(0, 0)] * (seconds * RATE)
    for second, commands, text in lines:
        codes = [(0x14, command) for command in commands for _ in range(2)]
        if text:
            letters = text.encode("ascii") + b"\0" * (len(text) % 2)
            codes += [(0x14, 0x70)] * 2 + list(zip(letters[::2], letters[1::2]))
        pairs[round(second * RATE):round(second * RATE) + len(codes)] = codes
    return [bytes(byte | (0x80 if byte.bit_count() % 2 == 0 else 0) for byte in pair) for pair in pairs]


def film(path, pairs: list[bytes], *, first: int = 0):
    """A transport stream of 30 frames a second with a pair of CEA-608 in each; the first `first` frames have none."""
    done = subprocess.run(
        [PYTHON, "-c", _INJECT, b"".join(pairs).hex(), str(path), ENCODER, str(first)], capture_output=True, text=True,
        timeout=60)
    assert done.returncode == 0, done.stderr
    return path
