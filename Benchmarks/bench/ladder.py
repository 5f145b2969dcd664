"""A ladder of three rungs from one 1080p source, as fast as possible: the transcoder alone, fed by its protocol, against one
ffmpeg process with `split`. Decoder, scaler, encoder and settings are the same."""

import os
import socket
import struct
import subprocess
import threading

from harness import flv, sources, tools
from harness.flv import VIDEO
from harness.sources import Recipe

from . import meter

FILM = Recipe(
    "bench-1080p", seconds=12, rate="30", gop=60, size="1920x1080", filter="noise=alls=6:allf=t", audio=None,
    video=("-c:v", "libx264", "-preset", "superfast", "-pix_fmt", "yuv420p", "-bf", "2", "-b:v", "6M", "-maxrate", "6M",
           "-bufsize", "6M"))
RUNGS = [(1280, 720, 3_000_000), (854, 480, 1_500_000), (640, 360, 800_000)]
#: x264's presets, the slowest last. The worker gets the number.
PRESET = ("ultrafast", "superfast", "veryfast").index("veryfast")
CONFIGURE, FRAME, DRAIN, CONSUMED, DRAINED = 1, 2, 3, 67, 68


def message(kind: int, body: bytes = b"") -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def requests(tags) -> list[bytes]:
    """The server's messages to its worker for this film."""
    record = next(tag.body[5:] for tag in tags if tag.type == VIDEO and tag.body[1] == 0)
    rungs = b"".join(struct.pack(">HHIB", *rung, PRESET) for rung in RUNGS)
    told = [message(CONFIGURE, struct.pack(">BII3BB", 1, 30_000, 1000, 2, 2, 2, len(RUNGS)) + rungs + record)]
    for tag in tags:
        if tag.type != VIDEO or tag.body[1] != 1:
            continue
        offset = int.from_bytes(tag.body[2:5], "big", signed=True)
        times = (round(ms * 0.03) * 1000 for ms in (tag.milliseconds + offset, tag.milliseconds))
        told.append(message(FRAME, struct.pack(">qqBH", *times, tag.body[0] >> 4 == 1, 0) + tag.body[5:]))
    return told + [message(DRAIN)]


def weir(told: list[bytes]) -> float:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([tools.weir_binary(), "transcode-worker"], stdin=theirs, stdout=subprocess.DEVNULL)
    theirs.close()
    thread = threading.Thread(target=lambda: [ours.sendall(each) for each in told])
    thread.start()
    buffer, made, taken, isDone = b"", 0, 0, False
    while not isDone:
        piece = ours.recv(1 << 18)
        if not piece:
            raise RuntimeError("the worker ended")
        buffer += piece
        while len(buffer) >= 5 and len(buffer) >= 4 + (length := int.from_bytes(buffer[:4], "big")):
            kind, body = buffer[4], buffer[5 : 4 + length]
            buffer = buffer[4 + length :]
            if kind == CONSUMED:
                frames, dropped = struct.unpack(">II", body)
                taken += frames
                assert dropped == 0
            made += kind == 66
            isDone = kind == DRAINED
    thread.join()
    ours.close()
    assert made == taken * len(RUNGS), f"{made} frames of {taken}"
    return ended(process)


def ffmpeg(film: str) -> float:
    """The same with ffmpeg: one decoder, `split`, and per rung one scaler and one encoder, each with one thread."""
    names = [f"[s{index}]" for index in range(len(RUNGS))]
    graph = f"[0:v]split={len(RUNGS)}{''.join(names)}"
    outputs = []
    for index, (width, height, rate) in enumerate(RUNGS):
        graph += f";{names[index]}scale={width}:{height}:flags=bicubic[o{index}]"
        outputs += ["-map", f"[o{index}]", "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-threads", "1",
                    "-x264-params", "sliced-threads=0:scenecut=0", "-g", "60", "-b:v", str(rate), "-maxrate", str(rate),
                    "-bufsize", str(rate), "-f", "null", "-"]
    return ended(subprocess.Popen(
        [tools.FFMPEG, "-v", "error", "-threads", "1", "-filter_complex_threads", "1", "-i", film, "-filter_complex", graph,
         *outputs], stdin=subprocess.DEVNULL))


def ended(process: subprocess.Popen) -> float:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{process.args}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def run(rounds: int) -> str:
    sources.RECIPES[FILM.name] = FILM
    path = sources.flv(FILM.name)
    told = requests(flv.read(path))
    rows: dict[str, list[float]] = {"**weir**": [], "ffmpeg 5.1, `split`": []}
    for turn in range(rounds + 1):
        took = weir(told), ffmpeg(str(path))
        if turn:  # the first round warms up
            for name, value in zip(rows, took):
                rows[name].append(value)
        print(f"ladder round {turn}/{rounds}: weir {took[0]:.2f} s, ffmpeg {took[1]:.2f} s", flush=True)
    own = rows["**weir**"]
    text = (f"Ladder: 720p, 480p and 360p of {FILM.seconds} s of 1080p30 with B-frames (libx264 veryfast, zerolatency, one "
            f"thread each), unpaced; whole-process CPU, median (min–max) of {rounds} rounds, median of their ratios.\n\n")
    return text + meter.table(
        ["way", "CPU s", "weir ÷ this"],
        [[name, meter.spread(found), f"{meter.median([w / f for w, f in zip(own, found)]):.2f}"] for name, found in rows.items()])
