"""How soon dash.js and Shaka Player, which have asked before the stream began, show its first frame. They are no part of this
repository: DASHJS and SHAKAJS name their built scripts."""

import os
import pathlib
import time

import pytest

import watching
from harness import dash, http, publishers

GOP_SECONDS, PICTURE_SECONDS, PLAYS_SECONDS = 2, 1, 4

#: A player as an application has it that waits for a stream. The manifest comes with the first whole segment.
WAIT = """
  const video = document.createElement("video");
  video.muted = true;
  document.body.append(video);
  Object.assign(window, { shownAt: 0, failures: [], asked: 0, video });
  video.requestVideoFrameCallback(() => { window.shownAt = Date.now() / 1000; });
  for (; !(await fetch(url, { cache: "no-store" })).ok; window.asked += 1) await new Promise((resume) => setTimeout(resume, 100));
"""
SHAKA = """
  const player = new shaka.Player();
  await player.attach(video);
  player.addEventListener("error", (event) => { window.failures.push(`${event.detail.code}`); });
  video.play().catch(() => {});
  try { await player.load(url); } catch (error) { window.failures.push(`${error}`); }
"""
DASH = """
  const player = dashjs.MediaPlayer().create();
  player.on("error", (event) => { window.failures.push(`${event.error?.message}`); });
  player.initialize(video, url, true);
"""
#: The variable that names the script, what starts the player, and what it plays.
PLAYERS = {"shaka-dash": ("SHAKAJS", SHAKA, "manifest.mpd"), "shaka-hls": ("SHAKAJS", SHAKA, "index.m3u8"),
           "dash.js": ("DASHJS", DASH, "manifest.mpd")}


def first_picture(page, weir, name: str, script: str, code: str, path: str) -> tuple[float, float, list[str]]:
    """Seconds from when the stream was seen live to the first frame; how far it has played later; its errors."""
    page.open(f"{weir.web}/healthz")
    page.evaluate(script + "; null")
    page.evaluate(f"(async (url) => {{{WAIT}{code}}})('{weir.web}/live/{name}/{path}'); null")
    page.wait("window.asked > 2", 10)
    publisher = publishers.ffmpeg("straight", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live")
        began = time.time()
        time.sleep(GOP_SECONDS + PICTURE_SECONDS + PLAYS_SECONDS)  # real time: it is judged how much was played in it
        address = f"{weir.web}/live/{name}/manifest.mpd"
        begins = {one.kind: one.entries[0].time / one.timescale for one in dash.parse(http.fetch(address).good().text, address).representations}
        assert begins["audio"] == 0 < begins["video"] < 0.1, begins
        shown, played, failures = page.evaluate("[window.shownAt, window.video.currentTime, window.failures]")
    finally:
        publisher.kill()
        watching.leave(page)
    return shown - began if shown else float("inf"), played, failures


@pytest.mark.quiet
@pytest.mark.long
@pytest.mark.parametrize("player", PLAYERS)
def test_a_player_that_comes_with_the_first_segment_plays_from_it(page, start, record_property, player):
    """Audio begins some milliseconds before video, as ffmpeg sends it: Shaka Player waited for audio for ever where the Period began with
    video."""
    variable, code, path = PLAYERS[player]
    script = pathlib.Path(os.environ.get(variable) or "/nonexistent")
    if not script.is_file():
        pytest.skip(f"{variable} names no built script")
    weir = start("--no-record", "--target-duration", str(GOP_SECONDS))
    seconds, played, failures = first_picture(page, weir, "show", script.read_text(), code, path)
    record_property("figure", f"{player}: first frame after {seconds:.2f} s")
    assert seconds <= GOP_SECONDS + PICTURE_SECONDS
    assert played > PLAYS_SECONDS / 2
    assert not failures
