#!/usr/bin/env python3
"""What ffprobe says of fixtures: the facts that stand in the tables of the unit tests.

    Tests/Fixtures/facts.py [--ffprobe PROGRAM] FILE.rtmp FILE.mp4 ...

ffprobe reads an MP4 file as it is. Of an RTMP session the media messages are taken apart here, with nothing of weir, and each
becomes a tag of an FLV file with its time. Enhanced RTMP needs ffprobe 7.1 or later.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

HANDSHAKE = 1 + 2 * 1536
SET_DATA_FRAME = b"\x02\x00\x0d@setDataFrame"


def messages(data):
    """Type, time in milliseconds and payload of each whole message behind the handshake (RTMP 5.3.1)."""
    at, chunk_size, streams = HANDSHAKE, 128, {}

    def take(count):
        nonlocal at
        if at + count > len(data):
            raise EOFError
        at += count
        return data[at - count:at]

    try:
        while True:
            first = take(1)[0]
            form, number = first >> 6, first & 63
            if number == 0:
                number = 64 + take(1)[0]
            elif number == 1:
                number = 64 + int.from_bytes(take(2), "little")
            stream = streams.setdefault(number, {"time": 0, "step": 0, "length": 0, "type": 0, "long": False, "body": b""})
            if form < 3:
                step = int.from_bytes(take(3), "big")
                if form < 2:
                    stream["length"], stream["type"] = int.from_bytes(take(3), "big"), take(1)[0]
                if form == 0:
                    take(4)
                stream["long"] = step == 0xFFFFFF
                stream["step"] = int.from_bytes(take(4), "big") if stream["long"] else step
                stream["time"] = stream["step"] + (0 if form == 0 else stream["time"])
            else:
                if stream["long"]:
                    take(4)
                if not stream["body"]:
                    stream["time"] += stream["step"]
            stream["body"] += take(min(chunk_size, stream["length"] - len(stream["body"])))
            if len(stream["body"]) == stream["length"]:
                body, stream["body"] = stream["body"], b""
                if stream["type"] == 1:
                    chunk_size = int.from_bytes(body[:4], "big")
                yield stream["type"], stream["time"], body
    except EOFError:
        return


def flv(data):
    """The media of a session as an FLV file (FLV E.2, E.4)."""
    file = b"FLV\x01\x05\0\0\0\x09\0\0\0\0"
    for kind, time, body in messages(data):
        if kind in (8, 9, 18):
            body = body.removeprefix(SET_DATA_FRAME)
            tag = bytes([kind]) + len(body).to_bytes(3, "big") + (time & 0xFFFFFF).to_bytes(3, "big")
            tag += bytes([time >> 24 & 0xFF, 0, 0, 0]) + body
            file += tag + len(tag).to_bytes(4, "big")
    return file


def probe(ffprobe, path):
    done = subprocess.run([ffprobe, "-v", "error", "-show_streams", "-show_packets", "-of", "json", path],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def report(ffprobe, path):
    with tempfile.NamedTemporaryFile(suffix=".flv") as media:
        if path.suffix == ".rtmp":
            media.write(flv(path.read_bytes()))
            media.flush()
        found = probe(ffprobe, media.name if path.suffix == ".rtmp" else path)
    print(path.name)
    for stream in found["streams"]:
        packets = [packet for packet in found["packets"]
                   if packet["stream_index"] == stream["index"] and int(packet["size"]) > 0]
        if stream["codec_type"] not in ("video", "audio") or not packets:
            continue
        keys = [packet for packet in packets if "K" in packet["flags"]]
        shape = [stream.get(name) for name in ("width", "height", "sample_rate", "channels") if stream.get(name)]
        end = max(packet["dts"] + packet.get("duration", 0) for packet in packets)
        print(f"  {stream['codec_name']} {shape} timescale {stream['time_base'][2:]} samples {len(packets)} keys {len(keys)}"
              f" decode {packets[0]['dts']} shown {packets[0]['pts']} length {end - packets[0]['dts']}"
              f" last key {keys[-1]['pos']} {keys[-1]['size']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--ffprobe", default="ffprobe")
    given = parser.parse_args()
    for each in given.files:
        report(given.ffprobe, each)
