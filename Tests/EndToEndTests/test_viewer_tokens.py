"""Tokens of viewers: what they admit to, in each form of playing, and what becomes of others. PyJWT issues them."""

import asyncio
import base64
import collections
import contextlib
import itertools
import json
import os
import re
import subprocess
import time
import urllib.parse
from http.client import HTTPConnection, IncompleteRead

import jwt
import pytest
import watching
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

import test_cdn
from harness import dash, hls, http, llhls, mpd_players, publishers, toll, tools
from harness.key_set import KeySet

SECRET = "viewer-secret-0123456789-abcdefghij"
ADMIN = "sesame-0815-4711"
NAME = "cam-1"
OTHER = "studio"


def token(seconds: float = 600, key=SECRET, algorithm: str = "HS256", headers: dict | None = None, **claims) -> str:
    claims.setdefault("weir", {"watch": "cam-*"})
    return jwt.encode({"sub": "ann", "exp": time.time() + seconds, **claims}, key, algorithm, headers=headers)


def slowed(status) -> None:
    """Twenty wrong tokens are refused, and more of them wait: a try comes back each second. `status`: of a token."""
    began = time.monotonic()
    statuses = [status(f"wrong-token-number-{number}") for number in range(30)]
    assert statuses[:20] == [403] * 20 and set(statuses) <= {403, 429}, statuses
    assert statuses.count(403) <= 21 + time.monotonic() - began, statuses


def spent(status, numbers) -> bool:
    """Sends wrong tokens until one has to wait. `status`: of a token, `numbers`: of those that were sent."""
    return any(status(f"wrong-once-more-{next(numbers)}") == 429 for _ in range(30))


@contextlib.contextmanager
def served(weir, *names):
    """Publishes the names, and waits until they can be played."""
    running = [publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1) for name in names]
    try:
        admin = {"Authorization": f"Bearer {ADMIN}"}
        for name in names:
            weir.wait(lambda name=name: weir.get(f"/live/{name}/index.m3u8", headers=admin).status == 200, 20, f"{name} is live")
        yield
    finally:
        for publisher in running:
            publisher.kill()


@pytest.fixture(scope="module")
def guarded(start_shared):
    """Streams for viewers with a token, and one that is open. The debug log has every request."""
    weir = start_shared(
        "--log-level", "debug", "--target-duration", "2", "--rewind", "60s", "--record-mode", "auto",
        environment={"WEIR_VIEWERS": "token", "WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    weir.good = token()
    weir.secrets += [SECRET, ADMIN, weir.good, weir.good.split(".")[2]]
    with served(weir, NAME, OTHER):
        yield weir


@pytest.fixture
def gate(guarded):
    """The proxy that nothing passes without the token."""
    proxy = toll.Toll(guarded.web, guarded.good)
    yield proxy
    proxy.stop()
    assert proxy.refused == []


def media_playlist(base: str, name: str = NAME) -> str:
    return hls.first_playlist(f"{base}/live/{name}/index.m3u8")


# MARK: Who may


#: Whether it is judged how soon something happens: where nothing else runs.
in_time = pytest.mark.parametrize("in_time", [False, pytest.param(True, marks=[pytest.mark.quiet, pytest.mark.long])])


#: Everything of a stream.
def addresses(weir, name: str) -> list[str]:
    return [f"/live/{name}/index.m3u8", f"/live/{name}/manifest.mpd", f"/live/{name}/stream.mp4", f"/live/{name}/dvr.m3u8",
            f"/live/{name}/thumbnail.jpg", f"/live/{name}/any/av/1.m4s", f"/watch/{name}", f"/recordings/{name}/x.mp4",
            f"/embed/{name}", f"/live/{name}/status.json", f"/recordings/{name}/x.jpg", f"/recordings/{name}/x/index.m3u8", f"/api/v1/streams/{name}",
            f"/api/v1/recordings/{name}/x.mp4", f"/api/v1/recordings/{name}/x.mp4/clip"]


def test_without_a_token_nothing_of_the_stream_is_served(guarded):
    for path in addresses(guarded, NAME) + addresses(guarded, "no-such-stream"):
        for prefix in ("", f"/~{token(weir={'watch': 'other'})}"):
            answer = guarded.get(prefix + path)
            assert answer.status == 403 and answer.headers["cache-control"] == "no-store", path
            assert answer.json["title"] == "Not allowed" and answer.json["detail"], path
    for path in ("/", "/recordings", "/time", "/healthz", "/web/ui/style.css", "/api/v1/storage", "/metrics"):
        assert guarded.get(path).status == 200, path


def test_the_token_of_one_stream_is_not_one_of_another(guarded):
    for name, status in ((NAME, 200), (OTHER, 403)):
        assert guarded.get(f"/~{guarded.good}/live/{name}/index.m3u8").status == status
        assert guarded.get(f"/live/{name}/index.m3u8", headers={"Authorization": f"Bearer {guarded.good}"}).status == status
        assert guarded.get(f"/live/{name}/index.m3u8", headers={"Authorization": f"Bearer {ADMIN}"}).status == 200


def test_a_response_to_a_bearer_is_kept_by_no_shared_cache(guarded):
    path = urllib.parse.urlsplit(media_playlist(f"{guarded.web}/~{guarded.good}")).path.split("/", 2)[2]
    by_path = guarded.get(f"/~{guarded.good}/{path}").good()
    by_field = guarded.get(f"/{path}", headers={"Authorization": f"Bearer {guarded.good}"}).good()
    assert by_path.headers["cache-control"].startswith("public, ")
    assert by_field.headers["cache-control"].startswith("private, ")
    assert by_field.headers["access-control-allow-origin"] == "*"


def test_lists_leave_out_what_the_asker_may_not_see(guarded):
    guarded.wait(lambda: guarded.get("/api/v1/recordings", headers={"Authorization": f"Bearer {ADMIN}"}).json["total"] >= 2,
                 20, "two recordings")
    for prefix, field, names in (
            ("", None, set()), (f"/~{guarded.good}", None, {NAME}), ("", guarded.good, {NAME}), ("", ADMIN, {NAME, OTHER}),
            (f"/~{guarded.good}", ADMIN, {NAME, OTHER}), ("", "wrong", set())):
        fields = {"Authorization": f"Bearer {field}"} if field else {}
        streams = guarded.get(f"{prefix}/api/v1/streams", headers=fields).good().json["streams"]
        assert {stream["name"] for stream in streams} == names
        page = guarded.get(f"{prefix}/api/v1/recordings", headers=fields).good().json
        assert {recording["stream"] for recording in page["recordings"]} == names and page["total"] >= len(names)
        for url in [url for stream in streams for url in stream["urls"].values()]:
            assert url.startswith(prefix + "/"), url


def test_redirections_keep_the_token_and_pages_send_no_referrer(guarded):
    base = f"/~{guarded.good}"
    page = {"Accept": "text/html"}
    assert guarded.get(f"{base}/live/{NAME}", headers=page).headers["location"] == f"{base}/watch/{NAME}"
    assert guarded.get(f"{base}/watch/{NAME}/").headers["location"] == f"{base}/watch/{NAME}"
    assert guarded.get(f"{base}/watch").headers["location"] == f"{base}/"
    for path in (f"{base}/watch/{NAME}", f"{base}/", f"{base}/recordings"):
        assert guarded.get(path).good().headers["referrer-policy"] == "no-referrer"


def test_http2_knows_the_same_tokens(guarded, start, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    weir = start("--no-record", "--https", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key, "--viewers", "token",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN}, listeners=("http", "https", "rtmp"))
    with served(weir, NAME):
        for prefix, status in ((f"/~{guarded.good}", "200"), ("/~wrong", "403"), ("", "403")):
            done = subprocess.run(
                ["curl", "-sk", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}",
                 f"{weir.addresses['https']}{prefix}/live/{NAME}/index.m3u8"], capture_output=True, text=True, check=True)
            assert done.stdout == f"2 {status}"


# MARK: Each form of playing


def test_low_latency_hls(gate):
    player = llhls.Player(media_playlist(gate.base)).play(60, states=20).judge_media()
    assert player.problems == [] and len(player.playlists) > 10


def test_ordinary_hls_and_the_end_of_the_buffer(gate):
    for path in ("index.m3u8", "dvr.m3u8"):
        done = subprocess.run(
            ["/usr/bin/ffmpeg", "-v", "error", "-nostdin", "-i", f"{gate.base}/live/{NAME}/{path}", "-t", "3", "-f", "framemd5", "-"],
            capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert len([line for line in done.stdout.splitlines() if not line.startswith(b"#")]) > 90


def test_dash_with_patches(gate):
    url = f"{gate.base}/live/{NAME}/manifest.mpd"
    follower = mpd_players.Follower(url, "rfc5261")
    end = time.monotonic() + 30
    while follower.patched < 3 and time.monotonic() < end:
        time.sleep(0.5)
        follower.update()
    assert follower.patched >= 3
    manifest = dash.parse(http.fetch(url).good().text, url)
    for representation in manifest.representations:
        http.fetch(representation.init).good()
        http.fetch(representation.entries[0].url).good()


def test_progressive(gate):
    done = subprocess.run(["/usr/bin/ffmpeg", "-v", "error", "-nostdin", "-i", f"{gate.base}/live/{NAME}/stream.mp4", "-t", "2",
                           "-f", "framemd5", "-"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_replay_and_clip_of_a_recording(guarded, gate):
    recording = guarded.wait(
        lambda: next(iter(guarded.get(f"/~{guarded.good}/api/v1/recordings?stream={NAME}").json["recordings"]), None), 20,
        "a recording")
    stem = recording["file"].removesuffix(".mp4")
    index = f"{gate.base}/recordings/{NAME}/{stem}/index.m3u8"
    done = subprocess.run(["/usr/bin/ffmpeg", "-v", "error", "-nostdin", "-i", index, "-t", "1", "-f", "framemd5", "-"],
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    http.fetch(f"{gate.base}/recordings/{NAME}/{stem}/manifest.mpd").good()
    clip = http.fetch(f"{gate.base}/api/v1/recordings/{NAME}/{recording['file']}/clip?from=0&to=2").good()
    assert clip.body[4:8] == b"ftyp"


def test_parts_as_byte_ranges(start):
    weir = start("--no-record", "--part-addressing", "byterange", "--hls-layout", "separate", "--viewers", "token",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    good = token()
    weir.secrets.append(good)
    with served(weir, NAME):
        proxy = toll.Toll(weir.web, good)
        player = llhls.Player(media_playlist(proxy.base)).play(60, states=20).judge_media()
        assert player.problems == [] and proxy.refused == []
        proxy.stop()


def test_the_watch_page(gate, chromium):
    for way in ("mse", "hls"):
        chromium.open(f"{gate.base}/watch/{NAME}?player={way}")
        first = watching.wait_phase(chromium, "playing")
        chromium.wait(f"document.querySelector('#video').currentTime > {first['time'] + 2}")
    links = chromium.evaluate("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href') && a.href)")
    assert all(link.startswith(gate.base + "/") for link in links if link), links
    shown = chromium.evaluate("document.body.innerText + [...document.querySelectorAll('input')].map((i) => i.value)")
    assert "~" not in shown, "what is shown to be shared has no token"
    assert chromium.errors == []
    watching.leave(chromium)


# MARK: The end of a token


@in_time
def test_what_is_under_way_ends_with_the_token(guarded, in_time):
    short = token(seconds=-5)  # for 5 s more, by the allowed difference of clocks
    guarded.secrets.append(short)
    base = f"{guarded.web}/~{short}"
    ends = time.monotonic() + 5
    stream = http.Stream(f"{base}/live/{NAME}/stream.mp4")
    assert stream.status == 200
    with contextlib.suppress(ConnectionError, IncompleteRead):
        stream.read(20)
    assert -1 < time.monotonic() - ends < (2 if in_time else 10)
    answer = guarded.get(f"/~{short}/live/{NAME}/index.m3u8")
    assert answer.status == 403 and "expired" in answer.json["detail"]


@in_time
def test_a_request_that_waits_ends_with_the_token(start, in_time):
    weir = start("--no-record", "--viewers", "token", "--segment-duration", "10s", "--target-duration", "20",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        weir.wait(lambda: weir.get(f"/live/{NAME}/index.m3u8", headers={"Authorization": f"Bearer {ADMIN}"}).status == 200, 30,
                  "the stream is live")
        url = media_playlist(f"{weir.web}/~{token()}")
        newest = hls.parse_media(http.fetch(url + "?_HLS_msn=0&_HLS_part=0").good().text, url)
        path = urllib.parse.urlsplit(url).path.split("/", 2)[2]
        begins = time.monotonic()
        answer = http.fetch(f"{weir.web}/~{token(seconds=-8)}/{path}?_HLS_msn={len(newest.segments) + 1}", timeout=30)
        assert answer.status == 403 and answer.json["detail"] == "The token has expired or was revoked."
        assert 1 < time.monotonic() - begins < (4.5 if in_time else 12)
    finally:
        publisher.kill()


# MARK: Caches in front


@pytest.fixture(params=test_cdn.CACHES)
def cache(request, guarded, tmp_path):
    """A cache in front of the guarded server."""
    os.chmod(tmp_path, 0o755)
    made = test_cdn.CACHES[request.param](tmp_path, guarded.web)
    yield made
    made.stop()


def first_media(url: str) -> str:
    """The path of a media playlist's first segment, without the token in front."""
    playlist = llhls.parse(http.fetch(url).good().text, url)
    return urllib.parse.urlsplit(urllib.parse.urljoin(url, playlist.segments[0].uri)).path.split("/", 2)[2]


def test_behind_a_cache_good_tokens_share_the_objects_and_others_get_none(guarded, cache):
    viewers = [token(sub=f"{cache.web}-{number}") for number in range(5)]
    url = media_playlist(f"{cache.web}/~{viewers[0]}")
    path = first_media(url)
    before = test_cdn.requests(guarded)
    bodies = {http.fetch(f"{cache.web}/~{viewer}/{path}").good().body for viewer in viewers for _ in range(4)}
    for refused in ("wrong", token(weir={"watch": "other"}), token(seconds=-60)):
        assert http.fetch(f"{cache.web}/~{refused}/{path}").status == 403
    assert http.fetch(f"{cache.web}/{path}").status == 403
    asked = test_cdn.requests(guarded) - before
    # One for the media, one without a token. Each token is asked about once, and one of them was known.
    assert len(bodies) == 1 and asked[f"/{path}"] <= 2, asked
    assert asked["/api/v1/authorize"] <= len(viewers) + 3, asked
    # Players of all tokens share the state of the stream, in which is no token.
    path, before, begin = f"/live/{NAME}/status.json", test_cdn.requests(guarded), time.monotonic()
    states = [http.fetch(f"{cache.web}/~{viewer}{path}").good() for _ in range(20) for viewer in viewers]
    asked = (test_cdn.requests(guarded) - before)[path]
    assert asked <= cache.allowed * (time.monotonic() - begin) + 1, asked
    assert all(state.json["urls"]["hls"] == f"/live/{NAME}/index.m3u8" and "~" not in state.text for state in states)
    assert http.fetch(cache.web + path).status == 403
    stream = http.Stream(f"{cache.web}/~{viewers[0]}/live/{NAME}/stream.mp4")
    assert stream.status == 200 and stream.answer.read1(100)
    stream.close()


def test_behind_a_cache_a_token_reaches_no_other_stream_by_an_escaped_slash(guarded, cache):
    both, own = token(weir={"watch": "*"}), token(weir={"watch": NAME})
    url = media_playlist(f"{cache.web}/~{both}", OTHER)
    media = first_media(url)
    # What somebody else may see is in the cache when it is asked for.
    for path in (media, f"live/{OTHER}/index.m3u8"):
        for border in ("%2F", "%2f", "%252F", "/x/..%2f", "%3F/"):
            assert http.fetch(f"{cache.web}/~{both}/{path}").good().status == 200
            crossed = http.fetch(f"{cache.web}/~{own}{border}live%2F{NAME}/{path}")
            assert crossed.status in (400, 403, 404), (border, path)
            crossed = http.fetch(f"{cache.web}/~{own}/live/{NAME}{border}..%2F{OTHER}/{path.split('/', 2)[2]}")
            assert crossed.status in (400, 403, 404), (border, path)
        assert http.fetch(f"{cache.web}/~{own}/{path}").status == 403


# What is in the cache has to grow old for each spelling. Without tokens test_cdn.py judges the same.
@pytest.mark.long
def test_behind_a_cache_another_spelling_does_not_change_what_other_tokens_get(guarded, cache):
    prefix = f"/~{guarded.good}"
    path = urllib.parse.urlsplit(media_playlist(guarded.web + prefix)).path.removeprefix(prefix)
    assert test_cdn.spoilt(guarded, cache, prefix, path) == []


def test_behind_a_cache_a_bearer_is_not_answered_with_what_others_were_refused(guarded, cache):
    index = f"{cache.web}/live/{NAME}/index.m3u8"
    for _ in range(5):
        assert http.fetch(index).status == 403
        assert http.fetch(index, headers={"Authorization": f"Bearer {guarded.good}"}).status == 200
    assert http.fetch(index).status == 403, "what a bearer got is for nobody else"


@pytest.mark.parametrize("kind", test_cdn.CACHES)
def test_behind_a_cache_wrong_tokens_count_for_who_sends_them(start, tmp_path, kind):
    os.chmod(tmp_path, 0o755)
    weir = start("--no-record", "--viewers", "token", "--trusted-proxy", "127.0.0.1",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    cache = None
    with served(weir, NAME):
        try:
            cache = test_cdn.CACHES[kind](tmp_path, weir.web)

            def ask(viewer: str, source: str):
                connection = HTTPConnection("127.0.0.1", cache.port, timeout=10, source_address=(source, 0))
                try:
                    connection.request("GET", f"/~{viewer}/live/{NAME}/index.m3u8")
                    answer = connection.getresponse()
                    answer.read()
                    return answer
                finally:
                    connection.close()

            def status(text: str) -> int:
                return ask(text, "127.0.0.2").status

            slowed(status)
            # What came back meanwhile on a busy machine is used up first.
            numbers = itertools.count()
            waits = weir.wait(
                lambda: (answer := ask(f"more-{next(numbers)}", "127.0.0.2")).status == 429 and answer, 10, "wrong ones wait")
            assert int(waits.getheader("Retry-After")) > 0
            weir.wait(lambda: spent(status, numbers) and status(token(sub=f"new-{next(numbers)}")) == 429, 10, "a new token waits")
            # The same edge, another viewer, whose token weir has not seen yet.
            assert ask(token(sub="another"), "127.0.0.3").status == 200
        finally:
            if cache is not None:
                cache.stop()


def test_behind_a_cache_expired_tokens_stop_in_time_for_playlists_and_media(guarded, cache):
    url = media_playlist(f"{cache.web}/~{guarded.good}")
    media = first_media(url)
    # weir allows the issuer's clock ten seconds: this token holds for six seconds more.
    brief, end = token(seconds=-4, sub=f"brief-{cache.web}"), time.monotonic() + 6
    wanted = [f"live/{NAME}/index.m3u8", urllib.parse.urlsplit(url).path.split("/", 2)[2], media]
    assert [http.fetch(f"{cache.web}/~{brief}/{path}").status for path in wanted] == [200] * 3
    guarded.wait(lambda: time.monotonic() > end + 1.5, 10, "the end of the token")
    assert [http.fetch(f"{cache.web}/~{brief}/{path}").status for path in wanted] == [403] * 3


#: Seconds between the positions that all viewers ask for, and how many there are.
STEP, STEPS, CROWD = 2, 16, 1000


def origin_requests(weir) -> collections.Counter:
    """What weir was asked for: paths without their epoch, so that two streams can be compared."""
    counts: collections.Counter = collections.Counter()
    for path, count in test_cdn.requests(weir).items():
        if path.startswith("/live/"):
            counts["media" if path.endswith((".m4s", ".mp4")) else "playlist"] += count
        elif path == "/api/v1/authorize":
            counts["authorize"] += count
    return counts


def play_in_step(weir, cache, name: str, prefixes: list[str]) -> dict[str, int]:
    """All viewers ask for the same positions and the same media, at the same time. Returns what weir was asked for meanwhile."""
    admin = {"Authorization": f"Bearer {ADMIN}"}
    index = f"{weir.web}/live/{name}/index.m3u8"
    media = hls.parse_multivariant(http.fetch(index, headers=admin).good().text, index).variants[0].uri
    path = f"/live/{name}/{media}"
    folder = path.rsplit("/", 1)[0]
    first = llhls.parse(http.fetch(weir.web + path, headers=admin).good().text, weir.web + path).next[0] + 1
    before = origin_requests(weir)
    for segment in range(first, first + STEPS):
        for wanted in (f"{path}?_HLS_msn={segment}&_HLS_part=2", f"{folder}/{segment}.0.m4s"):
            answers = asyncio.run(test_cdn.crowd(cache.port, [prefix + wanted for prefix in prefixes]))
            statuses = collections.Counter(status for status, *_ in answers)
            assert statuses == {200: len(prefixes)}, statuses
    # The one request for the media playlist's position above is the test's own.
    return dict(origin_requests(weir) - before)


@pytest.mark.skipif(not os.environ.get("WEIR_FAULTS"), reason="two minutes: make faults")
def test_a_thousand_tokens_behind_varnish_cost_what_none_cost(start, tmp_path):
    """The same requests for media and playlists as of 1,000 viewers without tokens; one question for each token in 10 s; and a token
    that is revoked stops within 11 s."""
    (tmp_path / "state").mkdir()
    os.chmod(tmp_path, 0o755)
    config = tmp_path / "weir.yaml"
    config.write_text(json.dumps({"streams": {"*": {"segmentDuration": f"{STEP}s"}, "cam-*": {"viewers": "token"}}}))
    weir = start("--no-record", "--log-level", "debug", "--config", config, "--state", tmp_path / "state",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    weir.secrets += [SECRET, ADMIN]
    cache = None
    with served(weir, NAME, OTHER):
        try:
            cache = test_cdn.Varnish(tmp_path, weir.web)
            began = time.monotonic()
            open_to_all = play_in_step(weir, cache, OTHER, [""] * CROWD)
            tokens = [token(sub=f"viewer-{number}") for number in range(CROWD)]
            middle = time.monotonic()
            guarded = play_in_step(weir, cache, NAME, [f"/~{one}" for one in tokens])
            seconds = time.monotonic() - middle
            asked = guarded.pop("authorize")
            print(f"{CROWD} viewers, {STEPS} positions of {STEP} s in {middle - began:.0f} and {seconds:.0f} s: without tokens {open_to_all}, "
                  f"with {CROWD} tokens {guarded} and {asked} questions, {asked / CROWD / (seconds / 10):.2f} for each token in 10 s")
            assert guarded == open_to_all
            assert CROWD <= asked <= CROWD * (seconds // 10 + 1)

            admin = {"Authorization": f"Bearer {ADMIN}"}
            made = weir.get("/api/v1/keys", method="POST", headers=admin,
                            body=json.dumps({"name": "ann", "watch": ["cam-*"]}).encode()).good().json["key"]
            weir.secrets.append(made)
            index = f"{cache.web}/~{made}/live/{NAME}/index.m3u8"
            late = []
            for _ in range(3):
                end = time.monotonic() + 3
                while time.monotonic() < end:
                    assert http.fetch(index).status == 200
                    time.sleep(0.05)
            weir.get("/api/v1/keys/ann", method="DELETE", headers=admin).good()
            revoked = time.monotonic()
            while http.fetch(index).status == 200:
                late.append(time.monotonic() - revoked)
                assert late[-1] < 11
                time.sleep(0.05)
            print(f"a revoked token was refused {late[-1] if late else 0:.1f} s later at the latest")
            assert http.fetch(index).status == 403
        finally:
            if cache is not None:
                cache.stop()


# MARK: Hostile tokens


def unsigned(header: dict, claims: dict, signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def test_hostile_tokens_are_refused_and_stop_nobody(start):
    weir = start("--no-record", "--log-level", "debug", "--viewers", "token",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    good = token()
    weir.secrets.append(good)
    with served(weir, NAME):
        claims = {"exp": time.time() + 60, "weir": {"watch": "*"}}
        hostile = [
            unsigned({"alg": "none"}, claims), unsigned({"alg": "None"}, claims), unsigned({"alg": "HS256"}, claims),
            token(key="another-secret-0123456789-abcdefghi"), token(algorithm="HS512"), token(seconds=-11),
            token(nbf=time.time() + 60), token(aud="others"), "x", "%00", "..", "~", "a" * 1024, good + "x", good[:-2]]
        for text in hostile:
            for answer in (weir.get(f"/~{text}/live/{NAME}/index.m3u8"),
                           weir.get(f"/live/{NAME}/index.m3u8", headers={"Authorization": f"Bearer {text}"})):
                assert answer.status in (400, 403, 429), text
        # Longer ones do not fit into a path, or into a request at all.
        assert weir.get(f"/~{'a' * 1025}/live/{NAME}/index.m3u8").status in (403, 429)
        for size in (5_000, 100_000, 1_000_000):
            with contextlib.suppress(ConnectionError):
                assert weir.get(f"/~{'a' * size}/live/{NAME}/index.m3u8").status in (414, 431)
            with contextlib.suppress(ConnectionError):
                assert weir.get(f"/live/{NAME}/index.m3u8", headers={"Authorization": "Bearer " + "a" * size}).status in (403, 429, 431)
        assert not any("/~" in line for _, line in list(weir.lines)), "no address with a token is in the log"


def test_an_address_with_many_wrong_tokens_waits_and_tokens_that_are_known_go_on(start, tmp_path):
    (tmp_path / "state").mkdir()
    weir = start("--no-record", "--log-level", "debug", "--viewers", "token", "--state", tmp_path / "state",
                 environment={"WEIR_JWT_SECRET": SECRET, "WEIR_ADMIN_TOKEN": ADMIN})
    known, new = token(sub="known"), token(sub="new")
    wrong = [f"wrong-token-number-{number}" for number in range(30)]
    weir.secrets += [SECRET, ADMIN, known, new, *wrong]

    def status(text: str) -> int:
        return weir.get(f"/~{text}/live/{NAME}/index.m3u8").status

    with served(weir, NAME):
        assert status(known) == 200
        slowed(status)
        # What came back meanwhile on a busy machine is used up first.
        numbers = itertools.count()
        weir.wait(lambda: spent(status, numbers) and status(token(sub=f"new-{next(numbers)}")) == 429, 10, "a new token waits")
        assert status(known) == 200
        # Longer ones than a path takes count as a bearer, and are verified there.
        bearer = token(sub="x" * 1500)
        assert len(bearer) > 1024

        def as_bearer(text: str) -> int:
            return weir.get(f"/live/{NAME}/index.m3u8", headers={"Authorization": f"Bearer {text}"}).status

        weir.wait(lambda: spent(status, numbers) and as_bearer(token(sub=f"{next(numbers)}" + "x" * 1500)) == 429, 10,
                  "a new bearer waits")
        assert as_bearer(known) == 200
        weir.wait(lambda: status(new) == 200, 30, "the address is forgiven", every=2)
        assert weir.get(f"/live/{NAME}/index.m3u8", headers={"Authorization": f"Bearer {bearer}"}).status == 200
        weir.secrets.append(bearer)
        # It is told, without the tokens: `stop` looks for them in the log.
        admin = {"Authorization": f"Bearer {ADMIN}"}
        events = weir.get("/api/v1/events?kind=access.refused", headers=admin).good()
        metrics = weir.get("/metrics").good().text
        found = {"events": events.text, "metrics": metrics, "body": weir.get(f"/~{wrong[0]}/live/{NAME}/index.m3u8").text,
                 "sessions": weir.get("/api/v1/sessions", headers=admin).good().text,
                 "settings": weir.get("/api/v1/settings", headers=admin).good().text}
        assert {event["data"]["reason"] for event in events.json["events"]} == {"a wrong viewer's token"}
        assert all(event["who"].startswith("127.0.0.1") for event in events.json["events"])
        counted = {reason: float(count) for reason, count in re.findall(
            r'^weir_viewer_tokens_rejected_total\{reason="(\w+)"\} (\S+)', metrics, re.M)}
        assert counted["wrong"] >= 20 and counted["slowed"] >= 4, counted
        weir.wait_log("a wrong viewer's token came over HTTP")
        for place, text in found.items():
            assert not any(secret in text for secret in (*wrong, known, new, bearer, SECRET, ADMIN)), place


# MARK: Keys


def test_the_files_of_the_document_are_read(tmp_path):
    blocks = re.findall(r"^```yaml\n(.*?)^```", (tools.ROOT / "docs" / "access.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        (tmp_path / "weir.yaml").write_text(block)
        done = subprocess.run([tools.weir_binary(), "config", "check", tmp_path / "weir.yaml"], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def pem(key) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def test_keys_of_files(start, tmp_path):
    keys = {"RS256": rsa.generate_private_key(65537, 2048), "ES256": ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate()}
    (tmp_path / "keys.pem").write_bytes(b"".join(pem(key) for key in keys.values()))
    weir = start("--no-record", "--viewers", "token", "--jwt-key", tmp_path / "keys.pem", "--jwt-issuer", "https://issuer.example",
                 "--jwt-audience", "weir", environment={"WEIR_ADMIN_TOKEN": ADMIN})
    with served(weir, NAME):
        for algorithm, key in keys.items():
            good = {"iss": "https://issuer.example", "aud": ["weir", "x"]}
            statuses = [weir.get(f"/~{token(key=key, algorithm=algorithm, **claims)}/live/{NAME}/index.m3u8").status
                        for claims in (good, {**good, "iss": "x"}, {**good, "aud": "x"}, {"iss": good["iss"]})]
            assert statuses == [200, 403, 403, 403], algorithm


def test_keys_of_an_address_come_and_go(start):
    issuer = KeySet()
    first = issuer.new("first")
    weir = start("--no-record", "--viewers", "token", "--jwt-key-set", issuer.url, environment={"WEIR_ADMIN_TOKEN": ADMIN})

    def status(name: str, key) -> int:
        return weir.get(f"/~{token(key=key, algorithm='ES256', headers={'kid': name})}/live/{NAME}/index.m3u8").status

    with served(weir, NAME):
        assert status("first", first) == 200
        second = issuer.new("second")
        # Within ten seconds of a fetch nothing asks again.
        weir.wait(lambda: status("second", second) == 200, 30, "the new key is known", every=1)
        assert len(issuer.requests) <= 4
    issuer.stop()


@pytest.mark.parametrize(("name", "path", "method", "body"), [
    ("read", "/api/v1/settings", "GET", None),
    pytest.param("body", "/api/v1/streams/cam/settings", "PUT", b"{}", marks=pytest.mark.long)])
def test_an_administrator_waits_for_a_key_that_is_new_in_the_set(start, tmp_path, name, path, method, body):
    (tmp_path / "state").mkdir()
    issuer = KeySet()
    issuer.new("first")
    weir = start("--no-record", "--state", tmp_path / "state", "--jwt-key-set", issuer.url)
    time.sleep(11)  # real time: a fetch for an unknown key comes ten seconds after the last one, at most
    key = issuer.new(name)
    good = token(key=key, algorithm="ES256", headers={"kid": name}, weir={"admin": "admin"})
    weir.secrets.append(good)
    assert weir.get(path, method=method, headers={"Authorization": f"Bearer {good}"}, body=body).status == 200
    # Nobody's token is admitted unverified meanwhile.
    forged = token(key=ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers={"kid": "none"}, weir={"admin": "admin"})
    assert weir.get(path, method=method, headers={"Authorization": f"Bearer {forged}"}, body=body).status == 401
    assert 'weir_admin_rejected_total{reason="wrong"} 1' in weir.get("/metrics").text
    issuer.stop()


@pytest.mark.parametrize(("behaviour", "reason"), [
    ("redirect", "the status is 302"), ("endless", "did not end within 5s"), ("huge", "more than 64 KiB")])
def test_an_address_that_misbehaves_costs_little_and_is_told(start, behaviour, reason):
    issuer = KeySet()
    issuer.behaviour = behaviour
    key = issuer.new("a")
    weir = start("--no-record", "--viewers", "token", "--jwt-key-set", issuer.url, environment={"WEIR_ADMIN_TOKEN": ADMIN})
    begins = time.monotonic()
    answer = weir.get(f"/~{token(key=key, algorithm='ES256', headers={'kid': 'a'})}/live/{NAME}/index.m3u8")
    assert answer.status == 403 and time.monotonic() - begins < 15
    weir.wait_log(rf"the key set for tokens cannot be fetched: .*{reason}", 10)
    assert all(path == "/jwks.json" for path in issuer.requests) and len(issuer.requests) <= 2
    issuer.stop()
