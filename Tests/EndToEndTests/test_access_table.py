"""Each address with each credential, from this server's pages, from other pages and from none: what is not allowed is refused. The
addresses of the API come from its own description, so a new one is in the table."""

import itertools
import json
import re
import time

import jwt
import pytest

from harness import http, offers, publishers
from harness.openapi import Description
from harness.rawrtmp import RawRTMP, Refused

TOKEN, SECRET = "sesame-0815-4711", "viewer-secret-0123456789-abcdefghij"
NAME, OTHER = "cam-1", "studio"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
SCOPES = ["read", "operate", "admin"]
#: An address may not try wrong tokens that often (test_bounds.py): each try has one of its own, by the trusted proxy's field.
CLIENTS = (f"198.51.{number // 250}.{number % 250}" for number in itertools.count(250))


def token(**rights) -> str:
    return jwt.encode({"sub": "ann", "exp": time.time() + 600, "weir": rights}, SECRET, "HS256")


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    weir = start_shared("--state", state, "--trusted-proxy", "127.0.0.1", "--record-mode", "manual",
                        environment={"WEIR_ADMIN_TOKEN": TOKEN, "WEIR_JWT_SECRET": SECRET, "WEIR_VIEWERS": "token"})

    def key(name: str, **rights) -> str:
        answer = weir.get("/api/v1/keys", method="POST", headers=ADMIN, body=json.dumps({"name": name, **rights}).encode()).good()
        return answer.json["key"]

    #: The scope that each credential has; None for none. "recorder" may record NAME.
    weir.credentials = {
        "none": (None, None), "empty": ("", None), "wrong": ("sesame-0815-4712", None), "publisher": (key("publisher", publish=["*"]), None),
        "viewer": (key("viewer", watch=["*"]), None), "viewer's token": (token(watch="*", publish="*"), None),
        "recorder": (key("recorder", record=[NAME]), None), "reader": (key("reader", scope="read"), "read"),
        "reader's token": (token(admin="read"), "read"), "operator": (key("operator", scope="operate"), "operate"),
        "administrator": (key("administrator", scope="admin"), "admin"), "administrator's token": (token(admin="admin"), "admin"),
        "the admin token": (TOKEN, "admin")}
    weir.secrets += [text for text, _ in weir.credentials.values() if text] + [SECRET]
    key_of_publishers = weir.credentials["publisher"][0]
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}?key={key_of_publishers}", loop=-1)
    other = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{OTHER}?key={key_of_publishers}", loop=-1)
    try:
        for name in (NAME, OTHER):
            weir.wait(lambda name=name: weir.get(f"/live/{name}/index.m3u8", headers=ADMIN).status == 200, 20, f"{name} is live")
        yield weir
    finally:
        publisher.kill()
        other.kill()


def fields(credential: str | None, origin: str | None = None) -> dict[str, str]:
    found = {"X-Forwarded-For": next(CLIENTS)}
    if credential is not None:
        found["Authorization"] = f"Bearer {credential}"
    if origin is not None:
        found["Origin"] = origin
    return found


def test_each_address_of_the_api_wants_its_scope_and_no_other_origin(weir):
    described = Description(weir.json("/api/v1/openapi.json"))
    own = weir.web
    cells = 0
    for method, path in described.operations:
        operation = described.operation(method, path)
        # A stream of this name may be recorded by "recorder"; nothing else is there.
        target = re.sub(r"\{\w+\}", "nothing", path.replace("{stream}", NAME if "/recording/" in path else "nothing"))
        target += "?wait=0s" if "/recording/" in path else ""
        # Somebody who may not watch the stream is told so first.
        hides = method == "get" and "{stream}" in path
        needed = operation.get("x-scope")
        assert (needed is not None) == bool(operation["security"]), path
        for (name, (text, scope)), origin in itertools.product(weir.credentials.items(), (None, own, "https://elsewhere.example", "null")):
            answer = weir.get(target, method=method.upper(), headers=fields(text, origin))
            what = (method, target, name, origin, answer.status, answer.body[:200])
            cells += 1
            code = answer.json.get("code") if "problem" in answer.headers.get("content-type", "") else None
            if needed is None:
                assert answer.status not in (401, 403) or code in ("viewer-not-allowed",) or path.endswith("/refusals"), what
                continue
            may = scope is not None and SCOPES.index(scope) >= SCOPES.index(needed)
            if name == "recorder" and "/streams/" in target and "/recording/" in target:
                may = True
            if hides and scope is None and name not in ("viewer", "viewer's token"):
                assert (answer.status, code) == (403, "viewer-not-allowed"), what
            elif origin not in (None, own):
                assert (answer.status, code) == (403, "other-origin"), what
            elif may:
                assert answer.status not in (401, 403), what
            elif name == "recorder" or scope is None:
                assert (answer.status, code) == (401, "token-missing" if text is None else "token-wrong"), what
            else:
                assert (answer.status, code) == (403, "scope-too-small"), what
    print(f"{cells} cells of {len(described.operations)} operations")
    # What may change something was asked for things that are not there, but for one: nothing has changed.
    assert weir.get("/api/v1/keys", headers=ADMIN).good().json["total"] == 6
    assert {stream["name"] for stream in weir.get("/api/v1/streams", headers=ADMIN).good().json["streams"]} == {NAME, OTHER}


#: What belongs to a stream, of viewers: status for whoever may have it.
OF_STREAM = ["/live/{0}/index.m3u8", "/live/{0}/manifest.mpd", "/live/{0}/stream.mp4", "/live/{0}/dvr.m3u8", "/live/{0}/thumbnail.jpg",
             "/live/{0}/status.json", "/live/{0}/any/av/1.m4s", "/live/{0}/any/av/index.m3u8", "/watch/{0}", "/embed/{0}",
             "/recordings/{0}/x.mp4", "/recordings/{0}/x.jpg", "/recordings/{0}/x/index.m3u8", "/recordings/{0}/x/manifest.mpd",
             "/api/v1/streams/{0}", "/api/v1/recordings/{0}/x.mp4", "/api/v1/recordings/{0}/x.mp4/clip",
             "/api/v1/recordings/{0}/x.mp4/keyframes"]
#: What belongs to none.
OF_NOBODY = ["/", "/recordings", "/publish", "/time", "/healthz", "/readyz", "/metrics", "/web/ui/style.css", "/api/v1", "/api/v1/version",
             "/api/v1/streams", "/api/v1/recordings", "/api/v1/storage", "/api/v1/openapi.json"]


def test_each_address_of_a_stream_wants_a_credential_that_may_watch_it(weir):
    """By bearer and before the path. Administrators may watch everything; a key of publishers or recorders is none of viewers."""
    own_key = json.loads(weir.get("/api/v1/keys", method="POST", headers=ADMIN,
                                  body=json.dumps({"name": "own", "watch": [NAME]}).encode()).good().body)["key"]
    weir.secrets.append(own_key)
    everything = {"viewer", "viewer's token"} | {name for name, (_, scope) in weir.credentials.items() if scope}
    credentials = {**{name: text for name, (text, _) in weir.credentials.items()}, "own": own_key}
    cells = 0
    for path, stream in itertools.product(OF_STREAM, (NAME, OTHER)):
        target = path.format(stream)
        for name, text in credentials.items():
            may = name in everything or (name == "own" and stream == NAME)
            ways = [(target, fields(text))] if text in (None, "") else [(target, fields(text)), (f"/~{text}{target}", fields(None))]
            for address, headers in ways:
                if target.endswith("stream.mp4"):
                    status = head_of_endless(weir, address, headers)
                else:
                    answer = weir.get(address, headers=headers)
                    status = answer.status
                    if not may:
                        assert answer.headers["cache-control"] == "no-store" and answer.json["detail"], address
                cells += 1
                assert (status == 403) is not may, (address if text is None else address.replace(text, "…"), name, status)
    for target, (name, text) in itertools.product(OF_NOBODY, credentials.items()):
        assert weir.get(target, headers=fields(text)).status == 200, (target, name)
        cells += 1
    print(f"{cells} cells")


def head_of_endless(weir, path: str, headers: dict[str, str]) -> int:
    """The status of a response that does not end."""
    stream = http.Stream(weir.web + path, headers=headers)
    stream.close()
    return stream.status


def test_each_way_of_publishing_wants_a_key_that_may_publish(start, tmp_path):
    """Closed by its first key. Keys of viewers, recorders and administrators are none of publishers."""
    (tmp_path / "state").mkdir()
    weir = start("--state", tmp_path / "state", "--trusted-proxy", "127.0.0.1", "--no-record", "--webrtc", "127.0.0.1:0",
                 environment={"WEIR_ADMIN_TOKEN": TOKEN, "WEIR_JWT_SECRET": SECRET}, listeners=("http", "rtmp", "webrtc"))

    def key(name: str, **rights) -> str:
        answer = weir.get("/api/v1/keys", method="POST", headers=ADMIN, body=json.dumps({"name": name, **rights}).encode()).good()
        return answer.json["key"]

    credentials = {
        "none": (None, False), "wrong": ("wrong-key-0815", False), "own": (key("own", publish=["cam-*"]), True),
        "other": (key("other", publish=[OTHER]), False), "viewer": (key("viewer", watch=["*"]), False),
        "recorder": (key("recorder", record=["*"]), False), "administrator": (key("administrator", scope="admin"), False),
        "the admin token": (TOKEN, False), "token": (token(publish="cam-*"), True), "token of another": (token(publish=OTHER), False),
        "viewer's token": (token(watch="*"), False), "administrator's token": (token(admin="admin"), False)}
    weir.secrets += [text for text, _ in credentials.values() if text]
    # Each try has a name of its own: a name changes its publisher once in five seconds.
    names = (f"cam-{number}" for number in itertools.count())
    for name, (text, may) in credentials.items():
        offer = weir.get(f"/whip/{next(names)}", method="POST", headers={**fields(text), "Content-Type": "application/sdp"},
                         body=offers.offer("sendonly").encode())
        assert offer.status == (201 if may else 401), ("whip", name, offer.text)
        if may:
            assert weir.get(offer.headers["location"], method="DELETE").status == 200
        upload = weir.get(f"/live/{next(names)}/ingest", method="POST", headers={**fields(text), "Content-Type": "video/mp2t"},
                          body=bytes(188))
        assert upload.status == 401 if not may else upload.status not in (401, 403), ("ingest", name, upload.status, upload.text)
        place = next(names) + (f"?key={text}" if text else "")
        if may:
            with RawRTMP(weir.rtmp).start(place) as client:
                client.finish()
        else:
            with pytest.raises(Refused, match="publish key is missing or wrong"), RawRTMP(weir.rtmp) as client:
                client.start(place)
    # SRT has no table here: test_srt.py and test_reload.py try its callers.
