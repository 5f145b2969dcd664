"""Flash and beep of the test pattern in recordings, replay, clips, rungs in DASH, and audio in another codec. test_encoding.py
checks them in live HLS, DASH and `stream.mp4`, test_renditions.py in rungs of HLS."""

import concurrent.futures
import subprocess

import pytest

from harness import pattern, tokens, tools
from test_encoding import Copy, Film

#: Published: the pattern with its own AAC, and with Opus.
AUDIO_OPTIONS = {"film": ("-c:a", "copy"), "voice": ("-c:a", "libopus")}
#: Name → stream, address below it, and the number of the track there. DASH lists the source first, then the renditions.
LIVE = {
    "DASH, 180p, AAC": ("film", "manifest.mpd", ("-map", "0:v:1", "-map", "0:a:0")),
    "DASH, 720p, AAC to Opus": ("film", "manifest.mpd", ("-map", "0:v:0", "-map", "0:a:1")),
    "DASH, 720p, Opus to AAC": ("voice", "manifest.mpd", ("-map", "0:v:0", "-map", "0:a:1")),
    "HLS, 720p, Opus to AAC": ("voice", "index.m3u8", ("-map", "0:p:1")),
}
RECORDED = [f"{what}, {codec}" for what in ("recording", "clip", "replay by HLS", "replay by DASH") for codec in ("AAC", "Opus")]
SECONDS = 4


@pytest.fixture(scope="module")
def films_server(start_shared):
    return start_shared("--ladder", "film=180p@300k", "--audio-codec", "film=opus", "--audio-codec", "voice=aac")


@pytest.fixture(scope="module")
def films(films_server, tmp_path_factory):
    """Made while nobody else encodes: the server makes a rung, and audio in another codec."""
    with tokens.token("encoder"):
        return watched(films_server, tmp_path_factory.mktemp("films"))


def watched(weir, folder) -> dict[str, Film]:
    made = pattern.film(folder / "pattern.mp4", SECONDS, "1280:720", "-c:a", "aac")
    publishers = [
        subprocess.Popen([tools.new_ffmpeg(), "-v", "error", "-nostdin", "-re", "-i", str(made), "-c:v", "copy", *audio, "-f",
                          "flv", f"{weir.rtmp}/live/{name}"])
        for name, audio in AUDIO_OPTIONS.items()]
    assert [publisher.wait(60) for publisher in publishers] == [0, 0]
    for name in AUDIO_OPTIONS:
        weir.wait(lambda: [r["state"] for r in weir.recordings_of(name)] == ["completed"], 30, "a recording")

    def look(name: str) -> Film:
        path = folder / f"{name.replace(' ', '-')}.mp4"
        if name in LIVE:
            stream, address, choice = LIVE[name]
            return Copy(f"{weir.web}/live/{stream}/{address}", path, choice)
        stream = "film" if name.endswith("AAC") else "voice"
        (recording,) = weir.recordings_of(stream)
        if name.startswith("replay"):
            address = "index.m3u8" if "HLS" in name else "manifest.mpd"
            return Copy(f"{weir.web}{recording['url'][:-4]}/{address}", path)
        if name.startswith("clip"):
            # From between two frames, so that an edit list hides the samples before it.
            path.write_bytes(weir.get(f"/api/v1/recordings/{stream}/{recording['file']}/clip?from=0.51").good().body)
            return Film(path)
        return Film(weir.recordings / stream / recording["file"])

    names = [*LIVE, *RECORDED]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(look, names)))


@pytest.mark.parametrize("name", [*LIVE, *RECORDED])
def test_flash_and_beep_come_together(films, name, record_property):
    worst = films[name].apart()
    record_property("figure", f"{name}: flash and beep at most {worst * 1000:.1f} ms apart")
    assert worst <= 0.020


def test_frames_stay_with_their_audio_when_an_encoder_that_left_some_out_keeps_up_again(films_server, tmp_path):
    """Every second frame is missing for two seconds: a prediction of the next duration from the last ones is too long."""
    film, seen = tmp_path / "film.flv", tmp_path / "seen.mp4"
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i",
              "sine=440:sample_rate=48000", "-t", "6", "-vf", "select='not(between(t,1,3)*mod(n,2))'", "-vsync", "vfr",
              "-enc_time_base", "1/30", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "60", "-c:a", "aac", film)
    assert tools.run(tools.FFMPEG, "-v", "error", "-readrate", "4", "-i", film, "-c", "copy", "-f", "flv",
                     f"{films_server.rtmp}/live/uneven").stderr == ""
    films_server.wait_state("uneven", "ended")
    tools.run(tools.FFMPEG, "-v", "error", "-i", f"{films_server.web}/live/uneven/index.m3u8", "-c", "copy", seen)
    lengths = []
    for path in (film, seen):
        probed = tools.run(tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of",
                           "csv=p=0", path)
        times = [float(line.split(",")[0]) for line in probed.stdout.split()]
        assert len(times) == 150
        lengths.append([time - times[0] for time in times])
    # Its audio continues unchanged.
    off = max(abs(b - a) for a, b in zip(*lengths))
    assert off <= 0.020, f"{off * 1000:.1f} ms"
