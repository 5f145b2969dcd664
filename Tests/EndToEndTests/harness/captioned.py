"""Films with closed captions: pycaption writes CEA-608, the packets of CEA-708 are made here; GStreamer puts them into the video, and
its own decoder shows those of CEA-708."""

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
frames, out, encoder, first = [bytes.fromhex(f) for f in sys.argv[1].split(",")], sys.argv[2], sys.argv[3], int(sys.argv[4])
convert = "closedcaption/x-cea-608,format=raw,framerate=30/1 ! ccconverter ! closedcaption/x-cea-708,format=cc_data"
pipe = Gst.parse_launch(
    f"videotestsrc {sys.argv[6]} num-buffers={len(frames)} ! video/x-raw,width=320,height=180,framerate=30/1 ! cccombiner name=c ! "
    f"{encoder} ! mpegtsmux ! filesink location={out} appsrc name=a format=time caps="
    + (convert if sys.argv[5] == "608" else "closedcaption/x-cea-708,format=cc_data,framerate=30/1") + " ! c.caption")
source = pipe.get_by_name("a")
pipe.set_state(Gst.State.PLAYING)
for n in range(first, len(frames)):
    buffer = Gst.Buffer.new_wrapped(frames[n])
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


def film(path, frames: list[bytes], *, first: int = 0, kind: str = "608", video: str = ""):
    """A transport stream of 30 frames a second with a pair of CEA-608 in each, or with `cc_data` (kind 708); the first `first`
    frames have none. `video`: properties of the test picture."""
    done = subprocess.run(
        [PYTHON, "-c", _INJECT, ",".join(frame.hex() for frame in frames), str(path), ENCODER, str(first), kind, video],
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return path


# MARK: CEA-708

#: Commands of CEA-708, service 1.
CLEAR, DISPLAY, HIDE, DELETE = 0x88, 0x89, 0x8A, 0x8C
#: Letters beyond Latin-1: quotation marks and a note.
_LETTERS = {"\u201c": [0x10, 0x33], "\u201d": [0x10, 0x34], "\u2026": [0x10, 0x25], "\u266a": [0x7F]}


def window(rows: int, visible: bool = False) -> list[int]:
    """DefineWindow 0: its lower middle at 90 % of the height, with the pen and the looks of usual captions."""
    return [0x98, 0x38 if visible else 0x18, 0x80 | 90, 50, 0x70 | rows - 1, 31, 0x11]


def letters(text: str) -> list[int]:
    """The codes of a text, with a new row at each line end, and that of its end."""
    return [code for letter in text for code in ([0x0D] if letter == "\n" else _LETTERS.get(letter, [ord(letter)]))] + [0x03]


def digital(seconds: int, *events: tuple[float, list[int]], service: int = 1) -> list[bytes]:
    """`cc_data` of CEA-708 for each frame. Each event: the second from which its codes are sent, up to 30 a frame, in order."""
    frames: list[bytes] = [b""] * (seconds * RATE)
    for second, codes in events:
        at = round(second * RATE)
        while codes:
            cut = min(30, len(codes))
            # A command stays in one packet: the cut is behind a letter or a whole command.
            while cut < len(codes) and _is_inside(codes, cut):
                cut -= 1
            frames[at], codes, at = bytes(codes[:cut]), codes[cut:], at + 1
    packets, number = [], 0
    for data in frames:
        packets.append(_packet(data, number, service))
        number += 1 if data else 0
    return packets


def _is_inside(codes: list[int], cut: int) -> bool:
    at = 0
    while at < cut:
        code = codes[at]
        at += 7 if 0x98 <= code < 0xA0 else 2 if 0x88 <= code <= 0x8D or code == 0x10 else 1
    return at != cut


def _packet(data: bytes, number: int, service: int) -> bytes:
    """A caption channel packet as triples of `cc_data`, or padding."""
    if not data:
        return bytes([0xFA, 0, 0])
    body = bytes([service << 5 | len(data)]) + data
    body += bytes(1 - len(body) % 2)
    packet = bytes([number % 4 << 6 | (len(body) + 1) // 2]) + body
    return b"".join(
        bytes([0xFF if at == 0 else 0xFE]) + packet[at:at + 2] for at in range(0, len(packet), 2))


_OVERLAY = """
import sys, gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
frames = [bytes.fromhex(f) for f in sys.argv[1].split(",")]
pipe = Gst.parse_launch(
    f"videotestsrc pattern=black num-buffers={len(frames)} ! video/x-raw,format=I420,width=320,height=180,framerate=180/1 ! o.video_sink "
    "appsrc name=a format=time caps=closedcaption/x-cea-708,format=cc_data,framerate=180/1 ! o.cc_sink "
    "cc708overlay name=o ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=s sync=true")
source, sink = pipe.get_by_name("a"), pipe.get_by_name("s")
# The decoder drops captions that come before it knows the pictures' size, and pictures do not wait for captions. So captions are
# pushed behind the first picture, and the others keep to the clock, at six times their speed.
pipe.set_state(Gst.State.PAUSED)
pipe.get_state(Gst.CLOCK_TIME_NONE)
for n, frame in enumerate(frames):
    buffer = Gst.Buffer.new_wrapped(frame)
    buffer.pts, buffer.duration = n * Gst.SECOND // 180, Gst.SECOND // 180
    source.emit("push-buffer", buffer)
source.emit("end-of-stream")
pipe.set_state(Gst.State.PLAYING)
while True:
    sample = sink.emit("pull-sample")
    if sample is None:
        break
    found = sample.get_buffer()
    print(found.pts / Gst.SECOND, sum(1 for byte in found.extract_dup(0, found.get_size()) if byte > 128))
pipe.set_state(Gst.State.NULL)
"""


def is_overlaid(frames: list[bytes]) -> bool:
    """Whether GStreamer's decoder of CEA-708 finds letters in `cc_data`. It shows them over a black picture, at no exact time, and
    ignores that windows are hidden."""
    done = subprocess.run(
        [PYTHON, "-c", _OVERLAY, ",".join(frame.hex() for frame in frames)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout, done.stderr
    return any(int(line.split()[1]) > 20 for line in done.stdout.splitlines())
