"""Transport streams by UDP: unicast and multicast, several programmes, senders that go and return, and senders of rubbish."""

import contextlib
import os
import socket

import pytest

from harness import nothing_wrong, packets, publishers, sources, transport
from harness.programs import free_port

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
GROUP = "239.255.77.1"


@pytest.fixture
def start(start):
    """Starts servers, and waits for the sockets of their sources: what is sent before is lost."""
    def begin(*flags, **options):
        weir = start(*flags, **options)
        wanted = sum("=udp://" in flag for flag in flags)
        weir.wait(lambda: weir.text().count("receives MPEG-TS at") >= wanted, 10, "the sockets are open")
        return weir
    return begin


def source_of(weir, name: str) -> dict:
    return next(s for s in weir.get("/api/v1/sources", headers=ADMIN).json["sources"] if s["name"] == name)


def playlist(weir, name: str) -> str:
    """The address of the media playlist, which names the epoch."""
    text = weir.get(f"/live/{name}/index.m3u8").good().text
    return next(line for line in text.splitlines() if line.endswith("/av/index.m3u8"))


def recording(weir, name: str):
    """The only recording of a stream, once the server has stopped."""
    found = sorted((weir.recordings / name).glob("*.mp4"))
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def arrived(start):
    """A server to which unicast, multicast, and two programmes were sent, and the ports by name."""
    ports = {name: free_port() for name in ("uni", "multi", "second")}
    ports["first"] = ports["second"]
    film = transport.film("short")
    two = transport.film("short", "-map", "0", "-map", "1", "-program", "program_num=1:st=0:st=1",
                         "-program", "program_num=7:st=2:st=3", inputs=("-i", str(sources.source("straight"))))
    weir = start(
        "--source", f"uni=udp://127.0.0.1:{ports['uni']}", "--source", f"multi=udp://@{GROUP}:{ports['multi']}?interface=lo",
        "--source", f"second=udp://127.0.0.1:{ports['second']}?program=7",
        "--source", f"first=udp://127.0.0.1:{ports['first']}?program=1", "--admin-token", TOKEN)
    senders = [
        transport.Sender(film.read_bytes(), ports["uni"], 4),
        transport.Sender(film.read_bytes(), ports["multi"], 4, host=GROUP),
        transport.Sender(two.read_bytes(), ports["second"], 4),
    ]
    for sender in senders:
        sender.wait()
    weir.wait(lambda: source_of(weir, "uni")["reception"]["packets"] == len(film.read_bytes()) // 188, 10, "all packets")
    return weir, ports


def test_what_arrives_is_recorded_with_the_senders_times(arrived):
    """Each is a stream of its own: frames and times are the published ones."""
    weir, ports = arrived
    for name in ports:
        told = source_of(weir, name)
        assert (told["kind"], told["state"], told["reception"]["state"]) == ("udp", "live", "receiving"), told
        assert (told["reception"]["gaps"], told["reception"]["foreign"]) == (0, 0), told
        assert weir.stream(name)["protocol"] == "udp"
    weir.stop()
    problems = []
    recorded = (("uni", "short"), ("multi", "short"), ("first", "short"), ("second", "straight"))
    for name, published in recorded:
        problems += [f"{name}: {problem}" for problem in packets.compare(
            packets.probe(sources.source(published)), packets.probe(recording(weir, name)))]
    nothing_wrong(problems)


def test_times_are_exact_through_a_wrap(start):
    """The times wrap in the middle of the film, which is sent at its own speed."""
    port, film = free_port(), transport.wrapping("h264-30").read_bytes()
    weir = start("--source", f"wrap=udp://127.0.0.1:{port}", "--admin-token", TOKEN)
    clocks = [found for at in range(0, len(film), 188) if (found := transport.clock(film[at:at + 188])) is not None]
    assert max(clocks) > transport.WRAP - 90000 and min(clocks) < 90000, "the film wraps"
    transport.Sender(film, port, 8).wait()
    weir.wait(lambda: source_of(weir, "wrap")["reception"]["packets"] == len(film) // 188, 10, "all packets")
    assert source_of(weir, "wrap")["reception"]["gaps"] == 0
    weir.stop()
    nothing_wrong(packets.compare(packets.probe(sources.source("h264-30")), packets.probe(recording(weir, "wrap"))))


def test_a_sender_that_returns_goes_on_in_the_same_playlist(start):
    port = free_port()
    film = transport.film("h264-30").read_bytes()
    weir = start("--source", f"field=udp://127.0.0.1:{port}", "--admin-token", TOKEN, "--no-record")
    first = transport.Sender(film, port, 8)
    weir.wait_state("field", "live")
    before = playlist(weir, "field")
    first.stop()
    weir.wait_log(r"no datagram for ([5-9]|1\d) s", 15)
    weir.wait_state("field", "reconnecting")
    weir.wait(lambda: source_of(weir, "field")["reception"]["state"] == "waiting", 10, "the source waits for a sender")
    second = transport.Sender(film, port, 8)
    weir.wait_state("field", "live")
    assert playlist(weir, "field") == before
    second.stop()


def test_senders_of_rubbish_disturb_nothing_and_are_counted(start):
    """Noise, foreign senders with a stream of their own, packets without tables: none of it reaches the stream."""
    port, other = free_port(), free_port()
    film = transport.film("short").read_bytes()
    weir = start("--source", f"field=udp://127.0.0.1:{port}", "--source", f"own=udp://127.0.0.1:{other}?from=127.0.0.2",
                 "--admin-token", TOKEN)
    half = iter([piece for _, piece in transport.paced(film[:len(film) // 376 * 188], 1)])
    with contextlib.ExitStack() as stack:
        intruder, noise = (stack.enter_context(contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))) for _ in range(2))
        intruder.bind(("127.0.0.3", 0))

        def intrude(number: int) -> None:
            # Right behind the one who is followed: whoever is silent for a second loses his place.
            if number > 60 and (piece := next(half, None)):
                intruder.sendto(piece, ("127.0.0.1", port))

        sender = transport.Sender(film, port, 4, then=intrude)
        weir.wait_state("field", "live")
        ignored = transport.Sender(film[:188 * 70], other, 1, own="127.0.0.3")
        for number in range(400):
            noise.sendto(os.urandom(number * 7 + 1), ("127.0.0.1", port))
            # So few fit into the socket of a server that is held up.
            if number % 20 == 19:
                weir.wait(lambda sent=number + 1: source_of(weir, "field")["reception"]["foreign"] == sent, 15, "they are counted", every=0.02)
        for each in (ignored, sender):
            each.wait()
    weir.wait(lambda: source_of(weir, "own")["reception"]["unfollowed"] == 10, 10, "what is ignored is counted")
    told = source_of(weir, "field")["reception"]
    assert told["foreign"] == 400 and told["unfollowed"] > 100 and told["sender"].startswith("127.0.0.1:"), told
    told = source_of(weir, "own")["reception"]
    assert told["datagrams"] == 0 and told["unfollowed"] == 10 and told["state"] == "waiting", told
    assert weir.resident_kilobytes() < 400_000
    weir.stop()
    text = weir.text("err")
    assert "1 datagram without packets of MPEG-TS dropped" in text and text.count("dropped, the last") <= 12
    nothing_wrong(packets.compare(packets.probe(sources.source("short")), packets.probe(recording(weir, "field"))))


def test_a_stream_without_a_programme_is_told_and_leaves_room_for_another(start):
    port = free_port()
    film = transport.film("h264-30").read_bytes()
    blind = b"".join(piece for piece in (film[at:at + 188] for at in range(0, len(film), 188))
                     if (piece[1] & 0x1F) << 8 | piece[2] != 0)  # without its association table
    weir = start("--source", f"field=udp://127.0.0.1:{port}", "--admin-token", TOKEN, "--no-record")
    first = transport.Sender(blind, port, 30)
    weir.wait_log("no programme of an MPEG transport stream within 10 s", 25)
    refused = weir.wait(lambda: weir.get("/api/v1/refusals", headers=ADMIN).json["refusals"], 10, "the reason")
    assert refused[0]["stream"] == "field"
    second = transport.Sender(film, port, 8, own="127.0.0.3")
    weir.wait_state("field", "live", seconds=15)
    first.stop()
    second.stop()


@pytest.mark.parametrize("place, complaint", [
    ("udp://239.1.1.1", "an address needs a port"), ("udp://:0", "the port is 0"),
    ("udp://:5000?ttl=3", 'udp has no option \\"ttl\\"'), ("udp://:5000?program=0", "not a whole number from 1"),
])
def test_a_wrong_address_is_told_at_start(start, place, complaint):
    with pytest.raises(AssertionError) as wrong:
        start("--source", f"a={place}")
    assert complaint.replace("\\", "") in str(wrong.value)


@pytest.fixture
def audio_of_the_field(start):
    """AC-3 and E-AC-3, by Enhanced RTMP, too, and AAC in LATM, while they are live: the server, what publishes, and the films."""
    films = {"ac3": transport.film("short", "-c:a", "ac3", "-b:a", "96k"),
             "eac3": transport.film("short", "-c:a", "eac3", "-b:a", "96k"),
             "latm": transport.film("short", "-mpegts_flags", "latm")}
    ports = {name: free_port() for name in films}
    flags = [flag for name in films for flag in ("--source", f"{name}=udp://127.0.0.1:{ports[name]}")]
    weir = start(*flags, "--admin-token", TOKEN, "--reconnect-window", "1s", "--audio-codec", "rtmp=source")
    senders = [transport.Sender(films[name].read_bytes(), ports[name], 4) for name in films]
    return weir, [*senders, publishers.ffmpeg(films["ac3"], f"{weir.rtmp}/live/rtmp", version="new")], films


def test_audio_of_the_field_is_passed_through(audio_of_the_field):
    """With all bytes and times; AAC in LATM as AAC. Playlists name the codecs. Beside AC-3 and E-AC-3 there is AAC by itself, unless
    `--audio-codec source` says otherwise."""
    weir, publishing, films = audio_of_the_field
    names = {"ac3": "ac-3", "eac3": "ec-3", "latm": "mp4a.40.2", "rtmp": "ac-3"}
    for name, codec in names.items():
        # The films are short.
        weir.wait_state(name, "live", "reconnecting", "ended")
        weir.wait(lambda: weir.get(f"/live/{name}/index.m3u8").status == 200, 30, f"a playlist of {name}")
        # The worker that makes the AAC may need longer than the first playlist.
        aac = 'CODECS="avc1.64000D,mp4a.40.2"'
        if name != "rtmp":
            weir.wait(lambda: aac in weir.get(f"/live/{name}/index.m3u8").good().text, 30, f"the AAC of {name}")
        text = weir.get(f"/live/{name}/index.m3u8").good().text
        assert f'CODECS="avc1.64000D,{codec}"' in text and (aac in text) == (name != "rtmp"), text
        warned = any("most browsers cannot play it" in warning for warning in weir.stream(name)["warnings"])
        assert warned == (name == "rtmp"), weir.stream(name)["warnings"]
    for publisher in publishing:
        publisher.wait()
    weir.stop()
    film = packets.probe(sources.source("short"))
    problems = []
    for name in names:
        found = packets.probe(recording(weir, name))
        audio = film["audio"] if name == "latm" else packets.probe(films["ac3" if name == "rtmp" else name])["audio"]
        for kind, published in (("video", film["video"]), ("audio", audio)):
            problems += [f"{name}: {problem}" for problem in packets.compare({kind: published}, {kind: found[kind]})]
        code, frames = packets.decode(recording(weir, name))
        if code:
            problems.append(f"{name}: {code}")
    nothing_wrong(problems)
