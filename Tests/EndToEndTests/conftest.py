"""Fixtures of the end-to-end tests: servers that are checked when they end, and folders that are removed."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import sys
import time

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent / "browser")]

import browsers  # noqa: E402
import budget  # noqa: E402
import lanes  # noqa: E402  (the path above makes it importable)
import watching  # noqa: E402
from harness import events, metronome, room, sources, tokens  # noqa: E402
from harness import weir as weir_harness  # noqa: E402
from harness.supervisor import Supervisor  # noqa: E402
from harness.weir import Weir  # noqa: E402


class Starter:
    """Starts servers. Each is stopped and checked when the scope ends, even if a test failed."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.running: list[Weir] = []

    def __call__(self, *flags, **options) -> Weir:
        folder = self.folder / f"weir-{len(self.running)}"
        folder.mkdir(parents=True)
        weir = Weir(*flags, folder=folder, **options)
        self.running.append(weir)
        return weir

    def finish(self) -> None:
        problems = []
        for weir in self.running:
            try:
                weir.stop()
            except AssertionError as error:
                problems.append(str(error))
            finally:
                weir.kill()
        if problems:
            raise AssertionError("\n".join(problems))


@pytest.fixture
def start(tmp_path):
    """Starts servers with the test's own flags: `start("--no-record")`."""
    starter = Starter(tmp_path)
    yield starter
    starter.finish()


@pytest.fixture
def supervise(tmp_path):
    """Starts servers as services that restart when they end, with the test's own flags."""
    running: list[Supervisor] = []

    def begin(*flags, **options) -> Supervisor:
        folder = tmp_path / f"service-{len(running)}"
        (folder / "state").mkdir(parents=True)
        running.append(Supervisor(
            "--state", folder / "state", "--record", folder / "recordings", *flags, folder=folder, **options))
        return running[-1]

    yield begin
    for service in running:
        service.stop()


@pytest.fixture(scope="module")
def start_shared(tmp_path_factory):
    """The same for all tests of a file."""
    starter = Starter(tmp_path_factory.mktemp("servers"))
    yield starter
    starter.finish()


@pytest.fixture(scope="module")
def weir(start_shared):
    """One server for a file of tests, with default flags and its own ports."""
    return start_shared()


@pytest.fixture
def follow():
    """Makes clients of the stream of events, and closes them: an address may have few."""
    made: list[events.Stream] = []

    def make(*parts, **more) -> events.Stream:
        made.append(events.Stream(*parts, **more))
        return made[-1]

    yield make
    for stream in made:
        stream.close()


@pytest.fixture(scope="session")
def canary() -> str:
    """A publish key that must never occur in anything weir prints or serves."""
    return "canary" + secrets.token_hex(12)


def pytest_addoption(parser):
    parser.addoption("--lane", choices=lanes.LANES, help="only tests of this lane (lanes.py)")
    parser.addoption("--any", action="store_true", help="tests marked long beside the others")
    parser.addoption("--long", action="store_true", help="only tests marked long, instead of the others")


def pytest_collection_modifyitems(config, items):
    """Chooses the tests of a lane, the files that take longest first. Without --lane all are chosen, long ones too."""
    if path := os.environ.get("WEIR_LANES"):
        _write_lanes(items, pathlib.Path(path))
    wanted = config.getoption("--lane")
    if not wanted:
        return
    long = config.getoption("--long")
    chosen = [item for item in items if lanes.lane(item) == wanted and (lanes.is_long(item) == long or config.getoption("--any"))]
    seconds = lanes.budgets()
    column = "long" if long else wanted
    files = {item.nodeid: item.nodeid.split("::")[0] for item in chosen}
    chosen.sort(key=lambda item: (-seconds.get((files[item.nodeid], column), 60), files[item.nodeid]))
    config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
    items[:] = chosen


def _write_lanes(items, path: pathlib.Path):
    """Number of tests by lane and file, long ones apart, for `run`: a lane then reads its own files alone."""
    counts = {"short": {}, "long": {}, "collected": time.time(), "faults": os.environ.get("WEIR_FAULTS", "")}
    for item in items:
        files = counts["long" if lanes.is_long(item) else "short"].setdefault(lanes.lane(item), {})
        file = item.nodeid.split("::")[0]
        files[file] = files.get(file, 0) + 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(counts))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A test of the idle lane begins when there is room: before its fixtures do."""
    if lanes.lane(item) == "idle":
        tokens.waited += room.wait()


@pytest.fixture(autouse=True)
def _tokens(request):
    """A test of the browser lane holds a token while it runs, one marked `encoder` that of encoders."""
    with contextlib.ExitStack() as held:
        if request.node.get_closest_marker("encoder"):
            held.enter_context(tokens.token("encoder"))
        if lanes.lane(request.node) == "browser":
            held.enter_context(tokens.token("browser"))
        yield


class _Kept:
    """A browser that a worker starts once, for all of its files."""

    def __init__(self, make):
        self._make, self._browser = make, None

    def fresh(self):
        """The browser with a fresh context; a new one where it has ended."""
        if self._browser and self._browser.is_running:
            self._browser.renew()
        else:
            self.close()
            self._browser = self._make()
        return self._browser

    def close(self):
        if self._browser:
            self._browser.close()
        self._browser = None


@pytest.fixture(scope="session")
def _chromium():
    with contextlib.closing(_Kept(browsers.chromium)) as kept:
        yield kept


@pytest.fixture(scope="session")
def _firefox():
    with contextlib.closing(_Kept(browsers.firefox)) as kept:
        yield kept


@pytest.fixture(scope="module")
def chromium(_chromium):
    """The worker's Chromium. Each file has a fresh context, without cookies, storage or cache of other files."""
    browser = _chromium.fresh()
    yield browser
    if browser.is_running:
        browser.open("about:blank")


@pytest.fixture(scope="module")
def firefox(_firefox):
    """The same of Firefox."""
    browser = _firefox.fresh()
    yield browser
    if browser.is_running:
        browser.open("about:blank")


@pytest.fixture
def page(chromium):
    """Chromium with the usual screen size, which a test may change."""
    chromium.viewport(1280, 900)
    chromium.prefer(color_scheme="dark")
    yield chromium
    watching.leave(chromium)
    chromium.viewport(1280, 900)


@pytest.fixture
def browser(request):
    """The browser that a test is parametrised with, by name."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def demo(start_shared):
    """A server whose stream `demo` is a film that begins again at its end, with a key frame each half second: decoding it
    costs a browser a third of what the test pattern does, and weir encodes nothing."""
    server = start_shared("--source", f"demo=file:{sources.source('loop')}")
    server.wait_state("demo", "live", seconds=30)
    return server


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Gives each worker one file of tests at a time, and the next one while it still runs the last test of the file."""
    from xdist.scheduler import LoadScopeScheduling

    class FileAtATime(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.split("::")[0]

        def _reschedule(self, node) -> None:
            # The library's own asks at two tests: then a file waits behind two tests of another one.
            if self._pending_of(self.assigned_work[node]) > 1 and not node.shutting_down:
                return
            super()._reschedule(node)

    return FileAtATime(config, log)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(config), "weir-results")


class Results:
    """What a run tells `run`: each test's outcome, seconds and log, and the measured figures."""

    def __init__(self, config):
        self.config = config
        self.tests: dict[str, dict] = {}
        self.figures: list[str] = []

    def pytest_runtest_logreport(self, report):
        test = self.tests.setdefault(report.nodeid, {
            "id": report.nodeid, "outcome": "passed", "seconds": 0.0, "call": 0.0, "began": report.start, "ended": 0.0, "held": "",
            "reason": "", "failed": "", "why": ""})
        test["seconds"] += report.duration - dict(report.user_properties).get("waited", 0)
        test["ended"] = report.stop
        if report.when == "teardown" and (path := os.environ.get("WEIR_REPORT")):
            pathlib.Path(path).with_suffix(".done").write_text(str(len(self.tests)))
        if report.when == "call":
            test["call"] = report.duration
            self.figures += [value for name, value in report.user_properties if name == "figure"]
        if report.skipped:
            test["outcome"], test["reason"] = "skipped", f"{report.nodeid.split('::')[0]}: {report.longrepr[2]}" if isinstance(report.longrepr, tuple) else ""
        if report.failed:
            # Nothing excuses a test of which one phase failed while the machine kept time.
            held = dict(report.user_properties).get("held up", "")
            test["held"] = held if test["outcome"] != "failed" or test["held"] else ""
            test["outcome"] = "failed"
            said = "\n".join(f"--- {title}\n{text}" for title, text in report.sections)
            crash = getattr(report.longrepr, "reprcrash", None)
            test["why"] = test["why"] or " ".join((crash.message if crash else report.longreprtext).split())[:MOST_SAID]
            test["failed"] += f"{report.when}: {report.longreprtext}\n{said[-20_000:]}\n"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        if path := os.environ.get("WEIR_REPORT"):
            # Their clock is that of the day; the metronome's is monotonic.
            apart = time.monotonic() - time.time()
            for test in self.tests.values():
                test["began"], test["ended"] = test["began"] + apart, test["ended"] + apart
            long = self.config.getoption("--long")
            pathlib.Path(path).write_text(json.dumps({"tests": list(self.tests.values()), "figures": self.figures, "long": long}))

    def pytest_terminal_summary(self, terminalreporter):
        if self.figures:
            terminalreporter.section("figures")
            for figure in sorted(self.figures):
                terminalreporter.write_line(figure)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keeps what a failed test leaves, and notes whether the machine stood still right before."""
    report = yield
    report.user_properties.append(("waited", tokens.waited))
    tokens.waited = 0.0
    if report.failed:
        if (beats := os.environ.get("WEIR_BEATS")) and (held := metronome.held_up(pathlib.Path(beats))):
            report.user_properties.append(("held up", held))
            report.sections.append(("machine", held))
        if path := os.environ.get("WEIR_REPORT"):
            _keep(item, report, pathlib.Path(path).parent / "failed" / budget.slug(item.nodeid))
    return report


#: Characters of a failed assertion in the last lines of a run.
MOST_SAID = 300
#: Larger files of a failed test are not kept: recordings.
MOST_KEPT = 20 << 20


def _keep(item, report, folder: pathlib.Path):
    """Copies the test's folder, with what its servers said."""
    folder.mkdir(parents=True, exist_ok=True)
    said = "\n".join(f"--- {title}\n{text}" for title, text in report.sections)
    (folder / f"{report.when}.txt").write_text(f"{report.longreprtext}\n{said}\n")
    for number, server in enumerate(weir_harness.RUNNING):
        (folder / f"weir-{number}.log").write_text(server.text() + "\n")
    made = item.funcargs.get("tmp_path")
    for file in made.rglob("*") if made and made.is_dir() else []:
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= MOST_KEPT:
            target = folder / file.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
