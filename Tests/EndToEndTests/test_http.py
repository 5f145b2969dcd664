"""HTTP for viewers, caches and browsers: methods, ranges, headers, compression."""

import gzip
import json
import re
import socket
import time

import pytest

from harness import dash, hls, http, publishers, sources

NAME = "cam"


@pytest.fixture(scope="module")
def weir(start_shared):
    """Whatever is listed first is there to the last test."""
    return start_shared("--window", "30m")


@pytest.fixture(scope="module")
def live(weir):
    """A stream that is live throughout, a finished recording, and the URLs that a viewer finds."""
    short = publishers.ffmpeg("short", f"{weir.rtmp}/live/short", rate=4)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        short.wait(20)
        weir.wait(lambda: any(r["state"] == "completed" for r in weir.recordings_of("short")), 20, "short is recorded")
        weir.wait(lambda: weir.get(f"/live/{NAME}/index.m3u8").status == 200, 15, "cam has a playlist")
        top = hls.parse_multivariant(weir.get(f"/live/{NAME}/index.m3u8").text, f"{weir.web}/live/{NAME}/index.m3u8")
        media = top.absolute(top.variants[0].uri)
        playlist = hls.parse_media(weir.get(media).text, media)
        manifest = weir.get(f"/live/{NAME}/manifest.mpd")
        one = dash.parse(manifest.text, manifest.url).representations[0]
        yield weir, {
            "multivariant": top.url, "playlist": media, "manifest": manifest.url,
            "init": playlist.absolute(playlist.segments[0].map), "segment": playlist.absolute(playlist.segments[0].uri),
            "track-init": one.init, "track-segment": one.entries[0].url,
            "recording": weir.web + weir.recordings_of("short")[0]["url"], "time": f"{weir.web}/time",
            "page": f"{weir.web}/watch/{NAME}", "front": f"{weir.web}/", "api": f"{weir.web}/api/v1/streams",
            "health": f"{weir.web}/healthz",
        }
    finally:
        publisher.kill()
        short.kill()


TYPES = {
    "multivariant": "application/vnd.apple.mpegurl", "playlist": "application/vnd.apple.mpegurl",
    "manifest": "application/dash+xml", "init": "video/mp4", "segment": "video/mp4", "track-init": "video/mp4",
    "track-segment": "video/mp4", "recording": "video/mp4", "time": "text/plain", "page": "text/html",
    "front": "text/html", "api": "application/json", "health": None,
}
MEDIA = ["init", "segment", "track-init", "track-segment", "recording"]
TEXT = ["multivariant", "playlist", "manifest", "page", "front", "api"]
OPEN = ["multivariant", "playlist", "manifest", "init", "segment", "track-init", "track-segment", "time"]


@pytest.mark.parametrize("what", TYPES)
def test_every_route_answers_with_its_type(live, what):
    answer = http.fetch(live[1][what])
    assert answer.status == 200
    if TYPES[what]:
        expected = {TYPES[what]} | ({"audio/mp4"} if what.startswith("track") else set())
        assert answer.headers["content-type"].split(";")[0] in expected
    assert int(answer.headers["content-length"]) == len(answer.body)


@pytest.mark.parametrize("what", MEDIA + ["front", "page", "health"])
def test_head_answers_as_get_without_the_body(live, what):
    get, head = http.fetch(live[1][what]), http.fetch(live[1][what], method="HEAD")
    assert head.status == get.status and head.body == b""
    for name in ("content-length", "content-type", "cache-control", "accept-ranges", "etag"):
        assert head.headers.get(name) == get.headers.get(name), name


@pytest.mark.parametrize("what", ["multivariant", "playlist", "manifest"])
def test_head_of_what_changes_has_the_headers_of_a_get(live, what):
    get, head = http.fetch(live[1][what]), http.fetch(live[1][what], method="HEAD")
    assert head.status == 200 and head.body == b""
    for name in ("content-type", "cache-control", "access-control-allow-origin"):
        assert head.headers.get(name) == get.headers.get(name), name


@pytest.mark.parametrize("what", MEDIA)
@pytest.mark.parametrize("asked", ["bytes=0-0", "bytes=1-100", "bytes=200-", "bytes=-7", "bytes=5-99999999999"])
def test_a_single_range_is_answered_with_just_these_bytes(live, what, asked):
    whole = http.fetch(live[1][what]).body
    first, _, last = asked.removeprefix("bytes=").partition("-")
    start = len(whole) - int(last) if not first else int(first)
    end = min(int(last), len(whole) - 1) if first and last else len(whole) - 1
    answer = http.fetch(live[1][what], headers={"Range": asked})
    assert answer.status == 206
    assert answer.body == whole[start : end + 1]
    assert answer.headers["content-range"] == f"bytes {start}-{end}/{len(whole)}"
    head = http.fetch(live[1][what], method="HEAD", headers={"Range": asked})
    assert head.body == b"" and head.status in (200, 206)


@pytest.mark.parametrize("what", MEDIA)
def test_a_range_beyond_the_end_is_416_with_the_size(live, what):
    size = len(http.fetch(live[1][what]).body)
    answer = http.fetch(live[1][what], headers={"Range": f"bytes={size}-"})
    assert answer.status == 416
    assert answer.headers["content-range"] == f"bytes */{size}"


@pytest.mark.parametrize("asked", ["bytes=5-2", "bytes=a-b", "items=0-1", "bytes=", "bytes=0-1,3-4",
                                   "bytes=" + ",".join(f"{n}-{n}" for n in range(1000)), "bytes=-0",
                                   "bytes=99999999999999999999999-"])
def test_an_odd_range_is_ignored_or_refused_never_answered_wrongly(live, asked):
    whole = http.fetch(live[1]["segment"])
    answer = http.fetch(live[1]["segment"], headers={"Range": asked})
    assert answer.status in (200, 400, 416)
    if answer.status == 200:
        assert answer.body == whole.body


@pytest.mark.parametrize("what", OPEN)
def test_players_of_other_origins_may_read(live, what):
    answer = http.fetch(live[1][what], headers={"Origin": "https://player.example"})
    assert answer.headers["access-control-allow-origin"] in ("*", "https://player.example")
    exposed = {name.strip().lower() for name in answer.headers.get("access-control-expose-headers", "").split(",")}
    assert {"content-length", "content-range", "date"} <= exposed or "*" in exposed
    preflight = http.fetch(live[1][what], method="OPTIONS", headers={
        "Origin": "https://player.example", "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "range"})
    assert preflight.status == 204
    assert {"GET", "HEAD"} <= {m.strip() for m in preflight.headers["access-control-allow-methods"].split(",")}
    allowed = preflight.headers.get("access-control-allow-headers", "").lower().split(", ")
    # Players with CTA-5004 send playback data in their own fields.
    assert {"range", "cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"} <= set(allowed)


def test_errors_can_be_read_across_origins_too(live):
    weir, _ = live
    answer = weir.get("/live/nobody/index.m3u8", headers={"Origin": "https://player.example"})
    assert answer.status == 404
    assert answer.headers["access-control-allow-origin"] in ("*", "https://player.example")


def seconds_of(answer: http.Response) -> int:
    control = answer.headers.get("cache-control", "")
    if "no-store" in control or "no-cache" in control:
        return 0
    match = re.search(r"max-age=(\d+)", control)
    assert match, f"{answer.url}: Cache-Control {control!r}"
    return int(match.group(1))


def test_what_changes_is_cached_for_less_than_half_a_target_duration_and_media_for_long(live):
    for what in ("multivariant", "playlist", "manifest"):
        assert seconds_of(http.fetch(live[1][what])) <= 1, what
    for what in ("init", "segment", "track-init", "track-segment"):
        answer = http.fetch(live[1][what])
        assert seconds_of(answer) >= 60 and "immutable" in answer.headers["cache-control"], what
    weir, urls = live
    future = urls["segment"].rsplit("/", 1)[0] + "/999999.m4s"
    answer = http.fetch(future)
    assert answer.status == 404
    assert seconds_of(answer) <= 1
    assert seconds_of(http.fetch(urls["time"])) == 0


@pytest.mark.parametrize("what", TEXT)
def test_text_is_gzipped_when_asked_for_and_media_never(live, what):
    answer = http.fetch(live[1][what], headers={"Accept-Encoding": "gzip"})
    assert "accept-encoding" in answer.headers.get("vary", "").lower()
    if answer.headers.get("content-encoding") == "gzip":
        assert gzip.decompress(answer.body)
    else:
        assert len(answer.body) < 1024, "only what a packet holds anyway is sent as it is"
    plain = http.fetch(live[1][what], headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert "accept-encoding" in plain.headers.get("vary", "").lower()
    refused = http.fetch(live[1][what], headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in refused.headers


@pytest.mark.parametrize("what", MEDIA)
def test_media_is_never_gzipped(live, what):
    assert "content-encoding" not in http.fetch(live[1][what], headers={"Accept-Encoding": "gzip"}).headers


def test_one_connection_serves_many_requests_also_pipelined(live):
    weir, urls = live
    host, port = weir.web.removeprefix("http://").rsplit(":", 1)
    path = urls["segment"].removeprefix(weir.web)
    size = len(http.fetch(urls["segment"]).body)
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(request * 5)
        got = b""
        while len(got) < 5 * size:
            piece = connection.recv(1 << 16)
            assert piece, f"closed after {len(got)} bytes"
            got += piece
            if got.count(b"HTTP/1.1 200") == 5 and len(got) >= 5 * size + 5 * 100:
                break
        assert got.count(b"HTTP/1.1 200") == 5


def test_http_1_0_and_connection_close_end_the_connection(live):
    weir, _ = live
    for request in (b"GET /healthz HTTP/1.0\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
        began = time.monotonic()
        assert b" 200 " in http.raw(weir.web, request, timeout=20).split(b"\r\n")[0]
        assert time.monotonic() - began < 15, "it was kept open"


def test_the_clock_is_the_wall_clock_and_is_served_without_delay(live):
    weir, urls = live
    before = time.time()
    told = dash.moment(http.fetch(urls["time"]).text).timestamp()
    assert before - 0.1 <= told <= time.time() + 0.1


def test_the_manifest_names_a_clock_that_can_be_read(live):
    weir, urls = live
    answer = http.fetch(urls["manifest"])
    scheme, value = dash.parse(answer.text, answer.url).timing[0]
    assert scheme in ("urn:mpeg:dash:utc:http-iso:2014", "urn:mpeg:dash:utc:http-xsdate:2014")
    from urllib.parse import urljoin
    assert http.fetch(urljoin(answer.url, value)).status == 200


@pytest.mark.quiet
@pytest.mark.long
def test_a_listed_segment_comes_at_once(live):
    began = time.monotonic()
    http.fetch(live[1]["segment"]).good()
    assert time.monotonic() - began < 0.5


def test_the_page_is_protected_by_a_content_security_policy(live):
    policy = http.fetch(live[1]["page"]).headers["content-security-policy"]
    assert "default-src 'self'" in policy and "media-src 'self' blob:" in policy and "frame-ancestors" in policy


def test_the_catalogue_names_the_recording(live):
    weir, urls = live
    (entry,) = weir.recordings_of("short")
    assert entry["url"] == f"/recordings/short/{entry['file']}"
    assert entry["bytes"] == len(http.fetch(urls["recording"]).body)


@pytest.mark.quiet
@pytest.mark.long
def test_stream_mp4_begins_at_a_key_frame_within_a_quarter_of_a_second(live):
    began, data = time.monotonic(), b""
    stream = http.Stream(f"{live[0].web}/live/{NAME}/stream.mp4")
    assert stream.status == 200
    while b"mdat" not in data:
        data += stream.answer.read1(65536)
    took = time.monotonic() - began
    stream.close()
    assert took < 0.25


def test_viewers_are_counted(live):
    weir, _ = live
    http.fetch(live[1]["playlist"])
    assert json.loads(http.fetch(live[1]["api"]).body)["streams"]
    assert weir.wait(lambda: weir.stream(NAME)["viewers"] >= 1, 10, "a viewer is counted")


def test_unknown_streams_and_pages_are_404(live):
    weir, _ = live
    for path in ("/live/nobody/index.m3u8", "/live/nobody/manifest.mpd", "/live/nobody/stream.mp4", "/nothing",
                 "/live/cam/999/av/index.m3u8", "/recordings/nobody/20260101T000000Z.mp4"):
        assert weir.get(path).status == 404, path


# Addresses that people type

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_addresses_of_the_api_may_end_with_a_slash(live):
    weir, _ = live
    for path in ("/api/v1/streams", f"/api/v1/streams/{NAME}", "/api/v1/recordings", "/api/v1"):
        assert set(weir.json(f"{path}/")) == set(weir.json(path)), path
    assert weir.get("/api/").status == 200
    for path in ("/healthz", "/readyz", "/metrics", "/time"):
        assert weir.get(f"{path}/").status == weir.get(path).status == 200, path
    # The response asks for the token; the address is not refused.
    assert weir.get("/api/v1/sources/").status == weir.get("/api/v1/sources").status == 403


@pytest.mark.parametrize("path, status, place", [
    ("/recordings/", 308, "/recordings"), (f"/watch/{NAME}/?player=hls", 308, f"/watch/{NAME}?player=hls"),
    ("/watch", 307, "/"), ("/watch/", 307, "/"), (f"/live/{NAME}", 307, f"/watch/{NAME}"), (f"/live/{NAME}/", 307, f"/watch/{NAME}"),
])
def test_a_browser_is_sent_on_from_nearly_the_right_address(live, path, status, place):
    answer = live[0].get(path, headers=BROWSER)
    assert (answer.status, answer.headers["location"]) == (status, place)
    assert live[0].get(place, headers=BROWSER).good().headers["content-type"].startswith("text/html")


def test_players_are_sent_nowhere(live):
    for path in (f"/live/{NAME}", f"/live/{NAME}/", f"/live/{NAME}/index.m3u8/"):
        assert live[0].get(path).status == 404, path


@pytest.mark.parametrize("path", ["/nope", "/watch/..bad", "/recordings/cam/nothing.mp4", "/recordings/a/b/c", "/web/none.js"])
def test_a_browser_that_went_astray_gets_a_page_with_a_way_out(live, path):
    weir, _ = live
    page = weir.get(path, headers=BROWSER)
    assert page.status == 404 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store" and page.headers["vary"].split(", ")[-1] == "Accept"
    assert 'href="/"' in page.text and 'href="/recordings"' in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for program in (weir.get(path), weir.get(path, headers={"Accept": "*/*"})):
        # A cache between them must not give one client the response for the other.
        assert (program.headers["content-type"], program.headers["vary"]) == ("application/problem+json", "Accept")


def test_players_never_get_a_page_in_place_of_media(live):
    answer = live[0].get("/live/nobody/index.m3u8", headers=BROWSER)
    assert answer.status == 404 and answer.headers["content-type"] == "application/problem+json"


def test_every_address_of_the_api_answers_as_it_says(live):
    weir, _ = live
    listed = weir.json("/api/v1")["addresses"]
    assert len(listed) > 10
    for entry in listed:
        path = re.sub(r"\{\w+\}", "x", entry["path"])
        for last in path.rsplit("/", 1)[1].split("|"):
            url = f"{path.rsplit('/', 1)[0]}/{last}"
            allowed = entry["methods"]
            options = weir.get(url, method="OPTIONS")
            assert options.status == 204 and options.headers["allow"] == allowed, url
            assert "access-control-allow-methods" not in options.headers, url
            for method in ("GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"):
                answer = weir.get(url, method=method)
                if method in allowed.split(", "):
                    assert answer.status != 405 and '"code":"no-such-address"' not in answer.text, (method, url)
                else:
                    assert answer.status == 405 and answer.headers["allow"] == allowed, (method, url)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v2/streams", "/api/v1/streams/cam/recording/pause"])
def test_what_is_no_address_of_the_api_is_none_for_any_method(live, path, method):
    answer = live[0].get(path, method=method)
    assert answer.status == 404 and "no such address" in json.loads(answer.body)["detail"]


#: An address outside of the API → the methods that it allows; None where there is no such address.
PUBLIC = {
    "/": "GET, HEAD, OPTIONS", f"/watch/{NAME}": "GET, HEAD, OPTIONS", "/publish": "GET, HEAD, OPTIONS",
    "/recordings": "GET, HEAD, OPTIONS", "/healthz": "GET, HEAD, OPTIONS", "/time": "GET, HEAD, OPTIONS",
    "/web/weir-player.js": "GET, HEAD, OPTIONS", f"/live/{NAME}/index.m3u8": "GET, HEAD, OPTIONS",
    f"/live/{NAME}/status.json": "GET, HEAD, OPTIONS", f"/live/{NAME}/ingest": "POST, PUT, OPTIONS",
    f"/live/{NAME}/ingest/": "POST, PUT, OPTIONS",
    "/nowhere": None, f"/live/{NAME}/nothing": None, f"/live/{NAME}/index.m3u8/": None, f"/live/{NAME}/epoch/av/0.txt": None,
    "/recordings/cam": None, "/watch/a%20b": None, "/time/now": None,
}


@pytest.mark.parametrize("path", PUBLIC)
def test_every_address_outside_of_the_api_answers_as_it_says(live, path):
    allowed = PUBLIC[path]
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = live[0].get(path, method=method)
        if allowed is None:
            assert answer.status == 404, method
        elif method == "OPTIONS":
            assert answer.status == 204 and answer.headers["allow"] == allowed
        elif method in allowed.split(", "):
            assert answer.status not in (404, 405), method
        else:
            assert answer.status == 405 and answer.headers["allow"] == allowed, method


# The server's own address


def clocks(weir, name=NAME):
    return dash.parse(weir.get(f"/live/{name}/manifest.mpd").good().text, f"{weir.web}/live/{name}/manifest.mpd").timing


def test_the_manifest_has_a_clock_to_ask_and_last_one_for_players_that_resolve_no_address(live):
    weir, _ = live
    began = time.monotonic()
    (asked, address), (told, value) = clocks(weir)
    assert (asked, address) == ("urn:mpeg:dash:utc:http-iso:2014", "/time")
    assert told == "urn:mpeg:dash:utc:direct:2014"
    # As in docs/playback.md: late by the age of the manifest, and never early.
    late = (dash.moment(weir.get("/time").text) - dash.moment(value)).total_seconds()
    assert 0 <= late <= 4 + time.monotonic() - began


def test_a_public_address_is_the_only_clock_and_what_the_api_tells_pages(start):
    weir = start("--public-url", "https://live.example.com/", "--source", f"demo=file:{sources.source('loop')}", "--no-record")
    weir.wait(lambda: weir.get("/live/demo/manifest.mpd").status == 200, 15, "a manifest")
    assert clocks(weir, "demo") == [("urn:mpeg:dash:utc:http-iso:2014", "https://live.example.com/time")]
    assert weir.json("/api/v1/streams")["publicURL"] == "https://live.example.com"
    assert "https://live.example.com/watch/demo" in weir.text("out")


def test_the_host_of_a_request_enters_no_answer(live):
    weir, urls = live
    for what, url in urls.items():
        # A name that each address is answered under.
        answer = http.fetch(url, headers={"Host": "evil.internal:666", "X-Forwarded-Host": "evil.example"}).good()
        assert b"evil" not in answer.body and "evil" not in str(answer.headers), what
