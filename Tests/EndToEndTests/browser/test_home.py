"""The home page: live pictures, titles, search and order, what viewers and operators see, and very many streams."""

import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import watching
from harness import publishers, sources
from test_pages import FOREIGN, MOSTLY_CHROMIUM, OVERFLOW, open_home

TOKEN = "sesame-home-0815"
KEY = ec.generate_private_key(ec.SECP256R1())
#: Markup, and a character that would turn the text around it.
TITLE = 'Stage <img src=x onerror="window.hacked=1"> left'
NAMES = "[...document.querySelectorAll('#streams > li a')].map((a) => a.textContent)"
ASKED = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/thumbnail.jpg')).length"
#: Number of different colours in the first card's picture; 0 before there is one.
COLOURS = """(() => {
  const canvas = document.querySelector("#streams canvas");
  if (!canvas || canvas.hidden) return 0;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
})()"""


def stream(name: str, **more) -> dict:
    return {"name": name, "title": None, "description": None, "state": "live", "protocol": "rtmp", "startedAt": "2026-11-21T07:24:10Z",
            "ageSeconds": 1, "viewers": 0, "bitrate": 1, "gopSeconds": 2, "warnings": [], "urls": {}, "recording": None,
            "tracks": [{"id": 1, "kind": "video", "codec": "H.264", "codecString": "avc1.64001f", "width": 640, "height": 360}], **more}


def overview(streams: list[dict], **more) -> str:
    return json.dumps({"version": "1", "streams": streams, "rtmpPort": 1935, "publishKeyRequired": False, "writable": False,
                       "records": False, **more})


def enter(page, selector: str, value: str) -> None:
    page.evaluate(f"(() => {{ const e = document.querySelector('{selector}'); e.value = {json.dumps(value)};"
                  " for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, { bubbles: true })); })()")


@pytest.fixture(scope="module")
def guarded(start_shared, tmp_path_factory):
    """A server with an operator, and one stream with a title."""
    keys = tmp_path_factory.mktemp("jwt") / "keys.pem"
    keys.write_bytes(KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    server = start_shared("--source", f"demo=file:{sources.source('loop')}", "--title", TITLE, "--description", "What there is to see.",
                          "--jwt-key", keys, environment={"WEIR_ADMIN_TOKEN": TOKEN})
    server.wait_state("demo", "live", seconds=30)
    return server


@MOSTLY_CHROMIUM
def test_a_card_shows_the_live_picture_the_title_and_the_description(browser, guarded):
    open_home(browser, guarded)
    browser.wait(f"{COLOURS} > 50")
    assert browser.evaluate(NAMES) == [TITLE]
    assert "What there is to see." in browser.evaluate("document.querySelector('#streams > li').innerText")
    assert browser.evaluate("(window.hacked ?? null) === null && document.querySelector('main img') === null")
    assert browser.evaluate(FOREIGN) == [] and browser.errors == []
    browser.evaluate("document.querySelector('#streams a').click()")
    browser.wait("document.querySelector('#name')?.textContent.startsWith('Stage <img') && document.title.startsWith('Stage')")
    assert "What there is to see." in browser.evaluate("document.querySelector('#description').textContent")
    watching.leave(browser)


def test_pictures_are_renewed_and_make_nobody_a_viewer(page, guarded):
    """That a hidden page loads none is judged without a browser (Tests/WebTests/live-pictures.test.mjs)."""
    guarded.wait(lambda: guarded.stream("demo")["viewers"] == 0, 30, "earlier viewers have gone")
    open_home(page, guarded)
    page.wait(f"{ASKED} >= 1")
    page.wait(f"{ASKED} >= 2", 20)
    assert guarded.stream("demo")["viewers"] == 0


def test_viewers_see_no_tools_and_who_signs_in_does(page, guarded):
    open_home(page, guarded)
    page.wait("document.querySelector('#manage').checkVisibility()")
    tools = "[...document.querySelectorAll('.operators')].filter((e) => e.checkVisibility()).map((e) => e.id || e.className)"
    assert page.evaluate(tools) == []
    text = page.evaluate("document.body.innerText")
    assert "Sign in" in text and "H.264" not in text and "rtmp://" not in text and "Mbit/s" not in text
    administrator = jwt.encode({"sub": "op", "exp": time.time() + 600, "weir": {"admin": "operate"}}, KEY, "ES256")
    for token in (TOKEN, administrator):
        page.click("document.querySelector('#manage')")
        enter(page, "#admin-token", token)
        page.click("document.querySelector('#admin-form [type=submit]')")
        page.wait("document.querySelector('#manage').textContent === 'Sign out'")
        page.wait("document.querySelector('#publish').checkVisibility() && document.body.innerText.includes('H.264')")
        # The watch page has its tools as well, and the session knows the token, not the browser.
        watching.watch(page, guarded, "demo", "?player=mse")
        page.wait("document.querySelector('#other-players').checkVisibility()")
        assert page.evaluate("Object.values(localStorage).length === 0 && Object.values(sessionStorage).length === 1")
        page.click("document.querySelector('#manage')")
        page.wait("document.querySelector('#manage').textContent === 'Sign in'")
        page.wait(f"{tools}.length === 0")
        open_home(page, guarded)
        page.wait("document.querySelector('#manage').checkVisibility()")
    assert page.errors == []


def test_streams_are_found_sorted_and_problems_come_first(page, demo):
    streams = [
        stream("cam-10", viewers=3, startedAt="2026-11-21T09:00:00Z"), stream("cam-9", title="Über den Dächern", viewers=7),
        stream("cam-2", warnings=["Key frames are 10 s apart."]), stream("gone", state="ended"), stream("lost", state="reconnecting"),
        stream("full", recording={"state": "failed", "reason": "the disk is full", "seconds": 1, "bytes": 1}),
    ]
    with page.answering(f"{demo.web}/api/v1/streams", lambda _: overview(streams)):
        open_home(page, demo)
        page.wait("document.querySelectorAll('#streams > li').length === 6")
        assert page.evaluate("document.querySelector('#stream-sort').value") == "problems"
        assert page.evaluate(NAMES)[:3] == ["full", "lost", "cam-2"]
        for order, first in (("viewers", "Über den Dächern"), ("newest", "cam-10"), ("name", "cam-2"), ("state", "cam-2")):
            enter(page, "#stream-sort", order)
            assert page.evaluate(NAMES)[0] == first, order
        assert page.evaluate(NAMES)[-1] == "gone"
        enter(page, "#stream-search", "dächern ÜBER")
        page.wait(f"String({NAMES}) === 'Über den Dächern' && document.querySelector('#streams-count').textContent === '1 of 6'")
        enter(page, "#stream-search", "nobody")
        page.wait("document.querySelector('#no-match').checkVisibility()")
        assert page.evaluate("location.search") == "?q=nobody&sort=state"
        page.call("Page.reload")
        page.wait("document.querySelector('#no-match')?.checkVisibility() && document.querySelector('#stream-search').value === 'nobody'")
        # Streams that are made up have no pictures.
        assert [e for e in page.errors if "thumbnail.jpg" not in e] == []


#: What turns the text after it.
TURNS = "\u202egnp.exe <b>"


def answer_ten_thousand() -> str:
    return overview([stream(f"s{number:05}", title=f"Stage {number} {TURNS}" if number % 9 == 0 else None, viewers=number % 7)
                     for number in range(10_000)])


def find(page, text: str, found: int | None) -> None:
    """Searches, and waits for so many cards; None: for several."""
    enter(page, "#stream-search", text)
    page.wait("document.querySelector('#streams-count').textContent.includes(' of ')"
              + (f" && {NAMES}.length === {found}" if found else f" && {NAMES}.length > 1"))


def show_more(page) -> None:
    before = page.evaluate("(scrollTo(0, document.body.scrollHeight), document.querySelectorAll('#streams > li').length)")
    page.wait(f"document.querySelectorAll('#streams > li').length > {before} || document.querySelector('#more-streams').getBoundingClientRect().top > 3000")


def test_ten_thousand_names_stay_usable(page, demo):
    answer = answer_ten_thousand()
    with page.answering(f"{demo.web}/api/v1/streams", lambda _: answer):
        open_home(page, demo)
        page.wait("document.querySelector('#streams-count').textContent === '10,000 live'")
        assert page.evaluate("document.querySelectorAll('#streams > li').length") <= 96
        assert page.evaluate("document.querySelectorAll('*').length") < 5000
        for text, found in (("s09999", 1), ("stage 9", None)):
            find(page, text, found)
        # What turns text stays within its title.
        assert page.evaluate("document.querySelector('#streams bdi').textContent").endswith(TURNS)
        enter(page, "#stream-search", "")
        page.wait("document.querySelector('#streams-count').textContent === '10,000 live'")
        show_more(page)
        assert page.evaluate(OVERFLOW) <= 0


@pytest.mark.quiet
@pytest.mark.long
def test_ten_thousand_names_are_searched_without_a_wait(page, demo):
    answer = answer_ten_thousand()
    with page.answering(f"{demo.web}/api/v1/streams", lambda _: answer):
        open_home(page, demo)
        page.wait("document.querySelector('#streams-count').textContent === '10,000 live'")
        for text, found in (("s09999", 1), ("stage 9", None)):
            began = time.monotonic()
            find(page, text, found)
            assert time.monotonic() - began < 3, text
        enter(page, "#stream-search", "")
        page.wait("document.querySelector('#streams-count').textContent === '10,000 live'")
        for _ in range(3):
            show_more(page)
        longest = page.evaluate("""new Promise((done) => {
          let longest = 0, last = performance.now();
          const step = (now) => { longest = Math.max(longest, now - last); last = now; };
          const frame = (now) => { step(now); if (now < end) requestAnimationFrame(frame); else done(longest); };
          const end = last + 3000;
          requestAnimationFrame(frame);
        })""")
        assert longest < 1500, f"the page stood still for {longest:.0f} ms"


def test_the_page_speaks_the_language_of_its_reader(demo):
    import browsers

    with browsers.chromium("--lang=de-DE", "--accept-lang=de-DE") as page:
        open_home(page, demo)
        page.wait("document.querySelectorAll('#streams > li').length === 1")
        text = page.evaluate("document.body.innerText")
        assert page.evaluate("document.documentElement.lang") == "de"
        assert "auf Sendung" in text and "Zuschauer" in text and "Aufnahmen" in text
        publisher = publishers.ffmpeg("loop", f"{demo.rtmp}/live/neu", loop=-1)
        try:
            page.wait("document.querySelector('#announcer').textContent === 'neu ist jetzt live'")
        finally:
            publisher.kill()
        assert page.errors == []


@MOSTLY_CHROMIUM
@pytest.mark.parametrize("path, there", [
    ("/", "document.querySelectorAll('#streams > li').length >= 1"), ("/recordings", "document.querySelector('#now-list').innerText.includes('demo')"),
    ("/watch/demo?player=mse", "document.querySelector('#stage').dataset.phase === 'playing'"),
], ids=["home", "recordings", "watch"])
def test_from_right_to_left_nothing_leaves_the_screen(browser, path, there, demo):
    browser.open(demo.web + path)
    browser.wait(there)
    time.sleep(0.3)
    browser.evaluate("document.documentElement.dir = 'rtl'")
    assert browser.evaluate("document.querySelector('.brand').getBoundingClientRect().left") > 300
    assert browser.evaluate("[...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() &&"
                            " (e.getBoundingClientRect().right < 0 || e.getBoundingClientRect().left > innerWidth)).length") == 0
    assert browser.evaluate(OVERFLOW) <= 0
    watching.leave(browser)
