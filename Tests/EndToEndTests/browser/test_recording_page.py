"""Recordings in the pages: links to them and to a time, titles and notes, choosing several, pictures on the bar, clips of what is live."""

import json
import time

import pytest

import watching
from harness import publishers
from test_gallery import TOKEN, archive, button, card, enter_token, open_gallery, page  # noqa: F401  (fixtures)
from test_home import enter
from test_pages import BOTH

#: What only lays out and names, Firefox does as Chromium does.
BOTH_AT_LENGTH = pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
VIDEO = "document.querySelector('#recording-video')"
CLOSED = "!document.querySelector('#recording-dialog').open"


def recording(weir, name: str) -> dict:
    return weir.json(f"/api/v1/recordings?stream={name}&state=completed")["recordings"][0]


@BOTH_AT_LENGTH
def test_a_link_leads_to_a_recording_and_to_a_time_in_it(browser, archive):  # noqa: F811
    file = recording(archive, "cam")["file"]
    browser.open(f"{archive.web}/recordings?stream=cam&play={file}&t=2")
    browser.wait(f"{VIDEO}?.currentTime >= 2")
    link = "document.querySelector('.share code').textContent"
    assert browser.evaluate(link) == f"{archive.web}/recordings?stream=cam&play={file}"
    browser.evaluate(f"({VIDEO}.pause(), {VIDEO}.currentTime = 1.5, document.querySelector('#share-here').click())")
    browser.wait(f"{link} === '{archive.web}/recordings?stream=cam&play={file}&t=1'")
    browser.evaluate("document.querySelector('#share-copy').click()")
    browser.wait("document.querySelector('#share-copy').textContent !== 'Copy link'")
    # Each recording has an address, and the browser's way back leads to the list.
    open_gallery(browser, archive)
    browser.evaluate(f"{button('yard', 'Play')}.click()")
    browser.wait(f"{VIDEO}?.readyState > 1 && new URLSearchParams(location.search).get('stream') === 'yard'")
    browser.evaluate("history.back()")
    browser.wait(f"{CLOSED} && location.search === ''")
    assert browser.errors == []
    watching.leave(browser)


def test_a_title_and_a_note_are_given_shown_and_kept(page, archive):  # noqa: F811
    hostile = 'Interview <b id=evil> "1"'
    open_gallery(page, archive)
    enter_token(page, TOKEN)
    page.wait(f"{button('hall', 'Delete')} !== undefined")
    page.click(button("hall", "Play"))
    page.wait("document.querySelector('#annotation')?.checkVisibility()")
    # The video has its size by now: it moves what is below it.
    page.wait(f"{VIDEO}.readyState > 1")
    page.click("document.querySelector('#annotation summary')")
    page.wait("document.querySelector('#annotation').open")
    enter(page, "#annotation-title", "x\u202egnp")
    page.click("document.querySelector('.annotation-form [type=submit]')")
    page.wait("document.querySelector('.annotation .warning').textContent.includes('control character')")
    enter(page, "#annotation-title", hostile)
    enter(page, "#annotation-note", "second take\nbetter light")
    page.click("document.querySelector('.annotation-form [type=submit]')")
    page.wait("document.querySelector('#recording-dialog-title').textContent.startsWith('Interview <b id=evil>')")
    page.press("Escape", "Escape")
    page.wait(CLOSED)
    shown = "[...document.querySelectorAll('#gallery > li')].find((li) => li.innerText.includes('Interview'))"
    page.wait(f"{shown}?.innerText.includes('better light')")
    assert page.evaluate("document.querySelector('#evil') === null")
    kept = recording(archive, "hall")
    assert (kept["name"], kept["note"]) == (hostile, "second take\nbetter light")
    disposition = archive.get(f"{kept['url']}?download").good().headers["content-disposition"]
    assert "Interview" in disposition and "\n" not in disposition
    # Nobody else may say something about it, and a new catalogue knows it still.
    body = json.dumps({"name": None, "note": None}).encode()
    path = f"/api/v1/recordings/hall/{kept['file']}"
    assert archive.get(path, method="PUT", body=body).status == 401
    assert archive.get(path, method="PUT", body=b'{"nmae": 1}', headers={"Authorization": f"Bearer {TOKEN}"}).status in (400, 422)
    long = json.dumps({"note": "x" * 2001}).encode()
    assert archive.get(path, method="PUT", body=long, headers={"Authorization": f"Bearer {TOKEN}"}).status == 422
    assert archive.get(path, method="PUT", body=body, headers={"Authorization": f"Bearer {TOKEN}"}).good().json["name"] is None
    page.errors.clear()  # the 422 is one


def test_several_are_sorted_chosen_deleted_at_once_and_brought_back(page, archive):  # noqa: F811
    open_gallery(page, archive)
    started = "[...document.querySelectorAll('#gallery > li h2')].map((h) => h.textContent).join()"
    newest = page.evaluate(started)
    enter(page, "#filter-sort", "oldest")
    page.wait(f"{started} === '{','.join(reversed(newest.split(',')))}'")
    sizes = sorted(archive.json("/api/v1/recordings?state=completed")["recordings"], key=lambda r: -r["bytes"])
    enter(page, "#filter-sort", "largest")
    page.wait(f"{started}.startsWith('{sizes[0]['stream']}')")
    page.click("document.querySelector('#select-all')")
    count = "document.querySelector('#selection-count').textContent"
    whole = page.evaluate("document.querySelectorAll('#gallery > li').length")
    page.wait(f"{count} === '{whole} selected' && !document.querySelector('#selection-delete').checkVisibility()")
    page.click("document.querySelector('#selection-clear')")
    enter_token(page, TOKEN)
    page.wait(f"{button('yard', 'Delete')} !== undefined")
    for name in ("cam", "yard"):
        page.click(f"{card(name)}.querySelector('.gallery-choose')")
    page.wait(f"{count} === '2 selected'")
    page.click("document.querySelector('#selection-delete')")
    page.wait(f"{card('cam')} === undefined && {card('yard')} === undefined")
    page.wait("document.querySelector('#undo-text').textContent === '2 recordings are deleted.'")
    assert archive.json("/api/v1/recordings?stream=yard")["total"] == 0
    page.click("document.querySelector('#undo-button')")
    page.wait(f"{card('cam')} !== undefined && {card('yard')} !== undefined")
    assert page.errors == []


def test_several_are_downloaded_at_once(page, archive, tmp_path):  # noqa: F811
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    open_gallery(page, archive)
    for name in ("cam", "yard"):
        page.click(f"{card(name)}.querySelector('.gallery-choose')")
    page.click("document.querySelector('#selection-download')")
    wanted = sorted(recording(archive, name)["bytes"] for name in ("cam", "yard"))
    deadline = time.monotonic() + 20
    while sorted(f.stat().st_size for f in tmp_path.glob("*.mp4")) != wanted:
        assert time.monotonic() < deadline, list(tmp_path.iterdir())
        time.sleep(0.2)
    assert all(f.read_bytes()[4:8] == b"ftyp" for f in tmp_path.glob("*.mp4"))


@BOTH
def test_a_place_on_the_bar_has_its_picture(browser, archive):  # noqa: F811
    """The key frame's own picture: it is compared with what the player shows there."""
    browser.viewport(1280, 900)
    file = recording(archive, "cam")["file"]
    browser.open(f"{archive.web}/recordings?stream=cam&play={file}")
    browser.wait(f"{VIDEO}?.readyState > 2")
    hover = """(() => {
      const row = document.querySelector("#seek-row"), box = row.getBoundingClientRect();
      row.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width * %s, clientY: box.top + 5, bubbles: true }));
    })()"""
    picture = "document.querySelector('.seek-picture')"
    browser.evaluate(hover % 0.95)
    browser.wait(f"!{picture}.hidden && {picture}.readyState >= 2 && !{picture}.seeking && Number({picture}.dataset.at) > 0")
    at = browser.evaluate(f"Number({picture}.dataset.at)")
    browser.evaluate(f"({VIDEO}.pause(), {VIDEO}.currentTime = {at} + 0.01)")
    browser.wait(f"!{VIDEO}.seeking && {VIDEO}.readyState >= 2")
    difference = browser.evaluate(f"""(() => {{
      const read = (video) => {{
        const canvas = Object.assign(document.createElement("canvas"), {{ width: 64, height: 36 }});
        const pen = canvas.getContext("2d");
        pen.drawImage(video, 0, 0, 64, 36);
        return pen.getImageData(0, 0, 64, 36).data;
      }};
      const [a, b] = [read({VIDEO}), read({picture})];
      return {{ difference: a.reduce((sum, value, n) => sum + Math.abs(value - b[n]), 0) / a.length, light: Math.max(...a) }};
    }})()""")
    assert difference["light"] > 100 and difference["difference"] < 6, difference
    browser.evaluate(hover % 0.01)
    browser.wait(f"Number({picture}.dataset.at) === 0")
    browser.evaluate("document.querySelector('#seek-row').dispatchEvent(new PointerEvent('pointerleave'))")
    browser.wait(f"{picture}.hidden")
    assert browser.errors == []
    watching.leave(browser)


@BOTH_AT_LENGTH
def test_the_speed_is_chosen_by_the_menu_and_by_keys(browser, archive):  # noqa: F811
    file = recording(archive, "cam")["file"]
    browser.open(f"{archive.web}/recordings?stream=cam&play={file}")
    browser.wait(f"{VIDEO}?.readyState > 1")
    enter(browser, "#speed", "2")
    browser.wait(f"{VIDEO}.playbackRate === 2")
    browser.evaluate("document.querySelector('#recording-dialog').dispatchEvent(new KeyboardEvent('keydown', { key: '<', bubbles: true }))")
    browser.wait(f"{VIDEO}.playbackRate === 1.5 && document.querySelector('#speed').value === '1.5'")
    browser.evaluate("document.querySelector('#recording-dialog').close()")
    open_gallery(browser, archive)
    browser.evaluate(f"{button('cam', 'Play')}.click()")
    browser.wait(f"{VIDEO}?.readyState > 1")
    enter(browser, "#speed", "1.5")
    browser.evaluate("document.querySelector('#recording-dialog').close()")
    browser.evaluate(f"{button('yard', 'Play')}.click()")
    # The next one has the same.
    browser.wait(f"{VIDEO}.playbackRate === 1.5")
    watching.leave(browser)


@BOTH
def test_a_clip_is_cut_out_of_what_is_live(browser, archive):  # noqa: F811
    watching.watch(browser, archive, "stage", "?player=mse")
    browser.wait("document.querySelector('#clip-open')?.checkVisibility()")
    # There is something to cut.
    archive.wait(lambda: archive.stream("stage")["recording"]["seconds"] > 5, 20, "some recorded seconds")
    browser.evaluate("document.querySelector('#clip-open').click()")
    link = "document.querySelector('#clip-download').href"
    browser.wait(f"{link}.includes('/clip?from=')")
    browser.evaluate("document.querySelectorAll('#live-clip .clip-actions button')[0].click()")
    clip = archive.get(browser.evaluate(link)).good()
    seconds = float(clip.headers["weir-clip-seconds"])
    # The page asks for it.
    browser.wait(f"document.querySelector('#live-clip .clip-times').textContent.includes('{seconds:.2f}')")
    told = browser.evaluate("document.querySelector('#live-clip .clip-times').textContent")
    assert clip.headers["content-disposition"].startswith("attachment") and clip.body[4:8] == b"ftyp"
    browser.evaluate(f"(() => {{ window.cut = document.createElement('video'); cut.src = {link}; }})()")
    length = float(told.rsplit(" ", 2)[1])
    browser.wait("cut.readyState > 0")
    assert abs(browser.evaluate("cut.duration") - length) < 0.04, told
    watching.leave(browser)


def test_a_stream_that_ended_offers_its_recording(page, archive):  # noqa: F811
    publisher = publishers.ffmpeg("loop", f"{archive.rtmp}/live/brief", loop=-1)
    try:
        watching.watch(page, archive, "brief", "?player=mse")
        watching.play_on(page, 1)
        publisher.interrupt()
        watching.wait_phase(page, "ended")
    finally:
        publisher.kill()
    page.wait("document.querySelector('#message-recording').checkVisibility()", 20)
    page.click("document.querySelector('#message-recording')")
    # Whether it plays by itself is up to the browser's rules of audio.
    page.wait(f"{VIDEO}?.readyState > 1")
    assert "brief" in page.evaluate("document.querySelector('#recording-dialog-title').textContent")
