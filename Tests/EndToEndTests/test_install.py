"""`make install` as root: sudo's PATH has no compiler. The installed program starts, and its units are correct."""

import os
import re
import shutil
import subprocess

import pytest

from harness import disks, tools
from harness.weir import clean_environment

#: `secure_path` of Debian's sudoers.
PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


def install(folder, built, target: str = "install") -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", "-C", str(tools.ROOT), target, f"DESTDIR={folder}", "PREFIX=/opt/weir", f"BUILT={built}"],
        env={"PATH": PATH, "HOME": str(folder)}, capture_output=True, text=True, timeout=180)


def test_what_was_built_is_installed_without_a_compiler(tmp_path):
    done = install(tmp_path, tools.weir_binary())
    assert done.returncode == 0, done.stderr
    weir = tmp_path / "opt/weir/bin/weir"
    assert os.access(weir, os.X_OK)
    said = subprocess.run([weir, "version"], capture_output=True, text=True, timeout=20, env=clean_environment())
    assert said.stdout.startswith("weir ")
    unit = (tmp_path / "opt/weir/lib/systemd/system/weir.service").read_text()
    # No flag: it would override the variables of /etc/weir.env.
    assert re.findall(r"^ExecStart=(.*)$", unit, re.M) == ["/opt/weir/bin/weir serve"]
    # Wrong settings stay wrong: with this status it is not restarted.
    wrong = subprocess.run([weir, "serve", "--window", "yesterday"], capture_output=True, timeout=20, env=clean_environment())
    assert re.findall(r"^RestartPreventExitStatus=(.*)$", unit, re.M) == [str(wrong.returncode)] == ["2"]
    # Settings of the file come after the unit's own ones, which they replace.
    assert unit.index("Environment=WEIR_STATE") < unit.index("EnvironmentFile=-/etc/weir.env")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    done = install(folder, tools.weir_binary())
    assert done.returncode == 0, done.stderr
    return folder


def test_what_was_installed_can_be_removed(installed, tmp_path):
    shutil.copytree(installed, tmp_path / "copy")
    done = install(tmp_path / "copy", tools.weir_binary(), "uninstall")
    assert done.returncode == 0, done.stderr
    assert [path for path in (tmp_path / "copy").rglob("*") if not path.is_dir()] == []


def test_each_command_has_a_page_of_the_manual_without_a_fault(installed):
    pages = sorted((installed / "opt/weir/share/man/man1").glob("*.1"))
    names = {page.stem for page in pages}
    assert {"weir", "weir-serve", "weir-doctor", "weir-record-clip", "weir-config-init"} <= names
    assert not any("worker" in name for name in names)
    said = tools.run("mandoc", "-Tlint", "-Wwarning", *pages)
    assert said.returncode == 0, said.stdout
    serve = tools.run("mandoc", "-Tutf8", "-Owidth=200", next(page for page in pages if page.stem == "weir-serve")).stdout
    text = re.sub(r".\x08", "", serve)
    for flag in ("--part-duration duration", "--tls-cert file", "--no-record", "WEIR_PUBLISH_KEY", "LISTENERS", "EXIT STATUS"):
        assert flag in text, flag
    for page in pages:
        for other in re.findall(r"\\fB(weir[\\\w-]*)\\fR\(1\)", page.read_text()):
            assert other.replace("\\-", "-") in names, (page.name, other)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_complete(installed, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    share = installed / "opt/weir/share"
    environment = {"PATH": f"{installed}/opt/weir/bin:{PATH}", "HOME": str(tmp_path), "TERM": "dumb"}

    def run(*command) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def offered(*words: str) -> str:
        """What the shell offers behind these words."""
        if shell == "fish":
            script = share / "fish/vendor_completions.d/weir.fish"
            return run("fish", "--no-config", "-c", f"source {script}; complete -C '{' '.join(words)}'")
        if shell == "bash":
            line = " ".join(words)
            return run("bash", "--norc", "-c", f"""
                source {share}/bash-completion/completions/weir
                function_name=$(complete -p weir | sed 's/.*-F \\([^ ]*\\).*/\\1/')
                COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}') COMP_CWORD={len(words) - 1}
                "$function_name" weir '{words[-1]}' '{words[-2]}' 2>/dev/null
                printf '%s\\n' "${{COMPREPLY[@]}}" """)
        # zsh completes in a terminal only; what is offered is in the script, which has to load and to register itself.
        said = run("zsh", "-f", "-c", f"fpath=({share}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -D -u;"
                                      f" print ${{_comps[weir]}}; autoload +X _weir && functions _weir | head -400;"
                                      f" zsh -n {share}/zsh/site-functions/_weir && cat {share}/zsh/site-functions/_weir")
        assert said.splitlines()[0] == "_weir", said[:200]
        return said

    assert {"serve", "doctor", "record"} <= set(re.findall(r"[\w-]+", offered("weir", "")))
    assert "--rtmps" in offered("weir", "serve", "--rt")
    assert "check" in offered("weir", "config", "")


def test_without_a_binary_it_says_what_to_do(tmp_path):
    done = install(tmp_path, tmp_path / "nothing")
    assert done.returncode != 0 and "make build" in done.stderr and "swift" not in done.stderr.lower()


#: What a purged package may find in /var/lib/weir, and whether it stays.
STATE = {
    **{f"{name}.sqlite{ending}": False for name in ("control", "events", "streams") for ending in ("", "-wal", "-shm", "-journal")},
    "films/cam/20261121T072410Z.mp4": True, "films/.catalogue.sqlite": True, "recordings/cam/20261121T072410Z.mp4": True,
    "recordings/.catalogue.sqlite": True, "notes.txt": True, "backup/control.sqlite": True, "control.sqlite.bak": True,
}
#: The script of the package, as dpkg calls it, where nothing of this machine can be removed. One command a line: `-e` does not end
#: the script where one before `&&` fails.
PURGE = """
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /etc
mkdir /var/lib/weir
cp -a "$1/." /var/lib/weir
if [ "$4" = mounted ]; then
  mkdir -p /var/lib/weir/recordings
  mount -t tmpfs tmpfs /var/lib/weir/recordings
fi
PATH="$3" /bin/sh "$2" purge
/usr/bin/find /var/lib -mindepth 1 -printf '%P\n'
"""


def purge(given, tmp_path, mounted: str = "") -> tuple[str, set[str]]:
    """What the script says when the package is purged, and what is left of `given`."""
    disks.needs_rights("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", given)
    programs = tmp_path / "programs"
    programs.mkdir(parents=True)
    # Without the programs that change users and services.
    for name in ("rm", "rmdir", "find"):
        (programs / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-ec", PURGE, "purge", given, tools.ROOT / "packaging/debian/postrm", programs, mounted],
        capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    said, _, left = done.stdout.rpartition("user weir that they belong to.\n")
    return said, set(left.split())


@pytest.mark.skipif(os.geteuid() != 0, reason="folders that nothing else sees need root")
def test_a_purge_removes_what_weir_made_by_name_and_no_recording_wherever_it_lies(tmp_path):
    given = tmp_path / "state"
    for name in STATE:
        (given / name).parent.mkdir(parents=True, exist_ok=True)
        (given / name).write_text(name)
    said, left = purge(given, tmp_path)
    assert "Recordings, and what weir did not make, stay in /var/lib/weir" in said
    assert {name for name in STATE if f"weir/{name}" in left} == {name for name, stays in STATE.items() if stays}


@pytest.mark.skipif(os.geteuid() != 0, reason="folders that nothing else sees need root")
@pytest.mark.parametrize("mounted", ["", "mounted"])
def test_a_purge_leaves_nothing_where_nothing_was_recorded_but_what_is_mounted(tmp_path, mounted):
    given = tmp_path / "state"
    for name in ("recordings/cam", "recordings/.deleted", "films"):
        (given / name).mkdir(parents=True)
    (given / "recordings/.catalogue.sqlite").write_text("")
    (given / "streams.sqlite").write_text("")
    assert purge(given, tmp_path, mounted)[1] == ({"weir", "weir/recordings"} if mounted else set())


@pytest.mark.skipif(os.geteuid() != 0, reason="folders that nothing else sees need root")
def test_a_purge_leaves_recordings_behind_a_link_and_their_catalogue(tmp_path):
    given, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    for folder in (given, elsewhere / "cam"):
        folder.mkdir(parents=True)
    for name in ("cam/20261121T072410Z.mp4", ".catalogue.sqlite", ".weir-doctor-7"):
        (elsewhere / name).write_text(name)
    before = sorted(elsewhere.rglob("*"))
    (given / "recordings").symlink_to(elsewhere)
    assert purge(given, tmp_path / "all")[1] == {"weir", "weir/recordings"}
    assert sorted(elsewhere.rglob("*")) == before
    # A link in the folder leads to recordings, too.
    (given / "recordings").unlink()
    (given / "recordings").mkdir()
    (given / "recordings/.catalogue.sqlite").write_text("")
    (given / "recordings/cam").symlink_to(elsewhere / "cam")
    assert purge(given, tmp_path / "one")[1] == {"weir", "weir/recordings", "weir/recordings/.catalogue.sqlite", "weir/recordings/cam"}
    assert sorted(elsewhere.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="folders that nothing else sees need root")
def test_a_purge_ends_where_something_cannot_be_removed(tmp_path):
    given = tmp_path / "state"
    for name in ("control.sqlite/mine", "streams.sqlite", "recordings/.weir-doctor-7", "recordings/.catalogue.sqlite"):
        (given / name).parent.mkdir(parents=True, exist_ok=True)
        (given / name).write_text(name)
    assert purge(given, tmp_path)[1] == {"weir", "weir/control.sqlite", "weir/control.sqlite/mine"}
