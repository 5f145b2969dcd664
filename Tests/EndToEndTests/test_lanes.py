"""Tests of what judges a run: lanes, budgets, failures and excuses (run, budget.py, lanes.py)."""

import datetime
import importlib.machinery
import importlib.util
import pathlib
import textwrap

import pytest

import budget
import lanes
from harness import metronome

pytestmark = pytest.mark.rules


@pytest.fixture
def run(monkeypatch, tmp_path):
    """The script as a module, without its budgets and hints."""
    path = str(lanes.FOLDER / "run")
    loader = importlib.machinery.SourceFileLoader("weir_run", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("weir_run", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "known_unsteady", lambda: {})
    monkeypatch.setattr(module, "hint", lambda *_: "alone: passed")
    return module


class Beats:
    """A metronome that has nothing to tell."""

    def __init__(self, kept=metronome.Kept()):
        self.kept = kept

    def between(self, *_):
        return self.kept

    def stop(self):
        pass


def made(name, seconds=1.0, **more):
    return {"id": f"test_x.py::{name}", "outcome": "passed", "seconds": seconds, "call": seconds, "began": 0.0, "ended": seconds,
            "held": "", "reason": "", "failed": "", "why": "", **more}


def result(*tests, lane="idle"):
    return {"lane": lane, "tests": list(tests), "figures": [], "seconds": 1, "code": 1, "long": False}


FAILED = {"outcome": "failed", "failed": "call: assert 1 == 2", "why": "assert 1 == 2"}


def verdict(run, *results):
    return run.verdict(list(results), True, False, Beats(), [])


def test_a_test_that_fails_beside_others_and_passes_alone_has_failed(run, capsys):
    assert verdict(run, result(made("good"), made("bad", **FAILED))) == 1
    last = capsys.readouterr().out
    assert "failed: test_x.py::bad (idle; log in .build/tests/failed/test_x.py-bad; alone: passed): assert 1 == 2" in last
    assert last.rstrip().endswith("tests: 1 passed, 1 failed, 0 skipped")
    assert verdict(run, result(made("good"))) == 0


@pytest.mark.parametrize(("lane", "held", "code"), [
    ("quiet", "the machine stood still for 0.30 s", 0), ("quiet", "", 1), ("idle", "the machine stood still for 0.30 s", 1)])
def test_a_machine_that_stood_still_excuses_what_keeps_time_alone(run, capsys, lane, held, code):
    assert verdict(run, result(made("late", held=held, **FAILED), lane=lane)) == code
    assert ("not judged: test_x.py::late" in capsys.readouterr().out) == (code == 0)


def test_it_does_not_excuse_many(run):
    many = [made(f"late{n}", held="the machine stood still for 0.30 s", **FAILED) for n in range(run.MOST_EXCUSED + 1)]
    assert verdict(run, result(*many, lane="quiet")) == 1


@pytest.mark.parametrize(("days", "code"), [(0, 0), (3, 0), (-1, 1)])
def test_a_known_unsteady_test_is_named_and_fails_the_run_from_its_day_on(run, monkeypatch, capsys, days, code):
    until = datetime.date.today() + datetime.timedelta(days)
    monkeypatch.setattr(run, "known_unsteady", lambda: {"test_x.py::shaky": (until, "Tests/log")})
    assert verdict(run, result(made("shaky", **FAILED))) == code
    assert "test_x.py::shaky" in capsys.readouterr().out


@pytest.fixture
def budgets(monkeypatch):
    monkeypatch.setattr(lanes, "budgets", lambda: {("test_x.py", "idle"): 100.0})


@pytest.mark.parametrize(("seconds", "call", "over"), [(128, 15, 0), (129, 15, 1), (100, 15.1, 1), (129, 15.1, 2)])
def test_a_file_beyond_its_budget_and_a_long_case_fail(budgets, seconds, call, over):
    found, told = budget.judge([result(made("a", seconds, call=call))], False, Beats())
    assert len(found) == over and not told, (found, told)


def test_where_the_machine_stood_still_a_budget_is_told_and_a_slow_machine_has_more(budgets):
    found, told = budget.judge([result(made("a", 140))], False, Beats(metronome.Kept(still=10, longest=5, speed=1)))
    assert not found and len(told) == 2
    found, told = budget.judge([result(made("a", 140, call=20))], False, Beats(metronome.Kept(speed=0.5)))
    assert not found and not told
    found, _ = budget.judge([result(made("a", 140, call=10), lane="browser")], False, Beats())
    assert found == ["test_x.py took 140 s in lane browser, its budget is 0 s"]


def problems(tmp_path, monkeypatch, text):
    monkeypatch.setattr(budget, "FOLDER", tmp_path)
    file = tmp_path / "test_x.py"
    file.write_text(textwrap.dedent(text))
    return budget._source(file)


def test_a_long_sleep_says_why(tmp_path, monkeypatch):
    assert problems(tmp_path, monkeypatch, """
        def test_a():
            time.sleep(0.9)
            time.sleep(2)  # real time: the player shows nothing before
            time.sleep(1)
        """) == ["test_x.py:5: wait for what is judged instead of time.sleep(1), or say why: # real time: WHY"]


@pytest.mark.parametrize(("mark", "bound", "found"), [("", "time.monotonic() - began < 4.9", 1), ("", "took <= 2", 1), ("", "0 < took < 2", 1),
                                                      ("", "took < 5", 0), ("", "took > 2", 0), ("@pytest.mark.quiet", "took < 2", 0),
                                                      ("@pytest.mark.parametrize('n', [0, pytest.param(1, marks=pytest.mark.quiet)])", "took < 2", 1)])
def test_a_bound_on_elapsed_time_below_five_seconds_stands_in_the_quiet_lane(tmp_path, monkeypatch, mark, bound, found):
    said = problems(tmp_path, monkeypatch, f"""
        {mark}
        def test_a():
            took = time.monotonic() - began
            assert {bound}
        """)
    assert len(said) == found, said


def test_a_lane_has_a_limit_and_each_file_a_line(monkeypatch):
    there = {(str(file.relative_to(budget.FOLDER)), "idle"): 0.0 for file in budget.FOLDER.rglob("test_*.py")}
    monkeypatch.setattr(lanes, "budgets", lambda: there)
    assert budget._budgets() == []
    most = lanes.WALL["idle"] * lanes.WORKERS["idle"]
    there["test_http.py", "idle"] = most + 1
    assert [problem for problem in budget._budgets() if f"{most + 1:.0f} s in budget.txt, of {most} s" in problem]
    del there["test_http.py", "idle"]
    there["test_gone.py", "idle"] = 1
    assert budget._budgets() == ["budget.txt has no line for test_http.py", "budget.txt names test_gone.py, which is not there"]


@pytest.mark.parametrize(("line", "said"), [
    ("test_x.py::a {+7} Tests/RULES.md", None), ("test_x.py::a {+8} Tests/RULES.md", "more than 7 days ahead"),
    ("test_x.py::a {-1} Tests/RULES.md", "mend it"), ("test_x.py::a {+1} Tests/nothing", "there is no Tests/nothing"),
    ("test_x.py::a {+1}", "give the test, a day")])
def test_an_unsteady_test_has_evidence_and_a_day(tmp_path, monkeypatch, line, said):
    today = datetime.date.today()
    for days in (7, 8, -1, 1):
        line = line.replace(f"{{{days:+d}}}", str(today + datetime.timedelta(days)))
    file = tmp_path / "unsteady.txt"
    file.write_text(f"# TEST DAY EVIDENCE\n{line}\n")
    monkeypatch.setattr(budget, "UNSTEADY", file)
    found = budget._unsteady()
    assert (found == []) if said is None else (len(found) == 1 and said in found[0]), found


def test_four_unsteady_tests_are_too_many(tmp_path, monkeypatch):
    file = tmp_path / "unsteady.txt"
    monkeypatch.setattr(budget, "UNSTEADY", file)
    for count in (3, 4):
        file.write_text("".join(f"test_x.py::{n} {datetime.date.today()} Tests/RULES.md\n" for n in range(count)))
        assert len(budget._unsteady()) == count - 3


@pytest.mark.parametrize(("seconds", "speed", "compiled", "code"), [
    (1799, 1, False, 0), (1801, 1, False, 1), (2399, 1, True, 0), (2401, 1, True, 1), (3000, 0.5, False, 0)])
def test_a_whole_run_has_a_limit(tmp_path, monkeypatch, seconds, speed, compiled, code):
    monkeypatch.setattr(metronome, "between", lambda *_: metronome.Kept(speed=speed))
    notes, place = tmp_path / "steps", tmp_path / "compiled"
    notes.write_text(f"build\t1\nidle\t{seconds - 1}\n")
    if compiled:
        place.write_text("")
    assert budget.steps(notes, pathlib.Path("/dev/null"), place) == code
