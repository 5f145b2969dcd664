"""Publishers by WebRTC that come back: killed, over a restart of the server, and after a network that was silent. As for every
other protocol (test_faults.py, test_restart.py) the epoch goes on, with one discontinuity, and the recording goes on, too."""

import re
import signal
import time

import pytest

from harness import hls, nothing_wrong, packets, publishers, relay
from harness.programs import free_port
from test_whip import finish, judge, publish, recorded

KEY = "a-key-of-those-who-return"


@pytest.fixture(scope="module")
def weir(start_shared):
    """Its media go through a relay, which may be cut."""
    port = free_port()
    network = relay.Relay(port)
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}", "--target-duration", "2",
        "--publish-key", KEY, listeners=("http", "rtmp", "webrtc"))
    weir.key, weir.network = KEY, network
    yield weir
    network.stop()


@pytest.fixture(scope="module")
def chromium():
    import browser.browsers as browsers  # noqa: PLC0415  (the folder is no package)

    with browsers.Chromium("--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream") as chromium:
        yield chromium


def frames(weir, name: str) -> int:
    return weir.stream(name)["received"]["videoFrames"]


def breaks(watch: hls.Watch) -> int:
    """Discontinuities of a playlist that only one epoch had. It shows no more than one at a time."""
    assert len({state.url for _, state in watch.states}) == 1, "one epoch"
    assert max(state.text.count("#EXT-X-DISCONTINUITY\n") for _, state in watch.states) == 1
    return watch.last.segments[-1].discontinuities


def test_a_publisher_that_was_killed_goes_on_with_a_new_offer(weir):
    """ffmpeg, ended without a word. The server has not missed it yet: whoever comes with the key takes the name over."""
    name, url = "killed", f"{weir.web}/whip/killed"
    killed = publishers.whip("h264-30", url, KEY, loop=-1)
    again = None
    try:
        started = weir.wait_state(name, "live", seconds=20)["startedAt"]
        watch = hls.Watch(f"{weir.web}/live/{name}/index.m3u8")
        time.sleep(5)
        killed.kill()
        time.sleep(0.5)
        before = frames(weir, name)
        assert weir.stream(name)["state"] == "live"
        again = publishers.whip("h264-30", url, KEY, loop=-1)
        weir.wait(lambda: frames(weir, name) >= before + 120, 15, "four seconds of the publisher that came back")
        stream = weir.stream(name)
        assert stream["state"] == "live" and stream["startedAt"] == started, stream
        assert stream["recording"]["state"] == "running", stream["recording"]
        # It ends its session by itself.
        again.interrupt()
        code, log = again.outcome(10)
        assert code in (0, 255), log
        weir.wait_state(name, "ended", seconds=5)
        time.sleep(0.7)
        watch.stop()
    finally:
        for publisher in (killed, again):
            if publisher and publisher.process.poll() is None:
                publisher.kill()
    nothing_wrong(hls.unexplained(watch.problems, weir.text(), name))
    assert watch.last.ended and breaks(watch) == 1, watch.last.text
    received = weir.stream(name)["received"]
    video = judge(weir.only_recording(name), 8)["video"]
    assert len(video) == received["videoFrames"] >= before + 120, (len(video), received)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_publisher_that_offers_again_goes_on_over_a_restart_of_the_server(supervise, how):
    """ffmpeg is started again by hand: it does not always end by itself when its peer has gone."""
    service = supervise("--webrtc", "127.0.0.1:0", "--target-duration", "2", "--publish-key", KEY)
    running = [publishers.whip("h264-30", f"{service.web}/whip/cam", KEY, loop=-1)]
    try:
        epoch = service.epoch("cam")
        watch = hls.Watch(f"{service.web}/live/cam/index.m3u8")
        time.sleep(5)
        last = watch.last.segments[-1].sequence
        service.process.send_signal(signal.SIGTERM if how == "stop" else signal.SIGKILL)
        service.wait_ready(2)
        running[0].kill()
        running.append(publishers.whip("h264-30", f"{service.web}/whip/cam", KEY, loop=-1))
        end = time.monotonic() + 20
        while watch.last.segments[-1].sequence < last + 4 and time.monotonic() < end:
            time.sleep(0.1)
        playlist = watch.stop().last
        assert service.epoch("cam") == epoch
        found = service.get("/api/v1/recordings").good().json["recordings"]
    finally:
        running[-1].kill()
    problems = [problem for problem in watch.problems if not re.search("Connection|RemoteDisconnected|closed", problem)]
    nothing_wrong(problems)
    assert playlist.segments[-1].sequence >= last + 4 and not playlist.ended, playlist.text
    # After a crash the number of one break is left out, as that of one segment is, for every protocol.
    assert breaks(watch) == (1 if how == "stop" else 2), playlist.text
    # What was recorded before is whole, and the stream is recorded on, in another file.
    assert sorted(recording["state"] for recording in found) == ["completed", "running"], found
    movies = sorted((service.folder / "recordings" / "cam").glob("*Z.mp4"))
    errors, _ = packets.decode(movies[0])
    assert not errors, errors
    assert len(packets.probe(movies[0])["video"]) >= 30 * 3


def test_a_publisher_whose_network_is_silent_is_lost_within_thirty_seconds_and_may_come_back(weir, chromium, record_property):
    """Chromium's camera. Its stream waits as the stream of any lost publisher does, and goes on with the next offer."""
    name = "silent"
    publish(chromium, weir, name, size=[640, 360])
    started = weir.stream(name)["startedAt"]
    watch = hls.Watch(f"{weir.web}/live/{name}/index.m3u8")
    time.sleep(4)
    weir.network.hole(60)
    cut = time.monotonic()
    try:
        time.sleep(10)
        assert weir.stream(name)["state"] == "live", "an outage of ten seconds loses nobody"
        weir.wait_state(name, "reconnecting", seconds=cut + 30 - time.monotonic())
        record_property("figure", f"WebRTC, a publisher whose network is silent is lost after {time.monotonic() - cut:.1f} s")
    finally:
        weir.network.hole(0)
    # Its session is over: the page that is still there cannot end what comes after it.
    assert chromium.evaluate("fetch(window.session, { method: 'DELETE' }).then((r) => r.status)") == 410
    chromium.evaluate("window.peer.close()")
    assert weir.stream(name)["state"] == "reconnecting"
    before = frames(weir, name)
    publish(chromium, weir, name, size=[640, 360])
    weir.wait(lambda: frames(weir, name) >= before + 90, 15, "three seconds of the publisher that came back")
    assert weir.stream(name)["startedAt"] == started
    finish(chromium)
    weir.wait_state(name, "ended", seconds=5)
    time.sleep(0.7)
    watch.stop()
    nothing_wrong(watch.problems)
    assert watch.last.ended and breaks(watch) == 1, watch.last.text
    for movie in recorded(weir, name):
        errors, _ = packets.decode(movie)
        assert not errors, (movie, errors)
    kept = sum(len(packets.probe(movie)["video"]) for movie in recorded(weir, name))
    assert kept == frames(weir, name), (kept, weir.stream(name)["received"])
