"""The first picture, where the distance of key frames is known from the name's last publisher: the first list and its first part
for a player that waits, and the first frame on a page that waits."""

import concurrent.futures
import contextlib
import pathlib
import threading
import time

import browser.browsers as browsers
from harness import hls, http
from harness.flv import VIDEO
from harness.rawrtmp import RawRTMP

from . import delivery, film, meter, peers

LISTS, PICTURES = 10, 5
#: Engines of the page, by their names in streams' names, and whether by HTTPS: Chromium then speaks HTTP/2.
PLAYERS = {"hls": ("hls", False), "mse": ("mse", False), "msetls": ("mse", True)}
#: Until whoever waits has asked.
SETTLE = 0.3

WAITS = "document.querySelector('#stage')?.dataset.phase === 'notStarted'"
NOTE_FIRST_FRAME = """(() => {
  window.shownAt = 0;
  document.querySelector("#video").requestVideoFrameCallback(() => { window.shownAt = Date.now() / 1000; });
})()"""


def publish_before(server, name: str) -> None:
    """Two groups of pictures, at once, so that the server knows the distance of the name's key frames."""
    headers, media = film.media("3M", 5)
    with RawRTMP(server.rtmp).start(name, chunk_size=film.CHUNK_SIZE) as client:
        client.play_out(headers + media, speed=8)
        client.finish()
    server.wait_state(name, "ended")


@contextlib.contextmanager
def publishing(server, name: str):
    """A publisher in real time, once `begin` is called; that returns when the first key frame was sent (time.time)."""
    headers, media = film.media("3M", 16)
    client = RawRTMP(server.rtmp).start(name, chunk_size=film.CHUNK_SIZE)
    key = next(number for number, tag in enumerate(media) if tag.type == VIDEO)
    sending: list[threading.Thread] = []

    def begin() -> float:
        for tag in headers + media[: key + 1]:
            client.tag(tag)
        at = time.time()
        rest = media[key + 1 :]
        sending.append(threading.Thread(target=client.play_out, args=(rest,), kwargs={"until": 6, "origin": media[key].milliseconds}))
        sending[0].start()
        return at

    try:
        yield begin
    finally:
        for thread in sending:
            thread.join()
        with contextlib.suppress(OSError):
            client.finish()


def first_list(server, name: str) -> tuple[float, float]:
    """Milliseconds from the first key frame to the first list with a part, and to that part."""

    def play() -> tuple[float, float]:
        index = f"{server.web}/live/{name}/index.m3u8?start=parts"
        top = hls.parse_multivariant(http.fetch(index).good().text, index)
        url = top.absolute(top.variants[0].uri)
        text = http.fetch(url).good().text
        listed = time.time()
        if "#EXTINF" in text:
            raise RuntimeError(f"{name}: the distance of key frames is not known:\n{text}")
        part = next(line for line in text.split("\n") if line.startswith("#EXT-X-PART:")).split('URI="')[1].split('"')[0]
        http.fetch(url.rsplit("/", 1)[0] + f"/{part}").good()
        return listed, time.time()

    with publishing(server, name) as begin, concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(play)
        time.sleep(SETTLE)
        began = begin()
        listed, had = waiting.result(20)
        return (listed - began) * 1000, (had - began) * 1000


def first_picture(page, server, name: str, player: str, is_secure: bool) -> float:
    """Milliseconds from the first key frame to the first frame on a page that has waited."""
    page.open(f"{server.addresses['https'] if is_secure else server.web}/watch/{name}?player={player}")
    page.wait(WAITS)
    page.evaluate(NOTE_FIRST_FRAME)
    with publishing(server, name) as begin:
        began = begin()
        page.wait("window.shownAt > 0", 20)
        shown = page.evaluate("window.shownAt")
    page.open("about:blank")
    return (shown - began) * 1000


def run() -> str:
    lists: list[tuple[float, float]] = []
    pictures: dict[str, list[float]] = {player: [] for player in PLAYERS}
    names = [f"{player}{number}" for number in range(PICTURES) for player in PLAYERS]
    with peers.folder() as folder, browsers.chromium("--ignore-certificate-errors") as page:
        state = pathlib.Path(folder) / "state"
        state.mkdir()
        flags, listeners = ("--state", str(state), *delivery.certificate(folder)), ("http", "https", "rtmp")
        with peers.weir(*flags, listeners=listeners) as server:
            for number in range(LISTS):
                publish_before(server, f"list{number}")
                lists.append(first_list(server, f"list{number}"))
            for name in names:
                publish_before(server, name)
        # Started again, so that the page finds no stream and waits.
        with peers.weir(*flags, listeners=listeners) as server:
            for name in names:
                player = name.rstrip("0123456789")
                pictures[player].append(first_picture(page, server, name, *PLAYERS[player]))
    print(f"first: lists {lists}, pictures {pictures}", flush=True)
    body = [["first list with a part, `?start=parts`", meter.spread([listed for listed, _ in lists]), str(LISTS)],
            ["that part, at the player", meter.spread([had for _, had in lists]), str(LISTS)]]
    for name, (player, is_secure) in PLAYERS.items():
        way = f"`?player={player}`{', HTTP/2 with TLS' if is_secure else ''}"
        body.append([f"first frame on the watch page, {way}", meter.spread(pictures[name]), str(PICTURES)])
    return ("The first picture: 3 Mbit/s, 720p30, key frames 2 s apart, which the server knows from the name's last publisher. Who waits "
            "has asked before. Milliseconds from the last byte of the first key frame, median (min–max); headless Chromium on the same cores.\n\n"
            + meter.table(["what", "ms", "times"], body))
