"""HTTP/2 over TLS without a library: frames as a test makes them, also those that no client sends (RFC 9113)."""

import contextlib
import socket
import ssl
import struct
import urllib.parse

from .http2 import context

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
CANCEL, ENHANCE_YOUR_CALM = 8, 11
WINDOW = 65_535


def frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def number(value: int) -> bytes:
    return struct.pack(">I", value)


class Client:
    """One connection, used by one thread. It takes in what comes whenever it sends. `source`: its own address. `settings`: what its
    SETTINGS hold."""

    def __init__(self, url: str, source: str = "", settings: bytes = b""):
        parts = urllib.parse.urlsplit(url)
        self.authority = parts.netloc
        plain = socket.create_connection(
            (parts.hostname, parts.port), timeout=10, source_address=(source, 0) if source else None)
        self.socket = context(["h2"]).wrap_socket(plain, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        self.received = b""
        self.closed = False
        #: The codes of GOAWAY frames, and of RST_STREAM frames by their streams.
        self.goaways: list[int] = []
        self.resets: dict[int, int] = {}
        #: The first byte of the fields of each response: 0x88 is 200, 0x89 is 204 (RFC 7541, appendix A).
        self.answers: dict[int, int] = {}
        #: What may still be sent, on the connection (0) and on each stream.
        self.windows = {0: WINDOW}
        self.acknowledged = False
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, body=settings))
        # Later the acknowledgement could come within a field section, where nothing else may.
        while not self.acknowledged and not self.closed:
            self.take(10)

    def request(self, path: str, stream: int, method: str = "GET", flags: int = END_HEADERS | END_STREAM) -> bytes:
        """The frame of a request, with literals that no table keeps."""
        self.windows[stream] = WINDOW
        fields = b"\x82" if method == "GET" else b"\x83"
        for index, value in ((b"\x87\x04", path), (b"\x01", self.authority)):
            assert len(value) < 127
            fields += index + bytes([len(value)]) + value.encode()
        return frame(HEADERS, flags, stream, fields)

    def send(self, data: bytes) -> None:
        """Nothing, once the connection is lost."""
        try:
            self.socket.settimeout(10)
            self.socket.sendall(b"" if self.closed else data)
        except OSError:
            # What came before may still be read.
            self.take(1)
            self.closed = True
        self.take(0)

    def take(self, seconds: float) -> None:
        """Takes in what is there, or what comes within so long."""
        while not self.closed:
            self.socket.settimeout(seconds)
            try:
                data = self.socket.recv(1 << 16)
            except (ssl.SSLWantReadError, TimeoutError):
                return
            except OSError:
                data = b""
            self.closed = not data
            self.received += data
            seconds = 0
            while len(self.received) >= 9 and len(self.received) >= 9 + (size := int.from_bytes(self.received[:3])):
                kind, flags, stream = struct.unpack(">BBI", self.received[3:9])
                self._read(kind, flags, stream, self.received[9:9 + size])
                self.received = self.received[9 + size:]

    def _read(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == GOAWAY:
            self.goaways.append(int.from_bytes(body[4:8]))
        elif kind == RST_STREAM:
            self.resets[stream] = int.from_bytes(body)
        elif kind == WINDOW_UPDATE:
            self.windows[stream] += int.from_bytes(body)
        elif kind == HEADERS:
            self.answers.setdefault(stream, body[0])
        elif kind == SETTINGS and not flags & ACK:
            with contextlib.suppress(OSError):
                self.socket.settimeout(10)
                self.socket.sendall(frame(SETTINGS, ACK))
            self.acknowledged = True

    def close(self) -> None:
        self.socket.close()
