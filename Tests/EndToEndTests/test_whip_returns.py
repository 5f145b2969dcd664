"""Publishers by WebRTC that come back: killed, over a restart of the server, and after a network that was silent. As for every
other protocol (test_faults.py, test_restart.py) the epoch goes on, with one discontinuity, and the recording goes on, too."""

import itertools
import re
import signal
import threading
import time

import browsers
import pytest

from harness import hls, nothing_wrong, packets, publishers, relay
from harness.programs import free_port
from test_whip import finish, frames, judge, more, publish, recorded
from test_whip_frames import KEY, Publisher


def narrow(start):
    """A server whose media go through a relay, which may be cut."""
    port = free_port()
    network = relay.Relay(port)
    weir = start(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}", "--target-duration", "2",
        "--publish-key", KEY, listeners=("http", "rtmp", "webrtc"))
    weir.key, weir.network = KEY, network
    return weir


@pytest.fixture(scope="module")
def weir(start_shared):
    weir = narrow(start_shared)
    yield weir
    weir.network.stop()


@pytest.fixture(scope="module")
def chromium():
    with browsers.Chromium("--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream") as chromium:
        yield chromium


def breaks(watch: hls.Watch) -> int:
    """Discontinuities of a playlist that only one epoch had. It shows no more than one at a time."""
    assert len({state.url for _, state in watch.states}) == 1, "one epoch"
    assert max(state.text.count("#EXT-X-DISCONTINUITY\n") for _, state in watch.states) == 1
    return watch.last.segments[-1].discontinuities


class Silent:
    """A publisher whose network becomes silent while it publishes, and that comes back once the server has missed it, beside other
    tests. `states`: of its stream, ten seconds after the cut, when it was missed, and when the former session was ended by who had
    begun it."""

    def __init__(self, weir, name: str):
        self.weir, self.name, self.states = weir, name, []
        self.error: BaseException | None = None
        publisher = self._publish()
        self.before = weir.wait_state(name, "live", seconds=40)
        self.watch = hls.Watch(f"{weir.web}/live/{name}/index.m3u8")
        more(weir, name, 100)
        weir.network.hole(600)
        self.cut, self.missed = time.monotonic(), 0.0
        self.thread = threading.Thread(target=self._run, args=(publisher,))
        self.thread.start()

    def _publish(self) -> Publisher:
        plan = ((number * 3000, (320, 180)) for number in itertools.count())
        return Publisher(self.weir, self.name, plan)

    def _run(self, publisher: Publisher) -> None:
        try:
            time.sleep(10)  # real time: the outage that is judged
            self.states.append(self.weir.stream(self.name)["state"])
            self.weir.wait_state(self.name, "reconnecting", "ended", seconds=60)
            self.missed = time.monotonic()
            self.states.append(self.weir.stream(self.name)["state"])
            # Its session is over: who was there before cannot end what comes after it.
            publisher.stop(status=410)
            self.states.append(self.weir.stream(self.name)["state"])
            before = frames(self.weir, self.name)
            self.weir.network.hole(0)
            publisher = self._publish()
            self.weir.wait(lambda: frames(self.weir, self.name) >= before + 90, 40, "three seconds of the publisher that came back")
            self.after = self.weir.stream(self.name)
            publisher.stop()
            self.weir.wait_state(self.name, "ended")
            # It is told of for a minute.
            self.received = frames(self.weir, self.name)
            self.weir.wait(lambda: self.watch.last and self.watch.last.ended, 15, "the playlist has ended")
        except BaseException as error:  # noqa: BLE001  (told by `wait`)
            self.error = error
        finally:
            self.watch.stop()

    def wait(self) -> None:
        self.thread.join(150)
        assert not self.thread.is_alive()
        if self.error:
            raise self.error


@pytest.fixture(scope="module")
def silent(start_shared):
    weir = narrow(start_shared)
    made = Silent(weir, "silent")
    yield made
    made.thread.join(150)
    weir.network.stop()


def test_a_publisher_whose_network_will_be_silent_is_live(silent):
    """Its network is cut at the beginning of this file, and what became of it is judged at its end."""
    assert silent.weir.stream(silent.name)["recording"]["state"] == "running", silent.weir.stream(silent.name)


def test_a_publisher_that_was_killed_goes_on_with_a_new_offer(weir):
    """ffmpeg, ended without a word. The server has not missed it yet: whoever comes with the key takes the name over."""
    name, url = "killed", f"{weir.web}/whip/killed"
    killed = publishers.whip("h264-30", url, KEY, loop=-1)
    again = None
    try:
        started = weir.wait_state(name, "live", seconds=40)["startedAt"]
        watch = hls.Watch(f"{weir.web}/live/{name}/index.m3u8")
        more(weir, name, 90)
        killed.kill()
        time.sleep(0.5)
        before = frames(weir, name)
        assert weir.stream(name)["state"] == "live"
        again = publishers.whip("h264-30", url, KEY, loop=-1)
        more(weir, name, 90)
        stream = weir.stream(name)
        assert stream["state"] == "live" and stream["startedAt"] == started, stream
        assert stream["recording"]["state"] == "running", stream["recording"]
        # It ends its session by itself.
        again.interrupt()
        code, log = again.outcome(30)
        assert code in (0, 255), log
        weir.wait_state(name, "ended")
        weir.wait(lambda: watch.last and watch.last.ended, 15, "the playlist has ended")
        watch.stop()
    finally:
        for publisher in (killed, again):
            if publisher and publisher.process.poll() is None:
                publisher.kill()
    nothing_wrong(hls.unexplained(watch.problems, weir.text(), name))
    assert watch.last.ended and breaks(watch) == 1, watch.last.text
    received = weir.stream(name)["received"]
    video = judge(weir.only_recording(name), 5.5)["video"]
    assert len(video) == received["videoFrames"] >= before + 90, (len(video), received)


def grows(watch: hls.Watch, sequence: int) -> int:
    """Waits until a playlist has a segment, and returns the number of its newest one."""
    end = time.monotonic() + 40
    while not watch.states or not watch.last.segments or watch.last.segments[-1].sequence < sequence:
        assert time.monotonic() < end, f"no segment {sequence}"
        time.sleep(0.1)
    return watch.last.segments[-1].sequence


@pytest.fixture
def watched(supervise):
    """A service that a publisher sends to by WHIP, by ffmpeg; its epoch, a watch of its playlist, and the number of its newest
    segment. Whoever publishes last is ended."""
    service = supervise("--webrtc", "127.0.0.1:0", "--target-duration", "2", "--publish-key", KEY)
    running = [publishers.whip("h264-30", f"{service.web}/whip/cam", KEY, loop=-1)]
    try:
        epoch = service.epoch("cam")
        watch = hls.Watch(f"{service.web}/live/cam/index.m3u8")
        yield service, running, epoch, watch, grows(watch, 3)
    finally:
        if running[-1].process.poll() is None:
            running[-1].kill()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_publisher_that_offers_again_goes_on_over_a_restart_of_the_server(watched, how):
    """ffmpeg is started again by hand: it does not always end by itself when its peer has gone."""
    service, running, epoch, watch, last = watched
    service.process.send_signal(signal.SIGTERM if how == "stop" else signal.SIGKILL)
    service.wait_ready(2)
    running[0].kill()
    running.append(publishers.whip("h264-30", f"{service.web}/whip/cam", KEY, loop=-1))
    grows(watch, last + 3)
    playlist = watch.stop().last
    assert service.epoch("cam") == epoch
    # What was recorded before is whole, and the stream is recorded on, in another file.
    service.wait(
        lambda: sorted(recording["state"] for recording in service.get("/api/v1/recordings").good().json["recordings"])
        == ["completed", "running"], 20, "one recording that is over, and one that runs")
    running[-1].kill()
    problems = [problem for problem in watch.problems if not re.search("Connection|RemoteDisconnected|closed|IncompleteRead", problem)]
    nothing_wrong(hls.unexplained(problems, (service.folder / "log").read_text(errors="replace"), "cam"))
    assert playlist.segments[-1].sequence >= last + 3 and not playlist.ended, playlist.text
    # After a crash the number of one break is left out, as that of one segment is, for every protocol.
    assert breaks(watch) == (1 if how == "stop" else 2), playlist.text
    movies = sorted((service.folder / "recordings" / "cam").glob("*Z.mp4"))
    errors, _ = packets.decode(movies[0])
    assert not errors, errors
    assert len(packets.probe(movies[0])["video"]) >= 30 * 3


@pytest.mark.long
def test_chromium_whose_network_is_silent_is_lost_within_thirty_seconds_and_may_come_back(weir, chromium, record_property):
    """Chromium's camera. Its stream waits as the stream of any lost publisher does, and goes on with the next offer."""
    name = "chromium"
    publish(chromium, weir, name, size=[640, 360])
    started = weir.stream(name)["startedAt"]
    watch = hls.Watch(f"{weir.web}/live/{name}/index.m3u8")
    more(weir, name, 100)
    weir.network.hole(60)
    cut = time.monotonic()
    try:
        time.sleep(10)  # real time: the outage that is judged
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
    weir.wait(lambda: frames(weir, name) >= before + 90, 40, "three seconds of the publisher that came back")
    assert weir.stream(name)["startedAt"] == started
    finish(chromium)
    weir.wait_state(name, "ended")
    received = frames(weir, name)
    weir.wait(lambda: watch.last and watch.last.ended, 15, "the playlist has ended")
    watch.stop()
    nothing_wrong(hls.unexplained(watch.problems, weir.text(), name))
    assert watch.last.ended and breaks(watch) == 1, watch.last.text
    for movie in recorded(weir, name):
        errors, _ = packets.decode(movie)
        assert not errors, (movie, errors)
    kept = sum(len(packets.probe(movie)["video"]) for movie in recorded(weir, name))
    assert kept == received, (kept, received)


def test_a_publisher_whose_network_was_silent_is_lost_within_thirty_seconds_and_may_come_back(silent, record_property):
    """Its stream waits as the stream of any lost publisher does, and goes on with the next offer. An outage of ten seconds loses
    nobody."""
    weir, name = silent.weir, silent.name
    silent.wait()
    record_property("figure", f"WebRTC, a publisher whose network is silent is lost after {silent.missed - silent.cut:.1f} s")
    assert silent.states == ["live", "reconnecting", "reconnecting"], silent.states
    assert silent.missed - silent.cut <= 30, silent.missed - silent.cut
    assert silent.after["startedAt"] == silent.before["startedAt"]
    nothing_wrong(hls.unexplained(silent.watch.problems, weir.text(), name))
    assert silent.watch.last.ended and breaks(silent.watch) == 1, silent.watch.last.text
    for movie in recorded(weir, name):
        errors, _ = packets.decode(movie)
        assert not errors, (movie, errors)
    kept = sum(len(packets.probe(movie)["video"]) for movie in recorded(weir, name))
    assert kept == silent.received, (kept, silent.received)
