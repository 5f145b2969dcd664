"""What a reload changes is in effect at once, and takes nothing from those who are there: log level, limits, retention, tokens of
administrators, passphrases, listeners; and what holds from the next recording on."""

import contextlib
import json
import pathlib
import subprocess
import time

import pytest

from harness import http, publishers, sources, srt, tools
from harness.metrics import Metrics
from harness.programs import free_port
from harness.rawrtmp import RawRTMP
from test_configuration import config
from test_edge_revocation import Endless
from test_reload import ADMIN, Configured, live, refused

KEY = "key-for-everybody-0815"


@pytest.fixture
def configured(start, tmp_path):
    return lambda settings, *flags: Configured(start, tmp_path, settings, *flags)


@contextlib.contextmanager
def published(weir, *names: str):
    running = [publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1) for name in names]
    try:
        for name in names:
            weir.wait_state(name.partition("?")[0], "live")
        yield running
    finally:
        for one in running:
            one.kill()


# MARK: Log and limits


def test_the_level_of_the_log_is_that_of_the_newest_settings(configured):
    server = configured({"log": {"level": "info"}}, "--no-record")
    weir, number = server.weir, iter(range(1000))

    def is_told(words: str, is_expected: bool) -> bool:
        if is_expected:
            return weir.wait(lambda: words in weir.text(), 10, f"{words} in the log")
        time.sleep(0.5)
        return words in weir.text()

    def logs_requests(is_expected: bool) -> bool:
        path = f"/nothing-{next(number)}"
        weir.get(path)
        return is_told(path, is_expected)

    def logs_publications(is_expected: bool) -> bool:
        name = f"cam-{next(number)}"
        with RawRTMP(weir.rtmp).start(name) as client:
            client.finish()
        return is_told(name, is_expected)

    for level, requests, publications in (("info", False, True), ("debug", True, True), ("error", False, False), ("notice", False, True)):
        answer = server.reload({"log": {"level": level}}).good().json
        assert answer["changed"] == ([] if level == "info" else ["log.level"]) and not answer["needRestart"]
        assert (logs_requests(requests), logs_publications(publications)) == (requests, publications), level


def test_a_limit_of_viewers_that_is_raised_admits_and_one_that_is_lowered_drops_nobody(configured):
    server = configured({"limits": {"viewers": 1}}, "--no-record", "--segment-duration", "500ms")
    weir = server.weir
    with published(weir, "cam"), contextlib.ExitStack() as stack:
        url = f"{weir.web}/live/cam/stream.mp4"

        def status(client: str) -> int:
            stream = http.Stream(url, headers={"User-Agent": client})
            stream.close()
            return stream.status

        def watch(client: str) -> Endless:
            viewer = Endless(url, **{"User-Agent": client})
            stack.callback(viewer.close)
            return viewer

        first = watch("first")
        assert status("second") == 503
        assert server.reload({"limits": {"viewers": 2}}).good().json["changed"] == ["limits.viewers"]
        second = watch("second")
        assert status("third") == 503
        assert server.reload({"limits": {"viewers": 1}}).good()
        assert status("third") == 503
        time.sleep(2)  # real time: what is to end ends within two seconds
        now = time.monotonic()
        for viewer in (first, second):
            weir.wait(lambda viewer=viewer: viewer.last > now, 10, "more for a viewer who is there")
            assert viewer.ended is None
        assert weir.stream("cam")["viewers"] == 2
        # Their places are free once they have left, down to the new limit.
        second.close()
        weir.wait(lambda: weir.stream("cam")["viewers"] == 1, 10, "one viewer")
        assert status("third") == 503
        first.close()
        weir.wait(lambda: status("third") == 200, 10, "the place of the first", every=0.5)


def test_a_limit_of_streams_that_is_raised_admits_and_one_that_is_lowered_ends_nothing(configured):
    def settings(streams: int) -> dict:
        return {"streams": {"*": {"publishKeys": [KEY]}}, "limits": {"streams": streams}}

    server = configured(settings(1), "--no-record")
    weir = server.weir
    weir.secrets.append(KEY)
    with RawRTMP(weir.rtmp).start(f"one?key={KEY}") as one:
        assert "streams" in refused(weir, f"two?key={KEY}")
        server.reload(settings(2)).good()
        with RawRTMP(weir.rtmp).start(f"two?key={KEY}") as two:
            server.reload(settings(1)).good()
            assert "streams" in refused(weir, f"three?key={KEY}")
            time.sleep(0.5)
            assert {stream["name"] for stream in weir.json("/api/v1/streams")["streams"]} == {"one", "two"}
            two.finish()
            one.finish()


def test_recordings_are_kept_by_the_rules_of_the_newest_settings(configured):
    server = configured({"recordings": {"retain": {"deleted": "1h"}}})
    weir = server.weir
    for number in range(3):
        publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", rate=4).wait(30)
        weir.wait(lambda number=number: len([r for r in weir.recordings_of("cam") if r["state"] == "completed"]) == number + 1, 15,
                  "a finished recording")
    known = sorted((r["startedAt"], r["file"], r["bytes"]) for r in weir.recordings_of("cam"))
    newest = known[-1]
    answer = server.reload({"recordings": {"retain": {"deleted": "1h", "streamSize": f"{newest[2] + 10}B"}}}).good().json
    assert answer["changed"] == ["recordings.retain.streamSize"]
    weir.wait(lambda: [r["file"] for r in weir.recordings_of("cam")] == [newest[1]], 15, "the oldest are gone")
    told = server.call("GET", "/api/v1/events?kind=recording.deleted").good().json["events"]
    assert [event["data"]["file"] for event in told] == [file for _, file, _ in known[:-1]]
    assert {event["data"]["reason"] for event in told} == {"its stream has more than --retain-stream-size"}
    assert all(event["who"] is None for event in told)


def test_names_of_recordings_change_with_the_next_one(configured):
    def settings(name: str) -> dict:
        return {"streams": {"cam": {"record": {"name": name, "mode": "manual"}}}}

    server = configured(settings("{stream}/first-{time}"))
    weir, path = server.weir, "/api/v1/streams/cam/recording/"
    with published(weir, "cam"):
        def begin() -> str:
            server.call("POST", path + "start?wait=20s").good()
            return weir.wait(lambda: weir.stream("cam")["recording"]["file"], 10, "a file")

        assert "first-" in begin()
        assert server.reload(settings("{stream}/second-{time}")).good().json == {
            "changed": [], "fromNextEpoch": ["streams.cam.record.name"], "needRestart": []}
        time.sleep(0.6)
        recording = weir.stream("cam")["recording"]
        assert recording["state"] == "running" and "first-" in recording["file"]
        server.call("POST", path + "stop?wait=20s").good()
        assert "second-" in begin()
        server.call("POST", path + "stop?wait=20s").good()
    names = sorted(path.name for path in weir.recordings.glob("cam/*Z.mp4"))
    assert len(names) == 2 and names[0].startswith("first-") and names[1].startswith("second-")


# MARK: Who may


def test_the_admin_token_of_the_newest_settings_is_the_only_one(start, tmp_path):
    old, new = "token-that-goes-away", "token-that-comes-0815"
    (tmp_path / "state").mkdir()
    path = tmp_path / "weir.yaml"

    def write(token: str) -> None:
        path.write_text(json.dumps({"admin": {"token": token}}))
        path.chmod(0o600)

    def status(token: str, method: str = "GET", target: str = "/api/v1/settings") -> int:
        return weir.get(target, method=method, headers={"Authorization": f"Bearer {token}"}).status

    write(old)
    weir = start("--config", path, "--state", tmp_path / "state", "--no-record")
    weir.secrets += [old, new]
    assert (status(old), status(new)) == (200, 401)
    follower = Endless(f"{weir.web}/api/v1/events", Accept="text/event-stream", Authorization=f"Bearer {old}")
    try:
        write(new)
        assert status(old, "POST", "/api/v1/settings/reload") == 200
        assert (status(old), status(new)) == (401, 200)
        # Within two seconds, which test_edge_revocation.py measures.
        weir.wait(lambda: follower.ended, 10, "the end of what the old token began")
    finally:
        follower.close()


def test_passphrases_of_srt_change_with_the_next_caller_and_end_nobody(configured):
    old, new, port = "passphrase-that-goes", "passphrase-that-comes", free_port()

    def settings(passphrase: str | None) -> dict:
        own = {"secret*": {"srt": {"passphrase": passphrase}}} if passphrase else {}
        return {"srt": {"listen": f"127.0.0.1:{port}"}, "streams": own}

    server = configured(settings(old), "--no-record")
    weir = server.weir
    weir.secrets += [old, new]

    def rejected(name: str, passphrase: str) -> int:
        caller = srt.Caller(port, name, passphrase=passphrase)
        caller.close()
        return caller.reject

    #: Codes of libsrt: the passphrase is wrong, one side has none.
    bad, unsecure = 10, 11
    running = [srt.ffmpeg(sources.ts("short"), port, "secret-1", loop=-1, options=f"&passphrase={old}&pbkeylen=16"),
               srt.ffmpeg(sources.ts("short"), port, "open", loop=-1)]
    try:
        for name in ("secret-1", "open"):
            weir.wait_state(name, "live")
        assert (rejected("secret-2", new), rejected("secret-2", "")) == (bad, unsecure)
        assert server.reload(settings(new)).good().json == {
            "changed": ["streams.secret*.srt.passphrase"], "fromNextEpoch": [], "needRestart": []}
        # The worker of SRT hears of it a little later.
        weir.wait(lambda: rejected("secret-2", new) == 0, 10, "the new passphrase", every=0.5)
        assert rejected("secret-3", old) == bad
        assert all(live(weir, name) for name in ("secret-1", "open")) and all(one.process.poll() is None for one in running)
        # A passphrase that is too short is no passphrase: nothing changes.
        short = server.reload(settings("short"))
        assert short.status == 422 and "passphrase" in short.json["detail"] and "10 to 79" in short.json["detail"]
        assert rejected("secret-4", new) == 0
        assert server.reload(settings(None)).good().json["changed"] == ["streams.secret*.srt.passphrase"]
        weir.wait(lambda: rejected("secret-5", "") == 0, 10, "no passphrase", every=0.5)
        assert rejected("secret-6", new) == unsecure
        assert all(live(weir, name) for name in ("secret-1", "open")) and all(one.process.poll() is None for one in running)
        # Nothing shows them, nor the state of the server.
        for path in ("/api/v1/settings", "/api/v1/streams/secret-1/settings", "/api/v1/streams", "/metrics", "/api/v1/events",
                     "/api/v1/refusals"):
            text = server.call("GET", path).good().text
            assert old not in text and new not in text, path
        for pid in [weir.process.pid, *weir.children()]:
            for file in ("cmdline", "environ"):
                text = pathlib.Path(f"/proc/{pid}/{file}").read_bytes()
                assert old.encode() not in text and new.encode() not in text
    finally:
        for one in running:
            one.kill()


def test_a_file_with_a_passphrase_alone_is_a_file_with_secrets(start, tmp_path):
    path = tmp_path / "weir.yaml"
    for mode, warns in ((0o644, True), (0o600, False)):
        path.write_text("streams: {secret: {srt: {passphrase: passphrase-of-the-stream}}}\n")
        path.chmod(mode)
        weir = start("--config", path, "--no-record")
        weir.secrets.append("passphrase-of-the-stream")
        weir.stop()
        assert ("every user of this machine may read it" in weir.text()) is warns
    shown = config("show", "--config", str(path), "--stream", "secret")
    assert shown.returncode == 0 and "passphrase" in shown.stdout and "passphrase-of-the-stream" not in shown.stdout


def test_secrets_and_programs_are_not_set_over_the_api(configured, tmp_path):
    (tmp_path / "state").mkdir()
    server = configured({}, "--state", tmp_path / "state", "--no-record")
    for body, word in (({"publishKeys": ["key-of-somebody-0815"]}, "keys are not set here"),
                       ({"srt": {"passphrase": "passphrase-of-somebody"}}, "keys are not set here"),
                       ({"hooks": [{"on": "*", "run": ["/bin/true"]}]}, "hooks"), ({"keys": []}, "keys"), ({"sources": {"a": "test"}}, "sources"),
                       ({"access": {"callback": {"url": "http://127.0.0.1:1/"}}}, "access")):
        answer = server.call("PUT", "/api/v1/streams/cam/settings", body)
        assert answer.status == 422 and word in answer.json["detail"] and "somebody" not in answer.text, answer.text
    stored = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir() if path.is_file())
    assert b"somebody" not in stored


# MARK: Listeners


def test_https_comes_with_http2_moves_and_goes_and_ends_exactly_its_own(configured, tmp_path):
    certificate, key = tools.make_certificate(tmp_path)
    held = {"tls": {"certificate": str(certificate), "key": str(key)}, "rtmps": {"listen": f"127.0.0.1:{free_port()}"}}
    first, second = free_port(), free_port()
    server = configured(held, "--no-record")
    weir = server.weir

    def settings(port: int) -> dict:
        return {**held, "https": {"listen": f"127.0.0.1:{port}"}}

    def follow(port: int) -> subprocess.Popen:
        return subprocess.Popen(["curl", "-sk", "--http2", "-o", "/dev/null", f"https://127.0.0.1:{port}/live/cam/stream.mp4"])

    def version(port: int) -> str:
        return tools.run("curl", "-sk", "--http2", "-m", "20", "-o", "/dev/null", "-w", "%{http_version} %{http_code}",
                         f"https://127.0.0.1:{port}/healthz").stdout

    with published(weir, "cam"), contextlib.ExitStack() as stack:
        plain = Endless(f"{weir.web}/live/cam/stream.mp4")
        stack.callback(plain.close)

        def viewers() -> float:
            return Metrics(weir).total("weir_viewers", stream="cam", protocol="mp4")

        assert server.reload(settings(first)).good().json["changed"] == ["https.listen"]
        assert version(first) == "2 200"
        viewer = follow(first)
        stack.callback(viewer.kill)
        weir.wait(lambda: viewers() == 2, 10, "it watches")
        assert viewer.poll() is None
        assert server.reload(settings(second)).good().json["changed"] == ["https.listen"]
        assert viewer.wait(10) != 0, "a client of the former address"
        assert version(second) == "2 200" and version(first).endswith("000")
        other = follow(second)
        stack.callback(other.kill)
        weir.wait(lambda: viewers() == 2, 10, "it watches")
        # A change of something else ends nobody.
        assert server.reload({**settings(second), "limits": {"viewers": 77}}).good().json["changed"] == ["limits.viewers"]
        time.sleep(0.5)
        assert other.poll() is None
        assert server.reload(held).good()
        assert other.wait(10) != 0 and version(second).endswith("000")
        now = time.monotonic()
        weir.wait(lambda: plain.last > now, 10, "more for the other viewer")
        assert plain.ended is None
        assert live(weir, "cam")
