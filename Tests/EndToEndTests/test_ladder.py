"""The transcoding ladder: rungs are cut where the source is, and the transcoder may crash without an effect on viewers of
the source."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest

from harness import boxes, dash, hls, http, llhls, publishers, scripts, sources, tokens, tools
from harness.metrics import Metrics
from harness.rawrtmp import RawRTMP

NAME = "cam"
RUNGS = {"120p": (214, 120), "90p": (160, 90)}


def variants(weir, count: int = 2) -> dict[str, str]:
    """The playlists of the video, by the last folder of their address, once there are so many: an encoder may begin late."""
    index = f"{weir.web}/live/{NAME}/index.m3u8"
    weir.wait(lambda: http.fetch(index).text.count("#EXT-X-STREAM-INF:") >= count, 40, f"{count} variants")
    top = hls.parse_multivariant(http.fetch(index).text, index)
    assert hls.check_multivariant(top, has_video=True) == []
    assert len([media for media in top.media if "URI" in media]) == 1, "one group of audio"
    return {variant.uri.split("/")[-2]: top.absolute(variant.uri) for variant in top.variants}


@pytest.fixture(scope="module")
def encoding():
    """The token of encoders, for as long as a server makes two rungs."""
    with tokens.token("encoder"):
        yield


@pytest.fixture(scope="module")
def live(encoding, start_shared):
    """A stream with B-frames and audio and with two rungs, and the playlists of its video."""
    weir = start_shared("--ladder", "180p@1M,120p@200k,90p@100k", "--segment-duration", "1s", "--no-record")
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        urls = variants(weir, 1 + len(RUNGS))
        weir.wait(lambda: len(llhls.parse(http.fetch(urls["90p"]).text, urls["90p"]).segments) >= 3, 30, "segments")
        yield weir, urls
    finally:
        publisher.kill()


def decode_times(url: str, sequences: range) -> dict[int, list[tuple[int, int]]]:
    """By segment: decode time and length of each fragment of a video rendition."""
    playlist = llhls.parse(http.fetch(url).text, url)
    movie = boxes.read_movie(http.fetch(f"{url.rsplit('/', 1)[0]}/{playlist.segments[0].map}").good().body)
    found = {}
    for sequence in sequences:
        body = http.fetch(f"{url.rsplit('/', 1)[0]}/{sequence}.m4s").good().body
        runs = [run for fragment in boxes.read_segment(body, movie).fragments for run in fragment.runs]
        assert runs[0].samples[0].is_sync, f"{url} {sequence}"
        found[sequence] = [(run.tfdt, sum(sample.duration for sample in run.samples)) for run in runs]
    return found


def test_the_rung_that_equals_the_source_is_the_source(live):
    weir, urls = live
    assert set(urls) == {"video", *RUNGS}
    ladder = weir.stream(NAME)["ladder"]
    assert {rung["name"]: (rung["width"], rung["height"]) for rung in ladder["renditions"]} == RUNGS


def test_every_size_has_a_list_of_key_frames_for_seeking(live, tmp_path):
    """EXT-X-I-FRAME-STREAM-INF lists each with its size. A byte range, after its init segment, is one frame."""
    weir, urls = live
    index = f"{weir.web}/live/{NAME}/index.m3u8"
    lines = [hls.attributes(line) for line in http.fetch(index).text.split("\n")
             if line.startswith("#EXT-X-I-FRAME-STREAM-INF:")]
    found = {line["URI"].split("/")[-2]: line["RESOLUTION"] for line in lines}
    assert found == {"video": "320x180", **{name: f"{width}x{height}" for name, (width, height) in RUNGS.items()}}
    for line in lines:
        url = urllib.parse.urljoin(index, line["URI"])
        text = http.fetch(url).good().text
        assert "#EXT-X-I-FRAMES-ONLY" in text and "#EXT-X-GAP" not in text
        init = re.search(r'#EXT-X-MAP:URI="([^"]+)"', text)[1]
        length, offset, name = re.findall(r"#EXT-X-BYTERANGE:(\d+)@(\d+)\n(\S+)", text)[-1]
        first, last = int(offset), int(offset) + int(length) - 1
        frame = http.fetch(urllib.parse.urljoin(url, name), headers={"Range": f"bytes={first}-{last}"})
        assert frame.status == 206
        path = tmp_path / "frame.mp4"
        path.write_bytes(http.fetch(urllib.parse.urljoin(url, init)).good().body + frame.body)
        done = tools.run(tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries",
                         "frame=pict_type,width,height", "-of", "csv=p=0", path)
        # The other frames of the fragment are missing, which ffprobe reports.
        width, height, kind, *_ = done.stdout.strip().split(",")
        assert (f"{width}x{height}", kind) == (line["RESOLUTION"], "I")


def test_fragments_of_all_renditions_begin_at_the_same_decode_times(live):
    weir, urls = live
    complete = [s for s in llhls.parse(http.fetch(urls["90p"]).text, urls["90p"]).segments if s.uri and not s.gap]
    sequences = range(complete[-2].sequence, complete[-1].sequence + 1)
    source = decode_times(urls["video"], sequences)
    assert all(len(fragments) >= 5 for fragments in source.values())
    for name in RUNGS:
        assert decode_times(urls[name], sequences) == source, name


def test_every_rendition_keeps_the_promises_of_low_latency(live):
    _, urls = live
    players = [llhls.Player(url) for url in urls.values()]
    # A list for each part: three seconds of them.
    threads = [threading.Thread(target=player.play, kwargs={"states": 15}) for player in players]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for player in players:
        player.judge_media()
        assert player.problems == [], player.url


def test_ffmpeg_decodes_every_rung_without_a_fault(live):
    weir, urls = live
    for name, size in RUNGS.items():
        done = tools.run("ffprobe", "-v", "error", "-select_streams", "v", "-read_intervals", "%+4", "-show_entries",
                         "frame=width,height", "-of", "csv=p=0", urls[name], timeout=40)
        frames = done.stdout.split()
        # A machine that is too busy drops frames, and reports how many.
        dropped = weir.stream(NAME)["ladder"]["droppedFrames"]
        assert done.stderr == "" and len(frames) > max(20, 100 - dropped), done.stderr
        assert {tuple(map(int, frame.split(",")[:2])) for frame in frames} == {size}


def test_dash_has_all_video_in_one_adaptation_set(live):
    weir, _ = live
    url = f"{weir.web}/live/{NAME}/manifest.mpd"
    manifest = dash.parse(http.fetch(url).good().text, url)
    assert dash.check(manifest) == []
    video = {r.id: r for r in manifest.representations if r.kind == "video"}
    assert set(video) == {"video", *RUNGS}
    first = manifest.text.index("<AdaptationSet")
    assert manifest.text[first:manifest.text.index("</AdaptationSet>")].count("<Representation ") == 3
    starts = {name: {entry.time for entry in r.entries} for name, r in video.items()}
    assert starts["90p"] & starts["video"] and starts["90p"] - starts["video"] <= {min(starts["90p"])}
    for r in video.values():
        assert http.fetch(r.entries[-2].url).status == 200


def test_the_death_of_the_transcoder_is_nothing_to_the_sources_viewers(live):
    weir, urls = live
    before = weir.stream(NAME)["ladder"]
    player = llhls.Player(urls["video"])
    thread = threading.Thread(target=player.play, kwargs={"states": 20})
    thread.start()
    weir.wait(lambda: len(player.playlists) > 3, 15, "a viewer")
    os.kill(before["processID"], signal.SIGKILL)
    thread.join()
    player.judge_media()
    assert player.problems == []

    def back():
        after = weir.stream(NAME)["ladder"]
        newest = [s for s in llhls.parse(http.fetch(urls["90p"]).text, urls["90p"]).segments if s.uri][-1]
        return after["restarts"] == before["restarts"] + 1 and not newest.gap and after

    after = weir.wait(back, 30, "the rungs come back")
    assert after["processID"] != before["processID"]
    told = Metrics(weir)
    assert told("weir_ladder_worker_restarts_total", stream=NAME) == after["restarts"]
    assert told("weir_ladder_frames_dropped_total", stream=NAME) >= after["droppedFrames"]
    assert told("weir_ladder_worker_up", stream=NAME) == 1 and told("weir_ladder_renditions", stream=NAME) == len(RUNGS)
    playlist = llhls.parse(http.fetch(urls["90p"]).text, urls["90p"])
    assert playlist.sequence == llhls.parse(http.fetch(urls["video"]).text, urls["video"]).sequence \
        or any(segment.gap for segment in playlist.segments)


def test_a_transcoder_that_stands_still_is_replaced(live):
    weir, urls = live
    before = weir.stream(NAME)["ladder"]
    os.kill(before["processID"], signal.SIGSTOP)
    # A viewer of the source that waited for the rungs would be told of nothing that they lack.
    weir.wait(lambda: newest_of_a_rung(urls["video"]) >= newest_of_a_rung(urls["90p"]) + 2, 15, "the source goes on without it")
    assert weir.stream(NAME)["ladder"]["processID"] == before["processID"], "the source waited until it was replaced"
    weir.wait(lambda: weir.stream(NAME)["ladder"]["restarts"] > before["restarts"], 30, "another worker")
    assert not os.path.exists(f"/proc/{before['processID']}")
    assert llhls.Player(urls["video"]).play(states=10).problems == []


def newest_of_a_rung(url: str) -> int:
    return max((s.sequence for s in llhls.parse(http.fetch(url).text, url).segments if s.uri and not s.gap), default=0)


def test_garbage_with_good_lengths_is_nothing_to_another_streams_rungs(live):
    weir, urls = live
    before, pid = weir.stream(NAME)["ladder"], weir.process.pid
    began = newest_of_a_rung(urls["90p"])
    tags = scripts.tags_of("h264-30")
    # The first second is valid, so that the decoder starts. The rest is invalid, in ordinary frames and key frames.
    good, bad = [t for t in tags if t.milliseconds < 1000], [t for t in tags if t.milliseconds >= 1000]
    with RawRTMP(weir.rtmp).start("garbage") as client:
        client.play_out(good + scripts.garbled(bad), speed=2)
        fed = weir.stream("garbage")
        client.finish()
    assert fed["state"] == "live" and fed["ladder"]["restarts"] <= 3, fed["ladder"]
    assert weir.process.poll() is None and weir.process.pid == pid
    after = weir.stream(NAME)["ladder"]
    assert after["processID"] == before["processID"] and after["restarts"] == before["restarts"]
    weir.wait(lambda: newest_of_a_rung(urls["90p"]) > began, 30, "the other stream's rungs go on")


def test_video_that_changes_with_each_key_frame_fills_neither_memory_nor_log(start):
    weir = start("--ladder", "120p@200k,90p@100k", "--no-record", "--max-changes", "100000")
    tags = scripts.two_formats_in_turn("h264-30", "portrait", 2500, step=4, filler=100_000)
    before, most = weir.resident_kilobytes(), 0
    with RawRTMP(weir.rtmp).start(NAME, chunk_size=65_536) as client:
        for at in range(0, len(tags), 100):
            client.play_out(tags[at:at + 100])
            most = max(most, weir.resident_kilobytes())
        # Each change needs a new encoder, whose first frame costs more than a rung may in the long run. If the machine keeps up
        # with very many changes, the worker counts as hostile, and the next one has to wait.
        assert weir.stream(NAME)["ladder"]["worker"] in ("running", "waiting")
    log = weir.text()
    # It depends on the machine whether the worker keeps up with them or frames are dropped.
    assert log.count("transcoding to") <= 20 and log.count(": now ") <= 20, weir.tail()
    # 32 MB wait, plus the buffers of the socket and the worker. 250 MB were sent.
    assert most - before < 120_000, f"{most - before} KB"


def follow(url: str, statuses: list[int | str]) -> None:
    """A player's blocking reloads, to the end of the list ("end") or the first that fails."""
    address = url
    while not statuses or statuses[-1] == 200:
        response = http.fetch(address, timeout=20)
        statuses.append(response.status)
        if response.status == 200:
            if "#EXT-X-ENDLIST" in response.text:
                statuses.append("end")
                return
            segment, part = llhls.parse(response.text, url).next
            address = f"{url}?_HLS_msn={segment}&_HLS_part={part}"


def test_at_the_end_rungs_are_complete_and_no_process_is_left(start):
    weir = start("--ladder", f"{NAME}=120p@200k", "--segment-duration", "1s", "--no-record")
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        urls = variants(weir)
        worker = weir.wait(lambda: weir.stream(NAME)["ladder"]["processID"], 10, "a transcoder")
        statuses: dict[str, list[int | str]] = {name: [] for name in urls}
        players = [threading.Thread(target=follow, args=(url, statuses[name]), daemon=True) for name, url in urls.items()]
        for player in players:
            player.start()
        weir.wait(lambda: all(len(told) > 10 for told in statuses.values()), 20, "viewers of both")
        publisher.interrupt()
        publisher.outcome(10)
    finally:
        publisher.kill()
    # A rung's last frames come after the stream's end: who waits for them has them, too.
    for player in players:
        player.join(20)
        assert not player.is_alive()
    for name, told in statuses.items():
        assert len(told) > 10 and told[-1] == "end" and set(told[:-1]) == {200}, (name, told)

    def ended(url):
        return "#EXT-X-ENDLIST" in http.fetch(url).text

    for url in urls.values():
        weir.wait(lambda: ended(url), 15, f"the end of {url}")
    lengths = []
    for url in urls.values():
        playlist = llhls.parse(http.fetch(url).text, url)
        lengths.append([(segment.sequence, segment.duration) for segment in playlist.segments])
    assert lengths[0] == lengths[1]
    weir.wait(lambda: not os.path.exists(f"/proc/{worker}"), 15, "the worker is gone")


def test_a_rungs_last_frames_come_to_who_waits_while_the_name_is_live_again(start):
    weir = start("--ladder", f"{NAME}=120p@200k", "--segment-duration", "1s", "--no-record")
    first = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    second = None
    try:
        url = variants(weir)["120p"]
        worker = weir.wait(lambda: weir.stream(NAME)["ladder"]["processID"], 10, "a transcoder")
        began, statuses = weir.stream(NAME)["startedAt"], []
        player = threading.Thread(target=follow, args=(url, statuses), daemon=True)
        player.start()
        weir.wait(lambda: len(statuses) > 5, 15, "a viewer of the rung")
        os.kill(worker, signal.SIGSTOP)
        first.interrupt()
        first.outcome(10)
        second = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
        weir.wait(lambda: weir.stream(NAME)["startedAt"] != began, 20, "the next publication")
        # The server may have given it up by now.
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
        player.join(20)
        assert not player.is_alive() and statuses[-1] == "end" and set(statuses[:-1]) == {200}, statuses
    finally:
        for publisher in filter(None, (first, second)):
            publisher.kill()


def test_a_reconnect_is_the_same_discontinuity_in_every_rung(start):
    weir = start("--ladder", "120p@200k", "--segment-duration", "1s", "--no-record")
    first = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    urls = variants(weir)

    def complete(url):
        return [s for s in llhls.parse(http.fetch(url).text, url).segments if s.uri]

    weir.wait(lambda: len(complete(urls["120p"])) >= 2, 20, "segments")
    first.kill()
    weir.wait_state(NAME, "reconnecting")
    second = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        weir.wait(lambda: any(s.discontinuity for s in complete(urls["120p"])[:-1]), 20, "what comes after it")
        # The rung's first: what it has, the source's list had before.
        shapes = {name: [(s.sequence, s.duration, s.discontinuity) for s in complete(urls[name])] for name in ("120p", "video")}
        assert shapes["video"][:len(shapes["120p"])] == shapes["120p"]
        broken = next(s.sequence for s in complete(urls["120p"]) if s.discontinuity)
        # The time between them, if it was long, is listed as gaps.
        before = max(s.sequence for s in complete(urls["120p"]) if s.sequence < broken and not s.gap)
        sequences = (before, broken)
        assert decode_times(urls["120p"], sequences) == decode_times(urls["video"], sequences)
    finally:
        second.kill()


def test_the_transcoder_dies_with_the_server(start):
    weir = start("--ladder", "120p@200k", "--source", f"demo=file:{sources.source('loop')}", "--no-record")
    worker = weir.wait(lambda: ((weir.stream("demo") or {}).get("ladder") or {}).get("processID"), 30, "a transcoder")
    environment = open(f"/proc/{worker}/environ", "rb").read()
    assert environment == b"", "nothing of the server's environment reaches it"

    def is_confined():
        status = open(f"/proc/{worker}/status").read()
        return "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status

    weir.wait(is_confined, 10, "a worker that may compute, and nothing else")
    open_files = {int(n): os.readlink(f"/proc/{worker}/fd/{n}") for n in os.listdir(f"/proc/{worker}/fd")}
    assert sorted(open_files) == [0, 1, 2] and open_files[0].startswith("socket:"), open_files
    assert open_files[1] == open_files[2] == "/dev/null"
    weir.kill()
    deadline = time.monotonic() + 15
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}") or "Z" in open(f"/proc/{worker}/stat").read()


def test_a_worker_that_is_fed_nonsense_says_so_and_ends():
    done = subprocess.run([tools.weir_binary(), "transcode-worker"], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=20)
    assert done.returncode == 0, "not a socket: there is nothing to do"
