"""MP2, MP3 and G.711 by each protocol: decoded by a worker, served and recorded as AAC, together with the video. Publishers keep
real time, so they come at once."""

import array
import concurrent.futures
import dataclasses
import json
import os
import signal
import time

import pytest

from harness import events, flv, inband, pattern, publishers, rawrtmp, sources, tools
from harness.programs import free_port
from harness.together import Together
from test_encoding import HEIGHT, WIDTH, Copy, Film

#: Name → options of the audio, what the log calls it, and how it is published.
PUBLISHED = {
    "mp3": (("-c:a", "libmp3lame", "-b:a", "128k"), "MP3", "rtmp"),
    "alaw": (("-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1"), "G.711 A-law", "rtmp"),
    "mulaw": (("-c:a", "pcm_mulaw", "-ar", "8000", "-ac", "1"), "G.711 µ-law", "rtmp"),
    "mp2": (("-c:a", "mp2", "-b:a", "192k"), "MP2", "http"),
    "mp2-udp": (("-c:a", "mp2", "-ac", "1", "-b:a", "96k"), "MP2", "udp"),
    "mp3-srt": (("-c:a", "libmp3lame", "-ar", "24000", "-b:a", "64k"), "MP3", "srt"),
    "opus": (("-c:a", "mp2", "-b:a", "192k"), "MP2", "http"),
}
SECONDS, SIZE = 8, f"{WIDTH}:{HEIGHT}"

TRIED = Together()


def probe(path_or_url, *entries: str) -> dict:
    return json.loads(tools.run(tools.FFPROBE, "-v", "error", "-of", "json", *entries, path_or_url).stdout)


def beeps(path) -> list[float]:
    """Start of each beep in seconds, from the beginning of the video on."""
    streams = probe(path, "-show_entries", "stream=codec_type,start_time")["streams"]
    start = {stream["codec_type"]: float(stream["start_time"]) for stream in streams}
    samples = array.array("h", tools.output(
        tools.FFMPEG, "-v", "error", "-i", path, "-vn", "-ac", "1", "-ar", "48000", "-f", "s16le", "-"))
    return [start["audio"] - start["video"] + at / 48000 for at in pattern.beeps(samples)]


@pytest.fixture(scope="module")
def films(start_shared, tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("films"), free_port()
    film = pattern.film(folder / "pattern.mkv", SECONDS, SIZE, "-c:a", "pcm_s16le")
    weir = start_shared("--source", f"mp2-udp=udp://127.0.0.1:{port}", "--srt", "127.0.0.1:0", "--audio-codec", "opus=opus",
                        "--reconnect-window", "1s", "--segment-duration", "1s", listeners=("http", "rtmp", "srt"))
    weir.wait_log("receives MPEG-TS at", 10)
    targets = {
        "rtmp": ("-f", "flv", f"{weir.rtmp}/live/NAME"),
        "http": ("-f", "mpegts", "-method", "POST", f"{weir.web}/live/NAME/ingest"),
        "udp": ("-f", "mpegts", f"udp://127.0.0.1:{port}?pkt_size=1316"),
        # Without a linger ffmpeg's libsrt closes at once and drops what it has not sent yet: some frames and a packet of audio.
        "srt": ("-f", "mpegts", f"{weir.srt}?streamid=NAME&linger=5"),
    }

    def live(name: str) -> tuple[Film, str]:
        return (Copy(f"{weir.web}/live/{name}/index.m3u8", folder / f"{name}.mp4"),
                weir.get(f"/live/{name}/index.m3u8").good().text)

    running, copies = {}, {}
    with concurrent.futures.ThreadPoolExecutor(len(PUBLISHED)) as pool:
        # One after another: each has a process that decodes, whose start takes some time.
        for name, (audio, _, way) in PUBLISHED.items():
            running[name] = publishers.Publisher([
                tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-i", str(film), "-c:v", "copy", *audio,
                *(word.replace("NAME", name) for word in targets[way])])
            weir.wait_state(name, "live", seconds=30)
            weir.wait(lambda: len(weir.stream(name)["tracks"]) == 2, 30, "both tracks")
            copies[name] = pool.submit(live, name)
    found = {(name, "HLS"): copy.result()[0] for name, copy in copies.items()}
    playlists = {name: copy.result()[1] for name, copy in copies.items()}
    for publisher in running.values():
        publisher.wait(SECONDS + 20)
    for name in PUBLISHED:
        weir.wait(lambda: [r["state"] for r in weir.recordings_of(name)] == ["completed"], 40, f"the recording of {name}")
        (recording,) = weir.recordings_of(name)
        found[name, "recording"] = Film(weir.recordings / name / recording["file"])
    return weir, found, playlists


@pytest.mark.parametrize("output", ["HLS", "recording"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_flash_and_beep_come_together(films, name, output, record_property):
    worst = films[1][name, output].apart()
    record_property("figure", f"{name}, {output}: flash and beep at most {worst * 1000:.1f} ms apart")
    assert worst <= 0.020


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_is_aac_and_as_long_as_the_video(films, name):
    weir, found, playlists = films
    wanted = ("opus", "opus") if name == "opus" else ("mp4a.40.2", "aac")
    assert f'{wanted[0]}"' in playlists[name] and "#EXTM3U" in playlists[name], playlists[name]
    streams = probe(found[name, "recording"].path, "-show_entries", "stream=codec_type,codec_name,channels,duration")["streams"]
    video, audio = (next(s for s in streams if s["codec_type"] == kind) for kind in ("video", "audio"))
    assert len(streams) == 2 and audio["codec_name"] == wanted[1]
    assert audio["channels"] == (1 if "law" in name or "udp" in name else 2)
    # A frame of the source, and one of the encoder, which is filled up with silence.
    assert abs(float(video["duration"]) - float(audio["duration"])) < 0.2, (video, audio)


def test_the_log_names_what_was_published(films):
    weir, _, _ = films
    for name, (_, codec, _) in PUBLISHED.items():
        assert any(codec in line and name in line for line in weir.text().splitlines()), codec


@TRIED.case(name="AC-3 has AAC beside it with the same times")
def ac3_has_aac_beside_it_with_the_same_times(case):
    """Without a setting. The recording has AC-3 alone."""
    weir, film = case.start("--segment-duration", "1s"), pattern.film(
        case.path / "pattern.mkv", SECONDS, SIZE, "-c:a", "pcm_s16le")
    publisher = publishers.Publisher([
        tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-i", str(film), "-c:v", "copy", "-c:a", "ac3", "-f", "mpegts", "-method",
        "POST", f"{weir.web}/live/ac3/ingest"])
    weir.wait_state("ac3", "live", seconds=20)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        copies = dict(zip(("ac3", "aac"), pool.map(
            lambda at: Copy(f"{weir.web}/live/ac3/index.m3u8", case.path / f"{at}.mp4", ("-map", f"0:p:{at}")), range(2))))
    publisher.wait()
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("ac3")] == ["completed"], 40, "a recording")
    (recording,) = weir.recordings_of("ac3")
    recorded = probe(weir.recordings / "ac3" / recording["file"], "-show_entries", "stream=codec_name")["streams"]
    assert [s["codec_name"] for s in recorded] == ["h264", "ac3"]
    for codec, film in copies.items():
        assert codec in [s["codec_name"] for s in probe(film.path, "-show_entries", "stream=codec_name")["streams"]]
        worst = film.apart(1)
        case.figure(f"AC-3 as {codec}, HLS: flash and beep at most {worst * 1000:.1f} ms apart")
        assert worst <= 0.020


@TRIED.case(name="another rate and mono in the middle")
def another_rate_and_mono_in_the_middle(case):
    """Players get another init segment, and each sound at its time; less than two frames are missing. From the change to the next
    key frame, two seconds at most, it is silent. No sound is at a key frame: of a decoder's first frame half is heard."""
    films = []
    for at, audio in enumerate((("-ar", "48000", "-ac", "2"), ("-ar", "32000", "-ac", "1"))):
        films.append(sources.film(
            f"rate-{at}", ".ts", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i",
            "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t+0.5,1),0.05)':s=48000", "-t", "6", "-c:v", "libx264", "-preset",
            "ultrafast", "-bf", "0", "-g", "50", "-c:a", "mp2", "-b:a", "128k", *audio, "-muxdelay", "0",
            "-output_ts_offset", 1 + 6 * at, "-f", "mpegts").read_bytes())
    (case.path / "both.ts").write_bytes(b"".join(films))
    weir = case.start()
    publisher = publishers.Publisher([
        "curl", "-sS", "-T", str(case.path / "both.ts"), "--limit-rate", str(sum(map(len, films)) // 6),
        f"{weir.web}/live/cam/ingest"])
    weir.wait_state("cam", "live", seconds=20)
    publisher.wait()
    (master,) = (line for line in weir.get("/live/cam/index.m3u8").text.splitlines() if line.endswith("/index.m3u8"))
    folder, text = f"/live/cam/{master.rsplit('/', 1)[0]}", weir.get(f"/live/cam/{master}").text
    before, after = text.split("#EXT-X-DISCONTINUITY\n")
    for part, rate, sounds in ((before, "48000", 6), (after, "32000", 4)):
        names = [line.split('"')[1] for line in part.splitlines() if line.startswith("#EXT-X-MAP")]
        names += [line for line in part.splitlines() if line.endswith(".m4s")]
        path = case.path / f"{rate}.mp4"
        path.write_bytes(b"".join(weir.get(f"{folder}/{name}").good().body for name in names))
        streams = probe(path, "-select_streams", "a", "-show_entries", "stream=sample_rate")["streams"]
        assert streams[0]["sample_rate"] == rate
        found = beeps(path)
        assert len(found) >= sounds and all(abs(time % 1 - 0.5) < 0.005 for time in found), found
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 40, "a recording")
    (recording,) = weir.recordings_of("cam")
    packets = probe(weir.recordings / "cam" / recording["file"], "-select_streams", "a", "-show_entries", "packet=dts_time")["packets"]
    times = [float(packet["dts_time"]) for packet in packets]
    assert max(b - a for a, b in zip(times, times[1:])) < 2 * 1024 / 48000 and times[-1] > 11.9


@TRIED.case(name="two tracks of MP3 by Enhanced RTMP")
def two_tracks_of_mp3_by_enhanced_rtmp(case):
    """ffmpeg 8 sends the second one as `.mp3` of Multitrack. Each has a worker and its own rendition."""
    film = sources.film(
        "two-mp3", ".mkv", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i",
        "sine=440:sample_rate=48000", "-f", "lavfi", "-i", "sine=880:sample_rate=44100", "-t", "6", "-map", "0", "-map",
        "1", "-map", "2", "-c:v", "libx264", "-preset", "ultrafast", "-g", "60", "-c:a", "libmp3lame", "-f", "matroska")
    weir = case.start()
    publisher = publishers.Publisher([
        tools.new_ffmpeg(), "-v", "error", "-nostdin", "-re", "-i", str(film), "-map", "0", "-c", "copy", "-f", "flv",
        f"{weir.rtmp}/live/two"])
    weir.wait_state("two", "live", seconds=20)
    text = weir.wait(lambda: weir.get("/live/two/index.m3u8"), 10, "a playlist").good().text
    assert text.count("TYPE=AUDIO") == 2, text
    publisher.wait()
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("two")] == ["completed"], 40, "a recording")
    (recording,) = weir.recordings_of("two")
    streams = probe(weir.recordings / "two" / recording["file"], "-show_entries", "stream=codec_name,sample_rate")["streams"]
    assert [(s["codec_name"], s.get("sample_rate")) for s in streams] == [("h264", None), ("aac", "48000"), ("aac", "44100")]


@TRIED.case(signal.SIGKILL, name="a worker that dies costs the audio some seconds")
@TRIED.case(signal.SIGSTOP, name="a worker that hangs costs the audio some seconds")
def a_worker_that_dies_or_hangs_costs_the_audio_some_seconds(case, harm):
    """The video goes on without a gap; a warning says what is missing, and goes when the audio is back, at its time."""
    film = sources.film(
        "long-mp2", ".ts", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i",
        "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.05)':s=48000", "-t", "20", "-c:v", "libx264", "-preset",
        "ultrafast", "-bf", "0", "-g", "50", "-c:a", "mp2", "-b:a", "128k", "-f", "mpegts")
    weir = case.start("--admin-token", events.TOKEN)
    publisher = publishers.Publisher([
        tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-i", str(film), "-c", "copy", "-f", "mpegts", "-method", "POST",
        f"{weir.web}/live/cam/ingest"])
    weir.wait_state("cam", "live", seconds=20)
    weir.wait(lambda: weir.stream("cam")["received"]["videoFrames"] > 75, 15, "some media")
    (process,) = [number for number, line in weir.children().items() if b"transcode-worker" in line]
    os.kill(process, harm)

    def warned() -> list[str]:
        told = weir.get("/api/v1/events?kind=stream.warned", headers=events.ADMIN).good().json["events"]
        return [event["data"]["warning"] for event in told]

    weir.wait(lambda: any("audio in MP2 is missing for now" in warning for warning in warned()), 30, "the warning")
    weir.wait(lambda: not weir.stream("cam")["warnings"], 30, "the audio's return")
    publisher.wait()
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 40, "a recording")
    (recording,) = weir.recordings_of("cam")
    path = weir.recordings / "cam" / recording["file"]
    packets = probe(path, "-select_streams", "v", "-show_entries", "packet=dts_time")["packets"]
    times = [float(packet["dts_time"]) for packet in packets]
    assert len(times) == 500 and max(b - a for a, b in zip(times, times[1:])) < 0.05
    packets = probe(path, "-select_streams", "a", "-show_entries", "packet=dts_time")["packets"]
    times = [float(packet["dts_time"]) for packet in packets]
    hole = max(b - a for a, b in zip(times, times[1:]))
    # Until it is seen that the worker hangs, and as long as another one takes to begin.
    assert hole < (5 if harm == signal.SIGKILL else 10), hole


@TRIED.case("mp3", ("-c:a", "libmp3lame", "-ar", "44100"), name="a film of five minutes in MP3 does not drift")
@TRIED.case("alaw", ("-c:a", "pcm_alaw", "-ar", "8000"), name="a film of five minutes in A-law does not drift")
def a_film_of_five_minutes_does_not_drift(case, name, audio):
    """44.1 kHz and 8 kHz, faster than real time: each beep where the published film has it."""
    weir = case.start()
    film = sources.film(
        f"five-minutes-{name}", ".flv", "-f", "lavfi", "-i", "color=size=64x36:rate=10", "-f", "lavfi", "-i",
        "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.05)':s=44100", "-t", "300", "-c:v", "libx264", "-preset",
        "ultrafast", "-bf", "0", "-g", "20", "-ac", "1", *audio, "-f", "flv")
    publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", rate=10).wait(150)
    recorded, published = beeps_of_recording(weir, name), beeps(film)
    # The first one may precede the first key frame.
    published, recorded = published[-299:], recorded[-299:]
    assert len(published) == len(recorded) == 299
    worst = max(abs(a - b) for a, b in zip(published, recorded))
    case.figure(f"{name}: {worst * 1000:.1f} ms after 300 s")
    assert worst <= 0.005


@TRIED.case(name="a worker that is served late costs a fast publisher nothing")
def a_worker_that_is_served_late_costs_a_fast_publisher_nothing(case):
    """Ten times as fast as it plays, while the machine gives the process that decodes no time for two seconds."""
    film = sources.film(
        "minute-alaw", ".flv", "-f", "lavfi", "-i", "color=size=64x36:rate=10", "-f", "lavfi", "-i",
        "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.05)':s=8000", "-t", "60", "-c:v", "libx264", "-preset",
        "ultrafast", "-bf", "0", "-g", "20", "-ac", "1", "-c:a", "pcm_alaw", "-f", "flv")
    weir = case.start()
    publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/cam", rate=10)
    weir.wait_state("cam", "live", seconds=20)
    (process,) = [number for number, line in weir.children().items() if b"transcode-worker" in line]
    os.kill(process, signal.SIGSTOP)
    time.sleep(2)  # real time: the process has no time for so long
    os.kill(process, signal.SIGCONT)
    publisher.wait(30)
    found = beeps_of_recording(weir, "cam")
    assert len(found) >= 59 and all(b - a < 1.01 for a, b in zip(found, found[1:])), found
    assert "left out" not in weir.text() and "holes" not in weir.text()


def short(path, *audio: str):
    """Eight seconds with a beep each second."""
    form = {".ts": "mpegts", ".flv": "flv"}[path.suffix]
    path.write_bytes(sources.film(
        "short-beeps", path.suffix, "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i",
        "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.05)':s=48000", "-t", "8", "-c:v", "libx264", "-preset", "ultrafast",
        "-bf", "0", "-g", "50", *audio, "-f", form).read_bytes())
    return path


def beeps_of_recording(weir, name: str) -> list[float]:
    weir.wait(lambda: [r["state"] for r in weir.recordings_of(name)] == ["completed"], 60, "a recording")
    (recording,) = weir.recordings_of(name)
    return beeps(weir.recordings / name / recording["file"])


@TRIED.case(name="G.711 of a camera in a transport stream")
def g711_of_a_camera_in_a_transport_stream(case):
    """ffmpeg writes the samples as private data; the program map is changed to what cameras send."""
    path = short(case.path / "film.ts", "-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1", "-muxdelay", "0")
    stream = inband.with_changing_map(path.read_bytes(), [(0, {0x100, 0x101})], {0x101: 0x90})
    path.write_bytes(stream)
    weir = case.start()
    publishers.Publisher(["curl", "-sS", "-T", str(path), "--limit-rate", str(len(stream) // 4),
                          f"{weir.web}/live/cam/ingest"]).wait(30)
    # The first one begins with the film, and not all of it may be there.
    found = beeps_of_recording(weir, "cam")[1:]
    assert len(found) >= 6 and all(abs(time - round(time)) < 0.005 for time in found), found


@TRIED.case(2, "48000", name="two frames of MP3 in one tag")
@TRIED.case(3, "44100", name="three frames of MP3 in one tag")
def several_frames_of_mp3_in_one_tag(case, count, rate):
    """As some encoders send it: after ffmpeg's file, whose tags are put together after the FLV specification (E.4.2)."""
    path = short(case.path / "film.flv", "-c:a", "libmp3lame", "-b:a", "128k", "-ar", rate)
    tags, audio = [], []
    for tag in flv.read(path):
        if tag.type != flv.AUDIO:
            tags.append(tag)
            continue
        audio.append(tag)
        if len(audio) == count:
            # The first byte says the codec; the frames are behind it.
            tags.append(dataclasses.replace(audio[0], body=audio[0].body + b"".join(t.body[1:] for t in audio[1:])))
            audio = []
    tags += audio
    tags.sort(key=lambda tag: tag.milliseconds)
    weir = case.start()
    with rawrtmp.RawRTMP(weir.rtmp).start("cam") as publisher:
        publisher.play_out(tags, speed=2)
        publisher.finish()
    found = beeps_of_recording(weir, "cam")[1:]
    assert "damaged" not in weir.text()
    published = beeps(path)[1:]
    assert len(found) == len(published) == 7, (found, published)
    assert all(abs(a - b) < 0.005 for a, b in zip(found, published)), (found, published)


@pytest.fixture(scope="module")
def together(request, tmp_path_factory):
    """How each case ended."""
    return TRIED.run(request, tmp_path_factory)


@pytest.mark.parametrize("name", TRIED.cases)
def test_decoded(together, name, record_property):
    for figure in together[name].result():
        record_property("figure", figure)
