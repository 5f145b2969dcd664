"""A proxy that passes on requests with one token before their path, requests for the time, and requests for files of the pages.

It refuses all others, and remembers them: an address that lost its token on the way to the player.
"""

import http.client
import http.server
import threading
import urllib.parse

#: Needs no token: the clock, and what pages consist of.
FREE = ("/time", "/web/", "/favicon.ico")


class Toll:
    def __init__(self, origin: str, token: str):
        self.refused: list[str] = []
        self.passed: list[str] = []
        parts = urllib.parse.urlsplit(origin)
        prefix = f"/~{token}/"

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler):  # noqa: N805  (self is the proxy)
                path = handler.path.split("?")[0]
                if not (path.startswith(prefix) or path == FREE[0] or path.startswith(FREE[1:])):
                    self.refused.append(handler.path)
                    handler.send_error(403)
                    return
                self.passed.append(handler.path)
                connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=40)
                try:
                    fields = {k: v for k, v in handler.headers.items() if k.lower() not in ("connection", "host")}
                    connection.request(handler.command, handler.path, headers={**fields, "Host": handler.headers["Host"]})
                    self.pass_on(connection.getresponse(), handler)
                except (ConnectionError, http.client.HTTPException):
                    handler.close_connection = True
                finally:
                    connection.close()

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.web = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.base = self.web + prefix.rstrip("/")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def pass_on(answer: http.client.HTTPResponse, handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding"):
                handler.send_header(name, value)
        length = answer.getheader("Content-Length")
        # Growing and endless responses end with their connection.
        is_open = length is None and answer.status not in (204, 304) and handler.command != "HEAD"
        if is_open:
            handler.send_header("Connection", "close")
            handler.close_connection = True
        handler.end_headers()
        while piece := answer.read1(1 << 16):
            handler.wfile.write(piece)
            handler.wfile.flush()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
