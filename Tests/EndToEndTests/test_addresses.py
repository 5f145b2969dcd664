"""Attribution of requests and publications: viewers' places by address, and trusted proxies (docs/limits.md)."""

import contextlib
import pathlib
import re
import socket
import time
import urllib.parse

import pytest

from harness import http, publishers
from harness.programs import Program, accepts, free_port
from harness.rawrtmp import RawRTMP, Refused

NAME = "cam"
ATTACKER, VIEWER = "127.0.0.2", "127.0.0.3"
HERE = "127.0.0.1/32"


@contextlib.contextmanager
def live(weir):
    publisher = publishers.ffmpeg("half-seconds", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        weir.wait_state(NAME, "live")
        # Then there is a playlist. Who asks for it is a viewer for a while.
        weir.wait(lambda: weir.stream(NAME)["ageSeconds"] > 3, 20, "three seconds")
        yield
    finally:
        publisher.kill()


def connection(web: str, source: str) -> socket.socket:
    place = urllib.parse.urlsplit(web)
    return socket.create_connection((place.hostname, place.port), timeout=10, source_address=(source, 0))


def ask(web: str, source: str, agent: str, *fields: str, path: str = f"/live/{NAME}/index.m3u8") -> int:
    """The status of a response to a client at an address."""
    with connection(web, source) as client:
        lines = [f"GET {path} HTTP/1.1", "Host: x", f"User-Agent: {agent}", *fields, "Connection: close", "", ""]
        client.sendall("\r\n".join(lines).encode())
        return int(client.makefile("rb").readline().split()[1])


def flood(web: str, source: str, count: int, path: str) -> None:
    """This many requests on one connection, each with its own user agent."""
    with connection(web, source) as client:
        for first in range(0, count, 100):
            client.sendall("".join(
                f"GET {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: agent {number}\r\n\r\n" for number in range(first, first + 100)
            ).encode())
            answers = b""
            while answers.count(b"HTTP/1.1 ") < 100:
                piece = client.recv(1 << 20)
                assert piece, "the connection ended before each was answered"
                answers += piece


def test_one_address_with_many_user_agents_locks_no_other_out(start):
    weir = start("--no-record", "--max-viewers", "100", "--poll-limit", "0")
    with live(weir):
        # A stream that does not exist counts for no viewer.
        flood(weir.web, ATTACKER, 1000, f"/live/{NAME}/nothing.m3u8")
        weir.wait(lambda: weir.stream(NAME)["viewers"] == 0, 30, "no viewers")
        flood(weir.web, ATTACKER, 1000, f"/live/{NAME}/index.m3u8")
        # The last tenth is for other addresses if one address has half.
        assert weir.stream(NAME)["viewers"] == 91
        assert ask(weir.web, ATTACKER, "one more") == 503
        for number in range(19):
            assert ask(weir.web, VIEWER, f"viewer {number}") == 200
        # They stay, although the attacker continues.
        flood(weir.web, ATTACKER, 500, f"/live/{NAME}/index.m3u8")
        for number in range(19):
            assert ask(weir.web, VIEWER, f"viewer {number}") == 200
        figures = weir.get("/metrics").good().text
        assert float(re.search(r'weir_viewers_refused_total\{reason="displaced"\} (\S+)', figures)[1]) >= 5


def test_endless_responses_of_one_address_end_for_others(start):
    weir = start("--no-record", "--max-viewers", "4")
    with live(weir):
        # The viewer that waited for the stream to begin is gone.
        weir.wait(lambda: weir.stream(NAME)["viewers"] == 0, 20, "no viewers")
        mine = []
        for _ in range(4):
            client = connection(weir.web, ATTACKER)
            client.sendall(f"GET /live/{NAME}/stream.mp4 HTTP/1.1\r\nHost: x\r\nUser-Agent: same\r\n\r\n".encode())
            assert b" 200 " in client.recv(1 << 16)
            mine.append(client)
        assert ask(weir.web, VIEWER, "a viewer") == 200
        mine[3].settimeout(10)
        data = b""
        while piece := mine[3].recv(1 << 16):
            data = (data + piece)[-5:]
            if data == b"0\r\n\r\n":
                break
        assert data == b"0\r\n\r\n", "the newest ends as it should"
        assert mine[0].recv(1 << 16)
        for client in mine:
            client.close()


def proxy_of(folder: pathlib.Path, name: str, text: str, command: list, port: int) -> Program:
    """A third-party program with a configuration of this test."""
    (folder / name).write_text(text)
    return Program(command, folder / f"{name}.log", lambda: accepts(port))


@pytest.fixture
def nginx(tmp_path):
    proxies = []

    def start_nginx(origin: str, name: str = "") -> str:
        port = free_port()
        upstream = f"upstream {name} {{ server {urllib.parse.urlsplit(origin).netloc}; }}" if name else ""
        text = f"""
            daemon off; worker_processes 1; pid {tmp_path}/{port}.pid; error_log {tmp_path}/error;
            events {{ worker_connections 512; }}
            http {{
              access_log off;
              client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;
              fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;
              {upstream}
              server {{
                listen 127.0.0.1:{port};
                location / {{
                  proxy_pass {f"http://{name}" if name else origin};
                  proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                }}
              }}
            }}"""
        proxies.append(proxy_of(tmp_path, "nginx.conf", text, ["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], port))
        return f"http://127.0.0.1:{port}"

    yield start_nginx
    for proxy in proxies:
        proxy.stop()


def test_viewers_behind_a_trusted_proxy_are_told_apart(start, nginx):
    weir = start("--no-record", "--max-viewers", "10", "--trusted-proxy", HERE)
    with live(weir):
        web = nginx(weir.web)
        for number in range(20):
            ask(web, ATTACKER, f"agent {number}")
        assert ask(web, ATTACKER, "one more") == 503
        # A header that the client itself sent is ignored.
        assert ask(web, ATTACKER, "one more", "X-Forwarded-For: 127.0.0.9") == 503
        assert ask(web, VIEWER, "a viewer") == 200


def test_proxies_and_scrapers_that_name_the_server_as_they_like_are_answered(start, nginx):
    """nginx sends by default what `proxy_pass` names, an address or an upstream; Prometheus its target."""
    weir = start("--no-record")
    outside = {"Host": "live.example.com"}
    for web in (nginx(weir.web), nginx(weir.web, name="weir")):
        for path in ("/", "/metrics", "/readyz"):
            assert http.fetch(web + path, headers=outside).status == 200, (web, path)
    assert http.fetch(f"{weir.web}/metrics", headers={"Host": "weir:8080"}).status == 200
    # Varnish passes the viewer's name on: pages are answered under it only where the settings say so.
    assert http.fetch(f"{weir.web}/time", headers=outside).status == 200
    assert http.fetch(f"{weir.web}/metrics", headers=outside).status == 421


def test_only_a_trusted_proxy_may_name_another_address(start):
    weir = start("--no-record", "--max-viewers", "10")
    with live(weir):
        for number in range(20):
            ask(weir.web, ATTACKER, f"agent {number}", f"X-Forwarded-For: 10.0.0.{number}")
        assert ask(weir.web, ATTACKER, "one more", "X-Forwarded-For: 10.1.1.1") == 503
        assert ask(weir.web, VIEWER, "a viewer") == 200


@pytest.mark.parametrize("version", ["send-proxy", "send-proxy-v2"])
def test_publishers_behind_haproxy_have_their_own_addresses(start, tmp_path, version):
    weir = start("--no-record", "--trusted-proxy", HERE)
    port, origin = free_port(), urllib.parse.urlsplit(weir.rtmp).netloc
    text = f"""
global
  maxconn 100
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen rtmp
  bind 127.0.0.1:{port}
  server weir {origin} check inter 200ms {version}
"""
    proxy = proxy_of(tmp_path, "haproxy.cfg", text, ["haproxy", "-db", "-f", tmp_path / "haproxy.cfg"], port)
    publisher = publishers.ffmpeg("h264-30", f"rtmp://127.0.0.1:{port}/live/{NAME}", loop=-1)
    try:
        weir.wait_state(NAME, "live")
        with RawRTMP(f"rtmp://127.0.0.1:{port}", source=ATTACKER).start("other"):
            assert {stream["name"] for stream in weir.json("/api/v1/streams")["streams"]} >= {NAME, "other"}
        # A name is refused to another address. The refusal names the holder's address as it is behind the proxy.
        with pytest.raises(Refused) as refused, RawRTMP(f"rtmp://127.0.0.1:{port}", source=ATTACKER) as client:
            client.start(NAME)
        assert "is being published by 127.0.0.1" in str(refused.value)
        with RawRTMP(f"rtmp://127.0.0.1:{port}", source=ATTACKER).start("mine"):
            with pytest.raises(Refused) as refused, RawRTMP(f"rtmp://127.0.0.1:{port}", source=VIEWER) as client:
                client.start("mine")
            assert f"is being published by {ATTACKER}" in str(refused.value)
        assert publisher.process.poll() is None
    finally:
        publisher.kill()
        proxy.stop()


def test_an_address_has_as_many_connections_as_are_allowed(start):
    weir = start("--no-record", "--max-connections-per-address", "3")
    held = [connection(weir.web, ATTACKER) for _ in range(3)]
    try:
        for client in held:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in client.recv(1 << 16)
        # Beyond them it may ask whether the server lives, and nothing else.
        for path, status in (("/time", 503), ("/live/cam/index.m3u8", 503), ("/metrics", 503), ("/healthz", 200)):
            assert ask(weir.web, ATTACKER, "a viewer", path=path) == status, path
        assert all(is_open(client) for client in held)
        assert ask(weir.web, VIEWER, "a viewer", path="/healthz") == 200
    finally:
        for client in held:
            client.close()


def is_open(client: socket.socket) -> bool:
    """Whether the server has neither sent anything nor closed the connection."""
    client.settimeout(0)
    try:
        client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


def test_bare_connections_make_no_publisher_behind_the_same_address_wait(start):
    """A port scanner and an honest publisher behind one NAT."""
    weir = start("--no-record")
    place = urllib.parse.urlsplit(weir.rtmp)
    for _ in range(150):
        socket.create_connection((place.hostname, place.port), timeout=5).close()
    silent = [socket.create_connection((place.hostname, place.port), timeout=5) for _ in range(200)]
    try:
        with RawRTMP(weir.rtmp).start(NAME):
            # It publishes before the silent ones are given up.
            assert any(is_open(client) for client in silent)
        for client in silent:
            client.settimeout(20)
            assert client.recv(1) == b"", "it was given four seconds"
    finally:
        for client in silent:
            client.close()


def test_wrong_admin_tokens_are_slowed_told_and_counted(start):
    weir = start("--no-record", "--admin-token", "a-token-that-nobody-guesses")
    place = urllib.parse.urlsplit(weir.web)
    statuses, began = [], time.monotonic()
    with socket.create_connection((place.hostname, place.port), timeout=10, source_address=(ATTACKER, 0)) as client:
        answers = client.makefile("rb")
        for number in range(60):
            client.sendall(f"GET /api/v1/admin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess{number}\r\n\r\n".encode())
            statuses.append(int(answers.readline().split()[1]))
            length = 0
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            answers.read(length)
    # Twenty at once, and one a second.
    refused = 60 - 20 - 2 - int(time.monotonic() - began)
    assert statuses[:20] == [401] * 20 and statuses.count(429) >= refused, statuses
    weir.wait_log(rf"wrong admin token.*{re.escape(ATTACKER)}", 20)
    right = {"Authorization": "Bearer a-token-that-nobody-guesses"}
    assert weir.get("/api/v1/admin", headers=right).status == 200, "other addresses are heard"
    figures = weir.get("/metrics").good().text
    assert float(re.search(r'weir_admin_rejected_total\{reason="wrong"\} (\S+)', figures)[1]) >= 20
    assert float(re.search(r'weir_admin_rejected_total\{reason="slowed"\} (\S+)', figures)[1]) >= refused


def test_pages_of_other_origins_read_streams_and_nothing_else_unless_they_are_named(start):
    weir = start("--no-record", "--cors", "https://player.example")
    with live(weir):
        def allowed(path: str, origin: str, **more) -> str | None:
            return weir.get(path, headers={"Origin": origin}, **more).headers.get("access-control-allow-origin")

        stranger, friend = "https://evil.example", "https://player.example"
        for path in (f"/live/{NAME}/index.m3u8", f"/live/{NAME}/manifest.mpd", "/live/nobody/index.m3u8", "/time"):
            assert allowed(path, stranger) == "*", path
        for path in ("/api/v1/streams", "/api/v1/recordings", "/recordings/cam/x.mp4", "/metrics"):
            assert allowed(path, stranger) is None, path
            assert allowed(path, friend) == friend, path
            assert "origin" in weir.get(path).headers["vary"].lower()
        assert allowed("/api/v1/streams", stranger, method="OPTIONS") is None
        assert allowed("/api/v1/streams", friend, method="OPTIONS") == friend


def test_a_page_of_another_site_whose_name_leads_here_gets_public_streams_alone(start):
    """DNS rebinding: for its browser such a page has the server's own origin. Only the name tells it from the server's pages."""
    token = "a-token-that-nobody-guesses"
    weir = start("--no-record", "--webrtc", ":0", "--admin-token", token, "--public-url", "https://live.example.com",
                 "--allowed-host", "*.cdn.example", listeners=("http", "rtmp", "webrtc"))
    evil = {"Host": "evil.example:8080", "Origin": "http://evil.example:8080"}
    status = f"/live/{NAME}/status.json"
    with live(weir):
        # What is shared between requests was asked for by others just before.
        assert weir.get(status).status == weir.get(f"/live/{NAME}/index.m3u8").status == 200
        for path in ("/", f"/watch/{NAME}", "/web/weir-player.js", "/api/v1/streams", "/metrics", "/recordings", status):
            answer = weir.get(path, headers=evil)
            assert answer.status == 421 and answer.json["code"] == "host-not-allowed", path
            assert "evil.example:8080" in answer.json["detail"] and "--allowed-host" in answer.json["help"]
        offer = "application/sdp"
        for path, kind in ((f"/live/{NAME}/ingest", "video/mp2t"), ("/whip/other", offer), (f"/whep/{NAME}", offer)):
            answer = weir.get(path, method="POST", headers={**evil, "Content-Type": kind}, body=b"x")
            assert answer.status == 421, path
        for path in (f"/live/{NAME}/index.m3u8", f"/live/{NAME}/manifest.mpd", "/time", "/healthz", "/readyz"):
            assert weir.get(path, headers=evil).status == 200, path
        for name in ("weir:8080", "localhost", "studio.local", "LIVE.example.com.", "edge.cdn.example:80", "[::1]:8080", "203.0.113.7"):
            assert weir.get(status, headers={"Host": name}).status == 200, name
        for given, expected in ((token, 200), (token + "x", 421)):
            assert weir.get("/api/v1/streams", headers={**evil, "Authorization": f"Bearer {given}"}).status == expected
        assert weir.get(f"/~{token}/api/v1/streams", headers=evil).status == 200
        assert weir.get(f"/~{token}x/api/v1/streams", headers=evil).status == 403


def test_a_trusted_proxy_passes_any_name_on(start):
    weir = start("--no-record", "--trusted-proxy", HERE)
    assert weir.get("/api/v1/streams", headers={"Host": "any.example"}).status == 200
