"""A server without publishers and viewers hardly wakes, and is awake at once when something begins."""

import contextlib
import pathlib
import time

import pytest

from harness import flv, sources
from harness.rawrtmp import RawRTMP

#: Seconds after the last connection in which the server still looks twice a second, and a little more.
QUIET = 9
#: Seconds that are counted. Two looks a second are 18 wakes a second; one look every ten seconds wakes a dozen threads.
COUNTED = 4


def wakes(pid: int) -> int:
    """How often the process's threads have gone to sleep so far."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            status = (task / "status").read_text()
            total += int(status.split("voluntary_ctxt_switches:", 1)[1].split()[0])
    return total


@pytest.fixture(scope="module")
def idle(start_shared, tmp_path_factory):
    """A server that nobody has called for a while."""
    weir = start_shared("--state", tmp_path_factory.mktemp("idle") / "state", "--reconnect-window", "1s", "--srt", "127.0.0.1:0",
                        listeners=("http", "rtmp", "srt"))
    time.sleep(QUIET)  # real time: the server's own clock
    return weir


def test_an_idle_server_hardly_wakes(idle):
    weir = idle
    before, began = wakes(weir.process.pid), time.monotonic()
    time.sleep(COUNTED)  # real time: wakes are counted by the second
    counted, seconds = wakes(weir.process.pid) - before, time.monotonic() - began
    assert counted <= 6 * seconds, f"{counted} wakes in {seconds:.1f} s"


def test_an_idle_server_is_awake_at_once(idle):
    weir = idle
    # libsrt looks for work a hundred times a second, so it is not there before somebody calls.
    assert not any(b"srt-worker" in line for line in weir.children().values())
    # Of this stream nobody asks: only the server's own looks end it.
    client = RawRTMP(weir.rtmp).start("cam")
    client.play_out(flv.read(sources.flv("short")), speed=10, until=2)
    began = time.monotonic()  # before the server can see it
    client.reset()
    weir.wait(lambda: "did not return in time" in weir.text("err"), 20, "the end of the stream")
    assert time.monotonic() - began >= 0.5
    weir.wait_state("cam", "ended")
