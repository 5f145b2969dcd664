"""What independent tools (ffmpeg, ffprobe) see in files; times in seconds."""

import array
import hashlib
import json
import math
import pathlib
import re
import subprocess

import clips


def run(*command) -> bytes:
    return subprocess.run([str(part) for part in command], capture_output=True, timeout=120).stdout


def probe(path, kind: str, entries: str) -> list[str]:
    shown = run("ffprobe", "-v", "error", "-select_streams", kind, "-show_entries", entries, "-of", "csv=p=0", path)
    return shown.decode().split()


def decoded(path) -> list[tuple[float, str]]:
    """Times and hashes of decoded frames."""
    lines = run("ffmpeg", "-nostdin", "-v", "error", "-copyts", "-i", path, "-map", "0:v", "-fps_mode", "passthrough",
                "-enc_time_base", "1:90000", "-f", "framemd5", "-").decode().splitlines()
    scale = next((int(b) / int(a) for line in lines for a, b in re.findall(r"#tb 0: (\d+)/(\d+)", line)), 1)
    fields = [line.split(",") for line in lines if line.startswith("0,")]
    return [(int(field[2]) / scale, field[5].strip()) for field in fields]


def errors_of(path) -> str:
    """What ffmpeg warns of while it decodes a file; empty for an audio file."""
    return subprocess.run(["ffmpeg", "-nostdin", "-v", "warning", "-i", path, "-fps_mode", "passthrough",
                           "-enc_time_base", "1:90000", "-f", "null", "-"],
                          capture_output=True, text=True, timeout=120).stderr.strip()


def audio_times(path) -> list[float]:
    return [float(line.split(",")[0]) for line in probe(path, "a", "frame=pts_time") if line[0].isdigit()]


def boxes(path) -> list[str]:
    """Types of a file's outermost boxes, in order."""
    found, data, at = [], pathlib.Path(path).read_bytes(), 0
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        size = int.from_bytes(data[at + 8:at + 16], "big") if size == 1 else size or len(data) - at
        if size < 8 or at + size > len(data):
            return [*found, f"{kind!r} of {size} bytes, cut off"]
        found.append(kind.decode("latin1"))
        at += size
    return found


def key_frames(path) -> list[float]:
    return [float(line.split(",")[0]) for line in probe(path, "v", "packet=pts_time,flags") if ",K" in line]


def sizes(path) -> list[tuple[int, int]]:
    found = {tuple(map(int, line.split(",")[:2])) for line in probe(path, "v", "frame=width,height") if line[0].isdigit()}
    return sorted(found)


class FLASH:
    """The frames of clips.py."""

    COUNT = clips.COUNT
    FORMAT = ("-vf", f"scale={clips.WIDTH}:{clips.HEIGHT},format=gray", "-fps_mode", "passthrough", "-f", "rawvideo")

    @staticmethod
    def number(image: bytes) -> int:
        row, value = 24 * clips.WIDTH, 0
        for bit in range(clips.BITS):
            value = value << 1 | (image[row + 24 + 24 * bit] > 128)
        return value

    @staticmethod
    def isWhite(image: bytes) -> bool:
        return image[140 * clips.WIDTH + 160] > 128


class CAPTION:
    """What vivid writes into its frames: "00:00:03:204 16", the time since the camera began and the frame's number. The cells
    are 8 × 16 pixels, the font is the kernel's, dark on light or light on dark."""

    LEFT, TOP, WIDTH = 16, 16, 20
    #: Rows 2 to 11 of each digit; a row's bits are pixels, the highest first.
    FONT = {digit: bytes.fromhex(rows) for digit, rows in enumerate((
        "386cc6c6d6d6c6c66c38", "1838781818181818187e", "7cc6060c183060c0c6fe", "7cc606063c060606c67c",
        "0c1c3c6cccfe0c0c0c1e", "fec0c0c0fc060606c67c", "3860c0c0fcc6c6c6c67c", "fec606060c1830303030",
        "7cc6c6c67cc6c6c6c67c", "7cc6c6c67e0606060c78"))}

    @staticmethod
    def cell(image: bytes, at: int) -> bytes:
        left = CAPTION.LEFT + 8 * at
        rows = (image[(CAPTION.TOP + row) * clips.WIDTH + left:][:8] for row in range(2, 12))
        return bytes(sum((pixel > 128) << (7 - bit) for bit, pixel in enumerate(row)) for row in rows)

    @staticmethod
    def read(image: bytes) -> tuple[float, int] | None:
        """Time and number; None where there is no such text, as on a slate. The first cell is a space: the ground's colour."""
        ground, line = CAPTION.cell(image, 0), ""
        for at in range(CAPTION.WIDTH):
            seen = bytes(a ^ b for a, b in zip(CAPTION.cell(image, at), ground))
            apart, digit = min((sum((a ^ b).bit_count() for a, b in zip(seen, rows)), digit)
                               for digit, rows in CAPTION.FONT.items())
            line += str(digit) if apart <= 3 else " "
        found = re.fullmatch(r" (\d\d) (\d\d) (\d\d) (\d{3}) (\d+) *", line)
        if not found:
            return None
        hours, minutes, seconds, milliseconds, number = map(int, found.groups())
        return 3600 * hours + 60 * minutes + seconds + milliseconds / 1000, number


def images(path) -> list[bytes]:
    raw = run("ffmpeg", "-nostdin", "-v", "error", "-copyts", "-i", path, "-map", "0:v", *FLASH.FORMAT, "-")
    size = clips.WIDTH * clips.HEIGHT
    return [raw[at:at + size] for at in range(0, len(raw) - size + 1, size)]


def samples(path) -> tuple[float, array.array]:
    """The left channel, 48 kHz, and the time of its first sample."""
    begin = next(iter(audio_times(path)), 0.0)
    return begin, array.array("h", run("ffmpeg", "-nostdin", "-v", "error", "-i", path, "-map", "0:a",
                                       "-af", "pan=mono|c0=c0", "-f", "s16le", "-"))


def onsets(path) -> list[float]:
    """When beeps begin: after at least a tenth of a second of silence."""
    begin, values = samples(path)
    found, last = [], -48000
    for at, value in enumerate(values):
        if abs(value) > 2000:
            if at - last > 4800:
                found.append(begin + at / 48000)
            last = at
    return found


def loudness(path, begin: float, end: float) -> float:
    start, values = samples(path)
    part = values[max(0, int((begin - start) * 48000)):max(0, int((end - start) * 48000))]
    return math.sqrt(sum(value * value for value in part) / len(part)) if part else 0.0


def packet_hashes(path) -> list[str]:
    shown = run("ffprobe", "-v", "error", "-select_streams", "v", "-show_packets", "-show_data_hash", "md5",
                "-show_entries", "packet=data_hash", "-of", "json", path)
    return [packet["data_hash"].removeprefix("MD5:") for packet in json.loads(shown).get("packets", [])]


def sent_hashes(folder: pathlib.Path) -> dict[str, list[int]]:
    """Numbers of a camera's access units by the hash of what a sample of them is: all NAL units but parameter sets and
    delimiters (ISO/IEC 14496-15 §5.3.2), untouched, each behind its length."""
    stream, at, found = (folder / "frames").read_bytes(), 0, {}
    for number, size in enumerate(json.loads((folder / "sizes.json").read_text())):
        units = [unit for unit in re.split(rb"\x00?\x00\x00\x01", stream[at:at + size]) if unit]
        sample = b"".join(len(u).to_bytes(4, "big") + u for u in units if u[0] & 31 not in (7, 8, 9))
        # Two frames may well be changed in the same way.
        found.setdefault(hashlib.md5(sample).hexdigest(), []).append(number)
        at += size
    return found
