"""Settings that change while the server runs: the file read again, keys over the API, settings of streams over the API."""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from http.client import IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

import test_callback
from harness import events, http, llhls, publishers, sources, srt, tools
from harness.crowd import Crowd
from harness.programs import free_port
from harness.rawrtmp import RawRTMP, Refused
from harness.weir import clean_environment

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
RELOAD = "/api/v1/settings/reload"
LONG = os.environ.get("WEIR_FAULTS") == "long"


class Configured:
    """A server with a configuration file that the test rewrites."""

    def __init__(self, start, folder, settings: dict, *flags, **options):
        self.path = folder / "weir.yaml"
        self.write(settings)
        self.weir = start("--config", self.path, "--admin-token", TOKEN, *flags, **options)
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

    server.write({"limits": {"viewers": 50}})
    server.weir.send(signal.SIGHUP)
    server.weir.wait_log("settings read again: changed: log.level")  # a line that the request above did not write
    assert server.reload().json == {"changed": [], "fromNextEpoch": [], "needRestart": []}


def test_a_revoked_key_ends_its_publication_and_no_other(configured):
    old, new, other = "key-that-goes-away", "key-that-comes", "key-of-the-other"
    server = configured({"streams": {"cam": {"publishKeys": [old]}, "desk": {"publishKeys": [other]}}})
    server.weir.secrets += [old, new, other]
    running = {name: publishers.ffmpeg("h264-30", f"{server.weir.rtmp}/live/{name}?key={key}", loop=-1)
               for name, key in (("cam", old), ("desk", other))}
    try:
        for name in running:
            server.weir.wait(lambda: live(server.weir, name), 15, f"{name} live")
        answer = server.reload({"streams": {"cam": {"publishKeys": [new]}, "desk": {"publishKeys": [other]}}})
        assert answer.good().json["changed"] == ["streams.cam.publishKeys"]
        code, log = running["cam"].outcome(10)
        assert code != 0
        server.weir.wait_log("its key has been revoked")
        # It is logged at once, and shown once its event is written.
        server.weir.wait_state("cam", "reconnecting")
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
    publisher = publishers.ffmpeg("h264-30", f"{server.weir.rtmp}/live/cam", loop=-1)
    try:
        server.weir.wait(lambda: live(server.weir, "cam"), 15, "cam live")
        held = yaml.safe_load(server.path.read_text())
        added = {**held, "rtmps": {"listen": f"127.0.0.1:{more}"}}
        assert server.reload(added).good().json["changed"] == ["rtmps.listen"]
        with RawRTMP(f"rtmps://127.0.0.1:{more}") as secure:
            secure.start("second")
            assert server.reload(held).good().json["changed"] == ["rtmps.listen"]
            secure.wait_closed(10)
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
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam-1?key={key}", loop=-1)
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


def test_revoking_the_last_key_does_not_open_the_server(configured, tmp_path, start):
    (tmp_path / "state").mkdir()
    server = configured({}, "--state", tmp_path / "state")
    weir = server.weir
    with RawRTMP(weir.rtmp).start("cam") as client:
        client.finish()
    key = server.call("POST", "/api/v1/keys", {"name": "laptop", "publish": ["*"]}).good().json["key"]
    weir.secrets.append(key)
    with RawRTMP(weir.rtmp).start(f"cam?key={key}") as client:
        server.call("DELETE", "/api/v1/keys/laptop").good()
        client.wait_closed(10)
    weir.wait_log("nobody may publish: publishers need a key")
    for name in ("cam", f"cam?key={key}", "other"):
        assert "missing or wrong" in refused(weir, name)
    assert weir.json("/api/v1/streams")["publishKeyRequired"] is True
    # Neither a reload without keys nor the next process opens it.
    server.reload({"limits": {"viewers": 9}}).good()
    assert "missing or wrong" in refused(weir, "cam")
    weir.stop()
    again = Configured(start, tmp_path, {}, "--state", tmp_path / "state")
    assert "missing or wrong" in refused(again.weir, "cam")
    again.weir.wait_log("nobody may publish: publishers need a key")
    # Who asks for it gets it, and it stays so.
    again.reload({"access": {"publishers": "open"}}).good()
    with RawRTMP(again.weir.rtmp).start("cam") as client:
        client.finish()
    again.reload({}).good()
    with RawRTMP(again.weir.rtmp).start("cam") as client:
        client.finish()


@pytest.mark.parametrize("protocol", ["srt", "http", "whip"])
def test_a_named_key_publishes_and_its_revocation_ends_that_in_each_protocol(configured, tmp_path, protocol):
    (tmp_path / "state").mkdir()
    port = free_port()
    server = configured({}, "--state", tmp_path / "state", "--srt", f"127.0.0.1:{port}", "--webrtc", f"127.0.0.1:{free_port()}")
    weir = server.weir
    keys = {name: server.call("POST", "/api/v1/keys", {"name": name, "publish": [f"{name}-*"]}).good().json["key"]
            for name in ("own", "other", "third")}
    weir.secrets += keys.values()

    def publish(key: str) -> publishers.Publisher:
        if protocol == "srt":
            return srt.ffmpeg(sources.ts("short"), port, f"own-1?key={key}", loop=-1)
        if protocol == "http":
            return publishers.Publisher([
                tools.FFMPEG, "-hide_banner", "-nostdin", "-v", "warning", "-re", "-stream_loop", "-1", "-i", str(sources.ts("short")),
                "-c", "copy", "-headers", f"Authorization: Bearer {key}\r\n", "-f", "mpegts", "-method", "POST",
                f"{weir.web}/live/own-1/ingest"])
        return publishers.Publisher([
            tools.new_ffmpeg(), "-v", "warning", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(sources.source("h264-30")),
            "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-profile:v", "baseline", "-g", "30", "-bf", "0",
            "-pix_fmt", "yuv420p", "-c:a", "libopus", "-ar", "48000", "-ac", "2", "-authorization", key,
            "-f", "whip", f"{weir.web}/whip/own-1"])

    def refusals() -> int:
        return sum(one["count"] for one in weir.json("/api/v1/refusals?stream=own-1")["refusals"])

    def is_refused(key: str) -> None:
        """A publisher with that key. What it makes of the refusal is its own affair, and takes some half a minute."""
        before, publisher = refusals(), publish(key)
        try:
            weir.wait(lambda: refusals() > before, 20, "the refusal")
            assert not live(weir, "own-1")
        finally:
            publisher.kill()

    is_refused(keys["other"])
    running = publish(keys["own"])
    try:
        weir.wait(lambda: live(weir, "own-1"), 20, "own-1 live")
        server.call("DELETE", "/api/v1/keys/other").good()
        time.sleep(0.5)
        assert live(weir, "own-1") and running.process.poll() is None, "another key was revoked"
        server.call("DELETE", "/api/v1/keys/own").good()
        weir.wait(lambda: not live(weir, "own-1"), 10, "its publication ended")
    finally:
        running.kill()
    is_refused(keys["own"])


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
        publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
        try:
            return weir.wait(lambda: live(weir, "cam") and part_target(weir, "cam"), 20, "a playlist")
        finally:
            publisher.interrupt()
            publisher.outcome(10)

    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    weir.wait(lambda: part_target(weir, "cam"), 20, "a playlist")
    assert server.call("PUT", path, {"partDuration": "100ms"}).good().json["fromNextEpoch"] == ["streams.cam.partDuration"]
    time.sleep(0.6)
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


def test_reloads_under_publishers_and_viewers_disturb_nobody(configured, tmp_path):
    """Random files, good and bad, as long as streams are published and watched. In `make faults` for 90 s under 50 publishers of
    1 Mbit/s and 300 low-latency players, otherwise a short form of it."""
    count, players, pause, seconds = (50, 6, 1, 90) if LONG else (3, 4, 0.05, 6)
    chance, names = random.Random(15), [f"cam-{number}" for number in range(count)]
    server = configured({"streams": {"*": {"publishKeys": ["key-for-everybody"]}}})
    weir = server.weir
    weir.secrets.append("key-for-everybody")
    running = [publishers.ffmpeg("megabit", f"{weir.rtmp}/live/{name}?key=key-for-everybody", loop=-1) for name in names]
    over, faults, answers = threading.Event(), [], [0]
    crowd = Crowd(tmp_path)

    def media(name: str) -> str:
        multivariant = weir.get(f"/live/{name}/index.m3u8").good().text
        return f"/live/{name}/" + next(line for line in multivariant.splitlines() if line and not line.startswith("#"))

    def watch(name: str) -> None:
        """Looks at the content of the playlist, which the players take as it is."""
        last, path = -1, media(name)
        while not over.is_set():
            answer = weir.get(path)
            found = re.search(r"#EXT-X-MEDIA-SEQUENCE:(\d+)", answer.text) if answer.status == 200 else None
            if not found or int(found[1]) < last or "#EXT-X-ENDLIST" in answer.text or "#EXT-X-DISCONTINUITY\n" in answer.text:
                faults.append((name, answer.status, answer.text[:200]))
                return
            last = int(found[1])
            answers[0] += 1
            over.wait(pause)

    try:
        for name in names:
            weir.wait(lambda: part_target(weir, name), 60, f"a playlist of {name}")
        viewers = [threading.Thread(target=watch, args=(name,)) for name in names]
        for viewer in viewers:
            viewer.start()
        for name in names:
            crowd.watch(weir.web + media(name), players, seconds)
        began, good, bad, reloads = time.monotonic(), 0, 0, 0
        while all(process.poll() is None for process in crowd.running):
            time.sleep(chance.uniform(0, 0.3) if LONG else 0.02)
            settings = {"streams": {"*": {"publishKeys": ["key-for-everybody"], "window": f"{chance.randint(20, 90)}s"},
                                    "cam-*": {"partDuration": f"{chance.randint(50, 900)}ms"}},
                        "limits": {"viewers": chance.randint(1000, 5000), "streams": chance.randint(50, 500)},
                        "log": {"level": chance.choice(["info", "notice", "warning"])}}
            if reloads % 5 in (1, 3):
                settings = ({**settings, "unknown": 1}, "streams: [", {**settings, "http": {"listen": "?"}},
                            {"streams": {"*": {"window": "0s"}}})[reloads // 2 % 4]
            status = server.reload(settings).status
            good, bad, reloads = good + (status == 200), bad + (status == 422), reloads + 1
        took = time.monotonic() - began
        reports = crowd.reports(seconds + 30)
        over.set()
        for viewer in viewers:
            viewer.join(10)
        requests, failures = (sum(one[what] for one in reports) for what in ("requests", "failures"))
        print(f"{good} good and {bad} bad files in {took:.1f} s; {count} publishers; {len(reports) * players} players: {requests} requests, "
              f"{failures} of them failed; {answers[0]} playlists were read, {len(faults)} of them wrong")
        assert failures == 0, [one["problems"] for one in reports if one["problems"]][:3]
        # A player asks for a playlist and a part five times a second.
        assert requests > len(reports) * players * seconds * 5
        assert not faults and good + bad == reloads >= 20 and good > reloads / 3 and bad > reloads / 6, (faults[:3], good, bad)
        assert all(one.process.poll() is None for one in running) and all(live(weir, name) for name in names)
    finally:
        over.set()
        crowd.stop()
        for one in running:
            one.kill()


def test_settings_over_the_api_leave_the_file_as_it_was_read(configured, tmp_path):
    (tmp_path / "state").mkdir()
    server = configured({"limits": {"viewers": 100}}, "--state", tmp_path / "state")
    path = "/api/v1/streams/cam/settings"

    def viewers() -> str:
        return next(one["value"] for one in server.call("GET", "/api/v1/settings").good().json["settings"]
                    if one["place"] == "limits.viewers")

    # Somebody is in the middle of editing the file.
    for text in ("limits: {viewers: 50\n", "limits: {viewers: 50}\nstreams: {cam: {viewers: token}}\n"):
        server.write(text)
        assert server.call("PUT", path, {"partDuration": "100ms"}).status == 200
        assert viewers() == "100"
        assert server.call("DELETE", path).status == 200
    assert server.weir.get("/watch/cam").status != 403
    assert server.reload().good().json["changed"] == ["limits.viewers", "streams.cam.viewers"]
    assert viewers() == "50"


def test_a_row_of_settings_that_cannot_be_read_is_told_and_leaves_the_others(configured, tmp_path, start):
    (tmp_path / "state").mkdir()
    server = configured({}, "--state", tmp_path / "state")
    for name in ("cam", "desk", "stage"):
        server.call("PUT", f"/api/v1/streams/{name}/settings", {"partDuration": "100ms"}).good()
    server.weir.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "control.sqlite")) as database, database:
        database.execute("UPDATE setting SET stream = 'no name' WHERE stream = 'desk'")
        database.execute("UPDATE setting SET text = '{\"partDurations\": 5}' WHERE stream = 'stage'")
    again = Configured(start, tmp_path, {}, "--state", tmp_path / "state")
    again.weir.wait_log("a row of what was set over the API cannot be read and is left out")
    again.weir.wait_log("stage.*what was set over the API is left out: ")

    def part(name: str) -> str:
        return next(one["value"] for one in again.call("GET", f"/api/v1/streams/{name}/settings").good().json["settings"]
                    if one["place"] == "partDuration")

    assert [part(name) for name in ("cam", "desk", "stage")] == ["100ms", "200ms", "200ms"]


# MARK: Listeners, hooks, and what weir allows


def test_srt_comes_moves_and_goes_and_ends_exactly_its_own(configured):
    first, second = free_port(), free_port()
    server = configured({})
    weir = server.weir
    other = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/desk", loop=-1)
    running = [other]
    try:
        assert server.reload({"srt": {"listen": f"127.0.0.1:{first}"}}).good().json == {
            "changed": ["srt.listen"], "fromNextEpoch": [], "needRestart": []}
        running.append(srt.ffmpeg(sources.ts("short"), first, "cam", loop=-1, options="&latency=100000"))
        assert weir.wait_state("cam", "live")["protocol"] == "SRT"
        weir.wait_state("desk", "live")
        assert server.reload({"srt": {"listen": f"127.0.0.1:{second}"}}).good().json["changed"] == ["srt.listen"]
        weir.wait_log("the server no longer listens at this address", 10)
        assert running[1].outcome(15) is not None
        running.append(srt.ffmpeg(sources.ts("short"), second, "moved", loop=-1))
        weir.wait_state("moved", "live")
        assert server.reload({}).good().json["changed"] == ["srt.listen"]
        weir.wait(lambda: weir.stream("moved")["state"] != "live", 10, "the caller of the second address has ended")
        weir.wait(lambda: b"srt" not in b" ".join(weir.children().values()), 10, "the worker is gone")
        for port in (first, second):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", port))  # nobody has it any more
        assert live(weir, "desk") and other.process.poll() is None
    finally:
        for one in running:
            one.kill()


def test_hooks_come_change_and_go_and_deliveries_under_way_go_on(configured, tmp_path):
    (tmp_path / "state").mkdir()
    released = threading.Event()

    def hold(*_) -> int:
        """200; or, where it holds, no answer, once it is let go."""
        if not slow.holds:
            return 200
        released.wait(20)
        return 0

    slow, good = events.Receiver(hold), events.Receiver()
    slow.holds = False
    script, ran = tmp_path / "note", tmp_path / "ran"
    script.write_text(f'#!/bin/sh\necho "$1" >> {ran}\n')
    script.chmod(0o700)

    def hook(receiver, **more) -> dict:
        return {"name": "site", "on": "stream.*", "url": receiver.url, "secret": events.SECRET, **more}

    def publish(name: str) -> None:
        with RawRTMP(server.weir.rtmp).start(name) as client:
            client.finish()

    def kinds(receiver, name: str) -> list[str]:
        return [event["kind"] for _, event in list(receiver.taken) if event["stream"] == name]

    server = configured({}, "--state", tmp_path / "state")
    weir = server.weir
    weir.secrets += [events.SECRET, "geheim"]
    publish("before")
    assert server.reload({"hooks": [hook(slow)]}).good().json == {
        "changed": ["hooks"], "fromNextEpoch": [], "needRestart": []}
    publish("one")
    weir.wait(lambda: kinds(slow, "one") == ["stream.started", "stream.ended"], 10, "two events at the first receiver")
    assert not kinds(slow, "before"), "a new hook begins with what comes"

    # A delivery lasts until the hook has changed, and fails then, without an answer. What is under way is not cut off.
    slow.holds = True
    publish("two")
    weir.wait(lambda: [e for _, e in slow.attempts if e["stream"] == "two"], 20, "a delivery under way")
    assert server.reload({"hooks": [hook(good), {"name": "note", "on": "stream.ended", "run": [str(script), "{stream}"]}]}).good()
    released.set()
    publish("three")
    weir.wait(lambda: kinds(good, "three") == ["stream.started", "stream.ended"], 10, "events at the second receiver")
    weir.wait(lambda: ran.exists() and "three" in ran.read_text(), 10, "the program")
    weir.wait(lambda: kinds(good, "two") == ["stream.started", "stream.ended"], 15, "the failed delivery at its new address")
    deliveries = server.call("GET", "/api/v1/events/deliveries").good().json
    assert [one["name"] for one in deliveries["hooks"]] == ["site", "note"] and "geheim" not in str(deliveries)
    assert len([e for _, e in slow.attempts if e["stream"] == "two"]) == 1

    bad = server.reload({"hooks": [hook(good, on="stream.nothing")]})
    assert bad.status == 422 and "hooks.on" in bad.json["detail"]
    server.write({})
    told = [line for _, line in list(weir.lines) if "settings read again: changed: hooks" in line]
    weir.send(signal.SIGHUP)
    weir.wait(lambda: len([line for _, line in list(weir.lines) if "settings read again: changed: hooks" in line]) > len(told), 10,
              "the settings are read again")
    publish("four")
    time.sleep(0.5)
    assert not kinds(good, "four") and "four" not in ran.read_text()
    assert server.call("GET", "/api/v1/events/deliveries").good().json["hooks"] == []
    for receiver in (slow, good):
        receiver.close()


def test_the_callback_follows_a_reload(configured):
    first, second = (test_callback.Accounts(lambda handler, question, code=code: test_callback.status(handler, code))
                     for code in (204, 403))
    server = configured({"access": {"callback": {"url": first.url, "cache": "0s"}}})
    with RawRTMP(server.weir.rtmp).start("cam") as client:
        assert server.reload({"access": {"callback": {"url": second.url, "cache": "0s"}}}).good().json["changed"] == [
            "access.callback.url"]
        assert "missing or wrong" in refused(server.weir, "desk")
        assert (len(first.questions), len(second.questions)) == (1, 1)
        client.finish()
    # Without a callback nobody decides: the server stays closed until it is opened.
    assert server.reload({}).good()
    assert "missing or wrong" in refused(server.weir, "desk")
    server.weir.wait_log("nobody may publish: publishers need a key")
    assert server.reload({"access": {"publishers": "open"}}).good().json["changed"] == ["access.publishers"]
    with RawRTMP(server.weir.rtmp).start("desk"):
        pass
    for accounts in (first, second):
        accounts.shutdown()


def test_capacity_is_that_of_the_settings_that_hold(configured):
    server = configured({"limits": {"streams": 7}})

    def told() -> tuple[int, str]:
        metrics = server.weir.get("/metrics").good().text
        return (server.weir.json("/api/v1/streams")["capacity"]["streams"],
                re.search(r"^weir_streams_capacity (\S+)", metrics, re.M)[1])

    assert told() == (7, "7")
    server.reload({"limits": {"streams": 5}}).good()
    server.weir.wait(lambda: told() == (5, "5"), 20, "the new capacity")


# MARK: Who may


def test_a_key_of_the_file_has_a_name_an_expiry_and_what_it_allows(configured, tmp_path):
    (tmp_path / "state").mkdir()
    key, admin, old = "key-of-the-laptop-0815", "key-of-the-console-4711", "key-that-is-over-1234"
    ends = time.time() + 5
    expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))
    keys = [{"name": "laptop", "key": key, "publish": "cam-*"},
            {"name": "console", "sha256": hashlib.sha256(admin.encode()).hexdigest(), "scope": "read", "expiresAt": expiry},
            {"name": "old", "key": old, "publish": "*", "expiresAt": "2001-01-01T00:00:00Z"}]
    server = configured({"keys": keys}, "--state", tmp_path / "state")
    weir = server.weir
    weir.secrets += [key, admin, old]
    for name in ("cam-1", f"desk?key={key}", f"cam-1?key={old}"):
        assert "missing or wrong" in refused(weir, name)
    reader = {"Authorization": f"Bearer {admin}"}
    asked = server.call("GET", "/api/v1/sources", headers=reader).status
    assert asked == 200 or time.time() >= int(ends), asked
    with RawRTMP(weir.rtmp).start(f"cam-1?key={key}") as client:
        listed = {one["name"]: one for one in server.call("GET", "/api/v1/keys").good().json["keys"]}
        assert listed["laptop"]["publish"] == ["cam-*"] and listed["old"]["isExpired"]
        assert {one["from"] for one in listed.values()} == {"file"}
        assert server.call("POST", "/api/v1/keys", {"name": "laptop", "watch": ["*"]}).status == 409
        assert server.call("DELETE", "/api/v1/keys/laptop").json["title"] == "In the file"
        server.weir.wait(lambda: server.call("GET", "/api/v1/sources", headers=reader).status == 401, 15, "the end of its time")
        assert time.time() >= int(ends)
        assert server.reload({"keys": keys[1:]}).good().json["changed"] == ["keys"]
        client.wait_closed(10)
    weir.wait_log("its key has been revoked")
    assert "missing or wrong" in refused(weir, f"cam-1?key={key}")


def test_a_key_may_record_its_streams_and_nothing_else(configured):
    key = "key-of-the-director-0815"
    server = configured({"keys": [{"name": "director", "key": key, "record": "cam-*"}],
                         "streams": {"*": {"record": {"mode": "manual"}}}})
    server.weir.secrets.append(key)
    director = {"Authorization": f"Bearer {key}"}
    running = [publishers.ffmpeg("h264-30", f"{server.weir.rtmp}/live/{name}", loop=-1) for name in ("cam-1", "desk")]
    try:
        for name in ("cam-1", "desk"):
            server.weir.wait_state(name, "live")
        path = "/api/v1/streams/cam-1/recording/"
        assert server.call("POST", path + "start?wait=20s", headers=director).good().json["state"] == "running"
        assert server.call("POST", path + "stop?wait=20s", headers=director).good()
        assert server.call("POST", "/api/v1/streams/desk/recording/start", headers=director).status == 401
        assert server.call("GET", "/api/v1/sources", headers=director).status == 401
    finally:
        for one in running:
            one.kill()


def bearer(secret: str, **more) -> str:
    return jwt.encode({"exp": time.time() + 600, "weir": {"watch": "*"}, **more}, secret, "HS256")


def test_keys_of_tokens_follow_a_reload_and_end_what_they_began(configured):
    old, new, name = "old-secret-0123456789-abcdefghijkl", "new-secret-0123456789-abcdefghijkl", "cam"
    settings = {"streams": {"*": {"viewers": "token", "publishKeys": ["key-for-everybody"]}}}
    server = configured({**settings, "access": {"jwt": {"secret": old}}})
    weir = server.weir
    weir.secrets += [old, new, "key-for-everybody"]
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}?key=key-for-everybody", loop=-1)

    def status(token: str) -> int:
        return weir.get(f"/~{token}/live/{name}/index.m3u8").status

    try:
        good, later = bearer(old), bearer(new)
        weir.wait(lambda: status(good) == 200, 20, "cam is live")
        assert status(later) == 403
        sender = RawRTMP(weir.rtmp).start("desk?key=" + bearer(old, weir={"publish": "desk"}))
        watching = http.Stream(f"{weir.web}/~{good}/live/{name}/stream.mp4")
        assert watching.status == 200
        changed = server.reload({**settings, "access": {"jwt": {"secret": new, "issuer": "me"}}}).good().json
        assert changed == {"changed": ["access.jwt.issuer", "access.jwt.secret"], "fromNextEpoch": [], "needRestart": []}
        # Within two seconds, which test_edge_revocation.py measures.
        with contextlib.suppress(ConnectionError, IncompleteRead):
            watching.read(10)
        sender.wait_closed(10)
        assert publisher.process.poll() is None
        assert (status(good), status(later), status(bearer(new, iss="me"))) == (403, 403, 200)
        bad = server.reload({**settings, "access": {"jwt": {"keys": ["/nowhere.pem"]}}})
        assert bad.status == 422 and "/nowhere.pem" in bad.json["detail"] and status(bearer(new, iss="me")) == 200
        assert server.reload(settings).good() and status(bearer(new, iss="me")) == 403
    finally:
        publisher.kill()


def test_a_key_set_at_a_new_address_holds_at_once(configured):
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    sets = [{"keys": [{**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())), "kid": f"k{number}"}]}
            for number, key in enumerate(keys)]

    class Issuer(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(sets[int(self.path[1:])]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    issuer = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=issuer.serve_forever, daemon=True).start()

    def settings(number: int) -> dict:
        return {"access": {"jwt": {"keySet": f"http://127.0.0.1:{issuer.server_address[1]}/{number}"}}}

    server = configured(settings(0))

    def statuses() -> list[int]:
        tokens = [jwt.encode({"exp": time.time() + 60, "weir": {"admin": "read"}}, key, "ES256", headers={"kid": f"k{number}"})
                  for number, key in enumerate(keys)]
        return [server.call("GET", "/api/v1/sources", headers={"Authorization": f"Bearer {token}"}).status for token in tokens]

    server.weir.wait(lambda: statuses() == [200, 401], 20, "the first set")
    assert server.reload(settings(1)).good().json["changed"] == ["access.jwt.keySet"]
    assert statuses() == [401, 200]
    issuer.shutdown()


def test_what_an_open_stream_gave_ends_when_it_wants_tokens(configured):
    """A playlist that waits, a segment that grows, stream.mp4. Those with a token go on, and so do other streams."""
    secret, settings = "viewer-secret-0123456789-abcdefghij", {"*": {"segmentDuration": "8s", "targetDuration": 20}}
    server = configured({"streams": settings, "access": {"jwt": {"secret": secret}}})
    weir = server.weir
    weir.secrets.append(secret)
    token = bearer(secret)
    running = [publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=-1) for name in ("cam", "desk")]
    #: Status and length of what has ended.
    ended: dict[str, tuple[int, int]] = {}

    def read(what: str, url: str) -> None:
        length, stream = 0, http.Stream(url, timeout=60)
        with contextlib.suppress(ConnectionError, IncompleteRead):
            while piece := stream.answer.read1(1 << 16):
                length += len(piece)
        ended[what] = (stream.status, length)

    try:
        def media(name: str) -> str:
            index = weir.wait(lambda: weir.get(f"/live/{name}/index.m3u8").status == 200 and
                              weir.get(f"/live/{name}/index.m3u8").text, 40, "a playlist")
            return f"/live/{name}/" + next(line for line in index.splitlines() if line and not line.startswith("#"))

        cam, desk = media("cam"), media("desk")
        folder = cam.rsplit("/", 1)[0]

        def begun() -> int:
            """The number of the segment that is made, in its first two seconds. It grows for longer than the test looks at it."""
            segment, part = llhls.parse(weir.get(cam + "?_HLS_msn=0&_HLS_part=0").good().text, weir.web + cam).next
            return segment if part <= 10 else 0

        growing = weir.wait(begun, 30, "a segment that begins", every=0.2)
        reading = {"playlist": f"{cam}?_HLS_msn={growing + 1}", "segment": f"{folder}/{growing}.m4s", "mp4": "/live/cam/stream.mp4",
                   "of another": "/live/desk/stream.mp4", "with a token": f"/~{token}/live/cam/stream.mp4"}
        # Several wait for one playlist: the first asked, the others joined it.
        reading |= {f"playlist {number}": reading["playlist"] for number in range(3)}
        threads = [threading.Thread(target=read, args=(what, weir.web + path), daemon=True) for what, path in reading.items()]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        assert not ended, ended
        answer = server.reload({"streams": {**settings, "cam": {**settings["*"], "viewers": "token"}},
                                "access": {"jwt": {"secret": secret}}}).good().json
        assert answer["changed"] == ["streams.cam.viewers"]
        # Within two seconds, which test_edge_revocation.py measures.
        weir.wait(lambda: len(ended) >= len(reading) - 2, 10, "the ends")
        assert set(ended) == set(reading) - {"of another", "with a token"}, ended
        assert {ended[what][0] for what in ended if what.startswith("playlist")} == {403}
        whole = weir.get(f"/~{token}{folder}/{growing}.m4s").good().body
        assert 0 < ended["segment"][1] < len(whole), (ended["segment"], len(whole))
        assert weir.get(cam).status == 403 and weir.get(f"/~{token}{cam}").status == 200 and weir.get(desk).status == 200
    finally:
        for one in running:
            one.kill()
