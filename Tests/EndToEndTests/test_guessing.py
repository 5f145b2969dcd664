"""Who guesses keys: 100,000 wrong ones (10,000 outside of `make faults`), what the work for an answer tells of a key, and a server
with as many keys as it may have."""

import os
import random
import secrets
import socket
import sqlite3
import statistics
import time
import urllib.parse
from string import ascii_letters

import pytest

from harness import http, publishers, steps
from harness.rawrtmp import RawRTMP, Refused

TOKEN = "sesame-0815-4711-of-the-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
LONG = os.environ.get("WEIR_FAULTS") == "long"
TRIES = 100_000 if LONG else 10_000


class Line:
    """A connection from a chosen address of this machine, whose requests may be sent ahead."""

    def __init__(self, web: str, source: str):
        parts = urllib.parse.urlsplit(web)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=20, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def send(self, *requests: str) -> None:
        self.socket.sendall("".join(f"{request}Host: weir\r\n\r\n" for request in requests).encode())

    def status(self) -> int:
        """Of the next response, which has a length."""
        while b"\r\n\r\n" not in self.received:
            self._more()
        head, self.received = self.received.split(b"\r\n\r\n", 1)
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(self.received) < length:
            self._more()
        self.received = self.received[length:]
        return int(head.split(b" ", 2)[1])

    def _more(self) -> None:
        piece = self.socket.recv(1 << 16)
        assert piece, "the connection ended"
        self.received += piece

    def close(self) -> None:
        self.socket.close()


def by_field(key: str) -> str:
    """A request of an administrator."""
    return f"GET /api/v1/admin HTTP/1.1\r\nAuthorization: Bearer {key}\r\n"


def by_path(key: str) -> str:
    """A request of a viewer."""
    return f"GET /~{key}/live/cam/index.m3u8 HTTP/1.1\r\n"


@pytest.mark.parametrize("request_by, first, then", [(by_field, 401, 429), (by_path, 403, 429)], ids=["administrator", "viewer"])
def test_an_address_that_guesses_is_refused_and_costs_little(start, request_by, first, then):
    weir = start("--no-record", "--viewers", "token", "--poll-limit", "0", environment={"WEIR_ADMIN_TOKEN": TOKEN})
    weir.secrets.append(TOKEN)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        index = "/live/cam/index.m3u8"
        weir.wait(lambda: weir.get(index, headers=ADMIN).status == 200, 20, "the stream is live")
        good = Line(weir.web, "127.0.0.2")
        good.send(request_by(TOKEN))
        assert good.status() == 200
        memory, began, counts = weir.resident_kilobytes(), time.monotonic(), {}
        guesser, batch, slowest = Line(weir.web, "127.0.0.3"), 50, 0.0
        for _ in range(TRIES // batch):
            guesser.send(*(request_by(secrets.token_hex(16)) for _ in range(batch)))
            for _ in range(batch):
                status = guesser.status()
                counts[status] = counts.get(status, 0) + 1
            # Another address is answered at once, and by its right key.
            asked = time.monotonic()
            good.send(request_by(TOKEN))
            assert good.status() == 200
            slowest = max(slowest, time.monotonic() - asked)
        seconds = time.monotonic() - began
        print(f"{TRIES} wrong keys in {seconds:.1f} s: {counts}; the slowest answer to another address took {slowest * 1000:.1f} ms")
        # Twenty at once, and one a second.
        assert set(counts) == {first, then} and counts[first] <= 20 + seconds + 2, counts
        # The right key of the same address waits as well, unless it is a viewer's that is known.
        guesser.send(by_field(TOKEN))
        assert guesser.status() == (429 if request_by is by_field else 200)
        assert weir.resident_kilobytes() - memory < 20_000 and slowest < 1
        told = weir.get("/api/v1/events?kind=access.refused&limit=1000", headers=ADMIN).good().json["events"]
        # Five a minute of each reason: what administrators send may be a viewer's token as well.
        assert 1 <= len(told) <= 10 * (seconds // 60 + 2) and {event["who"] for event in told} == {"127.0.0.3"}, len(told)
        weir.wait(lambda: http.fetch(weir.web + index, headers=ADMIN).status == 200, 5, "the stream")
        assert publisher.process.poll() is None
        time.sleep(2)
        guesser.send(by_field(TOKEN))
        assert guesser.status() == 200, "the address is forgiven"
        guesser.close()
        good.close()
    finally:
        publisher.kill()


#: Which part of a wrong key is right.
PARTS = ("all but the last letter", "half", "none")
#: Other differences in the number of instructions than those of a comparison. Of some 20,000.
LIMIT = 12


def wrong(key: str, part: str) -> str:
    """As long as the right one, and another each time."""
    right = {"all but the last letter": len(key) - 1, "half": len(key) // 2, "none": 0}[part]
    return key[:right] + "".join(random.choice([other for other in ascii_letters if other != letter]) for letter in key[right:])


def instructions(start, folder, request_by, refusal: int, environment: dict[str, str] | None = None) -> dict[str, float]:
    """The usual number from a request with a wrong key to its answer, by what is right of the key."""
    key = "".join(random.choices(ascii_letters, k=800))
    weir = start("--no-record", "--viewers", "token", environment={"WEIR_ADMIN_TOKEN": key, **(environment or {})})
    weir.secrets.append(key)
    library, found = steps.built(folder, "steps"), {part: [] for part in PARTS}

    def ask(line: Line, request: str, expected: int):
        line.send(request)

        def take() -> None:
            assert line.status() == expected

        return take

    # An address may try twenty, and the first five are told as events.
    for number in range(1, 4):
        line = Line(weir.web, f"127.0.3.{number}")
        thread = steps.Steps(library, weir.process.pid, line.socket.fileno(), lambda: ask(line, "GET /healthz HTTP/1.1\r\n", 200))
        try:
            for place, part in enumerate(random.choices(PARTS, k=8) + random.sample(PARTS * 4, 12)):
                count = thread.count(lambda: ask(line, request_by(wrong(key, part)), refusal))
                if place >= 8:
                    found[part].append(count)
        finally:
            thread.close()
            line.close()
    print({part: sorted(counts) for part, counts in found.items()})
    return {part: statistics.median(counts) for part, counts in found.items()}


@pytest.mark.parametrize("request_by, refusal", [(by_field, 401), (by_path, 403)], ids=["administrator", "viewer"])
def test_the_work_for_an_answer_does_not_tell_how_much_of_a_key_is_right(start, tmp_path, request_by, refusal):
    """Instructions are counted: other programs on the machine change times by more than a comparison takes."""
    usual = instructions(start, tmp_path, request_by, refusal)
    assert max(usual.values()) - min(usual.values()) <= LIMIT, usual


def test_a_comparison_that_ends_early_would_be_seen(start, tmp_path):
    """The same with a comparison of 32 letters that ends at the first difference."""
    usual = instructions(start, tmp_path, by_field, 401, {"LD_PRELOAD": str(steps.built(tmp_path, "early"))})
    assert usual["all but the last letter"] - usual["none"] > 5 * LIMIT, usual


def test_as_many_keys_as_there_may_be_cost_a_start_and_a_publisher_little(start, tmp_path):
    """100,000, written as a former process left them."""
    state = tmp_path / "state"
    state.mkdir()
    weir = start("--state", state, "--no-record", environment={"WEIR_ADMIN_TOKEN": TOKEN})

    def make(weir, name: str) -> http.Response:
        return weir.get("/api/v1/keys", method="POST", headers=ADMIN, body=f'{{"name": "{name}", "publish": ["cam-*"]}}'.encode())

    key = make(weir, "mine").good().json["key"]
    weir.secrets += [TOKEN, key]
    memory = weir.resident_kilobytes()
    weir.stop()
    with sqlite3.connect(state / "control.sqlite") as database:
        (made,) = database.execute("SELECT madeAt FROM key").fetchone()
        database.executemany("INSERT INTO key VALUES (?, ?, ?, NULL, ?, '', '', NULL)", (
            (f"key-{number}", secrets.token_hex(32), made, f"room-{number}") for number in range(99_999)))
    database.close()
    began = time.monotonic()
    again = start("--state", state, "--no-record", environment={"WEIR_ADMIN_TOKEN": TOKEN})
    took = time.monotonic() - began
    again.secrets += [TOKEN, key]
    more = again.resident_kilobytes() - memory
    assert again.get("/api/v1/keys?limit=1", headers=ADMIN).good().json["total"] == 100_000
    full = make(again, "one-more")
    assert full.status == 409 and full.json["code"] == "key-exists", full.text
    times = []
    for number in range(20):
        asked = time.monotonic()
        with RawRTMP(again.rtmp).start(f"cam-{number}?key={key}") as client:
            times.append(time.monotonic() - asked)
            client.finish()
    with pytest.raises(Refused, match="missing or wrong"), RawRTMP(again.rtmp) as client:
        client.start("cam-1?key=another")
    print(f"100,000 keys: start {took:.1f} s, {more / 1024:.0f} MiB more, a publisher admitted after {statistics.median(times) * 1000:.1f} ms")
    assert took < 15 and more < 200_000 and statistics.median(times) < 0.3
    revoked = again.get("/api/v1/keys/mine", method="DELETE", headers=ADMIN)
    assert revoked.status == 200
    with pytest.raises(Refused, match="missing or wrong"), RawRTMP(again.rtmp) as client:
        client.start(f"cam-1?key={key}")
