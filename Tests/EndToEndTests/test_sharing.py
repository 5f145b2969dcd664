"""What other sites get: who may embed the player and read what it needs, previews of links, oEmbed, and pages for wrong addresses."""

import html.parser
import http.server
import json
import re
import shlex
import subprocess
import threading
import time
import urllib.parse

import jwt
import pytest

from harness import publishers, sources, tools
from test_command import USAGE, refused

SITE, STRANGER = "https://www.example.org", "https://evil.example"
PUBLIC = "https://live.example.com"
BROWSER = {"Accept": "text/html,application/xhtml+xml"}
TURN = "‮"
SECRET = "viewer-secret-0123456789-abcdefghij"


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    file = tmp_path_factory.mktemp("settings") / "weir.json"
    file.write_text(json.dumps({
        "publicURL": PUBLIC, "embed": {"from": [SITE, "http://localhost:3000"]}, "player": {"default": "hls"},
        "streams": {
            "plain": {"title": 'Fish & "Chips"', "description": "From the <pier>"},
            "evil": {"title": f"</title><script>alert(1)</script>{TURN}gpj.exe\" onload='x'"},
            "guarded": {"viewers": "token", "title": "Members only"},
        }}))
    return start_shared("--no-record", "--config", file, "--source", f"demo=file:{sources.source('loop')}", environment={"WEIR_JWT_SECRET": SECRET})


class Head(html.parser.HTMLParser):
    """The tags of a page's head, as a browser reads them."""

    def __init__(self, text: str):
        super().__init__()
        self.title, self.properties, self.links, self.scripts, self._in = "", {}, {}, [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self._in = tag
        if tag == "meta" and (name := values.get("property") or values.get("name")):
            self.properties[name] = values["content"]
        if tag == "link":
            self.links[values["rel"]] = values["href"]
        if tag == "script":
            self.scripts.append(values.get("src"))

    def handle_data(self, data):
        if self._in == "title":
            self.title += data

    def handle_endtag(self, tag):
        self._in = None


def head(weir, path: str) -> Head:
    return Head(weir.get(path, headers=BROWSER).good().text)


# MARK: Who may embed, and read what the player needs


def test_only_the_player_may_be_framed_and_only_by_the_sites_that_are_named(weir):
    def ancestors(path: str) -> str:
        return re.search(r"frame-ancestors (.*)$", weir.get(path, headers=BROWSER).headers["content-security-policy"])[1]

    for path in ("/embed/demo", "/embed/later", "/embed/bad..name"):
        assert ancestors(path) == f"'self' {SITE} http://localhost:3000", path
    for path in ("/", "/watch/demo", "/recordings", "/nope"):
        assert ancestors(path) == "'self'", path


def test_their_pages_may_read_the_player_the_state_and_recordings_and_nothing_else(weir):
    def allowed(path: str, origin: str, method: str = "GET") -> str | None:
        answer = weir.get(path, method=method, headers={"Origin": origin})
        return answer.headers.get("access-control-allow-origin")

    entry = weir.get("/web/weir-player.js", headers={"Origin": SITE}).good()
    assert entry.headers["content-type"].startswith("text/javascript") and entry.headers["cache-control"] == "no-cache"
    scripts = [urllib.parse.urljoin("/web/", path) for path in re.findall(r'"(\./[^"]+)"', entry.text)]
    assert len(scripts) > 20 and all(path.startswith("/web/build-") for path in scripts)
    for path in ["/web/weir-player.js", *scripts]:
        answer = weir.get(path, headers={"Origin": SITE}).good()
        assert answer.headers["access-control-allow-origin"] == SITE and "Origin" in answer.headers["vary"], path
        assert answer.headers["timing-allow-origin"] == SITE, path
    assert weir.get(scripts[0]).headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in (scripts[0], "/api/v1/streams/demo", "/recordings/demo/x.mp4", "/api/v1/oembed"):
        assert allowed(path, SITE) == SITE and allowed(path, STRANGER) is None, path
        assert "Origin" in weir.get(path).headers["vary"], path
    for path in ("/api/v1/streams", "/api/v1/recordings", "/api/v1/sessions", "/", "/watch/demo", "/metrics", "/recordings"):
        assert allowed(path, SITE) is None, path
    assert allowed("/api/v1/streams/demo", SITE, "OPTIONS") == SITE
    # The state at the players' address tells of devices: it is read by those who may read the API's.
    assert allowed("/live/demo/status.json", STRANGER) is None and allowed("/live/demo/status.json", SITE) == SITE


def test_all_pages_may_embed_where_a_star_says_so(start):
    weir = start("--no-record", "--embed-from", "*", "--cors", SITE)
    assert weir.get("/embed/any").headers["content-security-policy"].endswith("frame-ancestors *")
    assert weir.get("/web/weir-player.js", headers={"Origin": STRANGER}).headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in weir.get("/api/v1/streams", headers={"Origin": STRANGER}).headers


WRONG_ORIGINS = [
    "https://*.example.org", "https://www.example.org/", "https://www.example.org/page", "www.example.org", "null", "file://",
    "https://a.example;script-src *", "https://a.example 'unsafe-inline'", "https://a.example\r\nX-Evil: 1", "https://user@a.example",
    "https://a.example:0", "https://a.example:70000", "https://", "javascript://a", "https://ä.example", "https://a.example?x", "",
]


@pytest.mark.parametrize("origin", WRONG_ORIGINS)
def test_what_is_no_origin_is_refused_at_the_start(origin):
    for flag in ("--embed-from", "--cors"):
        error = refused(USAGE, "serve", flag, origin)
        # Who writes a star within an origin means a wildcard, and is told that there is none.
        assert error.count("\n") == 1 and flag in error and ("wildcard" in error) == ("*" in origin)


def test_more_origins_than_a_field_should_have_are_refused(start):
    def origins(count: int) -> str:
        return ",".join(f"https://a{number}.example" for number in range(count))

    assert "65 origins" in refused(USAGE, "serve", environment={"WEIR_EMBED_FROM": origins(65)})
    weir = start("--no-record", environment={"WEIR_EMBED_FROM": origins(64)})
    assert weir.get("/embed/x").headers["content-security-policy"].endswith("https://a63.example")


def test_origins_are_written_as_browsers_send_them(start):
    weir = start("--no-record", "--embed-from", "HTTPS://Www.Example.ORG:443", "--embed-from", "http://a.example:80")
    assert weir.get("/embed/x").headers["content-security-policy"].endswith("'self' https://www.example.org http://a.example")
    assert weir.get("/web/weir-player.js", headers={"Origin": SITE}).headers["access-control-allow-origin"] == SITE


# MARK: Links


def test_a_link_has_title_description_picture_and_player(weir):
    for path in ("/watch/plain", "/embed/plain"):
        shown = head(weir, path)
        assert shown.title == 'Fish & "Chips" · weir'
        assert shown.properties["og:title"] == 'Fish & "Chips"'
        assert shown.properties["og:description"] == shown.properties["description"] == "From the <pier>"
        assert shown.properties["og:url"] == shown.links["canonical"] == f"{PUBLIC}/watch/plain"
        assert shown.properties["og:image"] == f"{PUBLIC}/live/plain/thumbnail.jpg"
        assert shown.properties["og:video"] == f"{PUBLIC}/embed/plain"
        # The page leads to oEmbed, which knows the page.
        place = urllib.parse.urlsplit(shown.links["alternate"])
        assert f"{place.scheme}://{place.netloc}" == PUBLIC
        found = weir.get(f"{place.path}?{place.query}").good().json
        assert found["title"] == 'Fish & "Chips"' and f'src="{PUBLIC}/embed/plain"' in found["html"]
    # A page is revalidated by its own content.
    tags = {weir.get(f"/watch/{name}").headers["etag"] for name in ("plain", "evil")}
    assert len(tags) == 2 and all(weir.get("/watch/plain", headers={"If-None-Match": tag}).status in (200, 304) for tag in tags)
    assert weir.get("/watch/plain", headers={"If-None-Match": weir.get("/watch/plain").headers["etag"]}).status == 304


def test_markup_and_turned_text_in_a_title_stay_text(weir):
    title = "</title><script>alert(1)</script>gpj.exe\" onload='x'"
    ours = head(weir, "/watch/plain")
    shown = head(weir, "/watch/evil")
    assert shown.title == f"{title} · weir" and shown.properties["og:title"] == title
    assert shown.scripts == ours.scripts and shown.properties.keys() == ours.properties.keys()
    found = weir.get("/api/v1/oembed?url=" + urllib.parse.quote(f"{PUBLIC}/watch/evil", safe="")).good().json
    assert found["title"] == title
    frame = Frame(found["html"])
    assert frame.found == [("iframe", f"{PUBLIC}/embed/evil", title)]
    assert TURN not in weir.get("/watch/evil").text and TURN not in json.dumps(found, ensure_ascii=False)


class Frame(html.parser.HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes).get("src"), dict(attributes).get("title")))


def test_a_server_without_a_public_address_names_none(start):
    weir = start("--no-record")
    shown = head(weir, "/watch/cam")
    assert shown.properties["og:title"] == "cam" and "og:image" not in shown.properties and "alternate" not in shown.links
    answer = weir.get("/api/v1/oembed?url=http%3A%2F%2Flocalhost%2Fwatch%2Fcam")
    assert answer.status == 404 and "--public-url" in answer.json["help"]


# MARK: oEmbed


def oembed(weir, url: str, **more):
    return weir.get("/api/v1/oembed?" + urllib.parse.urlencode({"url": url, **more}))


def test_oembed_gives_a_player_within_the_limits(weir):
    for more, size in (({}, (1280, 720)), ({"maxwidth": 640}, (640, 360)), ({"maxheight": 90}, (160, 90)),
                       ({"maxwidth": 320, "maxheight": 90}, (160, 90)), ({"maxwidth": 1, "maxheight": 1}, (1, 1)),
                       ({"maxwidth": 100000}, (1280, 720))):
        found = oembed(weir, f"{PUBLIC}/watch/demo", **more).good().json
        assert (found["width"], found["height"]) == size and f'width="{size[0]}" height="{size[1]}"' in found["html"], more
        assert found["type"] == "video" and found["version"] == "1.0" and found["thumbnail_url"] == f"{PUBLIC}/live/demo/thumbnail.jpg"
    for url in ("/embed/demo", "/watch/demo/", "/watch/demo?player=hls", "/watch/demo#now", "/~any-token/watch/demo"):
        found = oembed(weir, PUBLIC + url).good().json
        assert f'src="{PUBLIC}/embed/demo"' in found["html"] and "~" not in found["html"], url


def test_oembed_refuses_what_is_not_ours_and_asks_nobody(weir, listener):
    port = listener.server_address[1]
    for url in ("", "demo", f"http://127.0.0.1:{port}/watch/demo", f"http://localhost:{port}/watch/demo", "https://live.example.com.evil/watch/demo",
                "https://live.example.com@evil.example/watch/demo", "https://live.example.com:444/watch/demo", "http://live.example.com/watch/demo",
                f"{PUBLIC}", f"{PUBLIC}/", f"{PUBLIC}/recordings", f"{PUBLIC}/watch", f"{PUBLIC}/watch/bad name", f"{PUBLIC}/watch/../api",
                f"{PUBLIC}/watch/a/b", "file:///etc/passwd", "javascript:alert(1)", PUBLIC + "/watch/" + "a" * 3000, f"{PUBLIC}/watch/\x00"):
        answer = oembed(weir, url)
        assert answer.status in (400, 404), (url, answer.status)
    assert listener.asked == []
    assert oembed(weir, f"{PUBLIC}/watch/demo", format="xml").status == 501
    for more in ({"maxwidth": 0}, {"maxwidth": "x"}, {"maxheight": -1}, {"maxwidth": 10**30}):
        assert oembed(weir, f"{PUBLIC}/watch/demo", **more).json["code"] == "malformed-query", more


def test_the_commands_of_the_document_do_what_they_say(weir, start):
    serve, ask = re.findall(r"```sh\n(.*?)\n```", (tools.ROOT / "docs" / "embedding.md").read_text(), re.S)
    flags = shlex.split(serve)[2:]
    other = start("--no-record", *flags)
    assert other.get("/embed/cam").headers["content-security-policy"].endswith("'self' https://www.example.org")
    assert other.json("/api/v1/streams")["publicURL"] == PUBLIC
    said = subprocess.run(ask.replace("http://localhost:8080", weir.web), shell=True, capture_output=True, text=True, check=True).stdout
    assert json.loads(said)["width"] == 640 and f'src="{PUBLIC}/embed/cam"' in json.loads(said)["html"]


@pytest.fixture
def listener():
    """A server that notes whether anybody asks it."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            self.send_error(404)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_stream_for_some_is_shown_to_those_and_its_links_have_no_token(weir):
    token = jwt.encode({"sub": "ann", "exp": time.time() + 60, "weir": {"watch": "guarded"}}, SECRET, "HS256")
    expired = jwt.encode({"sub": "ann", "exp": time.time() - 3600, "weir": {"watch": "guarded"}}, SECRET, "HS256")
    weir.secrets += [token, expired]
    for path in ("/watch/guarded", "/embed/guarded", "/live/guarded/status.json"):
        assert weir.get(path).status == 403 and "Members" not in weir.get(path, headers=BROWSER).text, path
    for before in ("", f"/~{expired}"):
        for path in ("/watch/guarded", "/embed/guarded"):
            page = weir.get(before + path, headers=BROWSER)
            assert page.status == 403 and page.headers["content-type"].startswith("text/html") and "no-access.js" in page.text, path
        assert weir.get(f"{before}/watch/guarded").json["code"] == "viewer-not-allowed"
    assert oembed(weir, f"{PUBLIC}/watch/guarded").status == 403
    for path in ("watch", "embed"):
        page = weir.get(f"/~{token}/{path}/guarded").good().text
        shown = Head(page)
        assert shown.properties["og:title"] == "Members only" and "og:image" not in shown.properties and token not in page
    found = weir.get(f"/~{token}/api/v1/oembed?url=" + urllib.parse.quote(f"{PUBLIC}/~{token}/watch/guarded", safe="")).good()
    assert token not in found.text and f'src="{PUBLIC}/embed/guarded"' in found.json["html"] and found.json["thumbnail_url"] is None


def test_below_a_path_pages_and_what_they_name_stand_there(start):
    """The proxy takes the path off, or leaves it."""
    public = "https://www.example.com/media"
    weir = start("--test-pattern", "demo", "--no-record", "--public-url", public)
    weir.wait_state("demo", "live")
    for before in ("", "/media"):
        page = weir.get(f"{before}/watch/demo", headers=BROWSER).good().text
        assert f'content="{public}/watch/demo"' in page and '"/web/' not in page, page[:2000]
        assert weir.get(re.search(r'src="(/media/web/build-[^"]+)"', page)[1]).status == 200
        found = weir.json(f"{before}/api/v1/oembed?url=" + urllib.parse.quote(f"{public}/watch/demo", safe=""))
        assert f'src="{public}/embed/demo"' in found["html"]
        assert weir.json(f"{before}/api/v1/streams/demo")["urls"]["watch"] == "/media/watch/demo"


# MARK: The state of a stream


def test_the_state_of_a_stream_is_kept_for_a_second_and_is_no_viewer(start):
    weir = start("--no-record", "--max-viewers", "1")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        weir.wait_state("cam", "live")
        # The only place is taken.
        assert weir.wait(lambda: weir.get("/live/cam/index.m3u8").status == 200, 10, "a playlist")
        for n in range(3):
            answer = weir.get("/live/cam/status.json", headers={"User-Agent": f"player {n}"}).good()
        assert answer.headers["cache-control"] == "public, max-age=1, stale-while-revalidate=2"
        state, told = answer.json, weir.json("/api/v1/streams/cam")
        assert state.keys() == told.keys() and state["state"] == "live" and state["player"] == "mse" and state["viewers"] == 1
        nobody = weir.get("/live/nobody/status.json")
        assert nobody.status == 404 and nobody.headers["cache-control"] == "public, max-age=1"
        # A page that waits is held instead, and its console stays empty.
        began = time.monotonic()
        held = weir.get("/live/nobody/status.json", headers={"Weir-Until": "live"})
        assert held.status == 204 and time.monotonic() - began >= 0.9
        assert held.headers["cache-control"] == "public, max-age=1" and held.headers["vary"] == "Weir-Until"
        for path in ("status.json", "index.m3u8?start=parts"):
            assert weir.get(f"/live/nobody/{path}", headers={"Weir-Until": "now"}).status == 204, path
        assert weir.get("/live/cam/status.json", headers={"Weir-Until": "live"}).good().json["state"] == "live"
    finally:
        publisher.kill()


def test_the_pages_learn_how_to_play_and_where_to_publish(weir):
    assert weir.json("/live/demo/status.json")["player"] == "hls"
    overview = weir.json("/api/v1/streams")
    assert overview["publicURL"] == PUBLIC and overview["embedFrom"] == [SITE, "http://localhost:3000"]
    assert overview["rtmpsPort"] is None and overview["srtPort"] is None and overview["rtmpPort"] == urllib.parse.urlsplit(weir.rtmp).port


# MARK: Wrong addresses


@pytest.mark.parametrize("path", ["/watch/-name", "/watch/bad,name", "/nope", "/embed", "/embed/-name", "/recordings/x", "/recordings/x/y.mp4", "/watch/a/b"])
def test_a_browser_at_a_wrong_address_gets_a_page_with_a_way_out(weir, path):
    answer = weir.get(path, headers=BROWSER)
    assert answer.status == 404 and answer.headers["content-type"].startswith("text/html")
    assert 'href="/"' in answer.text and 'href="/recordings"' in answer.text and "Accept" in answer.headers["vary"]
    program = weir.get(path)
    assert program.status == 404 and program.headers["content-type"] == "application/problem+json"
