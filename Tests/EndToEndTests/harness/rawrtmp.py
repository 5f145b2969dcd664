"""A scripted RTMP client (Adobe RTMP 1.0). It sends exactly what a test asks for, including invalid messages."""

import os
import select
import socket
import ssl
import struct
import time
import urllib.parse

from . import amf, flv

CONTROL, COMMAND, MEDIA = 2, 3, 6  # chunk stream ids
SET_CHUNK_SIZE, ABORT, ACKNOWLEDGEMENT, USER_CONTROL, WINDOW_SIZE, BANDWIDTH = 1, 2, 3, 4, 5, 6
AUDIO, VIDEO, DATA_AMF0, COMMAND_AMF0, AGGREGATE = 8, 9, 18, 20, 22
EXTENDED = 0xFFFFFF


class Refused(Exception):
    """The server refused: code and description of its response."""

    def __init__(self, code: str, description: str):
        super().__init__(f"{code}: {description}")
        self.code = code
        self.description = description


class Closed(Exception):
    """The server closed the connection."""


class RawRTMP:
    """One connection. `url` is rtmp://HOST:PORT or rtmps://HOST:PORT. Nothing is sent before a method is called. `source`:
    the local address of the connection. `no_delay`: TCP_NODELAY is set. `by_chunk`: each chunk is a write of its own.
    `bits`: of the times of tags; libavformat has 31."""

    def __init__(self, url: str, *, timeout: float = 10, repeat_extended: bool = True, source: str = "", no_delay: bool = True,
                 by_chunk: bool = False, bits: int = 32):
        self.bits = bits
        parts = urllib.parse.urlsplit(url)
        self.host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.base = f"{parts.scheme}://{self.host}:{parts.port}"
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=timeout,
                                               source_address=(source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(no_delay))
        if parts.scheme == "rtmps":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.out_chunk = 128
        self.in_chunk = 128
        #: Whether type-3 chunks repeat the extended timestamp, as the specification demands. Some clients omit it.
        self.repeat_extended = repeat_extended
        self.by_chunk = by_chunk
        self.stream = 0
        self.received = b""
        self.transaction = 0
        self.pending: dict[int, dict] = {}

    def __enter__(self) -> "RawRTMP":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Closes with a TCP reset, like a lost connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # Handshake (§5.2)

    def handshake(self) -> None:
        c1 = struct.pack(">II", 0, 0) + os.urandom(1528)
        self.socket.sendall(b"\x03" + c1)
        answer = self.read(1 + 1536 + 1536)
        if answer[0] != 3:
            raise AssertionError(f"S0 is {answer[0]}")
        if answer[1 + 1536 + 8 :] != c1[8:]:
            raise AssertionError("S2 does not echo C1")
        self.socket.sendall(answer[1 : 1 + 1536])

    # Messages (§5.3)

    def pieces(self, csid: int, kind: int, timestamp: int, payload: bytes, stream: int, size: int | None = None) -> list[bytes]:
        """A message as a type-0 chunk and type-3 chunks."""
        stamp = min(timestamp, EXTENDED)
        extended = struct.pack(">I", timestamp & 0xFFFFFFFF) if stamp == EXTENDED else b""
        length = len(payload) if size is None else size
        head = bytes([csid]) + stamp.to_bytes(3, "big") + length.to_bytes(3, "big") + bytes([kind]) + struct.pack("<I", stream)
        further = bytes([0xC0 | csid]) + (extended if self.repeat_extended else b"")
        return [head + extended + payload[: self.out_chunk]] + [
            further + payload[at : at + self.out_chunk] for at in range(self.out_chunk, len(payload), self.out_chunk)]

    def chunks(self, csid: int, kind: int, timestamp: int, payload: bytes, stream: int, size: int | None = None) -> bytes:
        """The same in one."""
        return b"".join(self.pieces(csid, kind, timestamp, payload, stream, size))

    def send(self, csid: int, kind: int, payload: bytes, *, timestamp: int = 0, stream: int = 0) -> None:
        pieces = self.pieces(csid, kind, timestamp, payload, stream)
        for piece in pieces if self.by_chunk else [b"".join(pieces)]:
            self.socket.sendall(piece)

    def set_chunk_size(self, size: int) -> None:
        self.send(CONTROL, SET_CHUNK_SIZE, struct.pack(">I", size))
        self.out_chunk = size

    def command(self, name: str, *arguments, transaction: int | None = None, stream: int = 0) -> int:
        if transaction is None:
            self.transaction += 1
            transaction = self.transaction
        self.send(COMMAND, COMMAND_AMF0, amf.encode(name, transaction, *arguments), stream=stream)
        return transaction

    # Reading

    def read(self, count: int) -> bytes:
        while len(self.received) < count:
            try:
                more = self.socket.recv(65536)
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not more:
                raise Closed("end of stream")
            self.received += more
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def message(self) -> tuple[int, int, bytes]:
        """The next whole message: type, timestamp, payload. Control messages for the reader are applied."""
        while True:
            head = self.read(1)[0]
            form, csid = head >> 6, head & 63
            if csid == 0:
                csid = 64 + self.read(1)[0]
            elif csid == 1:
                low, high = self.read(2)
                csid = 64 + low + (high << 8)
            state = self.pending.setdefault(csid, {"body": b"", "length": 0, "kind": 0, "stamp": 0, "extended": False})
            if form < 3:
                stamp = int.from_bytes(self.read(3), "big")
                if form < 2:
                    state["length"] = int.from_bytes(self.read(3), "big")
                    state["kind"] = self.read(1)[0]
                if form == 0:
                    self.read(4)
                state["extended"] = stamp == EXTENDED
                state["stamp"] = stamp
            if state["extended"]:
                state["stamp"] = int.from_bytes(self.read(4), "big")
            want = min(self.in_chunk, state["length"] - len(state["body"]))
            state["body"] += self.read(want)
            if len(state["body"]) < state["length"]:
                continue
            body, state["body"] = state["body"], b""
            if state["kind"] == SET_CHUNK_SIZE:
                self.in_chunk = struct.unpack(">I", body)[0]
            return state["kind"], state["stamp"], body

    def answer(self, *names: str) -> list:
        """The next command with one of these names."""
        while True:
            kind, _, body = self.message()
            if kind == COMMAND_AMF0:
                values = amf.decode(body)
                if values[0] in names:
                    return values

    def wait_closed(self, seconds: float) -> float:
        """Waits until the server closes. Returns the seconds it took; AssertionError if it does not close."""
        began = time.monotonic()
        self.socket.settimeout(0.2)
        while time.monotonic() - began < seconds:
            try:
                if not self.socket.recv(65536):
                    return time.monotonic() - began
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError:
                return time.monotonic() - began
        raise AssertionError(f"the server kept the connection open for {seconds} s")

    # Publishing (§7.2)

    def connect(self, app: str = "live", **more) -> list:
        options = {"app": app, "type": "nonprivate", "flashVer": "FMLE/3.0 (test)", "tcUrl": f"{self.base}/{app}", **more}
        self.command("connect", options)
        values = self.answer("_result", "_error")
        if values[0] == "_error":
            info = values[3] if len(values) > 3 and isinstance(values[3], dict) else {}
            raise Refused(info.get("code", "?"), info.get("description", ""))
        return values

    def publish(self, name: str) -> None:
        """createStream and publish; returns at NetStream.Publish.Start."""
        self.command("releaseStream", None, name)
        self.command("FCPublish", None, name)
        created = self.command("createStream", None)
        while True:
            values = self.answer("_result", "_error", "onStatus")
            if values[0] == "onStatus":
                self._status(values)
            if values[1] == created:
                break
        self.stream = int(values[3])
        self.command("publish", None, name, "live", transaction=0, stream=self.stream)
        while not self._status(self.answer("onStatus", "_error")):
            pass

    @staticmethod
    def _status(values: list) -> bool:
        info = values[3] if len(values) > 3 and isinstance(values[3], dict) else {}
        if info.get("level") == "error" or values[0] == "_error":
            raise Refused(info.get("code", "?"), info.get("description", ""))
        return info.get("code") == "NetStream.Publish.Start"

    def start(self, name: str, *, chunk_size: int = 4096) -> "RawRTMP":
        """Sends everything up to the first tag."""
        self.handshake()
        self.connect()
        self.set_chunk_size(chunk_size)
        self.publish(name)
        return self

    def tag(self, tag: flv.Tag) -> None:
        body = tag.body
        if tag.type == flv.DATA and body[:16] != amf.encode("@setDataFrame")[:16]:
            body = amf.encode("@setDataFrame") + body
        csid = {flv.AUDIO: 4, flv.VIDEO: MEDIA, flv.DATA: 5}[tag.type]
        self.send(csid, tag.type, body, timestamp=tag.milliseconds % (1 << self.bits), stream=self.stream)

    def play_out(self, tags: list[flv.Tag], *, speed: float = 1, until: float = 1e9, origin: int | None = None) -> None:
        """Sends the tags at their times, `speed` times faster than real time. Keeps reading the server's messages."""
        began = time.monotonic()
        first = min((tag.milliseconds for tag in tags), default=0) if origin is None else origin
        for tag in tags:
            due = began + (tag.milliseconds - first) / 1000 / speed
            if due - began > until:
                return
            delay = due - time.monotonic()
            if delay > 0:
                time.sleep(delay)
            self.drain()
            self.tag(tag)

    def drain(self) -> None:
        """Reads and drops the server's messages, so that its sends never block."""
        while select.select([self.socket], [], [], 0)[0]:
            try:
                data = self.socket.recv(65536)
            except (ssl.SSLWantReadError, TimeoutError):
                return
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not data:
                raise Closed("end of stream")

    def finish(self) -> None:
        """Ends the publication as ffmpeg does."""
        self.command("FCUnpublish", None, "", stream=self.stream)
        self.command("deleteStream", None, self.stream)
        self.close()
