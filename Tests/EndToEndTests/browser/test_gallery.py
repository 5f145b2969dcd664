"""The gallery of recordings: readable without a token, changed with the admin token."""

import datetime
import json
import shutil
import urllib.parse

import pytest

import watching
from harness import publishers
from test_pages import FOREIGN, OVERFLOW, POOR_CONTRAST

TOKEN = "sesame-0815-4711"


@pytest.fixture(scope="module")
def archive(start_shared):
    """Three finished recordings, and a stream that is being recorded."""
    weir = start_shared(environment={"WEIR_ADMIN_TOKEN": TOKEN})
    short = [publishers.ffmpeg("short", f"{weir.rtmp}/live/{name}") for name in ("cam", "yard", "hall")]
    live = publishers.ffmpeg("loop", f"{weir.rtmp}/live/stage", loop=-1)
    try:
        for publisher in short:
            publisher.wait(60)
        weir.wait(lambda: weir.json("/api/v1/recordings?state=completed")["total"] == 3, 30, "three recordings")
        weir.wait_state("stage", "live", seconds=40)
        yield weir
    finally:
        live.kill()


@pytest.fixture
def page(page):
    yield page
    page.evaluate("sessionStorage.clear()")


def open_gallery(page, weir) -> None:
    page.open(f"{weir.web}/recordings")
    page.wait("document.querySelectorAll('#gallery > li').length >= 3")


def card(name: str) -> str:
    return f"[...document.querySelectorAll('#gallery > li')].find((li) => li.querySelector('h2').textContent === '{name}')"


def button(name: str, word: str) -> str:
    return f"[...{card(name)}.querySelectorAll('button')].find((b) => b.ariaLabel?.startsWith('{word}') && b.checkVisibility())"


def enter_token(page, token: str) -> None:
    page.wait("document.querySelector('#manage').checkVisibility()")
    page.click("document.querySelector('#manage')")
    page.evaluate(f"document.querySelector('#admin-token').value = '{token}'")
    page.click("document.querySelector('#admin-form [type=submit]')")


def test_without_a_token_thumbnails_lengths_and_the_disk_are_seen_and_recordings_played_and_downloaded(page, archive):
    open_gallery(page, archive)
    page.wait("[...document.querySelectorAll('#gallery img')].every((i) => i.complete && i.naturalWidth > 0)")
    assert page.evaluate(f"{card('cam')}.querySelector('.gallery-length').textContent") in ("0:03", "0:04")
    page.wait("document.querySelector('#disk-text').textContent.includes('free')")
    page.wait("document.querySelector('#now-list').innerText.includes('stage')")
    assert page.evaluate("document.querySelectorAll('.recording-buttons button:not([hidden])').length") == 0
    assert page.evaluate(f"{button('cam', 'Delete')} === undefined")
    link = page.evaluate(f"{card('cam')}.querySelector('a').href")
    assert link.startswith(f"{archive.web}/recordings/cam/") and link.endswith(".mp4?download")
    page.click(button("cam", "Play"))
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.5")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")
    assert page.errors == [] and page.evaluate(FOREIGN) == []


def test_the_token_opens_deletion_with_undo_and_protection(page, archive):
    open_gallery(page, archive)
    enter_token(page, "wrong")
    page.wait("!document.querySelector('#admin-error').hidden")
    page.evaluate(f"document.querySelector('#admin-token').value = '{TOKEN}'")
    page.click("document.querySelector('#admin-form [type=submit]')")
    page.wait(f"{button('yard', 'Delete')} !== undefined")
    page.click(button("yard", "Protect"))
    page.wait(f"{card('yard')}.innerText.includes('Protected') && {button('yard', 'Delete')} === undefined")
    page.click(button("yard", "Unprotect"))
    page.wait(f"{button('yard', 'Delete')} !== undefined")
    page.click(button("yard", "Delete"))
    page.wait(f"{card('yard')} === undefined && !document.querySelector('#undo').hidden")
    assert archive.json("/api/v1/recordings?stream=yard")["total"] == 0
    page.click("document.querySelector('#undo-button')")
    page.wait(f"{card('yard')} !== undefined && document.querySelector('#undo').hidden")
    assert archive.json("/api/v1/recordings?stream=yard")["total"] == 1
    # Deleted recordings can be found again.
    page.click(button("hall", "Delete"))
    page.wait(f"{card('hall')} === undefined")
    page.evaluate("(() => { const s = document.querySelector('#filter-state'); s.value = 'deleted'; s.dispatchEvent(new Event('input', {bubbles: true})); })()")
    page.wait(f"{card('hall')} !== undefined && {card('cam')} === undefined")
    page.click(button("hall", "Restore"))
    page.wait("document.querySelectorAll('#gallery > li').length === 0")
    page.click("document.querySelector('#filter-clear')")
    page.wait("document.querySelectorAll('#gallery > li').length >= 3")
    page.errors.clear()  # the 401 for the wrong token is one


def test_a_recording_is_stopped_and_started_from_the_page(page, archive):
    open_gallery(page, archive)
    enter_token(page, TOKEN)
    row = "[...document.querySelectorAll('#now-list > li')].find((li) => li.querySelector('h3').textContent === 'stage')"
    press = lambda word: f"[...{row}.querySelectorAll('button')].find((b) => b.ariaLabel.startsWith('{word}') && b.checkVisibility())"  # noqa: E731
    page.wait(f"{press('Stop')} !== undefined")
    page.click(press("Stop"))
    page.wait(f"{press('Record')} !== undefined && {card('stage')} !== undefined")
    page.click(press("Record"))
    page.wait(f"{press('Discard')} !== undefined")
    watching.mean_it(page, press("Discard"))
    page.wait(f"{press('Record')} !== undefined")
    assert archive.json("/api/v1/recordings?stream=stage&state=running")["total"] == 0
    page.click(press("Record"))
    page.wait(f"{press('Stop')} !== undefined")
    assert page.errors == []


def handle(edge: str) -> str:
    return f"document.querySelector('#clip-{edge}')"


def value(page, edge: str) -> float:
    return float(page.evaluate(f"{handle(edge)}.getAttribute('aria-valuenow')"))


def test_a_clip_is_cut_by_two_handles_on_the_bar(page, archive):
    open_gallery(page, archive)
    page.click(button("cam", "Play"))
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.3")
    page.click("document.querySelector('#clip-open')")
    page.wait(f"{handle('start')}.checkVisibility() && document.activeElement === {handle('start')}")
    length = page.evaluate("document.querySelector('#recording-video').duration")
    assert page.evaluate(f"['start', 'end'].map((e) => document.querySelector(`#clip-${{e}}`).role)") == ["slider", "slider"]
    # By keys: a second, a tenth of a second, and to the limit.
    assert value(page, "start") == 0 and abs(value(page, "end") - length) < 0.1
    page.press("ArrowRight", "ArrowRight")
    assert value(page, "start") == 1.0
    page.press("ArrowRight", "ArrowRight", modifiers=8)
    assert value(page, "start") == 1.1 and page.evaluate(f"{handle('start')}.ariaValueText") == "0:01.1"
    page.wait("Math.abs(document.querySelector('#recording-video')?.currentTime - 1.1) < 0.05")
    page.press("Tab", "Tab")
    assert page.evaluate("document.activeElement.id") == "clip-end"
    page.press("Home", "Home")
    assert abs(value(page, "end") - 1.2) < 0.01
    # By the pointer.
    page.drag(handle("end"), "document.querySelector('#seek-row')", 0.75)
    end = value(page, "end")
    assert abs(end - length * 0.75) < 0.1
    page.wait(f"document.querySelector('.clip-times').textContent.startsWith('0:01.1 to 0:0{end:.1f}')")
    link = page.evaluate("document.querySelector('#clip-download').href")
    assert link.startswith(f"{archive.web}/api/v1/recordings/cam/") and "/clip?from=1.100&to=" in link
    clip = archive.get(link).good()
    assert clip.headers["content-disposition"].startswith("attachment") and clip.body[4:8] == b"ftyp"
    page.evaluate(f"(() => {{ window.cut = document.createElement('video'); cut.src = '{link}'; }})()")
    page.wait(f"Math.abs(cut.duration - {end - 1.1}) < 0.06")
    # Only the clip is played, and it stops at its end.
    page.click("[...document.querySelectorAll('#clip button')].find((b) => b.textContent === 'Play clip')")
    page.wait(f"document.querySelector('#recording-video')?.paused && document.querySelector('#recording-video')?.currentTime >= {end} - 0.05")
    assert page.errors == [] and page.evaluate(POOR_CONTRAST) == []
    page.viewport(320, 700)
    assert page.evaluate("document.querySelector('#recording-dialog').scrollWidth - document.querySelector('#recording-dialog').clientWidth") <= 0
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")


def test_the_player_tells_the_time_of_day_and_works_by_keys(page, archive):
    open_gallery(page, archive)
    page.click(button("yard", "Play"))
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.5")
    began = archive.json("/api/v1/recordings?stream=yard")["recordings"][0]["startedAt"]
    page.press("k", "KeyK")
    page.wait("document.querySelector('#recording-video')?.paused")
    page.wait("!document.querySelector('#position').hidden")
    off = ("Date.parse(document.querySelector('#position').dateTime)"
           f" - Date.parse('{began}') - document.querySelector('#recording-video').currentTime * 1000")
    page.wait(f"Math.abs({off}) < 150")
    page.press("Home", "Home")
    page.wait("document.querySelector('#recording-video')?.currentTime === 0")
    page.wait("document.querySelector('#seek').getAttribute('aria-valuetext').includes('0:00 of 0:0')")
    page.press("m", "KeyM")
    page.wait("document.querySelector('#recording-video')?.muted")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")
    assert page.errors == []


def test_what_is_being_recorded_plays_from_its_beginning_in_the_same_player(page, archive):
    open_gallery(page, archive)
    play = "[...document.querySelectorAll('#now-list .now-row')].find((li) => li.innerText.includes('stage'))?.querySelector(" \
        "'button[aria-label^=Play]:not([hidden])')"
    page.wait(f"{play} != null")
    page.click(play)
    video = "document.querySelector('#recording-video')"
    page.wait(f"{video}?.currentTime > 0.5 && {video}.readyState >= 3")
    running = archive.json("/api/v1/recordings?state=running")["recordings"][0]
    shown = "Date.parse(document.querySelector('#position').dateTime)"
    page.wait("!document.querySelector('#position').hidden")
    # Times are in whole milliseconds; the first may be rounded down.
    assert -2 < page.evaluate(f"{shown} - Date.parse('{running['startedAt']}')") < 10_000, "it begins at the beginning"
    length = "document.querySelector('.player-place').textContent.split(' / ')[1]"
    before = page.evaluate(length)
    assert page.evaluate("document.querySelector('#clip-open').hidden")
    page.press("End", "End")
    newest = f"{shown} - Date.parse('{running['startedAt']}')"
    page.wait(f"{newest} > {(running['seconds'] - 8) * 1000:.0f}")
    page.wait(f"{length} !== '{before}'")
    page.press("Home", "Home")
    page.wait(f"{newest} < 5000 && {video}.readyState >= 3")
    page.press("Escape", "Escape")
    # The address of the page before the dialog comes back a moment later, when the next recording is open.
    page.evaluate(f"{button('yard', 'Play')}.click()")
    page.wait(f"{video}.readyState >= 2 && {video}.duration < 10")
    page.wait("new URLSearchParams(location.search).get('stream') === 'yard'")
    assert page.evaluate("document.querySelector('#recording-dialog').open")
    page.press("Escape", "Escape")
    page.wait("!new URLSearchParams(location.search).has('play')")
    assert page.errors == []


def test_gaps_and_the_reason_of_an_end_are_told(page, archive):
    recording = archive.json("/api/v1/recordings?stream=cam")["recordings"][0]
    recording |= {"state": "failed", "reason": "the disk is full",
                  "gaps": [{"at": 1.0, "seconds": 2.5, "reason": "the disk was too slow"}]}
    bodies = {
        "/api/v1/streams": {"version": "1", "streams": [], "rtmpPort": 1935, "publishKeyRequired": False},
        "/api/v1/recordings": {"recordings": [recording], "next": None, "total": 1}, "/api/v1/storage": {},
    }
    answer = lambda url: json.dumps(bodies.get(urllib.parse.urlsplit(url).path, {"keyFrames": [0], "clock": []}))  # noqa: E731
    with page.answering(f"{archive.web}/api/*", answer):
        page.open(f"{archive.web}/recordings")
        page.wait(f"{card('cam')} !== undefined")
        note = page.evaluate(f"{card('cam')}.querySelector('.gallery-note').textContent")
        assert "the disk is full" in note and "1 gap, 2.5 s missing: the disk was too slow" in note
        page.click(button("cam", "Play"))
        page.wait("document.querySelector('#recording-video')?.currentTime > 0.1")
        text = page.evaluate("document.querySelector('#recording-dialog').innerText")
        assert "Interrupted: the disk is full." in text and "0:01 2.5 s missing: the disk was too slow" in text
        assert page.evaluate("document.querySelectorAll('.seek-gap').length") == 1
        page.click("document.querySelector('.gap-place')")
        page.wait("document.querySelector('#recording-video')?.currentTime >= 1")
        assert page.errors == []


def test_the_watch_page_records_stops_and_throws_away(page, archive):
    watching.watch(page, archive, "stage", "?player=mse")
    press = lambda word: f"[...document.querySelectorAll('#recording button')].find((b) => b.ariaLabel?.startsWith('{word}') && b.checkVisibility())"  # noqa: E731
    state = "document.querySelector('#recording-state').textContent"
    page.wait(f"{state} === 'Recording'")
    page.wait("/\\d:\\d\\d/.test(document.querySelector('#recording-figures').textContent)")
    assert page.evaluate(f"{press('Stop')} === undefined")
    enter_token(page, TOKEN)
    page.wait(f"{press('Stop')} !== undefined")
    page.click(press("Stop"))
    page.wait(f"{state} === 'Stored' && {press('Record')} !== undefined")
    page.click(press("Record"))
    page.wait(f"{state} === 'Recording'")
    watching.mean_it(page, press("Discard"))
    page.wait(f"{state} === 'Discarded'")
    assert archive.json("/api/v1/recordings?stream=stage&state=running")["total"] == 0
    page.click(press("Record"))
    page.wait(f"{state} === 'Recording'")
    assert page.errors == [] and page.evaluate(POOR_CONTRAST) == []
    page.click("document.querySelector('#recording-all')")
    page.wait("document.querySelector('#filter-stream')?.value === 'stage'")
    page.wait("document.querySelectorAll('#gallery > li').length >= 1 && [...document.querySelectorAll('#gallery h2')].every((h) => h.textContent === 'stage')")


def test_the_watch_page_tells_why_a_recording_is_interrupted_and_what_is_missing(page, archive):
    stream = archive.stream("stage")
    stream["recording"] = {"state": "failed", "reason": "the disk has 3 MB free", "seconds": 61, "bytes": 5_000_000,
                           "file": "stage/x.mp4", "gaps": [{"at": 12.0, "seconds": 3.0, "reason": "the disk was too slow"}]}
    with page.answering(f"{archive.web}/live/stage/status.json", lambda _: json.dumps(stream)):
        watching.watch(page, archive, "stage", "?player=mse")
        page.wait("document.querySelector('#recording-state').textContent === 'Interrupted'")
        text = page.evaluate("document.querySelector('#recording').innerText")
        assert "1:01 · 5.0\u00a0MB" in text and "Interrupted: the disk has 3 MB free" in text
        assert "0:12 3.0 s missing: the disk was too slow" in text
        assert page.evaluate("document.querySelector('#recording-reason').role") == "status"


def test_hundreds_of_recordings_come_page_by_page_with_their_thumbnails_when_they_are_seen(page, archive, start, tmp_path):
    source = next((archive.recordings / "cam").glob("*.mp4"))
    folder = tmp_path / "many" / "cam"
    folder.mkdir(parents=True)
    shutil.copy(source, folder / "20261101T000000Z.mp4")
    for number in range(1, 300):
        (folder / f"20261101T{number // 3600:02}{number // 60 % 60:02}{number % 60:02}Z.mp4").hardlink_to(folder / "20261101T000000Z.mp4")
    weir = start(recordings=folder.parent)
    weir.wait(lambda: weir.json("/api/v1/recordings?limit=1")["complete"], 20, "the folder is read")
    # One thumbnail is used for all: this test is not about decoding hundreds of them.
    thumbnail = weir.get(weir.json("/api/v1/recordings?limit=1")["recordings"][0]["thumbnail"]).good().body
    asked = []
    with page.answering(f"{weir.web}/recordings/cam/*.jpg", lambda url: asked.append(url) or thumbnail):
        page.open(f"{weir.web}/recordings")
        page.wait("document.querySelector('#count').textContent === '300 recordings'")
        page.wait("document.querySelector('#gallery img')?.naturalWidth > 0")
        assert 48 <= page.evaluate("document.querySelectorAll('#gallery > li').length") <= 96
        assert len(asked) < 48
        for _ in range(10):
            shown = page.evaluate("(scrollTo(0, document.body.scrollHeight), document.querySelectorAll('#gallery > li').length)")
            if shown == 300:
                break
            page.wait(f"document.querySelectorAll('#gallery > li').length > {shown}")
        assert page.evaluate("new Set([...document.querySelectorAll('#gallery a')].map((a) => a.href)).size") == 300
        assert page.errors == []


def test_the_list_is_narrowed_by_stream(page, archive):
    open_gallery(page, archive)
    page.evaluate("(() => { const s = document.querySelector('#filter-stream'); s.value = 'cam'; s.dispatchEvent(new Event('input', {bubbles: true})); })()")
    page.wait(f"document.querySelectorAll('#gallery > li').length === 1 && {card('cam')} !== undefined")
    assert page.evaluate("document.querySelector('#count').textContent") == "1 recording"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_gallery_is_legible_named_and_fits(page, archive, scheme):
    page.prefer(color_scheme=scheme)
    open_gallery(page, archive)
    enter_token(page, TOKEN)
    page.wait(f"{button('cam', 'Delete')} !== undefined")
    for width in (320, 768, 1280):
        page.viewport(width, 900)
        assert page.evaluate(OVERFLOW) <= 0, width
    assert page.evaluate(POOR_CONTRAST) == []
    nameless = ("[...document.querySelectorAll('button, a, input, select')].filter((e) => e.checkVisibility() && "
                "!(e.ariaLabel || e.textContent.trim() || e.labels?.length)).length")
    assert page.evaluate(nameless) == 0


def test_hostile_texts_of_the_catalogue_are_shown_and_not_run(page, archive):
    evil = '<img src=x onerror="window.hacked=1"><b id=evil>'
    entry = {"stream": evil, "file": evil, "url": "javascript:window.hacked=1", "thumbnail": "https://evil.example/x.jpg",
             "bytes": 1, "seconds": 1, "startedAt": "", "state": "failed", "reason": evil, "codecs": [evil],
             "gaps": [{"at": 1, "seconds": 1, "reason": evil}], "salvaged": True, "protected": False, "deletedAt": None}
    bodies = {
        "/api/v1/streams": {"version": evil, "streams": [], "rtmpPort": 1935, "publishKeyRequired": False},
        "/api/v1/recordings": {"recordings": [entry], "next": None, "total": 1},
        "/api/v1/storage": {"freeBytes": 1, "totalBytes": 2, "recordedBytes": 1, "deletedBytes": 0, "keepFreeBytes": 1,
                            "undoSeconds": 1, "writable": True},
    }
    with page.answering(f"{archive.web}/api/*", lambda url: json.dumps(bodies[urllib.parse.urlsplit(url).path])):
        page.open(f"{archive.web}/recordings")
        page.wait("document.querySelectorAll('#gallery > li').length === 1")
        assert page.evaluate("document.querySelector('#gallery h2').textContent") == evil
        assert page.evaluate("document.querySelector('#evil') === null && (window.hacked ?? null) === null")
        assert page.evaluate("[...document.querySelectorAll('main a[href]')].every((a) => a.protocol === 'http:')")
        assert page.evaluate(FOREIGN) == [] and page.errors == []


#: No summer time, and another date than UTC's for most of the day.
ZONE, AHEAD = "Pacific/Kiritimati", datetime.timedelta(hours=14)


def test_dates_are_in_the_language_and_the_time_zone_of_the_reader(page, archive):
    began = min(each["startedAt"] for each in archive.json("/api/v1/recordings?state=completed")["recordings"])
    local = datetime.datetime.fromisoformat(began.replace("Z", "+00:00")).replace(tzinfo=None) + AHEAD
    # British English alone has four letters for one month.
    british = "Sept" if local.month == 9 else f"{local:%b}"
    wanted = {"en-US": f"{local:%b} {local.day}, {local:%Y}, {local.hour % 12 or 12}:{local:%M:%S} {local:%p}",
              "en-GB": f"{local.day} {british} {local:%Y}, {local:%H:%M:%S}", "de-DE": f"{local:%d.%m.%Y, %H:%M:%S}"}
    agent = page.evaluate("navigator.userAgent")
    page.call("Emulation.setTimezoneOverride", timezoneId=ZONE)
    try:
        for language, date in wanted.items():
            page.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
            page.call("Emulation.setLocaleOverride", locale=language)
            open_gallery(page, archive)
            assert page.evaluate("navigator.languages") == [language]
            # Intl has narrow spaces, too.
            dates = page.evaluate("[...document.querySelectorAll('.gallery-when')].map((e) => e.textContent.replace(/\\s/g, ' '))")
            assert any(text.startswith(date) for text in dates), (language, date, dates)
    finally:
        page.call("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="")
        page.call("Emulation.setLocaleOverride")
        page.call("Emulation.setTimezoneOverride", timezoneId="")
