"""What a viewer's token costs the server: the same playlist of an open stream, and of one that wants tokens, with one token and with
1,000 in turn."""

import base64
import hashlib
import hmac
import json
import time

from harness import hls, http

from . import delivery, lowlatency, meter, peers

CONNECTIONS = 64
CROWD = 1000
SECRET = b"secret-of-the-benchmark-0123456789abcdef"
ADMIN = "token-of-the-benchmark-0815"


def token(subject: str) -> str:
    """A JSON Web Token by HS256 (RFC 7515)."""
    def text(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    claims = {"sub": subject, "exp": int(time.time()) + 3600, "weir": {"watch": "guarded"}}
    signed = ".".join(text(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{signed}.{text(hmac.new(SECRET, signed.encode(), hashlib.sha256).digest())}"


def playlist(server, name: str) -> str:
    """The path of the stream's media playlist."""
    index = f"{server.web}/live/{name}/index.m3u8"
    top = hls.parse_multivariant(http.fetch(index, headers={"Authorization": f"Bearer {ADMIN}"}).good().text, index)
    return top.absolute(top.variants[0].uri).removeprefix(server.web)


def run(rounds: int) -> str:
    with peers.folder() as folder:
        config = folder / "weir.yaml"
        config.write_text(json.dumps({
            "admin": {"token": ADMIN}, "access": {"jwt": {"secret": SECRET.decode()}}, "limits": {"polls": 0},
            "streams": {"*": {"window": "56s", "partDuration": "1s"}, "guarded": {"viewers": "token", "window": "56s", "partDuration": "1s"}}}))
        config.chmod(0o600)
        tokens = [token(f"viewer-{number}") for number in range(CROWD)]
        with peers.weir("--config", str(config)) as server:
            for name in ("open", "guarded"):
                lowlatency.Publisher(server.rtmp, name, 60 + rounds * 4 * (delivery.SECONDS + 2))
            lists: dict[str, str] = {}

            def filled() -> bool:
                try:
                    lists.update({name: playlist(server, name) for name in ("open", "guarded")})
                except (AssertionError, IndexError):
                    return False
                return all(len(hls.parse_media(http.fetch(f"{server.web}{path}", headers={"Authorization": f"Bearer {ADMIN}"}).good().text,
                                               server.web).segments) >= 12 for path in lists.values())

            server.wait(filled, 60, "two playlists of about 1 KB", every=0.5)
            script = folder / "tokens.lua"
            script.write_text("local at, requests = 0, {}\nfunction init()\n" + "".join(
                f'  requests[{number + 1}] = wrk.format("GET", "/~{one}{lists["guarded"]}")\n' for number, one in enumerate(tokens))
                + "end\nfunction request()\n  at = at % #requests + 1\n  return requests[at]\nend\n")
            rows = {
                "without a token": (lists["open"], ()),
                "one token before the path": (f"/~{tokens[0]}{lists['guarded']}", ()),
                "one token as a bearer": (lists["guarded"], ("-H", f"Authorization: Bearer {tokens[0]}")),
                f"{CROWD:,} tokens before the path, in turn": (lists["guarded"], ("-s", str(script)))}
            found: dict[str, list[dict]] = {row: [] for row in rows}
            for turn in range(rounds):
                for row, (path, options) in list(rows.items()) if turn % 2 else reversed(list(rows.items())):
                    found[row].append(delivery.wrk(server.web + path, CONNECTIONS, server.process.pid, *options))
                print(f"tokens round {turn + 1}/{rounds}: " + "; ".join(
                    f"{row} {all[-1]['cpu']:.2f} µs" for row, all in found.items()), flush=True)
            size = len(http.fetch(server.web + lists["open"]).body)
    plain = found["without a token"]
    body = [[row, meter.spread([one["rate"] for one in all]), meter.spread([one["cpu"] for one in all]),
             f"{meter.median(a['cpu'] / b['cpu'] for a, b in zip(all, plain)):.2f}"] for row, all in found.items()]
    return (f"Viewers' tokens (HS256): a playlist of {size:,} B, {CONNECTIONS} connections, wrk with one thread, {delivery.SECONDS} s a run, "
            f"median (min–max) of {rounds} rounds in turn.\n\n"
            + meter.table(["what", "requests/s", "server CPU µs/request", "÷ without a token"], body))
