"""Which test runs where (CONTRIBUTING.md).

- `rules` needs no server, and runs beside the build.
- `idle` waits and computes little, several at a time.
- `browser` starts a browser, two at a time, beside `idle`.
- `quiet` measures time, alone, after the others.

A test marked `long` runs in the same lane, by `make test-long` alone. budget.txt has the seconds that each file may take in each
lane; the longest begin first."""

import pathlib

LANES = ("rules", "idle", "browser", "quiet")
#: Workers of each lane, and the seconds of wall time that all of its files may take. Beside two browsers six workers would make
#: two cores so busy that they hold each other up, and are done no sooner: their tests begin when there is room (room.py).
WORKERS = {"rules": 1, "idle": 6, "browser": 2, "quiet": 1}
WALL = {"rules": 60, "idle": 626, "browser": 850, "quiet": 90}
#: Seconds that all long tests may take, one lane after the other.
LONG_WALL = 3600
#: Fixtures that are a browser.
BROWSERS = {"chromium", "firefox", "page", "browser"}
FOLDER = pathlib.Path(__file__).resolve().parent


def lane(item) -> str:
    """Of a collected test."""
    for name in ("rules", "quiet"):
        if item.get_closest_marker(name):
            return name
    if item.get_closest_marker("browser") or "browser/" in item.nodeid.split("::")[0] or BROWSERS & set(item.fixturenames):
        return "browser"
    return "idle"


def is_long(item) -> bool:
    return item.get_closest_marker("long") is not None


def budgets(path: pathlib.Path = FOLDER / "budget.txt") -> dict[tuple[str, str], float]:
    """Seconds by (file, lane). The lane `long` has the long tests of a file, whichever lane they run in."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {(file, lane): float(seconds) for file, lane, seconds in lines}
