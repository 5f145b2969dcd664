"""Fixtures of the end-to-end tests: servers that are checked when they end, and folders that are removed."""

import os
import pathlib
import secrets
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import events  # noqa: E402  (the path above makes it importable)
from harness.metronome import Metronome  # noqa: E402
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Gives each worker one file of tests at a time. Tests with a browser run one after the other, because browsers use the
    same cores on which servers and judges measure time."""
    from xdist.scheduler import LoadScopeScheduling

    class OneBrowserAtATime(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if "browser/" in nodeid.split("::")[0] else super()._split_scope(nodeid)

    return OneBrowserAtATime(config, log)


def pytest_sessionstart(session):
    session.config.metronome = Metronome(pathlib.Path(tempfile.mkdtemp(prefix="weir-metronome-")) / "beats")


def pytest_sessionfinish(session):
    session.config.metronome.stop()
    session.config.metronome.path.unlink(missing_ok=True)
    session.config.metronome.path.parent.rmdir()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Reports for a failed test how badly the machine kept time meanwhile, if it did."""
    report = yield
    if report.failed:
        kept = item.config.metronome.between(time.monotonic() - call.duration, time.monotonic())
        if not kept.is_well:
            report.sections.append(("machine", str(kept)))
            report.user_properties.append(("held up", str(kept)))
    return report


def pytest_terminal_summary(terminalreporter):
    """The measured figures of the tests in one list, and the names of failed tests, for `run`."""
    if "WEIR_FAILED" in os.environ:
        _name_failed(terminalreporter, pathlib.Path(os.environ["WEIR_FAILED"]))
    figures = [
        value for reports in terminalreporter.stats.values() for report in reports
        if getattr(report, "when", "") == "call" for name, value in report.user_properties if name == "figure"]
    if figures:
        terminalreporter.section("figures")
        for figure in sorted(figures):
            terminalreporter.write_line(figure)


def _name_failed(terminalreporter, path: pathlib.Path):
    """Writes the failed tests, one per line, and for each whether the machine itself held it up. Writes nothing if the failure
    was outside of a test: a server that ends badly is no matter of timing."""
    root = pathlib.Path(terminalreporter.config.rootpath)
    failed = [] if terminalreporter.stats.get("error") else terminalreporter.stats.get("failed", [])
    path.write_text("".join(f"{root / r.nodeid}\t{dict(r.user_properties).get('held up', '')}\n" for r in failed))
