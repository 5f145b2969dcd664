"""An issuer's key set (JWKS) at an address, over http, or over https with a certificate of an authority of one's own."""

import contextlib
import http.server
import json
import pathlib
import ssl
import threading
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from . import disks, tools

#: Where Debian has the authorities that programs trust.
TRUSTED = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def entry(name: str, key: ec.EllipticCurvePrivateKey) -> dict:
    """The public key as it stands in a set (RFC 7517), by PyJWT."""
    return {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())), "kid": name}


class Authority:
    """A certificate authority that nobody trusts by himself, and a certificate of localhost that it has signed."""

    def __init__(self, folder: pathlib.Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate, key = folder / "authority.pem", folder / "authority-key.pem"
        self.of_localhost = (folder / "localhost.pem", folder / "localhost-key.pem")
        new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        for line in (
                (*new, "-keyout", key, "-out", self.certificate, "-subj", "/CN=an authority of the tests",
                 "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
                (*new, "-keyout", self.of_localhost[1], "-out", self.of_localhost[0], "-subj", "/CN=localhost",
                 "-CA", self.certificate, "-CAkey", key, "-addext", "subjectAltName=DNS:localhost",
                 "-addext", "basicConstraints=critical,CA:FALSE")):
            done = tools.run(tools.OPENSSL, *line)
            assert done.returncode == 0, done.stderr

    def trusted(self) -> tuple[str, ...]:
        """A command in front of weir's: on its machine this authority is trusted, beside the others."""
        disks.needs("unshare", "mount")
        bundle = self.certificate.parent / "trusted.crt"
        bundle.write_bytes(TRUSTED.read_bytes() + self.certificate.read_bytes())
        return ("unshare", "--mount", "sh", "-c", f'mount --bind "$0" {TRUSTED} && exec "$@"', str(bundle))


class KeySet:
    """`behaviour`: "good", "redirect", "endless" or "huge"."""

    def __init__(self, certificate: tuple[pathlib.Path, pathlib.Path] | None = None):
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.behaviour = "good"
        self.requests: list[str] = []
        self._certificate, self._port = certificate, 0
        self.server = None
        self.start()
        scheme, host = ("https", "localhost") if certificate else ("http", "127.0.0.1")
        self.url = f"{scheme}://{host}:{self._port}/jwks.json"

    def start(self) -> None:
        """Takes connections, after `stop` at the same port as before."""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self.server.daemon_threads = True
        # Clients that do not trust the certificate break off the handshake.
        self.server.handle_error = lambda *_: None
        self._port = self.server.server_address[1]
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._certificate)
            # The handshake is for the connection's thread, so that one that fails holds up no other.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        if self.behaviour == "redirect":
            handler.send_response(302)
            handler.send_header("Location", "/elsewhere")
            handler.end_headers()
            return
        text = self.text().encode()
        handler.send_response(200)
        if self.behaviour == "good":
            handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            if self.behaviour == "endless":
                for _ in range(60):
                    handler.wfile.write(b" ")
                    time.sleep(0.5)
            elif self.behaviour == "huge":
                for _ in range(200):
                    handler.wfile.write(b" " * 10_000)
            handler.wfile.write(text)

    def text(self) -> str:
        return json.dumps({"keys": [entry(name, key) for name, key in self.keys.items()]})

    def new(self, name: str) -> ec.EllipticCurvePrivateKey:
        self.keys[name] = ec.generate_private_key(ec.SECP256R1())
        return self.keys[name]

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
