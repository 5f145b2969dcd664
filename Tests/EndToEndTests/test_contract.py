"""The API under calls that schemathesis makes up from its own description: no 500, no answer that the description does not
declare. A minute of `make test-long`; WEIR_CONTRACT=20000 asks for as many calls (`make contract`)."""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

from harness import tools

TOKEN = "a-token-of-the-contract"
#: Calls in all; a short run is bounded by time.
CALLS = int(os.environ.get("WEIR_CONTRACT", "0"))
SHORT_SECONDS = 25
#: Short runs at most, each with a seed of its own.
ROUNDS = 4
#: What has to be tried with success.
WANTED = ("GET /keys", "POST /keys", "DELETE /keys/{key}", "PUT /streams/{stream}/settings", "DELETE /streams/{stream}/settings",
          "POST /settings/reload", "GET /events", "GET /events/deliveries")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance," \
         "allow_header_conformance"

#: A 503 is no fault where the description declares it with its code, which the schema of the response checks. oEmbed 1.0 §2.3.4
#: demands a 501 for a format that is not given.
CONFIGURATION = """
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]

[[operations]]
include-path = "/api/v1/oembed"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501, 503]
"""

#: Names that exist stand beside those that are made up: otherwise nearly all answers are 404.
HOOKS = """
import os, random
import schemathesis

NAMES = {"stream": ["loop", "demo"], "source": ["loop", "demo"], "file": os.environ["CONTRACT_FILES"].split(),
         "key": ["desk", "made-1", "made-2", "made-3"]}
#: Bodies that are good, for what hardly any made up one is. `viewers` and `publishers` stay open: other calls need them.
BODIES = {"/keys": [{"name": f"made-{n}", "publish": ["made-*"], "watch": ["*"], "record": None, "scope": "read", "expiresAt": None}
                    for n in (1, 2, 3)],
          "/settings": [{}, {"title": "Two"}, {"partDuration": "100ms"}, {"window": "20s", "description": "Ä"}]}

@schemathesis.hook
def map_path_parameters(context, path_parameters):
    for name in path_parameters or {}:
        known = NAMES.get(name)
        if known and hash(str(path_parameters[name])) % 2:
            path_parameters[name] = known[hash(str(path_parameters[name])) // 2 % len(known)]
    return path_parameters

@schemathesis.hook
def before_call(context, case, kwargs):
    if "key" in (case.path_parameters or {}):
        case.path_parameters["key"] = random.choice([*NAMES["key"], case.path_parameters["key"]])
    good = next((bodies for end, bodies in BODIES.items() if case.operation.path.endswith(end)), None)
    if good and isinstance(case.body, dict) and hash(str(case.body)) % 2:
        case.body = good[hash(str(case.body)) // 2 % len(good)]

@schemathesis.hook
def after_call(context, case, response):
    if response.status_code < 300:
        with open("succeeded", "a") as log:
            print(case.method.upper(), case.operation.path, file=log)
"""


@pytest.fixture
def weir(start, tmp_path):
    clip = tmp_path / "clip.mp4"
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=15", "-f", "lavfi", "-i",
              "sine=frequency=440:sample_rate=48000", "-t", "4", "-c:v", "libx264", "-preset", "ultrafast", "-g", "15",
              "-pix_fmt", "yuv420p", "-c:a", "aac", clip)
    (tmp_path / "state").mkdir()
    (tmp_path / "weir.yaml").write_text("streams: {cam: {title: One}}\nkeys: [{name: desk, key: a-key-of-the-desk-0815, publish: [desk]}]\n")
    (tmp_path / "weir.yaml").chmod(0o600)
    weir = start("--source", f"loop=file:{clip}", "--test-pattern", "demo", "--admin-token", TOKEN, "--record-mode", "manual",
                 "--state", tmp_path / "state", "--config", tmp_path / "weir.yaml")
    weir.wait_state("loop", "live")
    weir.files = [record(weir) for _ in range(3)]
    return weir


def record(weir) -> str:
    """A finished recording; its file."""
    def act(word: str):
        weir.get(f"/api/v1/streams/loop/recording/{word}", method="POST", headers={"Authorization": f"Bearer {TOKEN}"}).good()

    act("start")
    weir.wait(lambda: weir.stream("loop")["recording"]["seconds"] > 1.2, 10, "some recorded media")
    act("stop")
    return weir.wait(lambda: weir.stream("loop")["recording"]["file"], 20, "a recording").removeprefix("loop/")


def missing(folder: pathlib.Path) -> list[str]:
    """What has to be tried with success, and was not yet."""
    log = folder / "succeeded"
    succeeded = [line.split() for line in set(log.read_text().splitlines())] if log.exists() else []
    return [f"{method} {path}" for method, path in map(str.split, WANTED)
            if not any(one == method and place.endswith(path) for one, place in succeeded)]


@pytest.mark.long
def test_no_call_breaks_the_contract(weir, tmp_path):
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    (tmp_path / "contract_hooks.py").write_text(HOOKS)
    operations = sum(len(all) for all in weir.json("/api/v1/openapi.json")["paths"].values())
    calls, round, began = 0, 0, time.monotonic()
    # On a slow machine one short run may not meet what succeeds.
    while calls < max(CALLS, 1) or (missing(tmp_path) and round < ROUNDS):
        round += 1
        line = [pathlib.Path(sys.executable).parent / "schemathesis", "--config-file", tmp_path / "schemathesis.toml", "run",
                f"{weir.web}/api/v1/openapi.json", "-H", f"Authorization: Bearer {TOKEN}", "--checks", CHECKS, "--seed", round,
                "--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--warnings", "off", "--request-timeout", "30",
                "--report", "ndjson", "--report-ndjson-path", tmp_path / "events.ndjson"]
        line += ["--max-examples", max(50, min(1000, (CALLS - calls) // operations))] if CALLS else ["--max-time", SHORT_SECONDS]
        done = subprocess.run(
            [str(part) for part in line], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "contract_hooks", "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "0",
                 "CONTRACT_FILES": " ".join(weir.files), "NO_COLOR": "1"})
        assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
        found = re.search(r"(\d[\d,]*) generated", done.stdout)
        assert found, done.stdout[-3000:]
        calls += int(found[1].replace(",", ""))
    # What changes keys and settings was tried with success as well.
    assert missing(tmp_path) == []
    print(f"{calls} calls of {operations} operations in {time.monotonic() - began:.0f} s")
    assert weir.get("/healthz").status == 200
