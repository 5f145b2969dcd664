"""The first steps of a peer of WebRTC by hand: an offer, a check of STUN (RFC 8489), and a handshake of DTLS (RFC 6347) whose
messages may be taken apart."""

import contextlib
import hashlib
import hmac
import itertools
import os
import pathlib
import re
import socket
import ssl
import struct
import time

from . import http, offers

#: The content type of records, and that of a handshake message.
HANDSHAKE, CLIENT_HELLO = 22, 1


def binding(user: str, password: str = "") -> bytes:
    """A request of STUN that nominates. Without a password its message integrity is forged."""
    name = user.encode()
    body = struct.pack(">HH", 6, len(name)) + name + bytes(-len(name) % 4) + struct.pack(">HH", 0x25, 0)
    head = struct.pack(">HHI", 1, len(body) + 24, 0x2112A442) + os.urandom(12)
    integrity = hmac.digest(password.encode(), head + body, "sha1") if password else bytes(20)
    return head + body + struct.pack(">HH", 8, 20) + integrity


def fingerprint(certificate: pathlib.Path) -> str:
    """As `a=fingerprint` has it."""
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest().upper()
    return ":".join(digest[at:at + 2] for at in range(0, 64, 2))


def record(number: int, body: bytes, kind: int = HANDSHAKE, version: int = 0xFEFF) -> bytes:
    """A record that is not encrypted."""
    return struct.pack(">BHHHIH", kind, version, 0, number >> 32, number & 0xFFFFFFFF, len(body)) + body


def piece(length: int, at: int, data: bytes, *, kind: int = CLIENT_HELLO, message: int = 0) -> bytes:
    """A fragment of a handshake message of this length."""
    numbers = ((kind, 1), (length, 3), (message, 2), (at, 3), (len(data), 3))
    return b"".join(number.to_bytes(size, "big") for number, size in numbers) + data


class Cutter:
    """Takes handshake messages that are not encrypted apart: three fragments that overlap, the last one first, in place of each that
    there was. With `contradicts` they differ in the bytes that they share."""

    def __init__(self, contradicts: bool = False):
        self.contradicts = contradicts
        self.numbers = itertools.count()
        self.cut = 0

    def __call__(self, datagram: bytes) -> list[bytes]:
        made, at = [], 0
        while at < len(datagram):
            kind, version, epoch, size = struct.unpack_from(">BHH6xH", datagram, at)
            body = datagram[at + 13:at + 13 + size]
            if epoch:
                made.append(datagram[at:at + 13 + size])
            elif kind == HANDSHAKE:
                made += [record(next(self.numbers), part, kind, version) for part in self._apart(body)]
            else:
                made.append(record(next(self.numbers), body, kind, version))
            at += 13 + size
        return made

    def _apart(self, body: bytes) -> list[bytes]:
        length, message, begin = (int.from_bytes(body[at:end], "big") for at, end in ((1, 4), (4, 6), (6, 9)))
        data = body[12:]
        self.cut += 1
        third = len(data) // 3
        parts = [(third, data[third:]), (0, data[:2 * third]), (third // 2, data[third // 2:third])]
        if self.contradicts:
            parts[1] = (0, bytes(byte ^ 0xFF for byte in parts[1][1]))
        return [piece(length, begin + at, some, kind=body[0], message=message) for at, some in parts]


class Caller:
    """A peer that has made an offer, of a certificate with this fingerprint. `status` is the answer's."""

    def __init__(self, weir, path: str, certificate: str = offers.NOBODY, source: str = "127.0.0.1"):
        self.weir, self.source = weir, source
        sdp = offers.offer("recvonly" if path.startswith("/whep/") else "sendonly", fingerprint=certificate)
        answer = weir.get(
            path, method="POST", headers={"Content-Type": "application/sdp"}, body=sdp.encode(), source=source)
        self.status, self.headers, self.answer = answer.status, answer.headers, answer.text
        self.socket: socket.socket | None = None
        #: Bytes since it is known by its address.
        self.sent = self.received = 0

    def _line(self, pattern: str) -> str:
        return re.search(pattern, self.answer)[1]

    @property
    def user(self) -> str:
        """Of its requests: both names of the session, as in offers.py."""
        return self._line(r"a=ice-ufrag:(\S+)") + ":abcd"

    @property
    def port(self) -> int:
        return int(self._line(r"a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 (\d+)"))

    def connect(self) -> "Caller":
        """Makes its address known, by a request with the session's password."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.source, 0))
        self.socket.connect(("127.0.0.1", self.port))
        for _ in range(5):
            self.send(binding(self.user, self._line(r"a=ice-pwd:(\S+)")))
            if (answer := self.receive(1)) and answer[:2] == b"\x01\x01":
                self.sent = self.received = 0
                return self
        raise AssertionError("a request with the password is not answered")

    def send(self, datagram: bytes) -> None:
        self.sent += self.socket.send(datagram)

    def receive(self, seconds: float) -> bytes:
        """The next datagram; nothing if none comes."""
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(4096)
        except TimeoutError:
            return b""
        self.received += len(data)
        return data

    def shake_hands(self, certificate: pathlib.Path, key: pathlib.Path, cut=None, seconds: float = 5) -> bool:
        """Whether a handshake as its client is complete in time. `cut` makes datagrams of one."""
        from OpenSSL import SSL  # noqa: PLC0415  (comes with aiortc)

        context = SSL.Context(SSL.DTLS_METHOD)
        context.set_verify(SSL.VERIFY_PEER, lambda *_: True)
        context.use_certificate_file(str(certificate))
        context.use_privatekey_file(str(key))
        context.set_tlsext_use_srtp(b"SRTP_AEAD_AES_128_GCM")
        connection = SSL.Connection(context, None)
        connection.set_connect_state()
        end, done = time.monotonic() + seconds, False
        while not done and time.monotonic() < end:
            try:
                connection.do_handshake()
                done = True
            except SSL.WantReadError:
                pass
            except SSL.Error:
                return False
            with contextlib.suppress(SSL.WantReadError):
                while made := connection.bio_read(2048):
                    for datagram in cut(made) if cut else [made]:
                        self.send(datagram)
            if not done:
                data = self.receive(0.2)
                if data and 20 <= data[0] <= 63:
                    connection.bio_write(data)
                elif not data:
                    connection.DTLSv1_handle_timeout()
        return done

    def leave(self) -> int:
        """Ends its session. Returns the status: 410 if the server has ended it, 404 if there is none."""
        if self.socket:
            self.socket.close()
        return self.weir.get(self.headers["location"], method="DELETE", source=self.source).status
