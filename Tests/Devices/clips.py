"""Makes what the fed cameras send: numbered frames with a flash each second, as JPEGs and as H.264, one after the other
in a file, and their lengths."""

import json
import pathlib
import subprocess
import sys

WIDTH, HEIGHT, RATE, COUNT, BITS = 320, 180, 5, 300, 10


def image(number: int) -> bytes:
    """Bits of the number as squares, the most significant first; below, white in each second's first frame."""
    squares = bytearray(b"\x60" * WIDTH)
    for bit in range(BITS):
        isSet = number >> (BITS - 1 - bit) & 1
        squares[16 + 24 * bit:32 + 24 * bit] = (b"\xeb" if isSet else b"\x10") * 16
    plain, below = b"\x60" * WIDTH, (b"\xeb" if number % RATE == 0 else b"\x20") * WIDTH
    luma = plain * 16 + bytes(squares) * 16 + plain * 58 + below * (HEIGHT - 90)
    return luma + b"\x80" * (WIDTH * HEIGHT // 2)


def split(stream: bytes, mark: bytes) -> list[bytes]:
    starts = []
    at = stream.find(mark)
    while at >= 0:
        starts.append(at)
        at = stream.find(mark, at + len(mark))
    return [stream[a:b] for a, b in zip(starts, starts[1:] + [len(stream)])]


def make(folder: pathlib.Path, mark: bytes, *coding: str) -> None:
    raw = b"".join(image(number) for number in range(COUNT))
    coded = subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{WIDTH}x{HEIGHT}", "-r", str(RATE),
         "-i", "-", *coding, "-"], input=raw, capture_output=True, check=True).stdout
    frames = split(coded, mark)
    assert len(frames) == COUNT, f"{len(frames)} frames of {COUNT}"
    folder.mkdir(parents=True)
    (folder / "frames").write_bytes(coded)
    (folder / "sizes.json").write_text(json.dumps([len(frame) for frame in frames]))


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    make(out / "mjpeg", b"\xff\xd8\xff", "-pix_fmt", "yuvj420p", "-c:v", "mjpeg", "-q:v", "3", "-f", "mjpeg")
    make(out / "h264", b"\0\0\0\1\x09", "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-g", str(RATE),
         "-x264-params", "repeat-headers=1:aud=1:scenecut=0", "-f", "h264")
