"""Data about frames besides their bytes: thumbnails, colours, and which frames may be dropped."""

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from harness import nothing_wrong, boxes, flv, hls, http, packets, publishers, scripts, sources, tools
from harness.outcome import Outcome

PQ = ("-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc")
#: Stream → film, and the metadata that the publisher sends with it.
STREAMS = {
    "h264": ("h264-30", ()), "hevc": ("hevc", ()), "av1": ("av1-opus", ()), "audio": ("audio-only", ()),
    "portrait": ("portrait", ()), "plain": ("hevc-10", ()), "stated": ("hevc-10", PQ), "in-stream": ("hevc-pq", ()),
}
SIZES = {"h264": (320, 180), "hevc": (320, 180), "av1": (320, 180), "portrait": (360, 640)}


@pytest.fixture(scope="module")
def published(start_shared, tmp_path_factory):
    """Publishes everything, requests a thumbnail of each stream while it is live, and collects the outputs."""
    folder = tmp_path_factory.mktemp("published")
    for film, _ in STREAMS.values():
        sources.source(film)
    weir = start_shared()
    early = http.fetch(f"{weir.web}/live/nobody/thumbnail.jpg")
    outcomes = {name: Outcome(weir, name, folder) for name in STREAMS}
    taken: dict[str, list[http.Response]] = {}
    with contextlib.ExitStack() as stack:
        running = {}
        for name, (film, options) in STREAMS.items():
            running[name] = publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", options=options)
            stack.callback(running[name].kill)

        def finish(name: str) -> None:
            running[name].wait(60)
            outcomes[name].collect(seconds=30)

        # As soon as each has ended: it stays for a minute.
        with concurrent.futures.ThreadPoolExecutor(len(STREAMS)) as finishing:
            finished = [finishing.submit(finish, name) for name in STREAMS]
            for name in STREAMS:
                # A stream that is not there yet is not found either, as one without video.
                expected = 200 if name != "audio" else 404
                weir.wait(lambda: weir.get(f"/live/{name}/thumbnail.jpg").status == expected and weir.stream(name), 30,
                          f"a thumbnail of {name}", every=0.2)
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    taken[name] = list(pool.map(lambda _: weir.get(f"/live/{name}/thumbnail.jpg"), range(4)))
            for one in finished:
                one.result()
    return outcomes, taken, early, folder


@pytest.mark.parametrize("name", SIZES)
def test_the_thumbnail_is_a_jpeg_of_the_streams_shape(published, name):
    answer = published[1][name][0].good()
    assert answer.headers["content-type"] == "image/jpeg"
    assert re.fullmatch(r"public, max-age=[12]", answer.headers["cache-control"])
    path = published[3] / f"{name}.jpg"
    path.write_bytes(answer.body)
    probed = tools.run(tools.FFPROBE, "-v", "error", "-count_frames", "-show_entries",
                       "stream=codec_name,width,height,nb_read_frames", "-of", "csv=p=0", path)
    assert (probed.stdout.strip(), probed.stderr) == (f"mjpeg,{SIZES[name][0]},{SIZES[name][1]},1", "")


@pytest.mark.parametrize("name", ["h264", "hevc", "av1"])
def test_the_thumbnail_shows_what_the_film_shows(published, name):
    """Compared with the film's own key frames as decoded by the judge: one of them looks the same."""
    path = published[3] / f"{name}-seen.jpg"
    path.write_bytes(published[1][name][0].good().body)
    best = 0.0
    for at in (0, 2, 4, 6):
        compared = tools.run(
            tools.new_ffmpeg(), "-v", "info", "-nostdin", "-ss", str(at), "-i", sources.source(STREAMS[name][0]),
            "-i", path, "-lavfi", "[0:v]trim=end_frame=1,format=gray[a];[1:v]format=gray[b];[a][b]psnr", "-f", "null", "-")
        found = re.search(r"average:(inf|[0-9.]+)", compared.stderr)
        best = max(best, float(found[1]) if found else 0)
    assert best > 25, f"the likest key frame is {best:.1f} dB away"


def test_requests_within_a_segment_get_the_same_thumbnail(published):
    for name in SIZES:
        by_tag: dict[str, set[bytes]] = {}
        for answer in published[1][name]:
            by_tag.setdefault(answer.headers["etag"], set()).add(answer.good().body)
        assert all(len(bodies) == 1 for bodies in by_tag.values())
        assert len(by_tag) <= 2, "four requests at once, at most one change of segment between them"


def test_audio_has_no_thumbnail_and_neither_has_an_unknown_stream(published):
    assert {answer.status for answer in published[1]["audio"]} == {404}
    assert published[2].status == 404


# Thumbnails are made by separate processes, whose crashes affect nothing else

def broken(tag: flv.Tag) -> flv.Tag:
    """A key frame whose slice headers say that it is none. No decoder makes a frame of it."""
    if not tag.is_key:
        return tag
    body, at = bytearray(tag.body), 5
    while at + 4 < len(body):
        length = int.from_bytes(body[at : at + 4], "big")
        if body[at + 4] & 31 == 5:
            body[at + 5 : at + 4 + length] = b"\xff" * (length - 1)
        at += 4 + length
    return dataclasses.replace(tag, body=bytes(body))


def test_a_key_frame_that_is_garbage_has_no_thumbnail_and_harms_no_other_stream(start):
    weir = start()
    good = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/good", loop=-1)
    film = [broken(tag) for tag in scripts.tags_of("h264-30")]
    publishing = threading.Thread(target=scripts.whole, args=(weir.rtmp, "garbage", film))
    publishing.start()
    try:
        weir.wait_state("garbage", "live")
        answer = weir.wait(lambda: (found := weir.get("/live/garbage/thumbnail.jpg")).status not in (404, 503) and found, 20,
                           "an answer")
        assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
        assert "cannot decode the key frame" in weir.wait_log("garbage: no thumbnail of segment")
        weir.wait(lambda: weir.get("/live/good/thumbnail.jpg").status == 200, 20, "the good stream's thumbnail")
        publishing.join()
        entry = weir.wait(lambda: [r for r in weir.recordings_of("garbage") if r["thumbnail"]], 10, "its recording")[0]
        assert weir.get(entry["thumbnail"]).status == 404
        assert "cannot decode the key frame" in weir.wait_log("garbage: no thumbnail of recording")
        assert weir.stream("good")["state"] == "live"
        weir.wait(lambda: weir.children() == {}, 10, "no worker is left")
    finally:
        publishing.join()
        good.kill()


def test_a_worker_that_dies_costs_its_thumbnail_alone(start):
    weir = start("--no-record", "--segment-duration", "1s")
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1)
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            for process, line in weir.children().items():
                if b"transcode-worker" in line:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    try:
        weir.wait(lambda: weir.get("/live/cam/thumbnail.jpg").status == 200, 20, "a thumbnail")
        before = weir.stream("cam")
        killer.start()
        weir.wait(lambda: weir.get("/live/cam/thumbnail.jpg").status == 500, 20, "no thumbnail")
        assert "its worker is gone (signal 9 ended it)" in weir.wait_log("cam: no thumbnail of segment")
        over.set()
        weir.wait(lambda: weir.get("/live/cam/thumbnail.jpg").status == 200, 20, "the next segment's thumbnail")
        after = weir.stream("cam")
        assert (after["state"], after["startedAt"]) == ("live", before["startedAt"])
        weir.wait(lambda: weir.children() == {}, 10, "no worker is left")
    finally:
        over.set()
        if killer.ident:
            killer.join()
        publisher.kill()


# Colours

def described(path) -> str:
    """The video as the newer ffmpeg describes it: it uses the file's metadata if the bitstream has none."""
    lines = tools.run(tools.new_ffmpeg(), "-hide_banner", "-nostdin", "-i", path).stderr
    return re.search(r"Video: .*", lines)[0]


def transfer_in_stream(path) -> str:
    """As ffprobe 5.1 reads it from the bitstream."""
    return tools.run(tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "stream=color_transfer",
                     "-of", "csv=p=0", path).stdout.strip()


@pytest.mark.parametrize(("name", "is_pq"), [("plain", False), ("stated", True), ("in-stream", True)])
def test_recordings_and_live_media_say_which_colours_the_video_has(published, name, is_pq):
    outcome = published[0][name]
    nothing_wrong(hls.unexplained(outcome.hls.problems, outcome.weir.text(), outcome.name))
    playlist = outcome.media()
    init = published[3] / f"{name}-init.mp4"
    first = playlist.segments[0]
    init.write_bytes(outcome.bytes_of(playlist.absolute(first.map)) + outcome.bytes_of(playlist.absolute(first.uri)))
    for path in (init, outcome.recordings[0]):
        assert ("bt2020nc/bt2020/smpte2084" in described(path)) == is_pq, described(path)
        assert (b"colrnclx" + bytes.fromhex("0009 0010 0009 00") in path.read_bytes()) == is_pq
    if name == "in-stream":
        assert transfer_in_stream(init) == "smpte2084"


def test_stated_colours_cost_no_discontinuity(published):
    assert not [segment for segment in published[0]["stated"].media().segments if segment.discontinuity]


# Frames that may be dropped

def disposable(path) -> list[int]:
    """Numbers of the frames on which no other depends, by `sdtp` (ISO/IEC 14496-12 §8.6.4)."""
    data = path.read_bytes()
    at = data.index(b"sdtp")
    size = int.from_bytes(data[at - 4 : at], "big")
    return [number for number, byte in enumerate(data[at + 8 : at - 4 + size]) if byte >> 2 & 3 == 2]


def frames_of_segments(outcome) -> list[tuple[int, list[bytes]]]:
    """Sample flags and NAL units of each frame in the HLS segments."""
    playlist = outcome.media()
    movie = boxes.read_movie(outcome.bytes_of(playlist.absolute(playlist.segments[0].map)))
    video = next(track.id for track in movie.tracks.values() if track.kind == "video")
    found = []
    for listed in playlist.segments:
        data = outcome.bytes_of(playlist.absolute(listed.uri))
        found += [(sample.flags, boxes.nal_units(data, sample))
                  for fragment in boxes.read_segment(data, movie).fragments for run in fragment.runs
                  if run.track == video for sample in run.samples]
    return found


def is_unreferenced(name: str, units: list[bytes]) -> bool:
    """By the headers of its slices (ITU-T H.264 §7.4.1, H.265 table 7-1; one temporal layer)."""
    if name == "h264":
        return not any(unit[0] >> 5 & 3 for unit in units if unit[0] & 31 in (1, 5))
    slices = [unit[0] >> 1 for unit in units if unit[0] >> 1 < 32]
    return all(kind < 16 and kind % 2 == 0 for kind in slices)


def any_of(numbers: list[int]) -> str:
    """An ffmpeg expression that is true for these packets. It is built in halves, because its depth is limited."""
    if len(numbers) == 1:
        return f"eq(n\\,{numbers[0]})"
    half = len(numbers) // 2
    return f"({any_of(numbers[:half])}+{any_of(numbers[half:])})"


@pytest.mark.parametrize("name", ["h264", "hevc"])
def test_frames_that_no_other_needs_are_marked(published, name):
    outcome = published[0][name]
    recording = outcome.recordings[0]
    marked = disposable(recording)
    total = len(packets.probe(recording)["video"])
    assert 0 < len(marked) < total
    found = frames_of_segments(outcome)
    # The sample flags of segments (§8.8.3.1), the recording and the frames' own headers agree.
    assert [number for number, (flags, _) in enumerate(found) if flags >> 22 & 3 == 2] == marked
    assert [number for number, (_, units) in enumerate(found) if is_unreferenced(name, units)] == marked
    # The remaining frames can be decoded alone.
    alone = published[3] / f"{name}-alone.mp4"
    subprocess.run([tools.FFMPEG, "-v", "error", "-nostdin", "-i", recording, "-map", "0:v", "-c", "copy", "-bsf:v",
                    f"noise=drop={any_of(marked)}", str(alone)], check=True, timeout=30)
    errors, frames = packets.decode(alone)
    assert errors == ""
    assert frames["video"] == total - len(marked)
