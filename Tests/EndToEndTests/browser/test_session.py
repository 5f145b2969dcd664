"""How the watch page retries with a full server: what it shows, and when it asks again. What needs no media is judged without a
browser (Tests/WebTests/session.test.mjs, media.test.mjs)."""

import threading
import time

import pytest

import watching
from harness import http, sources

ASKED = "performance.getEntriesByType('resource').filter((e) => e.name.includes('/live/demo/index.m3u8')).length"


@pytest.fixture(scope="module")
def small(start_shared):
    """A server with room for two viewers."""
    server = start_shared("--no-record", "--max-viewers", "2", "--segment-duration", "1s", "--source", f"demo=file:{sources.source('loop')}")
    server.wait(lambda: server.get("/live/demo/index.m3u8", timeout=10).status == 200, 30, "a playlist")
    return server


def test_a_viewer_for_whom_there_is_no_room_is_told_so_and_asks_when_it_was_told_to(chromium, small):
    told = threading.Event()

    def stay() -> None:
        """A client counts as a viewer for a few seconds after its request."""
        while True:
            for n in range(2):
                http.fetch(f"{small.web}/live/demo/index.m3u8", headers={"User-Agent": f"player {n}"})
            if told.wait(0.5):
                return

    others = threading.Thread(target=stay, daemon=True)
    others.start()
    try:
        small.wait(lambda: small.stream("demo")["viewers"] == 2, 20, "both places are taken")
        began = time.monotonic()
        chromium.open(f"{small.web}/watch/demo?player=hls")
        assert watching.wait_phase(chromium, "full")["message"] == "The server is full"
    finally:
        told.set()
        others.join(25)
    watching.wait_phase(chromium, "playing")
    # Retry-After is 5 s. A viewer that is admitted reads the list once.
    assert chromium.evaluate(ASKED) <= 2 + (time.monotonic() - began) / 5
    watching.leave(chromium)


def test_a_stream_without_a_segment_is_no_full_server(chromium, small):
    early = ['{"title": "Not yet"}'] * 3
    agent = chromium.evaluate("navigator.userAgent")

    def answer(url):
        return (503, early.pop()) if early else small.get(url, headers={"User-Agent": agent}).good().body

    with chromium.answering(f"{small.web}/live/demo/index.m3u8*", answer):
        chromium.open(f"{small.web}/watch/demo?player=hls")
        chromium.evaluate("""window.phases = new Set(), setInterval(() =>
          window.phases.add(document.querySelector("#stage").dataset.phase), 20)""")
        watching.wait_phase(chromium, "playing")
        assert "full" not in chromium.evaluate("[...window.phases]") and early == []
        watching.leave(chromium)
