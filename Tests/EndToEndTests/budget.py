#!/usr/bin/env python3
"""Seconds that tests may take. budget.txt has them by file and lane.

    budget.py --check           what can be seen without a run; `make check` does so
    budget.py --write FOLDER    budget.txt anew, from the reports of a run (FOLDER/idle.json …)
    budget.py --steps STEPS [BEATS COMPILED]    what the steps of `make test` took; with a metronome's record, fails where that is
                                too long. COMPILED is there where the dependencies had to be compiled

    budget.py --note FOLDER STEPS    Tests/long.txt anew: what `make test-long` found, and how long it took

`run` judges each run by it. A new test is paid by whoever adds it: the lanes' sums meet a limit (lanes.py)."""

import ast
import datetime
import json
import math
import pathlib
import re
import subprocess
import sys

import lanes
from harness import metronome

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
UNSTEADY = ROOT / "Tests" / "unsteady.txt"
#: The last result of `make test-long`.
LONG = ROOT / "Tests" / "long.txt"
#: A file may take this much more than its budget, and so many seconds; a test so many seconds. A slow machine has more.
MORE, SECONDS, CASE = 1.25, 3, 15
#: Seconds that all steps of `.ci/run` may take, and where the dependencies had to be compiled.
WHOLE, WHOLE_NEW = 30 * 60, 40 * 60
#: In that share of a file's time the machine may stand still before its budget is told instead of judged.
STILL = 0.02
#: A sleep of so many seconds has to say why. Below this bound elapsed time is measured in the lane `quiet` alone.
LONG_SLEEP, LEAST_BOUND = 1, 5
#: Tests that may be known as unsteady, and days for which they may.
MOST_UNSTEADY, DAYS = 3, 7


def lines(path: pathlib.Path) -> list[str]:
    """Of a list with comments."""
    return [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")] if path.exists() else []


def slug(test: str) -> str:
    """A test's name as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", test.removesuffix("]"))[:150]


def spent(results: list[dict], long: bool) -> dict[tuple[str, str], list[dict]]:
    """Tests by (file, column of budget.txt)."""
    files: dict[tuple[str, str], list[dict]] = {}
    for result in results:
        for test in result["tests"]:
            if test["seconds"]:
                files.setdefault((test["id"].split("::")[0], "long" if long else result["lane"]), []).append(test)
    return files


def judge(results: list[dict], long: bool, metronome) -> tuple[list[str], list[str]]:
    """(What fails, what is only told, as the machine stood still meanwhile or had less than its usual speed.)"""
    budgets, over, told = lanes.budgets(), [], []
    for (file, lane), tests in sorted(spent(results, long).items()):
        kept = metronome.between(min(test["began"] for test in tests), max(test["ended"] for test in tests))
        took, length = sum(test["seconds"] for test in tests), max(test["ended"] for test in tests) - min(test["began"] for test in tests)
        most = (budgets.get((file, lane), 0) * MORE + SECONDS) / kept.speed
        found = [f"{file} took {took:.0f} s in lane {lane}, its budget is {budgets.get((file, lane), 0):.0f} s"] if took > most else []
        found += [f"{test['id']} took {test['call']:.0f} s, a test has {CASE} s" for test in tests
                  if not long and test["call"] > CASE / kept.speed]
        if kept.still > STILL * length:
            told += [f"over budget, but {kept}: {line}" for line in found]
        else:
            over += found
    return over, told


def static() -> list[str]:
    """What is wrong in the lists and the tests."""
    return [*_budgets(), *_unsteady(), *_long(), *(problem for file in sorted(FOLDER.rglob("test_*.py")) for problem in _source(file))]


def _budgets() -> list[str]:
    problems, budgets = [], lanes.budgets()
    there = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("test_*.py")}
    problems += [f"budget.txt has no line for {file}" for file in sorted(there - {file for file, _ in budgets})]
    problems += [f"budget.txt names {file}, which is not there" for file in sorted({file for file, _ in budgets} - there)]
    for lane, wall in lanes.WALL.items():
        total, most = sum(seconds for (_, of), seconds in budgets.items() if of == lane), wall * lanes.WORKERS[lane]
        if total > most:
            problems.append(f"lane {lane} has {total:.0f} s in budget.txt, of {most} s: what is added has to be taken away elsewhere")
    total = sum(seconds for (_, lane), seconds in budgets.items() if lane == "long")
    if total > lanes.LONG_WALL:
        problems.append(f"long tests have {total:.0f} s in budget.txt, of {lanes.LONG_WALL} s")
    return problems


def _unsteady() -> list[str]:
    problems, today = [], datetime.date.today()
    listed = [line.rsplit(maxsplit=2) for line in lines(UNSTEADY)]
    if len(listed) > MOST_UNSTEADY:
        problems.append(f"unsteady.txt has {len(listed)} tests, at most {MOST_UNSTEADY}: mend one first")
    history = subprocess.run(["git", "log", "--format=", "-p", "--", UNSTEADY], cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout
    for parts in listed:
        if len(parts) < 3:
            problems.append(f"unsteady.txt: {' '.join(parts)}: give the test, a day (YYYY-MM-DD) and a file with evidence")
            continue
        test, day, evidence = parts
        days = {day, *re.findall(rf"^\+{re.escape(test)}\s+(\S+)", history, re.M)}
        if len(days) > 1:
            problems.append(f"unsteady.txt: the day of {test} was moved ({', '.join(sorted(days))}): mend the test")
        until = datetime.date.fromisoformat(day)
        if until < today:
            problems.append(f"unsteady.txt: {test} had until {day}: mend it")
        if until > today + datetime.timedelta(DAYS):
            problems.append(f"unsteady.txt: {test} has until {day}, which is more than {DAYS} days ahead")
        if not (ROOT / evidence).exists():
            problems.append(f"unsteady.txt: {test}: there is no {evidence} with a log or packets")
    return problems


def _long() -> list[str]:
    if not LONG.exists():
        print(f"{LONG.relative_to(ROOT)} is not there yet: make test-long writes it")
        return []
    head = re.match(r"(\d{4}-\d\d-\d\d) ([0-9a-f]{8,40}) (\d+) passed, 0 failed, \d+ skipped\n", LONG.read_text())
    if not head:
        return [f"{LONG.relative_to(ROOT)} does not tell a good run (DATE COMMIT N passed, 0 failed, N skipped): run make test-long"]
    known = subprocess.run(["git", "cat-file", "-e", f"{head[2]}^{{commit}}"], cwd=ROOT, stderr=subprocess.DEVNULL).returncode == 0
    shallow = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout.strip() == "true"
    return [] if known or shallow else [f"{LONG.relative_to(ROOT)} tells commit {head[2]}, which is not there: run make test-long"]


def note(folder: pathlib.Path, notes: pathlib.Path) -> None:
    """Writes LONG from the reports of the long lanes and the steps."""
    results = [result for report in sorted(folder.glob("*.json")) if "tests" in (result := json.loads(report.read_text()))]
    tests = [test for result in results for test in result["tests"]]
    count = {kind: sum(test["outcome"] == kind for test in tests) for kind in ("passed", "failed", "skipped")}
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout.strip()
    figures = [figure for result in results for figure in result["figures"]]
    LONG.write_text("\n".join([
        f"{datetime.date.today()} {commit} {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped",
        *notes.read_text().splitlines(), *sorted(figures)]) + "\n")


def _source(file: pathlib.Path) -> list[str]:
    """Sleeps without a reason, and bounds on elapsed time outside of the lane `quiet`."""
    text, name = file.read_text(), file.relative_to(FOLDER)
    tree, source = ast.parse(text), text.splitlines()
    problems = []
    marked = re.search(r"^pytestmark\b.*\bquiet\b", text, re.M) is not None
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        quiet = marked or any(ast.unparse(mark) == "pytest.mark.quiet" for mark in function.decorator_list)
        clocks = _elapsed(function)
        for node in ast.walk(function):
            where = f"{name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep" and node.args and _number(node.args[0]) >= LONG_SLEEP \
                    and not any("# real time: " in line for line in source[node.lineno - 1:node.end_lineno]) \
                    and not source[node.lineno - 2].lstrip().startswith("# real time: "):
                problems.append(f"{where}: wait for what is judged instead of {ast.unparse(node)}, or say why: # real time: WHY")
            if isinstance(node, ast.Assert) and not quiet:
                problems += [f"{where}: a bound of {bound:g} s on elapsed time: mark the test quiet, or give it {LEAST_BOUND} s"
                             for bound in _bounds(node.test, clocks) if 0 < bound < LEAST_BOUND]
    return problems


def _number(node) -> float:
    try:
        return float(ast.literal_eval(node))
    except (ValueError, TypeError):
        return 0


def _is_elapsed(node, clocks: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in clocks
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and bool(re.search(r"\b(monotonic|perf_counter)\(\)", ast.unparse(node.left)))


def _elapsed(function) -> set[str]:
    """Names that hold a difference of two readings of a clock."""
    return {target.id for node in ast.walk(function) if isinstance(node, ast.Assign) and _is_elapsed(node.value, set())
            for target in node.targets if isinstance(target, ast.Name)}


def _bounds(test, clocks: set[str]) -> list[float]:
    """Upper bounds on elapsed time in an assertion."""
    found = []
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            terms = [node.left, *node.comparators]
            for left, operator, right in zip(terms, node.ops, terms[1:]):
                if isinstance(operator, (ast.Lt, ast.LtE)) and _is_elapsed(left, clocks):
                    found.append(_number(right))
                if isinstance(operator, (ast.Gt, ast.GtE)) and _is_elapsed(right, clocks):
                    found.append(_number(left))
    return found


def write(folder: pathlib.Path) -> None:
    """Budgets of a measured run, rounded up; columns of which the folder has no report stay."""
    budgets = lanes.budgets()
    for report in sorted(folder.glob("*.json")):
        result = json.loads(report.read_text())
        if "tests" not in result:
            continue
        for (file, lane), tests in spent([{**result, "lane": report.stem}], result["long"]).items():
            budgets = {key: value for key, value in budgets.items() if key != (file, lane)}
            budgets[file, lane] = math.ceil(sum(test["seconds"] for test in tests) * (1 if lane == "quiet" else 1.05))
    head = [line for line in (FOLDER / "budget.txt").read_text().splitlines() if line.startswith("#")]
    body = [f"{file} {lane} {seconds:.0f}" for (file, lane), seconds in sorted(budgets.items())]
    (FOLDER / "budget.txt").write_text("\n".join(head + body) + "\n")


def steps(notes: pathlib.Path, beats: pathlib.Path | None, compiled: pathlib.Path | None) -> int:
    """Says what each step took. 1 where the sum is too long on a machine that kept time."""
    took = [(name, float(seconds)) for name, seconds in (line.split("\t") for line in notes.read_text().splitlines())]
    total = sum(seconds for _, seconds in took)
    for name, seconds in [*took, ("sum", total)]:
        print(f"step: {name:<24} {seconds:5.0f} s")
    if beats is None:
        return 0
    most, kept = WHOLE_NEW if compiled.exists() else WHOLE, metronome.between(beats, 0, math.inf)
    if total <= most / kept.speed:
        return 0
    well = kept.still <= STILL * total
    print(f"{'error' if well else 'told'}: the steps took {total / 60:.0f} minutes of {most // 60}; {kept}", file=sys.stderr)
    return 1 if well else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(pathlib.Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--steps"]:
        sys.exit(steps(*(pathlib.Path(name) for name in sys.argv[2:3]), *([pathlib.Path(name) for name in sys.argv[3:5]] or [None, None])))
    elif sys.argv[1:2] == ["--note"]:
        note(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    elif sys.argv[1:] == ["--check"]:
        found = static()
        print("\n".join(f"error: {problem}" for problem in found), file=sys.stderr) if found else print("tests: lanes and budgets are as they should be")
        sys.exit(1 if found else 0)
    else:
        sys.exit(__doc__)
