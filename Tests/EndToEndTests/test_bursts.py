"""Publishers that send faster than real time at first: a relay with the last group of pictures, ffmpeg 8 with half a second. What was
listed is never contradicted: dates agree with lengths, Periods do not overlap, and media have the time at which they were made."""

import concurrent.futures
import datetime
import time

import pytest

from harness import dash, flv, hls, nothing_wrong, scripts
from harness.rawrtmp import RawRTMP
from harness.weir import Weir

#: Seconds of the first burst, and whether it is that of a publisher that returns.
CASES = {"begins-0.5": (0.5, False), "begins-10": (10, False), "returns-0.5": (0.5, True), "returns-4.2": (4.2, True)}
#: Seconds for which the publisher sent before, and for which it was away.
BEFORE, AWAY = 4, 6


def tags(seconds: float) -> list[flv.Tag]:
    """The film again and again."""
    film = flv.only(scripts.tags_of("h264-30"), flv.VIDEO, flv.AUDIO)
    length = round(max(tag.milliseconds for tag in film if tag.type == flv.VIDEO) + 1000 / 30)
    turns = int(seconds * 1000 / length) + 1
    found = [tag for turn in range(turns) for tag in flv.shifted([t for t in film if turn == 0 or not t.is_header], turn * length)]
    return [tag for tag in found if tag.milliseconds < seconds * 1000]


def publish(weir: Weir, name: str, burst: float, seconds: float, ends: bool) -> float:
    """For so many seconds behind the burst. Returns when it began to send."""
    with RawRTMP(weir.rtmp).start(name) as client:
        began = time.monotonic()
        at = time.time()
        for tag in tags(burst + seconds):
            time.sleep(max(0.0, began + tag.milliseconds / 1000 - burst - time.monotonic()))
            client.drain()
            client.tag(tag)
        if ends:
            client.finish()
        else:
            client.reset()
    return at


@pytest.fixture(scope="module")
def watched(start_shared):
    weir = start_shared("--no-record", "--target-duration", "2")

    def run(name: str) -> tuple[float, hls.Watch, dash.Watch]:
        burst, returns = CASES[name]
        watches = (hls.Watch(f"{weir.web}/live/{name}/index.m3u8", every=0.1),
                   dash.Watch(f"{weir.web}/live/{name}/manifest.mpd", f"{weir.web}/time", every=0.1))
        if returns:
            publish(weir, name, 0, BEFORE, ends=False)
            time.sleep(AWAY)  # real time: it is away for so long
        began = publish(weir, name, burst, 5, ends=True)
        weir.wait(lambda: watches[0].last and watches[0].last.ended, 15, f"the end of {name}")
        return began - burst, watches[0].stop(), watches[1].stop()

    tags(20)
    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        return dict(zip(CASES, pool.map(run, CASES)))


@pytest.mark.parametrize("name", CASES)
def test_no_list_contradicts_another(watched, name):
    _, playlists, manifests = watched[name]
    nothing_wrong(playlists.problems)
    nothing_wrong(manifests.problems)
    for manifest in manifests.states:
        assert max(dash.overlaps(manifest), default=0) <= 0.02, manifest.text
    for _, playlist in playlists.states:
        dates = [segment.date for segment in playlist.segments]
        assert dates == sorted(dates), playlist.text


@pytest.mark.parametrize("name", CASES)
def test_the_media_of_a_burst_are_as_old_as_they_are(watched, name):
    made, playlists, manifests = watched[name]
    burst, returns = CASES[name]
    present = playlists.last.present
    [first] = [segment for segment in present if segment.discontinuity] if returns else present[:1]
    made = datetime.datetime.fromtimestamp(made, datetime.timezone.utc)
    assert abs((first.date - made).total_seconds()) < 0.3, (first.date, made)
    assert len({r.period for r in manifests.last.representations}) == (2 if returns else 1), manifests.last.text
