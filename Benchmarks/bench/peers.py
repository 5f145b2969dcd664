"""The measured servers, each in its own folder, which is removed afterwards."""

import contextlib
import getpass
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from harness.programs import free_port
from harness.weir import Weir

HERE = pathlib.Path(__file__).resolve().parent.parent
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin") or "nginx"


@contextlib.contextmanager
def folder(where: str | None = None):
    path = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-", dir=where))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def weir(*flags: str, listeners: tuple[str, ...] = ("http", "rtmp")):
    """weir without recording; yields the running server."""
    with folder() as path:
        server = Weir("--no-record", "--log-level", "warning", *flags, folder=path, listeners=listeners)
        try:
            yield server
        finally:
            try:
                server.stop()
            finally:
                server.kill()


@contextlib.contextmanager
def nginx(template: str, prepare=None, **values):
    """nginx with a template of Benchmarks/nginx; yields (process id of the master, port, folder)."""
    with folder() as path:
        port = free_port()
        if prepare:
            prepare(path)
        text = (HERE / "nginx" / template).read_text()
        values = {k: v.format(folder=path) if isinstance(v, str) else v for k, v in values.items()}
        config = path / "nginx.conf"
        config.write_text(text.format(folder=path, port=port, user=getpass.getuser(), **values))
        process = subprocess.Popen([NGINX, "-p", "/usr/share/nginx", "-c", str(config)], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                    break
                if process.poll() is not None:
                    raise RuntimeError(f"nginx ended: {process.stderr.read().decode()}")
                time.sleep(0.02)
            yield process.pid, port, path
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
