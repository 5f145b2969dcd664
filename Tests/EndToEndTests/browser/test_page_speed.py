"""How soon the watch page of a distant server requests its first playlist."""

import contextlib
import time

import pytest

import watching
from harness.distance import Distance

ROUND_TRIP_SECONDS = 0.1
#: For a visit with a new connection, a fifth of a second passes before the first byte of the page arrives.
FIRST_VISIT_SECONDS = 0.6
RETURN_SECONDS = 0.3


@pytest.fixture
def far(demo):
    with contextlib.closing(Distance(int(demo.web.rsplit(":", 1)[1]), ROUND_TRIP_SECONDS)) as distance:
        yield distance


def visit(browser, far):
    """Seconds from the first request of a visit to the first request for media, with new connections."""
    watching.leave(browser)
    far.hang_up()
    began = time.monotonic()
    browser.open(f"http://127.0.0.1:{far.port}/watch/demo")
    watching.wait_phase(browser, "playing")
    # The panels below the player are loaded last, and of them the scripts of the QR codes.
    browser.wait("document.querySelectorAll('.qr-code svg').length === 2")
    pages = [at for at, line in far.asked if " /watch/demo " in line]
    playlists = [at for at, line in far.asked if line.startswith("GET /live/demo/index.m3u8") and at > pages[0]]
    assert pages and playlists, far.asked
    # The navigation began one round trip before its request could be sent.
    assert began <= pages[0]
    return playlists[0] - pages[0] + ROUND_TRIP_SECONDS


@pytest.mark.quiet
@pytest.mark.long
def test_the_first_playlist_is_asked_for_while_scripts_are_on_their_way(page, far, record_property):
    page.call("Network.clearBrowserCache")
    first, again = visit(page, far), visit(page, far)
    record_property("figure", f"first playlist asked for after {first:.2f} s, on return after {again:.2f} s")
    assert first <= FIRST_VISIT_SECONDS
    assert again <= RETURN_SECONDS
    assert page.errors == []


def test_a_return_loads_nothing_that_is_kept(page, far):
    visit(page, far)
    visit(page, far)
    files = [line for _, line in far.asked if " /web/" in line]
    assert files == []
