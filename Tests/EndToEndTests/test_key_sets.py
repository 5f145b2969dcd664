"""Key sets of tokens (JWKS): from a file, and from an https address whose certificate an authority of one's own has signed. Keys
that come and go, and an address that is out of reach."""

import contextlib
import json
import os
import threading
import time
from http.client import IncompleteRead

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from harness import http, publishers
from harness.key_set import Authority, KeySet, entry
from test_reload import ADMIN, TOKEN, Configured

NAME = "cam"
LONG = os.environ.get("WEIR_FAULTS") == "long"


def token(name: str, key, **claims) -> str:
    return jwt.encode({"sub": "ann", "exp": time.time() + 600, "weir": {"watch": "*"}, **claims}, key, "ES256", headers={"kid": name})


def status(weir, token: str) -> int:
    return weir.get(f"/~{token}/live/{NAME}/index.m3u8").status


class Watching:
    """A viewer of stream.mp4 by a token. `ended`: when its response ended; None as long as it goes on."""

    def __init__(self, weir, token: str):
        self.stream = http.Stream(f"{weir.web}/~{token}/live/{NAME}/stream.mp4", timeout=10)
        assert self.stream.status == 200
        self.ended: float | None = None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ConnectionError, IncompleteRead, TimeoutError, ValueError):
            while self.stream.answer.read1(1 << 16):
                pass
        self.ended = time.monotonic()

    def close(self) -> None:
        self.stream.interrupt()
        self.thread.join(5)
        self.stream.close()


@pytest.fixture
def watch():
    made: list[Watching] = []

    def begin(weir, token: str) -> Watching:
        made.append(Watching(weir, token))
        return made[-1]

    yield begin
    for one in made:
        one.close()


@contextlib.contextmanager
def live(weir, headers=ADMIN):
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        weir.wait(lambda: weir.get(f"/live/{NAME}/index.m3u8", headers=headers).status == 200, 20, "the stream is live")
        yield
    finally:
        publisher.kill()


@pytest.fixture
def issuer():
    made: list[KeySet] = []

    def make(certificate=None) -> KeySet:
        made.append(KeySet(certificate))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_key_set_in_a_file_is_read_again_by_a_reload(start, tmp_path, watch):
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("old", "both", "new")}
    file = tmp_path / "jwks.json"

    def write(*names: str) -> None:
        # One of a kind that weir does not take keeps the others from nothing.
        other = entry("curve", ec.generate_private_key(ec.SECP384R1()))
        file.write_text(json.dumps({"keys": [other, *(entry(name, keys[name]) for name in names)]}))

    write("old", "both")
    server = Configured(start, tmp_path, {"streams": {"*": {"viewers": "token"}}, "access": {"jwt": {"keySet": str(file)}}})
    weir = server.weir
    tokens = {name: token(name, key) for name, key in keys.items()}

    def statuses() -> list[int]:
        return [status(weir, tokens[name]) for name in ("old", "both", "new")]

    with live(weir):
        assert statuses() == [200, 200, 403]
        goes, stays = watch(weir, tokens["old"]), watch(weir, tokens["both"])
        write("both", "new")
        assert statuses() == [200, 200, 403], "the file was not read again yet"
        assert server.reload().good().json["changed"] == []
        assert statuses() == [403, 200, 200]
        # Within two seconds, which test_edge_revocation.py measures.
        weir.wait(lambda: goes.ended, 10, "the end of what the old key began")
        assert stays.ended is None
        # A set that cannot be used changes nothing.
        for text, word in (("{", "no JSON Web Key Set"), ('{"keys": []}', "no key that weir can use"), ("x" * 70_000, "more than 65536 bytes")):
            file.write_text(text)
            answer = server.reload()
            assert answer.status == 422 and word in answer.json["detail"] and str(file) in answer.json["detail"], answer.text
            assert statuses() == [403, 200, 200]
        assert stays.ended is None


def test_a_key_set_at_an_https_address_is_trusted_by_its_certificate_and_follows_its_owner(start, tmp_path, issuer, watch):
    authority = Authority(tmp_path / "authority")
    keys = issuer(authority.of_localhost)
    first, both = keys.new("first"), keys.new("both")

    def flags(url: str) -> tuple[str, ...]:
        return ("--no-record", "--viewers", "token", "--admin-token", TOKEN, "--jwt-key-set", url)

    # The machine does not know that authority: nobody is admitted, and the log says why.
    stranger = start(*flags(keys.url))
    stranger.wait_log("the key set for tokens cannot be fetched: the request failed: ", 10)
    assert status(stranger, token("first", first)) == 403 and not keys.requests
    # Where it does, an address that the certificate is not for is refused all the same.
    elsewhere = start(*flags(keys.url.replace("localhost", "127.0.0.1")), wrapper=authority.trusted())
    elsewhere.wait_log("the key set for tokens cannot be fetched: the request failed: ", 10)
    assert status(elsewhere, token("first", first)) == 403 and not keys.requests
    weir = start(*flags(keys.url), wrapper=authority.trusted())
    with live(weir):
        weir.wait(lambda: status(weir, token("first", first)) == 200, 10, "the keys of the set")
        asked = len(keys.requests)
        for number in range(20):
            assert status(weir, token("both", both, sub=f"viewer-{number}")) == 200
        assert len(keys.requests) == asked, "what was fetched is kept"
        goes, stays = watch(weir, token("first", first)), watch(weir, token("both", both))
        # The owner replaces a key. A token by the new one makes weir look, and what the old one admitted ends.
        del keys.keys["first"]
        second = keys.new("second")
        weir.wait(lambda: status(weir, token("second", second)) == 200, 15, "the new key is known", every=0.5)
        assert status(weir, token("first", first, sub="other")) == 403
        weir.wait(lambda: goes.ended, 10, "the end of what the old key began")
        assert stays.ended is None
        # Not for every token with an unknown key.
        asked = len(keys.requests)
        forger = ec.generate_private_key(ec.SECP256R1())
        for number in range(10):
            assert status(weir, token(f"none-{number}", forger)) == 403
        assert len(keys.requests) <= asked + 1


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="three minutes: make faults")
def test_keys_hold_while_their_address_can_be_reached_and_for_the_configured_time_beyond(start, issuer, watch):
    keys = issuer()
    key = keys.new("a")
    weir = start("--no-record", "--viewers", "token", "--jwt-key-set", keys.url, "--jwt-key-set-staleness", "60s", "--admin-token", TOKEN)
    with live(weir):
        weir.wait(lambda: status(weir, token("a", key)) == 200, 10, "the key")
        began, viewer = time.monotonic(), watch(weir, token("a", key))
        while time.monotonic() < began + 75:
            assert status(weir, token("a", key, sub=f"{time.monotonic()}")) == 200 and viewer.ended is None
            time.sleep(0.5)
        assert "could not be fetched for" not in weir.text() and len(keys.requests) <= 8
        keys.stop()
        away = time.monotonic()
        weir.wait(lambda: status(weir, token("a", key, sub=f"{time.monotonic()}")) == 403, 70, "the end of the keys", every=0.5)
        held = time.monotonic() - away
        weir.wait(lambda: viewer.ended, 5, "the end of what they admitted")
        print(f"the keys held for {held:.1f} s without their address")
        # The last fetch was up to a third of the time before.
        assert 38 < held < 62
        weir.wait_log("the key set for tokens could not be fetched for 1m: its keys hold no longer")
        keys.start()
        weir.wait(lambda: status(weir, token("a", key)) == 200, 15, "the keys are back", every=0.5)
