"""The menu of qualities: a change only changes the frame size, at a segment boundary."""

import contextlib
import os
import re
import signal
import time

import pytest

import watching
from harness import sources

#: Records each gap in the buffer and each stall from now on.
OBSERVE = """(() => {
  const video = document.querySelector("#video");
  window.seen = { holes: 0, waits: 0, heights: [video.videoHeight] };
  video.addEventListener("waiting", () => { seen.waits += 1; });
  video.addEventListener("emptied", () => { seen.waits += 100; });
  video.addEventListener("resize", () => { seen.heights.push(video.videoHeight); });
  // A frame that a busy machine drops is no gap.
  setInterval(() => {
    const { buffered } = video;
    for (let n = 1; n < buffered.length; n += 1) if (buffered.start(n) - buffered.end(n - 1) > 0.05) seen.holes += 1;
  }, 50);
})()"""

CHOOSE = """(() => {
  const menu = document.querySelector("#quality");
  menu.value = %r;
  menu.dispatchEvent(new Event("change", { bubbles: true }));
})()"""


def choose(browser, name, height):
    browser.evaluate(CHOOSE % name)
    return browser.wait(HEIGHT % height)


HEIGHT = "document.querySelector('#video').videoHeight === %d"


LADDERED = ("--no-record", "--window", "20s", "--ladder", "180p@300k,90p@100k", "--audio-codec", "opus")


def film():
    return f"demo=file:{sources.source('rungs')}"


@pytest.fixture(scope="module")
def laddered(start_shared):
    server = start_shared("--source", film(), *LADDERED)
    wait_rungs(server)
    return server


def wait_rungs(server):
    """Waits until both rungs are listed. A rung that falls behind on a busy machine is not listed until its newest segment has
    media again, neither by the API nor in the multivariant playlist."""
    server.wait(lambda: len(((server.stream("demo") or {}).get("ladder") or {}).get("renditions", [])) == 2, 30, "two rungs")


@pytest.mark.parametrize("choices", [(("180p", 180), ("90p", 90)), (("90p", 90), ("", 360))], ids=["smaller", "and back"])
@pytest.mark.parametrize("stalls", [100, pytest.param(3, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_the_rendition_changes_at_a_boundary_without_a_gap(chromium, laddered, choices, stalls):
    watching.watch(chromium, laddered, "demo")
    chromium.wait("!document.querySelector('#quality').hidden")
    texts = chromium.evaluate("[...document.querySelectorAll('#quality option')].map((o) => o.textContent)")
    assert [text.split(" ")[0] for text in texts] == ["Auto", "360p", "180p", "90p"], texts
    assert texts[1].endswith("(source)")
    chromium.wait("document.querySelector('#video').currentTime > 1")
    # A page that chooses by itself takes a smaller one where the machine is busy.
    choose(chromium, "", 360)
    chromium.evaluate(OBSERVE)
    for name, height in choices:
        choose(chromium, name, height)
        watching.play_on(chromium, 1)
    seen = chromium.evaluate("window.seen")
    assert seen["heights"] == [360, *(height for _, height in choices)]
    # A reset of the video element counts as a hundred stalls.
    assert seen["holes"] == 0 and seen["waits"] < stalls, seen
    assert watching.state(chromium)["error"] is None
    # A hinted part that a busy machine has not made is no error.
    assert [error for error in chromium.errors if "404" not in error] == []
    watching.leave(chromium)


#: Chooses the smaller quality in the middle of a segment. The next reload of the former playlist shows the end of that
#: segment and the beginning of the next one, a second before the smaller quality's own playlist does.
LATE = """window.late = { held: 0, spanned: false };
fetch = ((asked) => {
  let isChosen = false, tell;
  const told = new Promise((resume) => { tell = resume; });
  return async (url, options) => {
    const list = /\\/(video|180p)\\/index.m3u8.*_HLS_msn=(\\d+)&_HLS_part=(\\d+)/.exec(url);
    if (list?.[1] === "180p") {
      isChosen = true;
      late.held += 1;
      await told;
    }
    if (list?.[1] !== "video") return asked(url, options);
    if (!isChosen && window.wanted && list[3] === "4") {
      window.wanted();
      window.wanted = null;
    }
    if (!isChosen || late.spanned) return asked(url, options);
    late.spanned = true;
    const next = Number(list[2]) + (list[3] === "0" ? 0 : 1);
    const answer = await asked(url.replace(/_HLS_msn=.*_HLS_part=\\d+/, `_HLS_msn=${next}&_HLS_part=1`), options);
    setTimeout(tell, 1000);
    return answer;
  };
})(fetch);"""


def test_a_rendition_that_is_late_at_the_boundary_is_waited_for(chromium, laddered):
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=LATE)["identifier"]
    try:
        watching.watch(chromium, laddered, "demo")
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    chromium.wait("document.querySelector('#video').currentTime > 1")
    chromium.evaluate(f"window.wanted = () => {CHOOSE % '180p'}, null")
    chromium.wait(HEIGHT % 180)
    assert chromium.evaluate("late.spanned && late.held > 0")
    watching.play_on(chromium, 2)
    watching.leave(chromium)


#: The playlist of the first chosen quality arrives after that of the second.
SLOW = """fetch = ((asked) => async (url, options) => {
  const answer = await asked(url, options);
  if (/\\/180p\\/index.m3u8$/.test(url)) await new Promise((resume) => setTimeout(resume, 1500));
  return answer;
})(fetch)"""


def test_of_two_choices_the_later_one_counts(chromium, laddered):
    watching.watch(chromium, laddered, "demo")
    chromium.wait("document.querySelectorAll('#quality option').length === 4")
    choose(chromium, "", 360)
    chromium.evaluate(OBSERVE)
    chromium.evaluate(SLOW + ", null")
    chromium.evaluate(CHOOSE % "180p")
    chromium.evaluate(CHOOSE % "90p")
    chromium.wait(HEIGHT % 90)
    watching.play_on(chromium, 2)
    assert chromium.evaluate("window.seen.heights") == [360, 90]
    assert chromium.evaluate("document.querySelector('#quality').value") == "90p"
    watching.leave(chromium)


def test_a_rendition_that_cannot_be_had_is_told(chromium, laddered):
    watching.watch(chromium, laddered, "demo")
    chromium.wait("document.querySelectorAll('#quality option').length === 4")
    with chromium.answering(f"{laddered.web}/live/demo/*/90p/index.m3u8", lambda _: (503, "{}")):
        chromium.evaluate(CHOOSE % "90p")
        chromium.wait("document.querySelector('#quality').options[3].textContent.endsWith(' · not available')")
    assert chromium.evaluate("document.querySelector('#quality').value") == ""
    assert chromium.evaluate("document.querySelector('#announcer').textContent") == "The chosen quality is not available"
    assert chromium.evaluate(watching.DETAILS)["Last error"] == "quality: the server responded with status 503"
    choose(chromium, "90p", 90)
    assert chromium.evaluate("document.querySelector('#quality').selectedOptions[0].textContent").startswith("90p · ")
    chromium.wait("!/not available/.test(document.querySelector('#quality').textContent)")
    watching.leave(chromium)


def test_the_panel_tells_how_the_rungs_are_made(chromium, start):
    laddered = start("--test-pattern", "demo", "--no-record", "--ladder", "360p@800k,180p@300k")
    wait_rungs(laddered)
    watching.watch(chromium, laddered, "demo")
    shown = chromium.evaluate(watching.DETAILS)
    assert shown["Ladder"] == "360p, 180p"
    assert shown["Camera"] == "test pattern, 1280×720"
    assert re.fullmatch(r"libx264, \d+ dropped, 0 lost in capture", shown["Encoder"])
    told = re.fullmatch(r"running, (\d+) restarts?, (\d+) frames dropped", shown["Transcoder"])
    before = laddered.stream("demo")["ladder"]
    assert int(told[1]) == before["restarts"] and int(told[2]) <= before["droppedFrames"]
    os.kill(before["processID"], signal.SIGKILL)
    chromium.wait(
        "[...document.querySelectorAll('#figures > div')].some((row) => row.querySelector('dt').textContent === 'Transcoder'"
        f" && / {before['restarts'] + 1} restart/.test(row.querySelector('dd').textContent))")
    watching.leave(chromium)


#: Cut-off pixels of the button's text and of the row of buttons, and what lies under a finger there.
CUT = """(() => {
  const button = document.querySelector("#quality-shown"), row = document.querySelector(".buttons");
  const { x, y, width, height } = button.getBoundingClientRect();
  return { text: button.scrollWidth - button.clientWidth, row: row.scrollWidth - row.clientWidth,
           finds: document.elementFromPoint(x + width / 2, y + height / 2)?.id };
})()"""


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_each_choice_can_be_read_on_the_menus_button(chromium, laddered, width):
    laddered.wait(lambda: laddered.stream("demo")["ageSeconds"] > 10, 40, "a window to go back in")
    chromium.viewport(width, 700)
    try:
        watching.watch(chromium, laddered, "demo")
        chromium.wait("document.querySelectorAll('#quality option').length === 4")
        for edge in ("live", "behind"):
            if edge == "behind":
                watching.seek_to(chromium, 6)
            chromium.wait(f"document.querySelector('#live').dataset.edge === '{edge}'")
            for name, shown in (("auto", r"Auto · \d+p"), ("", "360p"), ("180p", "180p"), ("90p", "90p"), ("auto", r"Auto · \d+p")):
                chromium.evaluate(CHOOSE % name)
                chromium.wait(f"/^{shown}$/.test(document.querySelector('#quality-shown')?.textContent)")
                assert chromium.evaluate(CUT) == {"text": 0, "row": 0, "finds": "quality"}, f"{name!r}, {edge}"
        # The list shows more.
        texts = chromium.evaluate("[...document.querySelectorAll('#quality option')].map((o) => o.textContent)")
        assert all(re.fullmatch(r"\d+p · .*bit/s( \(source\))?", text) for text in texts[1:]), texts
        # The keyboard focus is visible.
        chromium.evaluate("document.querySelector('#fullscreen').focus()")
        for _ in range(12):
            if chromium.evaluate("document.activeElement.id") == "quality":
                break
            chromium.press("Tab", "Tab", modifiers=8)
        assert chromium.evaluate("document.activeElement.id") == "quality"
        assert chromium.evaluate("getComputedStyle(document.querySelector('.quality')).outlineStyle") == "solid"
    finally:
        watching.leave(chromium)
        chromium.viewport(1280, 900)


def test_renditions_that_come_back_are_learned_of(chromium, laddered):
    """A page that is opened while the transcoder restarts shows the menu as soon as there is something to choose."""

    def is_bare():
        ladder = laddered.stream("demo")["ladder"]
        if ladder["renditions"] and ladder.get("processID"):
            # It may have been removed since.
            with contextlib.suppress(ProcessLookupError):
                os.kill(ladder["processID"], signal.SIGKILL)
        return not ladder["renditions"]

    laddered.wait(is_bare, 20, "no rung is left")
    watching.watch(chromium, laddered, "demo")
    chromium.wait("document.querySelectorAll('#quality option').length === 4")
    watching.leave(chromium)


def test_a_stream_without_a_ladder_has_no_menu(chromium, demo):
    watching.watch(chromium, demo, "demo")
    assert chromium.evaluate("document.querySelector('#quality').hidden")
    watching.leave(chromium)


THROTTLE = dict(offline=False, latency=20, uploadThroughput=-1)


def kill_transcoder(server):
    worker = server.stream("demo")["ladder"].get("processID")
    if worker:
        os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize("then", [
    "stays narrow", pytest.param("is wide again", marks=pytest.mark.long), pytest.param("the ladder is lost", marks=pytest.mark.long)])
def test_what_the_connection_carries_decides_without_a_choice(chromium, laddered, then):
    watching.watch(chromium, laddered, "demo")
    chromium.wait("document.querySelector('#quality').value === 'auto'")
    chromium.wait("document.querySelector('#video').currentTime > 1")
    chromium.evaluate(OBSERVE)
    chromium.call("Network.enable")
    try:
        # The source needs 1.7 Mbit/s, the larger rung 0.4.
        chromium.call("Network.emulateNetworkConditions", downloadThroughput=1_200_000 / 8, **THROTTLE)
        chromium.wait("document.querySelector('#video').videoHeight < 360", 30)
        watching.play_on(chromium, 1)
        assert chromium.evaluate("document.querySelector('#quality').selectedOptions[0].textContent").startswith("Auto · ")
    finally:
        chromium.call("Network.emulateNetworkConditions", downloadThroughput=-1, **THROTTLE)
    if then == "stays narrow":
        return watching.leave(chromium)
    if then == "the ladder is lost":
        # The smaller qualities have no more media, so the source is better.
        end = time.monotonic() + 40
        while not chromium.evaluate(HEIGHT % 360):
            assert time.monotonic() < end, chromium.evaluate("window.seen")
            kill_transcoder(laddered)
            time.sleep(0.2)
        return watching.leave(chromium)
    # A failed trial, or a stall on a busy machine, doubles the calm time before the next trial.
    chromium.wait(HEIGHT % 360, 80)
    watching.play_on(chromium, 2)
    seen = chromium.evaluate("window.seen")
    assert seen["holes"] == 0 and seen["waits"] < 100, seen
    assert seen["heights"][0] == seen["heights"][-1] == 360 and min(seen["heights"]) < 360, seen
    watching.leave(chromium)


#: A browser without a codec.
LACK = """MediaSource.isTypeSupported = ((asked) => (type) => !/mp4a/i.test(type) && asked(type))(
  MediaSource.isTypeSupported.bind(MediaSource))"""


def test_a_browser_without_the_sources_codec_plays_the_other_one(chromium, laddered):
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=LACK)["identifier"]
    try:
        watching.watch(chromium, laddered, "demo")
        chromium.wait("document.querySelector('#video').webkitAudioDecodedByteCount > 5000", 20)
        figures = chromium.evaluate(watching.DETAILS)
        assert "Opus" in " ".join(figures.values()) and "AAC" not in " ".join(figures.values()), figures
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    watching.leave(chromium)


def test_a_browser_that_cannot_play_the_source_plays_another_rendition(chromium, laddered):
    wait_rungs(laddered)
    own = next(t["codecString"] for t in laddered.stream("demo")["tracks"] if t["kind"] == "video")
    assert own not in {r["codecString"] for r in laddered.stream("demo")["ladder"]["renditions"]}
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=LACK.replace("mp4a", own))["identifier"]
    try:
        watching.watch(chromium, laddered, "demo")
        chromium.wait(f"({HEIGHT % 180}) || ({HEIGHT % 90})")
        # A rung that was behind when the page read the playlist comes into the menu once it is listed again.
        menu = "[...document.querySelectorAll('#quality option')].map((o) => o.textContent)"
        chromium.wait(f"{menu}.map((text) => text.split(' ')[0]).join() === 'Auto,180p,90p'", 20)
        texts = chromium.evaluate(menu)
        assert not any("source" in text for text in texts), texts
        choose(chromium, "90p", 90)
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    watching.leave(chromium)


def test_a_rendition_that_is_listed_later_is_found_by_a_browser_that_cannot_play_the_source(chromium, laddered):
    """A rung that is behind is not in the multivariant playlist, though the API may name it already."""
    wait_rungs(laddered)
    own = next(t["codecString"] for t in laddered.stream("demo")["tracks"] if t["kind"] == "video")
    # As the page asks for it.
    address = f"{laddered.web}/live/demo/index.m3u8?start=parts"
    lines = laddered.get("/live/demo/index.m3u8").good().text.splitlines()
    rungs = [at for at, line in enumerate(lines) if line.startswith("#EXT-X-STREAM-INF") and own not in line]
    assert rungs and any(line.startswith("#EXT-X-STREAM-INF") and own in line for line in lines), lines
    bare = "".join(f"{line}\n" for at, line in enumerate(lines) if at not in rungs and at - 1 not in rungs)
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=LACK.replace("mp4a", own))["identifier"]
    try:
        with chromium.answering(address, lambda _: (200, bare)):
            chromium.open(f"{laddered.web}/watch/demo")
            watching.wait_phase(chromium, "unplayable")
        chromium.wait(f"({HEIGHT % 180}) || ({HEIGHT % 90})")
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    watching.leave(chromium)


#: The first request for the video is delayed.
LATE_HEADS = """fetch = ((asked) => async (url, options) => {
  if (/.video./.test(url) && options?.headers?.Range) await new Promise((resume) => setTimeout(resume, %d));
  return asked(url, options);
})(fetch)"""


@pytest.mark.parametrize("milliseconds", [50, pytest.param(200, marks=pytest.mark.long), 2000])
def test_begins_when_it_is_known_where_both_playlists_lie(chromium, laddered, milliseconds):
    """The audio is anchored long before the video, and its times are far from the beginning of the window."""
    laddered.wait(lambda: laddered.stream("demo")["ageSeconds"] > 16, 60, "a window that has moved")
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=LATE_HEADS % milliseconds)["identifier"]
    try:
        time = watching.watch(chromium, laddered, "demo")["time"]
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    assert abs(laddered.stream("demo")["ageSeconds"] - time) < 10
    watching.leave(chromium)


@pytest.mark.long
def test_goes_on_by_itself_when_the_server_was_killed_and_started_again(chromium, laddered, start_shared):
    """The new stream counts its segments from the beginning."""
    laddered.wait(lambda: laddered.stream("demo")["ageSeconds"] > 16, 60, "a stream that is far ahead of a new one")
    watching.watch(chromium, laddered, "demo")
    assert chromium.evaluate(watching.DETAILS)["Player"] == "Media Source, HLS parts"
    before = watching.state(chromium)["source"]
    laddered.kill()
    chromium.wait("document.querySelector('#stage').dataset.phase !== 'playing'")
    again = start_shared("--http", laddered.web.removeprefix("http://"), "--source", film(), *LADDERED)
    again.wait_state("demo", "live", seconds=30)
    chromium.wait(f"document.querySelector('#video').currentSrc !== {before!r}")
    watching.wait_phase(chromium, "playing")
    watching.play_on(chromium, 1)
    watching.leave(chromium)
