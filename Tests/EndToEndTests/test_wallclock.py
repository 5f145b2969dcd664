"""Accuracy of the wall clock in playlists and manifests, whatever delayed a publisher's first media."""

import concurrent.futures
import re
import time

import pytest

from harness import dash, flv, hls, http, llhls, publishers, sources, tools
from harness.rawrtmp import RawRTMP

LIVE = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i", "sine=440:sample_rate=48000",
        "-pix_fmt", "yuv420p", "-g", "60", "-c:a", "aac", "-f", "flv")


def look_ahead(url: str) -> publishers.Publisher:
    """x264 with its defaults: it begins after 40 frames and more, and its threads hold some back."""
    return publishers.Publisher([tools.FFMPEG, "-nostdin", "-v", "error", "-re", *LIVE[:4], "-re", *LIVE[4:8],
                                 *LIVE[8:12], "-c:v", "libx264", "-preset", "medium", *LIVE[12:], url])


def burst(url: str) -> publishers.Publisher:
    """A second of media at once, like an encoder after a slow connection, and then real-time pace."""
    return publishers.Publisher([tools.new_ffmpeg(), "-nostdin", "-v", "error", "-readrate", "1", "-readrate_catchup", "2",
                                 "-readrate_initial_burst", "1", "-i", str(sources.source("steady")), "-c", "copy",
                                 "-f", "flv", url])


PUBLISHERS = {
    "ffmpeg-live": look_ahead,
    "ffmpeg-copy": lambda url: publishers.ffmpeg("steady", url),
    "ffmpeg-burst": burst,
    "gstreamer": lambda url: publishers.gstreamer("steady", url),
}


def ages(url: str, seconds: float, least: int = 0) -> list[float]:
    """For each part that arrives: the wall clock at a viewer, minus the wall clock of the part's end. For so long, and until it has
    so many of them, a minute at most."""
    playlist = llhls.parse(http.fetch(f"{url}?_HLS_msn=1&_HLS_part=0", timeout=20).good().text, url)
    found, began = [], time.monotonic()
    while (passed := time.monotonic() - began) < seconds or len(found) < least and passed < 60:
        msn, part = playlist.next
        playlist = llhls.parse(http.fetch(f"{url}?_HLS_msn={msn}&_HLS_part={part}", timeout=20).good().text, url)
        age = llhls.age(playlist, time.time())
        if age is not None:
            found.append(age)
    return found


def measured(weir, kinds, seconds: float, least: int = 0) -> dict[str, list[float]]:
    """The ages of the parts of so many seconds, and of so many parts, five seconds after the start, of each publisher; all at once,
    in order of their size."""
    running = [PUBLISHERS[kind](f"{weir.rtmp}/live/{kind}") for kind in kinds]

    def one(kind: str) -> list[float]:
        index = f"{weir.web}/live/{kind}/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist")
        top = hls.parse_multivariant(http.fetch(index).text, index)
        time.sleep(5)  # real time: by then the clock is set
        found = sorted(ages(top.absolute(top.variants[0].uri), seconds, least))
        manifest = dash.parse(http.fetch(f"{weir.web}/live/{kind}/manifest.mpd").good().text, "manifest.mpd")
        assert len(found) >= 10
        assert len({r.period for r in manifest.representations}) <= 1 + max(1, len(hls.steps_told(weir.text(), kind)))
        return found

    try:
        with concurrent.futures.ThreadPoolExecutor(len(running)) as pool:
            return dict(zip(kinds, pool.map(one, kinds)))
    finally:
        for publisher in running:
            publisher.kill()


@pytest.fixture(scope="module")
def all_ages(start_shared):
    return measured(start_shared("--no-record"), list(PUBLISHERS), 0, least=20)


@pytest.mark.parametrize("kind", PUBLISHERS)
def test_five_seconds_after_the_start_the_newest_part_is_as_old_as_it_says(all_ages, kind):
    """Other tests use the processor meanwhile, so that media may come later when the clock is set than it does afterwards: by less
    than a step of the clock (ClockFollower), or it is set again. How exact it is where nothing else runs: test_lowlatency_hls."""
    found = all_ages[kind]
    assert -0.040 < found[0] <= 0.060, found


@pytest.mark.quiet
@pytest.mark.long
@pytest.mark.parametrize("kind", PUBLISHERS)
def test_parts_are_as_old_as_they_say_where_nothing_else_runs(start, kind, record_property):
    found = measured(start("--no-record"), [kind], 2.5)[kind]
    record_property("figure", f"{kind}: the newest part is {found[0] * 1000:.0f} to "
                              f"{found[len(found) // 2] * 1000:.0f} ms older than its time of day")
    assert -0.002 <= found[0] and found[len(found) // 4] <= 0.060, found


@pytest.mark.long
def test_dates_of_a_clock_that_is_off_stay_within_a_segment_of_the_truth(start):
    """By percents, all at once, for a minute. Dates agree with lengths up to a discontinuity, and the warning has the figure."""
    weir = start("--no-record", "--target-duration", "2")
    clocks = {"fast-2": 1.02, "slow-2": 0.98, "fast-5": 1.05, "slow-5": 0.95}
    tags = flv.read(sources.source("steady"))

    def publish(name: str) -> None:
        with RawRTMP(weir.rtmp).start(name) as client:
            client.play_out(tags, speed=clocks[name], until=58)

    def watch(name: str) -> list[str]:
        index = f"{weir.web}/live/{name}/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist")
        top = hls.parse_multivariant(http.fetch(index).text, index)
        url = top.absolute(top.variants[0].uri)
        problems, known, began = set(), set(), time.monotonic()
        while time.monotonic() - began < 50:
            playlist = hls.parse_media(http.fetch(url).good().text, url)
            problems.update(hls.check_media(playlist))
            newest = playlist.present[-1]
            age = time.time() - newest.date.timestamp() - float(newest.duration)
            if known and newest.sequence not in known and not -1 <= age <= 2:
                problems.add(f"segment {newest.sequence} ended {age:.2f} s ago by its date when it came")
            known.add(newest.sequence)
            time.sleep(0.25)
        figures = re.findall(r"media comes ([0-9.]+) % (slower|faster) ", " ".join(weir.stream(name)["warnings"]))
        percents = [float(figure) * (1 if way == "faster" else -1) for figure, way in figures]
        if len(percents) != 1 or abs(percents[0] - (clocks[name] - 1) * 100) > 0.3:
            problems.add(f"not warned: {weir.stream(name)['warnings']}")
        return [f"{name}: {problem}" for problem in problems]

    with concurrent.futures.ThreadPoolExecutor(2 * len(clocks)) as pool:
        sent = [pool.submit(publish, name) for name in clocks]
        found = [problem for problems in pool.map(watch, clocks) for problem in problems]
        for job in sent:
            job.result(60)
    assert found == []
