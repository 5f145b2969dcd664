"""Addresses that nobody may contact."""

import contextlib
import socket


class Trap:
    """An address of this machine with a socket of UDP and a listener of TCP. The system keeps what comes until somebody looks."""

    def __init__(self, host: str):
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.connections = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        for one in (self.datagrams, self.connections):
            one.bind((host, 0))
            one.setblocking(False)
        self.connections.listen(16)

    @property
    def candidates(self) -> list[str]:
        """Lines of an offer that name it: as a host, as one behind NAT, as a relay, and as a host by TCP."""
        (host, udp), (_, tcp) = self.datagrams.getsockname(), self.connections.getsockname()
        return [
            f"a=candidate:91 1 udp 2130706431 {host} {udp} typ host",
            f"a=candidate:92 1 udp 1694498815 {host} {udp} typ srflx raddr {host} rport {udp}",
            f"a=candidate:93 1 udp 2122260223 {host} {udp} typ relay raddr {host} rport {udp}",
            f"a=candidate:94 1 tcp 2130706430 {host} {tcp} typ host tcptype passive",
        ]

    def caught(self) -> list:
        """The datagrams and the connections that came."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.datagrams.recvfrom(2048))
        with contextlib.suppress(BlockingIOError):
            while True:
                one, address = self.connections.accept()
                one.close()
                found.append(address)
        return found

    def works(self) -> bool:
        """Whether it catches somebody: of what comes to another socket, it would say nothing."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"?", self.datagrams.getsockname())
        socket.create_connection(self.connections.getsockname(), 5).close()
        return len(self.caught()) == 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.datagrams.close()
        self.connections.close()

