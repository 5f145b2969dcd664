"""Publishers that another server decides about, addresses that may publish, and two publishers of one name."""

import contextlib
import http.server
import json
import threading
import time

import pytest

from harness import publishers, srt
from harness.rawrtmp import RawRTMP, Refused


class Accounts(http.server.ThreadingHTTPServer):
    """Decides by the key, and keeps the questions."""

    def __init__(self, answer):
        self.questions, self.answer = [], answer
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.questions.append(question)
                outer.answer(self, question)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/weir"


def status(handler, code: int, *fields) -> None:
    handler.send_response(code)
    for name, value in (("Content-Length", "0"), *fields):
        handler.send_header(name, value)
    handler.end_headers()


def by_key(handler, question) -> None:
    status(handler, 204 if question["key"] == "right-key" else 403)


@pytest.fixture
def accounts():
    with contextlib.ExitStack() as stack:
        def make(answer) -> Accounts:
            server = Accounts(answer)
            stack.callback(server.shutdown)
            return server
        yield make


def refused(weir, name: str, **options) -> str:
    with pytest.raises(Refused) as refusal, RawRTMP(weir.rtmp, **options) as client:
        client.start(name)
    return refusal.value.description


def test_the_callback_decides_and_its_answer_is_kept(start, accounts):
    server = accounts(by_key)
    weir = start("--auth-callback", server.url, "--auth-callback-timeout", "5s", "--no-record")
    weir.secrets += ["right-key", "wrong-key"]
    assert "missing or wrong" in refused(weir, "cam?key=wrong-key")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam?key=right-key", loop=-1)
    try:
        weir.wait_state("cam", "live")
    finally:
        publisher.kill()
    with RawRTMP(weir.rtmp).start("cam?key=right-key"):
        pass
    assert server.questions == [
        {"action": "publish", "address": "127.0.0.1", "key": key, "protocol": "RTMP", "stream": "cam"}
        for key in ("wrong-key", "right-key")]
    assert weir.json("/api/v1/streams")["publishKeyRequired"]


@pytest.mark.parametrize("answer", ["hangs", "500", "redirects", "endless", "closed"])
def test_without_an_answer_the_rule_holds(start, accounts, answer):
    def respond(handler, _):
        match answer:
            case "hangs": over.wait(60)
            case "500": status(handler, 500)
            case "redirects": status(handler, 302, ("Location", other.url))
            case "endless":
                handler.send_response(200)
                handler.end_headers()
                with contextlib.suppress(OSError):
                    while True:
                        handler.wfile.write(bytes(65536))

    over = threading.Event()
    other = accounts(lambda handler, _: status(handler, 200))
    server = accounts(respond)
    if answer == "closed":
        server.shutdown()
        server.server_close()
    flags = ("--auth-callback", server.url, "--auth-callback-timeout", "500ms", "--no-record")
    strict = start(*flags)
    # Before the server answers that hangs.
    assert "does not answer" in refused(strict, "cam")
    assert not other.questions
    strict.wait_log("the callback did not answer, and the publisher is refused")
    lenient = start(*flags, "--auth-callback-otherwise", "admit")
    with RawRTMP(lenient.rtmp).start("cam"):
        lenient.wait_log("the callback did not answer, and the publisher is admitted")
    over.set()


def test_an_srt_caller_is_held_back_until_the_callback_answers(start, accounts):
    """Nothing of it is published before. After its latency and 2 s it is closed, and so is one that is refused; API and log say why."""
    decided = {name: threading.Event() for name in ("soon", "late")}

    def respond(handler, question):
        if question["stream"] in decided:
            decided[question["stream"]].wait(20)
        by_key(handler, question)

    server = accounts(respond)
    token = "sesame-0815-4711"
    weir = start("--auth-callback", server.url, "--auth-callback-timeout", "5s", "--no-record", "--srt", "127.0.0.1:0",
                 "--admin-token", token, listeners=("http", "rtmp", "srt"))
    weir.secrets += ["right-key", "wrong-key", token]
    port = int(weir.srt.rsplit(":", 1)[1])

    def held(name: str, key: str, latency: int = 120) -> tuple[float, bool]:
        """Seconds until the caller is closed or published, and whether it is published."""
        began = time.monotonic()
        caller = srt.Caller(port, f"{name}?key={key}", latency=latency)
        assert caller.reject == 0, (name, caller.reject)
        try:
            while caller.is_open:
                assert time.monotonic() - began < 15, "it is held back without an end"
                if weir.stream(name):
                    return time.monotonic() - began, True
                # Asked about and not published, for a while.
                if name == "soon" and server.questions and time.monotonic() - began > 0.5:
                    decided[name].set()
                time.sleep(0.02)
            return time.monotonic() - began, False
        finally:
            caller.close()

    # With the longest time to decide: this test may take its part of it.
    seconds, published = held("soon", "right-key", 2500)
    assert published and decided["soon"].is_set(), seconds
    seconds, published = held("late", "right-key")
    assert not published and seconds > 2, seconds
    assert not held("cam", "wrong-key")[1]
    refusals = weir.get("/api/v1/refusals", headers={"Authorization": f"Bearer {token}"}).json["refusals"]
    told = {r["stream"]: r["reason"] for r in refusals}
    assert "longer than its latency and 2 s" in told["late"] and "missing or wrong" in told["cam"], told
    weir.wait_log("refused: the decision about it took longer")
    # The answer that comes too late publishes nothing: the name is over as soon as it was given.
    decided["late"].set()
    time.sleep(0.7)
    weir.wait(lambda: (weir.stream("late") or {"state": "ended"})["state"] == "ended", 10, "the name is over")
    late = weir.stream("late")
    assert late is None or (late["state"], late["received"]["videoFrames"]) == ("ended", 0), late
    assert weir.get("/live/late/index.m3u8").status == 404 and [q["protocol"] for q in server.questions] == ["SRT"] * 3


@pytest.mark.parametrize("trouble", ["slow", "500", "down"])
def test_who_is_live_is_not_touched_by_a_callback_in_trouble(start, accounts, tmp_path, trouble):
    """Nor by a reload meanwhile."""
    troubled = False

    def respond(handler, question):
        if not troubled:
            return by_key(handler, question)
        if trouble == "slow":
            time.sleep(2)  # real time: longer than the answer is waited for
        status(handler, 500)

    server = accounts(respond)
    file = tmp_path / "weir.yaml"
    admin = {"Authorization": "Bearer sesame-0815-4711"}
    # As long as it is in no trouble, it may take its time.
    file.write_text(json.dumps({"access": {"callback": {"url": server.url, "timeout": "5s", "cache": "0s"}}, "limits": {"viewers": 50}}))
    weir = start("--config", file, "--no-record", "--admin-token", "sesame-0815-4711")
    weir.secrets += ["right-key", "sesame-0815-4711"]

    def change(before: str, after: str) -> None:
        file.write_text(file.read_text().replace(before, after))
        weir.get("/api/v1/settings/reload", method="POST", headers=admin).good()

    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam?key=right-key", loop=-1)
    try:
        began = weir.wait_state("cam", "live")["startedAt"]
        change("5s", "500ms")
        troubled = True
        if trouble == "down":
            server.shutdown()
            server.server_close()
        for _ in range(3):
            assert "does not answer" in refused(weir, "desk?key=right-key")
        change('"viewers": 50', '"viewers": 60')
        time.sleep(0.7)
        stream = weir.stream("cam")
        assert (stream["state"], stream["startedAt"]) == ("live", began) and publisher.process.poll() is None
    finally:
        publisher.kill()


def test_only_the_addresses_that_may_publish_do(start, tmp_path):
    file = tmp_path / "weir.yaml"
    file.write_text("streams: {cam: {publishFrom: [127.0.0.2, 10.0.0.0/8], title: The yard, description: From the roof}}")
    weir = start("--config", file, "--no-record")
    assert "from certain addresses only" in refused(weir, "cam")
    with RawRTMP(weir.rtmp, source="127.0.0.2").start("cam"):
        stream = weir.stream("cam")
        assert (stream["title"], stream["description"]) == ("The yard", "From the roof")
    with RawRTMP(weir.rtmp).start("desk"):
        pass


@pytest.mark.parametrize("rule", ["newest", "first"])
def test_two_publishers_of_one_name_follow_its_rule(start, rule):
    weir = start("--publish-key", "cam=key-of-the-name", "--takeover", rule, "--no-record")
    weir.secrets.append("key-of-the-name")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam?key=key-of-the-name", loop=-1)
    try:
        weir.wait_state("cam", "live")
        if rule == "first":
            assert "is being published by" in refused(weir, "cam?key=key-of-the-name")
            assert publisher.process.poll() is None
        else:
            with RawRTMP(weir.rtmp).start("cam?key=key-of-the-name"):
                assert publisher.outcome(10)[0] != 0
    finally:
        publisher.kill()
