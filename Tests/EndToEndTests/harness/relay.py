"""A relay for datagrams that is a bad network: delay, jitter, loss, reordering and duplicates, from a seed."""

import dataclasses
import heapq
import pathlib
import random
import select
import socket
import threading
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Path:
    """What happens to datagrams in one direction. Times in seconds, the others as probabilities."""

    delay: float = 0
    jitter: float = 0
    loss: float = 0
    duplicates: float = 0
    #: They are late by another `delay / 2`, so later ones overtake them.
    reordered: float = 0
    #: Bytes per second; 0: any number. What does not fit waits for at most `queue` seconds, then it is lost.
    rate: float = 0
    queue: float = 0.3


class Relay:
    """Takes datagrams at `port` for a server's port. Each client has a socket of its own towards the server. `forth` is the
    direction to the server. `hole` cuts both directions for a while. Each direction draws its own numbers: relays of one seed
    do the same to the n-th datagram of a direction, however many the other one has. `swallows` names the datagrams to the server
    that are lost in any case. What came is noted, and can be written to a file."""

    #: Bytes of each datagram that are noted: of RTP the whole header, which is not encrypted. Datagrams that are noted at most.
    HEAD, NOTED = 20, 200_000

    def __init__(self, target: int, *, forth: Path = Path(), back: Path = Path(), seed: int = 1,
                 swallows: Callable[[bytes], bool] = lambda datagram: False):
        self.target = ("127.0.0.1", target)
        self.forth, self.back, self._swallows = forth, back, swallows
        self._random = {True: random.Random(f"forth {seed}"), False: random.Random(f"back {seed}")}
        self.front = self._socket()
        self.front.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        self.lost = self.passed = 0
        self.noted: list[tuple[float, bool, int, bool, bytes]] = []  # when, to the server, bytes, whether it is lost, how it begins
        self._hole = 0.0
        self._over = False
        self._free: dict[bool, float] = {}  # of each direction, when its rate has room
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        made.setblocking(False)
        return made

    def hole(self, seconds: float) -> None:
        self._hole = time.monotonic() + seconds

    def _plan(self, is_forth: bool, now: float, size: int) -> list[float]:
        """When a datagram that came now goes on; several times or never."""
        path, chance = self.forth if is_forth else self.back, self._random[is_forth]
        free = max(now, self._free.get(is_forth, 0)) if path.rate else now
        if now < self._hole or free > now + path.queue or chance.random() < path.loss:
            self.lost += 1
            return []
        if path.rate:
            self._free[is_forth] = now = free + size / path.rate
        copies = 2 if chance.random() < path.duplicates else 1
        late = path.delay / 2 if chance.random() < path.reordered else 0
        return [now + path.delay + late + chance.uniform(0, path.jitter) for _ in range(copies)]

    def _run(self) -> None:
        behind: dict[socket.socket, tuple] = {}  # a socket towards the server, and its client
        clients: dict[tuple, socket.socket] = {}
        queue: list[tuple] = []
        number = 0
        while not self._over:
            wait = min(0.1, max(0, queue[0][0] - time.monotonic())) if queue else 0.1
            for ready in select.select([self.front, *behind], [], [], wait)[0]:
                for _ in range(64):
                    try:
                        data, client = ready.recvfrom(2048)
                    except OSError:
                        break
                    now = time.monotonic()
                    if ready is self.front:
                        if client not in clients:
                            clients[client] = self._socket()
                            clients[client].bind(("127.0.0.1", 0))
                            behind[clients[client]] = client
                        out, to = clients[client], self.target
                    else:
                        out, to = self.front, behind[ready]
                    if ready is self.front and self._swallows(data):
                        self.lost += 1
                        moments = []
                    else:
                        moments = self._plan(ready is self.front, now, len(data))
                    if len(self.noted) < self.NOTED:
                        self.noted.append((now, ready is self.front, len(data), not moments, data[:self.HEAD]))
                    for moment in moments:
                        number += 1
                        heapq.heappush(queue, (moment, number, out, to, data))
            now = time.monotonic()
            while queue and queue[0][0] <= now:
                _, _, out, to, data = heapq.heappop(queue)
                try:
                    out.sendto(data, to)
                    self.passed += 1
                except OSError:
                    pass  # the other side is gone
        for made in [self.front, *behind]:
            made.close()

    def stop(self) -> None:
        self._over = True
        self._thread.join(2)

    def write(self, path: pathlib.Path) -> None:
        """What came, a datagram in a line: seconds, direction, bytes, whether it is lost, and its first bytes."""
        begun = self.noted[0][0] if self.noted else 0
        path.write_text("".join(
            f"{at - begun:.4f} {'>' if forth else '<'} {size} {'lost' if lost else 'on'} {head.hex()}\n"
            for at, forth, size, lost, head in self.noted))
