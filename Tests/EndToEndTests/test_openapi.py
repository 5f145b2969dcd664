"""The API's description: it is valid OpenAPI 3.1, and real answers of every route are what it says."""

import json
import re

import jsonschema
import openapi_spec_validator
import pytest

from harness import publishers, sources
from harness.openapi import Description
from test_command import command

TOKEN = "a-token-of-the-description"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    clip = sources.source("loop")
    state, file = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("settings") / "weir.yaml"
    file.write_text("streams:\n  demo: {record: {mode: never}}\n")
    weir = start_shared("--public-url", "https://live.example.com", "--state", state, "--config", file, "--source", f"loop=file:{clip}",
                        "--source", f"demo=file:{clip}", "--admin-token", TOKEN, "--record-mode", "manual", "--publishers", "open")
    weir.clip = clip
    weir.wait_state("loop", "live", seconds=30)
    weir.wait_state("demo", "live", seconds=30)
    return weir


@pytest.fixture(scope="module")
def described(weir):
    return Description(weir.json("/api/v1/openapi.json"))


def test_it_is_valid(described):
    openapi_spec_validator.validate(described.document)
    assert described.document["openapi"].startswith("3.1")


def test_the_command_prints_the_same(weir):
    code, out, _ = command("openapi")
    assert code == 0 and out == weir.get("/api/v1/openapi.json").text


class Tour:
    """Requests whose answers are held against the description. It remembers which operations succeeded."""

    def __init__(self, weir, described):
        self.weir, self.described, self.succeeded = weir, described, set()

    def __call__(self, target: str, method: str = "GET", status: int | None = None, body: bytes | None = None, **headers):
        answer = self.weir.get(target, method=method, headers={**ADMIN, **headers}, body=body)
        operation = self.described.check(answer, method, target)
        if status is not None:
            assert answer.status == status, (target, answer.status, answer.body)
        if answer.status < 300:
            self.succeeded.add(operation)
        return answer


def test_every_route_answers_as_it_says(weir, described):
    visit = Tour(weir, described)
    for target in ("", "/admin", "/devices", "/openapi.json", "/version", "/refusals", "/refusals?stream=x", "/sources",
                   "/sources/loop", "/streams", "/streams/loop", "/streams/demo", "/storage", "/sessions",
                   "/sessions?stream=loop", "/events", "/events/deliveries", "/keys", "/settings",
                   "/streams/loop/settings", "/oembed?url=https%3A%2F%2Flive.example.com%2Fwatch%2Floop"):
        visit(f"/api/v1{target}", status=200)
    assert visit("/api/v1/oembed?url=https%3A%2F%2Felsewhere.example%2Fwatch%2Floop", status=404).json["code"] == "not-ours"
    assert visit("/api/v1/oembed?url=x&format=xml", status=501).json["code"] == "oembed-format"
    # Keys, settings, and what caches ask.
    key = json.dumps({"name": "laptop", "publish": ["loop"], "watch": ["*"], "scope": "read"}).encode()
    weir.secrets.append(visit("/api/v1/keys", "POST", 200, key).json["key"])
    assert visit("/api/v1/keys", "POST", 409, key).json["code"] == "key-exists"
    assert visit("/api/v1/keys", "POST", 400, b"[]").json["code"] == "malformed-body"
    page = visit("/api/v1/keys?limit=1", status=200).json
    assert (page["total"], page["next"], [one["name"] for one in page["keys"]]) == (1, None, ["laptop"])
    assert visit("/api/v1/keys?limit=0", status=400).json["code"] == "malformed-query"
    visit("/api/v1/keys/laptop", "DELETE", 200)
    assert visit("/api/v1/keys/laptop", "DELETE", 404).json["code"] == "no-such-key"
    visit("/api/v1/settings/reload", "POST", 200)
    visit("/api/v1/streams/other/settings", "PUT", 200, b'{"window": "30s"}')
    assert visit("/api/v1/streams/other/settings", "PUT", 422, b'{"window": 5}').json["code"] == "settings-refused"
    visit("/api/v1/streams/other/settings", "DELETE", 200)
    visit("/api/v1/authorize?path=/live/loop/index.m3u8", status=204)
    visit("/api/v1/authorize?path=/live/loop/", status=204)
    # What a cache would take for something of another stream.
    for odd in ("/live/loop/live/demo/", "/live/loop/live/demo/index.m3u8", "/live/", "/web/live/demo/", "/x/live/demo/"):
        assert visit(f"/api/v1/authorize?path={odd}", status=403).json["code"] == "viewer-not-allowed", odd
    # Sources.
    for action in ("preview", "start"):
        visit(f"/api/v1/sources/loop/{action}?wait=20s", "POST", 200)
    visit("/api/v1/sources/loop/preview.jpg")
    weir.wait(lambda: visit("/api/v1/sources/loop/preview.jpg").status == 200, 20, "a preview")
    weir.wait_state("loop", "live")
    visit("/api/v1/sources/none", status=404)
    for action in ("start", "cancel", "start", "stop"):
        visit(f"/api/v1/sources/loop/recording/{action}?wait=20s", "POST", 200)
        if action == "start":
            weir.wait(lambda: visit("/api/v1/sources/loop").json["recording"]["seconds"] > 0.5, 20, "some recorded media")
    # Streams.
    for action in ("start", "cancel", "start", "stop"):
        visit(f"/api/v1/streams/loop/recording/{action}?wait=20s", "POST", 200)
        if action == "start":
            weir.wait(lambda: visit("/api/v1/streams/loop").json["recording"]["seconds"] > 1.5, 20, "some recorded media")
    assert visit("/api/v1/streams/loop/recording/stop", "POST", 409).json["code"] == "not-recording"
    assert visit("/api/v1/streams/demo/recording/start", "POST", 409).json["code"] == "never-recorded"
    assert visit("/api/v1/streams/loop/capture/camera", "POST", 404, body=b"v4l2:/dev/video0").json["code"] == "no-capture"
    assert visit("/api/v1/streams/none", status=404).json["code"] == "no-such-stream"
    # Recordings.
    page = weir.wait(lambda: visit("/api/v1/recordings?stream=loop&limit=1").json["recordings"], 20, "a listed recording")
    one = f"/api/v1/recordings/loop/{page[0]['file']}"
    for target in ("", "/keyframes", "/clip?from=0.2&to=0.9", "/clip"):
        visit(one + target, status=200)
    assert visit(one + "/clip?from=1&to=0.5", status=400).json["code"] == "clip-empty"
    assert visit(one + "/clip?from=x", status=400).json["code"] == "malformed-query"
    assert visit(one + "/clip?from=500", status=404).json["code"] in ("clip-outside", "clip-empty")
    said = {"name": "Interview", "note": "second take\nbetter light"}
    assert said.items() <= visit(one, "PUT", 200, body=json.dumps(said).encode()).json.items()
    assert visit(one, "PUT", 200, body=b"{}").json["note"] is None
    assert visit(one, "PUT", 400, body=b"[]").json["code"] == "malformed-body"
    assert visit(one, "PUT", 422, body=json.dumps({"note": "x" * 2001}).encode()).json["code"] == "unusable-value"
    for action, status in (("protect", 200), ("unprotect", 200), ("restore", 409)):
        visit(f"{one}/{action}", "POST", status)
    visit(one, "DELETE", 200)
    visit("/api/v1/recordings?state=deleted", status=200)
    visit(f"{one}/restore", "POST", 200)
    for query in ("limit=0", "state=lost", "sort=best", "cursor=x", "from=yesterday", "stream=%20"):
        assert visit(f"/api/v1/recordings?{query}", status=400).json["code"] == "malformed-query"
    # A publisher: its session and its stream are ended.
    for action in ("sessions", "streams"):
        publisher = publishers.ffmpeg(weir.clip, f"{weir.rtmp}/live/cam")
        weir.wait_state("cam", "live")
        session = visit("/api/v1/sessions?stream=cam", status=200).json["sessions"][0]["id"]
        visit(f"/api/v1/sessions/{session}", status=200)
        visit(f"/api/v1/{action}/{'cam' if action == 'streams' else session}", "DELETE", 200)
        publisher.outcome()
    visit("/api/v1/sessions/p-0-0", status=404)
    assert visit("/api/v1/sessions?after=x", status=400).json["code"] == "malformed-query"
    visit("/api/v1/sources/loop/stop?wait=20s", "POST", 200)
    # What needs devices answers with problems alone here (test_capture.py has them). What does not end is not read here
    # (browser/test_sources.py does).
    missed = {operation for operation in described.operations if operation not in visit.succeeded}
    assert missed == {("get", "/api/v1/sources/{source}/preview.mp4")} | {
        ("post", f"/api/v1/streams/{{stream}}/capture/{word}") for word in ("camera", "microphone", "controls", "keyframe")}


def test_refusals_are_described(weir, described):
    """What the access refuses, with the code of each."""
    for method, path in described.operations:
        target = re.sub(r"\{\w+\}", "x", path)
        protected = described.operation(method, path)["security"]
        answer = weir.get(target, method=method.upper())
        described.check(answer, method, target)
        if protected:
            assert answer.status == 401 and answer.json["code"] == "token-missing"
    wrong = weir.get("/api/v1/admin", headers={"Authorization": "Bearer wrong"})
    described.check(wrong, "GET", "/api/v1/admin")
    assert wrong.json["code"] == "token-wrong"
    foreign = weir.get("/api/v1/admin", headers={**ADMIN, "Origin": "https://elsewhere.example"})
    described.check(foreign, "GET", "/api/v1/admin")
    assert foreign.json["code"] == "other-origin"


@pytest.mark.parametrize("method, target, status, code", [
    ("GET", "/api/v1/nothing", 404, "no-such-address"), ("PUT", "/api/v1/streams", 405, "method-not-allowed"),
    ("GET", "/api/v1/streams/%00", 400, "malformed-address"), ("GET", "/api/v1/streams/" + "a" * 20000, 414, "address-too-long"),
    ("GET", "/nothing", 404, "nothing-here"), ("GET", "/live/none/index.m3u8", 404, "no-such-stream"),
    ("GET", "/recordings/cam/none.mp4", 404, "no-such-recording"),
])
def test_every_problem_has_a_code(weir, described, method, target, status, code):
    answer = weir.get(target, method=method)
    assert answer.status == status and answer.json["code"] == code
    jsonschema.validate(answer.json, described.schema("#/components/schemas/Problem"))


def test_a_server_without_a_token_or_recordings_says_so(start):
    weir = start("--no-record")
    described = Description(weir.json("/api/v1/openapi.json"))
    for method, path in described.operations:
        answer = weir.get(re.sub(r"\{\w+\}", "x", path), method=method.upper())
        described.check(answer, method, re.sub(r"\{\w+\}", "x", path))
        if described.operation(method, path)["security"]:
            assert answer.status == 403 and answer.json["code"] == "read-only"
    assert weir.get("/api/v1/storage").json["code"] == "no-storage"
