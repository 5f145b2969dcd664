"""Cues of SCTE 35 and other content that transport streams carry beside their media. threefive makes the cues and reads
what weir tells of them."""

import base64
import json
import subprocess

import pytest
import threefive
from threefive import encode

from harness import inband, packets, tools, transport

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
RANGE = 1 << 33
SPLICES, DATA, STRANGE = 0x1F0, 0x1F1, 0x1F2


def frame_times(film) -> list[int]:
    """Presentation times of the video in ticks of 90 kHz, in their order. Before a wrap they are negative, as ffprobe has them."""
    shown = json.loads(tools.run(
        tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts", "-of", "json", film).stdout)
    return sorted(packet["pts"] for packet in shown["packets"])


def served_times(weir, name: str) -> list[float]:
    """Presentation times of the served video in seconds, in their order."""
    text = weir.get(f"/live/{name}/index.m3u8").good().text
    address = f"/live/{name}/" + next(line for line in text.splitlines() if line.endswith("/av/index.m3u8"))
    base = address.rsplit("/", 1)[0]
    lines = weir.get(address).good().text.splitlines()
    init = next(line for line in lines if line.startswith("#EXT-X-MAP")).split('"')[1]
    media = b"".join(weir.get(f"{base}/{uri}").good().body for uri in [init, *(l for l in lines if l and l[0] != "#")])
    path = weir.folder / "served.mp4"
    path.write_bytes(media)
    return sorted(float(packet.pts) for packet in packets.probe(path)["video"])


def ticks(cue: threefive.Cue) -> int:
    """The time of a cue as threefive reads it, with the adjustment."""
    shift = round(cue.info_section.pts_adjustment * 90000)
    return (round(cue.command.pts_time * 90000) + shift) % RANGE


def section_of(cue, *, adjustment: int = 0) -> bytes:
    """The section of a cue that threefive has made; `adjustment` is in ticks."""
    cue.info_section.pts_adjustment = adjustment / 90000
    return base64.b64decode(cue.encode())


def insertion(event: int, at: int, adjustment: int = 0) -> bytes:
    """A splice_insert out of the network for 30 s, at a time in ticks."""
    made = encode.mk_splice_insert(event_id=event, pts=(at - adjustment) % RANGE / 90000, duration=30.0, out=True)
    return section_of(made, adjustment=adjustment)


def signal(event: int, at: int) -> bytes:
    """A time_signal with a segmentation descriptor: a provider advertisement of 15 s begins."""
    cue = encode.mk_time_signal(pts=at % RANGE / 90000)
    what = threefive.descriptors.SegmentationDescriptor()
    what.load({
        "tag": 2, "identifier": "CUEI", "name": "Segmentation Descriptor", "segmentation_event_id": hex(event),
        "segmentation_event_cancel_indicator": False, "segmentation_event_id_compliance_indicator": True,
        "program_segmentation_flag": True, "segmentation_duration_flag": True, "delivery_not_restricted_flag": True,
        "segmentation_duration": 15.0, "segmentation_upid_type": 0, "segmentation_upid_length": 0,
        "segmentation_upid": "", "segmentation_type_id": 0x30, "segment_num": 0, "segments_expected": 0,
    })
    cue.descriptors.append(what)
    return section_of(cue)


def encrypted(section: bytes) -> bytes:
    """A section whose header says that its content is encrypted."""
    marked = section[:4] + bytes([section[4] | 0x80]) + section[5:-4]
    return marked + inband.checksum(marked)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film whose clock wraps after some 2 s, with cues, KLV, and a PID that no table names."""
    path = tmp_path_factory.mktemp("cues") / "wraps.ts"
    plain = transport.film("h264-30", "-muxdelay", "0", "-muxpreload", "0", "-output_ts_offset", "95441.5")
    times = frame_times(plain)
    assert times[30] < 0 < times[120], times[0]
    # One before the wrap, one behind it by an adjustment across it, one that is far away.
    chosen = {1: times[30], 2: times[120], 3: times[200]}
    sections = {1: insertion(1, chosen[1]), 2: insertion(2, chosen[2], adjustment=5 * 90000), 3: signal(3, chosen[3])}
    for event, section in sections.items():
        assert ticks(read(section)) == chosen[event] % RANGE, event
    broken = bytearray(insertion(9, chosen[3]))
    broken[-1] ^= 1
    filler = section_of(encode.mk_splice_null())
    added = [(0.1, SPLICES, sections[1]), (0.12, SPLICES, sections[1]), (0.2, SPLICES, bytes(broken)),
             (0.25, SPLICES, encrypted(sections[1])), (0.3, SPLICES, filler), (0.35, SPLICES, sections[2]),
             (0.5, SPLICES, sections[3])]
    added = [(place, pid, b"\0" + section) for place, pid, section in added]
    added += [(place / 20, DATA, b"\x00\x00\x01\xbd\x00\x20\x84\x00\x00" + b"klv" * 9) for place in range(1, 6)]
    added += [(place / 20, STRANGE, b"anything") for place in range(1, 4)]
    path.write_bytes(inband.carry(
        plain.read_bytes(), {SPLICES: inband.SPLICES, DATA: inband.KLV}, added))
    return path, times, chosen, sections


def stated(members: dict) -> dict:
    return {key: value for key, value in members.items() if value is not None}


def read(section) -> threefive.Cue:
    cue = threefive.Cue(section if isinstance(section, str) else base64.b64encode(section).decode())
    assert cue.decode(), section
    return cue


def test_cues_are_told_with_their_exact_times(start, film):
    path, times, chosen, sections = film
    weir = start("--admin-token", TOKEN, "--no-record")
    sent = subprocess.run(
        ["curl", "-sS", "-T", str(path), "--limit-rate", "150K", f"{weir.web}/live/cam/ingest"], timeout=60)
    assert sent.returncode == 0
    told = weir.stream("cam")
    cues = told["cues"]
    # The first came twice. Of the broken and the encrypted one only the number is known, and none is taken for a cue.
    assert (cues["count"], cues["repeated"], cues["fillers"]) == (5, 1, 1), cues
    assert (cues["damaged"], cues["encrypted"]) == (1, 1), cues
    served = served_times(weir, "cam")
    assert len(served) == len(times)
    assert [cue["eventID"] for cue in cues["newest"]] == [1, 2, 3]
    for cue in cues["newest"]:
        event = cue["eventID"]
        judged = read(cue["section"])
        assert base64.b64decode(cue["section"]) == sections[event]
        assert cue["pts"] == ticks(judged) == chosen[event] % RANGE
        # The media of that time is the frame that the cue was made for.
        assert abs(cue["mediaSeconds"] - served[times.index(chosen[event])]) <= 0.0015, (cue, event)
        assert cue["pid"] == SPLICES and not cue["immediate"] and not cue["cancelled"]
    first, second, third = cues["newest"]
    assert (first["command"], first["outOfNetwork"], first["duration"]) == ("splice_insert", True, 30 * 90000)
    assert read(second["section"]).info_section.pts_adjustment == 5.0
    assert (third["command"], third["segmentationType"], third["duration"]) == ("time_signal", 0x30, 15 * 90000)
    events = weir.get("/api/v1/events?kind=stream.cue", headers=ADMIN).good().json["events"]
    assert [event["data"]["eventID"] for event in events] == [1, 2, 3]
    for event, cue in zip(events, cues["newest"]):
        assert event["stream"] == "cam"
        assert stated(event["data"]) == stated(cue)


def test_what_no_track_is_made_of_is_named_and_counted(start, film):
    path, _, _, _ = film
    weir = start("--no-record")
    assert subprocess.run(["curl", "-sS", "-T", str(path), f"{weir.web}/live/cam/ingest"], timeout=60).returncode == 0
    told = weir.stream("cam")["transportStream"]
    assert (told["program"], told["programs"]) == (1, [1]), told
    elements = {element["pid"]: element for element in told["elements"]}
    counts = {}
    stream = path.read_bytes()
    for at in range(0, len(stream), transport.PACKET):
        pid = int.from_bytes(stream[at + 1:at + 3]) & 0x1FFF
        counts[pid] = counts.get(pid, 0) + 1
    assert (elements[SPLICES]["content"], elements[DATA]["content"], elements[STRANGE]["content"]) == (
        "SCTE-35", "KLV", "unknown")
    assert (elements[DATA]["program"], elements[STRANGE]["program"]) == (1, None)
    assert elements[DATA]["packets"] == counts[DATA] == 5 and elements[STRANGE]["packets"] == counts[STRANGE] == 3
    assert [e["content"] for e in told["elements"] if e["taken"]] == ["H.264", "AAC"]
    assert not elements[SPLICES]["taken"] and not elements[DATA]["taken"] and told["otherPackets"] == 0
