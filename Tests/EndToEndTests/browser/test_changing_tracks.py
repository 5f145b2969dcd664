"""Tracks of a transport stream that come late, go, or change their codec: who watches other tracks notices nothing."""

import concurrent.futures
import re
import subprocess
import urllib.parse

import pytest

import watching
from test_tracks import NOTE_FRAMES
from harness import http, inband, llhls, packets, publishers, tools

VIDEO, FIRST, SECOND, CHANGED = 0x100, 0x101, 0x102, 0x103
SECONDS = 30
#: The second audio comes after 8 s, is another codec's after 16 s, and goes after 23 s.
STAGES = [(0, {VIDEO, FIRST}), (8 / SECONDS, {VIDEO, FIRST, SECOND}), (16 / SECONDS, {VIDEO, FIRST, CHANGED}),
          (23 / SECONDS, {VIDEO, FIRST})]


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "whole.ts"
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25", "-f", "lavfi", "-i",
              "sine=440:r=48000", "-f", "lavfi", "-i", "sine=880:r=48000", "-t", str(SECONDS), "-map", "0:v", "-map", "1:a",
              "-map", "2:a", "-map", "2:a", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-sc_threshold", "0", "-c:a",
              "aac", "-c:a:2", "libopus", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu",
              "-metadata:s:a:2", "language=deu", "-muxrate", "1500k", path)
    changing = path.with_name("changing.ts")
    changing.write_bytes(inband.with_changing_map(path.read_bytes(), STAGES))
    return changing


@pytest.fixture(scope="module")
def live(start_shared, film, chromium):
    weir = start_shared("--target-duration", "2", "--window", "60s")
    # The page is there before the stream: the first change comes soon.
    chromium.open(f"{weir.web}/watch/cam?player=mse")
    size = film.stat().st_size
    publisher = publishers.Publisher([
        "curl", "-sS", "-T", str(film), "--limit-rate", str(size // SECONDS), f"{weir.web}/live/cam/ingest"])
    weir.wait_state("cam", "live", seconds=20)
    yield weir
    publisher.kill()


def test_nobody_else_notices(live, chromium, tmp_path):
    """The page, and ffmpeg by HLS and by `stream.mp4`, from before the first change to the end. Manifests continue the other sets."""
    folder = f"{live.web}/live/cam"
    master = live.get("/live/cam/index.m3u8").good().text
    epoch = re.search(r"^(\S+)/av/index.m3u8", master, re.M)[1]
    readers = {"hls": f"{folder}/{epoch}/video/index.m3u8", "mp4": f"{folder}/stream.mp4"}
    running = {
        name: subprocess.Popen(
            [tools.FFMPEG, "-v", "error", "-nostdin", "-i", url, "-map", "0:v:0", "-c", "copy", "-copyts", "-y",
             str(tmp_path / f"{name}.mp4")], stderr=subprocess.PIPE, text=True) for name, url in readers.items()}
    watching.wait_phase(chromium, "playing")
    chromium.evaluate(NOTE_FRAMES)
    source = watching.state(chromium)["source"]
    live.wait(lambda: any(t["rendition"] == "audio-2" for t in live.stream("cam")["tracks"]), 20, "the late track")
    live.wait(lambda: [t["codec"] for t in live.stream("cam")["tracks"]][-1] == "Opus", 20, "the other codec")
    live.wait(lambda: len(live.stream("cam")["tracks"]) == 2, 20, "the track's end")
    seen = watching.state(chromium)
    assert seen["error"] is None and seen["source"] == source, seen
    shown = chromium.evaluate("window.shown")
    # A busy machine leaves frames out, but nothing is jumped over.
    assert all(0 < b - a < 0.5 for a, b in zip(shown, shown[1:])), shown
    chromium.wait(f"document.querySelector('#video').currentTime > {max(shown[0] + 10, 20)}", 15)
    playlists = {name: llhls.parse(http.fetch(url).good().text, url) for name in ("video", "audio", "audio-2")
                 for url in [f"{folder}/{epoch}/{name}/index.m3u8"]}
    for name, page in playlists.items():
        assert "#EXT-X-DISCONTINUITY" not in page.text, page.text
        maps = re.findall(r'#EXT-X-MAP:URI="([^"]*)"', page.text)
        assert maps == (["init-2.mp4", "init-3.mp4"] if name == "audio-2" else ["init-1.mp4"]), page.text
        if name != "audio-2":
            assert llhls.judge(page) == [] and "#EXT-X-GAP" not in page.text
    manifest = live.get("/live/cam/manifest.mpd").good().text
    periods = manifest.split("<Period ")[1:]
    assert len(periods) >= 4 and all("/video/init-1.mp4" in p and "/audio/init-1.mp4" in p for p in periods), manifest
    assert all(p.count("urn:mpeg:dash:period-continuity:2015") >= 2 for p in periods[1:]), manifest
    watching.leave(chromium)
    live.wait(lambda: live.stream("cam")["state"] == "ended", 20, "the end")
    for name, process in running.items():
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        times = sorted(float(p.pts) for p in packets.probe(tmp_path / f"{name}.mp4")["video"])
        steps = [b - a for a, b in zip(times, times[1:])]
        assert len(times) > 400 and max(steps) < 0.045, (name, len(times), max(steps))


def test_the_changed_track_can_be_played(live, tmp_path):
    """Each of its codecs, by its own init segment, without a frame lost at the change."""
    base = f"{live.web}/live/cam/"
    text = live.get("/live/cam/manifest.mpd").good().text
    epoch = re.search(r'initialization="([^/]*)/video/init-1.mp4"', text)[1]
    url = f"{base}{epoch}/audio-2/index.m3u8"
    page = llhls.parse(http.fetch(url).good().text, url)
    ends = []
    for codec, name in (("aac", "init-2.mp4"), ("opus", "init-3.mp4")):
        uris = [s.uri for s in page.segments if s.map and s.map.endswith(name) and not s.gap]
        path = tmp_path / f"{codec}.mp4"
        path.write_bytes(b"".join(http.fetch(urllib.parse.urljoin(url, uri)).good().body for uri in [name, *uris]))
        streams = tools.output(tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", path)
        assert streams.decode().strip() == codec
        own = packets.probe(path)["audio"]
        ends.append((float(own[0].pts), float(own[-1].pts)))
    assert 0 < ends[1][0] - ends[0][1] < 0.1, ends
