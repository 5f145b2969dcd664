"""What the home page of very many streams costs the browser and the server. Not part of `make test`: `make many-streams`."""

import os
import subprocess
import time

import pytest

import browsers
from harness import tools

STREAMS = int(os.environ.get("WEIR_MANY_STREAMS", 0))
pytestmark = pytest.mark.skipif(STREAMS == 0, reason="skipped: it needs quiet minutes (make many-streams)")

KEY = "many"
#: Outputs of one process of ffmpeg.
PER_PUBLISHER = 50
SECONDS = 60
#: Most of one core.
BROWSER = 0.02
SERVER = 0.05
TICKS = os.sysconf("SC_CLK_TCK")


def stat(process: int) -> list[str]:
    with open(f"/proc/{process}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def server_seconds(process: int) -> float:
    """Of processor time, with that of workers that have ended."""
    return sum(map(int, stat(process)[11:15])) / TICKS


def browser_seconds(process: int) -> float:
    """Of processor time, of all processes of a browser."""
    parents: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents.setdefault(int(stat(int(name))[1]), []).append(int(name))
        except OSError:
            continue
    total, waiting = 0, [process]
    while waiting:
        one = waiting.pop()
        waiting += parents.get(one, [])
        try:
            total += sum(map(int, stat(one)[11:13]))
        except OSError:
            continue
    return total / TICKS


@pytest.fixture
def crowd(start, tmp_path):
    """A server with that many live streams of 64×36 at one frame a second."""
    film = tmp_path / "small.flv"
    subprocess.run([tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x36:rate=1", "-t", "60", "-c:v", "libx264",
                    "-g", "2", "-pix_fmt", "yuv420p", film], check=True)
    weir = start("--no-record", "--publish-key", KEY)
    running = []
    try:
        for first in range(0, STREAMS, PER_PUBLISHER):
            outputs = [word for n in range(first, min(STREAMS, first + PER_PUBLISHER))
                       for word in ("-c", "copy", "-f", "flv", f"{weir.rtmp}/live/s{n:03}?key={KEY}")]
            command = [tools.FFMPEG, "-v", "quiet", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(film), *outputs]
            running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        weir.wait(lambda: sum(s["state"] == "live" for s in weir.json("/api/v1/streams")["streams"]) == STREAMS, 120, "all are live", every=2)
        yield weir
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def test_the_page_of_very_many_streams_costs_little(crowd):
    server = crowd.process.pid
    time.sleep(10)  # real time: what the start costs is not counted
    before = server_seconds(server)
    time.sleep(SECONDS)  # real time: processor time is measured over it
    alone = (server_seconds(server) - before) / SECONDS
    with browsers.chromium() as page:
        page.viewport(1280, 900)
        page.open(f"{crowd.web}/")
        page.wait("[...document.querySelectorAll('#streams canvas')].filter((c) => !c.hidden).length >= 12", 60)
        own, before = browser_seconds(page._process.pid), server_seconds(server)
        time.sleep(SECONDS)  # real time: likewise
        browser = (browser_seconds(page._process.pid) - own) / SECONDS
        beside = (server_seconds(server) - before) / SECONDS
        pictures = page.evaluate("performance.getEntriesByType('resource').filter((e) => e.name.endsWith('.jpg')).length")
        # A machine that is busy with other work may not make a picture in time.
        assert [e for e in page.errors if "thumbnail.jpg" not in e] == []
    print(f"{STREAMS} streams: browser {browser:.2%} of a core; server {alone:.1%} without the page, {beside:.1%} with it; {pictures} pictures")
    assert browser <= BROWSER
    assert beside - alone <= SERVER
