"""The configuration file: settings and keys of streams by name and pattern, mistakes, the sample, and the schema."""

import json
import os
import re
import subprocess

import jsonschema
import pytest
import yaml

from harness import publishers, tools
from harness.rawrtmp import RawRTMP, Refused

FILE = """
log: {level: notice}
streams:
  "*":
    publishKeys: key-of-all-names
    record: {mode: never}
  cam-*:
    publishKeys: [first-key-of-cameras, second-key-of-cameras]
    partDuration: 100ms
    segmentDuration: 1s
    record: {mode: auto}
  cam-2:
    partDuration: 500ms
"""


#: A WEIR_ variable that is no setting is an error, and the tests have some of their own.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}


def config(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([tools.weir_binary(), "config", *arguments], capture_output=True, text=True, timeout=20, env=ENVIRONMENT)


def written(folder, text: str):
    path = folder / "weir.yaml"
    path.write_text(text)
    path.chmod(0o640)
    return path


def part_target(weir, name: str) -> float | None:
    """PART-TARGET of the first media playlist; None before it is there."""
    multivariant = weir.get(f"/live/{name}/index.m3u8")
    if multivariant.status != 200:
        return None
    media = next(line for line in multivariant.body.decode().splitlines() if line and not line.startswith("#"))
    return float(re.search(r"PART-TARGET=([\d.]+)", weir.get(f"/live/{name}/{media}").good().body.decode())[1])


def test_streams_have_settings_and_keys_of_their_own(start, tmp_path):
    weir = start("--config", written(tmp_path, FILE))
    weir.secrets += ["first-key-of-cameras", "second-key-of-cameras", "key-of-all-names"]
    keys = {"cam-1": "second-key-of-cameras", "cam-2": "first-key-of-cameras", "other": "key-of-all-names"}
    running = [publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}?key={key}", loop=-1) for name, key in keys.items()]
    try:
        targets = {name: weir.wait(lambda: part_target(weir, name), 20, f"a playlist of {name}") for name in keys}
        # Parts end with frames, 30 a second.
        assert targets["cam-1"] < 0.14 and 0.18 < targets["other"] < 0.24 and 0.45 < targets["cam-2"] < 0.54, targets
        recorded = weir.wait(lambda: {entry["stream"] for entry in weir.json("/api/v1/recordings")["recordings"]}, 15, "a recording")
        assert recorded == {"cam-1"}
    finally:
        for publisher in running:
            publisher.kill()
    for name, key in (("other", "first-key-of-cameras"), ("cam-1", "none"), ("new", "")):
        with pytest.raises(Refused), RawRTMP(weir.rtmp) as client:
            client.start(f"{name}?key={key}")


def test_a_mistake_is_told_with_its_place_and_nothing_starts(tmp_path):
    path = written(tmp_path, "http: {listen: ':0'}\nstreams:\n  cam:\n    partDuraton: 1s\n    publishKeys: [geheim]\n")
    for command in (["config", "check", path], ["serve", "--config", path]):
        done = subprocess.run([tools.weir_binary(), *command], capture_output=True, text=True, timeout=20,
                              env=ENVIRONMENT)
        assert done.returncode == 2
        assert f"{path}:4:5: streams.cam.partDuraton: weir has no such setting; did you mean partDuration?" in done.stderr
        assert "geheim" not in done.stdout + done.stderr


def test_what_holds_is_shown_with_its_origin(tmp_path):
    path = written(tmp_path, FILE)
    shown = config("show", "--config", str(path), "--stream", "cam-2", "--window", "30s").stdout
    known = yaml.safe_load(shown)["streams"]["cam-2"]
    assert known["partDuration"] == "500ms" and known["record"]["mode"] == "never" and known["window"] == "30s"
    assert f"partDuration: 500ms  # {path}:13:19" in shown and "window: 30s  # --window" in shown
    assert "key-of" not in shown


def test_a_file_that_every_user_may_read_is_warned_of(start, tmp_path):
    path = written(tmp_path, FILE)
    path.chmod(0o644)
    weir = start("--config", path)
    weir.wait_log(re.escape(f"every user of this machine may read it: chmod 640 {path}"))


#: Files, and whether they are right. PyYAML takes a bare `on` for a truth value (YAML 1.1); weir does not.
FILES = [
    (FILE, True), ("{}", True), ("http:\n", True), (json.dumps({"http": {"listen": ":8080", "cors": "*"}}), True),
    ("http: {listen: 8080}", False), ("http: {lisen: ':1'}", False), ("rtmps: {tlsMinimum: 1.2}", True), ("rtmps: {tlsMinimum: '1.4'}", False),
    ("limits: {viewers: 10}", True), ("limits: {viewers: 0}", False), ("limits: {viewers: many}", False),
    ("recordings: {disabled: true, keepFree: 5GB, retain: {age: 30d}}", True), ("recordings: {keepFree: 5}", False),
    ("recordings: {disabled: nein}", False), ("streams: {cam: {ladder: [720p@3M, 360p@800k], window: 2m}}", True),
    ("streams: {cam: {window: 120}}", False), ("streams: {a b: {}}", False), ("streams: [cam]", False),
    ("streams: {cam: {record: {split: 'each:90m', mode: manual}}}", True), ("streams: {cam: {record: {mode: often}}}", False),
    ("sources: {demo: test}", True), ("sources: [demo]", False), ("log: {level: loud}", False),
    ("streams: {cam: {ladder: null, rewind: ~, record: {split: null}}}", True), ("streams: {'*': {rewind: null}}", False),
    ("streams: {cam: {window: null}}", False), ("streams: {cam: {ladder: []}}", True),
    ("hooks: [{'on': recording.*, run: [/bin/true, '{path}']}]", True), ("hooks: ~", True), ("hooks: []", True),
    ("hooks: [{'on': ['*'], streams: [cam-*], url: 'https://a/b', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}]", True),
    ("hooks: [{run: /bin/true}]", False), ("hooks: [{'on': recording.gone, run: /bin/true}]", False), ("hooks: [{'on': '*'}]", False),
    ("hooks: [{'on': '*', url: 'ftp://a'}]", False), ("hooks: [{'on': '*', run: /bin/a, url: 'http://a'}]", False),
    ("hooks: {'on': '*'}", False), ("hooks: [{'on': [], run: /bin/true}]", False),
    ("keys: [{name: a, key: 0123456789abcdef, publish: [cam-*, desk], expiresAt: '2030-01-31T00:00:00Z'}]", True),
    ("keys: [{name: a, sha256: " + 32 * "0a" + ", scope: read}]", True), ("keys: ~", True), ("keys: {}", False),
    ("keys: [{name: a, key: 0123456789abcdef}]", False), ("keys: [{name: a, publish: cam}]", False),
    ("keys: [{name: a, key: short, publish: cam}]", False), ("keys: [{name: a, sha256: abc, scope: read}]", False),
    ("keys: [{name: a, key: 0123456789abcdef, scope: root}]", False), ("keys: [{key: 0123456789abcdef, scope: read}]", False),
    ("streams: {cam: {targetDuration: 4}}", True), ("streams: {cam: {targetDuration: later}}", False),
]


@pytest.mark.parametrize(("text", "is_right"), FILES)
def test_the_schema_says_what_weir_reads(tmp_path, text, is_right):
    schema = json.loads(config("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(yaml.safe_load(text)))
    checked = config("check", str(written(tmp_path, text)))
    assert (checked.returncode == 0) is is_right, checked.stderr
    # 8080 alone: the schema leaves addresses to weir.
    assert (errors == []) is (is_right or text == "http: {listen: 8080}"), errors


def test_the_sample_and_the_documents_examples_are_read(tmp_path):
    sample = config("init").stdout
    assert config("check", str(written(tmp_path, sample))).returncode == 0
    blocks = re.findall(r"^```yaml\n(.*?)^```", (tools.ROOT / "docs" / "configuration.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        checked = config("check", str(written(tmp_path, block)))
        assert checked.returncode == 0, checked.stderr


def test_the_help_of_secrets_names_the_variable_and_the_file_instead():
    """A flag stands in the list of processes, which every user of a machine can read."""
    described = json.loads(tools.run(tools.weir_binary(), "--experimental-dump-help").stdout)["command"]
    serve = next(command for command in described["subcommands"] if command["commandName"] == "serve")
    told = {flag["preferredName"]["name"]: re.search(r"better (WEIR_\w+), or (\S+) of the file\.", flag["abstract"])
            for flag in serve["arguments"] if "preferredName" in flag and flag["kind"] == "option"}
    assert {name: found.groups() for name, found in told.items() if found} == {
        "publish-key": ("WEIR_PUBLISH_KEY", "streams.*.publishKeys"), "admin-token": ("WEIR_ADMIN_TOKEN", "admin.token"),
        "jwt-secret": ("WEIR_JWT_SECRET", "access.jwt.secret"), "srt-passphrase": ("WEIR_SRT_PASSPHRASE", "streams.*.srt.passphrase"),
        "webrtc-ice-server": ("WEIR_WEBRTC_ICE_SERVER", "webrtc.iceServers")}
