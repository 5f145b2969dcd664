"""Clients of a server's events: one of its stream over HTTP, and a receiver of webhooks."""

import base64
import http.client
import http.server
import json
import pathlib
import socket
import threading
import time
import urllib.parse

from standardwebhooks.webhooks import Webhook

from . import publishers

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


class Stream:
    """A client of the stream of events, as EventSource is one."""

    def __init__(self, web: str, query: str = "", last: int | None = None):
        headers = {**ADMIN, "Accept": "text/event-stream"} | ({"Last-Event-ID": str(last)} if last else {})
        parts = urllib.parse.urlsplit(web)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        self.connection.request("GET", f"/api/v1/events{query}", headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.headers["Content-Type"] == "text/event-stream"
        #: (wall-clock time of arrival, event)
        self.events: list[tuple[float, dict]] = []
        self.gaps: list[dict] = []
        self.over = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in iter(self.response.readline, b""):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                    continue
                if fields.get("event") == "gap":
                    self.gaps.append(json.loads(fields["data"]))
                elif "data" in fields:
                    event = json.loads(fields["data"])
                    assert event["id"] == int(fields["id"]) and event["kind"] == fields["event"]
                    self.events.append((time.time(), event))
                fields = {}
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self.over = True

    def kinds(self, stream: str) -> list[str]:
        return [event["kind"] for _, event in self.events if event["stream"] == stream]

    def wait(self, condition, seconds: float = 15) -> None:
        wait(lambda: condition(self), seconds, lambda: f"{self.events[-5:]}")

    def close(self) -> None:
        if self.connection.sock:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.connection.close()


def wait(condition, seconds: float, what=lambda: "") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


class Receiver:
    """A web server that takes webhooks. `answer(event, attempt)` is the status of its response, or seconds to wait without one."""

    def __init__(self, answer=lambda event, attempt: 200):
        #: (id of the message, event), of each attempt that it answered with 2xx
        self.taken: list[tuple[str, dict]] = []
        self.attempts: list[tuple[float, dict]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                event = Webhook(SECRET).verify(body, dict(self.headers))
                with receiver.lock:
                    receiver.attempts.append((time.monotonic(), event))
                    said = answer(event, sum(seen["id"] == event["id"] for _, seen in receiver.attempts))
                if said < 100:
                    time.sleep(said)
                    self.close_connection = True
                    return
                with receiver.lock:
                    if said // 100 == 2:
                        receiver.taken.append((self.headers["webhook-id"], event))
                self.send_response(said)
                if said // 100 == 3:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?token=geheim"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def configured(folder: pathlib.Path, *hooks: dict) -> list[str]:
    """Flags for a server with these hooks."""
    file = folder / "weir.yaml"
    file.write_text(json.dumps({"hooks": list(hooks)}))
    file.chmod(0o600)
    (folder / "state").mkdir(exist_ok=True)
    return ["--config", file, "--state", folder / "state", "--admin-token", TOKEN]


def play(weir, name: str) -> None:
    """Publishes for a while, and ends the stream."""
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}")
    try:
        # A recording needs 0.95 s of media; whatever the clock says, that is there with these frames.
        weir.wait(lambda: (weir.stream(name) or {"received": {"videoFrames": 0}})["received"]["videoFrames"] >= 45, 15, f"media of {name}")
    finally:
        publisher.interrupt()
        publisher.outcome(10)
