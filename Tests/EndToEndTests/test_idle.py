"""The machine is kept awake while weir captures or records: an inhibitor of a mock of logind on a private bus."""

import os
import signal
import subprocess
import time

import pytest

from harness import publishers

LOGIN = "org.freedesktop.login1"
PATTERN = "cam=v4l2:/dev/video63?size=320x180&fps=10&preset=ultrafast"


@pytest.fixture
def bus(tmp_path):
    """The address of a private bus with python3-dbusmock's logind on it."""
    socket = tmp_path / "bus"
    daemon = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address=unix:path={socket}"])
    environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={socket}"}
    mock = None
    try:
        await_true(socket.exists, "a bus")
        mock = subprocess.Popen(["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"], env=environment,
                                stdout=subprocess.DEVNULL)
        address = f"unix:path={socket}"
        await_true(lambda: inhibitors(address) is not None, "a mock of logind")
        yield address
    finally:
        for process in (mock, daemon):
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.wait(10)


def await_true(condition, what: str, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def inhibitors(address: str) -> str | None:
    """What logind lists; None if it does not answer."""
    asked = subprocess.run(["dbus-send", f"--bus={address}", "--print-reply", f"--dest={LOGIN}", "/org/freedesktop/login1",
                            f"{LOGIN}.Manager.ListInhibitors"], capture_output=True, text=True)
    return asked.stdout if asked.returncode == 0 else None


def holds(address: str) -> bool:
    told = inhibitors(address) or ""
    return all(f'string "{word}"' in told for word in ("idle:sleep", "weir", "block"))


def test_a_recording_keeps_the_machine_awake_until_it_ends(start, bus):
    weir = start("--reconnect-window", "0s", environment={"DBUS_SYSTEM_BUS_ADDRESS": bus})
    time.sleep(1.5)
    assert not holds(bus), "nothing runs"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        await_true(lambda: holds(bus), "an inhibitor")
    finally:
        publisher.kill()
    weir.wait_state("cam", "ended")
    await_true(lambda: not holds(bus), "its end")


def test_a_source_that_captures_keeps_the_machine_awake_until_it_is_stopped(start, bus):
    weir = start("--source", PATTERN, "--no-record", "--admin-token", "sesame-1", environment={"DBUS_SYSTEM_BUS_ADDRESS": bus})
    await_true(lambda: holds(bus), "an inhibitor")
    assert inhibitors(bus).count('"idle:sleep"') == 1
    weir.get("/api/v1/sources/cam/stop", method="POST", headers={"Authorization": "Bearer sesame-1"}).good()
    await_true(lambda: not holds(bus), "its end")


def test_without_a_bus_nothing_is_amiss(start, tmp_path):
    weir = start("--source", PATTERN, "--no-record", "--log-level", "debug",
                 environment={"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path}/none"})
    weir.wait(lambda: "may go to sleep" in weir.text(), 15, "a word at debug")
    time.sleep(1.5)
    assert weir.text().count("may go to sleep") == 1
