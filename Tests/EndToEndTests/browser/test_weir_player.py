"""The element <weir-player> as docs/embedding.md describes it, and recordings, on pages of another server."""

import re

import watching
from harness import publishers, tools
from harness.metrics import Metrics
from test_embedding import BOTH, Site, element, examples, open_page, plain_policy, script, site, weir  # noqa: F401  (fixtures)

#: What tests use of the element, by the tables of docs/embedding.md.
USED = {
    "attribute": {"src", "autoplay", "muted", "controls", "poster", "engine"},
    "property": {"phase", "paused", "muted", "volume", "behind", "isLive", "stream", "video"},
    "method": {"play", "pause", "goLive", "seekBehind"},
    "event": {"phasechange", "ended", "play", "pause", "playing", "waiting", "timeupdate", "volumechange", "error"},
}


def test_the_document_lists_what_the_element_has_and_nothing_else():
    text = (tools.ROOT / "docs" / "embedding.md").read_text()
    for kind, used in USED.items():
        table = re.search(rf"^\| {kind} \|.*\n\|[-| ]*\n((?:\|.*\n)*)", text, re.M)[1]
        names = re.findall(r"`(\w+)[^`]*`", " ".join(row.split("|")[1] for row in table.splitlines()))
        assert set(names) == used, kind


def test_attributes_properties_methods_and_events_do_what_the_document_says(page, weir, site):  # noqa: F811
    site.pages["/picture"] = ""
    open_page(page, site, f"""<script>
        window.events = {{}};
        const note = (event) => {{ (events[event.type] ??= []).push(event.detail?.phase ?? true); }};
        addEventListener("DOMContentLoaded", () => {{
          for (const name of {sorted(USED["event"])}) document.querySelector("#one").addEventListener(name, note);
        }});
      </script><button onclick="document.querySelector('#one').play()">Play</button>{script(weir)}
      {element(weir, "cam", 'id="one" engine="hls" style="width:320px"')}
      {element(weir, "cam", 'id="two" controls="none" poster="/picture?mine" style="width:320px"')}
      {element(weir, "cam", 'id="three" muted autoplay engine="mse" style="width:320px"')}""")
    one = "document.querySelector('#one')"
    page.wait(f"{one}.video && {one}.phase === 'idle'")
    assert page.evaluate(f"[{one}.paused, {one}.muted, {one}.volume, {one}.behind, {one}.isLive, {one}.stream]") == [True, False, 1, 0, False, None]
    # Its own picture before, and no buttons.
    two = "document.querySelector('#two').shadowRoot"
    page.wait(f"{two}.querySelector('#poster')?.src === '{site.origin}/picture?mine'")
    buttons = "%s.querySelector('#controls').checkVisibility({ checkOpacity: true })"
    assert not page.evaluate(buttons % two)
    # Each plays by the engine that it was given.
    third = "document.querySelector('#three')"
    page.wait(f"{third}.phase === 'playing' && {third}.muted")
    weir.wait(lambda: Metrics(weir).total("weir_viewers", stream="cam", protocol="mp4") == 1, 10, "one plays stream.mp4")
    page.click("document.querySelector('button')")
    page.wait(f"{one}.phase === 'playing' && !{one}.paused && {one}.isLive && {one}.stream?.state === 'live'")
    loaded = "performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname)"
    assert any(path.endswith("av/index.m3u8") for path in page.evaluate(loaded))
    assert page.evaluate(buttons % f"{one}.shadowRoot")
    page.evaluate(f"{one}.volume = 0.5")
    page.wait(f"{one}.video.volume === 0.5 && events.volumechange.length > 0")
    page.evaluate(f"{one}.pause()")
    page.wait(f"{one}.paused && {one}.behind > 3", 30)
    page.evaluate(f"{one}.goLive()")
    page.wait(f"!{one}.paused && {one}.behind < 3 && {one}.isLive")
    page.wait(f"{one}.video.seekable.length > 0 || {one}.video.buffered.length > 0")
    page.evaluate(f"{one}.seekBehind(4)")
    page.wait(f"{one}.behind > 3 && !{one}.isLive")
    # It may wait for media first. Then it goes on.
    place = page.evaluate(f"{one}.video.currentTime")
    page.wait(f"{one}.video.currentTime > {place} + 1 && events.phasechange.at(-1) === 'playing'")
    told = page.evaluate("events")
    assert {"phasechange", "play", "pause", "playing", "timeupdate", "volumechange"} <= told.keys(), told.keys()
    assert "error" not in told


@BOTH
def test_a_recording_plays_on_a_page_of_another_server(browser, site, start):  # noqa: F811
    server = start("--embed-from", site.origin)
    publishers.ffmpeg("short", f"{server.rtmp}/live/cam", paced=False).wait(60)
    server.wait(lambda: server.json("/api/v1/recordings?state=completed")["total"] == 1, 30, "a recording")
    [entry] = server.json("/api/v1/recordings?state=completed")["recordings"]
    example = re.sub(r'src="[^"]*"', f'src="{server.web}{entry["url"]}"', examples(server, site)[3])
    video = "document.querySelector('video')"
    open_page(browser, site, example)
    browser.evaluate(f"({video}.muted = true, {video}.play().then(() => true))")
    browser.wait(f"{video}.currentTime > 0.5")
    # A page may read what it may show: the canvas is not tainted.
    colours = f"""(() => {{
      const pen = Object.assign(document.createElement("canvas"), {{ width: 64, height: 36 }}).getContext("2d");
      pen.drawImage({video}, 0, 0, 64, 36);
      return new Set(new Uint32Array(pen.getImageData(0, 0, 64, 36).data.buffer)).size;
    }})()"""
    assert browser.evaluate(colours) > 50
    stranger = Site()
    try:
        open_page(browser, stranger, example)
        browser.wait(f"{video}.error !== null")
    finally:
        stranger.stop()
        watching.leave(browser)
