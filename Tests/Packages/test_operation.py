"""What docs/operation.md says of the package: upgrade and the way back, and recordings on another disk, as an administrator types it."""

import re
import shlex

from harness import tools


def guide(heading: str, language: str = "sh") -> str:
    """The first block of commands below a heading."""
    text = (tools.ROOT / "docs/operation.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return text.split(f"```{language}\n")[1].split("```")[0]


def version(machine) -> str:
    return machine.run("dpkg-query", "-W", "-f", "${Status} ${Version}", "weir").stdout


def test_an_upgrade_and_the_way_back(machine, deb, newer):
    machine.run("apt-get", "install", "-y", machine.put(deb), seconds=300)
    own = version(machine)
    machine.enable()
    machine.until(lambda: machine.get("/healthz"), 20, "an answer")
    command = guide("Upgrade").strip().removeprefix("sudo ")
    assert "./weir_0.2.0_amd64.deb" in command

    def install(file, *more: str) -> None:
        before = machine.serving()
        line = command.replace("./weir_0.2.0_amd64.deb", machine.put(file)).replace("install", "install -y", 1)
        machine.run(*shlex.split(line), *more, seconds=120)
        machine.restart_unless_scripts_did()
        machine.until(lambda: machine.get("/healthz"), 20, "an answer")
        assert machine.serving() not in ("0", before)

    install(newer)
    assert version(machine) == "install ok installed 0.1.0+newer"
    [flag] = re.findall(r"older package \(`(--[\w-]+)`\)", (tools.ROOT / "docs/operation.md").read_text())
    install(deb, flag)
    assert version(machine) == own


def test_recordings_go_to_the_folder_of_the_guide_to_a_nas(systemd_machine, deb, publisher):
    machine = systemd_machine
    machine.run("apt-get", "install", "-y", machine.put(deb), seconds=300)
    # In place of a NAS: something that is mounted, and that an ordinary unit may not write to.
    machine.run("bash", "-ec", "echo 'tmpfs /srv/recordings tmpfs defaults 0 0' >>/etc/fstab")
    commands = guide("Recordings on a NAS").strip().split("\n")
    assert commands == ["sudo mkdir -p /srv/recordings", "sudo systemctl edit weir"]
    machine.run(*shlex.split(commands[0].removeprefix("sudo ")))
    folder = "/etc/systemd/system/weir.service.d"
    machine.run("mkdir", folder)
    (machine.root / folder.lstrip("/") / "override.conf").write_text(guide("Recordings on a NAS", "ini"))
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "srv-recordings.mount")
    [rights] = re.findall(r"`(sudo chown [^`]*)`", (tools.ROOT / "docs/operation.md").read_text())
    machine.run("bash", "-ec", rights.replace("sudo ", ""))
    machine.enable()
    assert "srv-recordings.mount" in machine.run("systemctl", "show", "-P", "Requires", "weir").stdout.split()
    publisher(machine, "cam")
    machine.until(lambda: machine.run("find", "/srv/recordings/cam", "-name", "*.mp4", check=False).stdout, 30, "a recording there")
    assert machine.run("find", "/var/lib/weir", "-name", "*.mp4").stdout == ""
    assert machine.run("stat", "-c", "%U:%G", "/srv/recordings/cam").stdout.strip() == "weir:weir-recordings"
