"""A package registry with one package: OpenClaw's plugin diagnostics-otel, which npm serves elsewhere, and not everywhere.

Its code is that of the OpenClaw that still carries it; the manifest says that it fits newer ones.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

__all__ = ["plugin_registry"]


@contextmanager
def plugin_registry(carrier: Path) -> Iterator[str]:
    """Serve the plugin; yield the registry's URL.

    Args:
        carrier: `openclaw.mjs` of an OpenClaw that carries it.
    """
    folder = carrier.parent / "dist" / "extensions" / "diagnostics-otel"
    package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    del package["dependencies"]  # they are part of its index.js
    files = {
        "package.json": json.dumps(package),
        "openclaw.plugin.json": (folder / "openclaw.plugin.json").read_text(encoding="utf-8"),
        "index.js": f'export {{ default }} from "{folder}/index.js";\n',
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    data = packed.getvalue()

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://127.0.0.1:{self.server.server_address[1]}"
            digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
            dist = {"tarball": f"{url}/plugin.tgz", "integrity": f"sha512-{digest}"}
            version = package["version"]
            listed = {
                "name": package["name"],
                "dist-tags": {"latest": version},
                "versions": {version: {**package, "dist": dist}},
            }
            body = data if self.path.endswith(".tgz") else json.dumps(listed).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
