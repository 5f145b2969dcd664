"""Several tracks of a kind in one publication, by Enhanced RTMP: as renditions, in recordings and clips."""

import functools
import json
import pathlib
import re
import urllib.parse

import pytest

from harness import boxes, http, llhls, publishers, sources, tokens, tools

#: Three pictures: two sizes of one, and another one. Four tracks of audio that differ in channels or codec.
SOURCE = ("-f", "lavfi", "-i", "testsrc2=s=640x360:r=25", "-f", "lavfi", "-i", "testsrc=s=320x180:r=25",
          "-f", "lavfi", "-i", "sine=440:r=48000", "-f", "lavfi", "-i", "sine=880:r=48000")
VIDEO = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-keyint_min", "50", "-sc_threshold", "0", "-bf", "2")
TRACKS = ("-filter_complex", "[0:v]split[a][b];[b]scale=320:180[c]", "-map", "[a]", "-map", "[c]", "-map", "1:v",
          "-map", "2:a", "-map", "2:a", "-map", "3:a", "-map", "2:a",
          "-c:a", "aac", "-ac:a:0", "2", "-ac:a:1", "1", "-ac:a:2", "6", "-c:a:3", "libopus", "-ac:a:3", "2")


@functools.cache
def film() -> pathlib.Path:
    """Made once: three videos are not encoded while they are published."""
    with tokens.token("encoder"):
        return sources.made("tracks", ".mkv", [
            tools.new_ffmpeg(), "-v", "error", "-y", *SOURCE, *TRACKS, *VIDEO, "-g:v:2", "35", "-t", "60", "-f", "matroska"])


def publish(url: str) -> publishers.Publisher:
    return publishers.Publisher([
        tools.new_ffmpeg(), "-hide_banner", "-nostdin", "-v", "warning", "-re", "-stream_loop", "-1", "-i", str(film()), "-map", "0",
        "-c", "copy", "-f", "flv", url])


def encode(url: str, *tracks: str) -> publishers.Publisher:
    """Some of the tracks, encoded meanwhile."""
    return publishers.Publisher(
        [tools.new_ffmpeg(), "-hide_banner", "-nostdin", "-v", "warning", "-re", *SOURCE, *tracks, *VIDEO, "-f", "flv", url])


def probe(path, *more) -> list[dict]:
    output = tools.output("ffprobe", "-v", "error", "-of", "json", "-show_streams", *more, path)
    return json.loads(output)["streams"]


def kinds(streams: list[dict]) -> list[tuple]:
    return [(s["codec_name"], s["width"]) if s["codec_type"] == "video" else
            (s["codec_name"], int(s["sample_rate"]), s["channels"]) for s in streams]


VIDEOS = [("h264", 640), ("h264", 320), ("h264", 320)]
AUDIOS = [("aac", 48000, 2), ("aac", 48000, 1), ("aac", 48000, 6), ("opus", 48000, 2)]


@pytest.fixture(scope="module")
def live(start_shared):
    weir = start_shared()
    publisher = publish(f"{weir.rtmp}/live/many")
    weir.wait(lambda: len((weir.stream("many") or {}).get("tracks", [])) == 7, 20, "seven tracks")
    yield weir
    publisher.kill()


def playlist(weir, query: str = "") -> str:
    return weir.get(f"/live/many/index.m3u8{query}").good().text


def test_tracks_are_listed_and_none_is_left_out(live):
    stream = live.stream("many")
    assert [t["rendition"] for t in stream["tracks"] if t["kind"] == "video"] == ["video", "video-2", "video-3"]
    assert [t["rendition"] for t in stream["tracks"] if t["kind"] == "audio"] == [
        "audio", "audio-2", "audio-3", "audio-4"]
    # One that it comes too slowly is withdrawn: ffmpeg takes its time to make up for a delay.
    live.wait(lambda: live.stream("many")["warnings"] == [], 30, "no warning")


def test_every_rendition_is_a_stream_of_its_own(live, tmp_path):
    text = playlist(live)
    groups = re.findall(r'GROUP-ID="([^"]*)".*URI="([^"]*)"', text)
    assert [(g, u.split("/")[1]) for g, u in groups] == [
        ("audio", "audio"), ("audio", "audio-2"), ("audio", "audio-3"), ("audio-4", "audio-4")]
    assert text.count("DEFAULT=YES") == 2 and 'CHANNELS="1"' in text
    # Two sizes of one picture, each with both codecs of audio. The other picture is a programme of its own.
    variants = [line.split("/")[1] for line in text.splitlines() if not line.startswith("#")]
    assert variants == ["video", "video-2"] * 2
    other = playlist(live, "?video=3")
    assert [line.split("/")[1] for line in other.splitlines() if not line.startswith("#")] == ["video-3"] * 2
    assert live.get("/live/many/index.m3u8?video=4").status == 404
    epoch = groups[0][1].split("/")[0]
    expected = dict(zip(["video", "video-2", "video-3"], VIDEOS)) | dict(zip(
        ["audio", "audio-2", "audio-3", "audio-4"], AUDIOS))
    for name, kind in expected.items():
        url = f"{live.web}/live/many/{epoch}/{name}/index.m3u8"
        page = llhls.parse(http.fetch(url).good().text, url)
        # Nothing promises that the other picture's segments begin with a key frame.
        assert [p for p in llhls.judge(page) if name != "video-3" or "not INDEPENDENT" not in p] == [], name
        assert page.parts and (name != "video-3" or "EXT-X-INDEPENDENT-SEGMENTS" not in page.text)
        segment = [s for s in page.segments if s.uri][-1]
        bodies = [http.fetch(urllib.parse.urljoin(url, uri)).good().body for uri in (page.segments[0].map, segment.uri)]
        (tmp_path / f"{name}.mp4").write_bytes(b"".join(bodies))
        assert kinds(probe(tmp_path / f"{name}.mp4")) == [kind]


def test_players_of_hls_and_dash_find_all_tracks(live):
    hls = probe(f"{live.web}/live/many/index.m3u8")
    assert {tuple(k) for k in kinds(hls)} >= set(AUDIOS) and ("h264", 640) in kinds(hls)
    dash = kinds(probe(f"{live.web}/live/many/manifest.mpd"))
    assert sorted(map(str, dash)) == sorted(map(str, VIDEOS + AUDIOS))


def test_one_file_takes_the_audio_that_is_asked_for(live, tmp_path):
    for query, audio in (("", AUDIOS[0]), ("?audio=2", AUDIOS[1]), ("?audio=audio-3", AUDIOS[2])):
        path = tmp_path / "stream.mp4"
        tools.run(tools.FFMPEG, "-v", "error", "-nostdin", "-i", f"{live.web}/live/many/stream.mp4{query}", "-t", "2", "-map",
                  "0", "-c", "copy", "-y", path)
        assert kinds(probe(path)) == [VIDEOS[0], audio]
    assert live.get("/live/many/stream.mp4?audio=9").status == 404


def test_a_recording_has_all_tracks_and_a_clip_the_chosen_one(start, tmp_path):
    weir = start()
    publisher = publish(f"{weir.rtmp}/live/many")
    weir.wait(lambda: len((weir.stream("many") or {}).get("tracks", [])) == 7, 20, "seven tracks")
    weir.wait(lambda: (weir.stream("many")["recording"] or {}).get("seconds", 0) > 4.2, 30, "more than four seconds of a recording")
    publisher.interrupt()
    weir.wait(lambda: [r for r in weir.recordings_of("many") if r["state"] == "completed"], 40, "the recording")
    path = next(tmp_path.rglob(weir.recordings_of("many")[0]["file"]))
    streams = probe(path)
    assert sorted(map(str, kinds(streams))) == sorted(map(str, VIDEOS + AUDIOS))
    assert [s["disposition"]["default"] for s in streams] == [1, 1, 0, 0, 0, 0, 0]
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(weir.get(f"/api/v1/recordings/many/{path.name}/clip?from=1&to=4&audio=2").good().body)
    assert kinds(probe(clip)) == [VIDEOS[0], AUDIOS[1]]
    text = weir.get(f"/recordings/many/{path.stem}/index.m3u8").good().text
    assert text.count("#EXT-X-MEDIA:") == 4


def test_tracks_that_come_with_a_reconnect_appear(start):
    weir = start()
    first = encode(f"{weir.rtmp}/live/grow", "-map", "0:v", "-map", "2:a", "-c:a", "aac")
    weir.wait(lambda: weir.stream("grow") and weir.stream("grow")["state"] == "live", 15, "the stream")
    text = weir.get("/live/grow/index.m3u8").good().text
    old = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line.split("/")[1] for line in old] == ["av"]
    first.kill()
    second = encode(f"{weir.rtmp}/live/grow", "-map", "0:v", "-map", "2:a", "-map", "3:a", "-c:a", "aac")
    weir.wait(lambda: len(weir.stream("grow")["tracks"]) == 3, 20, "three tracks")
    weir.wait(lambda: "audio-2/" in weir.get("/live/grow/index.m3u8").text, 15, "the second audio")
    url = f"{weir.web}/live/grow/{old[0]}"
    kept = llhls.parse(http.fetch(url).good().text, url)
    assert kept.parts, "a player that began before keeps its playlist"
    assert [p for p in llhls.judge(kept) if "type MAP" not in p] == []
    second.kill()


def test_a_recording_keeps_languages_and_what_tracks_are_for(start, tmp_path):
    """A transport stream with four audio tracks. ffprobe and a reader of boxes find in the file what its PMT said."""
    weir = start()
    languages = ["eng", "deu", "fra", "eng"]
    stated = [option for n, language in enumerate(languages) for option in (f"-metadata:s:a:{n}", f"language={language}")]
    publishers.Publisher([
        tools.FFMPEG, "-hide_banner", "-nostdin", "-v", "warning", "-re", *SOURCE, "-map", "0:v", *["-map", "2:a"] * 2,
        *["-map", "3:a"] * 2, *VIDEO, "-c:a", "aac", *stated, "-disposition:a:2", "hearing_impaired", "-disposition:a:3",
        "visual_impaired", "-t", "6", "-f", "mpegts", "-method", "POST", f"{weir.web}/live/roles/ingest"]).wait()
    weir.wait(lambda: [r for r in weir.recordings_of("roles") if r["state"] == "completed"], 40, "the recording")
    path = next(tmp_path.rglob(weir.recordings_of("roles")[0]["file"]))
    audios = [s for s in probe(path) if s["codec_type"] == "audio"]
    assert [s["tags"]["language"] for s in audios] == languages
    # Of the two purposes ffprobe knows only this one by DASH's name.
    assert [s["disposition"]["visual_impaired"] for s in audios] == [0, 0, 0, 1]
    data = path.read_bytes()
    tracks = next(box for box in boxes.read_boxes(data) if box.type == b"moov").all(b"trak")
    kinds_of = [[data[k.start:k.end].split(b"\0")[-2].decode() for u in t.all(b"udta") for k in u.all(b"kind")] for t in tracks]
    assert kinds_of == [[], ["main"], ["alternate"], ["enhanced-audio-intelligibility"], ["description"]]
    groups = [data[t.one(b"tkhd").start:t.one(b"tkhd").end] for t in tracks]
    assert [int.from_bytes(h[-50:-48]) for h in groups] == [0, 2, 2, 2, 2]
    replayed = probe(f"{weir.web}/recordings/roles/{path.stem}/index.m3u8")
    assert len([s for s in replayed if s["codec_type"] == "audio"]) == 4
    text = weir.get(f"/recordings/roles/{path.stem}/index.m3u8").good().text
    assert text.count('CHARACTERISTICS="public.accessibility.describes-video"') == 1, text
