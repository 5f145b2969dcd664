"""HEVC by WebRTC in both directions (RFC 7798), with GStreamer's webrtcbin as publisher and as viewer."""

import json
import pathlib
import subprocess

import pytest

from harness import captioned, offers, packets, tools

PROGRAM = pathlib.Path(__file__).parent / "harness" / "webrtcbin.py"
KEY = "a-key-of-hevc"


class Peer:
    """A process with a peer of its own, which publishes or watches for so many seconds."""

    def __init__(self, weir, role: str, name: str, seconds: float):
        path = {"publish": "whip", "watch": "whep"}[role]
        self.seconds = seconds
        self.process = subprocess.Popen(
            [captioned.PYTHON, "-P", str(PROGRAM), role, f"{weir.web}/{path}/{name}", str(seconds), KEY],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self) -> dict:
        try:
            out, log = self.process.communicate(timeout=self.seconds + 50)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert self.process.returncode == 0, log
        return json.loads(out)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture(scope="module")
def weir(start_shared):
    return start_shared("--webrtc", ":0", "--publish-key", KEY, listeners=("http", "rtmp", "webrtc"))


@pytest.mark.encoder
def test_hevc_of_gstreamer_is_recorded_served_and_watched(weir):
    """Every frame that was encoded is in the recording, with its parameter sets in the sample entry alone; a viewer gets it as it is."""
    name, seconds = "hevc", 8
    publisher = Peer(weir, "publish", name, seconds)
    viewer = None
    try:
        weir.wait_state(name, "live", seconds=40)
        viewer = Peer(weir, "watch", name, 3)
        index = weir.wait(
            lambda: (found := weir.get(f"/live/{name}/index.m3u8")).status == 200 and found.text, 30, "a playlist")
        assert 'CODECS="hvc1.1.' in index, index
        watched, sent = viewer.result(), publisher.result()
    finally:
        publisher.kill()
        if viewer:
            viewer.kill()
    assert sent["status"] == 201 and "H265/90000" in sent["answer"] and "a=recvonly" in sent["answer"], sent
    assert sent["frames"] == seconds * 30 and not sent["errors"] and sent["ended"] == 200, sent
    assert watched["status"] == 201 and watched["replaced"] is None, watched
    assert "H265/90000" in watched["answer"] and "tx-mode=SRST" in watched["answer"], watched["answer"]
    # By the times of the frames themselves.
    assert watched["seconds"] >= 2.9 and watched["frames"] >= 0.9 * 30 * watched["seconds"] and watched["size"] == [640, 360], watched
    assert not watched["errors"] and watched["ended"] == 200, watched
    movie = weir.only_recording(name)
    shape = tools.output(
        tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "stream=codec_name,codec_tag_string,width,height",
        "-of", "csv=p=0", movie).decode().strip()
    assert shape == "hevc,hvc1,640,360", shape
    video = packets.probe(movie)["video"]
    times = [packet.dts for packet in video]
    assert len(video) == sent["frames"] and times == sorted(set(times)), (len(video), sent["frames"])
    assert video[0].is_key and sum(packet.is_key for packet in video) >= 3, [packet.is_key for packet in video]
    errors, frames = packets.decode(movie)
    assert not errors and frames == {"video": sent["frames"]}, (errors, frames)


@pytest.mark.encoder
def test_who_watches_by_h264_alone_is_told_of_what_takes_its_place(weir):
    """The offer has no H265: a worker makes H.264 of it."""
    publisher = Peer(weir, "publish", "other", 10)
    try:
        weir.wait_state("other", "live", seconds=40)
        answer = weir.get(
            "/whep/other", method="POST", headers={"Content-Type": "application/sdp"}, body=offers.offer("recvonly").encode())
        assert answer.status == 201 and "H264/90000" in answer.text, answer.text
        replaced = answer.headers["weir-replaced"]
        assert replaced.startswith("video;rung=360p;code=not-offered;") and "HEVC" in replaced, replaced
        assert weir.get(answer.headers["location"], method="DELETE").status == 200
        # How a publication of this peer ends is judged by the other test.
    finally:
        publisher.kill()
