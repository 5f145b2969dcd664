"""weir beside its alternatives: measured in turn, in one run, as ratios."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
