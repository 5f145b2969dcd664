"""Closed captions within the video, shown by the page as cues of a text track. GStreamer puts them into the video. ffmpeg reads
those of CEA-608 in the same film; GStreamer's decoder finds those of CEA-708, whose times are those at which they were sent."""

import html
import re
import signal

import pytest

import watching
from harness import captioned, publishers, tools

#: The page plays from the beginning; the captions begin when it surely plays, and end before the film does.
SECONDS = 10
SUBTITLES = """1
00:00:03,500 --> 00:00:04,700
Hello <from> line 21

2
00:00:05,200 --> 00:00:06,500
Two rows & more
of them
"""
ROLLED = (captioned.ROLL_UP, captioned.RETURN)
KINDS = {
    "pop-on": lambda: captioned.pop_on(SUBTITLES, SECONDS),
    "roll-up": lambda: captioned.written(
        SECONDS, (3, ROLLED, "First row"), (4, ROLLED, "Second row"), (5, ROLLED, "Third row"), (6.5, (captioned.ERASE,), "")),
    "paint-on": lambda: captioned.written(
        SECONDS, (3, (captioned.PAINT_ON,), "slowly painted"), (5.5, (captioned.ERASE,), "")),
}
#: Captions of CEA-708: from when and until when they are on the screen, and their text. The second one is painted, in a window
#: of its own: one that is defined again keeps its letters.
DIGITAL = [(3.5, 4.7, "Caf\u00e9 \u201cone\u201d <b>\nrow & two"), (5.2, 6.5, "Painted \u266a")]


def digital(service: int = 1) -> list[bytes]:
    (on, off, text), (begin, end, painted) = DIGITAL
    return captioned.digital(
        SECONDS, (3, captioned.window(2) + captioned.letters(text)), (on, [captioned.DISPLAY, 1]), (off, [captioned.HIDE, 1]),
        (begin, [captioned.DELETE, 1] + captioned.window(1, True) + captioned.letters(painted)), (end, [captioned.DELETE, 1]), service=service)


CUES = """[...document.querySelector("#video").textTracks].filter((t) => t.kind === "captions").flatMap(
  (t) => [...t.cues].map((c) => [c.startTime, c.endTime, c.text]))"""


def read(film) -> list[tuple[float, str]]:
    """When each caption of a film goes, by ffmpeg, and its text as it stands then. Seconds from the first frame."""
    done = tools.run(
        tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", f"movie={film}[out0+subcc]", "-map", "0:1", "-f", "webvtt", "-")
    found = []
    for block in done.stdout.split("\n\n")[1:]:
        times, *rows = block.strip().split("\n")
        minutes, seconds = re.search(r"--> (\d+):([0-9.]+)", times).groups()
        found.append((60 * int(minutes) + float(seconds), "\n".join(html.unescape(row).strip() for row in rows)))
    return found


@pytest.fixture(scope="module")
def weir(start_shared):
    return start_shared("--no-record")


@pytest.mark.parametrize("kind, way", [
    ("pop-on", "mse"), pytest.param("pop-on", "hls", marks=pytest.mark.long), pytest.param("roll-up", "mse", marks=pytest.mark.long),
    ("paint-on", "hls")])
def test_the_page_shows_closed_captions(chromium, weir, tmp_path, kind, way):
    """The rules of each kind: Tests/WebTests/captions.test.mjs."""
    film = captioned.film(tmp_path / "captions.ts", KINDS[kind]())
    expected = read(film)
    assert expected
    cues = shown(chromium, weir, f"{kind}-{way}", film, way, "CC1", expected[-1][0] + 0.5)
    for end, text in expected:
        found = [cue for cue in cues if cue[2] == text]
        assert found, (text, cues)
        # ffmpeg shows a row that rolls up until the next one is there as a whole.
        late = 1.0 if kind == "roll-up" else 0.07
        assert min(abs(cue[1] - end) for cue in found) <= late, (end, text, cues)


@pytest.mark.parametrize("way", [pytest.param("mse", marks=pytest.mark.long), "hls"])
def test_the_page_shows_captions_of_cea_708(chromium, weir, tmp_path, way):
    """Service 1 alone; a film with service 2 offers none of it."""
    frames = digital()
    assert captioned.is_overlaid(frames) and not captioned.is_overlaid(digital(service=2))
    film = captioned.film(tmp_path / "captions.ts", frames, kind="708")
    cues = shown(chromium, weir, f"708-{way}", film, way, "Service 1", DIGITAL[-1][1] + 0.5)
    for begin, end, text in DIGITAL:
        found = [cue for cue in cues if cue[2] == text]
        assert len(found) == 1, (text, cues)
        # Painted letters stand there a step later.
        assert abs(found[0][0] - begin) <= (0.07 if begin == DIGITAL[0][0] else 0.4) and abs(found[0][1] - end) <= 0.07, cues


#: Counts how many cues are on the screen at once.
COUNT = """(() => {
  const [track] = document.querySelector("#video").textTracks;
  window.most = 0;
  track.addEventListener("cuechange", () => { window.most = Math.max(window.most, track.activeCues.length); });
})()"""


def shown(chromium, weir, name: str, film, way: str, label: str, until: float) -> list[tuple[float, float, str]]:
    """The cues that the page has after so many seconds of the film. It waits for the stream before it begins."""
    chromium.open(f"{weir.web}/watch/{name}?player={way}")
    watching.wait_phase(chromium, "notStarted")
    size = film.stat().st_size
    sender = publishers.Publisher(
        ["curl", "-sS", "-T", str(film), "--limit-rate", str(size // SECONDS), f"{weir.web}/live/{name}/ingest"])
    plays = "document.querySelector('#stage').dataset.phase === 'playing'"

    def frames() -> int:
        return (weir.stream(name) or {"received": {"videoFrames": 0}})["received"]["videoFrames"]

    try:
        # On a machine that is busy the film stands still in front of its captions until the page plays.
        weir.wait(lambda: frames() >= 75 or chromium.evaluate(plays), 40, "a page that plays, or what is in front of the captions")
        if not chromium.evaluate(plays):
            sender.process.send_signal(signal.SIGSTOP)
        try:
            watching.wait_phase(chromium, "playing")
        finally:
            sender.process.send_signal(signal.SIGCONT)
        chromium.wait("!document.querySelector('#captions').hidden", 20)
        assert chromium.evaluate("[...document.querySelector('#captions').options].map((o) => o.text)") == ["No captions", label]
        chromium.press("c", "KeyC")
        chromium.wait("document.querySelector('#video').textTracks[0].mode === 'showing'")
        chromium.evaluate(COUNT)
        chromium.wait(f"document.querySelector('#video').currentTime > {until}", 30)
        # They are on the screen at their times, one after another.
        assert chromium.evaluate("window.most") == 1
        cues = [(start, end, html.unescape(text)) for start, end, text in chromium.evaluate(CUES)]
    finally:
        sender.kill()
        watching.leave(chromium)
    assert all(start < end for start, end, _ in cues) and len(cues) < 60
    assert all(one[1] <= other[0] + 1e-6 for one, other in zip(cues, cues[1:])), cues
    return cues
