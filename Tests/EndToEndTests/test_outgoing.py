"""Requests of weir to others by names: of webhooks, a callback, a key set. Names that nobody has, and a name server that does not
answer."""

import os
import re
import socket
import threading
import time

import pytest

from harness import disks, publishers
from harness.events import SECRET, Receiver
from harness.rawrtmp import RawRTMP
from test_callback import Accounts, status
from test_reload import Configured

#: The port of a name server is 53, so it needs an address of this machine to itself.
ADDRESS = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"


class NameServer:
    """Knows the names of this machine that it is given, or says nothing at all. `asked`: the questions."""

    def __init__(self, folder, answers: bool, known: tuple[str, ...] = ()):
        disks.needs("unshare", "mount")
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((ADDRESS, 53))
        self.socket.settimeout(0.1)
        self.stops = False
        self.asked: list[bytes] = []
        self.answers = answers
        self.known = known
        (folder / "resolv.conf").write_text(f"nameserver {ADDRESS}\noptions timeout:5 attempts:2\n")
        #: A command in front of weir's: on its machine this is the name server.
        self.wrapper = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', str(folder / "resolv.conf"))
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        while not self.stops:
            try:
                question, client = self.socket.recvfrom(4096)
            except TimeoutError:
                continue
            self.asked.append(question)
            if self.answers:
                self.socket.sendto(self._answer(question), client)

    def _answer(self, question: bytes) -> bytes:
        """RFC 1035 §4.1: a response, recursion available, one question; an address of IPv4, or nothing, or no such name."""
        asked = question[12:question.index(b"\0", 12) + 5]
        knows = self.name(question) in self.known
        address = knows and asked[-4:-2] == b"\0\1"
        head = question[:2] + (b"\x81\x80" if knows else b"\x81\x83") + b"\0\1" + (b"\0\1" if address else b"\0\0") + bytes(4)
        return head + asked + (b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("127.0.0.1") if address else b"")

    @staticmethod
    def name(question: bytes) -> str:
        labels, place = [], 12
        while length := question[place]:
            labels.append(question[place + 1:place + 1 + length].decode())
            place += 1 + length
        return ".".join(labels)

    @property
    def names(self) -> set[str]:
        return {self.name(question) for question in list(self.asked)}

    def close(self) -> None:
        self.stops = True
        self.thread.join(5)
        self.socket.close()


@pytest.fixture
def name_server(tmp_path):
    made: list[NameServer] = []

    def make(**options) -> NameServer:
        made.append(NameServer(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_names_that_nobody_has_are_told_and_stop_nothing(start, tmp_path, name_server):
    names = name_server(answers=True)
    settings = {"access": {"jwt": {"keySet": "https://keys.invalid/jwks.json"}, "callback": {"url": "http://accounts.invalid/weir", "timeout": "5s"}},
                "streams": {"desk": {"publishKeys": ["key-of-the-desk-0815"]}},
                "hooks": [{"name": "site", "on": "stream.*", "url": "http://receiver.invalid/hook"}]}
    server = Configured(start, tmp_path, settings, "--no-record", wrapper=names.wrapper)
    weir = server.weir
    weir.secrets.append("key-of-the-desk-0815")
    weir.wait_log("the key set for tokens cannot be fetched: the request failed: no connection: ", 15)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/desk?key=key-of-the-desk-0815", loop=-1)
    try:
        weir.wait_state("desk", "live")
        stranger = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam?key=another")
        assert stranger.outcome(20)[0] != 0
        weir.wait_log("the callback did not answer, and the publisher is refused: no connection: ", 10)

        def outcomes() -> set[str]:
            told = server.call("GET", "/api/v1/events/deliveries").good().json["deliveries"]
            return {one["outcome"] for one in told}

        weir.wait(outcomes, 15, "a delivery that failed")
        assert all(re.match("no connection: ", outcome) for outcome in outcomes()), outcomes()
        assert weir.stream("desk")["state"] == "live" and publisher.process.poll() is None
        # A reload that would need the address is refused as a whole.
        answer = server.reload({**settings, "access": {"jwt": {"keySet": "https://other.invalid/jwks.json"}}})
        assert answer.status == 422 and "no connection" in answer.json["detail"], answer.text
    finally:
        publisher.kill()


def test_a_name_server_that_does_not_answer_delays_what_goes_elsewhere_by_nothing(start, tmp_path, name_server):
    """localhost stands in /etc/hosts. The other receiver's name is asked for at the server that is silent, for each of many streams."""
    names, receiver = name_server(answers=False), Receiver()
    accounts = Accounts(lambda handler, question: status(handler, 204))
    for one in (receiver.server, accounts):
        # A connection for each request, so that each name is looked for each time.
        one.RequestHandlerClass.protocol_version = "HTTP/1.0"
    elsewhere = receiver.url.replace("127.0.0.1", "localhost")
    server = Configured(start, tmp_path, {
        "access": {"callback": {"url": accounts.url.replace("127.0.0.1", "localhost"), "cache": "0s"}},
        "hooks": [{"name": "stuck", "on": "stream.*", "url": "http://receiver.stuck.example/hook"},
                  {"name": "good", "on": "stream.*", "url": elsewhere, "secret": SECRET}]}, "--no-record", wrapper=names.wrapper)
    weir = server.weir
    weir.secrets += [SECRET, "geheim"]
    late = []
    try:
        for number in range(24):
            name, begun = f"cam-{number}", time.monotonic()
            with RawRTMP(weir.rtmp).start(name) as client:
                weir.wait(lambda name=name: any(event["stream"] == name for _, event in list(receiver.taken)), 10, "the event at the good receiver")
                late.append(time.monotonic() - begun)
                client.finish()
        print(f"admitted and told after {max(late):.2f} s at most")
        assert names.asked and b"stuck" in names.asked[0]
        # A look at the silent server takes ten. HostNamesTests have the rule.
        assert max(late) < 5, late

        def outcomes(hook: str) -> set[str]:
            told = server.call("GET", "/api/v1/events/deliveries").good().json["deliveries"]
            return {one["outcome"] for one in told if one["hook"] == hook}

        weir.wait(lambda: outcomes("stuck"), 10, "the outcome of the first deliveries")
        assert outcomes("stuck") == {"no answer within 5s"} and outcomes("good") == {"200"}
    finally:
        receiver.close()
        accounts.shutdown()


def test_dead_names_of_any_number_hold_up_no_other_and_no_stop(start, tmp_path, name_server):
    """Twenty names are being looked up, each for ten seconds, when another one is wanted, and when the server is to end."""
    names, receiver = name_server(answers=False), Receiver()
    dead = [f"dead-{number}.example" for number in range(20)]
    hooks = [{"name": f"stuck-{number}", "on": "stream.started", "url": f"http://{name}/hook"} for number, name in enumerate(dead)]
    good = {"name": "good", "on": "stream.ended", "url": receiver.url.replace("127.0.0.1", "localhost"), "secret": SECRET}
    weir = Configured(start, tmp_path, {"hooks": [*hooks, good]}, "--no-record", wrapper=names.wrapper).weir
    weir.secrets += [SECRET, "geheim"]
    try:
        with RawRTMP(weir.rtmp).start("cam") as client:
            weir.wait(lambda: names.names == set(dead), 20, "all are asked for")
            client.finish()
        # Sooner than any of the looks ends.
        weir.wait(lambda: receiver.taken, 20, "the event at the good receiver")
        assert len(receiver.attempts) == 1
        # A stop gives deliveries two seconds. A look takes ten.
        took = weir.stop(seconds=7)
        print(f"ended after {took:.2f} s")
    finally:
        receiver.close()


def test_a_host_that_answers_is_not_looked_up_again_when_its_name_server_dies(start, tmp_path, name_server):
    names, receiver = name_server(answers=True, known=("receiver.example",)), Receiver()
    hook = {"name": "site", "on": "stream.*", "url": receiver.url.replace("127.0.0.1", "receiver.example"), "secret": SECRET}
    weir = Configured(start, tmp_path, {"hooks": [hook]}, "--no-record", wrapper=names.wrapper).weir
    weir.secrets += [SECRET, "geheim"]

    def told(name: str) -> list[str]:
        return [event["kind"] for _, event in list(receiver.taken) if event["stream"] == name]

    def come_and_go(name: str) -> None:
        """Until both of its events have come, one after the other."""
        with RawRTMP(weir.rtmp).start(name) as client:
            weir.wait(lambda: told(name) == ["stream.started"], 10, "the first event", every=0.01)
            client.finish()
        weir.wait(lambda: told(name) == ["stream.started", "stream.ended"], 10, "the second event", every=0.01)

    try:
        come_and_go("before")
        assert names.names == {"receiver.example"}
        names.answers, asked = False, len(names.asked)
        for number in range(3):
            come_and_go(f"after-{number}")
        assert len(names.asked) == asked, names.names
    finally:
        receiver.close()
