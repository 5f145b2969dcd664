"""Each job is done by the keyboard alone: keys are pressed, and nothing else touches the pages."""

import json
import time

import watching
from harness import sources
from test_gallery import TOKEN, archive, open_gallery, page  # noqa: F401  (fixtures)
from test_home import NAMES, stream
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


def enter_by(page, target: str, key: str = "Enter") -> None:
    """Walks to an element and presses it."""
    walk(page, target)
    page.press(*{"Enter": ("Enter", "Enter"), " ": (" ", "Space")}[key])


def sign_in(page, token: str = TOKEN) -> None:
    enter_by(page, "#manage")
    page.wait("document.querySelector('#admin').open")
    walk(page, "#admin-token")
    type_in(page, token)
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#manage').textContent === 'Sign out'")


def choose(page, target: str, value: str) -> None:
    """Chooses an option of a menu by the arrow keys."""
    walk(page, target)
    for _ in range(8):
        if page.evaluate(f"{FOCUS}.value === {value!r}"):
            return
        page.press("ArrowDown", "ArrowDown")
    raise AssertionError(f"{target} has no {value}")


def mean_it(page, button: str) -> None:
    """Presses what asks once more."""
    enter_by(page, button)
    page.wait(f"{FOCUS}.textContent === 'Really?'")
    watching.confirm(page, FOCUS, lambda: page.press("Enter", "Enter"))


def downloaded(folder, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(list(folder.glob("*.mp4"))) < count:
        assert time.monotonic() < deadline, list(folder.iterdir())
        time.sleep(0.2)


def with_others(archive) -> str:
    """The server's list of streams, with two more."""
    known = archive.json("/api/v1/streams")
    return json.dumps({**known, "streams": [s for s in known["streams"] if s["name"] == "stage"] + [stream("desk"), stream("cellar")]})


def test_a_stream_is_found_and_watched(page, archive):  # noqa: F811
    with page.answering(f"{archive.web}/api/v1/streams", lambda _: with_others(archive)):
        open_home(page, archive)
        page.wait("document.querySelectorAll('#streams > li').length === 3 && document.querySelector('#stream-tools').checkVisibility()")
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
    weir = start("--no-record", "--source", f"demo=file:{sources.source('loop')}", "--ladder", "demo=90p@100k", "--hls-layout", "separate")
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
    archive.wait(lambda: archive.stream("stage")["recording"]["seconds"] > 3, 20, "some recorded seconds")
    walk(page, "#clip-open")
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#live-clip').checkVisibility()")
    walk(page, "#live-clip .clip-actions > button")
    page.press("Enter", "Enter")
    enter_by(page, "#clip-download")
    downloaded(tmp_path, 1)


def test_a_recording_is_played_downloaded_and_deleted(page, archive, tmp_path):  # noqa: F811
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.open(f"{archive.web}/recordings")
    page.wait("document.querySelectorAll('#gallery > li').length >= 3")
    sign_in(page)
    walk(page, ".gallery-thumbnail")
    name = page.evaluate(f"{FOCUS}.closest('li').querySelector('h2').textContent")
    page.press("Enter", "Enter")
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.3")
    page.press("k", "KeyK")
    page.wait("document.querySelector('#recording-video').paused")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")
    enter_by(page, ".gallery-actions a")
    downloaded(tmp_path, 1)
    walk(page, ".gallery-actions button[aria-label^=Delete]")
    page.press("Enter", "Enter")
    gone = f"![...document.querySelectorAll('#gallery h2')].some((h) => h.textContent === {name!r})"
    page.wait(f"{gone} && document.querySelector('#undo').checkVisibility()")
    walk(page, "#undo-button")
    page.press("Enter", "Enter")
    page.wait(f"!({gone})")


def test_streams_are_put_in_another_order(page, archive):  # noqa: F811
    with page.answering(f"{archive.web}/api/v1/streams", lambda _: with_others(archive)):
        open_home(page, archive)
        page.wait("document.querySelectorAll('#streams > li').length === 3 && document.querySelector('#stream-tools').checkVisibility()")
        choose(page, "#stream-sort", "name")
        page.wait(f"String({NAMES}) === 'cellar,desk,stage'")
    assert page.evaluate("new URLSearchParams(location.search).get('sort')") == "name"


def test_a_link_and_the_code_to_embed_are_copied(page, archive):  # noqa: F811
    watching.watch(page, archive, "stage", "?player=mse")
    page.wait("document.querySelectorAll('#share-rows code').length === 3")
    enter_by(page, "#share > summary")
    page.wait("document.querySelector('#share').open")
    for label in ("Copy Link", "Copy Embed code"):
        enter_by(page, f'[aria-label="{label}"]')
        page.wait(f"{FOCUS}.innerText.trim() === 'Copied'")
    # What was copied is pasted into a field, by keys as well.
    page.evaluate("document.querySelector('#share-rows').append(Object.assign(document.createElement('textarea'), { id: 'pasted' }))")
    walk(page, "#pasted")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="v", code="KeyV", modifiers=2, windowsVirtualKeyCode=86, commands=["paste"])
    page.wait("document.querySelector('#pasted').value.startsWith('<iframe src=')")


def test_a_time_of_a_recording_is_shared_and_its_speed_changed(page, archive):  # noqa: F811
    open_gallery(page, archive)
    enter_by(page, ".gallery-thumbnail")
    video = "document.querySelector('#recording-video')"
    page.wait(f"{video}?.readyState > 1 && {video}.duration > 2")
    page.wait(f"{video}.currentTime > 1")
    page.press("k", "KeyK")
    page.wait(f"{video}.paused")
    choose(page, "#speed", "2")
    page.wait(f"{video}.playbackRate === 2")
    enter_by(page, "#share-here", " ")
    page.wait("/[?&]t=\\d+$/.test(document.querySelector('.share code').textContent)")
    enter_by(page, "#share-copy")
    page.wait("document.querySelector('#share-copy').textContent === 'Copied'")
    page.press("<", "Comma")
    page.wait(f"{video}.playbackRate === 1.5")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")


def test_a_title_and_a_note_are_given(page, archive):  # noqa: F811
    open_gallery(page, archive)
    sign_in(page)
    enter_by(page, ".gallery-thumbnail")
    page.wait("document.querySelector('#annotation')?.checkVisibility()")
    enter_by(page, "#annotation summary")
    walk(page, "#annotation-title")
    page.press("a", "KeyA", modifiers=2)
    type_in(page, "By keys")
    walk(page, "#annotation-note")
    page.press("a", "KeyA", modifiers=2)
    type_in(page, "and a note")
    enter_by(page, ".annotation-form [type=submit]")
    page.wait("document.querySelector('#recording-dialog-title').textContent.startsWith('By keys')")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")
    told = json.dumps(archive.json("/api/v1/recordings?state=completed"))
    assert '"name": "By keys"' in told and '"note": "and a note"' in told


def test_several_recordings_are_chosen_downloaded_deleted_and_brought_back(page, archive, tmp_path):  # noqa: F811
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    open_gallery(page, archive)
    sign_in(page)
    page.wait("document.querySelector('.gallery-actions button[aria-label^=Delete]')?.checkVisibility()")
    chosen = []
    for number in (1, 2):
        enter_by(page, f"#gallery > li:nth-child({number}) .gallery-choose", " ")
        chosen.append(page.evaluate(f"{FOCUS}.ariaLabel"))
    page.wait("document.querySelector('#selection-count').textContent === '2 selected'")
    enter_by(page, "#selection-download")
    downloaded(tmp_path, 2)
    enter_by(page, "#selection-delete")
    there = f"{json.dumps(chosen)}.filter((label) => [...document.querySelectorAll('.gallery-choose')].some((e) => e.ariaLabel === label)).length"
    page.wait(f"{there} === 0")
    enter_by(page, "#undo-button")
    page.wait(f"{there} === 2")


def test_an_operator_stops_a_recording_and_begins_another(page, archive):  # noqa: F811
    watching.watch(page, archive, "stage", "?player=mse")
    sign_in(page)
    page.wait("document.querySelector('#recording').checkVisibility()")
    running = lambda: archive.json("/api/v1/recordings?stream=stage&state=running")["total"]  # noqa: E731
    archive.wait(lambda: running() == 1, 20, "it is recorded")
    enter_by(page, ".recording-buttons button[aria-label^=Stop]")
    archive.wait(lambda: running() == 0, 20, "the recording ends")
    page.wait("document.querySelector('.recording-buttons button[aria-label^=Record]')?.checkVisibility()")
    enter_by(page, ".recording-buttons button[aria-label^=Record]")
    archive.wait(lambda: running() == 1, 20, "another one begins")


def test_an_operator_takes_a_source_off_the_air_and_back(page, start):
    weir = start("--no-record", "--source", f"demo=file:{sources.source('loop')}", "--admin-token", TOKEN)
    weir.wait_state("demo", "live", seconds=30)
    watching.watch(page, weir, "demo")
    sign_in(page)
    page.wait("document.querySelector('#source-preview').checkVisibility()")
    mean_it(page, "#source-preview")
    page.wait("document.querySelector('#source-state').textContent === 'Off air'")
    enter_by(page, "#source-start")
    page.wait("document.querySelector('#source-state').textContent === 'Live'")
    watching.wait_phase(page, "playing")
    page.evaluate("sessionStorage.clear()")


def test_a_publisher_learns_its_address(page, start):
    weir = start("--no-record", "--source", f"demo=file:{sources.source('loop')}")
    open_home(page, weir)
    enter_by(page, "#publish > summary")
    walk(page, "#name")
    page.press("a", "KeyA", modifiers=2)
    type_in(page, "stage-7")
    enter_by(page, '[aria-label="Copy OBS stream key"]')
    page.wait(f"{FOCUS}.innerText.trim() === 'Copied'")
    assert page.evaluate("[...document.querySelectorAll('#publish-rows code')].some((c) => c.textContent === 'stage-7')")
