"""Events: the log over HTTP, webhooks, programs, and crashes: nothing is seen before its event is written."""

import concurrent.futures
import datetime
import json
import os
import pathlib
import random
import re
import signal
import stat
import statistics
import subprocess
import threading
import time

import pytest

from harness import disks, publishers, tools
from harness.events import ADMIN, SECRET, TOKEN, Receiver, configured, play, wait
from harness.rawrtmp import RawRTMP, Refused

KILLS = [1000] if os.environ.get("WEIR_FAULTS") else [4, pytest.param(40, marks=pytest.mark.long)]


# MARK: The log over HTTP


@pytest.fixture(scope="module")
def told(start_shared, tmp_path_factory):
    return start_shared(*configured(tmp_path_factory.mktemp("told")), "--reconnect-window", "2s")


def test_a_stream_of_events_tells_what_happens_and_goes_on_behind_the_last_one(told, follow):
    events = follow(told.web)
    other = follow(told.web, "?stream=other-*")
    stored = follow(told.web, "?kind=recording.stored,stream.ended")
    play(told, "cam")
    events.wait(lambda self: "recording.stored" in self.kinds("cam"))
    assert [kind for kind in events.kinds("cam") if kind.startswith("stream.")][0] == "stream.started"
    assert {"stream.started", "recording.started", "recording.stored"} <= set(events.kinds("cam"))
    assert not other.events
    stored.wait(lambda self: "recording.stored" in self.kinds("cam"))
    assert set(stored.kinds("cam")) <= {"recording.stored", "stream.ended"}
    ids = [event["id"] for _, event in events.events]
    assert ids == sorted(set(ids))
    recording = next(event for _, event in events.events if event["kind"] == "recording.stored")
    known = told.json(f"/api/v1/recordings/cam/{recording['data']['file']}")
    assert known["bytes"] == recording["data"]["bytes"] and known["startedAt"] == recording["data"]["startedAt"]
    assert told.get(recording["data"]["url"], method="HEAD").status == 200

    again = follow(told.web, last=ids[0])
    again.wait(lambda self: len(self.events) >= len(ids) - 1)
    assert [event["id"] for _, event in again.events][: len(ids) - 1] == ids[1:]
    page = told.get(f"/api/v1/events?after={ids[0]}&limit=1", headers=ADMIN).good().json
    assert [event["id"] for event in page["events"]] == ids[1:2] and page["more"] and page["durable"] and not page["gap"]
    for stream in (events, other, stored, again):
        stream.close()


def test_a_stored_recording_is_there_when_it_is_told(start, tmp_path, follow):
    """Each name takes the disk 0.4 s."""
    disks.needs("strace", root=False)
    handed = tmp_path / "handed"
    program = tmp_path / "archive"
    program.write_text(f"#!/bin/sh\n[ -s \"$1\" ] && echo there >> {handed} || echo missing >> {handed}\n")
    program.chmod(0o755)
    weir = start(*configured(tmp_path, {"on": "recording.stored", "run": [str(program), "{path}"]}))
    events = follow(weir.web, "?kind=recording.stored")
    with disks.Faults(weir, tmp_path / "trace", "?renameat:delay_enter=400000", "?renameat2:delay_enter=400000"):
        play(weir, "cam")
        events.wait(lambda self: self.events)
        told = events.events[0][1]["data"]
        assert weir.get(told["url"], method="HEAD").status == 200
        known = weir.json(f"/api/v1/recordings/cam/{told['file']}")
        assert (known["bytes"], known["state"]) == (told["bytes"], "completed")
        # The shell makes the file before it writes.
        wait(lambda: handed.exists() and handed.read_text(), 10)
    assert handed.read_text() == "there\n"
    events.close()


def test_an_event_is_on_the_disk_before_it_is_seen(start, tmp_path, follow):
    """Each sync takes the disk 0.4 s, and no event comes earlier: it survives a power failure."""
    disks.needs("strace", root=False)
    weir = start(*configured(tmp_path))
    events = follow(weir.web, "?kind=stream.started")
    with disks.Faults(weir, tmp_path / "trace", "?fdatasync:delay_enter=400000"):
        began = time.monotonic()
        with RawRTMP(weir.rtmp).start("cam") as client:
            events.wait(lambda self: self.events)
            assert time.monotonic() - began >= 0.4
            client.finish()
    events.close()


@pytest.mark.parametrize("query", ["after=x", "after=-1", "after=99999999999999999999", "after=9223372036854775807",
                                   "after=1e3", "limit=0", "limit=1001", "kind=nothing", "stream=a%20b", "after=%00"])
def test_an_odd_query_is_refused(told, query):
    response = told.get(f"/api/v1/events?{query}", headers=ADMIN)
    assert response.status == 400 and "detail" in response.json


def test_events_are_for_admins_and_an_address_has_few_streams(start, tmp_path, follow):
    told = start(*configured(tmp_path), "--no-record")
    assert told.get("/api/v1/events").status == 401
    assert told.get("/api/v1/events", headers={"Authorization": "Bearer wrong"}).status == 401
    wait(lambda: any(event["kind"] == "access.refused"
                     for event in told.get("/api/v1/events", headers=ADMIN).json["events"]), 15)
    bad = told.get("/api/v1/events", headers={**ADMIN, "Accept": "text/event-stream", "Last-Event-ID": "x"})
    assert bad.status == 400
    streams = [follow(told.web) for _ in range(16)]
    full = told.get("/api/v1/events", headers={**ADMIN, "Accept": "text/event-stream"})
    assert full.status == 429 and full.headers["retry-after"]
    for stream in streams:
        stream.close()
    wait(lambda: told.get("/api/v1/events?limit=1", headers=ADMIN).status == 200, 15)


def test_a_publisher_that_is_refused_and_one_that_is_lost_are_told(told, follow):
    events = follow(told.web, "?stream=lost")
    client = RawRTMP(told.rtmp).start("lost")
    with pytest.raises(Refused), RawRTMP(told.rtmp) as second:
        second.start("lost")
    events.wait(lambda self: "publisher.refused" in self.kinds("lost"))
    client.reset()
    events.wait(lambda self: "stream.ended" in self.kinds("lost"))
    assert [kind for kind in events.kinds("lost") if kind.startswith("stream.")] == [
        "stream.started", "stream.interrupted", "stream.ended"]
    events.close()


@pytest.mark.quiet
def test_an_event_is_out_soon(start, tmp_path, follow):
    """50 ms at most; measured on this machine from the event's own time to its arrival."""
    told = start(*configured(tmp_path), "--no-record")
    events = follow(told.web, "?kind=stream.started,stream.ended")
    for number in range(12):
        with RawRTMP(told.rtmp).start(f"quick-{number % 8}") as client:
            client.finish()
        time.sleep(0.05)
    events.wait(lambda self: len(self.events) >= 24)
    delays = sorted(
        (arrival - datetime.datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp()) * 1000
        for arrival, event in events.events)
    events.close()
    print(f"events: median {statistics.median(delays):.1f} ms, p95 {delays[int(len(delays) * 0.95)]:.1f} ms")
    assert delays[int(len(delays) * 0.95)] <= 50, delays[-8:]


def test_events_come_over_http2_and_end_with_the_key_that_reads_them(start, tmp_path):
    certificate, key = tools.make_certificate(tmp_path)
    (tmp_path / "state").mkdir()
    weir = start("--https", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key, "--admin-token", TOKEN, "--no-record",
                 "--state", tmp_path / "state", listeners=("http", "https", "rtmp"))
    made = weir.get("/api/v1/keys", method="POST", headers=ADMIN, body=b'{"name": "reader", "scope": "read"}').good().json
    weir.secrets.append(made["key"])
    command = ["curl", "-skN", "--http2", "-H", "Accept: text/event-stream", "-D", "-"]

    def follow(token: str):
        return subprocess.Popen([*command, "-H", f"Authorization: Bearer {token}", f"{weir.addresses['https']}/api/v1/events"],
                                stdout=subprocess.PIPE, text=True)

    with follow(made["key"]) as reader, follow(TOKEN) as admin:
        try:
            lines = iter(reader.stdout.readline, "")
            assert next(lines).startswith("HTTP/2 200")
            while ": weir" not in next(lines):
                pass
            with RawRTMP(weir.rtmp).start("cam") as client:
                client.finish()
            kinds = []
            while len(kinds) < 2:
                line = next(lines)
                if line.startswith("event: stream."):
                    kinds.append(line.strip())
            assert kinds == ["event: stream.started", "event: stream.ended"]
            weir.get("/api/v1/keys/reader", method="DELETE", headers=ADMIN).good()
            assert reader.wait(15) != 0
            assert admin.poll() is None
        finally:
            reader.kill()
            admin.kill()


# MARK: Webhooks and programs


def test_a_webhook_is_signed_repeated_and_in_order(start, tmp_path):
    """The receiver fails twice for one stream: its events wait, those of another do not."""
    def answer(event, attempt):
        return 500 if event["stream"] == "cam" and event["kind"] == "stream.started" and attempt == 1 else 200

    receiver = Receiver(answer)
    weir = start(*configured(tmp_path, {"name": "all", "on": ["stream.*", "recording.*"], "url": receiver.url, "secret": SECRET}),
                 "--reconnect-window", "1s")
    weir.secrets += [SECRET, "geheim"]
    play(weir, "cam")
    play(weir, "other")
    wait(lambda: any(event["stream"] == "other" and event["kind"] == "stream.ended" for _, event in receiver.taken), 15,
         lambda: f"{receiver.taken}\n{weir.tail()}")
    wait(lambda: any(event["stream"] == "cam" and event["kind"] == "recording.stored" for _, event in receiver.taken), 15,
         lambda: f"{receiver.taken}\n{weir.tail()}")
    for name in ("cam", "other"):
        of_stream = [event for _, event in receiver.taken if event["stream"] == name]
        assert [event["id"] for event in of_stream] == sorted({event["id"] for event in of_stream})
    assert all(number == f"evt_{event['id']}" for number, event in receiver.taken)
    wait(lambda: weir.get("/api/v1/events/deliveries", headers=ADMIN).json["hooks"][0]["waiting"] == 0, 15)
    known = weir.get("/api/v1/events/deliveries", headers=ADMIN).good()
    failed = [one for one in known.json["deliveries"] if not one["done"]]
    assert [(one["outcome"], one["attempt"], one["hook"]) for one in failed] == [("500", 1, "all")], failed
    [repeated] = [one for one in known.json["deliveries"] if one["event"] == failed[0]["event"] and one["attempt"] == 2]

    def moment(one: dict) -> float:
        return datetime.datetime.fromisoformat(one["at"].replace("Z", "+00:00")).timestamp()

    # By the server's clock: the receiver may take its time.
    assert 4 <= moment(repeated) - moment(failed[0]) - failed[0]["milliseconds"] / 1000 <= 8
    assert "geheim" not in known.text
    receiver.close()


def test_an_event_that_is_refused_delays_its_own_stream_alone_and_nothing_else_is_repeated(start, tmp_path):
    """A thousand newer events of other streams are more than a hook has in memory."""
    refuses = True

    def answer(event, attempt):
        return 500 if refuses and event["stream"] == "cam" else 200

    receiver = Receiver(answer)
    flags = configured(tmp_path, {"name": "all", "on": "stream.*", "url": receiver.url, "secret": SECRET})
    weir = start(*flags, "--no-record", "--max-names", "1000")
    weir.secrets += [SECRET, "geheim"]

    def come_and_go(name: str) -> None:
        end = time.monotonic() + 10
        while True:
            try:
                with RawRTMP(weir.rtmp).start(name) as client:
                    return client.finish()
            except Refused as refusal:
                # The end of the last one may reach the server after this. Encoders try again.
                assert refusal.code == "NetStream.Publish.BadName" and time.monotonic() < end, refusal
                time.sleep(0.05)

    def told(name: str) -> list[int]:
        return [event["id"] for _, event in receiver.taken if event["stream"] == name]

    come_and_go("cam")
    wait(lambda: receiver.attempts, 10, weir.tail)

    def come_and_go_often(group: int) -> None:
        for number in range(110):
            come_and_go(f"other-{group}-{number % 10}")
            if group == 0 and number % 10 == 0:
                come_and_go("cam")

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        list(pool.map(come_and_go_often, range(5)))
    # The beginning and the end of each stream.
    wait(lambda: len(receiver.taken) >= 1100, 60, weir.tail)
    assert not told("cam")
    # Of the stream that is held up, one waits.
    wait(lambda: weir.get("/api/v1/events/deliveries", headers=ADMIN).json["hooks"][0]["waiting"] <= 1, 15, weir.tail)
    weir.stop()
    # The next process takes up the stream that was refused, and repeats nothing.
    refuses = False
    again = start(*flags, "--no-record")
    again.secrets += [SECRET, "geheim"]
    wait(lambda: len(told("cam")) == 24, 30, again.tail)
    assert told("cam") == sorted(told("cam"))
    others = [event["id"] for _, event in receiver.taken if event["stream"] != "cam"]
    assert len(others) == len(set(others)) == 1100
    receiver.close()


def test_a_receiver_that_hangs_or_redirects_delays_no_other(start, tmp_path, follow):
    hanging, redirecting, good = Receiver(lambda *_: 30), Receiver(lambda *_: 302), Receiver()
    weir = start(*configured(tmp_path, *({"name": name, "on": "stream.*", "url": each.url, "secret": SECRET}
                                         for name, each in [("hangs", hanging), ("turns", redirecting), ("good", good)])))
    events = follow(weir.web)
    play(weir, "cam")
    wait(lambda: any(event["kind"] == "stream.started" for _, event in good.taken), 15, lambda: weir.tail())

    def deliveries(name):
        return [one for one in weir.get("/api/v1/events/deliveries", headers=ADMIN).good().json["deliveries"] if one["hook"] == name]

    def ends(name):
        return [datetime.datetime.fromisoformat(one["at"].replace("Z", "+00:00")).timestamp() + one["milliseconds"] / 1000
                for one in deliveries(name)]

    wait(lambda: deliveries("hangs") and deliveries("turns"), 20, lambda: weir.tail())
    assert {one["outcome"] for one in deliveries("hangs")} == {"no answer within 5s"}
    assert {one["outcome"] for one in deliveries("turns")} == {"302, and redirections are not followed"}
    assert len(redirecting.attempts) <= 2 and events.events
    # By the server's clock: while the one hung.
    assert min(ends("good")) < min(ends("hangs")) and min(ends("turns")) < min(ends("hangs"))
    events.close()
    for receiver in (hanging, redirecting, good):
        receiver.close()


def test_a_program_gets_the_file_of_a_recording(start, tmp_path):
    script = tmp_path / "archive"
    # When it is tried again, it leaves what is read here as it is.
    script.write_text(f'#!/bin/sh\n[ -e {tmp_path}/second ] && exit 3; cp "$1" {tmp_path}/copy.mp4; cat > {tmp_path}/event; printf %s "$2" > {tmp_path}/second; exit 3\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    weir = start(*configured(tmp_path, {"name": "archive", "on": "recording.stored", "run": [str(script), "{path}", "{stream} {kind}; $(id)"]}))
    play(weir, "cam")
    known = lambda: weir.get("/api/v1/events/deliveries", headers=ADMIN).good().json["deliveries"]  # noqa: E731
    wait(known, 15, lambda: weir.tail())
    assert (known()[0]["outcome"], known()[0]["done"]) == ("exit status 3", False) and known()[0]["nextAt"]
    event = json.loads((tmp_path / "event").read_text())
    file = weir.get(event["data"]["url"]).good()
    assert (tmp_path / "copy.mp4").read_bytes() == file.body
    assert (tmp_path / "second").read_text() == "cam recording.stored; $(id)"


# MARK: Crashes


class Witness:
    """What clients see of a server: the playlists of streams, responses of the API, and the names of files."""

    def __init__(self, service, recordings: pathlib.Path):
        self.service, self.recordings = service, recordings
        self.began: set[tuple[str, str]] = set()
        self.ended: set[tuple[str, str]] = set()
        self.files: set[str] = set()
        #: What the API said was done: recordings that were deleted, and how often the settings were read again.
        self.deleted: set[str] = set()
        self.reloads = 0
        self.stops = False
        # A playlist of a stream that begins waits, so each name has a watcher of its own.
        self.threads = [threading.Thread(target=self._watch, args=(name,), daemon=True) for name in ("one", "two", "three")]
        self.threads.append(threading.Thread(target=self._look, daemon=True))
        self.threads.append(threading.Thread(target=self._act, daemon=True))
        for thread in self.threads:
            thread.start()

    def _watch(self, name: str) -> None:
        while not self.stops:
            try:
                lists = self.service.get(f"/live/{name}/index.m3u8", timeout=3)
                found = re.search(r"^([0-9a-z]+)/(av|video)/", lists.text, re.M) if lists.status == 200 else None
                if not found:
                    time.sleep(0.01)
                    continue
                self.began.add((name, found[1]))
                if "#EXT-X-ENDLIST" in self.service.get(f"/live/{name}/{found[1]}/{found[2]}/index.m3u8", timeout=3).text:
                    self.ended.add((name, found[1]))
            except Exception:  # the server was killed
                time.sleep(0.01)

    def _look(self) -> None:
        while not self.stops:
            for path in self.recordings.glob("*/*.mp4"):
                if not path.name.endswith((".part.mp4", ".moov.mp4", ".tmp.mp4")):
                    self.files.add(f"{path.parent.name}/{path.name}")
            time.sleep(0.003)

    def _act(self) -> None:
        """Asks for what the API answers with 200 only when its event is written."""
        while not self.stops:
            try:
                if self.service.get("/api/v1/settings/reload", method="POST", headers=ADMIN, timeout=3).status == 200:
                    self.reloads += 1
                known = self.service.get("/api/v1/recordings?state=completed&limit=20", headers=ADMIN, timeout=3).json["recordings"]
                if len(known) > 2:
                    one = random.choice(known)
                    path = f"{one['stream']}/{one['file']}"
                    if self.service.get(f"/api/v1/recordings/{path}", method="DELETE", headers=ADMIN, timeout=3).status == 200:
                        self.deleted.add(path)
            except Exception:  # the server was killed
                pass
            time.sleep(random.uniform(0.02, 0.3))

    def stop(self) -> None:
        self.stops = True
        for thread in self.threads:
            thread.join(10)


@pytest.fixture
def crashed(supervise, tmp_path, least_kills):
    """kill -9 at random moments, while publishers come and go: the service, its receiver, what was seen, and how many kills."""
    receiver = Receiver()
    recordings = tmp_path / "recordings"
    service = supervise(*configured(tmp_path, {"name": "all", "on": "*", "url": receiver.url, "secret": SECRET}),
                        "--record", recordings, "--reconnect-window", "1s", "--max-names", "1000", "--segment-duration", "500ms")
    witness = Witness(service, recordings)
    over = threading.Event()

    def publish(name: str) -> None:
        while not over.is_set():
            publisher = publishers.ffmpeg("loop", f"{service.rtmp}/live/{name}")
            over.wait(random.uniform(0.5, 3))
            if random.random() < 0.8:
                publisher.interrupt()
            else:
                publisher.kill()
            try:
                publisher.outcome(10)
            except Exception:  # it lost the server
                publisher.kill()

    threads = [threading.Thread(target=publish, args=(name,), daemon=True) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    kills = 0
    # On a busy machine few streams are seen between kills: then there are more of these.
    while kills < least_kills or (len(witness.began) < least_kills / 4 and kills < 3 * least_kills):
        time.sleep(random.uniform(0.3, 1.2))  # real time: a moment that nobody chose
        service.process.send_signal(signal.SIGKILL)
        kills += 1
        service.wait_ready(kills + 1)
    # It runs on, and so do publishers, until the API has answered for either, and a stream was seen to end.
    wait(lambda: witness.deleted and witness.reloads and witness.ended, 60,
         lambda: f"{len(witness.files)} files, {witness.reloads} reloads, {len(witness.ended)} ends")
    over.set()
    for thread in threads:
        thread.join(15)

    def is_over() -> bool:
        streams = service.get("/api/v1/streams", headers=ADMIN).good().json["streams"]
        recordings = service.get("/api/v1/recordings?limit=1000", headers=ADMIN).good().json["recordings"]
        return {stream["state"] for stream in streams} == {"ended"} and "running" not in {one["state"] for one in recordings}

    wait(is_over, 30, service.text)
    witness.stop()
    yield service, receiver, witness, kills
    receiver.close()


@pytest.mark.parametrize("least_kills", KILLS)
def test_no_crash_loses_an_event_or_tells_one_twice(crashed, least_kills):
    service, receiver, witness, kills = crashed
    page = service.get("/api/v1/events", headers=ADMIN).good().json
    wait(lambda: receiver.taken and receiver.taken[-1][1]["id"] >= page["next"] - 50 and
         service.get("/api/v1/events/deliveries", headers=ADMIN).json["hooks"][0]["waiting"] == 0, 30)
    # A delivery that a crash cut off is repeated, with the same id and content.
    events: dict[str, dict] = {}
    for number, event in receiver.taken:
        assert events.setdefault(number, event) == event
    for name in ("one", "two", "three"):
        ids = list(dict.fromkeys(event["id"] for _, event in receiver.taken if event["stream"] == name))
        assert ids == sorted(ids), f"out of order: {name}"
    unique = list(events.values())

    def of(*kinds):
        return [event for event in unique if event["kind"] in kinds]

    started = {(event["stream"], event["data"]["epoch"]) for event in of("stream.started")}
    ended = [(event["stream"], event["data"]["epoch"]) for event in of("stream.ended")]
    stored = [f"{event['stream']}/{event['data']['file']}" for event in of("recording.stored", "recording.salvaged")]
    print(f"{kills} kills: {len(unique)} events in {len(receiver.taken)} deliveries; seen: {len(witness.began)} epochs, "
          f"{len(witness.ended)} ends, {len(witness.files)} files")
    assert witness.began <= started, witness.began - started
    assert witness.ended <= set(ended), witness.ended - set(ended)
    assert len(ended) == len(set(ended))
    assert witness.files <= set(stored), witness.files - set(stored)
    # So does what the API answered for.
    deleted = {f"{event['stream']}/{event['data']['file']}" for event in of("recording.deleted")}
    print(f"{len(witness.deleted)} deletions and {witness.reloads} reloads were answered")
    assert witness.deleted and witness.deleted <= deleted, witness.deleted - deleted
    assert 0 < witness.reloads <= len(of("settings.reloaded"))
    assert all(event["who"].startswith("127.0.0.1") for event in of("settings.reloaded", "recording.deleted"))
    assert len(stored) == len(set(stored)), [file for file in stored if stored.count(file) > 1]
    # The life of each stream makes sense.
    for name in ("one", "two", "three"):
        state = None
        for event in sorted(of("stream.started", "stream.interrupted", "stream.resumed", "stream.ended"), key=lambda e: e["id"]):
            if event["stream"] != name:
                continue
            kind = event["kind"].removeprefix("stream.")
            assert kind in {None: {"started"}, "started": {"interrupted", "ended"}, "interrupted": {"resumed", "ended"},
                            "resumed": {"interrupted", "ended"}, "ended": {"started"}}[state], (name, state, event)
            state = kind
    assert len(witness.began) >= least_kills / 4 and witness.ended and witness.files
