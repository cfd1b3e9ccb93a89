"""An HTTP server that keeps what is posted to it, in place of a tool's service."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Posted:
    """What was posted: path and body of each request."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, bytes]] = []

    def documents(self, path: str) -> Iterator[Any]:
        yield from (json.loads(body) for at, body in self.requests if at.endswith(path) and body)

    def messages(self, path: str) -> bytes:
        """Return requests of protobuf as a stream, each after its length."""
        return b"".join(len(body).to_bytes(4, "big") + body for at, body in self.requests if at.endswith(path))


def _nothing(path: str, url: str) -> dict[str, str]:
    return {}


@contextmanager
def receiving(answer: Callable[[str, str], Any] = _nothing) -> Iterator[Posted]:
    """Run the server, whose answer to a path is JSON; the second argument is its own address."""
    posted = Posted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            posted.requests.append(
                (self.path, gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            )
            content = json.dumps(answer(self.path, posted.url)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PATCH = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    posted.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
