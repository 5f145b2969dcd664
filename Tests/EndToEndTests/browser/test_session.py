"""How the watch page retries with a full server: what it shows, when it asks again, and what it keeps."""

import time

import pytest

import watching
from harness import http

ASKED = "performance.getEntriesByType('resource').filter((e) => e.name.includes('/live/demo/index.m3u8')).length"


@pytest.fixture(scope="module")
def small(start_shared):
    """A server with room for two viewers."""
    server = start_shared("--no-record", "--max-viewers", "2", "--segment-duration", "1s", "--test-pattern", "demo")
    server.wait(lambda: server.get("/live/demo/index.m3u8", timeout=10).status == 200, 30, "a playlist")
    return server


def test_a_viewer_for_whom_there_is_no_room_is_told_so_and_asks_when_it_was_told_to(chromium, small):
    for n in range(2):  # A client counts as a viewer for a few seconds after its request.
        http.fetch(f"{small.web}/live/demo/index.m3u8", headers={"User-Agent": f"player {n}"})
    chromium.open(f"{small.web}/watch/demo?player=hls")
    assert watching.wait_phase(chromium, "full", 4)["message"] == "The server is full"
    began = time.monotonic()
    watching.wait_phase(chromium, "playing", 25)
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
        watching.wait_phase(chromium, "playing", 15)
        assert "full" not in chromium.evaluate("[...window.phases]") and early == []
        watching.leave(chromium)


#: Number of timers that one attempt wakes after hundreds of pauses, each of which ended at once.
WOKEN = """(async () => {
  const { WatchSession } = await import("/web/engine/session.js");
  const { setTimeout: later, clearTimeout: clear } = window;
  let pauses = 0, woken = 0;
  window.fetch = async () => new Response("", { status: 404 });
  window.setTimeout = (done) => later(done, 0, pauses += 1);
  window.clearTimeout = (timer) => { woken += 1; clear(timer); };
  const session = new WatchSession(document.createElement("video"), "nobody", "mse", () => {});
  session.start();
  await new Promise((done) => later(done, 1500));
  const before = pauses;
  woken = 0;
  window.setTimeout = later;
  session.retry();
  await new Promise((done) => later(done, 50));
  session.stop();
  return [before, woken];
})()"""


def test_a_pause_that_is_over_is_forgotten(chromium, small):
    chromium.open(f"{small.web}/healthz")
    pauses, woken = chromium.evaluate(WOKEN)
    assert pauses > 50 and woken < 10, f"{woken} of {pauses}"
    watching.leave(chromium)


#: The shortest pause between two questions for a stream that is not there, in milliseconds: at first, and after two minutes.
WAITS = """(async () => {
  const { WatchSession } = await import("/web/engine/session.js");
  const { setTimeout: later } = window, pauses = [], now = performance.now.bind(performance);
  const wait = (milliseconds) => new Promise((done) => later(done, milliseconds));
  let ahead = 0;
  performance.now = () => now() + ahead;
  window.fetch = async () => new Response("", { status: 404 });
  window.setTimeout = (done, pause) => { pauses.push(pause); return later(done, 10); };
  const session = new WatchSession(document.createElement("video"), "nobody", "mse", () => {});
  session.start();
  await wait(500);
  const first = Math.min(...pauses);
  ahead = 120_000;
  await wait(100);
  pauses.length = 0;
  await wait(300);
  session.stop();
  return [first, Math.min(...pauses)];
})()"""


def test_a_page_that_waits_for_a_stream_asks_often_for_two_minutes(chromium, small):
    chromium.open(f"{small.web}/healthz")
    assert chromium.evaluate(WAITS) == [300, 2000]
    watching.leave(chromium)


#: Milliseconds before the next request, by status of the response. Each response has Retry-After: 7.
PATIENCE = """(async () => {
  const { HTTPFailure } = await import("/web/media/playback-result.js");
  const answer = (status) => new Response("{}", { status, headers: { "retry-after": "7" } });
  const known = await Promise.all([429, 503, 500, 404].map((status) => HTTPFailure.of(answer(status))));
  return known.map((failure) => failure.retryDelay);
})()"""


def test_who_asks_too_often_or_too_many_waits_as_long_as_the_server_wants(chromium, small):
    chromium.open(f"{small.web}/healthz")
    assert chromium.evaluate(PATIENCE) == [7000, 7000, 0, 0]
    watching.leave(chromium)
