"""Attacks that take memory, connections or turns of the server: clients that do not read, messages without an end, offers that nobody
follows, and more asked at once than there is time for. `python -m harness.floods NAME RTMP HTTP FOLDER SECONDS ADDRESSES` runs one of
them, or one of attacks.py, as that file does. ADDRESSES are those of the server, as JSON. docs/limits.md has the limits that stop each."""

import contextlib
import itertools
import json
import os
import pathlib
import resource
import select
import socket
import struct
import sys
import time
import urllib.parse
from http.client import HTTPException

from . import attacks, hellos, hls, http, offers, publishers, sources, srt, tools
from .attacks import MEBIBYTE, Attacker, key_frame
from .http2_frames import Client
from .rawrtmp import MEDIA, VIDEO, Closed, RawRTMP, Refused

#: A recording that is larger than what the system takes for a connection, and its address.
STREAM, FILE = "cam", "20261121T072410Z.mp4"
ADDRESS = f"/recordings/{STREAM}/{FILE}"
SIZE = 24 << 20
#: The stream whose segments the readers ask for; it has to be published.
WIDE = "wide"


def lay_out(recordings: pathlib.Path) -> None:
    """Makes that recording."""
    place = recordings / STREAM
    place.mkdir(parents=True, exist_ok=True)
    tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("steady"), "-c", "copy", "-movflags", "+faststart", place / FILE)
    with open(place / FILE, "ab") as file:
        size = SIZE - file.tell()
        file.write(size.to_bytes(4, "big") + b"free" + bytes(size - 8))


def slow_connection(url: str, buffer: int = 4096, source: str = "") -> socket.socket:
    """A connection with small buffers, as over the Internet, unlike over loopback."""
    parts = urllib.parse.urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    connection.settimeout(5)
    if source:
        connection.bind((source, 0))
    connection.connect((parts.hostname, parts.port))
    return connection


class Flooder(Attacker):
    """An attacker that knows all addresses of the server."""

    def __init__(self, name: str, rtmp: str, web: str, folder: str, seconds: float, addresses: dict[str, str]):
        super().__init__(name, rtmp, web, folder, seconds, address="127.0.2.1")
        self.addresses = addresses

    def port(self, scheme: str) -> int:
        return urllib.parse.urlsplit(self.addresses[scheme]).port

    def hold(self, what: str, most: int, make) -> list:
        """Makes so many of them, one after the other, and holds them until the attack is over."""
        held = []
        while not self.is_over:
            if len(held) == most:
                time.sleep(0.1)
                continue
            try:
                held.append(make(len(held)))
            except (Closed, Refused, OSError, AssertionError) as error:
                self.hears(f"{type(error).__name__}: {error}"[:100])
                time.sleep(0.01)
        self.hears(f"{len(held)} {what}")
        return held


def streams(attacker: Flooder) -> None:
    """Connections of HTTP/2 with a window of a byte, each with as many requests for a file on disk as it may have."""
    window = struct.pack(">HI", 4, 1)

    def make(_: int) -> Client:
        client = Client(attacker.addresses["https"], source=attacker.address, settings=window)
        client.send(b"".join(client.request(ADDRESS, 2 * number + 1) for number in range(100)))
        return client

    attacker.hold("connections with 100 streams each", 150, make)


def downloads(attacker: Flooder) -> None:
    """Connections that ask for a file on disk and read nothing of it."""
    def make(_: int) -> socket.socket:
        client = slow_connection(attacker.web, source=attacker.address)
        client.sendall(f"GET {ADDRESS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return client

    attacker.hold("downloads", 4500, make)


def halves(attacker: Flooder) -> None:
    """Publications, each with a message of 16 MiB that lacks its end."""
    header, _ = key_frame(1024)
    most = bytes(15 * MEBIBYTE)

    def make(number: int) -> RawRTMP:
        client = RawRTMP(attacker.rtmp, source=attacker.address, timeout=3).start(f"{attacker.name}-{number}", chunk_size=1 << 16)
        client.tag(header)
        client.socket.sendall(client.chunks(MEDIA, VIDEO, 0, most, client.stream, size=16 * MEBIBYTE - 1))
        return client

    attacker.hold("messages without an end", 60, make)


def readers(attacker: Flooder) -> None:
    """Two thousand connections that ask for the newest three segments, and read a byte of them each second."""
    url = hls.first_playlist(f"{attacker.web}/live/{WIDE}/index.m3u8")
    held: list[socket.socket] = []
    asked, paths = 0.0, []
    while not attacker.is_over and len(held) < 2000:
        with contextlib.suppress(OSError, HTTPException, AssertionError):
            # A segment stays in the window for a while.
            if time.monotonic() > asked + 2:
                playlist = hls.parse_media(http.fetch(url, source=attacker.address).good().text, url)
                paths = [urllib.parse.urlsplit(playlist.absolute(segment.uri)).path for segment in playlist.segments[-3:]]
                asked = time.monotonic()
            client = slow_connection(url, source=attacker.address)
            client.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths).encode())
            client.setblocking(False)
            held.append(client)
    attacker.hears(f"{len(held)} readers")
    while not attacker.is_over:
        for client in held:
            with contextlib.suppress(OSError):
                client.recv(1)
        time.sleep(1)  # real time: a byte a second


def decoders(attacker: Flooder) -> None:
    """Publications whose audio the server has to decode, each by a process of its own."""
    running = [
        publishers.ffmpeg("short", f"{attacker.rtmp}/live/{attacker.name}-{number}", loop=-1,
                          options=("-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1"))
        for number in range(12)]
    try:
        while not attacker.is_over:
            time.sleep(0.1)
        attacker.hears(f"{sum(one.process.poll() is None for one in running)} publications to decode")
    finally:
        for one in running:
            one.kill()


def srt_callers(attacker: Flooder) -> None:
    """As many connections as there may be, by SRT, of seven addresses. Each sends a packet now and then."""
    port, packet = attacker.port("srt"), b"\x47" + bytes(187)

    def make(number: int) -> srt.Caller:
        caller = srt.Caller(port, f"{attacker.name}-{number}", timeout=1000, source=f"127.0.2.{1 + number % 7}")
        if caller.reject:
            caller.close()
            raise AssertionError(f"rejected: {caller.reject}")
        caller.send(packet)
        return caller

    held = attacker.hold("connections by SRT", 400, make)
    attacker.hears(f"{sum(caller.is_open for caller in held)} of them are open")
    for caller in held:
        caller.close()


def unfollowed(attacker: Flooder) -> None:
    """Offers of publishers and of viewers by WebRTC, of 32 addresses. None is followed by a connection."""
    for number in itertools.count():
        if attacker.is_over:
            return
        path, direction = ((f"/whip/{attacker.name}-{number}", "sendonly"), ("/whep/honest", "recvonly"))[number % 2]
        with contextlib.suppress(OSError, HTTPException):
            answer = http.fetch(
                attacker.web + path, method="POST", headers={"Content-Type": "application/sdp"},
                body=offers.offer(direction).encode(), source=f"127.0.3.{1 + number // 2 % 32}", timeout=5)
            attacker.hears(str(answer.status))


def handshakes(attacker: Flooder) -> None:
    """The beginning of a TLS handshake on each of many connections."""
    made = hellos.flood(attacker.port("https"), lambda _: not attacker.is_over, attacker.address)
    attacker.hears(f"{made} handshakes")


def pipelines(attacker: Flooder) -> None:
    """A thousand connections that send requests ahead without a pause, and read what comes."""
    many = memoryview(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
    poll, held, sent = select.epoll(), {}, {}
    while not attacker.is_over:
        if len(held) < 1000:
            with contextlib.suppress(OSError):
                client = attacker.connection(2)
                client.setblocking(False)
                held[client.fileno()], sent[client.fileno()] = client, 0
                poll.register(client.fileno(), select.EPOLLIN | select.EPOLLOUT)
        for number, events in poll.poll(0, 64):
            try:
                if events & ~select.EPOLLOUT:
                    data = held[number].recv(1 << 18)
                    if not data:
                        raise ConnectionError("closed")
                    attacker.hears(data[9:12].decode("latin-1") if data.startswith(b"HTTP/1.1 ") else "more")
                if events & select.EPOLLOUT:
                    sent[number] = (sent[number] + held[number].send(many[sent[number]:])) % len(many)
            except BlockingIOError:
                pass
            except OSError as error:
                attacker.hears(type(error).__name__)
                poll.unregister(number)
                held.pop(number).close()
                del sent[number]
    attacker.hears(f"{len(held)} connections")


def silent(attacker: Flooder) -> None:
    """Connections that ask for nothing, more than an address may have."""
    held: list[socket.socket] = []
    made = 0
    while not attacker.is_over:
        with contextlib.suppress(OSError):
            held.append(attacker.connection(2))
            made += 1
        if len(held) > 3000:
            held.pop(0).close()
    attacker.hears(f"{made} silent connections")


FLOODS = {flood.__name__: flood for flood in (
    streams, downloads, halves, readers, decoders, srt_callers, unfollowed, handshakes, pipelines, silent)}


def main() -> None:
    name, rtmp, web, folder, seconds, addresses = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if name in attacks.ATTACKS:
        attacker, attack = Attacker(name, rtmp, web, folder, float(seconds)), attacks.ATTACKS[name]
    else:
        attacker, attack = Flooder(name, rtmp, web, folder, float(seconds), json.loads(addresses)), FLOODS[name]
    attack(attacker)
    attacker.tell()
    # Without the destructors of libsrt, whose threads may crash in them.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
