"""A small HTTP client that shows everything: the status, all headers, the raw body."""

import contextlib
import dataclasses
import http.client
import json
import socket
import ssl
import time
import urllib.parse


@dataclasses.dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    url: str

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def good(self) -> "Response":
        if self.status not in (200, 206):
            raise AssertionError(f"{self.url}: {self.status} {self.body[:200]!r}")
        return self


def _connection(parts: urllib.parse.SplitResult, timeout: float, source: str = "") -> http.client.HTTPConnection:
    address = (source, 0) if source else None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=context, source_address=address)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout, source_address=address)


def fetch(url: str, method: str = "GET", headers: dict[str, str] | None = None, timeout: float = 20,
          body: bytes | None = None, source: str = "") -> Response:
    """One request on its own connection, from the address `source`; redirects are not followed. The response for a
    playlist may wait until the playlist has content."""
    parts = urllib.parse.urlsplit(url)
    connection = _connection(parts, timeout, source)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path or "/", body=body, headers=headers or {})
        answer = connection.getresponse()
        received = answer.read()
        fields: dict[str, str] = {}
        for name, value in answer.getheaders():
            name = name.lower()
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
        return Response(answer.status, fields, received, url)
    finally:
        connection.close()


class Stream:
    """An endless response, read as it arrives."""

    def __init__(self, url: str, timeout: float = 20, headers: dict[str, str] | None = None):
        parts = urllib.parse.urlsplit(url)
        self.connection = _connection(parts, timeout)
        self.connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""), headers=headers or {})
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def read(self, limit: float = 60) -> bytes:
        """All bytes until the server ends the response, for at most `limit` seconds."""
        end = time.monotonic() + limit
        pieces = []
        while time.monotonic() < end:
            piece = self.answer.read1(1 << 16)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
        raise AssertionError(f"the response did not end within {limit} s")

    def interrupt(self) -> None:
        """Ends what another thread reads: that gets the end of the connection. Only then may `close` be called."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.connection.close()


def raw(url: str, data: bytes, timeout: float = 5) -> bytes:
    """Sends exactly these bytes. Returns the received bytes until the server closes, or until `timeout`."""
    parts = urllib.parse.urlsplit(url)
    answer = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=timeout) as connection:
        try:
            connection.sendall(data)
            while True:
                piece = connection.recv(65536)
                if not piece:
                    break
                answer += piece
        except (TimeoutError, ConnectionError):
            pass
    return answer
