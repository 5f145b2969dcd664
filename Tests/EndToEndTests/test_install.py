"""`make install` as root: sudo's PATH has no compiler. The installed program starts, and its units are correct."""

import os
import re
import subprocess

from harness import tools
from harness.weir import clean_environment

#: `secure_path` of Debian's sudoers.
PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


def install(folder, built) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", "-C", str(tools.ROOT), "install", f"DESTDIR={folder}", "PREFIX=/opt/weir", f"BUILT={built}"],
        env={"PATH": PATH, "HOME": str(folder)}, capture_output=True, text=True, timeout=60)


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


def test_without_a_binary_it_says_what_to_do(tmp_path):
    done = install(tmp_path, tmp_path / "nothing")
    assert done.returncode != 0 and "make build" in done.stderr and "swift" not in done.stderr.lower()
