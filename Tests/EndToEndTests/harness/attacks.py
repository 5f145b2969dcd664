"""Attacks, each from its own address. `python -m harness.attacks NAME RTMP HTTP FOLDER SECONDS` runs one of them for
SECONDS in its own process, and prints the server's responses. While its standard input is open, it goes on for up to twenty
seconds more. docs/limits.md has the limits that stop each attack."""

import contextlib
import itertools
import os
import pathlib
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

from . import flv, scripts
from .rawrtmp import MEDIA, VIDEO, Closed, RawRTMP, Refused

MEBIBYTE = 1 << 20
#: Prefix of the name of an attacker's stream.
STREAM = "attack"


class Attacker:
    """Addresses of the server, duration of the attack, and the server's responses to it."""

    def __init__(self, name: str, rtmp: str, web: str, folder: str, seconds: float, address: str = ""):
        self.rtmp, self.web, self.folder = rtmp, web, pathlib.Path(folder)
        self.until = time.monotonic() + seconds
        self.address = address or f"127.0.1.{1 + list(ATTACKS).index(name)}"
        self.told: dict[str, int] = {}
        self.name = f"{STREAM}-{name}"

    @property
    def is_over(self) -> bool:
        """After its time, and once the judge has heard enough and closes standard input; the longest after twenty seconds more.
        At a terminal there is no judge."""
        over = time.monotonic() - self.until
        return over > 20 or over > 0 and (sys.stdin.isatty() or bool(select.select([sys.stdin], [], [], 0)[0]))

    def hears(self, words: str) -> None:
        if words not in self.told and len(self.told) < 20:
            # The judge hears it at once: it may be the sign that ends the attack.
            print(words, flush=True)
        self.told[words] = self.told.get(words, 0) + 1

    def tell(self) -> None:
        """Prints what it heard most often."""
        for words, count in sorted(self.told.items(), key=lambda entry: -entry[1])[:20]:
            print(f"{count} × {words}")

    def publish(self, send, name: str = "", **options) -> None:
        """A publication, passed to `send`. The server may refuse it, or end it at any time."""
        try:
            with RawRTMP(self.rtmp, source=self.address) as client:
                send(client.start(name or self.name, **options))
        except Refused as refused:
            self.hears(f"refused: {refused}")
            time.sleep(0.05)
        except (Closed, OSError) as error:
            self.hears(f"closed: {type(error).__name__}")
            time.sleep(0.01)

    def connection(self, timeout: float = 5) -> socket.socket:
        place = urllib.parse.urlsplit(self.web)
        return socket.create_connection((place.hostname, place.port), timeout=timeout, source_address=(self.address, 0))

    def hear_statuses(self, data: bytes) -> None:
        for piece in data.split(b"HTTP/1.1 ")[1:]:
            self.hears(piece[:3].decode("latin-1"))


def key_frame(size: int = 0) -> tuple[flv.Tag, flv.Tag]:
    """A sequence header and a key frame. The key frame has this many bytes if the number is not 0."""
    tags = [tag for tag in scripts.tags_of("short") if tag.type == flv.VIDEO]
    key = next(tag for tag in tags if tag.is_key)
    if size:
        key = flv.Tag(flv.VIDEO, 0, key.body[:5] + struct.pack(">I", size) + b"\x65" + os.urandom(size - 1))
    return next(tag for tag in tags if tag.is_header), key


def jumps(attacker: Attacker) -> None:
    """Pairs of key frames a millisecond apart, with a jump of a minute after each pair."""
    header, key = key_frame()

    def send(client: RawRTMP) -> None:
        client.tag(header)
        for number in itertools.count():
            if attacker.is_over:
                return
            client.drain()
            client.tag(flv.Tag(flv.VIDEO, (number // 2 * 60_000 + number % 2) & 0xFFFFFFFF, key.body))

    while not attacker.is_over:
        attacker.publish(send)


def names(attacker: Attacker) -> None:
    """One name after the other; each is left at once."""
    for number in itertools.count():
        if attacker.is_over:
            return
        attacker.publish(lambda client: None, f"{attacker.name}-{number}")


def frames(attacker: Attacker, step: int) -> None:
    """Key frames of a megabyte as fast as possible, this many milliseconds of media apart."""
    header, key = key_frame(MEBIBYTE)
    numbers = itertools.count()

    def send(client: RawRTMP) -> None:
        client.tag(header)
        while not attacker.is_over:
            client.drain()
            client.tag(flv.Tag(flv.VIDEO, next(numbers) * step, key.body))

    while not attacker.is_over:
        attacker.publish(send, chunk_size=1 << 16)


def large(attacker: Attacker) -> None:
    frames(attacker, 1)


def stopped_clock(attacker: Attacker) -> None:
    frames(attacker, 0)


def burst(attacker: Attacker) -> None:
    """Ten frames of a megabyte within ten milliseconds of media, and then only waiting: the most costly case for memory."""
    header, key = key_frame(MEBIBYTE)

    def send(client: RawRTMP) -> None:
        client.tag(header)
        for number in range(10):
            client.tag(flv.Tag(flv.VIDEO, number, key.body))
        for _ in range(20):
            client.drain()
            with contextlib.suppress(OSError), attacker.connection() as probe:
                probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                attacker.hear_statuses(probe.recv(4096))
            time.sleep(0.1)

    while not attacker.is_over:
        attacker.publish(send, chunk_size=1 << 16)


def flips(attacker: Attacker) -> None:
    """Two frame sizes in turn, changed with each key frame."""
    def send(client: RawRTMP) -> None:
        for tag in scripts.two_formats_in_turn("h264-30", "portrait", 10_000, step=40, filler=2):
            if attacker.is_over:
                return
            client.drain()
            client.tag(tag)

    while not attacker.is_over:
        attacker.publish(send)


def tiny(attacker: Attacker) -> None:
    """As many frames of 14 bytes as possible with a constant timestamp. The rate is measured in the second half, when all
    buffers between here and the server are full, and told at the end: no judge can hear it before."""
    header, key = key_frame(5)
    middle = (time.monotonic() + attacker.until) / 2
    later: list[float] = []

    def send(client: RawRTMP) -> None:
        client.tag(header)
        message = client.chunks(MEDIA, VIDEO, 0, key.body, client.stream)
        many, rest = memoryview(message * 1000), 0
        client.socket.settimeout(0.2)
        while time.monotonic() < attacker.until:
            client.drain()
            with contextlib.suppress(TimeoutError):
                sent = client.socket.send(many[rest:])
                rest = (rest + sent) % len(message)
                if time.monotonic() > middle:
                    later.append(sent / len(message))

    while time.monotonic() < attacker.until:
        attacker.publish(send)
    rate = sum(later) / (time.monotonic() - middle)
    attacker.hears(f"{'slowed' if rate < 20_000 else 'taken'}: {rate:.0f} messages a second")


def bodies(attacker: Attacker) -> None:
    """Requests to unknown addresses with bodies of a megabyte, on five hundred connections."""
    request = b"GET /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + bytes(65_536)
    while not attacker.is_over:
        held = []
        for _ in range(500):
            with contextlib.suppress(OSError):
                client = attacker.connection(1)
                held.append(client)
                client.sendall(request)
        for client in held:
            with contextlib.suppress(OSError):
                attacker.hear_statuses(client.recv(4096))
            client.close()


def agents(attacker: Attacker) -> None:
    """Pipelined requests for one playlist, each by another user agent."""
    number = 0
    while not attacker.is_over:
        with contextlib.suppress(OSError), attacker.connection(0.2) as client:
            while not attacker.is_over:
                client.sendall("".join(
                    f"GET /live/honest/index.m3u8 HTTP/1.1\r\nHost: x\r\nUser-Agent: agent {number + n}\r\n\r\n"
                    for n in range(100)).encode())
                number += 100
                with contextlib.suppress(TimeoutError):
                    while data := client.recv(1 << 20):
                        attacker.hear_statuses(data)


def lying_file(attacker: Attacker) -> None:
    """Requests for a recording with wrong box sizes. No token is needed for them."""
    folder = attacker.folder / attacker.name
    folder.mkdir(parents=True, exist_ok=True)
    for number, (kind, size) in enumerate((kind, size) for kind in (b"free", b"mdat", b"moov") for size in (0, 8, 15, 1 << 62)):
        beginning = b"\0\0\0\x10ftypisom\0\0\0\0" + (b"\0\0\0\x08moov" if kind == b"mdat" else b"")
        path = folder / f"20261121T0724{number:02}Z.mp4"
        path.write_bytes(beginning + b"\0\0\0\1" + kind + size.to_bytes(8, "big") + bytes(4096))
    turn = 0
    while not attacker.is_over:
        turn += 1
        with contextlib.suppress(OSError), attacker.connection() as client:
            for path in ("index.m3u8", "manifest.mpd", "clip.mp4?from=0&to=1"):
                client.sendall(f"GET /recordings/{attacker.name}/20261121T0724{turn % 12:02}Z/{path} HTTP/1.1\r\n"
                               "Host: x\r\n\r\n".encode())
                attacker.hear_statuses(client.recv(65_536))


def bare_connections(attacker: Attacker) -> None:
    """Silent connections to the RTMP port."""
    place = urllib.parse.urlsplit(attacker.rtmp)
    held: list[socket.socket] = []

    def leave(connection: socket.socket) -> None:
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            try:
                if not connection.recv(16):
                    attacker.hears("closed")
            except ConnectionError:
                attacker.hears("closed")
        connection.close()

    while not attacker.is_over:
        with contextlib.suppress(OSError):
            held.append(socket.create_connection((place.hostname, place.port), 1, source_address=(attacker.address, 0)))
        if len(held) > 400:
            leave(held.pop(0))
    # A slow machine opens fewer.
    for connection in held:
        leave(connection)


def admin_tokens(attacker: Attacker) -> None:
    """Wrong admin tokens, as fast as possible."""
    number = 0
    while not attacker.is_over:
        with contextlib.suppress(OSError), attacker.connection(0.2) as client:
            while not attacker.is_over:
                client.sendall("".join(
                    f"GET /api/v1/admin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess{number + n}\r\n\r\n"
                    for n in range(100)).encode())
                number += 100
                with contextlib.suppress(TimeoutError):
                    while data := client.recv(1 << 20):
                        attacker.hear_statuses(data)


ATTACKS = {attack.__name__: attack for attack in (
    jumps, names, large, stopped_clock, burst, flips, tiny, bodies, agents, lying_file, bare_connections, admin_tokens)}


class Attack:
    """One attack, in a process with lower priority, because a real attacker has its own machine. It lasts for its seconds, and then
    until `enough`, but no longer than twenty seconds more. `module` runs it, behind a command that `holds` it, with `more` arguments."""

    def __init__(self, name: str, weir, seconds: float, module: str = "harness.attacks", holds: tuple[str, ...] = ("nice", "-n", "10"),
                 more: tuple[str, ...] = ()):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*holds, sys.executable, "-m", module, name, weir.rtmp, weir.web, weir.recordings, str(seconds), *more],
            stdin=subprocess.PIPE, stdout=self.output, stderr=self.output, cwd=pathlib.Path(__file__).resolve().parents[1])

    def said(self) -> str:
        """What it has written so far. The place in the file is the process's, and stays."""
        return os.pread(self.output.fileno(), MEBIBYTE, 0).decode("utf-8", "replace")

    def enough(self) -> None:
        self.process.stdin.close()

    def told(self) -> str:
        """The server's responses, once the attack is over."""
        self.enough()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert self.process.returncode == 0, self.said()
        return self.said()


def main() -> None:
    name, rtmp, web, folder, seconds = sys.argv[1:]
    attacker = Attacker(name, rtmp, web, folder, float(seconds))
    ATTACKS[name](attacker)
    attacker.tell()


if __name__ == "__main__":
    main()
