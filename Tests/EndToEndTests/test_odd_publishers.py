"""RTMP publishers whose timestamps or framing are wrong, as encoders and relays of the field have them. Whatever they do, what is
served and recorded is the film: each picture, each frame of audio, no discontinuity."""

import concurrent.futures
import dataclasses
import struct
import time

import pytest

from harness import events, hls, http, nothing_wrong, packets, sources
from harness.flv import AUDIO, VIDEO, Tag, read
from harness.rawrtmp import RawRTMP

PICTURES, FRAMES = 240, 376
START = b"\0\0\0\1"
#: A message of user data: a NAL unit of H.264.
MESSAGE = b"\x06\x05\x14" + bytes(range(16)) + b"weir" + b"\x80"


def film() -> list[Tag]:
    """Eight seconds at 30 pictures a second of two slices each, with audio."""
    return read(sources.film(
        "two-slices", ".flv", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i",
        sources.NOISE.format(rate=48000), "-t", 8, "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency",
        "-x264-params", "slices=2", "-g", 30, "-bf", 0, "-pix_fmt", "yuv420p", "-c:a", "aac", "-ac", 2, "-b:a", "96k",
        "-flvflags", "no_duration_filesize", "-f", "flv"))


def units(tag: Tag) -> list[bytes]:
    """The NAL units of a picture."""
    at, found = 5, []
    while at + 4 <= len(tag.body):
        (size,) = struct.unpack_from(">I", tag.body, at)
        found.append(tag.body[at + 4:at + 4 + size])
        at += 4 + size
    return found


def picture(tag: Tag, payload: bytes) -> Tag:
    return dataclasses.replace(tag, body=tag.body[:5] + payload)


def framed(*those: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(unit)) + unit for unit in those)


def stream(*those: bytes) -> bytes:
    return b"".join(START + unit for unit in those)


def parameter_sets(tags: list[Tag]) -> list[bytes]:
    """Of the sequence header: one of the sequence and one of pictures."""
    record = next(tag.body[5:] for tag in tags if tag.is_header and tag.type == VIDEO)
    (size,) = struct.unpack_from(">H", record, 6)
    end = 8 + size
    (more,) = struct.unpack_from(">H", record, end + 1)
    return [record[8:end], record[end + 3:end + 3 + more]]


def adts(tag: Tag) -> Tag:
    """AAC-LC of 48 kHz in stereo with a header of its own."""
    size = len(tag.body) - 2 + 7
    header = bytes([0xFF, 0xF1, 0x4C, 0x80 | size >> 11, size >> 3 & 255, (size & 7) << 5 | 0x1F, 0xFC])
    return dataclasses.replace(tag, body=tag.body[:2] + header + tag.body[2:])


def is_media(tag: Tag, kind: int) -> bool:
    return tag.type == kind and not tag.is_header


def each(kind: int, change):
    """A case that changes each picture, or each frame of audio, into one or several tags."""
    def case(tags: list[Tag]) -> list[Tag]:
        out: list[Tag] = []
        for tag in tags:
            changed = change(tag) if is_media(tag, kind) else tag
            out += changed if isinstance(changed, list) else [changed]
        return out
    return case


def stamped(kind: int, *those: int, milliseconds: int | None = None, shift: int = 0):
    """A case in which some pictures or frames of audio, by their numbers, have a wrong time."""
    def case(tags: list[Tag]) -> list[Tag]:
        places = [place for place, tag in enumerate(tags) if is_media(tag, kind)]
        out = list(tags)
        for number in those:
            tag = tags[places[number]]
            out[places[number]] = dataclasses.replace(
                tag, milliseconds=tag.milliseconds + shift if milliseconds is None else milliseconds)
        return out
    return case


def without_header(kind: int, case):
    return lambda tags: [tag for tag in case(tags) if not (tag.type == kind and tag.is_header)]


def sets_in_key_frames(tags: list[Tag]) -> list[Tag]:
    sets = parameter_sets(tags)
    return each(VIDEO, lambda tag: picture(tag, framed(*sets, *units(tag))) if tag.is_key else tag)(tags)


def all_with_start_codes(tags: list[Tag]) -> list[Tag]:
    sets = parameter_sets(tags)
    return [picture(tag, stream(*sets)) if tag.type == VIDEO and tag.is_header
            else picture(tag, stream(*(sets if tag.is_key else []), *units(tag))) if tag.type == VIDEO else tag for tag in tags]


HOURS = 36_000_000
CASES = {
    "video-hours-ahead": stamped(VIDEO, 100, shift=HOURS),
    "video-5-s-ahead": stamped(VIDEO, 100, shift=5000),
    "video-0": stamped(VIDEO, 200, milliseconds=0),
    "video-every-60th": stamped(VIDEO, 50, 110, 170, 230, shift=HOURS),
    "audio-hours-ahead": stamped(AUDIO, 200, shift=HOURS),
    "audio-5-s-ahead": stamped(AUDIO, 200, shift=5000),
    "audio-0": stamped(AUDIO, 300, milliseconds=0),
    "unit-per-tag": each(VIDEO, lambda tag: [picture(tag, framed(unit)) for unit in units(tag)]),
    "message-alone": each(VIDEO, lambda tag: [picture(tag, framed(MESSAGE)), tag] if tag.is_key else tag),
    "start-codes": each(VIDEO, lambda tag: picture(tag, stream(*units(tag)))),
    "start-codes-everywhere": all_with_start_codes,
    "start-codes-within": each(VIDEO, lambda tag: picture(tag, framed(stream(*units(tag))[len(START):]))),
    "bytes-behind": each(VIDEO, lambda tag: picture(tag, framed(*units(tag)) + b"\0\0\0")),
    "sets-in-key-frames": without_header(VIDEO, sets_in_key_frames),
    "adts": each(AUDIO, adts),
    "adts-without-header": without_header(AUDIO, each(AUDIO, adts)),
}
#: The film's clock begins here, so that a time of 0 is far from it.
ORIGIN = 20_000
#: So many times faster than real time.
SPEED = 4


@pytest.fixture(scope="module")
def recorded(start_shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    tags = [dataclasses.replace(tag, milliseconds=tag.milliseconds + ORIGIN) for tag in film()]
    weir = start_shared("--target-duration", "2", "--admin-token", events.TOKEN)

    def publish(name: str) -> dict:
        with RawRTMP(weir.rtmp).start(name) as client:
            now = ORIGIN
            for tag in CASES[name](tags):
                # A wrong time is not waited for.
                if 0 < tag.milliseconds - now < 1000:
                    time.sleep((tag.milliseconds - now) / 1000 / SPEED)
                    now = tag.milliseconds
                client.drain()
                client.tag(tag)
            client.finish()
        entry = weir.wait(
            lambda: next((r for r in weir.recordings_of(name) if r["state"] == "completed"), None), 20, f"a recording of {name}")
        path = folder / f"{name}.mp4"
        path.write_bytes(weir.get(entry["url"]).good().body)
        index = f"{weir.web}/live/{name}/index.m3u8"
        top = hls.parse_multivariant(http.fetch(index).good().text, index)
        playlist = http.fetch(top.absolute(top.variants[0].uri)).good().text
        return {"path": path, "playlist": playlist, "recordings": len(weir.recordings_of(name)), "stream": weir.stream(name)}

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = {name: pool.submit(publish, name) for name in CASES}
        found = {name: job.result() for name, job in jobs.items() if not job.exception(120)}
    nothing_wrong([f"{name}: {jobs[name].exception()!r}" for name in CASES if name not in found])
    return found, weir


@pytest.mark.parametrize("name", CASES)
def test_an_odd_publisher_is_the_film(recorded, name):
    found = recorded[0][name]
    probed = packets.probe(found["path"])
    assert (len(probed["video"]), len(probed["audio"])) == (PICTURES, FRAMES)
    assert "#EXT-X-DISCONTINUITY\n" not in found["playlist"] and found["recordings"] == 1
    # No hole, and nothing that was moved by more than what RTMP rounds.
    for kind, step in (("video", 1 / 30), ("audio", 1024 / 48000)):
        times = [float(packet.dts) for packet in probed[kind]]
        assert all(abs(later - earlier - step) < 0.003 for earlier, later in zip(times, times[1:])), kind
    errors, _ = packets.decode(found["path"])
    assert errors == ""
    received = found["stream"]["received"]
    assert (received["videoFrames"], received["audioFrames"]) == (PICTURES, FRAMES)
    assert received["lostVideoFrames"] == received["lostAudioFrames"] == 0


def test_wrong_timestamps_are_counted(recorded):
    metrics = recorded[1].get("/metrics").good().text
    for name, kind, count in (("video-every-60th", "video", 4), ("audio-0", "audio", 1), ("adts", "audio", 0)):
        (line,) = [line for line in metrics.splitlines() if line.startswith("weir_ingest_timestamps_mended_total{")
                   and f'stream="{name}"' in line and f'kind="{kind}"' in line]
        assert float(line.rsplit(" ", 1)[1]) == count, line


def tail(tags: list[Tag]) -> list[Tag]:
    """The film from the 16th picture on: the next key frame is half a second away."""
    places = [place for place, tag in enumerate(tags) if is_media(tag, VIDEO)]
    return [tag for place, tag in enumerate(tags) if tag.is_header or tag.type not in (VIDEO, AUDIO) or place >= places[15]]


def audio_away(tags: list[Tag]) -> list[Tag]:
    """The audio of the seventh second has times of five seconds before."""
    places = [place for place, tag in enumerate(tags) if is_media(tag, AUDIO)][280:327]
    return [dataclasses.replace(tag, milliseconds=tag.milliseconds - 5000) if place in places else tag
            for place, tag in enumerate(tags)]


def cut_pictures(tags: list[Tag]) -> list[Tag]:
    """Each 50th picture says that its first unit is longer than all of it."""
    places = [place for place, tag in enumerate(tags) if is_media(tag, VIDEO)][40::50]
    return [picture(tag, b"\x7f" + tag.body[6:]) if place in places else tag for place, tag in enumerate(tags)]


#: What cannot all be taken.
LOSSES = {"from-between-key-frames": tail, "audio-away": audio_away, "cut-pictures": cut_pictures}


@pytest.mark.parametrize("name", LOSSES)
def test_what_is_sent_is_taken_early_or_lost(recorded, name):
    """By the numbers of the sender: in the API, and in the events of the stream."""
    weir = recorded[1]
    tags = LOSSES[name]([dataclasses.replace(tag, milliseconds=tag.milliseconds + ORIGIN) for tag in film()])
    with RawRTMP(weir.rtmp).start(name) as client:
        now = ORIGIN
        for tag in tags:
            if 0 < tag.milliseconds - now < 1000:
                time.sleep((tag.milliseconds - now) / 1000 / SPEED)
                now = tag.milliseconds
            client.drain()
            client.tag(tag)
        client.finish()
    weir.wait(lambda: (weir.stream(name) or {}).get("state") == "ended", 20, f"the end of {name}")
    received = weir.stream(name)["received"]
    sent = {kind: sum(is_media(tag, kind) for tag in tags) for kind in (VIDEO, AUDIO)}
    for kind, tag in (("Video", VIDEO), ("Audio", AUDIO)):
        counted = [received[name] for name in (f"{kind.lower()}Frames", f"early{kind}Frames", f"lost{kind}Frames")]
        assert sum(counted) == sent[tag], received
    early, lost = (received[f"{fate}VideoFrames"] + received[f"{fate}AudioFrames"] for fate in ("early", "lost"))
    assert (early if name == "from-between-key-frames" else lost) > 0, received
    assert name != "from-between-key-frames" or lost == 0, received
    told = weir.get(f"/api/v1/events?stream={name}", headers=events.ADMIN).good().json["events"]
    (ended,) = [event["data"]["received"] for event in told if event["kind"] == "stream.ended"]
    assert ended == received
    assert "nothing came from the publisher" not in "\n".join(line for line in weir.text().splitlines() if f" {name}: " in line)
