"""The start: from the program's call to its first answer, and the processor time of that; then what an idle server takes."""

import pathlib
import signal
import socket
import subprocess
import time

from harness import tools
from harness.programs import free_port
from harness.weir import clean_environment

from . import meter, peers

STARTS = 20
#: An idle server is left alone for so long before it is measured, and measured for so long.
SETTLE, IDLE, LOOKS = 10, 60, 3


def processor_seconds(pid: int) -> float:
    """Processor time of a process by its own clock (clock_getcpuclockid(3)): to the nanosecond, with the threads that have ended.
    The ticks of /proc/PID/stat are as long as half a start."""
    return time.clock_gettime((~pid << 3) | 2)


def answers(port: int, path: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            return client.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def first_answer(command: list[str], port: int, path: str, folder: pathlib.Path) -> tuple[subprocess.Popen, float, float]:
    """The process, and the milliseconds on the clock and of the processor until it has answered."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while not answers(port, path):
        if process.poll() is not None or time.perf_counter() - began > 30:
            process.kill()
            raise RuntimeError(f"{command[0]} does not answer")
        time.sleep(0.0005)
    return process, (time.perf_counter() - began) * 1000, sum(processor_seconds(one) for one in meter.tree(process.pid)) * 1000


def end(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def weir_command(folder: pathlib.Path, port: int) -> list[str]:
    return [tools.weir_binary(), "serve", "--http", f"127.0.0.1:{port}", "--rtmp", f"127.0.0.1:{free_port()}",
            "--record", str(folder / "recordings"), "--state", str(folder / "state"), "--log-level", "warning"]


def run() -> str:
    times: list[tuple[float, float]] = []
    with peers.folder() as folder:
        for turn in range(STARTS + 1):
            port = free_port()
            process, wall, cpu = first_answer(weir_command(folder, port), port, "/healthz", folder)
            end(process)
            if turn:  # the first one reads the program from the disk
                times.append((wall, cpu))
        port = free_port()
        process, _, _ = first_answer(weir_command(folder, port), port, "/healthz", folder)
        try:
            time.sleep(SETTLE)
            idle = []
            for _ in range(LOOKS):
                before, began = processor_seconds(process.pid), time.monotonic()
                time.sleep(IDLE)
                idle.append(100 * (processor_seconds(process.pid) - before) / (time.monotonic() - began))
            memory = meter.memory_bytes(process.pid)["resident"]
        finally:
            end(process)
    body = [["from the call to the first answer, ms", meter.spread([wall for wall, _ in times])],
            ["processor time until then, ms", meter.spread([cpu for _, cpu in times])],
            [f"idle, {LOOKS} times {IDLE} s, % of a core", meter.spread(idle)],
            ["idle, memory (Pss), MiB", f"{memory / 2**20:.1f}"]]
    return (f"Start: with folders for recordings and state, {STARTS} times with everything in the page cache, median (min–max).\n\n"
            + meter.table(["what", "weir"], body))
