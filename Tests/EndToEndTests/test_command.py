"""The command line: start, end, wrong flags, busy ports, other addresses, TLS, and the options for what is kept. Each
refusal is one line that says what failed, with which value, why, and what to do."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import warnings

import pytest

from harness import nothing_wrong, boxes, dash, disks, hls, http, packets, publishers, recordings, scripts, sources, tools
from harness.programs import free_port
from harness.rawrtmp import RawRTMP, Refused
from harness.weir import clean_environment

USAGE, CONFIGURATION = 2, 78


def command(*arguments, environment: dict[str, str] | None = None, cwd=None, seconds: float = 20):
    done = subprocess.run(
        [tools.weir_binary(), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=seconds, cwd=cwd, env={**clean_environment(), "SWIFT_BACKTRACE": "enable=no", **(environment or {})})
    return done.returncode, done.stdout, done.stderr


def refused(code: int, *arguments, environment: dict[str, str] | None = None, cwd=None) -> str:
    """Runs weir, which must refuse in one line, and returns that line."""
    got, out, err = command(*arguments, environment=environment, cwd=cwd)
    assert got == code, f"exit {got}\n{out}\n{err}"
    lines = [line for line in err.splitlines() if line.strip()]
    if code == CONFIGURATION:
        assert len(lines) == 1, err
    assert lines and len(lines[0]) > 20, err
    return err


SERVE = ("serve", "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0")


def test_version_and_help():
    code, out, _ = command("version")
    first, second = out.splitlines()
    assert code == 0 and re.fullmatch(r"weir \d+\.\d+\.\d+, Apache License 2\.0", first)
    assert second.startswith("linked with libavcodec")
    assert command("--version")[1] == out
    code, out, _ = command("--help")
    assert code == 0 and "serve" in out
    code, out, _ = command("serve", "--help")
    assert code == 0
    for flag in ("--http", "--https", "--rtmp", "--rtmps", "--source", "--part-duration", "--target-duration",
                 "--reconnect-window", "--max-viewers", "--poll-limit", "--keep-free", "--record", "--record-name", "--no-record", "--segments",
                 "--segment-duration", "--window", "--publish-key", "--test-pattern", "--tls-cert", "--tls-key",
                 "--log-level", "--log"):
        assert flag in out, flag
    assert "Examples:" in out


def test_libav_is_loaded_when_it_is_used(start):
    """With all that it needs it takes longer to load than the rest of the start, and many servers never decode."""
    def loaded(weir) -> bool:
        return "/libavcodec.so." in pathlib.Path(f"/proc/{weir.process.pid}/maps").read_text()

    weir = start()
    assert weir.get("/healthz").status == 200 and not loaded(weir)
    weir = start("--source", "cam=test", "--no-record")
    weir.wait_state("cam", "live")
    assert loaded(weir)


def test_without_libav_sources_fail_and_the_server_goes_on(start, tmp_path):
    """As where it was not installed, or a distribution's upgrade took it away."""
    disks.needs("unshare", "mount")
    library = next(line.split()[-1] for line in tools.output("ldconfig", "-p").decode().splitlines() if "libavutil.so." in line)
    empty = tmp_path / "empty"
    empty.touch()
    disks.needs_rights("unshare", "--mount", "mount", "--bind", empty, os.path.realpath(library))
    without = ("unshare", "--mount", "sh", "-c", f'mount --bind "$0" {os.path.realpath(library)} && exec "$@"', str(empty))
    weir = start("--source", "cam=test", "--no-record", wrapper=without)
    weir.wait_log("libavutil.so.* cannot be used: .*; install the package of that library")
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/other", loop=-1)
    weir.wait_state("other", "live")
    publisher.kill()
    done = tools.run(*without, tools.weir_binary(), "--version")
    assert done.returncode == 0 and "cannot be used" in done.stdout, (done.stdout, done.stderr)
    done = tools.run(*without, tools.weir_binary(), "doctor", "--json", "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0", "--no-record")
    [missing] = [one for one in json.loads(done.stdout)["findings"] if one["subject"] == "libavcodec"]
    assert missing["level"] == "problem" and missing["advice"].startswith("install"), missing


@pytest.mark.parametrize("arguments, names", [
    (("--http", "nonsense"), "nonsense"),
    (("--http", "127.0.0.1:99999"), "99999"),
    (("--rtmp", "host:"), "host:"),
    (("--no-such-flag",), "--no-such-flag"),
    (("--window", "yesterday"), "yesterday"),
    (("--part-duration=-1s",), "-1s"),
    (("--segment-duration", "0"), "0"),
    (("--log-level", "loud"), "loud"),
    (("--log", "xml"), "xml"),
    (("--max-viewers", "many"), "many"),
    (("--max-viewers", "-3"), "--max-viewers -3: that is not a whole number in range; use a number from 1 to 1000000"),
    (("--rotate", "cam=90"), "streams.cam.rotate"),
    (("--test-pattern", "../x"), "../x"),
    (("--source", "cam=what"), "what"),
    (("--record-name", "{stream}/{day}"), "{stream}/{day}"),
], ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_wrong_flag_is_named_with_its_value(tmp_path, arguments, names):
    assert names in refused(USAGE, *SERVE, "--no-record", *arguments, cwd=tmp_path)


def test_a_start_that_fails_is_told_in_the_form_of_the_log(tmp_path):
    for arguments, environment in ((("--log", "json"), {}), ((), {"WEIR_LOG": "json"})):
        said = refused(USAGE, *SERVE, "--no-record", "--window", "yesterday", *arguments, environment=environment, cwd=tmp_path)
        line = json.loads(said)
        assert (line["level"], line["component"]) == ("critical", "weir") and "yesterday" in line["message"]


@pytest.mark.parametrize("group", ["record", "config", "keys", "streams"])
def test_help_behind_a_command_is_its_help(group):
    code, out, _ = command(group, "help")
    assert code == 0 and out == command(group, "--help")[1] and "SUBCOMMANDS" in out


@pytest.mark.parametrize("words, meant", [
    (["servee"], "weir serve"), (["record", "lst"], "weir record list"), (["help", "recrod"], "weir record"),
], ids=lambda value: "-".join(value) if isinstance(value, list) else "")
def test_a_mistyped_command_is_answered_with_the_one_that_is_meant(words, meant):
    assert f"did you mean {meant}?" in refused(USAGE, *words)


def test_a_size_without_a_unit_is_refused(tmp_path):
    assert "--keep-free 10: a size needs a unit; write 10MB or 10GB, or 10B for bytes" in refused(USAGE, *SERVE, "--keep-free", "10", cwd=tmp_path)


def test_a_variable_that_is_no_setting_starts_no_server(tmp_path, canary):
    said = refused(USAGE, *SERVE, "--no-record", environment={"WEIR_PUBLISH_KEYS": canary}, cwd=tmp_path)
    assert "WEIR_PUBLISH_KEYS" in said and "write WEIR_PUBLISH_KEY," in said and canary not in said


def test_a_variable_that_loses_to_a_flag_is_told(start, canary):
    weir = start("--window", "20s", environment={"WEIR_RECORD": "/elsewhere", "WEIR_PUBLISH_KEY": canary, "WEIR_WINDOW": "20s"})
    weir.secrets.append(canary)
    assert "--record" in weir.wait_log("warning.*WEIR_RECORD has no effect")
    assert "WEIR_WINDOW" not in weir.text() and "WEIR_PUBLISH_KEY has" not in weir.text()


def test_what_is_not_there_is_not_asked_to_be_mounted(tmp_path):
    for verb in (["verify"], ["finalize"], ["clip", "-o", tmp_path / "out.mp4"]):
        code, out, err = command("record", *verb, tmp_path / "none.mp4")
        assert code == 1 and "there is no such file" in out + err and "folder" not in out + err


def test_recordings_are_listed_by_paths_that_other_commands_take(start):
    weir = start("--reconnect-window", "1s")
    publisher = publishers.ffmpeg("half-seconds", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        weir.wait(lambda: (weir.stream("cam") or {}).get("recording", {}).get("seconds", 0) > 3, 20, "cam is recorded")
        for folder in (str(weir.recordings), f"{weir.recordings}/"):
            code, out, _ = command("record", "list", "--folder", folder)
            path = out.split()[-1]
            assert code == 0 and path.endswith(".part.mp4") and pathlib.Path(path).is_file()
            assert command("record", "verify", path)[0] == 0
        assert path in weir.wait_log("recording to")
    finally:
        publisher.kill()
    weir.wait(lambda: [r for r in weir.recordings_of("cam") if r["state"] == "completed"], 40, "cam is complete")
    movie = command("record", "list", "--folder", weir.recordings)[1].split()[-1]
    assert pathlib.Path(movie).is_file() and not movie.endswith(".part.mp4")
    for beginning in ("00:00:01", "0:01", "1"):
        out = weir.folder / f"{beginning.replace(':', '-')}.mp4"
        code, said, _ = command("record", "clip", movie, "--from", beginning, "--to", "00:00:02.5", "-o", out, "--json")
        assert code == 0 and abs(json.loads(said)[0]["seconds"] - 1.5) < 0.1, beginning


def test_a_busy_port_is_one_line_and_78(tmp_path):
    port = free_port()
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        for flag, other in (("--http", "--rtmp"), ("--rtmp", "--http")):
            said = refused(CONFIGURATION, "serve", flag, f"127.0.0.1:{port}", other, "127.0.0.1:0", "--no-record",
                           cwd=tmp_path)
            assert f"cannot listen on 127.0.0.1:{port} ({flag} " in said
            assert f": pid {os.getpid()} ({pathlib.Path('/proc/self/comm').read_text().strip()}) has the port" in said
            advised = int(re.search(rf"choose another port: {flag} 127.0.0.1:(\d+)$", said)[1])
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind(("127.0.0.1", advised))


@pytest.mark.skipif(os.getuid() != 0, reason="only root takes another user")
def test_a_busy_port_of_another_user_is_named_by_its_user(tmp_path):
    tmp_path.chmod(0o755)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        weir = shutil.copy(tools.weir_binary(), tempfile.mkdtemp(dir="/var/tmp"))
        try:
            os.chmod(pathlib.Path(weir).parent, 0o755)
            done = subprocess.run(
                ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", weir, "serve", "--http", f"localhost:{port}",
                 "--rtmp", "localhost:0", "--no-record"], cwd="/", env=clean_environment(), capture_output=True, text=True, timeout=20)
        finally:
            shutil.rmtree(pathlib.Path(weir).parent)
        assert done.returncode == CONFIGURATION and ": a program of user root has the port; " in done.stderr, done.stderr


def test_weir_alone_prints_help_and_starts_nothing(tmp_path):
    code, out, err = command(cwd=tmp_path)
    assert code == 0 and out == command("--help")[1] and "SUBCOMMANDS" in out and err == ""
    nothing_wrong(list(tmp_path.iterdir()))


def test_localhost_is_this_machine_alone(start):
    weir = start("--http", "localhost:0", "--no-record")
    assert weir.web.startswith("http://127.0.0.1:")
    port = weir.web.rpartition(":")[2]
    assert http.fetch(f"http://localhost:{port}/healthz").status == 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes networks")
@pytest.mark.parametrize("form", ["text", "json"])
def test_the_addresses_of_the_machine_are_told_and_in_the_log(tmp_path, form):
    """In a network of its own, with an interface that has the default route and one more."""
    script = f"""
      ip link set lo up
      ip link add other type veth peer name lan
      ip link set other up; ip link set lan up
      ip addr add 198.51.100.9/24 dev other; ip addr add 192.0.2.7/24 dev lan
      ip addr add 2001:db8::7/64 dev lan nodad; ip route add default dev lan
      exec {tools.weir_binary()} serve --no-record --http :8080 --rtmp :1935 --log {form}"""
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(["unshare", "-n", "sh", "-ec", script], cwd=tmp_path, env=clean_environment(), stdout=out, stderr=err)
        try:
            end = time.monotonic() + 20
            # The banner is the last.
            while not (form == "json" and " started" in (tmp_path / "err").read_text() or "room  " in (tmp_path / "out").read_text()):
                assert process.poll() is None and time.monotonic() < end, (tmp_path / "err").read_text()
                time.sleep(0.05)
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    told, banner = (tmp_path / "err").read_text(), (tmp_path / "out").read_text()
    others = ["192.0.2.7", "2001:db8::7", "198.51.100.9"]
    if form == "json":
        (started,) = [line for line in map(json.loads, told.splitlines()) if line["message"].endswith("started")]
        assert started["addresses"].split() == others and banner == ""
        return
    assert re.search(rf"^\S+ notice weir: weir \S+ started addresses={' '.join(others)} .*rtmp=rtmp://localhost:1935/live ", told, re.M), told
    assert "OBS: server rtmp://192.0.2.7:1935/live, stream key NAME" in banner
    assert re.findall(r"http://(\S+):8080/$", banner, re.M) == ["localhost", "192.0.2.7", "[2001:db8::7]", "198.51.100.9"], banner


def test_a_recordings_folder_that_is_a_file_is_one_line_and_78(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert str(file) in refused(CONFIGURATION, *SERVE, "--record", file, cwd=tmp_path)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_recordings_folder_that_may_not_be_written_is_one_line_and_78(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert str(closed) in refused(CONFIGURATION, *SERVE, "--record", closed, cwd=tmp_path)


def test_a_missing_or_wrong_certificate_is_one_line_and_78(tmp_path):
    cert, key = certificate(tmp_path)
    missing = tmp_path / "nothing.pem"
    said = refused(CONFIGURATION, *SERVE, "--https", "127.0.0.1:0", "--tls-cert", missing, "--tls-key", key,
                   "--no-record", cwd=tmp_path)
    assert str(missing) in said
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("this is no certificate")
    said = refused(CONFIGURATION, *SERVE, "--https", "127.0.0.1:0", "--tls-cert", wrong, "--tls-key", key,
                   "--no-record", cwd=tmp_path)
    assert str(wrong) in said
    code, _, said = command(*SERVE, "--https", "127.0.0.1:0", "--no-record", cwd=tmp_path)
    assert code in (USAGE, CONFIGURATION) and "--tls-cert" in said


def test_flags_have_environment_twins_and_the_flag_wins(start, tmp_path):
    weir = start("--no-record", environment={"WEIR_PUBLISH_KEY": "from-the-environment", "WEIR_LOG_LEVEL": "debug"})
    weir.secrets.append("from-the-environment")
    with RawRTMP(weir.rtmp) as client:
        client.handshake()
        client.connect()
        with pytest.raises(Refused):
            client.publish("cam")
    refused(USAGE, *SERVE, "--no-record", environment={"WEIR_WINDOW": "yesterday"}, cwd=tmp_path)
    again = start("--no-record", "--publish-key", "the-flag", environment={"WEIR_PUBLISH_KEY": "from-the-environment"})
    with RawRTMP(again.rtmp).start("cam?key=the-flag") as client:
        client.finish()


def test_without_a_key_it_warns_that_any_client_may_publish(start):
    weir = start()
    assert re.search(r"every client .* may publish", weir.text())
    assert str(weir.recordings) in weir.text() or "recordings" in weir.text()
    keyed = start("--publish-key", "something-long")
    keyed.secrets.append("something-long")
    assert not re.search(r"every client .* may publish", keyed.text())


def test_json_logs_are_one_object_a_line(start):
    weir = start("--log", "json", "--no-record")
    with contextlib.suppress(OSError), RawRTMP(weir.rtmp) as client:
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client.wait_closed(12)
    weir.stop()
    # A journal gets both outputs.
    lines = [json.loads(line) for line in weir.text().splitlines()]
    assert all(isinstance(line, dict) for line in lines)
    (started,) = [line for line in lines if re.fullmatch(r"weir \d+\.\d+\.\d+ started", line["message"])]
    (warning,) = [line for line in lines if "--publish-key" in line["message"]]
    assert started["level"] == "notice" and started["recordings"] == "off"
    assert started["http"] == weir.web and started["rtmp"] == f"{weir.rtmp}/live"
    assert warning["level"] == "warning"


def test_every_line_about_a_stream_names_it_once(start):
    servers = {form: start("--log", form, "--audio-codec", "aac") for form in ("json", "text")}
    running = {form: publishers.ffmpeg("short", f"{weir.rtmp}/live/sheep", loop=-1) for form, weir in servers.items()}
    for weir in servers.values():
        weir.wait_state("sheep", "live")
        with RawRTMP(weir.rtmp, source="127.0.0.2") as other, pytest.raises(Refused):
            other.start("sheep")
    for form, weir in servers.items():
        weir.wait(lambda: (weir.stream("sheep")["recording"] or {}).get("seconds", 0) > 1, 20, "a second of a recording")
        running[form].interrupt()
        running[form].outcome(20)
        weir.wait(lambda: [r for r in weir.recordings_of("sheep") if r["state"] == "completed"], 40, "sheep is recorded")
        weir.stop()
        lines = [line for line in weir.text("err").splitlines() if "sheep" in line]
        told = " ".join(lines)
        assert all(word in told for word in ("publishing", "recording to", "recorded", "ended", "refused"))
        for line in lines:
            if form == "json":
                fields = json.loads(line)
                assert fields["stream"] == "sheep" and not fields["message"].startswith("sheep"), line
            else:
                # The name may also be in a path.
                assert re.match(r"\S+ \w+ \w+ sheep: (?!sheep\b)", line), line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_the_end_of_the_server_finishes_recordings_and_playlists_within_five_seconds(start, number):
    weir = start("--target-duration", "2")
    running = [publishers.ffmpeg("half-seconds", f"{weir.rtmp}/live/cam{n}") for n in range(2)]
    viewers = [http.Stream(f"{weir.web}/live/cam0/stream.mp4") for _ in range(5) if weir.wait_state("cam0", "live")]
    watch = hls.Watch(f"{weir.web}/live/cam0/index.m3u8", every=0.1)
    for n in range(2):
        weir.wait(lambda n=n: weir.stream(f"cam{n}")["recording"]["seconds"] > 3, 30, f"three seconds of cam{n}")
    took = weir.stop(number)
    assert took < 5
    watch.stop()
    assert [p for p in watch.problems if "refused" not in p.lower() and "reset" not in p.lower()
            and "Disconnected" not in p] == []
    for publisher in running:
        publisher.kill()
    for viewer in viewers:
        with contextlib.suppress(Exception):
            viewer.read(2)
        viewer.close()
    film = [p.digest for p in packets.probe(sources.source("half-seconds"))["video"]]
    for n in range(2):
        (path,) = (weir.recordings / f"cam{n}").glob("*.mp4")
        nothing_wrong(recordings.check_recording(path))
        errors, _ = packets.decode(path)
        assert errors == ""
        got = [p.digest for p in packets.probe(path)["video"]]
        assert got == film[: len(got)] and len(got) >= 90, f"{len(got)} frames after 3 s"
        assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_second_start_finds_and_serves_the_recordings_of_the_first(start, tmp_path):
    folder = tmp_path / "kept"
    first = start("--record", folder)
    publishers.ffmpeg("short", f"{first.rtmp}/live/cam").wait(15)
    first.wait(lambda: any(r["state"] == "completed" for r in first.recordings_of("cam")), 20, "cam is recorded")
    first.stop()
    second = start("--record", folder)
    (entry,) = second.recordings_of("cam")
    assert entry["state"] == "completed"
    assert abs(entry["seconds"] - 4) < 0.2
    body = second.get(entry["url"]).good().body
    assert body == next((folder / "cam").glob("*.mp4")).read_bytes()


def test_no_record_writes_nothing(start):
    weir = start("--no-record")
    publishers.ffmpeg("short", f"{weir.rtmp}/live/cam").wait(15)
    weir.wait_state("cam", "ended")
    nothing_wrong(list(weir.folder.rglob("*")))
    nothing_wrong(weir.recordings_of("cam"))


def test_below_keep_free_recording_stops_with_a_reason_and_live_goes_on(start):
    weir = start("--keep-free", "900000GB", "--target-duration", "2")
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam")
    try:
        # The film is short. That it went on is told by its frames.
        weir.wait_state("cam", "live", "ended")
        weir.wait(lambda: weir.stream("cam")["recording"]["state"] == "failed", 20, "the recording has failed")
        reason = weir.stream("cam")["recording"]["reason"]
        assert "free" in reason.lower()
        weir.wait_log(r"(?i)free")
        publisher.wait(20)
        weir.wait(lambda: hls_frames(weir, "cam") == 120, 20, "every frame is in the playlist")
    finally:
        publisher.kill()


def hls_frames(weir, name: str) -> int:
    top = hls.parse_multivariant(weir.get(f"/live/{name}/index.m3u8").text, f"{weir.web}/live/{name}/index.m3u8")
    url = top.absolute(top.variants[0].uri)
    playlist = hls.parse_media(weir.get(url).text, url)
    count = 0
    for segment in playlist.segments:
        movie = boxes.read_movie(weir.get(playlist.absolute(segment.map)).body)
        read = boxes.read_segment(weir.get(playlist.absolute(segment.uri)).good().body, movie)
        count += sum(len(r.samples) for f in read.fragments for r in f.runs if movie.tracks[r.track].kind == "video")
    return count


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 on this machine")
def test_ipv6_works_for_publishers_and_viewers(start):
    weir = start("--http", "[::1]:0", "--rtmp", "[::1]:0", "--target-duration", "2")
    assert "[::1]" in weir.web and "[::1]" in weir.rtmp
    publishers.ffmpeg("short", f"{weir.rtmp}/live/cam").wait(15)
    weir.wait_state("cam", "ended")
    served = packets.probe(f"{weir.web}/live/cam/index.m3u8")
    nothing_wrong(packets.compare(packets.probe(sources.source("short")), served))


def certificate(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    done = tools.run(tools.OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                     "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                     "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    assert done.returncode == 0, done.stderr
    return cert, key


def test_https_and_rtmps_serve_the_same_as_http_and_rtmp(start, tmp_path):
    cert, key = certificate(tmp_path)
    weir = start("--https", "127.0.0.1:0", "--rtmps", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key,
                 "--target-duration", "2", listeners=("http", "https", "rtmp", "rtmps"))
    secure, publish = weir.addresses["https"], weir.addresses["rtmps"]
    stock = publishers.ffmpeg("short", f"{publish}/live/stock")
    scripted = threading.Thread(target=scripts.whole, args=(publish, "scripted", scripts.tags_of("short")))
    scripted.start()
    stock.wait(30)
    scripted.join(30)
    for name in ("stock", "scripted"):
        weir.wait_state(name, "ended")
        assert weir.stream(name)["protocol"] == "RTMPS"
        served = packets.probe(f"{secure}/live/{name}/index.m3u8", "-tls_verify", "0")
        nothing_wrong(packets.compare(packets.probe(sources.source("short")), served))
        for base in (weir.web, secure):
            assert http.fetch(f"{base}/live/{name}/index.m3u8").status == 200
        url = f"/live/{name}/index.m3u8"
        assert http.fetch(secure + url).body == http.fetch(weir.web + url).body
    entry = weir.wait(lambda: next((r for r in weir.recordings_of("stock") if r["state"] == "completed"), None), 20,
                      "stock is recorded")
    whole = http.fetch(weir.web + entry["url"]).body
    assert http.fetch(secure + entry["url"]).body == whole
    part = http.fetch(secure + entry["url"], headers={"Range": "bytes=1000-100000"})
    assert part.status == 206 and part.body == whole[1000:100001]


def greets(url: str, version: ssl.TLSVersion) -> bool:
    """Whether a handshake of just this version of TLS succeeds."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version = context.maximum_version = version
    place = urllib.parse.urlsplit(url)
    try:
        with socket.create_connection((place.hostname, place.port), timeout=5) as plain:
            return context.wrap_socket(plain).version() is not None
    except (ssl.SSLError, ConnectionError):
        return False


def test_old_versions_of_tls_are_refused_but_by_rtmps_where_they_are_asked_for(start, tmp_path):
    cert, key = certificate(tmp_path)
    versions = (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    for flags, expected in (((), "0011"), (("--tls-min", "1.0"), "1111"), (("--tls-min", "1.3"), "0001")):
        weir = start("--https", "127.0.0.1:0", "--rtmps", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--no-record",
                     *flags, listeners=("http", "https", "rtmp", "rtmps"))
        found = {name: "".join(str(int(greets(weir.addresses[name], version))) for version in versions)
                 for name in ("rtmps", "https")}
        assert found["rtmps"] == expected, flags
        assert found["https"] == ("0001" if expected == "0001" else "0011"), flags


@pytest.mark.parametrize("secret, warned", [("x", True), ("a" * 7, True), ("a-long-enough-secret", False)])
def test_keys_and_tokens_that_can_be_guessed_are_warned_of(start, secret, warned):
    weir = start("--no-record", "--publish-key", secret, "--admin-token", secret)
    for what in ("a publish key", "an admin token"):
        assert bool(re.search(rf"warning  {what} of {len(secret)} characters? can be guessed", weir.text("out"))) == warned


def test_what_the_limit_of_descriptors_allows_is_told_three_times(start):
    """In the banner, by /metrics and by the API."""
    told = []
    for limit in (600, 4096):
        weir = start("--no-record", wrapper=("prlimit", f"--nofile={limit}:{limit}"))
        banner = re.search(r"room +(\d+) streams, (\d+) connections of viewers \((\d+) descriptors\), (\d+) MiB", weir.text("out"))
        api = weir.json("/api/v1/streams")["capacity"]
        metrics = weir.get("/metrics").good().text
        assert [api["streams"], api["connections"], api["descriptors"], api["mediaMemoryBytes"] >> 20] == [int(n) for n in banner.groups()]
        for name, key in (("weir_streams_capacity", "streams"), ("weir_http_connections_capacity", "connections")):
            assert float(re.search(rf"^{name} (\S+)", metrics, re.M)[1]) == api[key]
        assert api["descriptors"] == limit
        told.append(api["streams"])
    assert told[0] < told[1]


def test_a_limit_of_open_files_that_is_too_small_is_an_error():
    few = subprocess.run(["prlimit", "--nofile=32:32", tools.weir_binary(), "serve", "--no-record", "--http", "127.0.0.1:0"],
                         env=clean_environment(), capture_output=True, text=True, timeout=20, check=False)
    assert few.returncode == 78, few.stderr
    assert re.fullmatch(r"weir: error: the limit of open files is 32, and weir needs \d+ at least; raise it: .*LimitNOFILE=65536.*\n", few.stderr)


def test_a_segments_folder_plays_from_disk_and_is_never_half_written(start, tmp_path):
    folder = tmp_path / "segments"
    weir = start("--segments", folder, "--target-duration", "2", "--no-record")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam")
    states, problems = 0, []
    try:
        while publisher.process.poll() is None:
            top = next(iter(folder.rglob("cam/index.m3u8")), None)
            if top is not None:
                try:
                    index = hls.parse_multivariant(top.read_text(), top.as_uri())
                    media = top.parent / index.variants[0].uri
                    playlist = hls.parse_media(media.read_text(), media.as_uri())
                    problems += hls.check_media(playlist)
                    for segment in playlist.segments:
                        movie = boxes.read_movie((media.parent / segment.map).read_bytes())
                        boxes.read_segment((media.parent / segment.uri).read_bytes(), movie)
                    states += 1
                except (AssertionError, OSError) as error:
                    problems.append(f"{error!r}")
            time.sleep(0.05)
        publisher.wait(5)
    finally:
        publisher.kill()
    assert problems == [] and states > 20
    weir.wait_state("cam", "ended")
    top = next(iter(folder.rglob("cam/index.m3u8")))
    manifest = next(iter(folder.rglob("cam/manifest.mpd")))
    weir.wait(lambda: dash.parse(manifest.read_text(), manifest.as_uri()).type == "static", 20, "the manifest is static")
    film = packets.probe(sources.source("h264-30"))
    nothing_wrong(packets.compare(film, packets.probe(top, "-allowed_extensions", "ALL")))
    nothing_wrong(packets.compare(film, packets.probe(manifest), whole=False))
    assert not [p for p in folder.rglob("*") if p.suffix in (".tmp", ".part", ".half")]


def test_when_full_new_viewers_get_503_and_none_that_plays_is_dropped(start):
    weir = start("--max-viewers", "3", "--no-record", "--target-duration", "2")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)

    def another() -> http.Stream:
        stream = http.Stream(f"{weir.web}/live/cam/stream.mp4")
        stream.close()
        return stream

    try:
        weir.wait_state("cam", "live")
        # A viewer is an address with a user agent.
        inside = [http.Stream(f"{weir.web}/live/cam/stream.mp4", headers={"User-Agent": f"player {n}"}) for n in range(3)]
        assert [viewer.status for viewer in inside] == [200, 200, 200]
        weir.wait(lambda: another().status == 503, 20, "the fourth viewer gets 503")
        assert int(another().answer.getheader("Retry-After")) >= 1
        assert weir.get("/healthz").status == 200
        assert all(viewer.answer.read1(100) for viewer in inside)
        for viewer in inside:
            viewer.close()
    finally:
        publisher.kill()


def test_the_test_pattern_is_a_stream_like_any_other_and_is_never_recorded(start):
    weir = start("--test-pattern", "demo")
    weir.wait_state("demo", "live", seconds=30)
    weir.wait(lambda: weir.get("/live/demo/index.m3u8").status == 200, 30, "demo has a playlist")
    watch = hls.Watch(f"{weir.web}/live/demo/index.m3u8")
    weir.wait(lambda: watch.last and len(watch.last.segments) >= 2, 30, "two segments")
    watch.stop()
    assert watch.problems == [] and watch.last and len(watch.last.segments) >= 2
    nothing_wrong(weir.recordings_of("demo"))
    assert not list(weir.recordings.rglob("*.mp4"))
    tracks = weir.stream("demo")["tracks"]
    assert sorted(track["kind"] for track in tracks) == ["audio", "video"]


def test_the_age_of_a_stream_ends_with_it(start):
    weir = start("--no-record", "--target-duration", "2", "--reconnect-window", "1s")
    began = time.monotonic()
    publishers.ffmpeg("short", f"{weir.rtmp}/live/cam").wait(20)
    ended = weir.wait_state("cam", "ended")
    longest = time.monotonic() - began
    began = time.monotonic()
    client = RawRTMP(weir.rtmp).start("lost")
    client.play_out(scripts.tags_of("short"))
    client.reset()
    # That it waits for its publisher lasts for a second, and the log keeps it.
    weir.wait_log("lost: ended, because its publisher did not return in time")
    on_air = time.monotonic() - began - 1
    lost = weir.wait_state("lost", "ended")
    assert weir.stream("cam")["ageSeconds"] == ended["ageSeconds"] and 3 < ended["ageSeconds"] < longest
    # Time spent waiting for its publisher does not count as on air: a second, or a little more.
    assert weir.stream("lost")["ageSeconds"] == lost["ageSeconds"] and 3 < lost["ageSeconds"] < on_air


def test_without_a_key_a_holder_that_sends_keeps_the_name(start):
    weir = start("--no-record")
    holder = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        weir.wait_state("cam", "live")
        with RawRTMP(weir.rtmp) as client:
            client.handshake()
            client.connect()
            with pytest.raises(Refused) as refusal:
                client.publish("cam")
        assert refusal.value.code == "NetStream.Publish.BadName"
        frames = weir.stream("cam")["received"]["videoFrames"]
        weir.wait(lambda: weir.stream("cam")["received"]["videoFrames"] > frames + 60, 20, "the holder goes on")
        assert holder.process.poll() is None
    finally:
        holder.kill()


def test_without_a_key_a_silent_holder_loses_the_name_after_three_seconds(start):
    weir = start("--no-record", "--target-duration", "2")
    silent = RawRTMP(weir.rtmp).start("cam")
    *tags, last = [tag for tag in scripts.tags_of("short") if tag.milliseconds < 1000]
    silent.play_out(tags)
    began = time.monotonic()  # before the server can hear the last of it
    silent.tag(last)
    while True:
        with contextlib.suppress(Refused), RawRTMP(weir.rtmp) as client:
            client.start("cam")
            admitted = time.monotonic() - began
            client.play_out(scripts.tags_of("short"), until=1)
            client.finish()
            break
        assert time.monotonic() - began < 12
        time.sleep(0.2)
    assert admitted >= 3
    silent.close()


def test_a_publisher_that_does_not_come_back_ends_the_stream_after_the_window(start):
    weir = start("--reconnect-window", "1s", "--target-duration", "2")
    client = RawRTMP(weir.rtmp).start("cam")
    client.play_out(scripts.tags_of("short"), until=3)
    client.reset()
    weir.wait_log("cam: ended, because its publisher did not return in time")
    weir.wait_state("cam", "ended")
    top = hls.parse_multivariant(weir.get("/live/cam/index.m3u8").text, f"{weir.web}/live/cam/index.m3u8")
    url = top.absolute(top.variants[0].uri)
    assert hls.parse_media(weir.get(url).text, url).ended
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 40, "the recording is whole")
