"""weir beside its alternatives: measured in turn, in one run, as ratios."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "EndToEndTests"))  # the harness: publishers, FLV, RTMP
