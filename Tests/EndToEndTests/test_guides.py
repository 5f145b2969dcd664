"""What the guides say (docs/proxy.md, tls.md, operation.md, troubleshooting.md), with Debian's nginx, Caddy, certbot, nftables and systemd, and
pebble as certbot's certificate authority."""

import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import time
import urllib.request

import pytest

from harness import disks, http, llhls, publishers, tools
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
        own = (f"{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tgrace_period 1s\n\thttp_port {self.plain}\n\thttps_port {self.port}\n"
               f"\tstorage file_system {self.folder}/storage\n}}\n")
        site = changed((DOCS / "proxy/Caddyfile").read_text(), ("live.example.com {", "localhost {"),
                       ("127.0.0.1:8080 {", f"{origin} {{"))
        (self.folder / "Caddyfile").write_text(own + site)
        return ["/usr/bin/caddy", "run", "--config", str(self.folder / "Caddyfile"), "--adapter", "caddyfile"]


@pytest.mark.parametrize("kind", [Nginx, Caddy])
def test_behind_a_proxy_parts_come_at_once_and_viewers_have_their_addresses(kind, start, tmp_path):
    weir = start("--no-record", "--trusted-proxy", "127.0.0.1/32", "--public-url", "https://live.example.com",
                 "--admin-token", "a-token-for-the-proxy")
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/cam", loop=-1)
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
            assert time.monotonic() - began < 5
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


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """pebble: a certificate authority that asks back at a port of this machine, as the real one does at port 80."""
    if not shutil.which("pebble") or not shutil.which("certbot"):
        pytest.skip("there is no pebble or no certbot")
    tmp_path = tmp_path_factory.mktemp("authority")
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


@pytest.fixture(scope="module")
def certbot(authority, tmp_path_factory):
    """A certificate that certbot got and the deploy script put down: its folder, and how certbot is run again."""
    if os.geteuid() != 0:
        pytest.skip("the deploy script gives files to a group")
    directory, trust, challenge = authority
    tmp_path = tmp_path_factory.mktemp("certbot")
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
    return folder, run


def test_what_the_deploy_script_puts_down_is_for_a_group_alone(certbot):
    folder, _ = certbot
    assert (folder / "privkey.pem").stat().st_mode & 0o777 == 0o640 and folder.stat().st_mode & 0o777 == 0o750


def test_a_certificate_that_certbot_renews_is_taken_without_a_restart(certbot, start):
    folder, run = certbot
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


# docs/operation.md


def operation(heading: str, language: str = "sh") -> str:
    """The first block of commands below a heading."""
    text = (DOCS / "operation.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return text.split(f"```{language}\n")[1].split("```")[0]


#: In a network of its own: a chain as the guide supposes it, its rule, and programs that listen, which is waited for.
FIREWALL = """
ip link set lo up
nft add table inet filter
nft add chain inet filter input '{{ type filter hook input priority 0; policy drop; }}'
nft add rule inet filter input ct state established,related accept
{rule}
for port in 8080 1935 9000; do python3 -m http.server $port >/dev/null 2>&1 & done
for port in 8080 1935 9000; do
  until ss -ltnH "sport = :$port" | grep -q LISTEN; do
    [ $SECONDS -lt 30 ] || exit 3
    sleep 0.1
  done
done
for port in 8080 1935 9000; do
  (timeout 3 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" 2>/dev/null && echo "$port open" || echo "$port shut") > tried.$port &
  tries="$tries $!"
done
wait $tries
cat tried.8080 tried.1935 tried.9000
kill $(jobs -p)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("nft"), reason="a network of its own needs root, and its rules nftables")
def test_the_rule_of_the_firewall_lets_in_what_it_says_and_nothing_else(tmp_path):
    disks.needs_rights("unshare", "--net", "nft", "add table inet one; add chain inet one two; add rule inet one two ct state new accept")

    def tried(rule: str) -> list[str]:
        done = subprocess.run(["unshare", "--net", "--pid", "--fork", "--kill-child", "bash", "-ec", FIREWALL.format(rule=rule)],
                              cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split("\n")[:-1]

    assert tried(operation("Firewall")) == ["8080 open", "1935 open", "9000 shut"]
    assert tried("") == ["8080 shut", "1935 shut", "9000 shut"]


def test_the_table_of_the_firewall_has_each_listener():
    text = (DOCS / "operation.md").read_text().split("## Backup")[0]
    flags = set(re.findall(r"^  --(\w+) <addr>", tools.run(tools.weir_binary(), "serve", "--help").stdout, re.M))
    assert {"http", "https", "rtmp", "rtmps", "srt", "webrtc"} <= flags
    assert {flag for flag in flags if f"`{flag}.listen`" not in text} == set()


def test_a_backup_that_was_made_while_weir_ran_has_keys_recordings_and_their_titles(start, tmp_path):
    state, back = tmp_path / "state", tmp_path / "restored"
    folder = state / "recordings"
    for made in (state, back, back / "state"):
        made.mkdir()
    token = {"Authorization": "Bearer sesame-backup-4711"}
    flags = ("--admin-token", "sesame-backup-4711", "--keep-free", "0MB")
    weir = start(*flags, "--state", state, "--record", folder)
    publishers.ffmpeg("short", f"{weir.rtmp}/live/done").wait()
    weir.wait(lambda: weir.recordings_of("done") and weir.recordings_of("done")[0]["state"] == "completed", 30, "a recording")
    publisher = publishers.ffmpeg("steady", f"{weir.rtmp}/live/going", loop=-1)
    weir.wait(lambda: [*folder.glob("going/*.part.mp4")], 30, "a recording that is written")
    body = json.dumps({"name": "kept", "publish": ["kept"]}).encode()
    made = http.fetch(f"{weir.web}/api/v1/keys", method="POST", headers={**token, "Content-Type": "application/json"}, body=body)
    assert made.status in (200, 201), made.text
    said = {"name": "Interview", "note": "second take"}
    weir.get(f"/api/v1/recordings/done/{weir.recordings_of('done')[0]['file']}", method="PUT", headers=token, body=json.dumps(said).encode()).good()
    weir.wait(lambda: weir.recordings_of("going") and weir.recordings_of("going")[0]["seconds"] > 1, 30, "something is written")
    # As the guide says, while it runs.
    commands = re.findall(r"`(sqlite3 [^`]+)`", (DOCS / "operation.md").read_text())
    assert len(commands) == 2
    for command in commands:
        subprocess.run(["bash", "-ec", command], cwd=state, check=True, timeout=30)
    shutil.copytree(folder, back / "recordings", ignore=shutil.ignore_patterns(".*"))
    publisher.kill()
    weir.stop()
    # Restored elsewhere: the copy of what was being written is finished by the next start.
    shutil.copy(state / "control.bak", back / "state/control.sqlite")
    shutil.copy(state / "catalogue.bak", back / "recordings/.catalogue.sqlite")
    again = start(*flags, "--state", back / "state", "--record", back / "recordings")
    again.wait(lambda: [each["state"] for name in ("done", "going") for each in again.recordings_of(name)] == ["completed"] * 2, 30,
               "both recordings")
    [entry] = again.recordings_of("done")
    assert {name: entry[name] for name in said} == said
    assert "kept" in [key["name"] for key in json.loads(http.fetch(f"{again.web}/api/v1/keys", headers=token).good().body)["keys"]]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_the_unit_of_the_guide_to_a_nas_lets_weir_write_there(tmp_path):
    drop_in = operation("Recordings on a NAS", "ini")
    folder = tmp_path / "units"
    shutil.copytree(tools.ROOT / "packaging/systemd", folder)
    for unit in folder.iterdir():
        unit.write_text(unit.read_text().replace("@PREFIX@/bin/weir", str(tools.weir_binary())))
    (folder / "weir.service.d").mkdir()
    (folder / "weir.service.d/override.conf").write_text(drop_in)
    said = subprocess.run(["systemd-analyze", "verify", folder / "weir.service"], capture_output=True, text=True, timeout=60)
    # Whether its manual is installed is no matter here.
    wrong = [line for line in said.stderr.splitlines() if "weir" in line and "Command 'man" not in line]
    assert wrong == [], said.stderr
    # Each setting is one of systemd, and what it names is the folder that the commands make.
    assert set(re.findall(r"^(\w+)=", drop_in, re.M)) == {"RequiresMountsFor", "ReadWritePaths", "Environment"}
    paths = set(re.findall(r"/srv/\w+", drop_in + operation("Recordings on a NAS")))
    assert paths == {"/srv/recordings"}


# docs/troubleshooting.md


def test_what_the_guide_to_troubles_quotes_is_what_weir_says():
    rows = re.findall(r"^\| ([^|]*) \|", (DOCS / "troubleshooting.md").read_text(), re.M)
    quoted = [text for row in rows if not row.startswith("OBS") for text in re.findall(r'"([^"]+)"', row)]
    assert len(quoted) >= 3
    sources = [path.read_text() for folder, ending in (("Sources", "*.swift"), ("web/strings", "en.json"))
               for path in (tools.ROOT / folder).rglob(ending)]
    assert [text for text in quoted if not any(text in source for source in sources)] == []


def test_what_the_guide_to_troubles_asks_for_can_be_asked(start):
    text = (DOCS / "troubleshooting.md").read_text()
    weir = start("--admin-token", "sesame-troubles-4711")
    for path in set(re.findall(r"`GET (/[\w/]+)`", text)):
        assert weir.get(path, headers={"Authorization": "Bearer sesame-troubles-4711"}).status == 200, path
    metrics = weir.get("/metrics").text
    for name in set(re.findall(r"`(weir_\w+)`", text)):
        assert name in metrics or f"`{name}`" in (DOCS / "metrics.md").read_text(), name
    for command in set(re.findall(r"`weir ([a-z]+(?: [a-z]+)?)", text)):
        words = [word for word in command.split() if word not in ("file",)]
        assert tools.run(tools.weir_binary(), *words, "--help").returncode == 0, command
