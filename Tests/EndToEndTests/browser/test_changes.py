"""Changes within a connection, and publishers that send at once: the page's own player and Chromium's go on. All six streams are
published at the same time, and each has both players in one page. `make players` has more players and longer films."""

import concurrent.futures
import dataclasses
import itertools
import time

import pytest

from harness import flv, nothing_wrong, scripts
from harness.rawrtmp import RawRTMP
from test_bursts import publish
from test_tracks import over_and_over

#: How far behind its beginning a stream is opened: there is something to begin with.
AFTER = 3.0
PLAYERS = ("page", "chromium")

#: From here on `shown` has, for each player, the media time of each frame on the screen; `told` has the picture's size, the bytes of
#: audio and the error when it is read.
BEGIN = """(names) => {
  window.shown = {};
  window.players = {};
  for (const [key, source] of names) {
    const isPage = key.endsWith("page");
    const element = document.createElement(isPage ? "weir-player" : "video");
    element.muted = true;
    if (isPage) {
      element.setAttribute("engine", "mse");
      element.setAttribute("autoplay", "");
      element.setAttribute("muted", "");
    } else {
      element.autoplay = true;
      element.width = 160;
    }
    element.setAttribute("src", source);
    document.body.append(element);
    window.players[key] = element;
    window.shown[key] = [];
    const follow = () => {
      const video = isPage ? element.video : element;
      if (!video) return void setTimeout(follow, 20);
      const note = (_, { mediaTime }) => {
        window.shown[key].push(mediaTime);
        video.requestVideoFrameCallback(note);
      };
      video.requestVideoFrameCallback(note);
    };
    follow();
  }
}"""
TOLD = """Object.fromEntries(Object.entries(window.players).map(([key, element]) => {
  const video = element.video ?? element;
  return [key, { width: video.videoWidth, audio: video.webkitAudioDecodedByteCount, error: video.error?.message ?? null,
    phase: element.phase ?? null, shown: window.shown[key] }];
}))"""


@dataclasses.dataclass
class Case:
    """`publish(weir, name)`. `seconds`: of media behind the moment when the players open. `width`: of the last picture."""

    publish: object
    seconds: float
    width: int = 320


def change_both(weir, name):
    """Another size and mono in place of stereo, on one connection."""
    first, then = over_and_over("short", 2), over_and_over("small-mono", 2)
    end = max(tag.milliseconds for tag in first if tag.type == flv.VIDEO) + 33
    scripts.whole(weir.rtmp, name, first + flv.shifted(then, end))


def change_audio(weir, name):
    """Mono in place of stereo, in the middle of a group of pictures."""
    film, mono = over_and_over("short", 4), flv.only(over_and_over("small-mono", 2), flv.AUDIO)
    stereo = [tag for tag in film if tag.type != flv.AUDIO or tag.milliseconds < 8600]
    scripts.whole(weir.rtmp, name, sorted(stereo + flv.shifted(mono, 8600), key=lambda tag: tag.milliseconds))


def late_audio(weir, name):
    """Audio begins two seconds behind the video."""
    film = flv.only(over_and_over("short", 4), flv.VIDEO, flv.AUDIO)
    header = next(tag for tag in film if tag.type == flv.AUDIO and tag.is_header)
    late = [tag for tag in film if tag.type == flv.VIDEO or tag.milliseconds >= 2000 and not tag.is_header]
    scripts.whole(weir.rtmp, name, sorted([*late, dataclasses.replace(header, milliseconds=2000)], key=lambda tag: tag.milliseconds))


def returns(burst):
    def run(weir, name):
        """The connection is lost, and the publisher returns."""
        publish(weir, name, 0, 6, ends=False)
        time.sleep(4)  # real time: it is away for so long
        publish(weir, name, burst, 6, ends=True)
    return run


CASES = {
    "change-both": Case(change_both, 16 - AFTER, width=256),
    "change-audio": Case(change_audio, 16 - AFTER),
    "late-audio": Case(late_audio, 16 - AFTER),
    "outage": Case(returns(0), 12 - AFTER),
    "return-burst": Case(returns(4.2), 16 - AFTER),
    "burst-10": Case(lambda weir, name: publish(weir, name, 10, 12, ends=True), 12 - AFTER),
}


@pytest.fixture(scope="module")
def watched(start_shared, chromium):
    """What each player told at the end of its stream, by case and player; and what it had told of audio two seconds before."""
    weir = start_shared("--no-record", "--target-duration", "2", "--segment-duration", "1s")
    names = [[f"{case} {player}", f"{weir.web}/watch/{case}" if player == "page" else f"{weir.web}/live/{case}/index.m3u8"]
             for case in CASES for player in PLAYERS]
    chromium.open(f"{weir.web}/")
    chromium.evaluate(f"import('{weir.web}/web/weir-player.js').then(() => document.body.replaceChildren())")
    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        began = time.monotonic()
        jobs = {name: pool.submit(case.publish, weir, name) for name, case in CASES.items()}
        for name in CASES:
            weir.wait(lambda name=name: weir.get(f"/live/{name}/index.m3u8").status == 200, 15, f"{name} has a playlist")
        time.sleep(max(0.0, began + AFTER - time.monotonic()))
        chromium.evaluate(f"({BEGIN})({names!r})")
        concurrent.futures.wait(jobs.values(), 12 - AFTER)
        before = chromium.evaluate(TOLD)
        concurrent.futures.wait(jobs.values(), 30)
        errors = {name: job.exception(1) for name, job in jobs.items()}
    nothing_wrong([f"{name}: {error!r}" for name, error in errors.items() if error])
    chromium.wait("Object.values(window.players).every((one) => one.phase === 'ended' || one.ended || one.error)", 20,
                  "each player comes to the end")
    after = chromium.evaluate(TOLD)
    chromium.open("about:blank")
    return before, after


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", CASES)
def test_a_player_goes_on(watched, record_property, name, player):
    before, after = (told[f"{name} {player}"] for told in watched)
    case, shown = CASES[name], after["shown"]
    assert after["error"] is None
    steps = [b - a for a, b in itertools.pairwise(shown)]
    record_property("figure", f"{name}, {player}: {len(shown)} frames in {shown[-1] - shown[0]:.2f} s of media, longest step "
                              f"{max(steps):.2f} s")
    assert after["width"] == case.width
    assert min(steps) >= 0, f"shown twice: {steps}"
    assert max(steps) < 1, f"left out: {max(steps)}"
    assert shown[-1] - shown[0] > case.seconds - 3, "it does not play to the end"
    assert after["audio"] > before["audio"] + 10_000, "no audio behind the change"
