"""SRT callers: ffmpeg, GStreamer, srt-live-transmit, and libsrt itself for what they do not tell."""

import ctypes
import json
import pathlib
import socket
import struct
import subprocess
import threading
import time

from . import tools
from .programs import free_port
from .publishers import Publisher

PASSPHRASE, PBKEYLEN, CONNTIMEO, STREAMID, TRANSTYPE, RCVSYN, LATENCY = 26, 27, 36, 46, 50, 2, 23


def library():
    """libsrt, of the flavour that weir is linked with."""
    lib = ctypes.CDLL("libsrt-gnutls.so.1.5")
    lib.srt_startup()
    lib.srt_setloglevel(0)
    return lib


class Caller:
    """A connection by libsrt. `reject`: the code of its rejection, 0 if it is connected."""

    def __init__(self, port: int, streamid: str, *, passphrase: str = "", keylen: int = 0, latency: int = 120,
                 timeout: int = 15_000, source: str = ""):
        self.lib = library()
        self.socket = self.lib.srt_create_socket()
        self._set(TRANSTYPE, 0)
        self._set(CONNTIMEO, timeout)
        self._set(LATENCY, latency)
        self._text(STREAMID, streamid)
        if passphrase:
            self._text(PASSPHRASE, passphrase)
        if keylen:
            self._set(PBKEYLEN, keylen)
        if source:
            self.lib.srt_bind(self.socket, self._address(0, source), 16)
        began = time.monotonic()
        code = self.lib.srt_connect(self.socket, self._address(port, "127.0.0.1"), 16)
        self.seconds = time.monotonic() - began
        self.reject = 0 if code == 0 else self.lib.srt_getrejectreason(self.socket)

    @staticmethod
    def _address(port: int, host: str) -> bytes:
        return struct.pack("=H", socket.AF_INET) + struct.pack(">H4s8x", port, socket.inet_aton(host))

    def _set(self, option: int, value: int) -> None:
        number = ctypes.c_int(value)
        self.lib.srt_setsockflag(self.socket, option, ctypes.byref(number), 4)

    def _text(self, option: int, value: str) -> None:
        data = value.encode()
        self.lib.srt_setsockflag(self.socket, option, data, len(data))

    @property
    def is_open(self) -> bool:
        return self.lib.srt_getsockstate(self.socket) == 5

    def send(self, data: bytes) -> int:
        return self.lib.srt_sendmsg(self.socket, data, len(data), -1, 1)

    def close(self) -> None:
        self.lib.srt_close(self.socket)


def ffmpeg(ts: pathlib.Path, port: int, streamid: str, *, loop: int = 0, version: str = "debian",
           host: str = "127.0.0.1", options: str = "", input: tuple[str, ...] = ()) -> Publisher:
    """Publishes a transport stream in real time. `options`: further ones of the URL, `&latency=200000`."""
    program = tools.new_ffmpeg() if version == "new" else tools.FFMPEG
    return Publisher([
        program, "-hide_banner", "-nostdin", "-v", "warning", "-re", *(["-stream_loop", str(loop)] if loop else []), *input,
        "-i", str(ts), "-map", "0", "-c", "copy", "-f", "mpegts", f"srt://{host}:{port}?streamid={streamid}{options}"])


def gstreamer(ts: pathlib.Path, port: int, streamid: str) -> Publisher:
    return Publisher([
        tools.GSTREAMER, "-q", "filesrc", f"location={ts}", "!", "tsparse", "set-timestamps=true", "!", "srtsink",
        f"uri=srt://127.0.0.1:{port}", "mode=caller", f"streamid={streamid}"])


def has_udp(port: int) -> bool:
    """Whether a program has this UDP port."""
    lines = pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(int(line.split()[1].rpartition(":")[2], 16) == port for line in lines)


class Receiver:
    """srt-live-transmit as a listener that throws away what it receives. It writes its figures after every `EVERY` packets."""

    EVERY = 20

    def __init__(self, folder: pathlib.Path):
        self.port = free_port()
        self._figures = folder / "srt-live-transmit.json"
        self._process = subprocess.Popen(
            ["srt-live-transmit", "-q", "-f", "-s", str(self.EVERY), "-pf", "json", "-statsout", str(self._figures),
             f"srt://127.0.0.1:{self.port}?mode=listener", "file://con"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 15
        while not has_udp(self.port) and time.monotonic() < end:
            time.sleep(0.05)

    @property
    def link(self) -> dict:
        """The newest figures since the connection began: `packets`, `packetsLost`, `packetsDropped` …"""
        if self._process.poll() is not None:
            raise AssertionError(f"srt-live-transmit ended: {self._process.returncode}")
        whole = [line for line in self._figures.read_text().splitlines() if line.endswith("}")]
        return json.loads(whole[-1])["recv"]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Paced:
    """srt-live-transmit between a paced UDP sender of packets of a file and an SRT port. The sender begins once it has said that
    it is connected: it throws away what comes before."""

    READY = b"SRT target connected"

    def __init__(self, ts: pathlib.Path, port: int, streamid: str, *, seconds: float, options: str = "",
                 program: str = "srt-live-transmit"):
        self.packets = ts.read_bytes()
        self.seconds = seconds
        self.udp = free_port()
        self.publisher = Publisher([
            program, f"udp://127.0.0.1:{self.udp}?rcvbuf=4000000", f"srt://127.0.0.1:{port}?streamid={streamid}{options}"])
        self.sent = 0
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        said = self.publisher.process.stderr
        while self.READY not in (line := said.readline()):
            if not line:
                return
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        pieces = [self.packets[at:at + 1316] for at in range(0, len(self.packets), 1316)]
        began = time.monotonic()
        for index, piece in enumerate(pieces):
            wait = began + self.seconds * index / len(pieces) - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if self._over:
                break
            out.sendto(piece, ("127.0.0.1", self.udp))
            self.sent += 1
        out.close()

    def wait(self) -> None:
        self._thread.join(self.seconds + 15)

    def stop(self) -> None:
        self._over = True
        self.publisher.process.kill()
        self._thread.join(2)
        self.publisher.kill()
