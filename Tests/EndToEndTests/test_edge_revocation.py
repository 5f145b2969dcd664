"""What a revoked key stops, also behind nginx (auth_request) and Varnish with the configurations of docs/cdn: what the key began, in
time, and nothing else."""

import contextlib
import json
import os
import threading
import time
import urllib.parse
from http.client import HTTPConnection, IncompleteRead

import pytest

import test_cdn
from harness import http, llhls, publishers, sources, tools
from harness.metrics import Metrics
from test_viewer_tokens import NAME, media_playlist, served

ADMIN = "sesame-0815-4711"
#: Seconds for which an edge may go by what it was told of a token.
RECHECK = 1
#: Seconds until what has no end ends: the promise (docs), and what a busy machine may take. One test measures it alone.
PROMISE, PATIENCE = 2, 10


def make(weir, name: str, **rights) -> str:
    answer = weir.get("/api/v1/keys", method="POST", headers={"Authorization": f"Bearer {ADMIN}"},
                      body=json.dumps({"name": name, **rights}).encode())
    weir.secrets.append(answer.good().json["key"])
    return weir.secrets[-1]


def revoke(weir, name: str) -> float:
    weir.get(f"/api/v1/keys/{name}", method="DELETE", headers={"Authorization": f"Bearer {ADMIN}"}).good()
    return time.monotonic()


class Endless:
    """A response without an end. `ended`: when it ended all the same. `seen`: what came last, and when."""

    def __init__(self, url: str, **headers):
        self.stream = http.Stream(url, timeout=30, headers=headers)
        assert self.stream.status == 200, self.stream.status
        self.ended: float | None = None
        self.seen, self.last = b"", 0.0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ConnectionError, IncompleteRead, TimeoutError, ValueError):
            while piece := self.stream.answer.read1(1 << 16):
                self.seen, self.last = (self.seen + piece)[-10_000:], time.monotonic()
        self.ended = time.monotonic()

    def close(self) -> None:
        self.stream.interrupt()
        self.thread.join(5)
        self.stream.close()


class Poller:
    """A player that asks an edge for each of some paths, again and again, on one connection. `answers`: (time of asking, path,
    status)."""

    def __init__(self, port: int, paths: list[str]):
        self.port, self.paths, self.answers, self.stops = port, paths, [], False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        while not self.stops:
            for path in self.paths:
                asked = time.monotonic()
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                self.answers.append((asked, path, answer.status))
            time.sleep(0.1)
        connection.close()

    def refused(self) -> bool:
        """Whether the last answer for each path is a refusal."""
        last = {path: status for _, path, status in list(self.answers)}
        return set(last) == set(self.paths) and all(status in (403, 429) for status in last.values())

    def statuses(self, since: float = 0, until: float = float("inf")) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {path: set() for path in self.paths}
        for asked, path, status in list(self.answers):
            if since <= asked < until:
                found[path].add(status)
        return found

    def stop(self) -> None:
        self.stops = True
        self.thread.join(25)


@pytest.mark.parametrize("kind, is_timed", [
    *((kind, False) for kind in test_cdn.CACHES),
    *(pytest.param(kind, True, marks=[pytest.mark.quiet, pytest.mark.long], id=f"{kind}-in-time") for kind in test_cdn.CACHES)])
def test_a_revoked_key_stops_its_viewer_alone(start, tmp_path, kind, is_timed):
    """Playlists and media within the time of the recheck and a second; what has no end (stream.mp4, events) within two."""
    os.chmod(tmp_path, 0o755)
    (tmp_path / "state").mkdir()
    # The window has to the end of the test what is listed at its beginning.
    weir = start("--no-record", "--viewers", "token", "--viewers-recheck", f"{RECHECK}s", "--trusted-proxy", "127.0.0.1",
                 "--segment-duration", "1s", "--window", "5m", "--state", tmp_path / "state", environment={"WEIR_ADMIN_TOKEN": ADMIN})
    keys = {name: make(weir, name, watch=["cam-*"]) for name in ("ann", "bob")}
    readers = {name: make(weir, name, scope="read") for name in ("clerk", "auditor")}
    with served(weir, NAME), contextlib.ExitStack() as stack:
        cache = test_cdn.CACHES[kind](tmp_path, weir.web)
        stack.callback(cache.stop)
        url = media_playlist(f"{cache.web}/~{keys['bob']}")
        playlist = llhls.parse(http.fetch(url).good().text, url)
        paths = [f"live/{NAME}/index.m3u8", *(
            urllib.parse.urlsplit(urllib.parse.urljoin(url, uri)).path.split("/", 2)[2] for uri in ("index.m3u8", [one.uri for one in playlist.segments if one.uri][-1]))]

        def enter(one):
            stack.callback(one.stop if isinstance(one, Poller) else one.close)
            return one

        players = {name: enter(Poller(cache.port, [f"/~{key}/{path}" for path in paths])) for name, key in keys.items()}
        films = {name: enter(Endless(f"{cache.web}/~{key}/live/{NAME}/stream.mp4")) for name, key in keys.items()}
        told = {name: enter(Endless(f"{cache.web}/api/v1/events", Accept="text/event-stream", Authorization=f"Bearer {key}"))
                for name, key in readers.items()}
        time.sleep(RECHECK + 1.5)  # real time: longer than an edge remembers, so all of it is asked for twice
        begun = time.monotonic()
        weir.wait(lambda: all(all(one.statuses().values()) for one in players.values()), PATIENCE, "an answer for each path")
        assert all(found <= {200} for one in players.values() for found in one.statuses(until=begun).values()), {
            name: one.statuses() for name, one in players.items()}
        assert all(one.ended is None for one in (*films.values(), *told.values()))
        revoked = max(revoke(weir, "ann"), revoke(weir, "clerk"))
        for one in (films["ann"], told["clerk"]):
            weir.wait(lambda one=one: one.ended, PATIENCE, "the end of what has none")
            assert not is_timed or one.ended - revoked < PROMISE + 0.3, one.ended - revoked
        weir.wait(players["ann"].refused, PATIENCE + RECHECK, "the refusals")
        since = revoked + RECHECK + 1 if is_timed else time.monotonic()
        # Who goes on asking with it is told to wait, as anybody with a wrong one.
        seen = len(players["ann"].answers)
        weir.wait(lambda: len(players["ann"].answers) > seen + 3 * len(paths) and all(players["ann"].statuses(since=since).values()),
                  PATIENCE + RECHECK, "further answers for each path")
        late = players["ann"].statuses(since=since)
        assert len(late) == 3 and all(found and found <= {403, 429} for found in late.values()), late
        assert 403 in set().union(*players["ann"].statuses(since=revoked).values())
        for path in players["ann"].paths:
            assert http.fetch(cache.web + path).headers["cache-control"] == "no-store"
        # Nobody else noticed, and events come to whoever may still read them.
        assert players["bob"].thread.is_alive(), "its connection goes on"
        found = players["bob"].statuses()
        assert all(statuses == {200} for statuses in found.values()) and all(players["bob"].statuses(since).values()), found
        now = time.monotonic()
        weir.wait(lambda: films["bob"].last > now, PATIENCE, "the other's film goes on")
        assert films["bob"].ended is None
        with contextlib.suppress(ConnectionError):
            weir.get("/api/v1/admin", headers={"Authorization": "Bearer wrong"})
        weir.wait(lambda: b"access.refused" in told["auditor"].seen, PATIENCE, "an event at the other reader")
        assert told["auditor"].ended is None


@pytest.mark.quiet
def test_what_a_revoked_key_began_ends_within_two_seconds(start, tmp_path):
    """A film, the stream of events, and a playlist that waits."""
    (tmp_path / "state").mkdir()
    weir = start("--no-record", "--viewers", "token", "--segment-duration", "8s", "--target-duration", "20", "--state", tmp_path / "state",
                 environment={"WEIR_ADMIN_TOKEN": ADMIN})
    key, clerk = make(weir, "ann", watch=["cam-*"]), make(weir, "clerk", scope="read")
    with served(weir, NAME), contextlib.ExitStack() as stack:
        url = media_playlist(f"{weir.web}/~{key}")
        begun = {"film": Endless(f"{weir.web}/~{key}/live/{NAME}/stream.mp4"),
                 "events": Endless(f"{weir.web}/api/v1/events", Accept="text/event-stream", Authorization=f"Bearer {clerk}")}
        for one in begun.values():
            stack.callback(one.close)
        weir.wait(lambda: begun["film"].last, 10, "media")
        ended: dict[str, float] = {}

        def wait_for_a_playlist() -> None:
            # Of a segment that is made for as long as the test looks.
            segment = llhls.parse(http.fetch(f"{url}?_HLS_msn=0&_HLS_part=0").good().text, url).next[0]
            ended["status"] = http.fetch(f"{url}?_HLS_msn={segment}").status
            ended["playlist"] = time.monotonic()

        waiting = threading.Thread(target=wait_for_a_playlist, daemon=True)
        waiting.start()
        time.sleep(0.3)
        assert "playlist" not in ended and all(one.ended is None for one in begun.values())
        revoked = max(revoke(weir, "ann"), revoke(weir, "clerk"))
        waiting.join(10)
        for name, one in begun.items():
            ended[name] = weir.wait(lambda one=one: one.ended, 10, f"the end of the {name}")
        late = {name: round(ended[name] - revoked, 2) for name in ("film", "events", "playlist")}
        assert ended["status"] == 403 and max(late.values()) < PROMISE + 0.3, (ended["status"], late)


def test_a_revoked_key_ends_what_waits_and_what_grows_and_nothing_of_another(start, tmp_path):
    """Without an edge: a playlist that waits, a segment that is made, stream.mp4, by path and by bearer."""
    (tmp_path / "state").mkdir()
    weir = start("--no-record", "--viewers", "token", "--segment-duration", "8s", "--target-duration", "20", "--state", tmp_path / "state",
                 environment={"WEIR_ADMIN_TOKEN": ADMIN})
    keys = {name: make(weir, name, watch=["cam-*"]) for name in ("ann", "bob")}
    with served(weir, NAME):
        url = media_playlist(f"{weir.web}/~{keys['bob']}")
        path = urllib.parse.urlsplit(url).path.split("/", 2)[2]

        def begun() -> int:
            """The number of the segment that is made, in its first two seconds. It grows for longer than the test looks at it."""
            segment, part = llhls.parse(http.fetch(f"{url}?_HLS_msn=0&_HLS_part=0").good().text, url).next
            return segment if part <= 10 else 0

        growing = weir.wait(begun, 30, "a segment that begins", every=0.2)
        reading: dict[str, tuple[float, int, int]] = {}

        def read(what: str, address: str, headers: dict[str, str]) -> None:
            stream = http.Stream(weir.web + address, timeout=60, headers=headers)
            length = 0
            with contextlib.suppress(ConnectionError, IncompleteRead):
                while piece := stream.answer.read1(1 << 16):
                    length += len(piece)
            reading[what] = (time.monotonic(), stream.status, length)

        wanted = {"playlist": f"/{path}?_HLS_msn={growing + 1}", "segment": f"/{path.rsplit('/', 1)[0]}/{growing}.m4s",
                  "film": f"/live/{NAME}/stream.mp4"}
        for name, key in keys.items():
            for what, address in wanted.items():
                for way, place, headers in (("path", f"/~{key}{address}", {}), ("bearer", address, {"Authorization": f"Bearer {key}"})):
                    thread = threading.Thread(target=read, args=(f"{name} {what} {way}", place, headers), daemon=True)
                    thread.start()
        time.sleep(0.5)
        assert not reading, reading
        revoke(weir, "ann")
        hers = {f"ann {what} {way}" for what in wanted for way in ("path", "bearer")}
        weir.wait(lambda: hers <= set(reading), PATIENCE, "the ends")
        assert {reading[f"ann playlist {way}"][1] for way in ("path", "bearer")} == {403}
        assert all(reading[f"ann {what} {way}"][1:] > (200, 0) for what in ("segment", "film") for way in ("path", "bearer")), reading
        # Another key gets the whole segment, and goes on.
        weir.wait(lambda: {f"bob segment {way}" for way in ("path", "bearer")} <= set(reading), 15, "the end of the segment")
        assert reading["bob segment path"][1:] == reading["bob segment bearer"][1:] > reading["ann segment path"][1:]
        assert "bob film path" not in reading and "bob film bearer" not in reading


def test_a_revoked_publish_key_ends_its_upload_through_nginx_and_no_other(start, tmp_path):
    os.chmod(tmp_path, 0o755)
    (tmp_path / "state").mkdir()
    weir = start("--no-record", "--trusted-proxy", "127.0.0.1", "--state", tmp_path / "state", environment={"WEIR_ADMIN_TOKEN": ADMIN})
    keys = {name: make(weir, name, publish=[f"{name}-*"]) for name in ("own", "other")}
    film = sources.ts("short")

    def publish(name: str, key: str) -> publishers.Publisher:
        return publishers.Publisher([
            tools.FFMPEG, "-hide_banner", "-nostdin", "-v", "warning", "-readrate", "8", "-stream_loop", "-1", "-i", str(film), "-c", "copy",
            "-headers", f"Authorization: Bearer {key}\r\n", "-f", "mpegts", "-method", "POST", f"{cache.web}/live/{name}/ingest"])

    cache, running = test_cdn.Nginx(tmp_path, weir.web), []
    try:
        running = [publish("own-1", keys["own"]), publish("other-1", keys["other"])]
        for name in ("own-1", "other-1"):
            weir.wait_state(name, "live", seconds=20)
        index = f"{cache.web}/live/own-1/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist through the edge")
        # More than the megabyte that nginx takes of a body by itself.
        weir.wait(lambda: all(Metrics(weir).total("weir_ingest_bytes_total", stream=name) > 5 << 18 for name in ("own-1", "other-1")), 30,
                  "more than a megabyte")
        assert all(one.process.poll() is None for one in running)
        revoke(weir, "own")
        weir.wait(lambda: weir.stream("own-1")["state"] != "live", PATIENCE, "its publication has ended")
        weir.wait_log("its key has been revoked")
        # nginx reads on for half a minute, so the client does not notice before.
        running.pop(0).kill()

        def refused() -> bool:
            told = weir.get("/api/v1/refusals?stream=own-1").good().json["refusals"]
            return any("key is missing or wrong" in one["reason"] for one in told)

        assert not refused()
        running.append(publish("own-1", keys["own"]))
        weir.wait(refused, 20, "the refusal of the revoked key")
        assert weir.stream("own-1")["state"] != "live"
        assert weir.stream("other-1")["state"] == "live" and running[0].process.poll() is None
    finally:
        for one in running:
            one.kill()
        cache.stop()
