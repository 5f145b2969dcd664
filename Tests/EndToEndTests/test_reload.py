"""Settings that change while the server runs: the file read again, keys over the API, settings of streams over the API."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
import yaml

from harness import http, publishers, tools
from harness.rawrtmp import RawRTMP, Refused
from harness.weir import clean_environment

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
RELOAD = "/api/v1/settings/reload"
LONG = os.environ.get("WEIR_FAULTS") == "long"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Configured:
    """A server with a configuration file that the test rewrites."""

    def __init__(self, start, folder, settings: dict, *flags):
        self.path = folder / "weir.yaml"
        self.write(settings)
        self.weir = start("--config", self.path, "--admin-token", TOKEN, *flags)
        self.weir.secrets.append(TOKEN)

    def write(self, settings) -> None:
        text = settings if isinstance(settings, str) else yaml.safe_dump(settings)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.chmod(0o640)
        fresh.rename(self.path)

    def reload(self, settings=None) -> http.Response:
        if settings is not None:
            self.write(settings)
        return self.call("POST", RELOAD)

    def call(self, method: str, path: str, body=None, headers=ADMIN) -> http.Response:
        text = None if body is None else json.dumps(body).encode()
        return http.fetch(self.weir.web + path, method, headers, body=text)


@pytest.fixture
def configured(start, tmp_path):
    return lambda settings, *flags: Configured(start, tmp_path, settings, *flags)


def live(weir, name: str) -> bool:
    stream = weir.stream(name)
    return bool(stream) and stream["state"] == "live"


def refused(weir, name: str) -> str:
    with pytest.raises(Refused) as refusal, RawRTMP(weir.rtmp) as client:
        client.start(name)
    return refusal.value.description


def test_the_file_is_read_again_and_a_bad_one_is_refused_whole(configured):
    server = configured({"limits": {"viewers": 100}})
    changed = server.reload({"limits": {"viewers": 50}, "log": {"level": "debug"}, "http": {"web": "/tmp"},
                             "streams": {"cam": {"partDuration": "100ms"}}}).good().json
    assert changed == {"changed": ["limits.viewers", "log.level"], "fromNextEpoch": ["streams.cam.partDuration"],
                       "needRestart": ["http.web"]}
    settings = {entry["place"]: entry for entry in server.call("GET", "/api/v1/settings").good().json["settings"]}
    assert settings["limits.viewers"]["value"] == "50"
    assert re.fullmatch(r".*weir\.yaml:1:\d+|.*weir\.yaml:\d+:\d+", settings["limits.viewers"]["from"])
    assert settings["admin.token"]["value"] is None and settings["admin.token"]["from"] == "--admin-token"

    bad = server.reload({"limits": {"viewers": 20, "viewrs": 3}})
    assert bad.status == 422 and "did you mean viewers?" in bad.json["detail"]
    assert server.call("GET", "/api/v1/settings").text.count('"value":"50"') == 1
    server.weir.wait_log("the settings stay as they are")

    server.write({"limits": {"viewers": 70}})
    server.weir.send(signal.SIGHUP)
    server.weir.wait_log("settings read again: changed: limits.viewers, log.level")
    assert server.reload().json == {"changed": [], "fromNextEpoch": [], "needRestart": []}


def test_a_revoked_key_ends_its_publication_and_no_other(configured):
    old, new, other = "key-that-goes-away", "key-that-comes", "key-of-the-other"
    server = configured({"streams": {"cam": {"publishKeys": [old]}, "desk": {"publishKeys": [other]}}})
    server.weir.secrets += [old, new, other]
    running = {name: publishers.ffmpeg("h264-30", f"{server.weir.rtmp}/live/{name}?key={key}")
               for name, key in (("cam", old), ("desk", other))}
    try:
        for name in running:
            server.weir.wait(lambda: live(server.weir, name), 15, f"{name} live")
        answer = server.reload({"streams": {"cam": {"publishKeys": [new]}, "desk": {"publishKeys": [other]}}})
        assert answer.good().json["changed"] == ["streams.cam.publishKeys"]
        code, log = running["cam"].outcome(10)
        assert code != 0
        server.weir.wait_log("its key has been revoked")
        assert server.weir.stream("cam")["state"] == "reconnecting"
        assert "publish key is missing or wrong" in refused(server.weir, f"cam?key={old}")
        with RawRTMP(server.weir.rtmp).start(f"cam?key={new}"):
            pass
        assert live(server.weir, "desk") and running["desk"].process.poll() is None
    finally:
        for one in running.values():
            one.kill()


def test_a_listener_comes_and_goes_with_its_connections(configured, tmp_path):
    base, more = {"limits": {"viewers": 10}}, free_port()
    certificate, key = tools.make_certificate(tmp_path)
    server = configured({**base, "https": {"listen": f"127.0.0.1:{free_port()}"},
                         "tls": {"certificate": str(certificate), "key": str(key)}})
    publisher = publishers.ffmpeg("h264-30", f"{server.weir.rtmp}/live/cam")
    try:
        server.weir.wait(lambda: live(server.weir, "cam"), 15, "cam live")
        held = yaml.safe_load(server.path.read_text())
        added = {**held, "rtmps": {"listen": f"127.0.0.1:{more}"}}
        assert server.reload(added).good().json["changed"] == ["rtmps.listen"]
        with RawRTMP(f"rtmps://127.0.0.1:{more}") as secure:
            secure.start("second")
            assert server.reload(held).good().json["changed"] == ["rtmps.listen"]
            secure.wait_closed(5)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", more), timeout=2)
        assert live(server.weir, "cam") and publisher.process.poll() is None
    finally:
        publisher.kill()


def test_a_listener_that_cannot_listen_changes_nothing(configured, tmp_path):
    certificate, key = tools.make_certificate(tmp_path)
    first, taken = free_port(), socket.create_server(("127.0.0.1", 0))
    settings = {"https": {"listen": f"127.0.0.1:{first}"}, "tls": {"certificate": str(certificate), "key": str(key)}}
    server = configured(settings)
    answer = server.reload({**settings, "limits": {"viewers": 7}, "rtmps": {
        "listen": f"127.0.0.1:{taken.getsockname()[1]}"}})
    assert answer.status == 422 and "rtmps" in answer.json["detail"]
    assert server.reload(settings).json == {"changed": [], "fromNextEpoch": [], "needRestart": []}
    taken.close()


def test_keys_are_made_told_once_used_and_revoked(configured, tmp_path):
    (tmp_path / "state").mkdir()
    server = configured({}, "--state", tmp_path / "state")
    weir = server.weir
    made = server.call("POST", "/api/v1/keys", {"name": "laptop", "publish": ["cam-*"]}).good().json
    key = made["key"]
    weir.secrets.append(key)
    assert re.fullmatch(r"wk_[a-z2-7]{32}", key)
    listed = server.call("GET", "/api/v1/keys").good()
    assert key not in listed.text and listed.json["keys"][0]["publish"] == ["cam-*"]
    assert key not in "".join(path.read_bytes().decode("latin1") for path in (tmp_path / "state").iterdir())
    assert "missing or wrong" in refused(weir, "cam-1")
    assert "missing or wrong" in refused(weir, f"desk?key={key}")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam-1?key={key}")
    try:
        weir.wait(lambda: live(weir, "cam-1"), 15, "cam-1 live")
        assert server.call("DELETE", "/api/v1/keys/laptop").good().json["name"] == "laptop"
        assert publisher.outcome(10)[0] != 0
    finally:
        publisher.kill()
    for body, words in (({"name": "x"}, "allow nothing"), ({"publish": ["*"]}, "name is missing"), ([], "JSON"),
                        ({"name": "x", "scope": "root"}, "no scope"), ({"name": "-", "scope": "read"}, "no name"),
                        ({"name": "x", "scope": "read", "expiresAt": "2020-01-01T00:00:00Z"}, "no time to come"),
                        ({"name": "x", "publish": ["../etc"]}, "neither a stream's name nor a pattern")):
        answer = server.call("POST", "/api/v1/keys", body)
        assert answer.status == 400 and words in answer.json["detail"], (body, answer.text)
    assert server.call("DELETE", "/api/v1/keys/none").status == 404


def test_scopes_hold_and_keys_outlive_the_process(configured, tmp_path, start):
    (tmp_path / "state").mkdir()
    server = configured({}, "--state", tmp_path / "state")
    keys = {scope: server.call("POST", "/api/v1/keys", {"name": scope, "scope": scope}).good().json["key"]
            for scope in ("read", "operate", "admin")}
    server.weir.secrets += keys.values()

    def status(server, scope: str, method: str, path: str) -> int:
        return server.call(method, path, headers={"Authorization": f"Bearer {keys[scope]}"}).status

    expected = {("GET", "/api/v1/sources"): (200, 200, 200), ("POST", "/api/v1/streams/x/recording/stop"): (403, 404, 404),
                ("GET", "/api/v1/keys"): (403, 403, 200), ("POST", RELOAD): (403, 403, 200)}
    for (method, path), statuses in expected.items():
        got = tuple(status(server, scope, method, path) for scope in keys)
        assert got == statuses, (method, path, got)
    server.weir.stop()
    again = Configured(start, tmp_path, {}, "--state", tmp_path / "state")
    again.weir.secrets += keys.values()
    assert status(again, "read", "GET", "/api/v1/sources") == 200
    assert status(again, "read", "GET", "/api/v1/keys") == 403


def test_without_a_state_folder_nothing_is_kept_and_it_says_so(configured):
    server = configured({})
    for method, path, body in (("POST", "/api/v1/keys", {"name": "a", "publish": ["*"]}),
                               ("PUT", "/api/v1/streams/cam/settings", {"window": "20s"})):
        answer = server.call(method, path, body)
        assert answer.status == 409 and "--state" in answer.json["help"]


def test_a_damaged_control_database_is_told_and_kept(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / "control.sqlite").write_bytes(b"not a database" * 1000)
    done = subprocess.run(
        [tools.weir_binary(), "serve", "--state", state, "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0", "--no-record"],
        capture_output=True, text=True, timeout=20, env=clean_environment())
    assert done.returncode != 0 and "control.sqlite, which has the keys made over the API, cannot be used" in done.stderr
    assert (state / "control.sqlite").stat().st_size == 14_000


def part_target(weir, name: str) -> float | None:
    multivariant = weir.get(f"/live/{name}/index.m3u8")
    if multivariant.status != 200:
        return None
    media = next(line for line in multivariant.text.splitlines() if line and not line.startswith("#"))
    return float(re.search(r"PART-TARGET=([\d.]+)", weir.get(f"/live/{name}/{media}").good().text)[1])


def test_settings_of_a_stream_hold_from_its_next_epoch_and_outlive_the_process(configured, tmp_path, start):
    (tmp_path / "state").mkdir()
    server = configured({"streams": {"cam": {"partDuration": "500ms"}}}, "--state", tmp_path / "state")
    weir = server.weir
    path = "/api/v1/streams/cam/settings"

    def publish_and_measure(weir) -> float:
        publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam")
        try:
            return weir.wait(lambda: live(weir, "cam") and part_target(weir, "cam"), 20, "a playlist")
        finally:
            publisher.interrupt()
            publisher.outcome(10)

    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam")
    weir.wait(lambda: part_target(weir, "cam"), 20, "a playlist")
    assert server.call("PUT", path, {"partDuration": "100ms"}).good().json["fromNextEpoch"] == ["streams.cam.partDuration"]
    time.sleep(1)
    assert part_target(weir, "cam") > 0.4  # what its viewers were told stays
    publisher.interrupt()
    publisher.outcome(10)
    weir.wait(lambda: weir.stream("cam")["state"] == "ended", 10, "the end")
    assert publish_and_measure(weir) < 0.14
    shown = {entry["place"]: entry for entry in server.call("GET", path).good().json["settings"]}
    assert (shown["partDuration"]["value"], shown["partDuration"]["from"]) == ("100ms", "API")

    bad = server.call("PUT", path, {"partDuration": "1h"})
    assert bad.status == 422 and "streams.cam.partDuration: 1h" in bad.json["detail"]
    weir.stop()
    again = Configured(start, tmp_path, {}, "--state", tmp_path / "state")
    shown = {entry["place"]: entry for entry in again.call("GET", path).good().json["settings"]}
    assert shown["partDuration"]["value"] == "100ms"
    assert again.call("DELETE", path).good().json["fromNextEpoch"] == ["streams.cam.partDuration"]
    assert publish_and_measure(again.weir) > 0.18


def test_reloads_under_publishers_and_viewers_disturb_nobody(configured):
    """Random files, good and bad, while streams are published and watched. 50 publishers, 300 viewers and 200 reloads in
    `make faults`, a short form of it otherwise."""
    count, viewers_each, pause, reloads = (50, 6, 1, 200) if LONG else (4, 4, 0.05, 60)
    chance, names = random.Random(15), [f"cam-{number}" for number in range(count)]
    server = configured({"streams": {"*": {"publishKeys": ["key-for-everybody"]}}})
    weir = server.weir
    weir.secrets.append("key-for-everybody")
    running = [publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}?key=key-for-everybody", loop=-1) for name in names]
    over, faults, answers = threading.Event(), [], [0]

    def watch(name: str) -> None:
        last = -1
        media = next(line for line in weir.get(f"/live/{name}/index.m3u8").text.splitlines()
                     if line and not line.startswith("#"))
        while not over.is_set():
            answer = weir.get(f"/live/{name}/{media}")
            found = re.search(r"#EXT-X-MEDIA-SEQUENCE:(\d+)", answer.text) if answer.status == 200 else None
            if not found or int(found[1]) < last or "#EXT-X-ENDLIST" in answer.text:
                faults.append((name, answer.status, answer.text[:200]))
                return
            last = int(found[1])
            answers[0] += 1
            over.wait(pause)

    try:
        for name in names:
            weir.wait(lambda: part_target(weir, name), 30, f"a playlist of {name}")
        viewers = [threading.Thread(target=watch, args=(name,)) for name in names for _ in range(viewers_each)]
        for viewer in viewers:
            viewer.start()
        good = bad = 0
        for _ in range(reloads):
            time.sleep(chance.uniform(0, 0.3) if LONG else 0)
            settings = {"streams": {"*": {"publishKeys": ["key-for-everybody"], "window": f"{chance.randint(20, 90)}s"},
                                    "cam-*": {"partDuration": f"{chance.randint(50, 900)}ms"}},
                        "limits": {"viewers": chance.randint(1000, 5000), "streams": chance.randint(50, 500)},
                        "log": {"level": chance.choice(["info", "notice", "warning"])}}
            if chance.random() < 0.4:
                settings = chance.choice([{**settings, "unknown": 1}, "streams: [", {**settings, "http": {"listen": "?"}},
                                          {"streams": {"*": {"window": "1s"}}}])
            status = server.reload(settings).status
            good, bad = good + (status == 200), bad + (status == 422)
        over.set()
        for viewer in viewers:
            viewer.join(10)
        print(f"{good} good and {bad} bad files, {answers[0]} playlists, {len(faults)} of them wrong")
        assert not faults and good + bad == reloads and good > reloads / 3 and bad > reloads / 6, (faults[:3], good, bad)
        assert all(one.process.poll() is None for one in running) and all(live(weir, name) for name in names)
    finally:
        over.set()
        for one in running:
            one.kill()
