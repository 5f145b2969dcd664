"""Changes within a connection, and publishers that send at once: the page's own player goes on, and in long runs Chromium's. All six
streams are published and played at the same time, in one page. `make players` has more players and longer films."""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import time

import pytest

from harness import flv, nothing_wrong, scripts
from test_bursts import publish
from test_embedding import Site
from test_tracks import over_and_over

#: How far behind its beginning a stream is opened: Chromium's own player fails at a list shorter than three target durations.
AFTER = 8.3
#: Behind every change: the last so many seconds of media.
LAST = 4
#: Seconds of media in which Chromium's own player finds its position, and jumps. Every change comes later.
SETTLING = 2
PLAYERS = ["page", pytest.param("chromium", marks=pytest.mark.long)]

#: From here on `shown` has, for each player, of each frame on the screen its media time and the bytes of audio decoded until then.
#: All are in view, as Chromium holds back frames of what is not. Its own player is begun by a call, which waits for no view.
BEGIN = """(names, isPage) => {
  window.shown = {};
  window.players = {};
  for (const [key, source] of names) {
    const element = document.createElement(isPage ? "weir-player" : "video");
    element.muted = true;
    Object.assign(element.style, { width: "160px", display: "inline-block" });
    if (isPage) {
      element.setAttribute("engine", "mse");
      element.setAttribute("autoplay", "");
      element.setAttribute("muted", "");
    }
    element.setAttribute("src", source);
    document.body.append(element);
    if (!isPage) element.play().catch(() => {});
    window.players[key] = element;
    window.shown[key] = [];
    const follow = () => {
      const video = isPage ? element.video : element;
      if (!video) return void setTimeout(follow, 20);
      const note = (_, { mediaTime }) => {
        window.shown[key].push([mediaTime, video.webkitAudioDecodedByteCount]);
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
    phase: element.phase ?? null, ended: element.phase === "ended" || element.ended === true, shown: window.shown[key] }];
}))"""
OVER = """Object.values(window.players).every((one) => one.phase === "ended" || one.ended || one.error)"""


@dataclasses.dataclass
class Case:
    """`publish(weir, name)`. `seconds`: of media behind the moment when the players open. `width`: of the last picture."""

    publish: object
    seconds: float
    width: int = 320


def change_both(weir, name):
    """Another size and mono in place of stereo, on one connection."""
    first, then = over_and_over("short", 3), over_and_over("small-mono", 2)
    end = max(tag.milliseconds for tag in first if tag.type == flv.VIDEO) + 33
    scripts.whole(weir.rtmp, name, first + flv.shifted(then, end))


def change_audio(weir, name):
    """Mono in place of stereo, in the middle of a group of pictures."""
    film, mono = over_and_over("short", 5), flv.only(over_and_over("small-mono", 2), flv.AUDIO)
    stereo = [tag for tag in film if tag.type != flv.AUDIO or tag.milliseconds < 12_600]
    scripts.whole(weir.rtmp, name, sorted(stereo + flv.shifted(mono, 12_600), key=lambda tag: tag.milliseconds))


def late_audio(weir, name):
    """Audio begins two seconds behind the video, and is listed when the players come."""
    film = flv.only(over_and_over("short", 5), flv.VIDEO, flv.AUDIO)
    header = next(tag for tag in film if tag.type == flv.AUDIO and tag.is_header)
    late = [tag for tag in film if tag.type == flv.VIDEO or tag.milliseconds >= 2000 and not tag.is_header]
    scripts.whole(weir.rtmp, name, sorted([*late, dataclasses.replace(header, milliseconds=2000)], key=lambda tag: tag.milliseconds))


def returns(burst):
    def run(weir, name):
        """The connection is lost, and the publisher returns."""
        publish(weir, name, 0, 10, ends=False)
        time.sleep(4)  # real time: it is away for so long
        publish(weir, name, burst, 6, ends=True)
    return run


CASES = {
    "change-both": Case(change_both, 20 - AFTER, width=256),
    "change-audio": Case(change_audio, 20 - AFTER),
    "late-audio": Case(late_audio, 20 - AFTER),
    "outage": Case(returns(0), 16 - AFTER),
    "return-burst": Case(returns(4.2), 20 - AFTER),
    "burst-10": Case(lambda weir, name: publish(weir, name, 10, 18, ends=True), 18 - AFTER),
}


@pytest.fixture(scope="module")
def site():
    site = Site()
    yield site
    site.stop()


@pytest.fixture(scope="module", params=PLAYERS)
def watched(request, start_shared, chromium, site):
    """What each player told at the end of its stream, by case."""
    player = request.param
    weir = start_shared("--no-record", "--target-duration", "2", "--segment-duration", "1s", "--embed-from", site.origin)
    # Browsers have six connections to a host, and each page's player takes one for as long as it plays.
    hosts = itertools.cycle((weir.web, weir.web.replace("127.0.0.1", "localhost")))
    names = [[case, f"{host}/watch/{case}" if player == "page" else f"{host}/live/{case}/index.m3u8"]
             for case, host in zip(CASES, hosts)]
    site.pages["/"] = f'<!doctype html><script type="module" src="{weir.web}/web/weir-player.js"></script>'
    chromium.viewport(1280, 900)
    chromium.open(site.origin)
    chromium.evaluate("customElements.whenDefined('weir-player').then(() => true)")
    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        began = time.monotonic()
        jobs = {name: pool.submit(case.publish, weir, name) for name, case in CASES.items()}
        for name in CASES:
            weir.wait(lambda name=name: weir.get(f"/live/{name}/index.m3u8").status == 200, 15, f"{name} has a playlist")
        time.sleep(max(0.0, began + AFTER - time.monotonic()))
        chromium.evaluate(f"({BEGIN})({names!r}, {str(player == 'page').lower()})")
        concurrent.futures.wait(jobs.values(), 30)
        errors = {name: job.exception(1) for name, job in jobs.items()}
    nothing_wrong([f"{name}: {error!r}" for name, error in errors.items() if error])
    with contextlib.suppress(AssertionError):  # whose player does not come to the end is told by its own test
        chromium.wait(OVER, 15)
    told = chromium.evaluate(TOLD)
    chromium.open("about:blank")
    return told


@pytest.mark.parametrize("name", CASES)
def test_a_player_goes_on(watched, record_property, name):
    told, case = watched[name], CASES[name]
    assert told["error"] is None and len(told["shown"]) > 1, (told["error"], told["phase"], told["shown"])
    shown, audio = zip(*told["shown"])
    steps = [b - a for a, b in itertools.pairwise(shown) if a > shown[0] + SETTLING] or [0]
    record_property("figure", f"{name}: {len(shown)} frames in {shown[-1] - shown[0]:.2f} s of media, longest step "
                              f"{max(steps):.2f} s")
    assert told["ended"], f"it does not come to the end: {told['phase']}"
    assert told["width"] == case.width
    assert min(steps) >= 0, f"shown twice: {steps}"
    assert max(steps) < 1, f"left out: {max(steps)}"
    assert shown[-1] - shown[0] > case.seconds - 3, "it does not play to the end"
    before = next(count for at, count in zip(shown, audio) if at > shown[-1] - LAST)
    assert told["audio"] > before + 10_000, "no audio behind the change"
