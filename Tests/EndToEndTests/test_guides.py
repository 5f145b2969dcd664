"""What docs/proxy.md and docs/tls.md say, with Debian's nginx, Caddy, certbot, and pebble as its certificate authority."""

import json
import os
import pathlib
import shutil
import ssl
import subprocess
import time
import urllib.request

import pytest

from harness import llhls, publishers, tools
from harness.programs import Program, free_port

DOCS = tools.ROOT / "docs"


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, f"{old!r} does not stand in the documented configuration"
        text = text.replace(old, new)
    return text


class Proxy:
    """A web server in front of weir, with the documented configuration but for ports, names and certificates."""

    def __init__(self, folder: pathlib.Path, origin: str):
        self.folder, self.port, self.plain = folder, free_port(), free_port()
        self.trust = ssl.create_default_context()
        self.trust.check_hostname = False
        self.trust.verify_mode = ssl.CERT_NONE
        self.program = Program(self.command(origin), folder / "log", lambda: self.get("/healthz") is not None,
                               environment={**os.environ, "HOME": str(folder)})

    def command(self, origin: str) -> list[str]:
        raise NotImplementedError

    def get(self, path: str, seconds: float = 20) -> bytes | None:
        try:
            with urllib.request.urlopen(f"https://localhost:{self.port}{path}", timeout=seconds, context=self.trust) as answer:
                return answer.read()
        except OSError:
            return None

    def stop(self) -> None:
        self.program.stop()


class Nginx(Proxy):
    def command(self, origin: str) -> list[str]:
        cert, key = tools.make_certificate(self.folder / "tls")
        site = changed(
            (DOCS / "proxy/nginx.conf").read_text(), ("server 127.0.0.1:8080;", f"server {origin};"),
            ("listen 443 ", f"listen 127.0.0.1:{self.port} "), ("listen 80;", f"listen 127.0.0.1:{self.plain};"),
            ("live.example.com;", "localhost;"),
            ("/etc/letsencrypt/live/live.example.com/fullchain.pem", str(cert)),
            ("/etc/letsencrypt/live/live.example.com/privkey.pem", str(key)))
        (self.folder / "site.conf").write_text(site)
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(
            f"pid {self.folder}/pid; events {{}} http {{ {temporary} access_log off; include {self.folder}/site.conf; }}\n")
        user = " user root;" if os.geteuid() == 0 else ""
        return ["/usr/sbin/nginx", "-p", str(self.folder), "-e", "stderr", "-c", str(self.folder / "nginx.conf"), "-g",
                f"daemon off;{user}"]


class Caddy(Proxy):
    def command(self, origin: str) -> list[str]:
        # A certificate of its own authority, and no ports of the machine.
        own = (f"{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\thttp_port {self.plain}\n\thttps_port {self.port}\n"
               f"\tstorage file_system {self.folder}/storage\n}}\n")
        site = changed((DOCS / "proxy/Caddyfile").read_text(), ("live.example.com {", "localhost {"),
                       ("127.0.0.1:8080 {", f"{origin} {{"))
        (self.folder / "Caddyfile").write_text(own + site)
        return ["/usr/bin/caddy", "run", "--config", str(self.folder / "Caddyfile"), "--adapter", "caddyfile"]


@pytest.mark.parametrize("kind", [Nginx, Caddy])
def test_behind_a_proxy_parts_come_at_once_and_viewers_have_their_addresses(kind, start, tmp_path):
    weir = start("--no-record", "--trusted-proxy", "127.0.0.1/32", "--public-url", "https://live.example.com",
                 "--admin-token", "a-token-for-the-proxy")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    os.chmod(tmp_path, 0o755)
    proxy = kind(tmp_path, weir.web.split("//")[1])
    try:
        weir.wait_state("cam", "live", seconds=20)
        index = weir.wait(lambda: proxy.get("/live/cam/index.m3u8"), 20, "a playlist").decode()
        media = next(line for line in index.splitlines() if line and not line.startswith("#"))
        path = f"/live/cam/{media}"
        # A request that waits is answered when its part is there, and not when a buffer is full.
        for _ in range(3):
            last = llhls.parse(proxy.get(path).decode(), f"{weir.web}{path}")
            segment, part = last.next
            began = time.monotonic()
            text = proxy.get(f"{path}?_HLS_msn={segment}&_HLS_part={part}").decode()
            assert time.monotonic() - began < 1
            # The same position from weir itself has just become ready.
            assert llhls.parse(text, f"{weir.web}{path}").next > (segment, part)
        # An endless response flows.
        with urllib.request.urlopen(f"https://localhost:{proxy.port}/live/cam/stream.mp4", timeout=10,
                                    context=proxy.trust) as endless:
            began = time.monotonic()
            first = endless.read(64)
            while (got := len(endless.read(4096))) and time.monotonic() - began < 1.5:
                pass
            assert first[4:8] == b"ftyp" and got
            # Viewers are known by what the proxy says of them, once it is trusted.
            asked = weir.get("/api/v1/sessions", headers={"Authorization": "Bearer a-token-for-the-proxy"}).good().json
            assert any("127.0.0.1" in json.dumps(session) for session in asked["sessions"] if session["kind"] == "viewer"), asked
        assert weir.stream("cam")["viewers"] >= 1
    finally:
        publisher.kill()
        proxy.stop()


@pytest.fixture
def authority(tmp_path):
    """pebble: a certificate authority that asks back at a port of this machine, as the real one does at port 80."""
    if not shutil.which("pebble") or not shutil.which("certbot"):
        pytest.skip("there is no pebble or no certbot")
    cert, key = tmp_path / "ca" / "cert.pem", tmp_path / "ca" / "key.pem"
    cert.parent.mkdir()
    done = tools.run(tools.OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                     "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    assert done.returncode == 0, done.stderr
    listen, challenge = free_port(), free_port()
    settings = tmp_path / "ca" / "pebble.json"
    settings.write_text(json.dumps({"pebble": {
        "listenAddress": f"127.0.0.1:{listen}", "managementListenAddress": f"127.0.0.1:{free_port()}", "certificate": str(cert),
        "privateKey": str(key), "httpPort": challenge, "tlsPort": free_port(), "ocspResponderURL": "",
        "externalAccountBindingRequired": False}}))
    log = (tmp_path / "ca" / "log").open("wb")
    process = subprocess.Popen(["pebble", "-config", str(settings)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               env={**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"})
    try:
        end = time.monotonic() + 15
        while b"Listening" not in (tmp_path / "ca" / "log").read_bytes():
            assert process.poll() is None and time.monotonic() < end, (tmp_path / "ca" / "log").read_text()
            time.sleep(0.1)
        yield f"https://localhost:{listen}/dir", cert, challenge
    finally:
        process.terminate()
        process.wait(10)
        log.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="the deploy script gives files to a group")
def test_a_certificate_that_certbot_renews_is_taken_without_a_restart(authority, start, tmp_path):
    directory, trust, challenge = authority
    folder, certbot = tmp_path / "weir-tls", tmp_path / "certbot"
    hook = tmp_path / "deploy"
    hook.write_text(changed((DOCS / "tls/certbot-deploy").read_text(), ("folder=/etc/weir/tls", f"folder={folder}"),
                            ("group=weir", f"group={os.getegid()}")))
    hook.chmod(0o755)

    def run(*command) -> str:
        done = subprocess.run(
            ["certbot", *command, "--config-dir", certbot, "--work-dir", certbot / "work", "--logs-dir", certbot / "logs",
             "--non-interactive"], capture_output=True, text=True, timeout=60,
            env={**os.environ, "REQUESTS_CA_BUNDLE": str(trust)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("certonly", "--standalone", "--http-01-port", str(challenge), "--http-01-address", "127.0.0.1", "-d", "localhost",
        "--server", directory, "--agree-tos", "--register-unsafely-without-email", "--deploy-hook", str(hook))
    assert (folder / "privkey.pem").stat().st_mode & 0o777 == 0o640 and folder.stat().st_mode & 0o777 == 0o750
    weir = start("--no-record", "--https", "127.0.0.1:0", "--tls-cert", folder / "fullchain.pem", "--tls-key",
                 folder / "privkey.pem", listeners=("http", "https", "rtmp"))
    port = int(weir.addresses["https"].rsplit(":", 1)[1])

    def serial() -> str:
        pem = ssl.get_server_certificate(("127.0.0.1", port))
        return subprocess.run([tools.OPENSSL, "x509", "-noout", "-serial"], input=pem, capture_output=True, text=True).stdout

    first = serial()
    assert first.startswith("serial=")
    run("renew", "--force-renewal", "--no-random-sleep-on-renew")
    weir.wait(lambda: serial() != first, 15, "the renewed certificate")
    assert weir.get("/healthz").status == 200
