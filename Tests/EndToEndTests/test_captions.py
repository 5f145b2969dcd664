"""Closed captions within the video: found, declared by HLS and DASH, and kept by the ladder. pycaption writes them, GStreamer
puts them into the video, ffmpeg reads what weir serves."""

import http.client
import re
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest

from harness import captioned, hls, publishers, tools, transport

WORDS = ["Hello from line 21", "Second caption"]
SUBTITLES = f"""1
00:00:01,000 --> 00:00:03,000
{WORDS[0]}

2
00:00:04,000 --> 00:00:06,000
{WORDS[1]}
"""
CEA608 = "urn:scte:dash:cc:cea-608:2015"


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = captioned.film(tmp_path_factory.mktemp("captions") / "captions.ts", captioned.pop_on(SUBTITLES, 8))
    assert words(path) == WORDS
    return path


def words(path) -> list[str]:
    """The texts that ffmpeg reads in the video of a file."""
    done = tools.run(
        tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", f"movie={path}[out0+subcc]", "-map", "0:1", "-f", "webvtt", "-")
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line and "-->" not in line and line != "WEBVTT"]


def send(path, weir, name: str, rate: str = "80K") -> publishers.Publisher:
    return publishers.Publisher(
        ["curl", "-sS", "-T", str(path), "--limit-rate", rate, f"{weir.web}/live/{name}/ingest"])


def place_of(film, seconds: float) -> int:
    """Where the video of so many seconds after the beginning starts in a transport stream."""
    done = tools.run(tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "packet=dts_time,pos", "-of", "csv=p=0", film)
    found = [(float(time), int(pos)) for time, pos in (line.split(",")[:2] for line in done.stdout.splitlines() if line)]
    return next(pos for time, pos in found if time >= found[0][0] + seconds)


def declared(weir, name: str, place: str = "live") -> tuple[list[dict], list[dict]]:
    """The attributes of the EXT-X-MEDIA tags of captions, and of the variants."""
    lines = weir.get(f"/{place}/{name}/index.m3u8").good().text.splitlines()
    media = [hls.attributes(line) for line in lines if line.startswith("#EXT-X-MEDIA:TYPE=CLOSED")]
    return media, [hls.attributes(line) for line in lines if line.startswith("#EXT-X-STREAM-INF:")]


def accessibility(weir, name: str, place: str = "live") -> list[tuple[str, str]]:
    root = ElementTree.fromstring(weir.get(f"/{place}/{name}/manifest.mpd").good().text)
    return [(found.get("schemeIdUri"), found.get("value")) for found in root.iter("{urn:mpeg:dash:schema:mpd:2011}Accessibility")]


def listed(weir, name: str, rendition: str, place: str = "live") -> str:
    """The path of a rendition's playlist."""
    text = weir.get(f"/{place}/{name}/index.m3u8").good().text
    address = next(line for line in text.splitlines() if f"/{line}".endswith(f"/{rendition}/index.m3u8"))
    return f"/{place}/{name}/{address}"


def served(weir, name: str, rendition: str, place: str = "live"):
    """A rendition from its playlist, as a file."""
    playlist = listed(weir, name, rendition, place)
    base, lines = playlist.rsplit("/", 1)[0], weir.get(playlist).good().text.splitlines()
    init = next(line for line in lines if line.startswith("#EXT-X-MAP")).split('"')[1]
    path = weir.folder / f"{rendition}.mp4"
    path.write_bytes(b"".join(
        weir.get(f"{base}/{uri}").good().body for uri in [init, *(line for line in lines if line and line[0] != "#")]))
    return path


def test_captions_are_found_declared_and_kept_by_the_ladder(start, film):
    weir = start("--ladder", "90p@200k", "--no-record")
    sender = send(film, weir, "cam")
    weir.wait(lambda: weir.get("/live/cam/index.m3u8").status == 200, 10, "the first playlist")
    media, variants = declared(weir, "cam")
    # From the first playlist on, before the first caption has begun.
    assert [(m["INSTREAM-ID"], m["GROUP-ID"], m["NAME"]) for m in media] == [("CC1", "captions", "CC1")], media
    assert "LANGUAGE" not in media[0] and {v["CLOSED-CAPTIONS"] for v in variants} == {"captions"}, variants
    weir.wait(lambda: len(declared(weir, "cam")[1]) == 2, 30, "the rung")
    assert {v["CLOSED-CAPTIONS"] for v in declared(weir, "cam")[1]} == {"captions"}
    weir.wait(lambda: weir.get("/live/cam/manifest.mpd").status == 200, 10, "the manifest")
    assert accessibility(weir, "cam") == [(CEA608, "CC1=und")]
    assert weir.stream("cam")["captions"] == [{"service": "CC1", "language": "und"}]
    assert sender.outcome(40)[0] == 0
    # A rung's last frames come after the end of the upload.
    weir.wait(lambda: "#EXT-X-ENDLIST" in weir.get(listed(weir, "cam", "90p")).text, 30, "the end of the rung")
    assert words(served(weir, "cam", "video")) == WORDS
    assert words(served(weir, "cam", "90p")) == WORDS


def test_a_service_of_cea_708_is_found_and_declared(start, tmp_path):
    """Pairs of CEA-608 that are marked as invalid stand beside it: they are none."""
    frames = captioned.digital(6, (1, captioned.window(1, True) + captioned.letters("Hello")), (3, [captioned.HIDE, 1]))
    film = captioned.film(tmp_path / "digital.ts", frames, kind="708")
    weir = start("--no-record")
    sender = send(film, weir, "cam", "300K")
    assert sender.outcome(40)[0] == 0
    media, variants = declared(weir, "cam")
    assert [m["INSTREAM-ID"] for m in media] == ["SERVICE1"] and {v["CLOSED-CAPTIONS"] for v in variants} == {"captions"}
    assert accessibility(weir, "cam") == [(CEA608.replace("608", "708"), "1=lang:und")]


def test_captions_that_begin_later_are_declared_from_then_on(start, tmp_path):
    film = captioned.film(tmp_path / "late.ts", captioned.pop_on(SUBTITLES, 8), first=105)
    weir = start("--no-record")
    # Nothing of the first caption is sent before what is declared until then has been seen.
    data, cut = film.read_bytes(), place_of(film, 3.2)
    place = urllib.parse.urlsplit(weir.web)
    sender = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    sender.putrequest("PUT", "/live/cam/ingest")
    sender.putheader("Content-Length", str(len(data)))
    sender.endheaders(data[:cut])
    weir.wait(lambda: weir.get("/live/cam/index.m3u8").status == 200, 10, "the first playlist")
    assert declared(weir, "cam")[0] == [] and "CLOSED-CAPTIONS" not in declared(weir, "cam")[1][0]
    before = weir.get("/live/cam/index.m3u8").text
    sender.send(data[cut:])
    weir.wait(lambda: declared(weir, "cam")[0], 10, "the declaration")
    assert sender.getresponse().status == 204
    sender.close()
    assert accessibility(weir, "cam") == [(CEA608, "CC1=und")]
    # No viewer notices: it is the same epoch without a break.
    text = weir.get("/live/cam/index.m3u8").text
    address = next(line for line in text.splitlines() if line.endswith("/av/index.m3u8"))
    assert address in before and "EXT-X-DISCONTINUITY\n" not in weir.get(f"/live/cam/{address}").text


@pytest.mark.parametrize("setting", ["none", "CC1=en,SERVICE2=de"])
def test_a_setting_states_captions(start, film, setting):
    weir = start("--captions", setting, "--no-record")
    sender = send(film, weir, "cam", "300K")
    weir.wait(lambda: weir.get("/live/cam/manifest.mpd").status == 200, 10, "the manifest")
    media, variants = declared(weir, "cam")
    text = weir.get("/live/cam/index.m3u8").text
    version = int(re.search(r"#EXT-X-VERSION:(\d+)", text)[1])
    if setting == "none":
        assert (media, {v["CLOSED-CAPTIONS"] for v in variants}, version) == ([], {"NONE"}, 6)
        assert accessibility(weir, "cam") == []
    else:
        assert [(m["INSTREAM-ID"], m["LANGUAGE"]) for m in media] == [("CC1", "en"), ("SERVICE2", "de")]
        assert ({v["CLOSED-CAPTIONS"] for v in variants}, version) == ({"captions"}, 7)
        assert accessibility(weir, "cam") == [(CEA608, "CC1=eng"), (CEA608.replace("608", "708"), "2=lang:deu")]
    assert sender.outcome(40)[0] == 0


@pytest.mark.parametrize("setting", ["auto", "CC1=en,SERVICE2=de"])
def test_a_recording_declares_them_as_its_stream_did(start, film, setting):
    """While it is written, when it is finished, and by another server; ffmpeg reads the captions in its segments."""
    weir = start("--captions", setting, "--reconnect-window", "1s")
    sender = send(film, weir, "cam")
    weir.wait_state("cam", "live")
    base = weir.wait(lambda: weir.stream("cam")["recording"]["file"], 10, "the recording").removesuffix(".mp4")
    weir.wait(lambda: weir.get(f"/recordings/{base}/index.m3u8").status == 200, 10, "the recording's playlist")
    expected = [("CC1", None)] if setting == "auto" else [("CC1", "en"), ("SERVICE2", "de")]

    def check(server):
        media, variants = declared(server, base, "recordings")
        assert [(m["INSTREAM-ID"], m.get("LANGUAGE")) for m in media] == expected, media
        assert {v["CLOSED-CAPTIONS"] for v in variants} == {"captions"}, variants
        schemes = [scheme for scheme, _ in accessibility(server, base, "recordings")]
        assert schemes == [CEA608, CEA608.replace("608", "708")][:len(expected)], schemes

    check(weir)
    assert sender.outcome(40)[0] == 0
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 20, "the end of the recording")
    check(weir)
    assert words(served(weir, base, "av", "recordings")) == WORDS
    check(start("--record", weir.recordings))


def test_video_without_captions_declares_none_of_them(start):
    weir = start("--no-record")
    sender = send(transport.film("h264-30"), weir, "cam", "300K")
    weir.wait(lambda: weir.get("/live/cam/manifest.mpd").status == 200, 10, "the manifest")
    assert sender.outcome(40)[0] == 0
    media, variants = declared(weir, "cam")
    assert media == [] and all("CLOSED-CAPTIONS" not in v for v in variants) and accessibility(weir, "cam") == []
    assert weir.stream("cam")["captions"] == []
