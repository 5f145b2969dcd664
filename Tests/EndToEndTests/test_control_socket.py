"""Commands to the running server over its Unix socket: who may, what they print, and what happens where no server is."""

import contextlib
import itertools
import json
import os
import pathlib
import pty
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from harness import http, publishers, sources, tools
from harness.rawrtmp import RawRTMP, Refused
from harness.weir import clean_environment
from test_command import command, refused

CONFIGURATION = 78
DEMO = ("--source", f"demo=file:{sources.source('loop')}")


@pytest.fixture(scope="module")
def weir(start_shared):
    """A film on the air, recorded on request. There is no admin token: the socket needs none."""
    # Below folders that other users may enter.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-run-"))
    folder.chmod(0o755)
    path = folder / "weir.sock"
    weir = start_shared(*DEMO, "--record-mode", "manual", "--control", path)
    weir.socket = path
    weir.wait_state("demo", "live")
    yield weir
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def published(weir):
    """A stream of a publisher outside of the server."""
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/cam", loop=-1)
    weir.wait_state("cam", "live")
    yield weir
    publisher.kill()


def ask(weir, *arguments, code: int = 0, **options) -> str:
    got, out, err = command(*arguments, "--control", weir.socket, **options)
    assert got == code, f"exit {got}\n{out}\n{err}"
    return out if code == 0 else err


def answer(weir, *arguments):
    return json.loads(ask(weir, *arguments, "--json"))


def on_terminal(*arguments) -> str:
    """What a command prints on a terminal."""
    main, other = pty.openpty()
    process = subprocess.Popen([tools.weir_binary(), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=other,
                               stderr=other, env=clean_environment())
    os.close(other)
    text = b""
    while True:
        try:
            more = os.read(main, 65536)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(main)
    assert process.wait(10) == 0, text
    return text.decode()


def test_only_its_user_may_use_the_socket(weir):
    status = os.stat(weir.socket)
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    os.chmod(weir.socket, 0o666)
    try:
        # The mode alone would let it in now; the uid does not.
        connection = f"""
import os, socket
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.connect({str(weir.socket)!r}); s.settimeout(5)
try:
    s.sendall(b"GET /api/v1/streams HTTP/1.1\\r\\nHost: weir\\r\\n\\r\\n")
    print(len(s.recv(100)))
except (BrokenPipeError, ConnectionResetError):
    print(0)
"""
        done = tools.run("python3", "-c", connection)
        assert done.stdout.strip() == "0", done
    finally:
        os.chmod(weir.socket, 0o600)


def test_the_api_over_the_socket_has_admin_rights(weir):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(weir.socket))
    connection.sendall(b"GET /api/v1/admin HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n")
    text = b""
    while more := connection.recv(65536):
        text += more
    assert text.startswith(b"HTTP/1.1 200") and text.endswith(b'{"admin":true}')
    # The same request over the network is refused.
    refusal = weir.get("/api/v1/admin")
    assert refusal.status == 403 and refusal.json["code"] == "read-only"


def test_streams(weir):
    assert answer(weir, "streams")["streams"][0]["name"] == "demo"
    assert answer(weir, "streams", "demo")["name"] == answer(weir, "streams", "show", "demo")["name"] == "demo"
    row = ask(weir, "streams").splitlines()[0].split("\t")
    assert row[:3] == ["demo", "live", "file"] and "\x1b" not in ask(weir, "streams")
    assert "state      live" in ask(weir, "streams", "demo")
    assert "no stream" in ask(weir, "streams", "nothing", code=1)


def test_a_terminal_gets_a_table(weir):
    text = on_terminal("streams", "--control", weir.socket)
    head, first = text.splitlines()[:2]
    assert head.startswith("\x1b[1mNAME ") and first.split()[:2] == ["demo", "live"]


def test_a_variable_names_the_socket(weir):
    code, out, _ = command("streams", environment={"WEIR_CONTROL": str(weir.socket)})
    assert code == 0 and out.startswith("demo\t")


def test_recordings_are_started_and_deleted(published):
    weir = published
    assert ask(weir, "recordings", "start", "cam").startswith(("running", "idle"))
    weir.wait(lambda: weir.stream("cam")["recording"]["seconds"] > 1, 10, "a second of a recording")
    done = ask(weir, "recordings", "stop", "cam")
    assert done.startswith("completed cam/")
    name = done.split()[1]
    weir.wait(lambda: name.removeprefix("cam/") in ask(weir, "recordings", "--stream", "cam"), 20, "a listed recording")
    assert "can be restored until" in ask(weir, "recordings", "delete", name)
    assert answer(weir, "recordings", "--state", "deleted")["total"] == 1
    assert ask(weir, "recordings", "restore", name).strip() == f"{name}: completed"
    assert "no such recording" in ask(weir, "recordings", "delete", "cam/20200101T000000Z.mp4", code=1)


def test_a_recording_has_a_name_tracks_and_limits_and_is_protected(published):
    weir = published
    assert "limits.duration" in ask(weir, "recordings", "start", "cam", "--duration", "soon", code=1)
    assert ask(weir, "recordings", "start", "cam", "--name", "Interview", "--tracks", "video", "--duration", "2s",
               "--size", "1GB").startswith(("running", "idle"))
    entry = weir.wait(lambda: next((one for one in answer(weir, "recordings", "--stream", "cam", "--state", "completed")["recordings"]
                                    if one["name"] == "Interview"), None), 20, "it ends by itself")
    assert 1.5 < entry["seconds"] < 5  # of media
    kinds = {stream["codec_type"] for stream in json.loads(tools.run(
        tools.FFPROBE, "-v", "error", "-show_streams", "-of", "json", weir.recordings / "cam" / entry["file"]).stdout)["streams"]}
    assert kinds == {"video"}
    one = f"cam/{entry['file']}"
    ask(weir, "recordings", "protect", one)
    assert "protected" in ask(weir, "recordings", "delete", one, code=1)
    ask(weir, "recordings", "unprotect", one)
    assert "can be restored until" in ask(weir, "recordings", "delete", one)


def test_a_session_is_ended_and_its_stream_waits(published):
    weir = published
    sessions = answer(weir, "sessions", "--stream", "cam")["sessions"]
    assert [(s["kind"], s["protocol"], s["stream"]) for s in sessions] == [("publisher", "RTMP", "cam")]
    session = sessions[0]
    assert session["bytes"] > 0 and session["address"].startswith("127.0.0.1") and session["software"]
    assert session["id"] in ask(weir, "sessions", "end", session["id"])
    weir.wait_state("cam", "reconnecting", seconds=20)
    assert "no such session" in ask(weir, "sessions", "end", session["id"], code=1)
    weir.wait_log("an administrator ended the session")
    assert weir.stream("demo")["state"] == "live"


def test_the_response_of_a_viewer_is_ended(weir):
    connection = socket.create_connection(weir.web.removeprefix("http://").split(":"))
    connection.sendall(b"GET /live/demo/stream.mp4 HTTP/1.1\r\nHost: weir\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    viewer = weir.wait(
        lambda: next((s for s in answer(weir, "sessions")["sessions"] if s["kind"] == "viewer"), None), 15, "a viewer")
    assert viewer["stream"] == "demo" and answer(weir, "sessions")["viewers"]["demo"] >= 1
    ask(weir, "sessions", "end", viewer["id"])
    connection.settimeout(15)
    last = b""
    # It ends as a complete body does.
    while not last.endswith(b"0\r\n\r\n"):
        more = connection.recv(1 << 20)
        assert more, "closed in the middle of the body"
        last = (last + more)[-5:]


def test_a_stream_is_ended(weir):
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/brief", loop=-1)
    weir.wait_state("brief", "live")
    assert ask(weir, "streams", "stop", "brief") == "brief: ended\n"
    assert http.fetch(f"{weir.web}/live/brief/index.m3u8").status in (200, 404)
    publisher.outcome()
    assert weir.stream("brief")["state"] == "ended"


# Keys, events and settings


@pytest.fixture(scope="module")
def kept(start_shared):
    """A server with a configuration file and a state folder."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-run-"))
    (folder / "state").mkdir()
    file = folder / "weir.yaml"
    file.write_text("limits: {viewers: 100}\n")
    weir = start_shared("--no-record", "--config", file, "--state", folder / "state", "--control", folder / "weir.sock",
                        "--publishers", "open")
    weir.socket, weir.file = folder / "weir.sock", file
    yield weir
    shutil.rmtree(folder)


def rejected(weir, name: str) -> str:
    with pytest.raises(Refused) as refusal, RawRTMP(weir.rtmp) as client:
        client.start(name)
    return refusal.value.description


def test_keys_are_added_printed_once_and_revoked(kept):
    weir = kept
    code, out, err = command("keys", "add", "laptop", "--publish", "cam-*", "--publish", "desk", "--expires", "30d",
                             "--control", weir.socket)
    key = out.strip()
    weir.secrets.append(key)
    assert code == 0 and re.fullmatch(r"wk_[a-z2-7]{32}", key) and key not in err and "not shown again" in err
    # From now on whoever publishes needs one.
    assert "warning: publishers need a key from now on" in err
    weir.wait_log("publishers need a key from now on")
    told = weir.wait(lambda: answer(weir, "events", "--kind", "access.closed")["events"], 10, "the event")
    assert [event["data"] for event in told] == [{"key": "laptop"}]
    listed = ask(weir, "keys")
    assert key not in listed and listed.split("\t")[:5] == ["laptop", "cam-*,desk", "-", "-", "-"]
    assert key not in ask(weir, "keys", "list", "--json")
    entry = answer(weir, "keys")["keys"][0]
    assert entry["publish"] == ["cam-*", "desk"] and entry["expiresAt"] > entry["madeAt"] and entry["key"] is None
    with RawRTMP(weir.rtmp).start(f"cam-1?key={key}") as publisher:
        assert "missing or wrong" in rejected(weir, f"other?key={key}")
        assert ask(weir, "keys", "revoke", "laptop") == "laptop: revoked\n"
        publisher.wait_closed(5)
    assert ask(weir, "keys") == ""
    made = answer(weir, "keys", "add", "console", "--admin", "operate", "--expires", "2099-01-31T00:00:00Z")
    weir.secrets.append(made["key"])
    assert made["note"] is None
    assert (made["scope"], made["expiresAt"][:10]) == ("operate", "2099-01-31")
    assert weir.get("/api/v1/sources", headers={"Authorization": f"Bearer {made['key']}"}).status == 200
    ask(weir, "keys", "revoke", "console")


def test_keys_that_cannot_be_made_say_why(kept):
    weir = kept
    assert "no key of that name" in ask(weir, "keys", "revoke", "none", code=1)
    for words, flags in (("allow nothing", ()), ("no scope", ("--admin", "root")),
                         ("neither a stream's name nor a pattern", ("--publish", "../etc"))):
        assert words in ask(weir, "keys", "add", "x", *flags, code=1)
    assert "write 30d or" in ask(weir, "keys", "add", "x", "--publish", "a", "--expires", "soon", code=2)
    assert "no time to come" in ask(weir, "keys", "add", "x", "--publish", "a", "--expires", "2020-01-01T00:00:00Z", code=1)
    assert ask(weir, "keys") == ""


def test_what_was_set_over_the_api_is_shown_without_the_server(kept):
    weir = kept
    state = weir.file.parent / "state"
    flags = ("--config", weir.file, "--state", state)
    put = subprocess.run(
        ["curl", "-sS", "-f", "-X", "PUT", "--unix-socket", weir.socket, "http://weir/api/v1/streams/show-9/settings",
         "-d", '{"partDuration": "100ms"}'], capture_output=True, text=True, check=True)
    assert json.loads(put.stdout)["fromNextEpoch"] == ["streams.show-9.partDuration"]
    code, out, err = command("config", "show", *flags, "--stream", "show-9")
    assert code == 0 and re.search(r"partDuration: \"?100ms\"? +# API", out), out + err
    assert "# stream show-9, over the API: partDuration" in command("config", "show", *flags)[1]
    assert "# API" not in command("config", "show", "--config", weir.file, "--stream", "show-9")[1]
    # A folder without any is left as it is.
    assert command("config", "show", "--state", weir.file.parent)[0] == 0 and not (weir.file.parent / "control.sqlite").exists()


def test_keys_need_a_state_folder(weir):
    assert "--state" in ask(weir, "keys", "add", "x", "--publish", "*", code=1)


class Follower:
    """`weir events --follow` in the background."""

    def __init__(self, weir, *flags):
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [tools.weir_binary(), "events", "--follow", "--control", str(weir.socket), *flags], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def follows(self, weir) -> "Follower":
        """Waits until it tells of a stream: a connection alone does not say that what happens reaches it."""
        end = time.monotonic() + 20
        for number in itertools.count():
            if self.lines:
                return self
            assert time.monotonic() < end, "it tells nothing"
            with contextlib.suppress(Refused), RawRTMP(weir.rtmp).start(f"show-probe-{number % 8}") as publisher:
                publisher.finish()
            time.sleep(0.1)

    def end(self) -> tuple[int, str]:
        self.process.wait(10)
        self.reader.join(10)
        return self.process.returncode, self.process.stderr.read()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def test_events_are_listed_and_followed(kept):
    weir = kept
    every, some = Follower(weir, "--json"), Follower(weir, "--kind", "stream.*", "--stream", "show-*")
    try:
        for follower in (every, some):
            follower.follows(weir)
        for name in ("show-1", "desk-1"):
            with RawRTMP(weir.rtmp).start(name) as publisher:
                weir.wait(lambda: weir.stream(name), 10, f"{name} is there")

        def begun() -> list[dict]:
            return [event for event in map(json.loads, list(every.lines))
                    if event["kind"] == "stream.started" and event["stream"] in ("show-1", "desk-1")]

        weir.wait(lambda: len(begun()) == 2, 15, "both begin")
        weir.wait(lambda: any(line.split("\t")[3] == "show-1" for line in list(some.lines)), 15, "a line of show-1")
        events = [json.loads(line) for line in list(every.lines)]
        assert [event["id"] for event in events] == sorted(event["id"] for event in events)
        assert all(line.split("\t")[3].startswith("show-") and line.split("\t")[2].startswith("stream.") for line in list(some.lines))
        first = begun()[0]
        page = answer(weir, "events", "--since", str(first["id"] - 1), "--kind", "stream.started", "--limit", "1")
        assert [event["id"] for event in page["events"]] == [first["id"]]
        row = ask(weir, "events", "--stream", "show-1", "--kind", "stream.started").splitlines()[-1].split("\t")
        assert row[0] == str(first["id"]) and row[2:4] == ["stream.started", "show-1"] and json.loads(row[5])
        # Behind an event: what came later, first what is kept and then what comes.
        resumed = Follower(weir, "--json", "--since", str(first["id"]))
        try:
            later = [event for event in events if event["id"] > first["id"]]
            weir.wait(lambda: len(resumed.lines) >= len(later) > 0, 10, "the events behind the first")
            assert [json.loads(line)["id"] for line in resumed.lines][:len(later)] == [event["id"] for event in later]
        finally:
            resumed.kill()
    finally:
        every.kill()
        some.kill()


def test_events_that_cannot_be_told_say_why(kept):
    weir = kept
    assert "no kind of event" in ask(weir, "events", "--kind", "stream.begun", code=1)
    assert "neither a stream's name nor a pattern" in ask(weir, "events", "--follow", "--stream", "a/b", code=1)
    assert "there is no event" in ask(weir, "events", "--since", "9000000000000000000", code=1)
    assert "limit is not a number from 1 to 1000" in ask(weir, "events", "--limit", "0", code=1)


def test_who_follows_learns_that_the_server_stops(start, tmp_path):
    weir = start("--no-record", "--control", tmp_path / "weir.sock")
    weir.socket = tmp_path / "weir.sock"
    follower = Follower(weir).follows(weir)
    weir.stop()
    code, error = follower.end()
    assert code == 1 and error.startswith("weir: error: the server ended the stream of events")


def test_who_reads_no_further_ends_the_following(kept):
    weir = kept
    with RawRTMP(weir.rtmp).start("head-1"):
        weir.wait(lambda: weir.stream("head-1"), 10, "head-1 is there")
    with subprocess.Popen(
            ["sh", "-c", f"{tools.weir_binary()} events --follow --since 0 --control {weir.socket} | head -n 1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()) as following:
        assert following.stdout.readline().count("\n") == 1
        # As with any pipe, the next line is what finds that nobody reads it.
        with RawRTMP(weir.rtmp).start("head-2"):
            rest, errors = following.communicate(timeout=20)
    assert rest == "" and errors == ""


def test_a_reload_says_what_it_changed(kept):
    weir = kept
    before = weir.file.read_text()
    try:
        weir.file.write_text("limits: {viewers: 90}\nhttp: {web: /tmp}\nstreams: {cam: {partDuration: 100ms}}\n")
        assert ask(weir, "config", "reload").splitlines() == [
            "changed: limits.viewers", "from the next epoch or recording on: streams.cam.partDuration",
            "needs a restart: http.web"]
        weir.file.write_text("limits: {viewrs: 80}\n")
        refusal = ask(weir, "config", "reload", code=1)
        assert "weir.yaml:1:10" in refusal and "did you mean viewers?" in refusal and refusal.count("\n") == 1
    finally:
        weir.file.write_text(before)
    assert answer(weir, "config", "reload")["changed"] == ["limits.viewers"]
    assert ask(weir, "config", "reload") == "nothing changed\n"


# Where no server is


def test_without_a_server_the_error_names_the_path(tmp_path):
    line = refused(1, "streams", "--control", tmp_path / "none.sock")
    assert f"{tmp_path}/none.sock: No such file or directory" in line and "--control" in line
    line = refused(1, "sessions", environment={"XDG_RUNTIME_DIR": str(tmp_path), "RUNTIME_DIRECTORY": str(tmp_path / "x")})
    assert f"{tmp_path}/weir.sock" in line and f"{tmp_path}/x/weir.sock" in line and "start weir serve as this user" in line
    # A server that this user starts finds no folder for its socket either.
    line = refused(1, "streams", environment={"XDG_RUNTIME_DIR": str(tmp_path / "y"), "RUNTIME_DIRECTORY": str(tmp_path / "x")})
    assert "start weir serve with --control PATH, and set WEIR_CONTROL to the same path" in line


def test_a_server_uses_the_folder_of_the_session(start, tmp_path):
    environment = {"XDG_RUNTIME_DIR": str(tmp_path), "RUNTIME_DIRECTORY": "/nonexistent"}
    weir = start(*DEMO, environment=environment)
    weir.wait_state("demo", "live")
    assert command("streams", environment=environment)[1].startswith("demo\t")
    # Another one leaves the socket alone, and runs without.
    other = start("--no-record", environment=environment)
    other.wait_log("another weir listens there")
    assert command("streams", environment=environment)[1].startswith("demo\t")
    weir.stop()
    assert not (tmp_path / "weir.sock").exists()


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(start, tmp_path):
    path = tmp_path / "weir.sock"
    weir = start("--no-record", "--control", path)
    line = refused(CONFIGURATION, "serve", "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0", "--no-record", "--control", path)
    assert "another weir listens there" in line
    weir.kill()
    assert path.exists()
    again = start("--no-record", "--control", path)
    assert command("streams", "--json", "--control", path)[0] == 0
    again.stop()
    assert not path.exists()


def test_a_file_at_the_path_is_left_alone(tmp_path):
    path = tmp_path / "precious"
    path.write_text("x")
    line = refused(CONFIGURATION, "serve", "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0", "--no-record", "--control", path)
    assert "not a socket" in line and path.read_text() == "x"


def test_it_can_be_switched_off(start, tmp_path):
    start("--no-record", "--control", "off", environment={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert list(tmp_path.glob("*.sock")) == []
