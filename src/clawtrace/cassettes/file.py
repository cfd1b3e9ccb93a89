"""The file of a cassette: a YAML stream that a person reads in a review (docs/tests-without-a-key.md).

Its head comes first, then one document for each exchange. While it is recorded an exchange is appended with one write, so
that a recording that is killed keeps what was whole; at its end the file is written anew in a stable order, and an exchange
says only what the body of its request does not share with that of an earlier one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Sequence
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from clawtrace import __version__
from clawtrace.cassettes.answers import RecordedAnswer, answer_bytes
from clawtrace.cassettes.matching import MESSAGES, Meaning, order
from clawtrace.config.base import ConfigModel
from clawtrace.config.files.document import Document, display, read_documents
from clawtrace.config.files.problems import in_document, validated
from clawtrace.errors import ConfigError, ConfigProblem, UsageError
from clawtrace.support.files import share, shared_folder, whole_text_file
from clawtrace.support.yaml_writing import OneLine, readable_yaml

__all__ = ["AskedRequest", "CassetteHead", "RecordedExchange", "append", "load", "lock", "write"]

_NOT_IN_YAML = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is, and YAML does not."""
_WORTH_SHARING = 80
"""Characters of JSON that a request must share with another, for it to say only what differs."""


class CassetteHead(ConfigModel):
    """The first document of a cassette."""

    clawtrace_cassette: Literal[1] = 1
    """Version of the file's format."""
    recorded: str = ""
    """When something was recorded into it last: date and time, UTC."""
    clawtrace: str = __version__
    """The version that recorded it."""
    providers: dict[str, str] = Field(default_factory=dict)
    """Base URL of each provider that was asked."""


class AskedRequest(ConfigModel):
    """What a provider was asked: never a header, and no secret."""

    provider: str
    """Who was asked, as in `providers`."""
    api: str
    """The protocol: `chat`, `responses`, `anthropic`, `gemini`; `other` for one that is known by its path alone, `mcp` for an
    MCP server."""
    path: str
    """At the provider; of an MCP server the method."""
    model: str = ""
    """Which model was asked; of an MCP server its name, and after a `/` the tool."""
    after: str | None = None
    """The earlier exchange whose request has the same body but for what is said here."""
    body: Any = None
    """The body as JSON; with `after` the keys that differ."""
    more: dict[str, list[Any]] = Field(default_factory=dict)
    """With `after`: what follows at the end of lists of that body, as new messages do."""


def _time(text: str) -> str:
    try:
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    except ValueError:
        pass
    raise ValueError(f"must be a date and time with a zone, as '2026-11-28T10:00:00Z', found {text!r}")


class RecordedExchange(ConfigModel):
    """One request and its answer."""

    id: str
    """Name of the exchange in this file, by what its request means."""
    at: Annotated[str, AfterValidator(_time)]
    """When it was recorded: date and time, UTC."""
    request: AskedRequest
    """What the provider was asked."""
    answer: RecordedAnswer
    """What it answered."""
    usage: dict[str, int] | None = None
    """Tokens that the provider counted: `input` and `output`."""


def load(path: Path) -> tuple[CassetteHead, list[RecordedExchange]]:
    """Read a cassette; each request has its whole body.

    Raises:
        ConfigError: it cannot be read, or is no cassette; with file, line and column.
    """
    head: CassetteHead | None = None
    found: dict[str, RecordedExchange] = {}
    problems: list[ConfigProblem] = []
    for number, document in enumerate(read_documents(path)):
        if number == 0:
            head = validated(CassetteHead, document.data, in_document(document), problems)
            if "clawtrace_cassette" not in document.data:
                problems[:] = [
                    document.problem((), "is no cassette: its first document must be `clawtrace_cassette: 1`")
                ]
            if head is None or problems:
                break
        elif exchange := validated(RecordedExchange, document.data, in_document(document), problems):
            found[exchange.id] = _whole(exchange, found, document, problems)
            try:
                answer_bytes(exchange.answer)
            except (LookupError, TypeError, ValueError):
                problems.append(document.problem(("answer",), "cannot be sent as its `layout` and `events` say"))
    if problems:
        raise ConfigError(problems)
    if head is None:
        raise ConfigError(ConfigProblem(display(path), 0, 0, "is empty: record it with `--mode record`"))
    return head, list(found.values())


def _whole(
    exchange: RecordedExchange, before: dict[str, RecordedExchange], document: Document, problems: list[ConfigProblem]
) -> RecordedExchange:
    request = exchange.request
    if exchange.id in before:
        problems.append(document.problem(("id",), f"the exchange `{exchange.id}` is in the file twice"))
    if request.after is None:
        return exchange
    base = before.get(request.after)
    if base is None or not isinstance(base.request.body, dict):
        problems.append(document.problem(("request", "after"), f"no exchange before it is called `{request.after}`"))
        return exchange
    body = {**base.request.body, **(request.body or {})}
    for key, more in request.more.items():
        if not isinstance(body.get(key), list):
            problems.append(document.problem(("request", "more", key), f"`{request.after}` has no list of that name"))
            return exchange
        body[key] = body[key] + more
    whole = request.model_copy(update={"after": None, "body": body, "more": {}})
    return exchange.model_copy(update={"request": whole})


def lock(path: Path) -> TextIOWrapper:
    """Open a cassette for recording, which one process at a time does; closing the stream lets go of it.

    Raises:
        UsageError: it cannot be written, or another process records into it.
    """
    while True:
        try:
            shared_folder(path.parent)
            is_new = not path.exists()
            stream = path.open("a", encoding="utf-8")
            if is_new:
                share(stream.fileno())
        except OSError as error:
            raise UsageError(f"the cassette {display(path)} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            raise UsageError(
                f"another process records into the cassette {display(path)}: wait until it has ended, or give each process a "
                "cassette of its own"
            ) from None
        if path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat()):
            return stream
        stream.close()  # it was written anew meanwhile


def append(stream: TextIOWrapper, part: CassetteHead | RecordedExchange) -> None:
    """Add one document at the end of a cassette, in one line: the agent waits for it, and `write` makes it readable.

    Raises:
        OSError: it could not be written; nothing of it is there.
    """
    text = json.dumps(part.model_dump(), ensure_ascii=False)
    left = ("---\n" + _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n").encode()
    size = os.fstat(stream.fileno()).st_size
    try:
        while left:
            left = left[os.write(stream.fileno(), left) :]
    except OSError as error:
        os.ftruncate(stream.fileno(), size)
        error.filename = stream.name
        raise


def write(path: Path, head: CassetteHead, exchanges: Sequence[tuple[Meaning, RecordedExchange]]) -> None:
    """Write a whole cassette, in a stable order: by model and messages; repeated requests stay as they were."""
    ordered = [exchange for _, exchange in sorted(exchanges, key=lambda one: order(one[0]))]
    before: dict[tuple[str, str, str], RecordedExchange] = {}
    with whole_text_file(path, shared=True) as stream:
        stream.write(_text(head))
        for exchange in ordered:
            request = exchange.request
            kind = request.provider, request.api, request.path
            stream.write(_text(_shared(exchange, before.get(kind))))
            before[kind] = exchange


def _shared(exchange: RecordedExchange, base: RecordedExchange | None) -> RecordedExchange:
    """Return an exchange whose request says only what it does not share with `base`, where that is shorter."""
    body, known = exchange.request.body, None if base is None else base.request.body
    if base is None or not isinstance(body, dict) or not isinstance(known, dict) or not set(known) <= set(body):
        return exchange
    more: dict[str, list[Any]] = {}
    for key in MESSAGES:
        old, new = known.get(key), body.get(key)
        if isinstance(old, list) and isinstance(new, list) and old and new[: len(old)] == old and new != old:
            more[key] = new[len(old) :]
    own = {key: value for key, value in body.items() if key not in more and known.get(key, ...) != value}
    if len(json.dumps(body)) - len(json.dumps([own, more])) < _WORTH_SHARING:
        return exchange
    request = exchange.request.model_copy(update={"after": base.id, "body": own or None, "more": more})
    return exchange.model_copy(update={"request": request})


def _text(part: CassetteHead | RecordedExchange) -> str:
    """Return a document as YAML that reads as what was written."""
    data = part.model_dump(exclude_defaults=isinstance(part, RecordedExchange))
    if isinstance(part, RecordedExchange) and part.answer.events is not None:
        data["answer"]["events"] = list(map(OneLine.of, part.answer.events))
    return "---\n" + readable_yaml(data)
