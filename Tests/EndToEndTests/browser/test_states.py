"""Texts and buttons of the pages in each state of a stream and a server, and at addresses that do not exist."""

import json
import threading

import pytest

import watching
from harness import http, publishers, sources
from test_pages import FOREIGN, MOSTLY_CHROMIUM, OVERFLOW, POOR_CONTRAST, SCHEMES, open_home


def demo_source() -> tuple[str, str]:
    """Flags of a server whose stream `demo` is a film."""
    return "--source", f"demo=file:{sources.source('loop')}"


def test_the_home_page_lists_each_of_several_recordings_that_run(page, start):
    weir = start()
    names = ["one", "three", "two"]
    running = [publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1) for name in names]
    try:
        weir.wait(lambda: sorted(r["stream"] for r in weir.json("/api/v1/recordings")["recordings"]) == names, 15, "three recordings")
        open_home(page, weir)
        page.wait("document.querySelector('#recordings-count').textContent === '3 recordings'", 15)
        listed = "[...document.querySelectorAll('#recordings-list h3')].map((h) => h.textContent).sort()"
        assert page.evaluate(listed) == names
    finally:
        for publisher in running:
            publisher.kill()


def test_a_server_that_records_nothing_promises_nothing(page, start):
    weir = start("--no-record", *demo_source())
    open_home(page, weir)
    page.wait("document.querySelector('#no-recordings').textContent.startsWith('Recording is off')")
    assert page.errors == []
    page.open(f"{weir.web}/recordings")
    page.wait("document.querySelector('#nothing').textContent.startsWith('Recording is off')")
    assert page.errors == [] and page.evaluate("document.querySelector('#disk').hidden")
    watching.watch(page, weir, "demo")
    assert page.evaluate("document.querySelector('#recording').hidden") and page.errors == []


def test_what_is_over_shows_no_pause_and_leads_to_its_recording(page, weir):
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/over", loop=-1)
    weir.wait_state("over", "live")
    watching.watch(page, weir, "over")
    page.wait("document.querySelector('#play').checkVisibility()")
    publisher.interrupt()
    publisher.outcome()
    watching.wait_phase(page, "ended")
    assert not page.evaluate("['play', 'mute', 'volume', 'live'].some((id) => document.getElementById(id).checkVisibility())")
    link = "document.querySelector('#message-recording')"
    page.wait(f"{link}.checkVisibility()")
    # It can be clicked where the controls overlap a small video, too.
    page.viewport(320, 640)
    on_top = f"(() => {{ const r = {link}.getBoundingClientRect(); return document.elementFromPoint(r.x + r.width / 2, r.bottom - 2) === {link}; }})()"
    page.wait(on_top)
    assert page.evaluate(OVERFLOW) <= 0 and page.evaluate(POOR_CONTRAST) == []
    page.viewport(1280, 900)
    page.click(link)
    page.wait("location.pathname === '/recordings' && document.querySelector('#recording-dialog')?.open")
    page.wait("document.querySelector('#recording-video')?.readyState >= 2")
    assert page.errors == []
    # A page that is opened later shows it, too.
    page.open(f"{weir.web}/watch/over")
    page.wait(f"{link}.checkVisibility()")


def test_a_full_server_counts_down_and_an_outage_is_told_as_one(page, start):
    weir = start("--max-viewers", "1", "--no-record")
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/cam", loop=-1)
    weir.wait_state("cam", "live")
    keeper = threading.Event()

    def keep():
        while not keeper.wait(0.5):
            http.fetch(f"{weir.web}/live/cam/index.m3u8")

    threading.Thread(target=keep).start()
    try:
        weir.wait(lambda: weir.stream("cam")["viewers"] == 1, 15, "the only place is taken")
        page.open(f"{weir.web}/watch/cam")
        watching.wait_phase(page, "full")
        page.wait("/^Next try in [1-9]/.test(document.querySelector('#message-text').textContent)")
        publisher.process.kill()
        assert watching.wait_phase(page, "reconnecting")["message"] == "Reconnecting"
    finally:
        keeper.set()
        publisher.kill()


TOKEN = "open-sesame"

#: Words that are broken over several lines, and buttons that are cut off at the edge of the screen.
BROKEN = """[...document.querySelectorAll('h1, h2, h3, a, button, label, .badge, .count, .brand')].filter((e) => e.checkVisibility()).flatMap((e) => {
  const broken = [], walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) for (const word of walker.currentNode.data.matchAll(/[A-Za-z]{2,}/g)) {
    const range = document.createRange();
    range.setStart(walker.currentNode, word.index);
    range.setEnd(walker.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) broken.push(word[0]);
  }
  const { left, right } = e.getBoundingClientRect();
  if (e.closest('.top') && (left < 0 || right > innerWidth)) broken.push(e.textContent);
  return broken;
})"""


@pytest.fixture(scope="module")
def managed(start_shared):
    server = start_shared(*demo_source(), "--admin-token", TOKEN)
    server.wait_state("demo", "live", seconds=30)
    return server


#: What a page shows once it has all that it loads.
THERE = {
    "/": "document.querySelectorAll('#streams > li').length === 1 && document.querySelectorAll('#recordings-list > li').length > 0",
    "/recordings": "document.querySelectorAll('#gallery > li').length === 12",
    "/watch/demo?player=mse": "document.querySelector('#stage').dataset.phase === 'playing'",
    "/nothing": "document.querySelector('#address').textContent !== ''",
}


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("path", THERE)
def test_words_stay_whole_on_narrow_screens(page, path, width, managed):
    page.viewport(width, 640)
    recordings = [{"stream": f"cam{n}", "file": "20261121T072410Z.mp4", "url": None, "bytes": 1, "seconds": 1,
                   "startedAt": "2026-11-21T07:24:10Z", "state": "completed"} for n in range(12)]

    def check() -> None:
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert page.evaluate(BROKEN) == [] and page.evaluate(OVERFLOW) <= 0

    with page.answering(f"{managed.web}/api/v1/recordings*", lambda url: json.dumps({"recordings": recordings, "total": 12})):
        page.open(managed.web + path)
        page.wait(THERE[path])
        check()
        if path not in ("/", "/recordings"):
            return
        # With more than one button in the head of the page.
        page.wait("document.querySelector('.top #manage').checkVisibility()")
        check()
        page.click("document.querySelector('.top #manage')")
        page.evaluate(f"document.querySelector('#admin-token').value = '{TOKEN}'")
        page.click("document.querySelector('#admin-form [type=submit]')")
        page.wait("document.querySelector('.top #manage').textContent === 'Sign out'")
        check()
    with page.answering(f"{managed.web}/api/v1/*", lambda _: (503, "{}")):
        for word in ("Sign out", "Sign in"):
            page.evaluate(f"document.querySelector('.top #manage').textContent = '{word}'")
            page.wait("document.querySelector('#connection').checkVisibility()")
            check()
    page.evaluate("sessionStorage.clear()")


def test_the_test_pattern_has_one_name(page, start):
    demo = start("--no-record", "--test-pattern", "demo")
    open_home(page, demo)
    page.wait("document.querySelectorAll('#streams > li').length === 1")
    page.evaluate("document.querySelector('#publish').open = true")
    page.wait("document.querySelector('#publish-rows').children.length > 0")
    shown = page.evaluate("document.body.innerText").lower()
    assert shown.count("test pattern") == 2 and "test picture" not in shown and "test source" not in shown
    demo.wait_log("test pattern")
    assert "test source" not in demo.text()


@MOSTLY_CHROMIUM
def test_an_address_with_nothing_is_a_page_with_a_way_out(browser, demo):
    for path, said in (("/nope/%3Cb%3E", "mistyped"), ("/watch/..bad", "No stream can have that name"), ("/recordings/a/b.mp4", "no such recording")):
        browser.open(demo.web + path)
        browser.wait("document.querySelector('#address')?.textContent !== ''")
        assert said in browser.evaluate("document.querySelector('#reason').textContent")
        assert browser.evaluate("document.querySelector('#address').textContent") == path
        assert browser.evaluate("[...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))") == ["/", "/recordings"]


@SCHEMES
def test_the_page_of_nothing_can_be_read(page, scheme, demo):
    page.prefer(color_scheme=scheme)
    page.open(f"{demo.web}/nope")
    page.wait("document.querySelector('#address').textContent === '/nope'")
    assert page.evaluate(POOR_CONTRAST) == [] and page.evaluate(FOREIGN) == []


def test_links_name_the_public_address(page, start):
    weir = start("--public-url", "https://live.example.com:8443", *demo_source(), "--no-record")
    port = weir.rtmp.rsplit(":", 1)[1]
    page.open(f"{weir.web}/watch/demo?player=mse")
    page.wait("document.querySelector('#watch-rows').children.length > 0")
    rows = "[...document.querySelectorAll('#watch-rows code, #publish-rows code')].map((c) => c.textContent)"
    shown = page.evaluate(rows)
    assert "ffplay https://live.example.com:8443/live/demo/index.m3u8" in shown
    assert f"rtmp://live.example.com:{port}/live" in shown
    assert not [text for text in shown if "127.0.0.1" in text]
