"""What bad peers of WebRTC cost a server (docs/limits.md): floods of STUN, handshakes of DTLS that never end or contradict
themselves, false certificates, sessions that are left by the thousand, and admitted peers that send rubbish in place of RTP and
RTCP. Beside them ten viewers get their parts, and a publisher by WebRTC loses no frame. That parts come in time is measured alone, by
`make test-long`; of one attack of test_attacks.py it is measured each time."""

import asyncio
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import time

import pytest

from harness import packets, publishers, tools
from harness.followers import Beside
from harness.handshakes import Caller, Cutter, binding, fingerprint, piece, record
from harness.rawrtmp import RawRTMP
from test_attacks import LIMIT, LINES, MEBIBYTE, TIMES, VIEWERS, Scene, memory

pytest.importorskip("OpenSSL", reason="pyOpenSSL comes with aiortc")

CAMERA = "camera"
#: Sessions of an address that are not connected, and the largest message of a handshake that is put together.
WAITING, MESSAGE = 32, 16_384
#: Where the attacks come from.
ELSEWHERE = "127.0.2.1"
#: Seconds that each stretch has at least, so that enough parts come in it.
STRETCH = 3


class Studio(Scene):
    """The server of the attacks (test_attacks.py), with a publisher by WebRTC. `keeps_time`: whether lateness is judged, too."""

    def __init__(self, start, folder: pathlib.Path, keeps_time: bool):
        super().__init__(start, folder, "--webrtc", "127.0.0.1:0", listeners=("http", "rtmp", "webrtc"), compares=keeps_time)
        self.keeps_time = keeps_time
        self.publishers.append(publishers.whip("h264-30", f"{self.weir.web}/whip/{CAMERA}", loop=-1))
        self.camera = self.weir.wait_state(CAMERA, "live", seconds=20)

    def honest_lost_nothing(self) -> None:
        super().honest_lost_nothing()
        assert self.publishers[-1].process.poll() is None
        camera = self.weir.stream(CAMERA)
        assert camera["state"] == "live" and camera["startedAt"] == self.camera["startedAt"], camera
        assert camera["received"]["lostVideoFrames"] == camera["received"]["lostAudioFrames"] == 0, camera["received"]

    @contextlib.contextmanager
    def beside(self, what: str, growth: int, record_property):
        """Judges what is done within: nobody else loses anything, or is late, and the server grows by so many bytes at most."""
        crowds = [Beside(url, VIEWERS) for url in self.lists]
        before = memory(self.weir.process.pid)
        try:
            for crowd in crowds:
                crowd.ready()
            if self.keeps_time:
                time.sleep(STRETCH)  # real time: parts of a calm stretch
            lines, begin = len(self.weir.lines), time.monotonic()
            yield
            if self.keeps_time:
                time.sleep(max(0, begin + STRETCH - time.monotonic()))
            grown, end = memory(self.weir.process.pid) - before, time.monotonic()
            for crowd in crowds:
                crowd.stop()
        finally:
            for crowd in crowds:
                crowd.kill()
        lines = len(self.weir.lines) - lines
        figure = f"WebRTC, {what}: {grown / MEBIBYTE:.1f} MiB, {lines} lines of the log"
        if self.keeps_time:
            calm, rough = (crowds[0].late(*times, 0.95) for times in ((begin - STRETCH, begin), (begin, end)))
            idle = crowds[1].late(begin, end, 0.95) if self.neighbour else calm
            figure += (f", 95 % of the parts at most {rough * 1000:.0f} ms late, {calm * 1000:.0f} ms before it, "
                       f"{idle * 1000:.0f} ms beside it")
            assert rough < TIMES * max(calm, idle, LIMIT), (rough, calm, idle)
        record_property("figure", figure)
        for viewer in crowds[0].viewers:
            assert not viewer.errors, viewer.errors[:3]
        self.honest_lost_nothing()
        assert grown < growth, grown / MEBIBYTE
        assert lines < LINES * max(end - begin, STRETCH), self.weir.tail()


@pytest.fixture(scope="module", params=["counts", pytest.param("lateness", marks=[pytest.mark.quiet, pytest.mark.long])])
def scene(request, start_shared, tmp_path_factory):
    made = Studio(start_shared, tmp_path_factory.getbasetemp(), request.param == "lateness")
    yield made
    made.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path]:
    return tools.make_certificate(tmp_path_factory.mktemp("certificate"))


#: The sessions of a test.
CALLERS: list[Caller] = []


@pytest.fixture(autouse=True)
def _leave():
    """A test that fails leaves no session that the next one would have to wait for."""
    yield
    while CALLERS:
        CALLERS.pop().leave()


def call(scene, path: str, *parts, source: str = ELSEWHERE) -> Caller:
    """A session whose peer is known by its address."""
    caller = Caller(scene.weir, path, *parts, source=source)
    if caller.status == 201:
        CALLERS.append(caller)
    assert caller.status == 201, caller.answer
    return caller.connect()


def call_again(caller: Caller) -> socket.socket:
    """Another address of a peer, which is known, too."""
    former, caller.socket = caller.socket, None
    caller.connect()
    other, caller.socket = caller.socket, former
    return other


def viewers(weir) -> int:
    """Of the camera by WebRTC, as /metrics counts them."""
    lines = [line for line in weir.get("/metrics").text.splitlines() if line.startswith("weir_viewers{")]
    return sum(int(line.split()[-1]) for line in lines if 'protocol="webrtc"' in line and f'stream="{CAMERA}"' in line)


@pytest.mark.long
def test_a_flood_of_forged_requests_gets_no_answer(scene, tmp_path, record_property):
    """20,000 requests of STUN in a second for three seconds, each for a session that there is, with a message integrity that is not
    of its password."""
    program = tmp_path / "flood"
    source = pathlib.Path(__file__).parent / "harness" / "flood.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", program, source], check=True, timeout=60)
    caller = call(scene, "/whip/flooded")
    with scene.beside("60,000 forged requests", 8 * MEBIBYTE, record_property):
        done = subprocess.run(
            [program, str(caller.port), "60000", "3"], input=binding(caller.user), capture_output=True, check=True, timeout=30)
        sent, answers, took = done.stdout.decode().split()
    assert (int(sent), int(answers)) == (60_000, 0), done.stdout
    assert float(took) < 4 or not scene.keeps_time, "a slower flood is another test"
    # The session is not harmed by what came in its name.
    assert caller.connect().leave() == 200


def test_handshakes_that_never_end_are_kept_to_a_bound(scene, record_property):
    """As many sessions as an address may have, each with the fragments of as many messages as are kept ahead, and of one more. Of
    each message one byte is missing."""
    with scene.beside("12 messages without an end in each of 32 handshakes", 16 * MEBIBYTE, record_property):
        callers = [call(scene, f"/whip/endless{number}") for number in range(WAITING)]
        for caller in callers:
            pieces = [(message, at) for message in range(12) for at in range(0, MESSAGE - 1, 1100)]
            for number, (message, at) in enumerate(pieces):
                data = bytes(min(1100, MESSAGE - 1 - at))
                caller.send(record(number, piece(MESSAGE, at, data, message=message)))
                if number % 10 == 0:
                    time.sleep(0.001)
        # None is answered, and none is ended before its time.
        assert [caller.receive(0.01) for caller in callers] == [b""] * WAITING
        assert Caller(scene.weir, "/whip/further", source=ELSEWHERE).status == 429
        assert {caller.leave() for caller in callers} == {200}


def test_a_message_that_says_to_be_huge_ends_its_session(scene, record_property):
    """2,000 fragments of a ClientHello of 16 MiB. The first one is too much."""
    seen = len(scene.weir.lines)
    with scene.beside("2,000 fragments of a message of 16 MiB", 8 * MEBIBYTE, record_property):
        caller = call(scene, "/whip/huge")
        for number in range(2000):
            caller.send(record(number, piece(0xFFFFFF, number * 1100, bytes(1100))))
            if number % 10 == 0:
                time.sleep(0.001)
        scene.weir.wait(
            lambda: any("its DTLS handshake failed" in line for _, line in scene.weir.lines[seen:]), 10, "its end, with the reason")
        caller.receive(0.1)
        assert caller.received <= caller.sent
    assert caller.leave() == 410


def test_fragments_that_overlap_make_a_message_or_end_their_session(scene, certificate):
    """A handshake whose fragments overlap is complete where they agree. Where they do not, its session alone ends."""
    mark = fingerprint(certificate[0])
    caller, cutter = call(scene, "/whip/overlap", mark), Cutter()
    assert caller.shake_hands(*certificate, cutter) and cutter.cut >= 4, cutter.cut
    assert caller.leave() == 200
    caller, cutter = call(scene, "/whip/contradiction", mark), Cutter(contradicts=True)
    assert not caller.shake_hands(*certificate, cutter, seconds=3) and cutter.cut >= 1
    assert caller.received <= caller.sent
    assert caller.leave() in (200, 410)
    # Another one of the same address is taken as ever.
    caller = call(scene, "/whip/contradiction", mark)
    assert caller.shake_hands(*certificate)
    assert caller.leave() == 200
    scene.honest_lost_nothing()


def test_a_handshake_goes_on_where_its_peer_takes_another_path(scene, certificate):
    """The second hello comes from another address than the first one, with its cookie, as where ICE finds a better path meanwhile."""
    caller = call(scene, "/whip/moving", fingerprint(certificate[0]))
    other = call_again(caller)

    def moves(datagram: bytes) -> list[bytes]:
        if caller.received:
            caller.socket = other
        return [datagram]

    assert caller.shake_hands(*certificate, moves) and caller.socket is other
    assert caller.leave() == 200
    scene.honest_lost_nothing()


def test_who_shows_another_certificate_than_it_offered_is_ended_with_the_reason(scene, certificate):
    """Its name is free at once, and so is the place of a viewer; without that they would be after 15 s."""
    weir = scene.weir
    caller = call(scene, "/whip/false")
    assert Caller(weir, "/whip/false", source="127.0.2.2").status == 409, "the name is taken"
    seen = len(weir.lines)
    caller.shake_hands(*certificate)
    weir.wait(
        lambda: any(re.search(r"false.*its certificate is not the one of its offer", line) for _, line in weir.lines[seen:]), 10,
        "a line with the reason")
    assert caller.leave() == 410
    other = Caller(weir, "/whip/false", source="127.0.2.2")
    assert other.status == 201, other.answer
    assert other.leave() == 200
    viewer = call(scene, f"/whep/{CAMERA}")
    weir.wait(lambda: viewers(weir) == 1, 10, "a viewer by WebRTC")
    viewer.shake_hands(*certificate)
    weir.wait(lambda: viewers(weir) == 0, 10, "no viewer by WebRTC")
    assert viewer.leave() == 410
    scene.honest_lost_nothing()


PATHS = {"whip": lambda number: f"/whip/left{number}", "whep": lambda number: f"/whep/{CAMERA}"}


class Left:
    """1,000 offers of publishers and 1,000 of viewers from one address, none of which connects. `answered`: when each was."""

    #: A session that does not connect is ended 15 s after its offer. Those that are answered sooner after the first one are judged.
    SECONDS = 14

    def __init__(self, scene):
        self.descriptors = len(os.listdir(f"/proc/{scene.weir.process.pid}/fd"))
        self.figures: list[tuple[str, str]] = []
        with scene.beside("2,000 offers that nobody follows", 24 * MEBIBYTE, lambda *figure: self.figures.append(figure)):
            self.callers, self.answered = {}, {}
            for kind, path in PATHS.items():
                self.callers[kind], self.answered[kind] = [], []
                for number in range(1000):
                    self.callers[kind].append(Caller(scene.weir, path(number), source="127.0.2.3"))
                    self.answered[kind].append(time.monotonic())
            # Another address has places of its own.
            assert Caller(scene.weir, f"/whep/{CAMERA}", source="127.0.2.4").leave() == 200


@pytest.fixture(scope="module")
def left(scene):
    return Left(scene)


def test_sessions_that_are_left_by_the_thousand_are_taken_to_a_bound(left, record_property):
    """That they are free again is judged at the end of this file: until then they take 15 s."""
    for figure in left.figures:
        record_property(*figure)
    for kind, callers in left.callers.items():
        first, *_ = times = left.answered[kind]
        judged = [caller for caller, at in zip(callers, times) if at < first + left.SECONDS]
        assert len(judged) > 2 * WAITING and [caller.status for caller in judged] == [201] * WAITING + [429] * (len(judged) - WAITING), kind
        assert {caller.headers.get("retry-after") for caller in judged[WAITING:]} == {"5"}, kind


def keep_nobody_away(start, streams: int, viewers: int, addresses: int) -> None:
    """Three times as many offers as there may be streams and viewers, of several addresses. None is followed."""
    weir = start("--no-record", "--webrtc", "127.0.0.1:0", "--max-streams", str(streams), "--max-viewers", str(viewers),
                 listeners=("http", "rtmp", "webrtc"))
    camera = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{CAMERA}", loop=-1)
    try:
        weir.wait_state(CAMERA, "live")
        sources = [f"127.0.3.{1 + number}" for number in range(addresses)]

        def offer(path, count: int) -> list[Caller]:
            return [Caller(weir, path(number), source=sources[number % addresses]) for number in range(count)]

        left = offer(PATHS["whip"], 3 * streams)
        assert {caller.status for caller in left} == {201}
        watching = offer(PATHS["whep"], 3 * viewers)
        assert {caller.status for caller in watching} == {201}
        with contextlib.ExitStack() as others:
            for number in range(streams - 1):
                others.enter_context(RawRTMP(weir.rtmp, source=f"127.0.4.{1 + number % 200}").start(f"other{number}"))
            for number in range(viewers):
                answer = weir.get(f"/live/{CAMERA}/index.m3u8", source=f"127.0.5.{1 + number}")
                assert answer.status == 200, (number, answer.status)
        # Who gave way is told so.
        told = weir.get(left[-1].headers["location"], method="DELETE", source=left[-1].source)
        assert told.status == 410 and "others needed its place" in told.text, (told.status, told.text)
        # After 15 s it would be over, too.
        assert watching[-1].leave() in (200, 410)
        assert weir.stream(CAMERA)["state"] == "live" and camera.process.poll() is None
    finally:
        camera.kill()


def test_offers_that_nobody_follows_keep_no_publisher_and_no_viewer_away(start):
    keep_nobody_away(start, streams=6, viewers=4, addresses=3)


@pytest.mark.long
def test_a_thousand_offers_keep_nobody_away(start):
    keep_nobody_away(start, streams=330, viewers=200, addresses=32)


@contextlib.asynccontextmanager
async def beside(scene, *what):
    """The same, while the peers of a test go on."""
    judge = scene.beside(*what)
    await asyncio.to_thread(judge.__enter__)
    try:
        yield
    except BaseException as error:
        await asyncio.to_thread(judge.__exit__, type(error), error, error.__traceback__)
        raise
    await asyncio.to_thread(judge.__exit__, None, None, None)


async def until(weir, *condition) -> None:
    await asyncio.to_thread(weir.wait, *condition)


def frames(weir, name: str) -> int:
    return weir.stream(name)["received"]["videoFrames"]


async def goes_on(weir, name: str) -> None:
    """A second of its frames comes."""
    await until(weir, lambda: (weir.stream(name) or {}).get("state") == "live", 40, f"{name} is live")
    before = frames(weir, name)
    await until(weir, lambda: frames(weir, name) >= before + 30, 30, f"a second of {name}")


async def admitted(scene, name: str, kind: str, record_property, ending: str = "") -> tuple[dict, int, list[str]]:
    """A publisher that sends rubbish of a kind. Returns its stream after that, how its session ended, and the hashes of its honest
    frames. `ending`: a reason for which the server ends it."""
    rubbish = pytest.importorskip("harness.rubbish", reason="aiortc connects the peer", exc_type=ImportError)
    weir = scene.weir
    async with rubbish.Peer(weir, f"/whip/{name}") as peer:
        await peer.publish()
        await goes_on(weir, name)
        begun, asked, sent, most = weir.stream(name)["startedAt"], len(peer.asked), peer.sent, 0

        async def look() -> None:
            nonlocal most
            while True:
                most = max(most, memory(weir.process.pid))
                await asyncio.sleep(0.05)

        before, looking = memory(weir.process.pid), asyncio.ensure_future(look())
        async with beside(scene, f"{kind} of rubbish by a publisher", 24 * MEBIBYTE, record_property):
            start = time.monotonic()
            # For so long, and until there is enough of it, on a machine that is busy.
            while (passed := time.monotonic() - start) < STRETCH or peer.sent - sent <= 1000 and passed < 30:
                await rubbish.RUBBISH[kind](peer)
            spent = time.monotonic() - start
            await asyncio.sleep(1)  # real time: requests for key frames that what came still makes
        looking.cancel()
        assert peer.sent - sent > 1000 and spent < 30, (peer.sent - sent, spent)
        # It is asked for key frames four times a second at most (docs/limits.md).
        assert len(peer.asked) - asked <= 4 * (spent + 1) + 5, (len(peer.asked) - asked, spent)
        assert most - before < 48 * MEBIBYTE, (most - before) / MEBIBYTE
        if ending:
            await until(weir, lambda: any(re.search(f"{name}: .*{ending}", line) for _, line in weir.lines), 30, f"its end: {ending}")
        else:
            await goes_on(weir, name)
        stream = weir.stream(name)
        assert stream["startedAt"] == begun, stream
        record_property("figure", f"WebRTC, {kind} of rubbish: {peer.sent - sent} packets within {spent:.1f} s, at most "
                                  f"{(most - before) / MEBIBYTE:.1f} MiB, {stream['received']['lostVideoFrames']} frames lost")
        return stream, await peer.leave(), peer.honest()


@pytest.mark.parametrize("kind", ["headers", "fragments", "units", "jumps", "reports"])
def test_rubbish_of_an_admitted_publisher_costs_its_own_frames_at_most(scene, kind, record_property):
    """It has keys, and publishes a stream. Its session and its stream go on; frames that the rubbish harmed are told as lost, and
    what is recorded are its honest frames, each whole."""
    weir, name = scene.weir, f"rubbish-{kind}"
    stream, status, honest = asyncio.run(asyncio.wait_for(admitted(scene, name, kind, record_property), 90))
    assert (stream["state"], status) == ("live", 200), "its session went on"
    assert kind == "reports" or stream["received"]["lostVideoFrames"] > 0, stream["received"]
    weir.wait_state(name, "ended")
    came, movie = frames(weir, name), weir.only_recording(name)
    recorded = packets.probe(movie)["video"]
    assert len(recorded) == came, (len(recorded), came)
    left = iter(honest)
    assert not [number for number, packet in enumerate(recorded) if packet.digest not in left], "honest frames, in their order, each once"
    # Frames go on behind lost ones. Where 16 are lost, or a multiple of 16, `frame_num` comes twice, and ffmpeg says so.
    errors, _ = packets.decode(movie)
    unexpected = [line for line in errors.splitlines() if kind == "reports" or "illegal short term buffer state" not in line]
    assert not unexpected, errors


@pytest.mark.parametrize(("kind", "reason"), [
    ("sizes", r"its codec or frame size changed more than 30 times in a minute \(--max-changes\)"),
    # After 20 s.
    pytest.param("senders", "no byte for", marks=pytest.mark.long)])
def test_rubbish_that_leaves_no_stream_ends_its_session_with_the_reason(scene, kind, reason, record_property):
    _, status, _ = asyncio.run(asyncio.wait_for(admitted(scene, f"rubbish-{kind}", kind, record_property, reason), 90))
    assert status == 410
    scene.honest_lost_nothing()


def test_rubbish_of_an_admitted_viewer_costs_no_other_viewer_a_packet(scene, record_property):
    """It asks for everything again, for key frames and for rates that there are not, in compounds of rubbish. The source is asked
    for a key frame at most twice a second, and what it gets is bounded."""
    rubbish = pytest.importorskip("harness.rubbish", reason="aiortc connects the peer", exc_type=ImportError)
    weir, name = scene.weir, "watched"

    async def run() -> None:
        async with (rubbish.Peer(weir, f"/whip/{name}") as publisher, rubbish.Peer(weir, f"/whep/{name}") as honest,
                    rubbish.Peer(weir, f"/whep/{name}") as liar):
            await publisher.publish()
            await goes_on(weir, name)
            await honest.watch()
            await liar.watch()
            source = int(re.search(r"a=ssrc:(\d+)", liar.answer)[1])
            while not honest.arrived.get(source) or not liar.arrived.get(source):
                await asyncio.sleep(0.02)
            await asyncio.sleep(1)  # real time: the key frames that both asked for have come
            async with beside(scene, "rubbish by a viewer", 16 * MEBIBYTE, record_property):
                publisher.asked.clear()
                got, whole, sent, shown, start = liar.bytes, honest.bytes, liar.sent, frames(weir, name), time.monotonic()
                made = len(publisher.frames)
                while (passed := time.monotonic() - start) < STRETCH or liar.sent - sent <= 3000 and passed < 30:
                    await rubbish.reports(liar, source)
                spent = time.monotonic() - start
                got, whole, shown = liar.bytes - got, honest.bytes - whole, frames(weir, name) - shown
                made = len(publisher.frames) - made
                asked = list(publisher.asked)
            status = await liar.leave()
            record_property(
                "figure", f"WebRTC, rubbish of a viewer: {liar.sent - sent} packets within {spent:.1f} s, {len(asked)} requests for "
                f"key frames to the publisher, {got / 1e6:.2f} MB to it, {whole / 1e6:.2f} MB to another one, its session {status}")
            assert liar.sent - sent > 3000 and spent < 30, (liar.sent - sent, spent)
            assert 1 <= len(asked) <= 2 * spent + 1, (asked, spent)
            # Half a megabyte a second is sent again at most, and 128 KiB at once (docs/limits.md).
            assert 2 * whole < got <= 1.05 * (whole + 500_000 * spent + 128 * 1024), (got, whole, spent)
            # Another viewer has every packet, once and in order.
            numbers = honest.arrived[source]
            assert all(b - a & 0xFFFF == 1 for a, b in zip(numbers, numbers[1:])), "packets are missing"
            assert shown >= 0.9 * made - 5 > 0, (shown, made)
            assert weir.stream(name)["received"]["lostVideoFrames"] == 0
            # Its session went on, or was ended because it says that its network carries nothing.
            assert status in (200, 410), status
            assert await honest.leave() == 200
            assert await publisher.leave() == 200

    asyncio.run(asyncio.wait_for(run(), 90))


def test_sessions_that_were_left_are_free_again(scene, left):
    """Each of them, and nothing of them stays."""
    weir = scene.weir
    weir.wait(lambda: viewers(weir) == 0, 20, "no viewer by WebRTC")

    def first() -> Caller | None:
        caller = Caller(weir, "/whip/left0", source="127.0.2.3")
        return caller if caller.status == 201 else None

    assert weir.wait(first, 20, "a free place for a publisher").leave() == 200
    for kind, path in PATHS.items():
        callers = [Caller(weir, path(number), source="127.0.2.3") for number in range(40)]
        assert [caller.status for caller in callers] == [201] * WAITING + [429] * (40 - WAITING), kind
        assert {caller.leave() for caller in callers[:WAITING]} == {200}
    assert len(os.listdir(f"/proc/{weir.process.pid}/fd")) <= left.descriptors + 2 * WAITING
