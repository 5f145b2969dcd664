"""Publishers by RTMP that write in other ways: each message or each chunk by itself, with TCP_NODELAY and without. Without it the
sender's system holds small writes back until what it has sent is acknowledged (Nagle's algorithm), and what the server does
not read is acknowledged 40 ms later. Their parts come as soon as those of others. And an end is told soon, whatever follows it.

All of it is time, so it runs alone. ReadThresholdTests judge what is collected and when."""

import fcntl
import statistics
import struct
import threading
import time

import pytest

from harness import flv, hls, http, llhls, scripts
from harness.rawrtmp import RawRTMP
from harness.weir import Weir

#: 30 frames a second of 3.7 KB and audio; key frames are 2 s apart.
FILM = "megabit"
#: The server finds out how a sender writes within a second of even frames. Later frames are judged.
LEARNT_SECONDS = 3
SECONDS = 6.5
#: What a part may be later than one of a sender that writes whole messages with TCP_NODELAY.
MEDIAN_MILLISECONDS, SECOND_MOST_MILLISECONDS = 5, 45
#: A sender's system that has held bytes back for so long has waited for a delayed acknowledgement, which takes 40 ms.
STALL_MILLISECONDS = 20
#: The share of frames that may have waited so. It is 2 to 5 % with audio.
STALLED = 0.1
#: Bytes that were written and not sent (linux/sockios.h).
SIOCOUTQNSD = 0x894B


class Sender:
    """Publishes the film. `stalls`: when its system held bytes back, in seconds since the first tag, and for how many milliseconds.
    `arrived`: when a waiting player has each part."""

    def __init__(self, weir: Weir, name: str, chunk_size: int, kinds: tuple[int, ...], **options):
        self.client = RawRTMP(weir.rtmp, **options).start(name, chunk_size=chunk_size)
        self.tags = flv.only(scripts.tags_of(FILM), *kinds)
        self.weir, self.name = weir, name
        self.arrived: dict[tuple[int, int], float] = {}
        self.stalls: list[tuple[float, float]] = []
        self._threads = [threading.Thread(target=one) for one in (self._publish, self._sample, self._watch)]

    def start(self) -> None:
        self.began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        self.client.close()

    def _publish(self) -> None:
        self.client.play_out(self.tags, until=SECONDS)

    def _sample(self) -> None:
        since = None
        while (now := time.monotonic()) < self.began + SECONDS:
            held = struct.unpack("i", fcntl.ioctl(self.client.socket.fileno(), SIOCOUTQNSD, b"\0" * 4))[0]
            if held and since is None:
                since = now
            elif not held and since is not None:
                if (now - since) * 1000 > STALL_MILLISECONDS:
                    self.stalls.append((since - self.began, (now - since) * 1000))
                since = None
            time.sleep(0.002)

    def _watch(self) -> None:
        index = f"{self.weir.web}/live/{self.name}/index.m3u8"
        self.weir.wait(lambda: http.fetch(index).status == 200, 15, "a multivariant playlist")
        top = hls.parse_multivariant(http.fetch(index).text, index)
        player = llhls.Player(top.absolute(top.variants[0].uri))
        player.play(self.began + SECONDS - 0.5 - time.monotonic())
        for at, playlist in player.playlists[1:]:
            self.arrived.setdefault(playlist.last, at - self.began)


BOTH, VIDEO = (flv.VIDEO, flv.AUDIO), (flv.VIDEO,)


@pytest.mark.quiet
@pytest.mark.parametrize("by_chunk, chunk_size, kinds", [
    pytest.param(False, 4096, BOTH, id="messages", marks=pytest.mark.long),
    pytest.param(True, 4096, BOTH, id="chunks-of-4096", marks=pytest.mark.long),
    pytest.param(True, 128, BOTH, id="chunks-of-128"),
    pytest.param(True, 128, VIDEO, id="chunks-of-128-video-alone", marks=pytest.mark.long),
])
def test_parts_of_a_sender_without_no_delay_come_as_soon(start, record_property, by_chunk, chunk_size, kinds):
    weir = start("--no-record")
    usual = Sender(weir, "usual", 4096, kinds)
    other = Sender(weir, "other", chunk_size, kinds, no_delay=False, by_chunk=by_chunk)
    for sender in (usual, other):
        sender.start()
    for sender in (usual, other):
        sender.join()
    later = sorted((other.arrived[place] - at) * 1000 for place, at in usual.arrived.items()
                   if place in other.arrived and at >= LEARNT_SECONDS)
    stalled = [one for one in other.stalls if one[0] >= LEARNT_SECONDS]
    # Of five parts a second.
    assert len(later) >= 3.5 * (SECONDS - LEARNT_SECONDS), (usual.arrived, other.arrived)
    record_property(
        "figure", f"RTMP without TCP_NODELAY, {'chunks' if by_chunk else 'messages'} of {chunk_size}, {len(kinds)} tracks: parts {statistics.median(later):.1f} ms "
        f"later (median), {later[-1]:.1f} at most; held back {len(other.stalls) - len(stalled)} times in the first {LEARNT_SECONDS} s, "
        f"{len(stalled)} times later")
    assert statistics.median(later) <= MEDIAN_MILLISECONDS and later[-2] <= SECOND_MOST_MILLISECONDS, later
    assert len(stalled) <= STALLED * 30 * (SECONDS - LEARNT_SECONDS), stalled


def told_after(weir: Weir, name: str) -> float:
    """Seconds from the command that ends a stream to its end, while the sender keeps the connection."""
    tags = flv.only(scripts.tags_of(FILM), flv.VIDEO, flv.AUDIO)
    with RawRTMP(weir.rtmp).start(name) as client:
        client.play_out(tags, until=4)
        # Not in one read with the last frame.
        time.sleep(0.02)
        client.command("deleteStream", None, client.stream)
        began = time.monotonic()
        weir.wait(lambda: weir.stream(name)["state"] == "ended", 5, "the end", every=0.002)
        return time.monotonic() - began


@pytest.mark.quiet
@pytest.mark.long  # whatWaitsInVainIsReadAfterAMoment of ReadThresholdTests has the rule
def test_an_end_is_told_soon_where_the_sender_stays(start, record_property):
    """The system may have been asked to collect more bytes than a command has."""
    weir = start("--no-record")
    found = told_after(weir, "end")
    record_property("figure", f"RTMP: an end behind the last frame is told after {found * 1000:.0f} ms")
    assert found <= 0.13
