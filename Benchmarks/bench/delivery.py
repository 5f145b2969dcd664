"""A playlist of about 1 KB and a segment of about 1 MB: weir against nginx, which serves the same bytes from files, over TCP,
TLS and HTTP/2."""

import contextlib
import re
import ssl
import socket
import struct
import subprocess
import threading
import urllib.parse

from harness import hls, http
from harness.programs import free_port
from harness.rawrtmp import Closed, RawRTMP

from . import film, meter, peers

WRK = "wrk"
H2LOAD = "h2load"
SECONDS = 4


def wrk(url: str, connections: int, pid: int, *options: str) -> dict:
    before = meter.split_cpu_seconds(pid)
    done = subprocess.run([WRK, "-t", "1", "-c", str(connections), "-d", f"{SECONDS}s", *options, url], capture_output=True,
                          text=True, check=True)
    after = meter.split_cpu_seconds(pid)
    requests = int(re.search(r"(\d+) requests in", done.stdout).group(1))
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(f"{url}: {done.stdout}")
    user, system = (b - a for a, b in zip(before, after))
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1)),
            "cpu": (user + system) / requests * 1e6, "user": user / requests * 1e6}


def h2load(url: str, connections: int, pid: int, streams: int) -> dict:
    before = meter.split_cpu_seconds(pid)
    done = subprocess.run([H2LOAD, "-t", "1", "-c", str(connections), "-m", str(streams), "-D", str(SECONDS), url],
                          capture_output=True, text=True, check=True)
    after = meter.split_cpu_seconds(pid)
    if "Application protocol: h2" not in done.stdout:
        raise RuntimeError(f"{url} does not speak HTTP/2: {done.stdout}")
    succeeded, failed = (int(re.search(rf"requests:.* (\d+) {word}", done.stdout).group(1)) for word in ("succeeded", "failed"))
    if failed or not succeeded:
        raise RuntimeError(f"{url}: {done.stdout}")
    user, system = (b - a for a, b in zip(before, after))
    return {"rate": float(re.search(r"([\d.]+) req/s", done.stdout).group(1)),
            "cpu": (user + system) / succeeded * 1e6, "user": user / succeeded * 1e6}


def insecure() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.contextmanager
def resetting(url: str):
    """Meanwhile one connection of HTTP/2 (RFC 9113) requests the address five times a second and resets each request at once, as
    players do that seek: one client beside the 16 or 64 of a row."""
    parts = urllib.parse.urlsplit(url)
    context = insecure()
    context.set_alpn_protocols(["h2"])
    over = threading.Event()
    failures: list[Exception] = []

    def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
        return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body

    def text(value: str) -> bytes:
        return bytes([len(value)]) + value.encode()

    def run() -> None:
        try:
            with socket.create_connection((parts.hostname, parts.port)) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
                # GET, https, the path and the authority as literals (RFC 7541).
                fields = b"\x82\x87\x04" + text(parts.path) + b"\x01" + text(parts.netloc)
                stream = 1
                secure.settimeout(0.2)
                while not over.is_set():
                    secure.sendall(frame(1, 5, stream, fields) + frame(3, 0, stream, struct.pack(">I", 8)))
                    # What was on its way uses up the connection's window.
                    secure.sendall(frame(8, 0, 0, struct.pack(">I", 1 << 20)) if stream % 20 == 1 else b"")
                    stream += 2
                    with contextlib.suppress(TimeoutError):
                        while not over.is_set():
                            if not secure.recv(1 << 16):
                                raise ConnectionError("the connection of a client that resets has ended")
        except (OSError, ConnectionError) as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)
    if failures:
        raise RuntimeError(f"{url}: {failures[0]}")


class Publisher(threading.Thread):
    """One live stream, as long as it is needed."""

    def __init__(self, rtmp: str, seconds: int):
        super().__init__(daemon=True)
        headers, media = film.media("4M", seconds)  # before connecting: it may have to be encoded
        self.tags = headers + media
        self.client = RawRTMP(rtmp).start("bench", chunk_size=film.CHUNK_SIZE)
        self.start()

    def run(self) -> None:
        try:
            self.client.play_out(self.tags, origin=0)
        except (OSError, Closed):
            return


def pick(server) -> tuple[str, str]:
    """The media playlist of the live stream, and its newest segment."""
    top_url = f"{server.web}/live/bench/index.m3u8"
    top = hls.parse_multivariant(http.fetch(top_url).good().text, top_url)
    url = top.absolute(top.variants[0].uri)
    playlist = hls.parse_media(http.fetch(url).good().text, url)
    return url, playlist.absolute(playlist.segments[-1].uri)


def certificate(path) -> list[str]:
    """A self-signed certificate, and weir's flags for it."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", str(path / "key.pem"), "-out", str(path / "cert.pem")],
        check=True, capture_output=True)
    return ["--https", "127.0.0.1:0", "--tls-cert", str(path / "cert.pem"), "--tls-key", str(path / "key.pem")]


def cipher(url: str) -> str:
    """The results of a client like wrk."""
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as plain, insecure().wrap_socket(plain) as secure:
        return " ".join(secure.cipher()[:2])


H2, RESET = "HTTP/2", "HTTP/2, one client resets"
#: The requests: the file, the number of connections, requests at a time on each, and the protocol.
ROWS = [("playlist.m3u8", 64, 1, ""), ("segment.m4s", 16, 1, ""), ("segment.m4s", 64, 1, ""), ("playlist.m3u8", 64, 1, "TLS"),
        ("segment.m4s", 16, 1, "TLS"),
        *((name, connections, streams, way) for way in (H2, RESET)
          for name, connections, streams in (("playlist.m3u8", 16, 4), ("playlist.m3u8", 64, 1), ("segment.m4s", 16, 4)))]


def run(rounds: int) -> str:
    with peers.folder() as keys:
        return measure(rounds, keys, certificate(keys))


def measure(rounds: int, keys, flags: list[str]) -> str:
    rows: dict[tuple, list[dict]] = {}
    sizes: dict[str, int] = {}
    # wrk requests one unchanged playlist hundreds of times per second on each connection, which --poll-limit would prevent. Long
    # parts make it a playlist of about 1 KB.
    options = ["--window", "56s", "--part-duration", "1s", "--poll-limit", "0", *flags]
    with peers.weir(*options, listeners=("http", "https", "rtmp")) as server:
        Publisher(server.rtmp, 60 + rounds * 2 * len(ROWS) * (SECONDS + 1))
        server.wait_state("bench", "live")

        def filled() -> bool:
            try:
                url, _ = pick(server)
            except (AssertionError, IndexError):
                return False
            return len(hls.parse_media(http.fetch(url).text, url).segments) >= 12

        # The playlist lists only part of the window. Segments that leave it stay available as long again.
        server.wait(filled, 60, "a playlist of about 1 KB", every=0.5)

        def prepare(path) -> None:
            playlist, segment = pick(server)
            (path / "www").mkdir()
            for name, url in (("playlist.m3u8", playlist), ("segment.m4s", segment)):
                body = http.fetch(url).good().body
                (path / "www" / name).write_bytes(body)
                sizes[name] = len(body)

        with peers.nginx("static.conf", prepare, tls=free_port(), keys=str(keys)) as (pid, port, path):
            tls = int(re.search(r"listen 127.0.0.1:(\d+) ssl", (path / "nginx.conf").read_text()).group(1))
            ciphers = {cipher(server.addresses["https"]), cipher(f"https://127.0.0.1:{tls}")}
            if len(ciphers) != 1:
                raise RuntimeError(f"TLS is not comparable: {ciphers}")
            for turn in range(rounds):
                for row in ROWS:
                    name, connections, streams, secure = row
                    playlist, segment = pick(server)
                    url = playlist if name.startswith("playlist") else segment
                    if secure:
                        url = url.replace(server.web, server.addresses["https"])
                    peer = f"https://127.0.0.1:{tls}/{name}" if secure else f"http://127.0.0.1:{port}/{name}"
                    contenders = [("**weir**", url, server.process.pid), ("nginx", peer, pid)]
                    for who, where, process in contenders if turn % 2 else reversed(contenders):
                        with resetting(where) if secure == RESET else contextlib.nullcontext():
                            found = (h2load(where, connections, process, streams) if secure.startswith(H2)
                                     else wrk(where, connections, process))
                        rows.setdefault((row, who), []).append(found)
                print(f"delivery round {turn + 1}/{rounds}: " + "; ".join(
                    f"{row[0]} {row[1]} × {row[2]}{' ' + row[3] if row[3] else ''} {who} {v[-1]['rate']:.0f}/s {v[-1]['cpu']:.1f} µs"
                    for (row, who), v in rows.items()), flush=True)
    body = []
    for row in ROWS:
        name, connections, streams, secure = row
        own, peer = rows[row, "**weir**"], rows[row, "nginx"]
        what = (f"{name.split('.')[0]}, {sizes[name]:,} B, {connections} connections"
                + (f" × {streams}" if streams > 1 else "") + (f", {secure}" if secure else ""))
        for who, found in (("**weir**", own), ("nginx, sendfile, open_file_cache", peer)):
            body.append([
                what, who, meter.spread([r["rate"] for r in found]),
                f"{meter.median(a['rate'] / b['rate'] for a, b in zip(own, found)):.2f}",
                meter.spread([r["cpu"] for r in found]),
                f"{meter.median(a['cpu'] / b['cpu'] for a, b in zip(own, found)):.2f}"])
    text = (f"Delivery: wrk with one thread on the same machine, two workers or loops each, {SECONDS} s a run, median "
            f"(min–max) of {rounds} rounds in turn; weir takes in a live stream meanwhile. TLS: {ciphers.pop()}. HTTP/2: h2load; × 4: as "
            f"many requests at a time on each connection. The client that resets has a connection of its own, 5 resets a second.\n\n")
    return text + meter.table(
        ["what", "server", "requests/s", "weir ÷ this", "server CPU µs/request", "weir ÷ this"], body)
