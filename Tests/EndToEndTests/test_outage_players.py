"""Third-party players during an outage of the publisher: they continue when it returns."""

import subprocess
import threading
import time
import urllib.parse

import pytest

from harness import dash, hls, http, publishers, scripts, tools
from harness.rawrtmp import RawRTMP

WIDTH, HEIGHT = 32, 18
FRAME = WIDTH * HEIGHT


def encoder(weir) -> publishers.Publisher:
    """Publishes until it is killed."""
    return publishers.Publisher([
        tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=30", "-re", "-f", "lavfi",
        "-i", "sine=frequency=440:sample_rate=48000", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g",
        "60", "-pix_fmt", "yuv420p", "-c:a", "aac", "-f", "flv", f"{weir.rtmp}/live/cam"])


class GStreamer:
    """Counts the shown frames, with their times."""

    def __init__(self, url: str):
        self.shown: list[float] = []
        self.process = subprocess.Popen(
            [tools.GSTREAMER, "-q", "playbin3", f"uri={url}", "audio-sink=fakesink sync=true",
             f"video-sink=videoconvert ! videoscale ! video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT} ! fdsink sync=true"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while len(self.process.stdout.read(FRAME)) == FRAME:
            self.shown.append(time.monotonic())

    def close(self) -> str:
        self.process.kill()
        return self.process.communicate()[1].decode(errors="replace")


def path(address: str) -> str:
    return urllib.parse.urlsplit(address).path


def boxes(data: bytes) -> list[bytes]:
    types = []
    while data:
        types.append(data[4:8])
        data = data[max(8, int.from_bytes(data[:4], "big")):]
    return types


def test_what_a_manifest_leads_to_in_an_outage_is_waited_for(start):
    """The last segment is shorter than it was announced. libavformat asks for what follows as fast as it is answered."""
    weir = start("--segment-duration", "1s", "--no-record")
    client = RawRTMP(weir.rtmp).start("cam")
    client.play_out(scripts.tags_of("loop"), speed=2, until=2.65)
    client.reset()
    weir.wait_state("cam", "reconnecting")
    url = f"{weir.web}/live/cam/manifest.mpd"
    manifest = dash.parse(http.fetch(url).good().text, url)
    assert sorted(r.kind for r in manifest.representations) == ["audio", "video"]
    for r in manifest.representations:
        last = r.entries[-1]
        following = last.url.removesuffix(f"{last.time}.m4s") + f"{last.time + last.duration}.m4s"
        assert following != last.url
        with pytest.raises(TimeoutError):
            http.fetch(following, timeout=1)


@pytest.mark.long
@pytest.mark.encoder
def test_gstreamer_goes_on_behind_an_outage(start):
    """hlsdemux2 requests gaps. It gives up if a response has no time, and crashes on an empty mdat."""
    weir = start("--window", "20s", "--no-record")
    publisher = encoder(weir)
    try:
        weir.wait_state("cam", "live")
        time.sleep(8)  # real time: the player plays, is held up, and plays on
        player = GStreamer(f"{weir.web}/live/cam/index.m3u8")
        time.sleep(6)  # real time: the player plays, is held up, and plays on
        publisher.kill()
        time.sleep(4)  # real time: the player plays, is held up, and plays on
        publisher = encoder(weir)
        weir.wait_state("cam", "live")
        back = time.monotonic()
        time.sleep(4)  # real time: the player plays, is held up, and plays on
        master = f"{weir.web}/live/cam/index.m3u8"
        variant = hls.parse_multivariant(weir.get("/live/cam/index.m3u8").good().text, master).variants[0]
        address = urllib.parse.urljoin(master, variant.uri)
        media = hls.parse_media(weir.get(path(address)).good().text, address)
        gaps = [media.absolute(segment.uri) for segment in media.segments if segment.gap]
        assert gaps, "the outage is listed"
        assert all(boxes(weir.get(path(gap)).good().body) == [b"styp", b"moof"] for gap in gaps)
        time.sleep(12)  # real time: the player plays, is held up, and plays on
        said = player.close()
        # Two target durations, plus the length of the outage.
        assert len([at for at in player.shown if at > back + 8]) > 100, said
    finally:
        publisher.kill()
