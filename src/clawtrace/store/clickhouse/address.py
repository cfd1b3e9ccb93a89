"""The address of a ClickHouse server and the names of its tables, read from a URL.

``clickhouse://[user[:password]@]host[:port][/database][?secure=true&traces=otel_traces&logs=otel_logs&own=clawtrace]``
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from clawtrace.errors import UsageError

__all__ = ["PASSWORD", "SCHEME", "ClickHouseAddress"]

SCHEME = "clickhouse://"
PASSWORD = "CLAWTRACE_CLICKHOUSE_PASSWORD"
"""Variable with the password, which a command line would show to everyone on the machine."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTIONS = ("secure", "traces", "logs", "own")
_EXAMPLE = "clickhouse://USER@HOST:8123/DATABASE"


class ClickHouseAddress(NamedTuple):
    """One database of a server, and the names of the tables in it."""

    host: str
    port: int
    user: str = "default"
    password: str = ""
    database: str = "default"
    secure: bool = False
    """Whether the connection is TLS."""
    traces: str = "otel_traces"
    logs: str = "otel_logs"
    logs_named: bool = False
    """Whether the table of log records was named, so that it must be there."""
    own: str = "clawtrace"
    """The database of clawtrace's own tables."""

    @classmethod
    def parse(cls, url: str, environ: Mapping[str, str]) -> ClickHouseAddress:
        """Read a URL; a password that it lacks is taken from the environment.

        Raises:
            UsageError: it is not the URL of a ClickHouse; the message says what is wrong.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise UsageError(f"the store is no valid URL: {error}; it is written {_EXAMPLE}") from error
        if not host:
            raise UsageError(f"the URL of the store names no host; it is written {_EXAMPLE}")
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        if unknown := [name for name in given if name not in _OPTIONS]:
            raise UsageError(
                f"the URL of the store has an unknown option {unknown[0]!r}; there are {', '.join(_OPTIONS)}"
            )
        secure = given.get("secure", "false").lower()
        if secure not in ("true", "false", "1", "0"):
            raise UsageError(f"the option `secure` of the store's URL is true or false, not {secure!r}")
        is_secure = secure in ("true", "1")
        names = {
            "database": unquote(parts.path.strip("/")) or "default",
            "traces": given.get("traces", "otel_traces"),
            "logs": given.get("logs", "otel_logs"),
            "own": given.get("own", "clawtrace"),
        }
        for what, name in names.items():
            if not _NAME.fullmatch(name):
                raise UsageError(f"the URL of the store has an invalid name for `{what}`: {name!r}")
        return cls(
            host,
            port or (8443 if is_secure else 8123),
            unquote(parts.username or "default"),
            unquote(parts.password) if parts.password is not None else environ.get(PASSWORD, ""),
            secure=is_secure,
            logs_named="logs" in given,
            **names,
        )

    def __str__(self) -> str:
        """Return the URL without the password."""
        return f"{SCHEME}{self.user}@{self.host}:{self.port}/{self.database}"

    def __repr__(self) -> str:
        return f"ClickHouseAddress({self})"
