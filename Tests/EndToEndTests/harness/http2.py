"""An HTTP/2 client over TLS with explicit flow-control windows: python's h2 for the frames, and a reading thread."""

import contextlib
import dataclasses
import select
import socket
import ssl
import threading
import time
import urllib.parse

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings


@dataclasses.dataclass
class Stream:
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    body: bytearray = dataclasses.field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None
    #: Whether received data is acknowledged, so that the server may send more.
    reads: bool = True

    @property
    def status(self) -> int | None:
        return int(self.headers[":status"]) if ":status" in self.headers else None

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


def context(protocols: list[str]) -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.set_alpn_protocols(protocols)
    return made


class Connection:
    """One connection. `window`: bytes that the server may send on each stream before an update. A connection that is not
    `reading` receives nothing, not even the server's settings, until `read` is called."""

    def __init__(self, url: str, window: int = 1 << 20, reading: bool = True):
        parts = urllib.parse.urlsplit(url)
        raw = socket.create_connection((parts.hostname, parts.port), timeout=10)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context(["h2"]).wrap_socket(raw, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        self.socket.settimeout(None)
        self.authority = parts.netloc
        self.lock = threading.Condition()
        self.streams: dict[int, Stream] = {}
        #: Streams that are over, in the order in which they ended.
        self.order: list[int] = []
        self.goaways: list[int] = []
        self.closed = False
        #: What ended the reading, if it was not the end of the connection.
        self.failure: Exception | None = None
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.state.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.state.initiate_connection()
        self.state.increment_flow_control_window(1 << 28)
        self._flush()
        self.reader = threading.Thread(target=self._read, daemon=True)
        if reading:
            self.read()

    def read(self) -> None:
        self.reader.start()

    def _flush(self) -> None:
        data = self.state.data_to_send()
        if data:
            self.socket.sendall(data)

    def _read(self) -> None:
        try:
            while data := self._received():
                with self.lock:
                    for event in self.state.receive_data(data):
                        self._take(event)
                    self._flush()
                    self.lock.notify_all()
        except (OSError, h2.exceptions.ProtocolError, ValueError) as error:
            self.failure = error
        with self.lock:
            self.closed = True
            self.lock.notify_all()

    def _received(self) -> bytes:
        """The next bytes, empty at the end. OpenSSL's connection is not for two threads at once: it is read under the lock,
        and what would wait waits outside."""
        while True:
            with self.lock:
                self.socket.settimeout(0)
                try:
                    return self.socket.recv(1 << 16)
                except ssl.SSLWantReadError:
                    pass
                finally:
                    self.socket.settimeout(None)
            select.select([self.socket], [], [])

    def _take(self, event) -> None:
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append(int(event.error_code))
        elif stream is None:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            stream.headers = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if stream.reads and event.flow_controlled_length and not event.stream_ended:
                # A later frame of the same read may have ended the stream.
                with contextlib.suppress(h2.exceptions.StreamClosedError):
                    self.state.increment_flow_control_window(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = True
            self.order.append(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = int(event.error_code)
            self.order.append(event.stream_id)

    def request(self, path: str, method: str = "GET", headers: dict[str, str] | None = None, reads: bool = True) -> int:
        with self.lock:
            number = self.state.get_next_available_stream_id()
            self.streams[number] = Stream(reads=reads)
            self.state.send_headers(number, [
                (":method", method), (":scheme", "https"), (":authority", self.authority), (":path", path),
                *(headers or {}).items()], end_stream=True)
            self._flush()
            return number

    def reset(self, number: int) -> None:
        with self.lock:
            self.state.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
            self._flush()

    def wait(self, condition, seconds: float, what: str) -> None:
        """Waits until `condition` of this connection is true."""
        end = time.monotonic() + seconds
        with self.lock:
            while not condition(self):
                assert time.monotonic() < end, (
                    f"not within {seconds} s: {what}; goaways {self.goaways}, closed {self.closed} {self.failure!r}, "
                    f"{[(n, s.status, len(s.body), s.over) for n, s in self.streams.items()]}")
                self.lock.wait(0.05)

    def response(self, number: int, seconds: float = 20) -> Stream:
        self.wait(lambda c: c.streams[number].over or c.closed, seconds, f"the response on stream {number}")
        return self.streams[number]

    def get(self, path: str, **options) -> Stream:
        return self.response(self.request(path, **options))

    def close(self) -> None:
        # Wakes the reading thread, which otherwise uses the socket alone.
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if self.reader.ident:
            self.reader.join(5)
        self.socket.close()
