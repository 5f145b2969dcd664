"""Accessibility by script: axe-core finds nothing, on each page and in each state. `make test-long` tries both schemes at each
width."""

import json
import time

import pytest

import axe
import watching
from test_gallery import TOKEN, archive, button, enter_token, open_gallery, page  # noqa: F401  (fixtures)
from test_home import overview, stream
from test_pages import MOSTLY_CHROMIUM, OVERFLOW, open_home

SCHEMES = ["dark", "light"]
WIDTHS = [320, 390, 768, 1280, 2560]
#: For states that add little to others.
FEW = [320, 1280, 2560]
#: Where axe looks each time: colours and sizes of both differ.
USUAL = [("dark", 320), ("light", 1280)]


@pytest.fixture(params=["usual", pytest.param("all", marks=pytest.mark.long)])
def check(request, page):  # noqa: F811
    """Checks a state: axe in the usual schemes and widths, or in all of them; and that it fits each width."""
    def check(what: str, widths=WIDTHS) -> None:
        for scheme in SCHEMES:
            page.prefer(color_scheme=scheme)
            for width in widths:
                # A scheme has colours alone: in the usual run, one of them is enough for the widths.
                if request.param == "usual" and scheme != SCHEMES[0] and (scheme, width) not in USUAL:
                    continue
                page.viewport(width, 900)
                time.sleep(0.05)
                if request.param == "all" or (scheme, width) in USUAL:
                    assert axe.findings(page) == [], (what, scheme, width)
                assert page.evaluate(OVERFLOW) <= 0, (what, scheme, width)

    return check


def test_the_home_page_in_each_state(page, archive, check):  # noqa: F811
    open_home(page, archive)
    page.wait("document.querySelectorAll('#streams > li').length >= 1 && document.querySelectorAll('#recordings-list > li').length >= 3")
    check("as a viewer")
    page.click("document.querySelector('#manage')")
    check("the dialog of signing in", FEW)
    page.evaluate(f"document.querySelector('#admin-token').value = '{TOKEN}'")
    page.click("document.querySelector('#admin-form [type=submit]')")
    page.wait("document.querySelector('#publish').checkVisibility()")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    check("as an operator")


def test_the_home_page_with_many_streams_and_none(page, archive, check):  # noqa: F811
    states = ["live", "starting", "reconnecting", "ended"]
    many = [stream(f"cam-{n}", state=states[n % 4], title=f"Stage {n}" if n % 3 else None, description="What there is to see.",
                   warnings=["Key frames are 10 s apart: set 2 s."] if n % 5 == 0 else []) for n in range(50)]
    for what, streams in (("fifty", many), ("empty", [])):
        with page.answering(f"{archive.web}/api/v1/streams", lambda _: overview(streams)):
            open_home(page, archive)
            page.wait(f"document.querySelectorAll('#streams > li').length >= {min(len(streams), 40)}")
            check(what, FEW)


def test_the_home_page_of_a_broken_server(page, archive, check):  # noqa: F811
    with page.answering(f"{archive.web}/api/v1/*", lambda _: (503, "{}")):
        page.open(f"{archive.web}/")
        page.wait("document.querySelector('#connection').checkVisibility() && document.querySelector('#no-answer').checkVisibility()")
        check("broken", FEW)
    # It comes back by itself.
    page.wait("document.querySelectorAll('#streams > li').length >= 1 && !document.querySelector('#no-answer').checkVisibility()")


def test_the_gallery_in_each_state(page, archive, check):  # noqa: F811
    open_gallery(page, archive)
    check("as a viewer")
    enter_token(page, TOKEN)
    page.wait(f"{button('cam', 'Delete')} !== undefined")
    page.click("document.querySelector('#select-all')")
    page.wait("document.querySelector('#selection').checkVisibility()")
    check("with a selection")
    # By the mouse: Chromium plays nothing without a gesture of the last five seconds.
    page.click(button("cam", "Play"))
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.3")
    page.evaluate("(document.querySelector('#clip-open').click(), document.querySelector('#annotation').open = true)")
    check("the player of recordings, with the editor of clips", [320, 768, 1280, 2560])
    page.viewport(320, 700)
    assert page.evaluate("(() => { const d = document.querySelector('#recording-dialog'); return d.scrollWidth - d.clientWidth; })()") <= 0
    page.press("Escape", "Escape")
    # Its end changes the address, which would end the navigation below.
    page.wait("!document.querySelector('#recording-dialog').open && !new URLSearchParams(location.search).has('play')")
    with page.answering(f"{archive.web}/api/v1/recordings*", lambda _: json.dumps({"recordings": [], "next": None, "total": 0})):
        page.open(f"{archive.web}/recordings")
        page.wait("document.querySelector('#nothing').checkVisibility()")
        check("empty", FEW)


def test_the_watch_page_in_each_state(page, archive, check):  # noqa: F811
    watching.watch(page, archive, "stage", "?player=mse")
    page.wait("document.querySelector('#clip-open')?.checkVisibility()")
    page.evaluate("(document.querySelector('#clip-open').click(), document.querySelector('#info').click())")
    check("playing, as a viewer")
    page.evaluate("document.querySelector('#help-open').click()")
    check("the keys", FEW)
    page.evaluate("document.querySelector('#help').close()")
    enter_token(page, TOKEN)
    page.wait("document.querySelector('#recording').checkVisibility()")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    check("playing, as an operator")


def test_pages_of_what_is_not_there(page, archive, check):  # noqa: F811
    page.open(f"{archive.web}/watch/nobody")
    watching.wait_phase(page, "notStarted")
    check("not started", FEW)
    page.open(f"{archive.web}/nothing/here")
    page.wait("document.querySelector('#address').textContent !== ''")
    check("no such page", FEW)


def test_the_embedded_player_in_each_state(page, archive, check):  # noqa: F811
    page.open(f"{archive.web}/embed/stage?player=mse")
    page.wait("document.querySelector('weir-player')?.phase === 'playing'")
    check("playing")
    page.open(f"{archive.web}/embed/nobody")
    page.wait("document.querySelector('weir-player')?.phase === 'notStarted'")
    check("not started", FEW)
    page.open(f"{archive.web}/embed/no%20name")
    page.wait("document.querySelector('#address').textContent !== ''")
    check("no such stream", FEW)


#: What a page shows once it has all that it loads.
THERE = {
    "/": "document.querySelectorAll('#streams > li').length && document.querySelectorAll('#recordings-list > li').length >= 3",
    "/recordings": "document.querySelectorAll('#gallery > li').length >= 3",
    "/watch/stage?player=mse": "document.querySelector('#stage').dataset.phase === 'playing'",
    "/embed/stage?player=mse": "document.querySelector('weir-player')?.phase === 'playing'",
    "/publish/stage": "document.querySelector('#problem').checkVisibility()",
    "/nothing/here": "document.querySelector('#address').textContent !== ''",
}


@MOSTLY_CHROMIUM
def test_axe_finds_nothing_in_either_browser(browser, archive):  # noqa: F811
    for path, there in THERE.items():
        if path == "/publish/stage":
            continue  # test_publish_page.py
        browser.open(archive.web + path)
        browser.wait(there)
        assert axe.findings(browser) == [], path
    watching.leave(browser)


@pytest.mark.parametrize("path", [path for path in THERE if path != "/nothing/here"])
def test_forced_colours_and_reduced_motion_leave_everything_visible(page, archive, path):  # noqa: F811
    page.call("Emulation.setEmulatedMedia", features=[
        {"name": "forced-colors", "value": "active"}, {"name": "prefers-reduced-motion", "value": "reduce"}])
    page.open(archive.web + path)
    page.wait(THERE[path])
    time.sleep(0.3)
    assert page.evaluate("matchMedia('(forced-colors: active)').matches && matchMedia('(prefers-reduced-motion: reduce)').matches")
    # Where colours are taken away, borders tell what can be pressed.
    bare = """[...document.querySelectorAll('.button, .badge, .panel')].filter((e) => e.checkVisibility()).filter((e) => {
      const style = getComputedStyle(e);
      return style.borderTopStyle === 'none' || parseFloat(style.borderTopWidth) === 0;
    }).map((e) => e.className)"""
    assert page.evaluate(bare) == []
    assert page.evaluate("document.getAnimations().filter((a) => a.playState === 'running').length") == 0
    # The marks of the seek bar and the meter of the disk keep their colours.
    for mark in (".disk-recorded", ".clip-span"):
        kept = f"(() => {{ const e = document.querySelector('{mark}'); return !e || getComputedStyle(e).forcedColorAdjust === 'none'; }})()"
        assert page.evaluate(kept), mark
    assert axe.findings(page) == []
    page.call("Emulation.setEmulatedMedia", features=[])
