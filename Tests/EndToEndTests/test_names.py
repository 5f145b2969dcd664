"""Names that no stream can have, by each protocol but RTMP (test_hostile.py has that): they are refused, and nothing is written."""

import urllib.parse

import pytest

from harness import http, offers, srt
from test_hostile import BAD_NAMES

LISTENERS = ("http", "rtmp", "srt", "webrtc")


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    """Open to all, and it would record all."""
    state = tmp_path_factory.mktemp("state")
    weir = start_shared("--srt", "127.0.0.1:0", "--webrtc", "127.0.0.1:0", "--state", state, listeners=LISTENERS)
    weir.state = state
    weir.before = written(weir)
    return weir


def written(weir) -> set[str]:
    """Files and folders of the server, but for those of its databases."""
    return {str(path) for folder in (weir.folder, weir.state) for path in folder.rglob("*") if ".sqlite" not in path.name}


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name)[:20])
def test_no_protocol_takes_it(weir, name):
    # As a client encodes it, and as it is where a request may say so.
    spellings = {urllib.parse.quote(name, safe="")} | ({name} if name.isascii() and name.isprintable() and " " not in name else set())
    for spelling in spellings:
        for path, kind, body in ((f"/live/{spelling}/ingest", "video/mp2t", bytes(188)),
                                 (f"/whip/{spelling}", "application/sdp", offers.offer("sendonly").encode()),
                                 (f"/whep/{spelling}", "application/sdp", offers.offer("recvonly").encode())):
            answer = http.fetch(weir.web + path, "POST", {"Content-Type": kind}, body=body)
            assert answer.status in (400, 404, 405, 413, 414), (path, answer.status, answer.text)
    if "\0" not in name:
        port = int(weir.srt.rsplit(":", 1)[1])
        for streamid in (name, f"#!::r={name},m=publish"):
            caller = srt.Caller(port, streamid)
            caller.close()
            assert caller.reject == 1400, (streamid, caller.reject)
    assert weir.json("/api/v1/streams")["streams"] == [] and written(weir) == weir.before
