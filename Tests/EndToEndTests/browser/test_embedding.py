"""The player on pages of another server: as a frame and as an element, with a viewer's token, several on one page, and a
stream that ends and comes back. The examples of docs/embedding.md run here."""

import contextlib
import http.server
import re
import subprocess
import threading
import time
import urllib.parse

import jwt
import pytest

import watching
from harness import publishers, sources, tools

SECRET = "viewer-secret-0123456789-abcdefghij"
#: A film that ten players can decode at once.
FILM = "light"
BOTH = pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)


class Site:
    """Another web server, whose pages a test writes. Its host differs from weir's, so that it is another site for browsers."""

    def __init__(self):
        site = self
        self.pages: dict[str, str] = {}
        self.policy = None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = urllib.parse.urlsplit(self.path).path
                page = site.pages.get(path)
                # Browsers ask every site for its icon. A 404 would be an error of the page.
                self.send_response(204 if path == "/favicon.ico" else 404 if page is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                if site.policy is not None:
                    self.send_header("Content-Security-Policy", site.policy)
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def site():
    site = Site()
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def plain_policy(site):
    yield
    site.policy = None


@pytest.fixture(scope="module")
def weir(start_shared, site, tmp_path_factory):
    file = tmp_path_factory.mktemp("settings") / "weir.yaml"
    file.write_text("streams:\n  guarded: {viewers: token}\n")
    server = start_shared(
        "--no-record", "--config", file, "--embed-from", site.origin, "--reconnect-window", "2s",
        environment={"WEIR_JWT_SECRET": SECRET})
    with published(server, "cam"):
        yield server


@contextlib.contextmanager
def published(weir, *names):
    token = {"Authorization": "Bearer " + viewer(weir, "*")}
    running = [publishers.ffmpeg(FILM, f"{weir.rtmp}/live/{name}", loop=-1) for name in names]
    try:
        for name in names:
            weir.wait(lambda name=name: weir.get(f"/live/{name}/index.m3u8", headers=token).status == 200, 20, f"{name} is live")
        yield running
    finally:
        for publisher in running:
            publisher.kill()


def viewer(weir, streams: str) -> str:
    token = jwt.encode({"sub": "ann", "exp": time.time() + 600, "weir": {"watch": streams}}, SECRET, "HS256")
    weir.secrets.append(token)
    return token


def open_page(browser, site, body: str, path: str = "/page"):
    site.pages[path] = f"<!doctype html><title>Elsewhere</title>{HEAR}{body}"
    browser.open(site.origin + path)


#: Notes what frames tell of their phases, by their place on the page.
HEAR = """<script>
  window.heard = [];
  addEventListener("message", (event) => {
    const place = [...document.querySelectorAll("iframe")].findIndex((frame) => frame.contentWindow === event.source);
    heard[place] = event.data.weir.phase;
  });
</script>"""


def element(weir, name: str, attributes: str = "autoplay", token: str = "") -> str:
    return f'<weir-player src="{weir.web}{token}/watch/{name}" {attributes}></weir-player>'


def script(weir) -> str:
    return f'<script type="module" src="{weir.web}/web/weir-player.js"></script>'


#: Of each element: its phase, and whether its video has moved and has its own picture.
PLAYERS = """[...document.querySelectorAll("weir-player")].map((player) => ({
  phase: player.phase, time: player.video?.currentTime ?? 0, width: player.video?.videoWidth ?? 0, muted: player.muted,
}))"""


def wait_players(browser, count: int, phase: str = "playing", seconds: float = 40):
    browser.wait(f"{PLAYERS}.filter((p) => p.phase === '{phase}').length === {count}", seconds)
    return browser.evaluate(PLAYERS)


def moves(browser, besides=()):
    """Whether every video moves, besides those at these places."""
    before = browser.evaluate(PLAYERS)
    browser.wait(f"{PLAYERS}.every((p, n) => {list(besides)}.includes(n) || p.time > {[p['time'] for p in before]}[n] + 0.5)", 20)


def shades(browser, folder, left: int, top: int, width: int, height: int) -> int:
    """How many different colours a screenshot shows there."""
    picture = folder / "screen.png"
    browser.screenshot(picture)
    raw = subprocess.run([tools.FFMPEG, "-v", "error", "-i", picture, "-vf", f"crop={width}:{height}:{left}:{top}", "-f", "rawvideo",
                          "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
    return len({raw[at:at + 3] for at in range(0, len(raw), 3)})


@BOTH
def test_pages_of_another_server_play_in_a_frame_and_in_an_element(browser, weir, site, tmp_path):
    browser.viewport(900, 700)
    open_page(browser, site, f"""<style>body {{ margin: 0 }} iframe, weir-player {{ display: block; width: 400px; height: 225px; border: 0 }}</style>
      <iframe src="{weir.web}/embed/cam" allow="autoplay; fullscreen"></iframe>{script(weir)}{element(weir, "cam")}""")
    [player] = wait_players(browser, 1)
    assert player["width"] == 160 and player["muted"]
    moves(browser)
    browser.wait("heard[0] === 'playing'")
    # The pattern has many colours, a black or an empty frame has few.
    assert shades(browser, tmp_path, 0, 0, 400, 150) > 100 and shades(browser, tmp_path, 0, 225, 400, 150) > 100
    assert browser.errors == []


def test_an_origin_that_is_not_named_gets_neither_frame_nor_element(page, weir, tmp_path):
    other = Site()
    try:
        open_page(page, other, f"""<style>body {{ margin: 0 }} iframe {{ display: block; width: 400px; height: 225px; border: 0 }}</style>
          <iframe src="{weir.web}/embed/cam"></iframe>{script(weir)}{element(weir, "cam")}""")
        told = lambda: all(any(word in error for error in page.errors) for word in ("frame-ancestors", "CORS"))  # noqa: E731
        weir.wait(told, 20, "both are refused")
        time.sleep(0.5)
        assert page.evaluate("[heard.length, customElements.get('weir-player') === undefined]") == [0, True]
    finally:
        other.stop()


@pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
def test_ten_players_on_a_page_play_each_for_itself(browser, weir, site):
    names = [f"ten{number}" for number in range(3)]
    with published(weir, *names):
        players = "".join(element(weir, names[number % 3], f'autoplay id="p{number}" style="width:160px;display:inline-block"') for number in range(10))
        # Browsers pause a video that gets its sound without the viewer's click.
        sound = """<button id="sound" onclick="document.querySelector('weir-player').muted = false">Sound</button><br>"""
        open_page(browser, site, script(weir) + sound + players)
        assert all(p["width"] == 160 for p in wait_players(browser, 10, seconds=60))
        moves(browser)
        # What one viewer does concerns one player.
        browser.click("document.querySelector('#sound')")
        browser.evaluate("""(() => {
          const [first, second] = document.querySelectorAll("weir-player");
          second.pause();
          first.shadowRoot.querySelector("#stage").focus();
        })()""")
        assert browser.evaluate("[...document.querySelectorAll('weir-player')].map((p) => p.muted)") == [False] + [True] * 9
        browser.wait("[...document.querySelectorAll('weir-player')].map((p) => p.paused).join() === 'false,true' + ',false'.repeat(8)")
        # Keys are heard by the player with the focus alone; elsewhere they are the page's.
        press = """(target) => target.dispatchEvent(new KeyboardEvent('keydown', { key: 'm', bubbles: true, composed: true, cancelable: true }))"""
        stage = "document.querySelectorAll('weir-player')[%d].shadowRoot.querySelector('#stage')"
        assert not browser.evaluate(f"({press})({stage % 2})") and browser.evaluate(f"({press})(document.body)")
        assert browser.evaluate("[...document.querySelectorAll('weir-player')].map((p) => p.muted)") == [False, True, False] + [True] * 7
        # A player that is removed ends, and the others go on. The paused one is at its place in a stream that plays.
        assert browser.evaluate("(() => { const p = document.querySelector('#p9'); p.remove(); return [p.phase, p.video]; })()") == ["idle", None]
        wait_players(browser, 9)
        moves(browser, besides=[1])
        assert browser.errors == []


@pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
def test_viewers_with_a_token_see_their_stream_and_others_do_not(browser, weir, site):
    token = "/~" + viewer(weir, "guarded")
    with published(weir, "guarded"):
        open_page(browser, site, f"""<iframe src="{weir.web}{token}/embed/guarded" allow="autoplay"></iframe>
          {script(weir)}{element(weir, "guarded", token=token)}{element(weir, "guarded")}""")
        browser.wait("heard[0] === 'playing'")
        browser.wait(f"{PLAYERS}[0].phase === 'playing'")
        assert browser.evaluate(PLAYERS)[1]["time"] == 0


@pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
def test_a_stream_that_ends_and_comes_back_plays_again(browser, weir, site):
    publisher = publishers.ffmpeg(FILM, f"{weir.rtmp}/live/back", loop=-1)
    try:
        weir.wait_state("back", "live")
        open_page(browser, site, f"""<iframe src="{weir.web}/embed/back" allow="autoplay"></iframe>{script(weir)}{element(weir, "back")}
          <script>window.ended = 0; document.querySelector("weir-player").addEventListener("ended", () => {{ ended += 1; }});</script>""")
        wait_players(browser, 1)
        browser.wait("heard[0] === 'playing'")
        publisher.interrupt()
        publisher.outcome(10)
        wait_players(browser, 1, "ended")
        browser.wait("heard[0] === 'ended' && ended === 1")
        publisher = publishers.ffmpeg(FILM, f"{weir.rtmp}/live/back", loop=-1)
        wait_players(browser, 1)
        browser.wait("heard[0] === 'playing'")
        moves(browser)
    finally:
        publisher.kill()


def test_a_player_that_does_not_begin_by_itself_loads_a_picture_and_no_media(page, weir, site):
    open_page(page, site, script(weir) + element(weir, "cam", "style='width:320px'"))
    shadow = "document.querySelector('weir-player').shadowRoot"
    page.wait("document.querySelector('weir-player').shadowRoot !== null")
    page.wait(f"{shadow}.querySelector('#poster')?.naturalWidth > 0 && !{shadow}.querySelector('#poster').hidden")
    loaded = "performance.getEntriesByType('resource').map((entry) => new URL(entry.name).pathname).filter((path) => path.startsWith('/live/'))"
    assert page.evaluate(loaded) == ["/live/cam/thumbnail.jpg"] and page.evaluate(PLAYERS)[0]["phase"] == "idle"
    page.click(f"{shadow}.querySelector('#begin')")
    wait_players(page, 1)
    # With another address it begins anew.
    page.evaluate("document.querySelector('weir-player').setAttribute('src', 'https://weir.example/recordings/x')")
    page.wait("document.querySelector('weir-player').phase === 'idle'")


def test_the_element_works_under_a_strict_policy_of_its_page(page, weir, site):
    site.policy = (f"default-src 'none'; script-src {weir.web}; connect-src {weir.web}; img-src {weir.web}; media-src blob:; "
                   "require-trusted-types-for 'script'")
    site.pages["/strict"] = f"<!doctype html><title>Strict</title>{script(weir)}{element(weir, 'cam')}"
    page.open(site.origin + "/strict")
    wait_players(page, 1)
    assert [error for error in page.errors if "favicon" not in error] == []


def test_wrong_addresses_are_told(page, weir, site):
    open_page(page, site, f"""<script>window.told = []; addEventListener("error", (event) => told.push(event.message), true);</script>{script(weir)}
      <weir-player src="javascript:alert(1)" autoplay></weir-player><weir-player autoplay></weir-player>
      <weir-player src="{weir.web}/watch/bad..%2Fname" autoplay></weir-player>""")
    page.wait("told.filter((message) => message.startsWith('src is not')).length === 3")


# MARK: The document, and what pages copy


def examples(weir, site) -> list[str]:
    text = (tools.ROOT / "docs" / "embedding.md").read_text()
    found = re.findall(r"```html\n(.*?)```", text, re.S)
    return [example.replace("https://live.example.com", weir.web) for example in found]


def test_the_examples_of_the_document_play(page, weir, site):
    frame, alone, two, recording = examples(weir, site)
    open_page(page, site, frame)
    page.wait("heard[0] === 'playing'")
    open_page(page, site, alone)
    wait_players(page, 1)
    site.pages["/two"] = two
    page.open(site.origin + "/two")
    wait_players(page, 2)
    page.wait("document.querySelector('#state').textContent === 'playing'")
    assert page.errors == [] and "crossorigin" in recording


def test_the_watch_page_has_the_code_to_copy_without_the_viewers_token(page, weir, site):
    token = viewer(weir, "guarded")
    with published(weir, "guarded"):
        page.open(f"{weir.web}/~{token}/watch/guarded")
        watching.wait_phase(page, "playing")
        page.wait("document.querySelectorAll('#share-rows code').length === 3")
        link, frame, element_code = page.evaluate("[...document.querySelectorAll('#share-rows code')].map((c) => c.textContent)")
        assert link == f"{weir.web}/watch/guarded" and token not in frame + element_code
        assert f'src="{weir.web}/embed/guarded"' in frame and f'src="{weir.web}/watch/guarded"' in element_code
        page.evaluate("document.querySelector('#share').open = true")
        assert page.evaluate("[...document.querySelectorAll('#share-rows button')].map((b) => b.getAttribute('aria-label'))") == [
            "Copy Link", "Copy Embed code", "Copy Embed code, as an element"]
    # What was copied plays elsewhere.
    code = page.evaluate("document.querySelectorAll('#share-rows code')[1].textContent").replace("guarded", "cam")
    open_page(page, site, code)
    page.wait("heard[0] === 'playing'")


@pytest.mark.parametrize("who", ["viewer", "operator"])
def test_qr_codes_lead_to_the_page_and_operators_to_the_address_of_publishers(page, weir, start, tmp_path, who):
    # Where tokens are needed, only those who have signed in are operators. Where none is needed, everybody is.
    server = weir if who == "viewer" else start("--no-record", "--source", f"cam=file:{sources.source('loop')}")
    watching.watch(page, server, "cam")
    page.wait("document.querySelectorAll('.qr-code svg').length === 2")
    page.evaluate("document.querySelectorAll('#share, #publish').forEach((d) => { d.open = true; })")
    page.viewport(900, 3000)
    wanted = [f"{server.web}/watch/cam"] + [f"{server.rtmp}/live/cam"] * (who == "operator")
    for scheme in ("light", "dark"):
        page.prefer(color_scheme=scheme)
        picture = tmp_path / f"{scheme}.png"
        page.screenshot(picture)
        done = subprocess.run(["zbarimg", "-q", "--raw", picture], capture_output=True, text=True, check=True)
        assert sorted(done.stdout.split()) == sorted(wanted)


def test_titles_with_markup_stay_text_on_the_page(page, start):
    title = "<img src=x onerror=alert(1)>‮gpj.exe"
    server = start("--no-record", "--title", title, "--source", f"demo=file:{sources.source('loop')}")
    watching.watch(page, server, "demo")
    assert page.evaluate("document.querySelector('#name').textContent") == title.replace("‮", "")
    assert page.evaluate("document.title") == title.replace("‮", "") + " · weir"
    page.wait("document.querySelectorAll('#share-rows code').length === 3")
    assert page.evaluate("document.querySelectorAll('#share-rows code')[1].textContent.includes('title=\"&lt;img src=x onerror=alert(1)>gpj.exe\"')")
    assert page.evaluate("document.querySelector('h1 img')") is None and page.errors == []
