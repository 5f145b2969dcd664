"""Real caches with the configurations of docs/cdn collapse the requests of many viewers."""

import asyncio
import collections
import itertools
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.parse

import pytest

from harness import dash, hls, http, llhls, publishers
from harness.programs import Program, free_port

NAME = "cam"
VIEWERS = 1000
ROUNDS = 2
MARKERS = itertools.count()
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "cdn"


class Cache:
    """A cache before weir, configured as in docs/cdn except for ports and folders."""

    def __init__(self, folder: pathlib.Path, origin: str):
        self.folder = folder
        self.port = free_port()
        self.web = f"http://127.0.0.1:{self.port}"
        host, port = urllib.parse.urlsplit(origin).netloc.split(":")
        self.program = Program(self.command(host, port), folder / "out", self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return http.fetch(f"{self.web}/healthz", timeout=2).status == 200
        except OSError:
            return False

    def command(self, host: str, port: str) -> list[str]:
        raise NotImplementedError

    def stop(self) -> None:
        self.program.stop()


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the documented configuration"
        text = text.replace(old, new)
    return text


class Varnish(Cache):
    #: Requests that weir may receive for each object that the viewers request.
    allowed = 1

    def command(self, host: str, port: str) -> list[str]:
        vcl = self.folder / "default.vcl"
        vcl.write_text(changed((DOCS / "default.vcl").read_text(), ('"127.0.0.1"', f'"{host}"'), ('"8080"', f'"{port}"')))
        return ["/usr/sbin/varnishd", "-F", "-n", str(self.folder / "work"), "-a", f"127.0.0.1:{self.port}", "-f", str(vcl),
                "-s", "malloc,64m", "-j", "none", "-T", "none", "-p", "vcc_allow_inline_c=off"]


class Nginx(Cache):
    allowed = 2

    def command(self, host: str, port: str) -> list[str]:
        conf = self.folder / "nginx.conf"
        conf.write_text(changed(
            (DOCS / "nginx.conf").read_text(), ("server 127.0.0.1:8080;", f"server {host}:{port};"),
            ("listen 8090 ", f"listen 127.0.0.1:{self.port} ")))
        return ["/usr/sbin/nginx", "-p", str(self.folder), "-c", str(conf), "-g",
                "daemon off;" + (" user root;" if os.geteuid() == 0 else "")]


CACHES = {"varnish": Varnish, "nginx": Nginx}


@pytest.fixture(scope="module")
def origin(start_shared):
    weir = start_shared("--no-record", "--log-level", "debug")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        index = f"{weir.web}/live/{NAME}/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 20, "a playlist")
        media = hls.parse_multivariant(http.fetch(index).text, index).variants[0].uri
        yield weir, f"/live/{NAME}/{media}"
    finally:
        publisher.kill()


@pytest.fixture(scope="module", params=CACHES)
def cached(request, origin, tmp_path_factory):
    weir, path = origin
    folder = tmp_path_factory.mktemp(request.param)
    os.chmod(folder, 0o755)
    cache = CACHES[request.param](folder, weir.web)
    try:
        yield weir, cache, path
    finally:
        cache.stop()


@pytest.fixture(params=CACHES)
def separate(request, start, tmp_path):
    """A cache before a server with its default log, whose HLS has separate video and audio."""
    weir = start("--no-record", "--hls-layout", "separate", "--segment-duration", "1s")
    publisher = publishers.ffmpeg("half-seconds", f"{weir.rtmp}/live/{NAME}", loop=-1)
    cache = None
    try:
        weir.wait_state(NAME, "live", seconds=20)
        os.chmod(tmp_path, 0o755)
        cache = CACHES[request.param](tmp_path, weir.web)
        yield weir, cache
    finally:
        publisher.kill()
        if cache is not None:
            cache.stop()


def requests(weir) -> collections.Counter:
    """How often weir received a request for each path, by its debug log up to this moment."""
    # Lines are in order: no line of an earlier response comes after that of this request.
    marker = f"/marker-{next(MARKERS)}"
    http.fetch(weir.web + marker)
    weir.wait(lambda: any(f"path={marker}" in line for _, line in list(weir.lines)), 10, "the request in the log")
    counts: collections.Counter = collections.Counter()
    for _, line in list(weir.lines):
        if found := re.search(r"\bpath=(\S+)", line):
            counts[found[1].strip('"')] += 1
    return counts


def test_the_open_pages_of_a_stream_cost_the_origin_a_request_a_second(cached):
    weir, cache, _ = cached
    path, before, begin = f"/live/{NAME}/status.json", requests(weir), time.monotonic()
    answers = []

    def pages():
        while (took := time.monotonic() - begin) < 4 or (len(answers) <= 200 and took < 60):
            answers.append(http.fetch(cache.web + path).good())
            time.sleep(0.02)

    threads = [threading.Thread(target=pages) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = (requests(weir) - before)[path]
    assert len(answers) > 200 and all(answer.json["state"] == "live" for answer in answers)
    assert 1 <= asked <= cache.allowed * (time.monotonic() - begin) + 1, (asked, len(answers))


def unchunked(data: bytes) -> bytes:
    """A response that a cache forwards while it receives it."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body += data[:int(size, 16)]
        data = data[int(size, 16) + 2:]
    return body


async def ask(port: int, path: str, opened: asyncio.Event, ready: list) -> tuple[int, bytes, float, dict]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        ready.append(1)
        await opened.wait()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: cache\r\nCookie: a={id(writer)}\r\nConnection: close\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        if "content-length" in fields:
            body = await reader.readexactly(int(fields["content-length"]))
        else:
            body = unchunked(await reader.read())
        return int(head.split()[1]), body, time.monotonic(), fields
    finally:
        writer.close()


async def crowd(port: int, paths: list[str]) -> list:
    opened, ready = asyncio.Event(), []
    tasks = [asyncio.create_task(ask(port, path, opened, ready)) for path in paths]
    while len(ready) < len(paths):
        await asyncio.sleep(0.01)
    opened.set()
    return await asyncio.wait_for(asyncio.gather(*tasks), 60)


def test_a_crowd_costs_weir_what_one_viewer_costs(cached):
    weir, cache, path = cached
    url = cache.web + path
    folder = path.rsplit("/", 1)[0]
    for _ in range(ROUNDS):
        playlist = llhls.parse(http.fetch(weir.web + path).text, url)
        # The first half of the segment after the next: all viewers are connected before it.
        segment, part = playlist.next[0] + 1, 3
        before = requests(weir)
        answers = asyncio.run(crowd(cache.port, [
            f"{path}?_HLS_msn={segment}&_HLS_part={part}&viewer={number}" for number in range(VIEWERS)]))
        assert {status for status, _, _, _ in answers} == {200}
        asked = requests(weir)[path] - before[path]
        assert 1 <= asked <= cache.allowed, f"weir was asked {asked} times for one position of the playlist"
        bodies = {body for _, body, _, fields in answers}
        assert len(bodies) <= cache.allowed
        for body in bodies:
            assert llhls.parse(body.decode(), url).last >= (segment, part)

        hinted = f"{folder}/{segment + 1}.2.m4s"
        llhls.parse(http.fetch(f"{weir.web}{path}?_HLS_msn={segment + 1}&_HLS_part=1").text, url)
        answers = asyncio.run(crowd(cache.port, [hinted] * VIEWERS))
        assert {status for status, _, _, _ in answers} == {200}
        assert len({body for _, body, _, _ in answers}) == 1
        asked = requests(weir)[hinted]
        assert 1 <= asked <= cache.allowed, f"weir was asked {asked} times for one part"
        arrivals = sorted(at for _, _, at, _ in answers)
        print(f"{type(cache).__name__}: {VIEWERS} viewers had the part within {(arrivals[-1] - arrivals[0]) * 1000:.0f} ms")


def test_a_wrong_request_does_not_keep_the_crowd_from_being_joined(cached):
    """One client requests a position that is too far ahead. Later, when it is not, all request it."""
    weir, cache, path = cached

    def refused() -> int | None:
        """The segment of a position that is refused. It may be near enough when the request comes late."""
        ahead = llhls.parse(http.fetch(weir.web + path).text, weir.web + path).next[0] + 3
        return ahead if http.fetch(f"{cache.web}{path}?_HLS_msn={ahead}&_HLS_part=3").status == 400 else None

    segment = weir.wait(refused, 15, "a position too far ahead is refused")
    query = f"?_HLS_msn={segment}&_HLS_part=3"
    while llhls.parse(http.fetch(weir.web + path).text, weir.web + path).next[0] < segment - 1:
        time.sleep(0.2)
    before = requests(weir)
    answers = asyncio.run(crowd(cache.port, [path + query] * 200))
    assert {status for status, _, _, _ in answers} == {200}
    asked = requests(weir)[path] - before[path]
    assert 1 <= asked <= cache.allowed, f"weir was asked {asked} times for one position of the playlist"


def spoilt(weir, cache, prefix: str, path: str) -> list[str]:
    """One client asks for playlists in spellings that a cache and weir may understand differently, then the others ask for
    them. Returns the groups of spellings of which one changed what the others got."""
    name, found = path.split("/")[2], []
    index = f"/live/{name}/index.m3u8"

    def newest(query: str = "", base: str = cache.web) -> llhls.Playlist:
        url = base + prefix + path + query
        return llhls.parse(http.fetch(url).good().text, url)

    # A position of the past is kept for longer than the newest playlist may be.
    weir.wait(lambda: newest("?_HLS_skip=YES", weir.web).skipped > 0, 60, "a playlist that is long enough to be shortened")
    past = newest(base=weir.web).segments[0].sequence
    old = (f"?%5FHLS_msn={past}&%5FHLS_part=0", f"?_HLS%5Fmsn={past}")
    short = ("?%5FHLS_skip=YES", "?_HLS_ski%70=YES")
    broken = (f"{index}?video=9", f"/live//{name}/index.m3u8", f"{index}#x", f"{index}%23", f"{index}/",
              f"/live/x%2F..%2F{name}/index.m3u8", f"/live/x/../{name}/index.m3u8")
    time.sleep(2.1)  # real time: what is in the cache is good for a second
    answers = [http.raw(cache.web, f"GET {prefix}{spelling} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
               for spelling in broken]
    if any(answer.split()[1] == b"200" for answer in answers) or http.fetch(cache.web + prefix + index).status != 200:
        found += broken
    for query in short:
        newest(query)
    if newest().skipped:
        found += short
    time.sleep(2.1)  # real time: the same
    for query in old:
        newest(query)
    time.sleep(2.5)  # real time: the same
    now = newest(base=weir.web)
    if newest().last < now.last:
        found += old
    # The newest playlist, kept where others wait for a position.
    segment = newest(base=weir.web).next[0] + 1
    newest(query := f"?_hls_msn={segment}&_hls_part=0")
    if newest(f"?_HLS_msn={segment}&_HLS_part=0").last < (segment, 0):
        found.append(query)
    return found


def test_a_request_in_another_spelling_does_not_change_what_others_get(cached):
    weir, cache, path = cached
    assert spoilt(weir, cache, "", path) == []


def test_the_query_of_media_neither_copies_it_nor_takes_it_past_the_cache(cached):
    weir, cache, path = cached
    playlist = llhls.parse(http.fetch(cache.web + path).text, cache.web + path)
    media = urllib.parse.urljoin(path, playlist.segments[-2].uri)
    before = requests(weir)[media]
    for query in ("", "?x=/stream.mp4", "?/stream.mp4", "?viewer=1&x=/stream.mp4?"):
        http.fetch(cache.web + media + query).good()
    assert requests(weir)[media] - before <= 1


def test_what_is_published_through_nginx_keeps_its_query(cached):
    weir, cache, _ = cached
    if isinstance(cache, Varnish):
        pytest.skip("the documented Varnish is for viewers only")
    answers = [http.fetch(f"{web}/live/other/ingest?program=none", "POST", body=bytes(188)) for web in (weir.web, cache.web)]
    assert "program" in answers[0].json["detail"]
    assert (answers[0].status, answers[0].json["detail"]) == (answers[1].status, answers[1].json["detail"])


def test_a_player_behind_the_cache_finds_every_promise_kept(cached):
    weir, cache, path = cached
    if isinstance(cache, Nginx):
        pytest.skip("nginx's cache lock polls: low latency is promised behind Varnish only")
    player = llhls.Player(cache.web + path).play(states=40).judge_media().judge_steps(0.2)
    assert hls.unexplained(player.problems, weir.text(), NAME) == []
    assert len(player.playlists) == 40


@pytest.mark.quiet
@pytest.mark.long
def test_parts_come_in_even_steps_through_the_cache(cached):
    """By the clock. Without a cache test_lowlatency_hls.py judges it each time."""
    _, cache, path = cached
    if isinstance(cache, Nginx):
        pytest.skip("the same")
    times = [at for at, _ in llhls.Player(cache.web + path).play(8).playlists[1:]]
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    assert gaps[len(gaps) // 2] == pytest.approx(0.2, abs=0.05)


def test_an_ordinary_player_behind_the_cache_reads_on(cached):
    _, cache, _ = cached
    done = subprocess.run(
        ["/usr/bin/ffmpeg", "-v", "error", "-nostdin", "-i", f"{cache.web}/live/{NAME}/index.m3u8", "-t", "5", "-f",
         "framemd5", "-"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert len([line for line in done.stdout.splitlines() if not line.startswith(b"#")]) > 150


def test_media_is_cached_and_playlists_do_not_age(cached):
    weir, cache, path = cached
    playlist = llhls.parse(http.fetch(cache.web + path).text, cache.web + path)
    url = urllib.parse.urljoin(cache.web + path, playlist.segments[0].uri)
    first, second = http.fetch(url), http.fetch(url)
    assert first.body == second.body
    assert was_cached(second)
    # A playlist that is a second old is requested again.
    old = llhls.parse(http.fetch(cache.web + path).text, url)
    time.sleep(2.5)  # real time: the age of what is cached
    now = weir.wait(lambda: (found := llhls.parse(http.fetch(weir.web + path).text, url)).last > old.last and found, 15, "a newer one")
    assert llhls.parse(http.fetch(cache.web + path).text, url).last >= now.last


def was_cached(answer: http.Response) -> bool:
    # Varnish also logs the request that fetched the object, if that was another one.
    return answer.headers.get("x-cache") == "HIT" or len(answer.headers.get("x-varnish", "").split()) == 2


def test_hls_and_dash_are_one_object_at_the_cache(separate):
    weir, cache = separate
    weir.wait(lambda: weir.stream(NAME)["received"]["videoFrames"] > 150, 20, "a few segments")
    index = f"{cache.web}/live/{NAME}/index.m3u8"
    multivariant = hls.parse_multivariant(http.fetch(index).good().text, index)
    assert len(multivariant.media) == 1 and len(multivariant.variants) == 1
    for kind, uri in (("video", multivariant.variants[0].uri), ("audio", multivariant.media[0]["URI"])):
        playlist_url = urllib.parse.urljoin(index, uri)
        playlist = llhls.parse(http.fetch(playlist_url).good().text, playlist_url)
        listed = {urllib.parse.urljoin(playlist_url, s.uri) for s in playlist.segments if s.uri is not None}
        listed.add(urllib.parse.urljoin(playlist_url, playlist.segments[0].map))
        bodies = {url: http.fetch(url).good().body for url in listed}
        manifest_url = f"{cache.web}/live/{NAME}/manifest.mpd"
        manifest = dash.parse(http.fetch(manifest_url).good().text, manifest_url)
        (representation,) = [r for r in manifest.representations if r.kind == kind]
        same = {representation.init, *(entry.url for entry in representation.entries)} & listed
        assert len(same) >= 4, f"{kind}: HLS lists {sorted(listed)}, DASH {[e.url for e in representation.entries]}"
        for url in same:
            again = http.fetch(url).good()
            assert was_cached(again) and again.body == bodies[url], url
