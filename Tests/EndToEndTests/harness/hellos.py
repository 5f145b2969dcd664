"""A flood of TLS handshakes: one ClientHello on each new connection, and nothing more, which costs the server far more than its sender.
`python -m harness.hellos PORT COUNT SECONDS` makes so many, and goes on for so long. It prints how many it made, and the seconds."""

import itertools
import socket
import ssl
import sys
import time

#: Connections that are kept open.
HELD = 1500


def hello() -> bytes:
    """A ClientHello."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def flood(port: int, goes_on, source: str = "127.0.0.1") -> int:
    """Sends it while `goes_on` of their number. Returns that number."""
    held: list[socket.socket] = []
    first = hello()
    for made in itertools.count():
        if not goes_on(made):
            for connection in held:
                connection.close()
            return made
        try:
            held.append(socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(source, 0)))
            held[-1].sendall(first)
        except OSError:
            pass
        if len(held) > HELD:
            held.pop(0).close()


def main() -> None:
    port, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    began = time.monotonic()
    made = flood(port, lambda made: made < count or time.monotonic() < began + seconds)
    print(made, time.monotonic() - began)


if __name__ == "__main__":
    main()
