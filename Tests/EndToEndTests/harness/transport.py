"""MPEG transport streams: the films as such, and senders of datagrams."""

import pathlib
import socket
import threading
import time
from collections.abc import Callable

from .sources import RECIPES, made, source
from .tools import FFMPEG, new_ffmpeg

PACKET = 188
#: Packets of a datagram, as all senders have it.
TOGETHER = 7
#: Times have 33 bits.
WRAP = 1 << 33


def film(name: str, *options: str, inputs: tuple[str, ...] = ()) -> pathlib.Path:
    """The film of that name as a transport stream."""
    maker = new_ffmpeg() if RECIPES[name].publisher == "new" else FFMPEG
    command = [maker, "-v", "error", "-y", "-i", str(source(name)), *inputs, "-c", "copy", *options, "-f", "mpegts"]
    return made(name, ".ts", command)


def wrapping(name: str) -> pathlib.Path:
    """The film with times that wrap 4 s behind its beginning."""
    return film(name, "-muxdelay", "0", "-muxpreload", "0", "-output_ts_offset", str(WRAP / 90000 - 4))


def clock(packet: bytes) -> int | None:
    """The clock reference of a packet in ticks of 90 kHz."""
    if packet[3] & 0x20 and packet[4] >= 7 and packet[5] & 0x10:
        return int.from_bytes(packet[6:11]) >> 7
    return None


def paced(stream: bytes, seconds: float) -> list[tuple[float, bytes]]:
    """Datagrams of a stream, each with the second in which it is sent: by the stream's clock, over `seconds` in all."""
    pieces, times, now, first = [], [], 0, None
    for at in range(0, len(stream), PACKET * TOGETHER):
        piece = stream[at:at + PACKET * TOGETHER]
        times.append(now)
        pieces.append(piece)
        for start in range(0, len(piece), PACKET):
            found = clock(piece[start:start + PACKET])
            if found is not None:
                first = found if first is None else first
                now = (found - first) % WRAP
    scale = seconds / max(now, 1)
    return [(time * scale, piece) for time, piece in zip(times, pieces)]


class Sender:
    """Sends a transport stream in datagrams, by its clock, over `seconds`. Ends by itself; `stop` ends it earlier. `then` is called
    after each datagram, with its number."""

    #: Seconds between datagrams that are late: a socket has room for some two hundred, so a delay must not end in a burst.
    LEAST = 0.001

    def __init__(self, stream: bytes, port: int, seconds: float, *, own: str = "127.0.0.1", host: str = "127.0.0.1",
                 then: Callable[[int], None] = lambda number: None):
        self._pieces = paced(stream, seconds)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((own, 0))
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self._to, self._seconds, self._then = (host, port), seconds, then
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        for number, (due, piece) in enumerate(self._pieces):
            if self._ends.wait(max(self.LEAST, began + due - time.monotonic())):
                break
            self._socket.sendto(piece, self._to)
            self._then(number)

    def wait(self) -> None:
        self._thread.join(self._seconds + 10)
        self._socket.close()

    def stop(self) -> None:
        self._ends.set()
        self.wait()
