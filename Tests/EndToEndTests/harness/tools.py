"""Paths of the programs that publish, judge and serve, and functions to run them."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]

#: Debian's ffmpeg (5.1): publisher of plain RTMP, and judge.
FFMPEG = shutil.which("ffmpeg", path="/usr/bin") or shutil.which("ffmpeg") or "ffmpeg"
FFPROBE = shutil.which("ffprobe", path="/usr/bin") or shutil.which("ffprobe") or "ffprobe"
GSTREAMER = shutil.which("gst-launch-1.0")
OPENSSL = shutil.which("openssl") or "openssl"


def new_ffmpeg() -> str:
    """The static ffmpeg of imageio-ffmpeg: it sends Enhanced RTMP and encodes AV1 fast."""
    import imageio_ffmpeg

    return imageio_ffmpeg.get_ffmpeg_exe()


#: What the server was built to look for: "thread", "address", or nothing.
SANITIZER = os.environ.get("WEIR_SANITIZER", "")


def weir_binary() -> str:
    """$WEIR_BIN, else the release build of this checkout, else its debug build."""
    chosen = os.environ.get("WEIR_BIN")
    if chosen:
        if not os.access(chosen, os.X_OK):
            raise FileNotFoundError(f"WEIR_BIN={chosen} is not an executable file; build weir or correct the path")
        return str(pathlib.Path(chosen).resolve())
    for build in ("release", "debug"):
        candidate = ROOT / ".build" / build / "weir"
        if os.access(candidate, os.X_OK):
            return str(candidate)
    raise FileNotFoundError(f"no weir in {ROOT}/.build; run `swift build`, or set WEIR_BIN")


def run(*command, timeout: float = 60, input: bytes | None = None) -> subprocess.CompletedProcess:
    """Runs a program to its end and returns its output as text. It never raises on an exit code."""
    done = subprocess.run(
        [str(part) for part in command],
        input=input,
        stdin=None if input is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=timeout,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


def output(*command, timeout: float = 60) -> bytes:
    """The output of a program, as bytes."""
    return subprocess.run(
        [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=timeout).stdout


def make_certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A self-signed certificate and its key, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    cert, key = folder / "cert.pem", folder / "key.pem"
    done = run(OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
               key, "-out", cert, "-days", "30", "-subj", "/CN=localhost")
    assert done.returncode == 0, done.stderr
    return cert, key
