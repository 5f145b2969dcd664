#!/usr/bin/env python3
"""The times of each packet of transport streams, as ffprobe tells them: NAME.packets beside each NAME.ts.

    Tests/Fixtures/packets.py [--ffprobe PROGRAM] Tests/Fixtures/ts/*.ts

A line is the PID, the presentation time and the decode time, in ticks of 90 kHz, in the order of each stream.
"""

import argparse
import json
import pathlib
import subprocess


def packets(ffprobe, path):
    done = subprocess.run([ffprobe, "-v", "error", "-show_streams", "-show_packets", "-of", "json", path],
                          check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    pids = {stream["index"]: int(stream["id"], 16) for stream in found["streams"]
            if stream["codec_type"] in ("video", "audio")}
    for packet in found["packets"]:
        if packet["stream_index"] in pids:
            yield f"{pids[packet['stream_index']]} {packet['pts']} {packet['dts']}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--ffprobe", default="ffprobe")
    given = parser.parse_args()
    for each in given.files:
        each.with_suffix(".packets").write_text("\n".join(packets(given.ffprobe, each)) + "\n")
