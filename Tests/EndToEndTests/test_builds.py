"""Checkouts share the compiled dependencies, and nothing else (.ci/scratch, .ci/build)."""

import os
import pathlib
import shutil
import subprocess
import time

import pytest

from harness.tools import ROOT

pytestmark = pytest.mark.rules

MANIFEST = """// swift-tools-version: 6.1
import PackageDescription
let package = Package(
  name: "weir",
  products: [.executable(name: "weir", targets: ["Server"])],
  dependencies: [.package(url: "%s", from: "1.0.0")],
  targets: [
    .target(name: "FMP4", path: "Sources/FMP4"),
    .executableTarget(
      name: "Server", dependencies: ["FMP4", .product(name: "Needed", package: "needed")], path: "Sources/Server"),
  ])
"""
NEEDED = """// swift-tools-version: 6.1
import PackageDescription
let package = Package(name: "needed", products: [.library(name: "Needed", targets: ["Needed"])], targets: [.target(name: "Needed")])
"""


def git(folder: pathlib.Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def needed(tmp_path_factory):
    """A dependency, as a repository of its own."""
    folder = tmp_path_factory.mktemp("dependency") / "needed"
    (folder / "Sources" / "Needed").mkdir(parents=True)
    (folder / "Package.swift").write_text(NEEDED)
    (folder / "Sources" / "Needed" / "Needed.swift").write_text('public func needed() -> String { "needed" }\n')
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    git(folder, "tag", "1.0.0")
    return folder


class Checkout:
    def __init__(self, folder: pathlib.Path, needed: pathlib.Path, word: str):
        self.folder = folder
        for script in ("build", "scratch"):
            (folder / ".ci").mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / ".ci" / script, folder / ".ci" / script)
        (folder / "Sources" / "FMP4").mkdir(parents=True)
        (folder / "Sources" / "Server").mkdir()
        (folder / "Package.swift").write_text(MANIFEST % needed)
        (folder / "Sources" / "Server" / "main.swift").write_text("import FMP4\nimport Needed\nprint(needed(), word())\n")
        (folder / "Sources" / "FMP4" / "Word.swift").write_text(f'public func word() -> String {{ "{word}" }}\n')

    def begin(self, cache) -> subprocess.Popen:
        return subprocess.Popen([self.folder / ".ci" / "build", "tested", "-c release", "weir"], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env={**os.environ, "WEIR_CACHE": str(cache)})

    def build(self, cache) -> str:
        return self.end(self.begin(cache))

    @staticmethod
    def end(build: subprocess.Popen) -> str:
        said, _ = build.communicate(timeout=300)
        assert build.returncode == 0, said
        return said

    def says(self) -> str:
        return subprocess.run([self.folder / ".build" / "tested" / "weir"], check=True, capture_output=True, text=True).stdout.strip()


def compiled(cache: pathlib.Path, module: str) -> float:
    """When a module's only object was compiled."""
    found = [path for path in cache.rglob("*.o") if f"{module}.build" in path.parts]
    assert len(found) == 1, found
    return found[0].stat().st_mtime


def test_two_checkouts_that_differ_in_a_line_give_two_programs_and_compile_their_dependency_once(needed, tmp_path):
    cache = tmp_path / "cache"
    one, two = Checkout(tmp_path / "one", needed, "first"), Checkout(tmp_path / "two", needed, "second")
    # Sources of the same length, with the same time of change: they are told apart by the checkout alone.
    for checkout in (one, two):
        for file in checkout.folder.rglob("*.swift"):
            os.utime(file, (1_700_000_000, 1_700_000_000))
    one.build(cache)
    dependency, own = compiled(cache, "Needed"), compiled(cache, "FMP4")
    two.build(cache)
    assert (one.says(), two.says()) == ("needed first", "needed second")
    assert compiled(cache, "Needed") == dependency and compiled(cache, "FMP4") > own
    # Another one in the place of the second.
    shutil.rmtree(two.folder)
    again = Checkout(two.folder, needed, "thirdly")
    for file in again.folder.rglob("*.swift"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    again.build(cache)
    assert again.says() == "needed thirdly"


def test_two_builds_at_once_wait_for_each_other(needed, tmp_path):
    cache = tmp_path / "cache"
    checkouts = [Checkout(tmp_path / word, needed, word) for word in ("one", "two")]
    builds = [checkout.begin(cache) for checkout in checkouts]
    said = [Checkout.end(build) for build in builds]
    assert [checkout.says() for checkout in checkouts] == ["needed one", "needed two"]
    assert sum("waits for another build" in text for text in said) == 1, said


def test_a_cache_that_cannot_be_written_is_told_and_the_checkout_builds_by_itself(needed, tmp_path):
    checkout = Checkout(tmp_path / "one", needed, "alone")
    said = checkout.build("/proc/nowhere")
    assert "cannot be written" in said and checkout.says() == "needed alone"
    assert (checkout.folder / ".build" / "tested" / "workspace-state.json").exists()


def test_other_flags_have_another_place_and_old_places_go(tmp_path):
    cache = tmp_path / "cache"
    old = cache / "tested-0123456789ab"
    old.mkdir(parents=True)
    month = time.time() - 30 * 86400
    os.utime(old, (month, month))
    scratch = [subprocess.run([ROOT / ".ci" / "scratch", "tested", *flags], check=True, capture_output=True, text=True,
                              env={**os.environ, "WEIR_CACHE": str(cache)}).stdout.strip() for flags in (["-c", "release"], ["-c", "debug"])]
    assert len(set(scratch)) == 2 and all(pathlib.Path(place).is_dir() for place in scratch) and not old.exists()
