#!/usr/bin/env python3
"""`make bench`: weir beside its peers, and Markdown tables for docs/figures.md.

    make bench ARGS="[--only PART …] [--rounds N] [--publishers 50] [--gigabytes 1 10] [--out FILE]"

`make exclusivity` compares two builds of weir instead. Needs ffmpeg, nginx with libnginx-mod-rtmp, wrk, h2load and a C compiler; WEIR_BIN or the release build of this checkout.
"""

import argparse
import os
import pathlib
import platform
import shutil
import sys
import time

from bench import (curves, delivery, encode, exclusivity, finish, first, ingest, ladder, longfilm, lowlatency, manifests, mux, peers, srt, start,
                   tokens, tracks, webrtc)
from harness import tools


PARTS = ["start", "first", "mux", "ingest", "streams", "manifests", "delivery", "lowlatency", "encode", "recording", "longfilm", "ladder", "srt",
         "tracks", "tokens", "webrtc", "curves"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures weir beside ffmpeg and nginx.")
    parser.add_argument("--only", nargs="+", choices=[*PARTS, "exclusivity"], default=PARTS)
    parser.add_argument("--rounds", type=int, help="rounds of each row (default: 5; encode 10, tokens 9)")
    parser.add_argument("--publishers", type=int, default=50)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1, 10], help="recordings that are finished")
    parser.add_argument("--out", type=pathlib.Path, help="also write the tables to this file")
    chosen = parser.parse_args()
    needed = {"start": [], "first": ["ffmpeg", "chromium"], "mux": ["ffmpeg"], "ingest": [peers.NGINX, "cc"], "streams": ["cc"], "manifests": ["cc"],
              "delivery": [peers.NGINX, "wrk", "h2load", "openssl"], "lowlatency": ["cc"], "encode": ["ffmpeg"],
              "recording": ["ffmpeg", "cc", "mkfs.xfs", "mkfs.ext4"], "longfilm": ["ffmpeg"], "ladder": ["ffmpeg"],
              "srt": ["ffmpeg", "srt-live-transmit", "cc"], "tracks": ["ffmpeg"],
              "tokens": ["ffmpeg", "wrk"], "webrtc": ["ffmpeg", "cc", "chromium"],
              "curves": ["ffmpeg", "cc", "openssl"], "exclusivity": ["ffmpeg", "cc", "wrk"]}
    missing = [tool for part in chosen.only for tool in needed[part] if not shutil.which(tool)]
    if missing:
        print(f"missing: {', '.join(sorted(set(missing)))}; install ffmpeg nginx libnginx-mod-rtmp wrk nghttp2-client gcc", file=sys.stderr)
        return 78
    if "exclusivity" in chosen.only and not os.access(os.environ.get("WEIR_CHECKED", ""), os.X_OK):
        print("WEIR_CHECKED names no binary with exclusivity checks: use make exclusivity", file=sys.stderr)
        return 78
    load = os.getloadavg()[0]
    text = [f"Run {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())} on {os.cpu_count()} cores ({processor()}), Linux "
            f"{platform.release()}, load average {load:.1f} at the start; `{pathlib.Path(tools.weir_binary()).name}` of "
            f"{pathlib.Path(tools.weir_binary()).stat().st_size / 1e6:.1f} MB. Trust the ratios.\n"]
    if "start" in chosen.only:
        text.append(start.run())
    if "first" in chosen.only:
        text.append(first.run())
    if "mux" in chosen.only:
        text.append(mux.run(chosen.rounds or 5))
    if "ingest" in chosen.only:
        text.append(ingest.run(chosen.rounds or 5, chosen.publishers))
    if "streams" in chosen.only:
        text.append(ingest.scale(chosen.rounds or 5))
    if "manifests" in chosen.only:
        text.append(manifests.run(chosen.rounds or 5))
    if "delivery" in chosen.only:
        text.append(delivery.run(chosen.rounds or 5))
    if "lowlatency" in chosen.only:
        text.append(lowlatency.run(chosen.rounds or 5))
    if "encode" in chosen.only:
        text.append(encode.run(chosen.rounds or 10))
    if "recording" in chosen.only:
        if os.geteuid() == 0:
            text.append(finish.run(chosen.gigabytes))
        else:
            text.append("Finishing recordings was left out: only root can mount file systems.\n")
        text.append(finish.cost(chosen.rounds or 5))
        text.append(ingest.recorded(chosen.rounds or 5, chosen.publishers))
    if "longfilm" in chosen.only:
        text.append(longfilm.run(chosen.rounds or 5))
    if "ladder" in chosen.only:
        text.append(ladder.run(chosen.rounds or 5))
    if "srt" in chosen.only:
        text.append(srt.run(chosen.rounds or 5))
    if "tracks" in chosen.only:
        text.append(tracks.run(chosen.rounds or 5))
    if "tokens" in chosen.only:
        text.append(tokens.run(chosen.rounds or 9))
    if "webrtc" in chosen.only:
        text.append(webrtc.run(chosen.rounds or 3))
    if "curves" in chosen.only:
        text.append(curves.run())
    if "exclusivity" in chosen.only:
        text.append(exclusivity.run(chosen.rounds or 5))
    report = "\n".join(text)
    print("\n" + report)
    if chosen.out:
        chosen.out.write_text(report)
    return 0


def processor() -> str:
    with open("/proc/cpuinfo") as info:
        return next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
