"""A page for each browser player, and a headless Chromium that opens it: the viewer's own record of the shown frames."""

import contextlib
import http.server
import os
import pathlib
import threading
import urllib.parse

from browsers import BrowserFailure, Chromium

HERE = pathlib.Path(__file__).resolve().parent / "page"
#: They wait for more after the last frame of a live stream that is older than its window (docs/playback.md).
STAY_AT_END = {"shaka-dash"}
#: It begins by whole segments, as programs do. The others follow the live edge.
BY_SEGMENTS = {"chromium"}
#: The environment variable with the path of each player.
FILES = {"hls.js": "HLSJS", "dash.js": "DASHJS", "shaka.js": "SHAKAJS"}

#: How a browser can play a stream: the page's player, the script it needs, and the address below /live/NAME.
PLAYERS = {
    "hls.js": ("hlsjs", "hls.js", "index.m3u8"),
    "shaka-hls": ("shaka", "shaka.js", "index.m3u8"),
    "dash.js": ("dashjs", "dash.js", "manifest.mpd"),
    "shaka-dash": ("shaka", "shaka.js", "manifest.mpd"),
    "chromium": ("native", None, "index.m3u8"),
    "page": (None, None, None),
}


def missing() -> dict[str, str]:
    """The players that cannot be tested here, with the reason."""
    reasons = {}
    for name, (_, script, _) in PLAYERS.items():
        variable = FILES.get(script)
        if variable and not os.access(os.environ.get(variable, ""), os.R_OK):
            reasons[name] = f"{variable} names no file"
    return reasons


class Handler(http.server.SimpleHTTPRequestHandler):
    """The pages of this folder, and the players from the paths in the environment."""

    def translate_path(self, path: str) -> str:
        name = urllib.parse.urlsplit(path).path.lstrip("/")
        return os.environ.get(FILES.get(name, ""), "") or str(HERE / pathlib.PurePosixPath(name).name)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_) -> None:
        pass


@contextlib.contextmanager
def pages():
    """Serves the pages on another port: another origin, for CORS."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Viewer:
    """One player in one browser. `begin` opens its page, `end` returns its record (measure.js)."""

    def __init__(self, player: str, origin: str):
        self.player, self.origin = player, origin
        self.browser = Chromium("--autoplay-policy=no-user-gesture-required")
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=(HERE / "measure.js").read_text())

    def begin(self, web: str, stream: str, height: int | None = None, path: str | None = None) -> None:
        way, _, file = PLAYERS[self.player]
        if way is None:
            self.browser.open(f"{web}/watch/{stream}")
            self.browser.wait("document.querySelector('video') !== null", 20)
            self.browser.evaluate("measure.begin(document.querySelector('video'))")
            return
        query = {"player": way, "url": f"{web}{path}" if path else f"{web}/live/{stream}/{file}"}
        if height:
            query["height"] = str(height)
        self.browser.open(f"{self.origin}/player.html?{urllib.parse.urlencode(query)}")

    def look(self) -> dict:
        """Its record so far."""
        return self.browser.evaluate("measure.result(document.querySelector('video'))")

    def end(self) -> dict:
        try:
            record = self.look()
            record["console"] = self.browser.errors[:40]
            return record
        except BrowserFailure as error:
            return {"failure": str(error)}
        finally:
            self.close()

    def close(self) -> None:
        self.browser.close()
