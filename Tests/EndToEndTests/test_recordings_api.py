"""The catalogue of recordings and its HTTP API: lists, pages, deletion and its undo, protection, downloads, thumbnails, start
and stop, and retention."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import time

import pytest

from harness import packets, publishers, sources, tools

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ENVIRONMENT = {"WEIR_ADMIN_TOKEN": TOKEN}


def completed(weir, count: int, seconds: float = 30) -> list[dict]:
    """The finished recordings, newest first, once there are this many."""
    def there():
        page = weir.json("/api/v1/recordings?state=completed")
        return page["recordings"] if page["total"] >= count else None

    return weir.wait(there, seconds, f"{count} finished recordings")


def address(entry: dict) -> str:
    return f"/api/v1/recordings/{entry['stream']}/{entry['file']}"


def act(weir, entry: dict, action: str) -> dict:
    return json.loads(weir.get(f"{address(entry)}/{action}", method="POST", headers=ADMIN).good().body)


def publish_short(weir, *names: str) -> None:
    running = [publishers.ffmpeg("short", f"{weir.rtmp}/live/{name}", rate=4) for name in names]
    for publisher in running:
        publisher.wait(40)


@pytest.fixture(scope="module")
def archive(start_shared):
    """A server with recordings of two streams: three of `cam`, one of `yard`."""
    weir = start_shared(environment=ENVIRONMENT)
    weir.secrets.append(TOKEN)
    publish_short(weir, "cam", "yard")
    completed(weir, 2)
    # Two more without the time to record them: a second start finds them.
    (source,) = (weir.recordings / "cam").glob("*.mp4")
    for name in ("20250301T101500Z.mp4", "20250301T101500Z-2.mp4"):
        shutil.copyfile(source, source.parent / name)
    weir.stop()
    again = start_shared("--record", weir.recordings, "--trusted-proxy", "127.0.0.1", environment=ENVIRONMENT)
    again.recordings = weir.recordings
    again.secrets.append(TOKEN)
    completed(again, 4)
    return again


# MARK: Lists


def test_recordings_are_listed_with_what_is_known_of_them(archive):
    page = archive.json("/api/v1/recordings")
    assert page["total"] == 4 and page["next"] is None and page["complete"] is True
    for entry in page["recordings"]:
        assert entry["state"] == "completed" and abs(entry["seconds"] - 4) < 0.2
        assert entry["codecs"][0].startswith("avc1.") and entry["codecs"][1].startswith("mp4a.")
        assert entry["url"] == f"/recordings/{entry['stream']}/{entry['file']}"
        assert entry["bytes"] == (archive.recordings / entry["stream"] / entry["file"]).stat().st_size
        assert not (entry["salvaged"] or entry["protected"] or entry["gaps"] or entry["reason"] or entry["deletedAt"])
    assert [e["startedAt"] for e in page["recordings"]] == sorted((e["startedAt"] for e in page["recordings"]), reverse=True)
    one = archive.json(address(page["recordings"][0]))
    assert {name: one[name] for name in page["recordings"][0]} == page["recordings"][0]


@pytest.mark.parametrize("query, count", [
    ("stream=cam", 3), ("stream=yard", 1), ("stream=nobody", 0), ("state=completed", 4), ("state=running", 0),
    ("state=failed", 0), ("state=deleted", 0), ("to=2025-12-31T00:00:00Z", 2), ("from=2025-12-31T00:00:00Z", 2),
    ("from=2025-03-01T10:15:00Z&to=2025-03-01T10:15:01Z", 2), ("from=2025-03-01T11:15:00%2B01:00&to=20250301T101501Z", 2),
    ("stream=cam&from=2026-01-01T00:00:00Z", 1), ("stream=&state=&limit=&cursor=", 4),
])
def test_lists_are_narrowed(archive, query, count):
    page = archive.json(f"/api/v1/recordings?{query}")
    assert page["total"] == len(page["recordings"]) == count


@pytest.mark.parametrize("query", [
    "stream=../etc", "from=yesterday", "to=1", "state=odd", "limit=0", "limit=1001", "limit=x", "cursor=x", "cursor=1~2~3"])
def test_a_query_that_means_nothing_is_refused_with_what_would(archive, query):
    answer = archive.get(f"/api/v1/recordings?{query}")
    assert answer.status == 400 and answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body)["help"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pages_hold_every_recording_once(archive, size):
    seen, cursor = [], ""
    while cursor is not None:
        page = archive.json(f"/api/v1/recordings?limit={size}&cursor={cursor}")
        assert len(page["recordings"]) <= size and page["total"] == 4
        seen += [address(entry) for entry in page["recordings"]]
        cursor = page["next"]
    assert seen == [address(entry) for entry in archive.json("/api/v1/recordings")["recordings"]]


def test_the_command_line_lists_the_same(archive):
    command = [tools.weir_binary(), "record", "list", "--folder", str(archive.recordings)]
    listed = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True, timeout=20).stdout)
    assert listed["recordings"] == archive.json("/api/v1/recordings")["recordings"]
    table = subprocess.run([*command, "--stream", "cam"], capture_output=True, check=True, timeout=20).stdout.decode()
    assert len(table.splitlines()) == 3 and all("completed" in line and "0:04" in line for line in table.splitlines())
    missing = subprocess.run([*command[:-1], "/nowhere"], capture_output=True, timeout=20)
    assert missing.returncode == 78 and missing.stderr.count(b"\n") == 1


def test_the_disk_is_told(archive):
    storage = archive.json("/api/v1/storage")
    assert 0 < storage["freeBytes"] < storage["totalBytes"] and storage["keepFreeBytes"] == 1_000_000_000
    assert storage["recordedBytes"] == sum(e["bytes"] for e in archive.json("/api/v1/recordings")["recordings"])
    assert storage["writable"] is True and storage["undoSeconds"] == 3600


# MARK: Authorisation

ROUTES = [("DELETE", ""), ("PUT", ""), ("POST", "/restore"), ("POST", "/protect"), ("POST", "/unprotect")]
CONTROLS = ["start", "stop", "cancel"]
CREDENTIALS = {"none": None, "empty": "Bearer ", "wrong": "Bearer sesame-0815-4712", "bare": TOKEN, "basic": f"Basic {TOKEN}"}


def test_every_route_that_writes_is_closed_without_the_token_and_to_other_origins(archive):
    (entry,) = archive.json("/api/v1/recordings?stream=yard")["recordings"]
    targets = [(method, address(entry) + rest) for method, rest in ROUTES]
    targets += [("POST", f"/api/v1/streams/yard/recording/{action}") for action in CONTROLS]
    host = archive.web.split("://")[1]
    origins = {None: 401, f"http://{host}": 401, "http://evil.example": 403, f"http://{host}1": 403, "null": 403,
               "http://127.0.0.1": 403}
    # An address may not try that often (test_bounds.py), so each try has another one.
    clients = (f"192.0.2.{number}" for number in itertools.count(1))
    for method, path in targets:
        for origin, expected in origins.items():
            headers = {"Origin": origin} if origin else {}
            for credential in CREDENTIALS.values():
                given = headers | ({"Authorization": credential} if credential else {})
                if expected == 401:
                    given["X-Forwarded-For"] = next(clients)
                answer = archive.get(path, method=method, headers=given)
                assert answer.status == expected, (method, path, origin, credential, answer.status)
                assert answer.headers["content-type"] == "application/problem+json"
                assert (answer.status == 401) == ("www-authenticate" in answer.headers)
            if expected == 403:
                assert archive.get(path, method=method, headers=headers | ADMIN).status == 403, (method, path, origin)
        for wrong in ("GET" if path.endswith(("protect", "restore", *CONTROLS)) else "POST", "PATCH"):
            answer = archive.get(path, method=wrong, headers=ADMIN)
            assert answer.status == 405 and method in answer.headers["allow"]
    assert archive.json(address(entry))["deletedAt"] is None and not archive.json(address(entry))["protected"]


def test_without_a_configured_token_no_request_may_write(start):
    weir = start()
    for method, path in [("DELETE", "/api/v1/recordings/cam/20250301T101500Z.mp4"),
                         ("POST", "/api/v1/recordings/cam/20250301T101500Z.mp4/protect"),
                         ("POST", "/api/v1/streams/cam/recording/start")]:
        for headers in ({}, ADMIN, {"Authorization": "Bearer "}, {"Authorization": "Bearer"}):
            answer = weir.get(path, method=method, headers=headers)
            assert answer.status == 403 and "--admin-token" in json.loads(answer.body)["help"]
    assert weir.json("/api/v1/storage")["writable"] is False


def test_a_page_of_another_origin_gets_no_leave_to_write(archive):
    answer = archive.get("/api/v1/recordings/cam/20250301T101500Z.mp4", method="OPTIONS", headers={
        "Origin": "http://evil.example", "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "authorization"})
    assert "DELETE" not in answer.headers.get("access-control-allow-methods", "")
    assert "authorization" not in answer.headers.get("access-control-allow-headers", "").lower()


# MARK: Deleting and protecting


def test_a_deleted_recording_is_gone_until_it_is_restored(archive):
    entry = archive.json("/api/v1/recordings?stream=cam")["recordings"][0]
    before = archive.get(entry["url"]).good()
    # A sanitizer takes more address space than the worker that makes thumbnails may have.
    if not tools.SANITIZER:
        archive.get(entry["thumbnail"]).good()
    gone = json.loads(archive.get(address(entry), method="DELETE", headers=ADMIN).good().body)
    assert gone["deletedAt"] and gone["restorableUntil"] > gone["deletedAt"] and gone["url"] is None
    assert archive.get(entry["url"]).status == 404 and archive.get(entry["thumbnail"]).status == 404
    assert archive.json("/api/v1/recordings")["total"] == 3
    assert [address(e) for e in archive.json("/api/v1/recordings?state=deleted")["recordings"]] == [address(entry)]
    assert archive.json("/api/v1/storage")["deletedBytes"] == entry["bytes"]
    assert archive.get(address(entry), method="DELETE", headers=ADMIN).status == 404
    assert act(archive, entry, "restore")["url"] == entry["url"]
    after = archive.get(entry["url"]).good()
    assert after.body == before.body and after.headers["etag"] == before.headers["etag"]
    assert archive.get(f"{address(entry)}/restore", method="POST", headers=ADMIN).status == 409


def test_a_protected_recording_is_not_deleted(archive):
    entry = archive.json("/api/v1/recordings?stream=cam")["recordings"][0]
    path = archive.recordings / entry["stream"] / entry["file"]
    assert act(archive, entry, "protect")["protected"] is True
    assert stat.S_IMODE(path.stat().st_mode) & 0o222 == 0
    assert archive.get(address(entry), method="DELETE", headers=ADMIN).status == 409 and path.exists()
    assert act(archive, entry, "unprotect")["protected"] is False


def test_a_recording_that_is_not_there_is_404(archive):
    for path in ("/api/v1/recordings/nobody/20250301T101500Z.mp4", "/api/v1/recordings/cam/20250301T101501Z.mp4",
                 "/api/v1/recordings/cam/x.mp4", "/api/v1/recordings/cam", "/api/v1/recordings/cam/20250301T101500Z.mp4/odd"):
        assert archive.get(path).status == 404
        assert archive.get(path, method="DELETE", headers=ADMIN).status in (404, 405)


# MARK: Files and thumbnails


def test_a_download_has_a_name_ranges_and_conditions(archive):
    (entry,) = archive.json("/api/v1/recordings?stream=yard")["recordings"]
    whole = archive.get(entry["url"]).good()
    assert whole.headers["content-disposition"] == f'inline; filename="yard-{entry["file"]}"'
    download = archive.get(f"{entry['url']}?download").good()
    assert download.headers["content-disposition"] == f'attachment; filename="yard-{entry["file"]}"'
    tag = whole.headers["etag"]
    part = archive.get(entry["url"], headers={"Range": "bytes=1000-1999", "If-Range": tag})
    assert part.status == 206 and part.body == whole.body[1000:2000]
    assert part.headers["content-range"] == f"bytes 1000-1999/{len(whole.body)}"
    stale = archive.get(entry["url"], headers={"Range": "bytes=1000-1999", "If-Range": '"other"'})
    assert stale.status == 200 and stale.body == whole.body
    assert archive.get(entry["url"], headers={"If-None-Match": tag}).status == 304
    head = archive.get(entry["url"], method="HEAD")
    assert head.headers["content-length"] == str(len(whole.body)) and head.body == b""


@pytest.mark.skipif(bool(tools.SANITIZER), reason="a sanitizer takes more address space than a worker may have")
def test_a_recording_has_a_thumbnail(archive, tmp_path):
    (entry,) = archive.json("/api/v1/recordings?stream=yard")["recordings"]
    thumbnail = archive.get(entry["thumbnail"]).good()
    assert thumbnail.headers["content-type"] == "image/jpeg"
    path = tmp_path / "thumbnail.jpg"
    path.write_bytes(thumbnail.body)
    errors, _ = packets.decode(path)
    assert errors == ""
    assert archive.get(entry["thumbnail"], headers={"If-None-Match": thumbnail.headers["etag"]}).status == 304
    for path in ("/recordings/yard/20250301T101500Z.jpg", "/recordings/nobody/20250301T101500Z.jpg", "/recordings/yard/x.jpg"):
        assert archive.get(path).status == 404


def far_away(movie: bytes) -> bytes:
    """The same movie, with tables that place its samples beyond the possible size of a file."""
    made = b""
    while movie:
        size, kind = struct.unpack(">I4s", movie[:8])
        payload, movie = movie[8:size], movie[size:]
        if kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
            payload = far_away(payload)
        elif kind == b"stco":
            offsets = struct.unpack(f">{len(payload) // 4 - 2}I", payload[8:])
            kind, payload = b"co64", payload[:8] + b"".join(struct.pack(">Q", 1 << 63 | offset) for offset in offsets)
        made += struct.pack(">I4s", len(payload) + 8, kind) + payload
    return made


def test_a_recording_with_a_wrong_bit_has_no_thumbnail_and_the_server_lives(start, tmp_path):
    folder = tmp_path / "recordings" / "cam"
    folder.mkdir(parents=True)
    plain = tmp_path / "plain.mp4"
    subprocess.run([tools.FFMPEG, "-v", "error", "-i", sources.source("short"), "-c", "copy", plain], check=True)
    (folder / "20250301T101500Z.mp4").write_bytes(far_away(plain.read_bytes()))
    weir = start("--record", tmp_path / "recordings")
    assert weir.get("/recordings/cam/20250301T101500Z.jpg").status == 404
    assert weir.get("/api/v1/streams").status == 200


# MARK: While a stream runs


def test_recording_is_started_stopped_and_cancelled_while_the_stream_runs(start):
    weir = start("--record-mode", "manual", "--segment-duration", "500ms", environment=ENVIRONMENT)
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/cam", loop=-1)

    def control(action: str) -> int | str:
        """The state of the recording afterwards; the status if the request was refused."""
        answer = weir.get(f"/api/v1/streams/cam/recording/{action}?wait=20s", method="POST", headers=ADMIN)
        return answer.json["state"] if answer.status == 200 else answer.status

    def running():
        return next((r for r in weir.recordings_of("cam") if r["state"] == "running" and r["seconds"] > 1), None)

    try:
        weir.wait_state("cam", "live")
        assert weir.recordings_of("cam") == [] and control("stop") == 409 and control("cancel") == 409
        assert control("start") == "running" and control("start") == 409
        entry = weir.wait(running, 15, "cam is being recorded")
        assert entry["url"] is None
        assert weir.get(address(entry), method="DELETE", headers=ADMIN).status == 409
        assert weir.get(f"{address(entry)}/protect", method="POST", headers=ADMIN).status == 409
        assert control("stop") == "completed"
        weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 40, "it is stored")
        assert control("start") == "running"
        weir.wait(running, 15, "cam is being recorded again")
        assert control("cancel") == "cancelled"
        weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 40, "the second is gone")
        assert weir.stream("cam")["state"] == "live"
        assert weir.get("/api/v1/streams/nobody/recording/start", method="POST", headers=ADMIN).status == 404
        assert weir.get("/api/v1/streams/cam/recording/odd", method="POST", headers=ADMIN).status == 404
    finally:
        publisher.kill()


@pytest.mark.parametrize("choice, kinds", [("audio", ["audio"]), ("video", ["video"]), ([1], ["video"]), ("all", ["video", "audio"])])
def test_a_recording_has_the_name_and_the_tracks_that_were_asked_for(start, choice, kinds):
    weir = start("--record-mode", "manual", "--segment-duration", "500ms", environment=ENVIRONMENT)
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/cam", loop=-1, rate=3)

    def begin(body: bytes):
        return weir.get("/api/v1/streams/cam/recording/start?wait=20s", method="POST", headers=ADMIN, body=body)

    try:
        weir.wait_state("cam", "live")
        weir.wait(lambda: len(weir.stream("cam")["tracks"]) == 2, 10, "both tracks")
        for body, status in ((b"{", 400), (b"[]", 400), (b'{"title": "a"}', 422), (b'{"name": "a/b"}', 422),
                             (b'{"tracks": [9]}', 409), (b'{"limits": {"duration": "1"}}', 422)):
            answer = begin(body)
            assert answer.status == status and answer.json["detail"], (body, answer.text)
        assert weir.stream("cam")["recording"] is None
        order = {"name": "Gespräch 1", "tracks": choice, "limits": {"duration": "3s", "bytes": "1GB"}}
        assert begin(json.dumps(order).encode()).status == 200
        entry = weir.wait(lambda: next((r for r in weir.recordings_of("cam") if r["state"] == "completed"), None), 20, "its end")
        assert entry["name"] == "Gespräch 1" and entry["file"].startswith("Gespr-ch-1_20") and 2 < entry["seconds"] < 3.1
        assert weir.stream("cam")["state"] == "live", "the stream goes on"
        path = weir.recordings / "cam" / entry["file"]
        told = json.loads(tools.run(tools.FFPROBE, "-v", "error", "-show_streams", "-show_format", "-count_frames", "-of", "json",
                                    path).stdout)
        assert [stream["codec_type"] for stream in told["streams"]] == kinds and told["format"]["tags"]["title"] == "Gespräch 1"
        assert all(int(stream["nb_read_frames"]) >= 60 for stream in told["streams"])
        disposition = weir.get(entry["url"] + "?download").headers["content-disposition"]
        assert disposition == "attachment; filename=\"Gespr-ch-1.mp4\"; filename*=UTF-8''Gespr%C3%A4ch%201.mp4"
        assert weir.get(f"/recordings/cam/{entry['file'][:-4]}/index.m3u8").status == 200
    finally:
        publisher.kill()


def test_an_action_that_is_not_waited_for_says_where_to_ask_and_a_recording_ends_at_its_size(start):
    weir = start("--record-mode", "manual", "--record-sync", "0s", environment=ENVIRONMENT)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        weir.wait_state("cam", "live")
        began = weir.get("/api/v1/streams/cam/recording/start?wait=0s", method="POST", headers=ADMIN,
                         body=json.dumps({"limits": {"bytes": "500KB"}}).encode())
        # Nothing is written yet, so the answer has the state from which it goes on.
        assert began.status == 202 and began.json["state"] != "running", began.text
        place = began.headers["location"]
        assert weir.wait(lambda: weir.json(place)["recording"]["state"] == "running", 15, "the state that it leads to")
        again = weir.get("/api/v1/streams/cam/recording/start", method="POST", headers=ADMIN)
        assert again.status == 409 and again.json["code"] == "already-recording"
        entry = weir.wait(lambda: next((r for r in weir.recordings_of("cam") if r["state"] == "completed"), None), 30, "its end")
        assert 300_000 < entry["bytes"] <= 500_000 + 100_000 and weir.stream("cam")["state"] == "live", entry
    finally:
        publisher.kill()


def test_a_killed_servers_recording_is_salvaged_and_a_lost_catalogue_is_made_anew(start, tmp_path):
    folder = tmp_path / "kept"
    weir = start("--record", folder)
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1, rate=3)
    weir.wait(lambda: any(r["seconds"] > 2 for r in weir.recordings_of("cam")), 20, "cam is being recorded")
    weir.process.send_signal(signal.SIGKILL)
    weir.process.wait()
    weir.ended = True
    publisher.kill()
    second = start("--record", folder)
    (entry,) = completed(second, 1)
    assert entry["salvaged"] is True and entry["seconds"] > 2
    second.stop()
    (folder / ".catalogue.sqlite").write_bytes(b"no database " * 500)
    third = start("--record", folder)
    (again,) = completed(third, 1)
    third.wait_log("catalogue of recordings is rebuilt")
    assert {k: v for k, v in again.items() if k not in ("salvaged", "startedAt")} == {
        k: v for k, v in entry.items() if k not in ("salvaged", "startedAt")}


@pytest.mark.parametrize("is_ours", [True, False], ids=["our-table", "another-table"])
def test_a_catalogue_that_somebody_else_wrote_ends_nobody(start, tmp_path, is_ours):
    """SQLite keeps any type in any column, and the table may be another program's. Foreign entries are read anew."""
    folder = tmp_path / "kept"
    weir = start("--record", folder, environment=ENVIRONMENT)
    publish_short(weir, "a", "b", "c", "d")
    before = {r["stream"]: r["bytes"] for r in completed(weir, 4)}
    weir.stop()
    with contextlib.closing(sqlite3.connect(folder / ".catalogue.sqlite")) as database:
        if not is_ours:
            database.executescript(
                "ALTER TABLE recording RENAME TO old; CREATE TABLE recording AS SELECT * FROM old; DROP TABLE old;"
                "INSERT INTO recording (stream, name) VALUES (NULL, NULL), (x'ff', x'00'), (7, 8.5);")
        for name, column, value in [("a", "start", "never"), ("b", "bytes", -7), ("c", "codecs", b"\xff"),
                                    ("d", "bytes", 1 << 62)]:
            database.execute(f"UPDATE recording SET {column} = ? WHERE stream = ?", (value, name))
        database.commit()
    again = start("--record", folder, environment=ENVIRONMENT)
    again.wait(lambda: {r["stream"]: r["bytes"] for r in again.json("/api/v1/recordings")["recordings"]} == before, 20,
               "all are listed as they are")
    assert again.json("/api/v1/recordings")["total"] == 4
    assert again.json("/api/v1/storage")["recordedBytes"] == sum(before.values())
    assert tools.run(tools.weir_binary(), "record", "list", "--folder", folder).returncode == 0


# MARK: Retention


def test_the_oldest_recordings_go_when_their_stream_has_too_much(start):
    weir = start("--retain-stream-size", "1MB", environment=ENVIRONMENT)
    publish_short(weir, "cam")
    (first,) = completed(weir, 1)
    folder = weir.recordings / "cam"
    weir.stop()
    size, count = first["bytes"], 1_000_000 // first["bytes"] + 3
    for number in range(count):
        shutil.copyfile(folder / first["file"], folder / f"2025010{number // 24 + 1}T{number % 24:02}0000Z.mp4")
    os.chmod(folder / "20250101T000000Z.mp4", 0o444)
    again = start("--retain-stream-size", "1MB", "--record", weir.recordings)
    # Until the copies are found there is not too much.
    again.wait_log("removed 20250101T010000Z.mp4: its stream has more than --retain-stream-size")
    again.wait(lambda: again.json("/api/v1/recordings?limit=1")["complete"], 15, "all are found")
    again.wait(lambda: again.json("/api/v1/storage")["recordedBytes"] <= 1_000_000, 15, "the oldest are gone")
    left = [r["file"] for r in again.recordings_of("cam")]
    assert first["file"] in left and "20250101T000000Z.mp4" in left, "the newest and the protected one stay"
    assert "20250101T010000Z.mp4" not in left and len(left) == 1_000_000 // size
    assert sorted(left) == sorted(path.name for path in folder.glob("*.mp4"))


def test_recordings_make_room_before_the_disk_is_full(start, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m", "none", disk]).returncode != 0:
        pytest.skip("a disk of its own size needs root")
    try:
        floor = 40_000_000
        flags = ("--record", disk, "--keep-free", f"{floor}B", "--when-full", "evict")
        weir = start(*flags)
        old = disk / "old"
        old.mkdir()
        for number in range(14):
            (old / f"202501{number + 1:02}T000000Z.mp4").write_bytes(bytes(4_000_000))
        weir.stop()
        weir = start(*flags)
        # Four times 4 Mbit/s: two megabytes per second.
        publisher = publishers.ffmpeg("megabyte", f"{weir.rtmp}/live/cam", loop=-1, rate=4)
        least, end, removed = 1 << 60, time.monotonic() + 60, []
        try:
            while len(removed) < 2:
                assert time.monotonic() < end, f"only {removed} were removed\n{weir.tail()}"
                state = os.statvfs(disk)
                least = min(least, state.f_bavail * state.f_frsize)
                removed = [line for _, line in weir.lines if "nearly as full as --keep-free allows" in line]
                time.sleep(0.02)
        finally:
            publisher.kill()
        assert "20250101T000000Z" in removed[0], weir.tail()
        assert len(list(old.glob("*.mp4"))) < 14
        assert least > floor - 10_000_000, f"only {least} bytes were free"
        weir.stop()
    finally:
        subprocess.run(["umount", "-l", disk])
