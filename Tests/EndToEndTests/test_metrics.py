"""`/metrics`: read by another program's parser, and compared with the API and with what was sent."""

import os
import threading
import time

import pytest

from harness import hls, http, publishers, rawrtmp, sources
from harness.gauges import cpu_seconds
from harness.metrics import Metrics


@pytest.fixture(scope="module")
def watched(start_shared, canary):
    """A recorded stream with a publish key, and one viewer each of its HLS, DASH and stream.mp4."""
    weir = start_shared("--publish-key", canary, "--source", f"demo=file:{sources.source('loop')}", "--record-sync", "500ms")
    weir.secrets.append(canary)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam?key={canary}", loop=-1)
    over = threading.Event()
    try:
        weir.wait_state("cam", "live")
        index = f"{weir.web}/live/cam/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 15, "a playlist")
        top = hls.parse_multivariant(http.fetch(index).text, index)
        media = top.absolute(top.variants[0].uri)

        def watch(url: str, agent: str) -> None:
            while not over.is_set():
                http.fetch(url, headers={"User-Agent": agent})
                over.wait(0.5)

        threads = [threading.Thread(target=watch, args=given) for given in (
            (media, "one"), (f"{weir.web}/live/cam/manifest.mpd", "two"))]
        for thread in threads:
            thread.start()
        weir.wait(lambda: all(stream["gopSeconds"] and stream["bitrate"] for stream in weir.json("/api/v1/streams")["streams"])
                  and weir.stream("cam")["recording"]["seconds"] > 2, 20, "figures of both streams")
        yield weir, media
    finally:
        over.set()
        publisher.kill()


def test_another_programs_parser_reads_it(watched):
    weir, _ = watched
    metrics = Metrics(weir)
    assert len(metrics.values) > 60
    assert all(f.samples for f in metrics.families.values())
    assert http.fetch(f"{weir.web}/metrics", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert http.fetch(f"{weir.web}/metrics", method="POST", body=b"").status == 405


def test_it_tells_what_the_api_tells(watched):
    weir, _ = watched

    def told() -> dict[str, dict]:
        return {stream["name"]: stream for stream in weir.json("/api/v1/streams")["streams"]}

    def steady(streams: dict[str, dict]) -> list:
        """What has not changed while the metrics were read."""
        return [(name, stream["gopSeconds"], len(stream["warnings"]), stream["viewers"]) for name, stream in streams.items()]

    def together():
        read = told(), Metrics(weir), told()
        # Both viewers ask twice a second, unless they are held up.
        watching = {labels["protocol"] for name, *pairs in read[1].values if name == "weir_viewers"
                    for labels in [dict(pairs)] if labels.get("stream") == "cam" and read[1](name, **labels) > 0}
        return read if steady(read[0]) == steady(read[2]) and {"hls", "dash"} <= watching else None

    streams, metrics, after = weir.wait(together, 20, "figures that agree before and after the metrics")
    assert {dict(labels)["stream"] for name, *labels in metrics.values if name == "weir_stream_live"} == set(streams)
    for name, stream in streams.items():
        assert metrics("weir_stream_live", stream=name) == 1
        assert metrics("weir_keyframe_interval_seconds", stream=name) == pytest.approx(stream["gopSeconds"], abs=0.001)
        for family, field, unit, room in (("bytes_per_second", "bitrate", 8, 0.2), ("memory_bytes", "memoryBytes", 1, 0.3)):
            least, most = sorted((stream[field] / unit, after[name][field] / unit))
            assert least * (1 - room) <= metrics(f"weir_stream_{family}", stream=name) <= most * (1 + room), family
        assert metrics("weir_stream_warnings", stream=name) == len(stream["warnings"])
        assert metrics.total("weir_viewers", stream=name) == stream["viewers"]
        assert metrics.total("weir_ingest_bytes_total", stream=name, protocol=stream["protocol"]) > 0
    assert metrics("weir_viewers", stream="cam", protocol="hls") >= 1
    assert metrics("weir_viewers", stream="cam", protocol="dash") == 1
    recording = streams["cam"]["recording"]
    assert recording["state"] == "running" and metrics("weir_recording_running", stream="cam") == 1
    assert metrics("weir_recording_file_bytes", stream="cam") >= recording["bytes"]
    assert metrics("weir_recording_gap_seconds", stream="cam") == sum(gap["seconds"] for gap in recording["gaps"]) == 0
    storage = weir.json("/api/v1/storage")
    assert metrics("weir_disk_free_bytes") == pytest.approx(storage["freeBytes"], rel=0.05)
    assert metrics("weir_disk_keep_free_bytes") == storage["keepFreeBytes"]
    assert metrics("weir_disk_look_age_seconds") < 5
    assert 0 <= metrics("weir_recording_lag_seconds", stream="cam") < 5
    assert metrics("weir_recording_unsynced_bytes", stream="cam") <= metrics("weir_recording_file_bytes", stream="cam")


def test_what_comes_and_goes_is_counted(watched):
    weir, media = watched
    cam = {"stream": "cam", "protocol": "RTMP"}
    before = Metrics(weir)
    playlist = hls.parse_media(http.fetch(media).text, media)
    body = len(http.fetch(playlist.absolute(playlist.segments[-1].uri)).good().body)
    # A segment after the one in progress, which no viewer has.
    answer = http.fetch(f"{media}?_HLS_msn={playlist.segments[-1].sequence + 2}&_HLS_part=0", timeout=20)
    assert answer.status == 200
    weir.wait(lambda: Metrics(weir)("weir_ingest_frames_total", kind="video", **cam)
              > before("weir_ingest_frames_total", kind="video", **cam) + 105, 20, "three and a half seconds of media")
    after = Metrics(weir)

    def more(name, **labels):
        return after(name, **labels) - before(name, **labels)

    # By the clock of the media.
    seconds = more("weir_ingest_frames_total", kind="video", **cam) / 30
    assert more("weir_ingest_frames_total", kind="audio", **cam) == pytest.approx(48000 / 1024 * seconds, rel=0.3)
    rate = after("weir_stream_bytes_per_second", stream="cam")
    assert more("weir_ingest_bytes_total", **cam) == pytest.approx(rate * seconds, rel=0.4)
    assert more("weir_ingest_keyframes_total", **cam) >= 1
    assert more("weir_egress_bytes_total", version="1.1") > body
    assert more("weir_blocked_reload_seconds_count", stream="cam") >= 1
    assert more("weir_blocked_reload_seconds_sum", stream="cam") > 0
    parts = more("weir_part_delay_seconds_count", stream="cam")
    assert parts == pytest.approx(5 * seconds, rel=0.4), "parts of 200 ms"
    # How late they are where nothing else runs is judged in test_lowlatency_hls.py.
    assert more("weir_part_delay_seconds_sum", stream="cam") / parts < 5
    assert more("weir_parts_short_total", stream="cam") == 0, "of a constant rate"
    assert abs(after("weir_av_skew_seconds", stream="cam")) < 0.5
    assert after.total("weir_ingest_frames_lost_total") == 0
    assert after("weir_recordings_total", event="started") == 2, "each stream's"


def test_a_wrong_key_is_counted_and_no_key_is_told(watched, canary):
    weir, _ = watched
    before = Metrics(weir)("weir_publish_rejected_total", reason="unauthorized")
    with pytest.raises(rawrtmp.Refused):
        rawrtmp.RawRTMP(weir.rtmp).start("cam?key=guessed-4711")
    weir.wait(lambda: Metrics(weir)("weir_publish_rejected_total", reason="unauthorized") == before + 1, 10, "the count")
    text = Metrics(weir).text
    assert canary not in text and "127.0.0.1" not in text and "guessed-4711" not in text


def test_the_process_is_told_as_the_kernel_tells_it(watched):
    weir, _ = watched
    resident, seconds = weir.resident_kilobytes(), cpu_seconds(weir.process.pid)
    metrics = Metrics(weir)
    least, most = sorted((resident, weir.resident_kilobytes()))
    assert least * 1024 * 0.8 <= metrics("process_resident_memory_bytes") <= most * 1024 * 1.2
    assert seconds - 0.5 <= metrics("process_cpu_seconds_total") <= cpu_seconds(weir.process.pid) + 0.5
    descriptors = len(os.listdir(f"/proc/{weir.process.pid}/fd"))
    assert metrics("process_open_fds") == pytest.approx(descriptors, abs=20)
    assert time.time() - 600 < metrics("process_start_time_seconds") < time.time()
    assert 0 < Metrics(weir)("weir_metrics_render_seconds") < 5


def test_probes_are_answered(watched):
    weir, _ = watched
    assert http.fetch(f"{weir.web}/healthz").text == "ok\n"
    assert http.fetch(f"{weir.web}/readyz").text == "ready\n"
