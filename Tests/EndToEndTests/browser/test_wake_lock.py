"""The screen stays on while a page captures, or plays what is live or recorded: each page asks its browser for a wake lock, and gives
it back. The browser's own interface is used; the test only notes what was asked of it and what came of that."""

import json

import pytest

import watching
from harness import publishers
from test_publish_page import chromium, open_page, page, press, start, stop, weir  # noqa: F401  (fixtures)

#: Notes each request: what for, and whether the lock is held, was released, or refused.
NOTE = """
window.wakeLocks = [];
if (window.WakeLock) {
  const request = WakeLock.prototype.request;
  WakeLock.prototype.request = function (type) {
    const note = { type, state: "asked" };
    window.wakeLocks.push(note);
    const answer = request.call(this, type);
    answer.then((lock) => {
      note.state = "held";
      lock.addEventListener("release", () => { note.state = "released"; });
    }, (error) => { note.state = error.name; });
    return answer;
  };
}
"""
STATES = "window.wakeLocks.map(({ type, state }) => `${type} ${state}`)"


@pytest.fixture
def noting(page):  # noqa: F811
    """Chromium, which notes what pages ask for."""
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=NOTE)["identifier"]
    yield page
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def states(browser, *wanted: str) -> None:
    browser.wait(f"JSON.stringify({STATES}) === {json.dumps(json.dumps(list(wanted), separators=(',', ':')))}", 15)


def turn(browser, is_hidden: bool) -> None:
    """The page is hidden, as behind another tab, or shown again. Chromium releases the lock by itself only behind a real tab."""
    browser.evaluate(f"(Object.defineProperty(document, 'hidden', {{ configurable: true, value: {str(is_hidden).lower()} }}),"
                     " document.dispatchEvent(new Event('visibilitychange')), true)")


def test_the_page_that_captures_keeps_the_screen_on_from_start_to_stop(noting, weir):  # noqa: F811
    open_page(noting, weir, "awake", weir.key)
    assert noting.evaluate(STATES) == [], "a preview alone is no reason"
    start(noting)
    states(noting, "screen held")
    # What is recorded meanwhile is the same stream; muting and covering change nothing.
    press(noting, "mute")
    press(noting, "cover")
    assert weir.wait(lambda: (weir.stream("awake")["recording"] or {}).get("state") == "running", 10, "its recording")
    states(noting, "screen held")
    # Browsers take the lock away from a page that is hidden: it is asked for again.
    turn(noting, True)
    states(noting, "screen released")
    turn(noting, False)
    states(noting, "screen released", "screen held")
    stop(noting)
    states(noting, "screen released", "screen released")
    assert noting.errors == []


def test_the_watch_page_keeps_the_screen_on_while_it_plays(noting, demo):
    watching.watch(noting, demo, "demo")
    states(noting, "screen held")
    noting.evaluate("document.querySelector('#video').pause()")
    states(noting, "screen released")
    noting.evaluate("document.querySelector('#video').play().then(() => true)")
    states(noting, "screen released", "screen held")
    turn(noting, True)
    states(noting, "screen released", "screen released")
    turn(noting, False)
    states(noting, "screen released", "screen released", "screen held")
    assert noting.errors == []
    watching.leave(noting)


def test_the_player_of_recordings_keeps_the_screen_on_while_it_plays(noting, weir):  # noqa: F811
    publishers.ffmpeg("short", f"{weir.rtmp}/live/kept?key={weir.key}", paced=False).wait(30)
    known = weir.wait(lambda: next((r for r in weir.recordings_of("kept") if r["state"] == "completed"), None), 15, "a recording")
    noting.open(f"{weir.web}/recordings?stream=kept&play={known['file']}")
    noting.wait("document.querySelector('#recording-video')?.readyState > 1")
    # With sound, which a browser wants a gesture for.
    noting.evaluate("document.querySelector('#recording-video').pause()")
    noting.press("k", "KeyK")
    noting.wait(f"{STATES}.at(-1) === 'screen held'", 10)
    noting.evaluate("document.querySelector('#recording-video').pause()")
    noting.wait(f"{STATES}.every((state) => state === 'screen released')", 10)
    assert noting.errors == []
    watching.leave(noting)
