"""Who guesses keys: 100,000 wrong ones (5,000 outside of `make faults`), what the work for an answer tells of a key, and a server
with as many keys as it may have."""

import itertools
import math
import operator
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
from harness.gauges import cpu_seconds
from harness.rawrtmp import RawRTMP, Refused

TOKEN = "sesame-0815-4711-of-the-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
LONG = os.environ.get("WEIR_FAULTS") == "long"
TRIES = 100_000 if LONG else 5_000


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
        assert weir.resident_kilobytes() - memory < 20_000 and slowest < 5
        told = weir.get("/api/v1/events?kind=access.refused&limit=1000", headers=ADMIN).good().json["events"]
        # Five a minute of each reason: what administrators send may be a viewer's token as well.
        assert 1 <= len(told) <= 10 * (seconds // 60 + 2) and {event["who"] for event in told} == {"127.0.0.3"}, len(told)
        weir.wait(lambda: http.fetch(weir.web + index, headers=ADMIN).status == 200, 20, "the stream")
        assert publisher.process.poll() is None

        def forgiven() -> bool:
            guesser.send(by_field(TOKEN))
            return guesser.status() == 200

        weir.wait(forgiven, 10, "the address is forgiven", every=1.5)
        guesser.close()
        good.close()
    finally:
        publisher.kill()


# MARK: What an answer to a wrong key tells of the right one

#: As long as a path may have, so that a comparison that ends early tells most.
LENGTH = 1_000
BY = pytest.mark.parametrize("request_by, refusal", [(by_field, 401), (by_path, 403)], ids=["administrator", "viewer"])


def shifted(key: str) -> str:
    """As long, and no letter is right."""
    by = random.randrange(1, len(ascii_letters))
    return key.translate(str.maketrans(ascii_letters, ascii_letters[by:] + ascii_letters[:by]))


def near(key: str) -> str:
    """All of it is right but the last four letters. Another one each time."""
    return key[:-4] + "".join(shifted(letter) for letter in key[-4:])


def far(key: str) -> str:
    """None of it is right."""
    return shifted(key[:-4]) + "".join(shifted(letter) for letter in key[-4:])


def guarded(start, environment: dict[str, str] | None = None):
    """A server with a key that is known already."""
    key = "".join(random.choices(ascii_letters, k=LENGTH))
    weir = start("--no-record", "--viewers", "token", "--log-level", "error",
                 environment={"WEIR_ADMIN_TOKEN": key, **(environment or {})})
    weir.secrets.append(key)
    assert weir.get("/live/cam/index.m3u8", headers={"Authorization": f"Bearer {key}"}).status == 404, "the right key was taken"
    return weir, key


def signs(weir, key: str, request_by, refusal: int, count: int) -> tuple[float, float]:
    """By how many seconds an answer to a key that is nearly right comes later, and how many standard errors that is.

    Of two keys, one of them nearly right, a coin says which goes first. Each is a new one: where a text has its place in a table,
    and whether it is the one that came last, is no matter of the right key. If the time of an answer is not either, the coin is
    independent of which of the two answers took longer, whatever else the machine does: then the sum of signs is near zero."""
    addresses = (f"127.{number // 62500 + 9}.{number // 250 % 250}.{number % 250 + 1}" for number in itertools.count())
    coins, later = [], []
    while len(coins) < count:
        line = Line(weir.web, next(addresses))
        tossed = [random.getrandbits(1) for _ in range(10)]  # an address may try twenty
        keys = [wrong(key) for coin in tossed for wrong in ((near, far) if coin else (far, near))]
        requests, times = [f"{request_by(one)}Host: weir\r\n\r\n".encode() for one in keys], []
        for request in requests:
            began = time.perf_counter()
            line.socket.sendall(request)
            assert line.status() == refusal
            times.append(time.perf_counter() - began)
        line.close()
        # The first ones of a connection take longer, and are told as events.
        for place in range(3, 10):
            coins.append(1 if tossed[place] else -1)
            later.append(times[2 * place] - times[2 * place + 1])
    # The first of two takes longer. What the machine held up counts little.
    usual = statistics.median(later)
    spread = 2 * statistics.median(abs(one - usual) for one in later)
    clipped = [max(-spread, min(spread, one - usual)) for one in later]
    total = sum(map(operator.mul, coins, clipped))
    return total / len(coins), total / math.sqrt(sum(one * one for one in clipped))


@pytest.mark.quiet
@pytest.mark.long
@BY
def test_the_time_of_an_answer_does_not_tell_how_much_of_a_key_is_right(start, request_by, refusal):
    """Once in 200,000 runs chance alone is as far from zero."""
    weir, key = guarded(start)
    seconds, errors = signs(weir, key, request_by, refusal, 10_000)
    print(f"{seconds * 1e9:+.0f} ns, {errors:+.1f} standard errors")
    assert abs(errors) < 4.6


@pytest.mark.quiet
@pytest.mark.long
def test_the_time_of_a_comparison_that_ends_early_would_be_seen(start, tmp_path):
    """Two nanoseconds a letter."""
    weir, key = guarded(start, {"LD_PRELOAD": str(steps.built(tmp_path, "early", "-O0"))})
    seconds, errors = signs(weir, key, by_field, 401, 10_000)
    print(f"{seconds * 1e9:+.0f} ns, {errors:+.1f} standard errors")
    assert errors > 4.6


def instructions(start, folder, request_by, refusal: int, environment: dict[str, str] | None = None) -> dict[int, float]:
    """Those that run more often for a key that is nearly right, or less often."""
    weir, key = guarded(start, environment)
    line, found = Line(weir.web, "127.0.3.1"), {near: [], far: []}

    def ask(request: str, expected: int):
        line.send(request)

        def take() -> None:
            assert line.status() == expected

        return take

    thread = steps.Steps(folder, weir.process.pid, line.socket.fileno(), lambda: ask("GET /healthz HTTP/1.1\r\n", 200))
    try:
        # The first five are told as events, and OpenSSL begins with the first one.
        for _ in range(6):
            ask(request_by(far(key)), refusal)()
        # An address may try twenty, and one more each second.
        for wrong in random.sample([near, far] * 8, 16):
            found[wrong].append(thread.run(lambda: ask(request_by(wrong(key)), refusal)))
    finally:
        thread.close()
        line.close()
    different = steps.apart(found[near], found[far])
    print(f"{statistics.median(one.total() for one in found[far]):.0f} instructions, {len(different)} of them differ")
    return different


@pytest.mark.skipif(not LONG, reason="takes long: make faults")
@BY
def test_an_answer_takes_the_same_instructions_however_much_of_a_key_is_right(start, tmp_path, request_by, refusal):
    assert instructions(start, tmp_path, request_by, refusal) == {}


@pytest.mark.skipif(not LONG, reason="takes long: make faults")
def test_the_instructions_of_a_comparison_that_ends_early_would_be_seen(start, tmp_path):
    found = instructions(start, tmp_path, by_field, 401, {"LD_PRELOAD": str(steps.built(tmp_path, "early", "-O1"))})
    assert max(found.values()) > LENGTH / 2, found


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
    # What the server computes for it, whatever else the machine does.
    before = cpu_seconds(again.process.pid)
    for number in range(20):
        with RawRTMP(again.rtmp).start(f"cam-{number}?key={key}") as client:
            client.finish()
    admitted = (cpu_seconds(again.process.pid) - before) / 20
    with pytest.raises(Refused, match="missing or wrong"), RawRTMP(again.rtmp) as client:
        client.start("cam-1?key=another")
    print(f"100,000 keys: start {took:.1f} s, {more / 1024:.0f} MiB more, {admitted * 1000:.1f} ms of CPU for a publisher")
    assert took < 15 and more < 200_000 and admitted < 0.1
    revoked = again.get("/api/v1/keys/mine", method="DELETE", headers=ADMIN)
    assert revoked.status == 200
    with pytest.raises(Refused, match="missing or wrong"), RawRTMP(again.rtmp) as client:
        client.start(f"cam-1?key={key}")
