"""The tarball: whole, the same each time, and enough for a machine that has nothing of the project."""

import re
import subprocess


from harness import tools


def test_it_has_what_belongs_to_a_release(tarball):
    assert re.fullmatch(r"weir-\d+\.\d+\.\d+-linux-\w+\.tar\.xz", tarball.name)
    print(f"{tarball.name}: {tarball.stat().st_size / 1e6:.1f} MB")
    checked = subprocess.run(["sha256sum", "-c", f"{tarball.name}.sha256"], cwd=tarball.parent, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    listed = set(tools.run("tar", "-tJf", tarball).stdout.split())
    top = tarball.name.removesuffix(".tar.xz")
    for path in ("bin/weir", "lib/systemd/system/weir.service", "lib/systemd/system/weir-http.socket",
                 "lib/systemd/system/weir-rtmp.socket", "share/man/man1/weir.1", "share/bash-completion/completions/weir",
                 "share/zsh/site-functions/_weir", "share/fish/vendor_completions.d/weir.fish", "share/doc/weir/LICENSE",
                 "share/doc/weir/NOTICE", "share/doc/weir/third-party.txt", "share/doc/weir/CHANGELOG.md", "share/doc/weir/INSTALL.md"):
        assert f"{top}/{path}" in listed, path
    notices = tools.run("tar", "-xJOf", tarball, f"{top}/share/doc/weir/third-party.txt").stdout
    for name in ("swift-nio", "GRDB.swift", "Yams", "swift-crypto", "UNICODE", "Apache License"):
        assert name in notices, name


def test_an_empty_machine_runs_it_by_its_own_instructions(tarball, machine):
    file = machine.put(tarball)
    top = tarball.name.removesuffix(".tar.xz")
    text = tools.run("tar", "-xJOf", tarball, f"{top}/share/doc/weir/INSTALL.md").stdout
    machine.put(tarball.with_name(f"{tarball.name}.sha256"))
    commands = [line.strip().replace("sudo ", "") for line in text.splitlines() if line.startswith("    ")]
    assert len(commands) == 5
    for command in commands[:3]:
        machine.run("bash", "-ec", f"cd /root; {command.replace('apt-get install', 'apt-get install -y')}", seconds=300)
    # Nothing of the service's is there yet, and the ports are free: all is well, or advice.
    said = machine.run("bash", "-c", "cd /root && weir doctor").stdout
    assert "problem" not in said
    if machine.has_systemd:
        machine.run("systemctl", "daemon-reload")
        machine.enable()
        machine.until(lambda: machine.get("/healthz"), 20, "an answer")
    else:
        shown = subprocess.Popen(machine.inside("bash", "-c", f"cd /root && exec {commands[4]}"), stdout=subprocess.DEVNULL)
        machine.until(lambda: machine.get("/healthz"), 20, "an answer")
        machine.run("pkill", "-TERM", "-x", "weir")
        assert shown.wait(20) == 0
    assert machine.run("stat", "-c", "%U", "/usr/local/bin/weir", "/usr/local/lib/systemd/system/weir.service").stdout.split() == [
        "root", "root"]
    assert file
