"""`weir doctor`: each thing that would go wrong at the start, or later, is found beforehand, with what to do."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

from harness import disks, tools
from harness.weir import clean_environment

PORTS = ("--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0")


def doctor(*flags, before: str = "", user: str | None = None, environment: dict[str, str] | None = None, binary: str | None = None):
    """The exit status and what was found."""
    line = ["bash", "-c", f'{before} exec "$@"', "doctor", binary or tools.weir_binary(), "doctor", "--json", *map(str, flags)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, user=user,
                          env={**clean_environment(), "SWIFT_BACKTRACE": "enable=no", **(environment or {})})
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    levels = {finding["level"] for finding in answer["findings"]}
    assert answer["ok"] == ("problem" not in levels) == (done.returncode == 0)
    assert all(finding.get("advice") for finding in answer["findings"] if finding["level"] != "ok"), answer
    return done.returncode, answer["findings"]


def of(findings: list[dict], check: str, level: str | None = None) -> list[dict]:
    return [found for found in findings if found["check"] == check and level in (None, found["level"])]


def suits(findings: list[dict]) -> bool:
    """Nothing is in the way but libraries of this machine with known flaws, which depend on its last upgrade."""
    return not [found for found in findings if found["level"] == "problem" and found["check"] != "library"]


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    (tmp_path / "recordings").mkdir()
    return tmp_path / "recordings"


def test_a_machine_that_suits_is_ok_and_each_thing_has_its_line(folder):
    code, findings = doctor(*PORTS, "--record", folder, "--keep-free", "1MB")
    assert code == 0, findings
    assert {"settings", "port", "folder", "descriptors", "memory", "address", "clock", "library", "camera",
            "microphone", "names"} <= {found["check"] for found in findings}
    [disk] = of(findings, "folder")
    assert "MB/s" in disk["found"] and list(folder.iterdir()) == []
    done = subprocess.run([tools.weir_binary(), "doctor", *PORTS, "--record", folder, "--keep-free", "1MB"], text=True,
                          capture_output=True, timeout=60, env=clean_environment())
    lines = done.stdout.splitlines()
    assert len(lines) == len(findings) and all(line.split()[0] in ("ok", "advice", "problem") for line in lines)


def test_a_port_that_is_taken_names_its_holder(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, findings = doctor("--http", f"127.0.0.1:{port}", "--rtmp", "127.0.0.1:0", "--record", folder)
    [found] = of(findings, "port", "problem")
    assert code == 1 and f"pid {os.getpid()} " in found["found"] and "--http 127.0.0.1:" in found["advice"]


def test_a_server_that_runs_is_told_from_a_stranger_and_is_asked(start):
    weir = start()
    code, findings = doctor("--http", weir.web.split("//")[1], "--rtmp", weir.rtmp.split("//")[1], "--record", weir.recordings,
                            "--public-url", weir.web)
    assert code == 0, findings
    assert [found["found"].endswith("has it: the service is there") for found in of(findings, "port")] == [True, True]
    assert [found["found"] for found in of(findings, "address") if found["subject"] == weir.web] == ["answers"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        code, findings = doctor("--http", weir.web.split("//")[1], "--rtmp", "127.0.0.1:0", "--record", weir.recordings,
                                "--public-url", f"http://127.0.0.1:{silent.getsockname()[1]}")
    [found] = of(findings, "address", "problem")
    assert code == 1 and "does not answer" in found["found"]


@pytest.fixture(scope="module")
def everywhere(start_shared, tmp_path_factory):
    """A server that publishers reach in each way, and the flags that it has."""
    cert, key = tools.make_certificate(tmp_path_factory.mktemp("everywhere") / "tls")
    listeners = ("http", "rtmp", "rtmps", "srt", "webrtc")
    flags = ("--rtmps", "127.0.0.1:0", "--srt", "127.0.0.1:0", "--webrtc", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
    weir = start_shared(*flags, listeners=listeners)
    given = [word for name in listeners for word in (f"--{name}", weir.addresses[name].split("//")[1])]
    return weir, [*given, "--tls-cert", cert, "--tls-key", key, "--record", weir.recordings]


def test_the_addresses_of_publishers_are_tried(everywhere):
    weir, given = everywhere
    _, findings = doctor(*given)
    assert suits(findings), findings
    tried = {found["subject"]: found["found"] for found in of(findings, "address", "ok")}
    for name in ("rtmp", "rtmps", "srt"):
        assert tried[weir.addresses[name]] == "answers, for this machine alone", tried
    assert tried[weir.addresses["webrtc"].split("//")[1] + " (--webrtc)"].startswith("answers"), tried


def test_the_addresses_that_publishers_by_webrtc_are_told_instead_are_tried(everywhere):
    """One may be the address of a router."""
    weir, given = everywhere
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = closed.getsockname()[1]
    _, findings = doctor(*given, "--webrtc-address", "127.0.0.1", "--webrtc-address", f"127.0.0.1:{away}")
    assert suits(findings), findings
    [found] = of(findings, "address", "advice")
    assert found["subject"] == f"127.0.0.1:{away} (--webrtc-address)" and f"port {away} " in found["advice"]
    own = weir.addresses["webrtc"].split(":")[-1]
    assert f"127.0.0.1:{own} (--webrtc-address)" in {found["subject"] for found in of(findings, "address", "ok")}


def certificate(folder: pathlib.Path, *dates: str) -> tuple[pathlib.Path, pathlib.Path]:
    """A certificate that is valid between two times."""
    cert, key = tools.make_certificate(folder)
    done = tools.run("faketime", dates[0], tools.OPENSSL, "req", "-x509", "-key", key, "-out", cert, "-days", dates[1],
                     "-subj", "/CN=localhost")
    assert done.returncode == 0, done.stderr
    return cert, key


@pytest.mark.parametrize("begin, days, level, says", [
    ("-40 days", "30", "problem", "expired"), ("-20 days", "30", "advice", "ends in"), ("-1 day", "90", "ok", "valid for"),
    ("+5 days", "90", "problem", "not valid before"),
], ids=["expired", "soon", "good", "later"])
def test_a_certificate_is_judged_by_its_days(folder, tmp_path, begin, days, level, says):
    cert, key = certificate(tmp_path / "tls", begin, days)
    code, findings = doctor(*PORTS, "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--record", folder)
    [found] = of(findings, "certificate")
    assert found["level"] == level and says in found["found"] and code == (level == "problem")


def test_a_key_of_another_certificate_is_found(folder, tmp_path):
    cert, _ = tools.make_certificate(tmp_path / "one")
    _, key = tools.make_certificate(tmp_path / "two")
    code, findings = doctor(*PORTS, "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--record", folder)
    assert code == 1 and "does not belong" in of(findings, "certificate", "problem")[0]["found"]


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_a_folder_that_cannot_be_written_is_found(tmp_path):
    folder = tmp_path / "recordings"
    folder.mkdir(mode=0o755)
    for path in [tmp_path, *tmp_path.parents]:
        if not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    # What was built may lie where only this user looks.
    binary = shutil.copy(tools.weir_binary(), tmp_path / "weir")
    code, findings = doctor(*PORTS, "--record", folder, user="nobody", binary=str(binary))
    [found] = of(findings, "folder", "problem")
    assert code == 1 and "cannot write there: Permission denied" in found["found"]


def test_a_missing_folder_and_a_full_disk_are_found(tmp_path, folder):
    code, findings = doctor(*PORTS, "--record", tmp_path / "no" / "where", "--state", folder, "--keep-free", "900TB")
    gone, full = of(findings, "folder", "problem")
    assert code == 1 and "mkdir -p" in gone["advice"] and "recording stops below" in full["found"]


#: Devices of a camera and a microphone, with the mode given, where only this command sees them.
DEVICES = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/snd"
for one in null urandom; do
  touch "$1/$one"
  mount --bind /dev/$one "$1/$one"
done
mknod -m "$2" "$1/video0" c 81 0
mknod -m "$2" "$1/snd/pcmC0D0c" c 116 24
mknod -m "$2" "$1/snd/controlC0" c 116 0
mount --rbind "$1" /dev
shift 2
exec setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="devices that only the test sees need root")
def test_a_camera_and_a_microphone_that_this_user_may_not_use_are_found(tmp_path):
    disks.needs_rights("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", tmp_path)
    disks.needs_rights("mknod", tmp_path / "device", "c", "81", "0")

    def found(mode: str) -> list[dict]:
        done = subprocess.run(["unshare", "--mount", "bash", "-ec", DEVICES, "devices", tmp_path, mode, tools.weir_binary(), "doctor", "--json",
                               *PORTS, "--no-record"], capture_output=True, text=True, timeout=60, env=clean_environment())
        assert done.stdout, done.stderr
        return json.loads(done.stdout)["findings"]

    forbidden = found("600")
    [camera], [microphone] = of(forbidden, "camera"), of(forbidden, "microphone")
    assert camera["level"] == microphone["level"] == "advice"
    assert "may not use the camera /dev/video0" in camera["found"] and "usermod -aG video" in camera["advice"]
    assert "may not use the microphone" in microphone["found"] and "usermod -aG audio" in microphone["advice"]
    # With the right to open it, it is another matter that there is no camera behind the device.
    assert not any("may not use" in each["found"] for each in found("666"))


def test_few_descriptors_are_found(folder):
    code, findings = doctor(*PORTS, "--record", folder, before="ulimit -n 256;")
    [found] = of(findings, "descriptors")
    assert code == 1 and found["level"] == "problem" and found["found"].startswith("256 ")


def test_the_room_is_that_of_the_banner(start, folder):
    flags = ("--max-streams", "7", "--max-viewers", "23")
    weir = start(*flags)
    [banner] = re.findall(r"^  room     (\d+) streams, (\d+) connections", weir.text(), re.M)
    [found] = of(doctor(*PORTS, "--record", folder, *flags)[1], "descriptors")
    assert banner == re.search(r"room for (\d+) streams, or (\d+) connections", found["found"]).groups(), found
    assert banner[0] == "7"


def test_settings_that_are_wrong_are_found_and_the_rest_is_looked_at_still(folder, tmp_path):
    file = tmp_path / "weir.yaml"
    file.write_text("streams:\n  '*': {partDuration: 200}\n")
    code, findings = doctor("--config", file)
    [found] = of(findings, "settings")
    assert code == 1 and "weir.yaml:2:" in found["found"] and "200ms" in found["advice"]
    assert of(findings, "clock") and not of(findings, "port")


#: The version of Debian's libssl3 that mends flaws of DTLS.
MENDED = "3.0.22-1~deb12u2"


@pytest.mark.parametrize("flags, level", [((), "advice"), (("--webrtc", "127.0.0.1:0"), "problem")], ids=["off", "webrtc"])
def test_an_openssl_with_known_flaws_is_named(folder, flags, level):
    """Packets reach it by WebRTC. What is expected follows from what this machine has."""
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libssl3"], capture_output=True, text=True)
    if query.returncode != 0 or "ubuntu" in query.stdout:
        pytest.skip("this machine has no libssl3 of Debian")
    is_older = subprocess.run(["dpkg", "--compare-versions", query.stdout, "lt", MENDED]).returncode == 0
    code, findings = doctor(*PORTS, "--record", folder, *flags)
    [found] = [each for each in of(findings, "library") if each["subject"] == "libssl3"]
    assert found["level"] == (level if is_older else "ok") and query.stdout in found["found"]
    assert not is_older or MENDED in found["advice"]
    assert suits(findings) and (code == 1) == ("problem" in {each["level"] for each in findings})


def test_the_names_that_are_answered_are_told(folder, tmp_path):
    cert, key = tools.make_certificate(tmp_path / "tls")
    done = tools.run(tools.OPENSSL, "req", "-x509", "-key", key, "-out", cert, "-days", "90", "-subj", "/CN=x",
                     "-addext", "subjectAltName=DNS:tls.example,DNS:*.cdn.example")
    assert done.returncode == 0, done.stderr
    _, findings = doctor(*PORTS, "--https", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--record", folder,
                         "--public-url", "https://live.example.com:8443", "--allowed-host", "other.example")
    [found] = of(findings, "names", "ok")
    for name in ("*.local", "*.internal", "*.home.arpa", "tls.example", "*.cdn.example", "live.example.com", "other.example"):
        assert name in found["found"].split(", "), found
