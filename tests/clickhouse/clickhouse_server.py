"""ClickHouse's own engine (chDB) behind the part of ClickHouse's HTTP protocol that its clients use.

``python tests/clickhouse/clickhouse_server.py FOLDER [PORT]`` serves until it is ended, and prints its port in the first line. The data are
in FOLDER: a server that is started on it again has them. Users: `default` without a password may do everything; `reader`,
password `secret`, may read, and create temporary tables (what a refused statement says is ClickHouse's own text).

chDB allows one store a process, which is why this is one. Each HTTP session is a separate connection, with its own
temporary tables.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import chdb

USERS = {"default": "", "reader": "secret"}
_NO_SETTINGS = {
    "query", "database", "session_id", "session_timeout", "session_check", "default_format", "query_id", "user", "password",
    "client_protocol_version", "compress", "decompress", "enable_http_compression", "wait_end_of_query", "quota_key",
    "send_progress_in_http_headers", "http_headers_progress_interval_ms", "cancel_http_readonly_queries_on_client_close",
    "http_response_buffer_size", "http_write_exception_in_output_format",
}  # fmt: skip
_CUSTOM_SERIALIZATION = 54454
"""From this revision of the protocol on the Go client wants blocks as `_native` writes them."""
_INSERT = re.compile(rb"\s*INSERT\s+INTO\s+(.+?)\s+FORMAT\s+(\w+)[ \t]*\r?\n?", re.IGNORECASE | re.DOTALL)
_FORMAT = re.compile(r"\sFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)
_WRITES = re.compile(r"\s*(INSERT|CREATE|DROP|TRUNCATE|DELETE|ALTER|OPTIMIZE)\b", re.IGNORECASE)
_TEMPORARY = re.compile(r"\s*(CREATE|DROP|TRUNCATE)( OR REPLACE)? TEMPORARY\b", re.IGNORECASE)


class Engine:
    """The connections of one store; one statement runs at a time."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self._main = chdb.connect(folder)
        self._sessions: dict[str, object] = {}
        self._temporary: dict[str, set[str]] = {}

    def connection(self, session: str) -> object:
        """Return the connection of a session."""
        if not session:
            return self._main
        if session not in self._sessions:
            self._sessions[session] = chdb.connect(self.folder)
        return self._sessions[session]

    def allowed(self, user: str, session: str, sql: str) -> bool:
        """Return whether a user may run a statement."""
        mine = self._temporary.setdefault(session, set())
        if user == "default" or not _WRITES.match(sql):
            return True
        if _TEMPORARY.match(sql):
            mine.update(re.findall(r"TABLE(?: IF (?:NOT )?EXISTS)? `?(\w+)`?", sql)[:1])
            return True
        target = re.match(r"\s*(?:INSERT INTO|TRUNCATE TABLE)\s+`?(\w+)`?(?:[\s(]|$)", sql, re.IGNORECASE)
        return bool(target) and target[1] in mine


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    engine: Engine

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer a ping or a query."""
        self._answer()

    do_POST = do_GET  # noqa: N815

    def _answer(self) -> None:
        body = self._body()
        split = urlsplit(self.path)
        if split.path in ("/ping", "/replicas_status"):
            self._send(200, b"Ok.\n")
            return
        given = dict(parse_qsl(split.query, keep_blank_values=True))
        user, password = self._user(given)
        if USERS.get(user) != password:
            self._send(
                403, f"Code: 516. DB::Exception: {user}: Authentication failed. (AUTHENTICATION_FAILED)".encode(), 516
            )
            return
        try:
            with self.engine.lock:
                content = self._run(given, user, body)
        except Exception as error:
            text = str(error)
            code = re.search(r"Code: (\d+)", text)
            self._send(500, text.encode(), int(code[1]) if code else 1000)
            return
        self._send(200, content)

    def _run(self, given: dict[str, str], user: str, body: bytes) -> bytes:
        text = given.get("query", "").encode()
        whole = text + (b"\n" if text and body else b"") + body
        connection = self.engine.connection(given.get("session_id", ""))
        settings = {name: value for name, value in given.items() if name not in _NO_SETTINGS and "param_" not in name}
        database = given.get("database")
        if database:
            known = str(connection.query(f"EXISTS DATABASE `{database}`", "TSV")).strip()
            if known != "1":
                raise RuntimeError(f"Code: 81. DB::Exception: Database {database} does not exist. (UNKNOWN_DATABASE)")
            connection.query(f"USE `{database}`")
        insert = _INSERT.match(whole)
        sql = whole.decode() if insert is None else f"INSERT INTO {insert[1].decode()} "
        if not self.engine.allowed(user, given.get("session_id", ""), sql):
            raise RuntimeError(f"Code: 497. DB::Exception: {user}: Not enough privileges. (ACCESS_DENIED)")
        if insert is not None:
            return self._insert(connection, insert[1].decode(), insert[2].decode(), whole[insert.end() :])
        form = _FORMAT.search(sql)
        sql = sql if form is None else sql[: form.start()]
        asked = form[1] if form else given.get("default_format", "TabSeparated")
        readonly = settings.pop("readonly", None)
        if readonly:
            sql += f" SETTINGS readonly = {readonly}"
        params = {name.removeprefix("param_"): value for name, value in given.items() if name.startswith("param_")}
        more = {"params": params} if params else {}
        version = int(given.get("client_protocol_version", "0"))
        try:
            for name, value in settings.items():
                connection.query(f"SET {name} = '{value}'")
            if version >= _CUSTOM_SERIALIZATION and asked == "Native":
                return _native(
                    json.loads(str(connection.query(sql, "JSONCompact", **more)) or '{"meta": [], "data": []}')
                )
            return bytes(connection.query(sql, asked, **more).bytes())
        finally:
            for name in settings:  # they are those of one request
                connection.query(f"SET {name} = DEFAULT")

    def _insert(self, connection: object, into: str, form: str, data: bytes) -> bytes:
        with tempfile.NamedTemporaryFile(dir=self.engine.folder, suffix=".insert") as file:
            file.write(data)
            file.flush()
            connection.query(f"INSERT INTO {into} SELECT * FROM file('{file.name}', {form})")
        return b""

    def _user(self, given: dict[str, str]) -> tuple[str, str]:
        if "user" in given:
            return given["user"], given.get("password", "")
        if "X-ClickHouse-User" in self.headers:
            return self.headers["X-ClickHouse-User"], self.headers.get("X-ClickHouse-Key", "")
        basic = self.headers.get("Authorization", "")
        if not basic.startswith("Basic "):
            return "default", ""
        user, _, password = base64.b64decode(basic.removeprefix("Basic ")).decode().partition(":")
        return user, password

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(parts)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        coding = self.headers.get("Content-Encoding", "")
        if coding == "gzip":
            return gzip.decompress(body)
        if coding == "lz4":
            import lz4.frame

            return bytes(lz4.frame.decompress(body))
        return body

    def _send(self, status: int, content: bytes, code: int = 0) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        self.send_header("X-ClickHouse-Summary", "{}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _native(answer: dict) -> bytes:
    """Return a block of texts and small numbers as the native protocol has it since it knows of custom serialisations."""
    rows = answer["data"]
    block = b"\x01\x00\x02\xff\xff\xff\xff\x00" + _number(len(answer["meta"])) + _number(len(rows))
    for place, column in enumerate(answer["meta"]):
        block += _text(column["name"]) + _text(column["type"]) + b"\x00"
        if column["type"] == "UInt32":
            block += b"".join(struct.pack("<I", int(row[place])) for row in rows)
        else:
            block += b"".join(_text(str(row[place])) for row in rows)
    return block


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _text(value: str) -> bytes:
    data = value.encode()
    return _number(len(data)) + data


def main() -> None:
    """Serve until the process is ended."""
    Handler.engine = Engine(str(Path(sys.argv[1]).resolve()))
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
