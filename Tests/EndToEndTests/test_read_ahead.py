"""Clients that ask for files on disk and do not read them: what they make the server hold."""

import collections
import contextlib
import pathlib
import re
import shutil
import socket

import pytest

from harness import http, tools
from harness.floods import ADDRESS, SIZE, lay_out
from harness.groups import MemoryGroup
from harness.http2 import Connection, context

MEBIBYTE = 1 << 20
#: Memory of the server, of which an eighth is for bytes on their way to clients, and an address has half of that.
MEMORY = 256 * MEBIBYTE
SHARE = MEMORY // 16


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    cert, key = tools.make_certificate(folder)
    group = MemoryGroup(MEMORY)
    inside = ("sh", "-c", f'echo $$ > {group.folder}/cgroup.procs && exec "$@"', "sh")
    server = start_shared("--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, listeners=("http", "https", "rtmp"), wrapper=inside)
    lay_out(server.recordings)
    server.wait(lambda: http.fetch(server.web + ADDRESS, method="HEAD").status == 200, 10, "the file is served")
    yield server
    assert group.kills() == 0
    server.stop()
    group.remove()
    shutil.rmtree(server.recordings, ignore_errors=True)


def own_memory(weir) -> int:
    """Bytes, without memory files."""
    return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{weir.process.pid}/status").read_text())[1]) << 10


def settled(weir) -> int:
    """The most of its memory, when that has grown no more for a second and a half."""
    sizes = [own_memory(weir)]
    weir.wait(lambda: sizes.append(own_memory(weir)) or len(sizes) > 30 and max(sizes[-30:]) - sizes[-30] < MEBIBYTE, 20, "an even size")
    return max(sizes)


@pytest.mark.parametrize("window", [1, 1 << 20])
def test_streams_of_clients_that_do_not_read_have_little_read_for_them(weir, window):
    """Each had 128 KiB: 20 connections ended the server. An honest client has its file meanwhile."""
    before = settled(weir)
    clients = [Connection(weir.addresses["https"], window=window, reading=window == 1) for _ in range(20)]
    try:
        for client in clients:
            for _ in range(100):
                client.request(ADDRESS, reads=False)
        for client in clients:
            if window == 1:
                client.wait(lambda c: sum(len(stream.body) for stream in c.streams.values()) == 100, 20, "a byte of each")
        assert settled(weir) - before < SHARE + 8 * MEBIBYTE
        whole = Connection(weir.addresses["https"])
        assert len(whole.get(ADDRESS).body) == SIZE
        whole.close()
    finally:
        for client in clients:
            client.close()


def test_answers_that_a_client_does_not_take_are_bounded(weir):
    """What the API writes for one client stayed in memory until that took it. Another address has its answer meanwhile."""
    size = len(http.fetch(f"{weir.web}/metrics").good().body)
    clients = [Connection(weir.addresses["https"], window=1) for _ in range(20)]
    try:
        for client in clients:
            for _ in range(100):
                client.request("/metrics", reads=False)
        statuses = collections.Counter()
        for client in clients:
            client.wait(lambda c: all(stream.status for stream in c.streams.values()), 20, "an answer to each request")
            statuses.update(stream.status for stream in client.streams.values())
        # A sixteenth of the memory is for them, and an address has half of that.
        assert statuses[503] > 0 and statuses[200] * size < MEMORY // 32 + MEBIBYTE, (statuses, size)
        assert http.fetch(weir.addresses["https"] + "/metrics", source="127.0.0.2").status == 200
    finally:
        for client in clients:
            client.close()


@pytest.fixture
def unread(request, weir):
    """140 downloads, by HTTP/1.1, of clients that read nothing: the kind, and the memory before them."""
    before = settled(weir)
    host, port = re.fullmatch(r"\w+://(.*):(\d+)", weir.addresses[request.param]).groups()
    with contextlib.ExitStack() as clients:
        for _ in range(140):
            client = clients.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((host, int(port)))
            if request.param == "https":
                client = clients.enter_context(context(["http/1.1"]).wrap_socket(client, server_hostname="localhost"))
            client.sendall(f"GET {ADDRESS} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        yield request.param, before


@pytest.mark.parametrize("unread", ["http", "https"], indirect=True)
def test_downloads_that_are_not_read_share_a_bounded_memory(weir, unread):
    """Each had 256 KiB, all of them 35 MiB. An honest client of another address has its file meanwhile."""
    kind, before = unread
    # Over plain HTTP nothing is read; TLS has a session for each beside.
    assert settled(weir) - before < (SHARE + 14 * MEBIBYTE if kind == "https" else 8 * MEBIBYTE)
    answer = http.fetch(weir.addresses[kind] + ADDRESS, source="127.0.0.2", timeout=30)
    assert answer.status == 200 and len(answer.body) == SIZE
