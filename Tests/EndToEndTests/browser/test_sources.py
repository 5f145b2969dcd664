"""The panel of a publisher that is part of the server: started, stopped and switched with the admin token."""

import time

import pytest

import browsers
import watching
from harness import sources
from test_pages import FOREIGN, OVERFLOW, POOR_CONTRAST

TOKEN = "open-sesame"
STATE = "document.querySelector('#source-state').textContent"
PANEL = "document.querySelector('#source').checkVisibility()"


@pytest.fixture(scope="module")
def studio(start_shared):
    """A film, a capture whose devices this machine does not have, and the test pattern, which is stopped."""
    slate = "v4l2:/dev/video63?size=320x180&fps=10&preset=ultrafast&gop=1s,alsa:hw:9"
    weir = start_shared("--source", f"demo=file:{sources.source('loop')}", "--source", f"cam={slate}", "--source", "pattern=test",
                        "--admin-token", TOKEN)
    weir.get("/api/v1/sources/pattern/stop?wait=20s", method="POST", headers={"Authorization": f"Bearer {TOKEN}"}).good()
    for name in ("demo", "cam"):
        weir.wait_state(name, "live", seconds=30)
    return weir


@pytest.fixture
def page(page):
    yield page
    page.evaluate("sessionStorage.clear()")


def enter_token(page) -> None:
    page.wait("document.querySelector('#manage').checkVisibility()")
    page.click("document.querySelector('#manage')")
    page.evaluate(f"document.querySelector('#admin-token').value = '{TOKEN}'")
    page.click("document.querySelector('#admin-form [type=submit]')")


def press(identifier: str) -> str:
    return f"document.querySelector('#{identifier}')"


def hold_enter(page, button: str) -> None:
    """For a second and a half. The times of the events are the keyboard's, however late they come."""
    page.evaluate(f"{button}.focus()")
    began = time.time()
    for number in range(30):
        page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", windowsVirtualKeyCode=13, autoRepeat=number > 0,
                  timestamp=began + number * 0.05)
        time.sleep(max(0, began + number * 0.05 - time.time()))
    page.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", windowsVirtualKeyCode=13)


def click_hastily(page, button: str, counts: tuple[int, int]) -> None:
    """Two clicks, 0.1 s apart by the mouse's clock. With counts of (1, 1) they are two taps and no double click."""
    x, y = page.evaluate(browsers.MIDDLE_AT_REST % button)
    began = time.time()
    for number, count in enumerate(counts):
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count, timestamp=began + number * 0.1)


def test_what_takes_a_live_stream_off_the_air_asks_once_more(page, studio):
    """A double click, two taps or a key that is held down do not count as a confirmation. Tests/WebTests/confirm.test.mjs has the
    times of all such buttons."""
    watching.watch(page, studio, "demo")
    enter_token(page)
    page.wait(f"{press('source-stop')}.checkVisibility()")
    preview, stop = press("source-preview"), press("source-stop")
    at_rest = f"{preview}.textContent === 'Take off air' && {stop}.textContent === 'Stop'"
    assert page.evaluate(at_rest)
    for on_preview, on_stop in ((lambda: page.click(preview), lambda: click_hastily(page, stop, (1, 2))),
                                (lambda: click_hastily(page, preview, (1, 1)), lambda: hold_enter(page, stop))):
        on_preview()
        page.wait(f"{preview}.textContent === 'Really?'")
        assert "press again" in page.evaluate("document.querySelector('#announcer').textContent")
        on_stop()
        page.wait(f"{stop}.textContent === 'Really?'")
        # Without a second click nothing happens.
        page.wait(at_rest)
        assert studio.stream("demo")["state"] == "live"


def test_a_live_stream_is_taken_off_the_air_stopped_and_put_on_it_again(page, studio):
    watching.watch(page, studio, "demo")
    enter_token(page)
    page.wait(f"{press('source-stop')}.checkVisibility()")
    page.click(press("source-preview"))
    page.wait(f"{press('source-preview')}.textContent === 'Really?'")
    assert page.evaluate(POOR_CONTRAST) == []
    watching.confirm(page, press("source-preview"), lambda: page.click(press("source-preview")))
    page.wait(f"{STATE} === 'Off air'")
    # A source without viewers is stopped at once.
    page.click(press("source-stop"))
    page.wait(f"{STATE} === 'Stopped'")
    assert page.evaluate(f"{press('source-preview')}.textContent") == "Preview"
    page.click(press("source-preview"))
    page.wait(f"{STATE} === 'Off air'")
    page.click(press("source-start"))
    page.wait(f"{STATE} === 'Live'")
    watching.wait_phase(page, "playing")
    page.errors.clear()  # a preview frame that did not exist yet may be one


def test_a_source_is_stopped_and_started_on_its_page(page, studio):
    watching.watch(page, studio, "demo")
    page.wait("document.querySelector('#manage').checkVisibility()")
    assert not page.evaluate(PANEL), "viewers do not see it"
    assert page.evaluate("['source-start', 'source-preview', 'source-stop', 'devices'].every((id) => document.getElementById(id).hidden)")
    enter_token(page)
    page.wait(f"{PANEL} && {STATE} === 'Live'")
    assert page.evaluate("document.querySelector('#source-kind').textContent") == "File"
    page.wait(f"{press('source-stop')}.checkVisibility()")
    watching.mean_it(page, press("source-stop"))
    page.wait(f"{STATE} === 'Stopped' && document.querySelector('#stage').dataset.phase === 'ended'")
    assert studio.stream("demo")["state"] == "ended"
    page.click(press("source-start"))
    page.wait(f"{STATE} === 'Live'")
    # The viewer stays on the stream.
    watching.wait_phase(page, "playing")
    assert page.evaluate(POOR_CONTRAST) == [] and page.evaluate(FOREIGN) == [] and page.errors == []


def test_what_is_off_air_is_seen_in_the_panel_alone(page, studio):
    watching.watch(page, studio, "demo")
    enter_token(page)
    page.wait(f"{press('source-preview')}.checkVisibility()")
    watching.mean_it(page, press("source-preview"))
    page.wait(f"{STATE} === 'Off air' && document.querySelector('#stage').dataset.phase === 'ended'")
    film = "document.querySelector('#source-film')"
    page.wait(f"{film}.checkVisibility() && {film}.videoWidth === 320 && document.querySelector('#source-frame').hidden")
    # The preview of the film is not black.
    page.evaluate("window.drawn = Object.assign(document.createElement('canvas'), { width: 640, height: 360 }).getContext('2d')")
    page.evaluate(f"drawn.drawImage({film}, 0, 0, 640, 360)")
    assert page.evaluate("drawn.getImageData(0, 0, 640, 360).data.some((v, n) => n % 4 < 3 && v > 100)")
    # It moves, close to now.
    shown = f"{film}.getVideoPlaybackQuality().totalVideoFrames"
    before = page.evaluate(shown)
    page.wait(f"{shown} >= {before + 30}")
    assert page.evaluate(f"{film}.buffered.end({film}.buffered.length - 1) - {film}.currentTime") < 5
    assert page.evaluate(POOR_CONTRAST) == []
    page.click(press("source-start"))
    page.wait(f"{STATE} === 'Live' && document.querySelector('#source-frame').hidden && {film}.hidden")
    watching.wait_phase(page, "playing")
    page.errors.clear()  # a preview frame that did not exist yet may be one


def test_what_is_off_air_is_recorded_and_goes_on_air_meanwhile(page, studio):
    state = "document.querySelector('#recording-state').textContent"
    button = lambda symbol: f"document.querySelector('.recording-buttons [aria-label^=\"{symbol}\"]')"
    watching.watch(page, studio, "cam")
    # On air it is recorded with its stream.
    page.wait(f"{state} === 'Recording'")
    enter_token(page)
    page.wait(f"{press('source-preview')}.checkVisibility()")
    watching.mean_it(page, press("source-preview"))
    page.wait(f"{STATE} === 'Off air' && {state} === 'Stored' && {button('Record')}.checkVisibility()")
    page.click(button("Record"))
    page.wait(f"{state} === 'Recording' && {button('Stop')}.checkVisibility()")
    page.click(press("source-start"))
    page.wait(f"{STATE} === 'Live' && document.querySelector('#stage').dataset.phase === 'playing'")
    assert page.evaluate(state) == "Recording" and page.evaluate(POOR_CONTRAST) == []
    page.click(button("Stop"))
    page.wait(f"{state} === 'Stored' && {STATE} === 'Live'")
    page.errors.clear()  # a preview frame that did not exist yet may be one


def test_a_recording_is_thrown_away_by_who_means_it(page, studio):
    state = "document.querySelector('#recording-state').textContent"
    button = lambda symbol: f"document.querySelector('.recording-buttons [aria-label^=\"{symbol}\"]')"
    watching.watch(page, studio, "cam")
    enter_token(page)
    page.wait(f"{button('Record')}.checkVisibility() || {button('Stop')}.checkVisibility()")
    if page.evaluate(f"{button('Record')}.checkVisibility()"):
        page.click(button("Record"))
    page.wait(f"{state} === 'Recording' && {button('Discard')}.checkVisibility()")
    watching.mean_it(page, button("Discard"))
    page.wait(f"{state} !== 'Recording'")


def test_the_home_page_has_them_all_with_the_token(page, studio):
    page.open(f"{studio.web}/")
    page.wait("document.querySelector('#manage').checkVisibility()")
    assert not page.evaluate("document.querySelector('#sources').checkVisibility()")
    page.click(press("manage"))
    page.evaluate(f"document.querySelector('#admin-token').value = '{TOKEN}'")
    page.click("document.querySelector('#admin-form [type=submit]')")
    page.wait("document.querySelectorAll('#sources-list li').length === 3")
    state = "document.querySelector('#sources-list li .badge').textContent"
    button = lambda label: f"document.querySelector('#sources-list [aria-label=\"{label}\"]')"
    assert page.evaluate("[...document.querySelectorAll('#sources-list a')].map((a) => a.textContent)") == ["demo", "cam", "pattern"]
    assert page.evaluate("document.querySelector('#sources-list li:last-child .source-kind').textContent") == "Test pattern"
    for label, becomes in (("Take demo off air", "Off air"), ("Go live with demo", "Live"), ("Stop demo", "Stopped"),
                           ("Go live with demo", "Live")):
        page.click(button(label))
        if becomes != "Live":
            page.wait(f"{button(label)}.textContent === 'Really?'")
            assert page.evaluate(state) == "Live"
            watching.confirm(page, button(label), lambda button=button(label): page.click(button))
        page.wait(f"{state} === '{becomes}'")
    page.wait("document.querySelector('#sources-list').innerText.includes('there is no camera')")
    assert page.evaluate(POOR_CONTRAST) == [] and page.evaluate(FOREIGN) == [] and page.errors == []
    page.viewport(320, 640)
    assert page.evaluate(OVERFLOW) <= 0


def test_devices_are_listed_and_what_cannot_be_switched_is_said(page, studio):
    watching.watch(page, studio, "cam")
    enter_token(page)
    page.wait("document.querySelector('#camera').checkVisibility() && document.querySelector('#microphone').checkVisibility()")
    assert page.evaluate("[document.querySelector('#camera').value, document.querySelector('#microphone').value]") == [
        "v4l2:/dev/video63", "alsa:hw:9"]
    page.wait("document.querySelector('#source-reason').textContent.includes('there is no camera /dev/video63')")
    # The device existed when the list was made. The page shows that it is missing now.
    choose = """(() => {
      const menu = document.querySelector('#camera');
      menu.append(Object.assign(document.createElement('option'), { value: '%s' }));
      menu.value = '%s';
      menu.dispatchEvent(new Event('change'));
    })()"""
    page.evaluate(choose % (("v4l2:/dev/video62",) * 2))
    page.wait("document.querySelector('#camera').value === 'v4l2:/dev/video62'")
    page.wait("document.querySelector('#source-reason').textContent.includes('there is no camera /dev/video62')")
    assert studio.stream("cam")["capture"]["video"]["device"] == "/dev/video62"
    assert page.errors == []
    page.evaluate(choose % (("v4l2:?size=big",) * 2))
    page.wait("document.querySelector('#source-reason').textContent.includes('the device of a camera is missing')")
    page.wait("document.querySelector('#camera').value === 'v4l2:/dev/video62'")
    page.errors.clear()  # the refusal is one
    assert page.evaluate(POOR_CONTRAST) == []
    page.viewport(320, 640)
    assert page.evaluate(OVERFLOW) <= 0


def test_the_panel_is_not_there_for_others_streams_and_without_a_token(page, studio, demo):
    watching.watch(page, demo, "demo")
    page.wait("document.querySelector('#stage').dataset.phase === 'playing'")
    assert not page.evaluate(PANEL), "that server has no admin token"
    page.open(f"{studio.web}/watch/nobody")
    page.wait("document.querySelector('#stage').dataset.phase === 'notStarted'")
    assert not page.evaluate(PANEL)
