"""`python3 -m harness` makes every film ahead of a test run, and prints how long each took."""

import time

from . import sources

for name in sources.RECIPES:
    began = time.monotonic()
    print(f"{name:12} {sources.source(name)} {sources.flv(name).stat().st_size} B {time.monotonic() - began:.1f} s")
