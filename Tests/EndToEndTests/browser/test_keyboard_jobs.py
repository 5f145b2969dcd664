"""Each job is done by the keyboard alone: keys are pressed, and nothing else touches the pages."""

import time

import watching
from test_gallery import TOKEN, archive, page  # noqa: F401  (fixtures)
from test_pages import open_home

FOCUS = "document.activeElement"
MOST_TABS = 80


def walk(page, target: str, back: bool = False) -> None:
    """Presses Tab until the focus is on the element of a selector, and sees that the focus is visible there."""
    for _ in range(MOST_TABS):
        if page.evaluate(f"{FOCUS}.matches({target!r})"):
            seen = page.evaluate("""(() => {
              const visible = (e, part) => { const s = getComputedStyle(e, part); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; };
              return visible(document.activeElement, null) || visible(document.activeElement, '::after');
            })()""")
            assert seen, f"the focus on {target} cannot be seen"
            return
        page.press("Tab", "Tab", modifiers=8 if back else 0)
    raise AssertionError(f"{target} is not reached by {MOST_TABS} tabs; the focus is on " + page.evaluate(f"{FOCUS}.outerHTML")[:200])


def type_in(page, text: str) -> None:
    for letter in text:
        page.press(letter)


def test_a_stream_is_found_and_watched(page, archive):  # noqa: F811
    open_home(page, archive)
    page.wait("document.querySelectorAll('#streams > li').length >= 2 && document.querySelector('#stream-tools').checkVisibility()")
    walk(page, "#stream-search")
    type_in(page, "stage")
    page.wait("document.querySelectorAll('#streams > li').length === 1")
    walk(page, ".stream-link")
    page.press("Enter", "Enter")
    page.wait("location.pathname === '/watch/stage'")
    watching.wait_phase(page, "playing")


def test_mute_quality_full_screen_and_the_way_out(page, archive):  # noqa: F811
    watching.watch(page, archive, "stage", "?player=mse")
    walk(page, "#mute")
    page.press("Enter", "Enter")
    page.wait("!document.querySelector('#video').muted")
    page.press(" ", "Space")
    page.wait("document.querySelector('#video').muted")
    walk(page, "#fullscreen")
    page.press("Enter", "Enter")
    page.wait("document.fullscreenElement?.id === 'player'")
    page.press("f", "KeyF")
    page.wait("document.fullscreenElement === null")
    assert page.errors == []


def test_the_quality_is_changed(page, start):
    weir = start("--no-record", "--test-pattern", "demo", "--ladder", "demo=240p@300k", "--hls-layout", "separate")
    weir.wait_state("demo", "live", seconds=30)
    watching.watch(page, weir, "demo", "?player=hls")
    page.wait("!document.querySelector('#quality').hidden", 30)
    walk(page, "#quality")
    before = page.evaluate("document.querySelector('#quality').value")
    page.press("ArrowDown", "ArrowDown")
    page.wait(f"document.querySelector('#quality').value !== '{before}'")


def test_a_clip_is_cut_and_downloaded(page, archive, tmp_path):  # noqa: F811
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    watching.watch(page, archive, "stage", "?player=mse")
    page.wait("document.querySelector('#clip-open')?.checkVisibility()")
    archive.wait(lambda: archive.stream("stage")["recording"]["seconds"] > 8, 20, "some recorded seconds")
    walk(page, "#clip-open")
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#live-clip').checkVisibility()")
    walk(page, "#live-clip .clip-actions > button")
    page.press("Enter", "Enter")
    walk(page, "#clip-download")
    page.press("Enter", "Enter")
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("*.mp4")):
        assert time.monotonic() < deadline, list(tmp_path.iterdir())
        time.sleep(0.2)


def test_a_recording_is_played_downloaded_and_deleted(page, archive, tmp_path):  # noqa: F811
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.open(f"{archive.web}/recordings")
    page.wait("document.querySelectorAll('#gallery > li').length >= 3")
    walk(page, "#manage")
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#admin-token') === document.activeElement || document.querySelector('#admin').open")
    walk(page, "#admin-token")
    type_in(page, TOKEN)
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#manage').textContent === 'Sign out'")
    walk(page, ".gallery-thumbnail")
    name = page.evaluate(f"{FOCUS}.closest('li').querySelector('h2').textContent")
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.3")
    page.press("k", "KeyK")
    page.wait("document.querySelector('#recording-video').paused")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")
    walk(page, ".gallery-actions a")
    page.press("Enter", "Enter")
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("*.mp4")):
        assert time.monotonic() < deadline, list(tmp_path.iterdir())
        time.sleep(0.2)
    walk(page, ".gallery-actions button[aria-label^=Delete]")
    page.press("Enter", "Enter")
    gone = f"![...document.querySelectorAll('#gallery h2')].some((h) => h.textContent === {name!r})"
    page.wait(f"{gone} && document.querySelector('#undo').checkVisibility()")
    walk(page, "#undo-button")
    page.press("Enter", "Enter")
    page.wait(f"!({gone})")
