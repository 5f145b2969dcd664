#!/usr/bin/env python3
"""Keeps the beginning of a publisher's RTMP session: a TCP proxy that writes down what the client sends.

    Tests/Fixtures/capture.py NAME.rtmp [--limit 60000] [--listen 11937] [--server 127.0.0.1:11936]

Start a server of weir first, then this, then the publisher with rtmp://127.0.0.1:11937/live/NAME:

    weir serve --http 127.0.0.1:18180 --rtmp 127.0.0.1:11936 --no-record

The proxy takes one connection and passes both directions on unchanged. It writes the client's bytes to the file until the
limit is reached. The cut falls where the limit falls, mostly within a chunk. Then it closes both connections. Where the
client ends before that, the file holds its whole session.
"""

import argparse
import pathlib
import selectors
import socket

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("file", type=pathlib.Path)
parser.add_argument("--limit", type=int, default=60_000, help="bytes that are kept")
parser.add_argument("--listen", type=int, default=11937, help="port for the publisher")
parser.add_argument("--server", default="127.0.0.1:11936", help="address of weir's RTMP")
parser.add_argument("--patience", type=float, default=60, help="seconds without a byte of either side until it ends")
given = parser.parse_args()

with socket.create_server(("127.0.0.1", given.listen)) as listener:
    listener.settimeout(given.patience)
    client, _ = listener.accept()
host, port = given.server.rsplit(":", 1)
server = socket.create_connection((host, int(port)))
kept = bytearray()
with client, server, selectors.DefaultSelector() as selector:
    selector.register(client, selectors.EVENT_READ, server)
    selector.register(server, selectors.EVENT_READ, client)
    ended = False
    while not ended and len(kept) < given.limit:
        ready = selector.select(given.patience)
        ended = not ready
        for key, _ in ready:
            try:
                data = key.fileobj.recv(65536)
                if key.fileobj is client:
                    kept += data
                if data:
                    key.data.sendall(data)
            except OSError:
                data = b""
            ended = ended or not data
given.file.write_bytes(kept[:given.limit])
print(f"{given.file}: {min(len(kept), given.limit)} bytes")
