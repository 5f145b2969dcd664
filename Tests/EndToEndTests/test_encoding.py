"""Media that weir encodes itself, by HLS, DASH and stream.mp4: no frame is lost, repeated or out of order; audio is in sync."""

import array
import concurrent.futures
import re
import subprocess

import pytest

from harness import pattern, tokens, tools

SECONDS = 5
OUTPUTS = {"hls": "index.m3u8", "progressive": "stream.mp4", "dash": "manifest.mpd"}
#: Frames are analysed in this size. A unit of the test pattern's grid is 4 pixels then.
WIDTH, HEIGHT, UNIT = 320, 180, 4


class Film:
    """Decoded video and audio of a file of the test pattern."""

    def __init__(self, path):
        self.path = path
        self.frame_times = self.times("v")
        self.numbers, self.flashing = self.frames()
        self.audio_start = self.times("a")[0]
        self.samples = array.array("h", tools.output(
            tools.FFMPEG, "-v", "error", "-i", path, "-vn", "-ac", "1", "-f", "s16le", "-"))

    def times(self, kind: str) -> list[float]:
        probed = tools.run(tools.FFPROBE, "-v", "error", "-select_streams", kind, "-show_entries", "frame=pts_time", "-of",
                           "csv=p=0", self.path)
        return [float(line.split(",")[0]) for line in probed.stdout.split()]

    def frames(self) -> tuple[list[int], list[bool]]:
        decoded = tools.output(
            tools.FFMPEG, "-v", "error", "-i", self.path, "-an", "-vf", f"scale={WIDTH}:{HEIGHT},format=gray", "-vsync",
            "passthrough", "-f", "rawvideo", "-")
        size = WIDTH * HEIGHT
        frames = [decoded[at:at + size] for at in range(0, len(decoded), size)]
        return [counter(frame) for frame in frames], [frame[15 * UNIT * WIDTH + 40 * UNIT] > 128 for frame in frames]

    def flashes(self) -> list[float]:
        """Start of each flash; not where the frame before it is missing."""
        numbers, flashing = self.numbers, self.flashing
        return [self.frame_times[at] for at in range(1, len(numbers))
                if flashing[at] and not flashing[at - 1] and numbers[at] == numbers[at - 1] + 1]

    def beeps(self) -> list[float]:
        return [self.audio_start + at / 48000 for at in pattern.beeps(self.samples)]

    def apart(self, least: int = 2) -> float:
        """Largest distance in seconds between a flash and its beep. There must be at least this many."""
        flashes, beeps = self.flashes(), self.beeps()
        pairs = [(flash, beep) for flash in flashes for beep in beeps if abs(flash - beep) < 0.3]
        assert len(pairs) >= least, f"flashes at {flashes}, beeps at {beeps}"
        return max(abs(flash - beep) for flash, beep in pairs)


class Copy(Film):
    """Some seconds of one output, captured without decoding."""

    def __init__(self, url: str, path, choice: tuple[str, ...] = ()):
        """`choice`: which stream of the address, in ffmpeg's syntax."""
        tools.run(tools.FFMPEG, "-v", "error", "-nostdin", "-y", "-t", SECONDS, "-i", url, *choice, "-c", "copy", path,
                  timeout=40)
        super().__init__(path)


def counter(frame: bytes) -> int:
    """The number in a frame: 32 squares of two units, white is 1 (Sources/Ingest/Local/TestPattern/CounterBlock.swift)."""
    number = 0
    for square in range(32):
        x, y = (8 + 2 * square + 1) * UNIT, 2 * UNIT
        number = number << 1 | (frame[y * WIDTH + x] > 128)
    return number


@pytest.fixture(scope="module")
def encoding():
    """The token of encoders, for as long as a server encodes 720p."""
    with tokens.token("encoder"):
        yield


@pytest.fixture(scope="module")
def copies(encoding, start_shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    weir = start_shared("--test-pattern", "demo", "--no-record")
    weir.wait_state("demo", "live")
    weir.wait(lambda: weir.get("/live/demo/index.m3u8").status == 200, 30, "a playlist", every=0.1)

    def copy(kind):
        if kind == "dash":
            # If one segment is listed, ffmpeg fetches the next one, and then the same one again (docs/playback.md).
            weir.wait(lambda: weir.stream("demo")["received"]["videoFrames"] > 150, 30, "a stream of three segments", every=0.1)
        return Copy(f"{weir.web}/live/demo/{OUTPUTS[kind]}", folder / f"{kind}.mp4")

    with concurrent.futures.ThreadPoolExecutor(len(OUTPUTS)) as pool:
        made = pool.map(copy, OUTPUTS)
        found = re.search(r'availabilityStartTime="([^"]+)"', weir.get("/live/demo/manifest.mpd").text)
        return dict(zip(OUTPUTS, made)), weir.stream("demo")["capture"]["video"], found.group(1)


@pytest.mark.parametrize("output", OUTPUTS)
def test_no_frame_is_lost_doubled_or_out_of_order(copies, output):
    copy, video = copies[0][output], copies[1]
    assert len(copy.numbers) == len(copy.frame_times) >= 30 * SECONDS - 75, f"{len(copy.numbers)} frames"
    steps = [b - a for a, b in zip(copy.numbers, copy.numbers[1:])]
    assert min(steps) == 1, "a frame twice, or out of order"
    # A machine that is too busy drops frames before the encoder, and reports how many.
    assert sum(steps) - len(steps) <= video["dropped"], f"{sum(steps) - len(steps)} lost, {video['dropped']} left out"
    assert video["encoded"] > len(copy.numbers) and video["encodeMicroseconds"] > 0
    for number, time in zip(copy.numbers, copy.frame_times):
        expected = copy.frame_times[0] + (number - copy.numbers[0]) / 30
        assert abs(time - expected) < 0.002, f"frame {number} at {time}"


@pytest.mark.parametrize("output", OUTPUTS)
def test_flash_and_beep_come_together(copies, output, record_property):
    worst = copies[0][output].apart()
    record_property("figure", f"{output}: flash and beep at most {worst * 1000:.1f} ms apart")
    assert worst <= 0.020


def test_frames_are_nearly_what_was_drawn(copies, record_property):
    copy, drawn_since = copies[0]["hls"], copies[2]
    first, count = copy.numbers[0], copy.numbers[-1] - copy.numbers[0] + 1
    with subprocess.Popen([tools.weir_binary(), "pattern", "--start", drawn_since, "--first", str(first), "--count", str(count)],
                          stdout=subprocess.PIPE) as drawn:
        # Half a frame later, so that each is compared with the frame of its own time, however times are rounded.
        judged = subprocess.run(
            [tools.FFMPEG, "-v", "info", "-nostdin", "-i", str(copy.path), "-i", "-", "-lavfi",
             "[0:v]setpts=PTS-STARTPTS+0.5/30/TB[a];[1:v]setpts=PTS-STARTPTS[b];[a][b]psnr", "-f", "null", "-"],
            stdin=drawn.stdout, stderr=subprocess.PIPE, timeout=60)
    decibels = dict(re.findall(r"(average|min|y):([\d.]+)", judged.stderr.decode().rsplit("PSNR", 1)[-1]))
    record_property("figure", f"PSNR {decibels['average']} dB, the worst frame {decibels['min']}")
    assert float(decibels["average"]) >= 38 and float(decibels["y"]) >= 38, decibels
