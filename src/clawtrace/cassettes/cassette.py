"""A cassette in use: one object for a file, whose runs replay it independently of each other and record into it together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Set
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import count
from operator import eq
from pathlib import Path

from clawtrace.cassettes.answers import RecordedAnswer, clean_answer, usage_of
from clawtrace.cassettes.file import AskedRequest, CassetteHead, RecordedExchange, append, load, lock, write
from clawtrace.cassettes.forwarding import plain_url
from clawtrace.cassettes.matching import Meaning, Rules, not_recorded
from clawtrace.config.base import CassetteMode
from clawtrace.config.files.document import display
from clawtrace.errors import UsageError
from clawtrace.receiver.redaction.redact import RedactionSettings, Redactor

__all__ = ["Cassette"]


class Cassette:
    """A cassette in use. Safe for threads."""

    def __init__(
        self, path: Path, mode: CassetteMode, rules: Rules | None = None, redaction: RedactionSettings | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Open the file; `close` it in the end.

        Args:
            rules: what is left out of requests before they are compared.
            redaction: what is a secret besides the built-in kinds; redaction itself cannot be switched off here.
            env: whose values are secrets by the names of their variables; by default the process's own.

        Raises:
            ConfigError: the file is no cassette.
            UsageError: there is none to replay, or it cannot be written.
        """
        self.path, self.mode, self.rules = path, mode, rules or Rules()
        self._redactor = Redactor((redaction or RedactionSettings())._replace(enabled=True), env)
        self._lock = threading.Lock()
        self._stream: TextIOWrapper | None = None
        self._draft: TextIOWrapper | None = None
        """Where a new recording is kept until it can take the place of an old one."""
        self._head, self._exchanges = CassetteHead(), list[tuple[Meaning, RecordedExchange]]()
        self._places: dict[str, list[int]] = {}
        self._new = 0
        if mode == "replay" and not path.exists():
            raise UsageError(f"the cassette {display(path)} does not exist: record it with `--mode record`")
        if mode != "replay":
            self._stream = lock(path)
        self._is_new = not path.stat().st_size
        if mode != "record" and not self._is_new:
            self._head, exchanges = load(path)
            for one in exchanges:
                self._put(self.meaning(one.request, datetime.fromisoformat(one.at).timestamp()), one)

    @property
    def providers(self) -> Iterable[str]:
        """The providers that were asked."""
        return self._head.providers

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return display(self.path)

    def meaning(self, request: AskedRequest, at: float) -> Meaning:
        """Return what a request without secrets means."""
        return self.rules.meaning(request.api, request.model, request.path, request.body, at)

    def clean(self, text: str) -> str:
        """Return a text without secrets, and such that a file can hold it."""
        with self._lock:
            return self._redactor.clean(text).encode("utf-8", "replace").decode()

    def _put(self, meaning: Meaning, exchange: RecordedExchange) -> int:
        self._exchanges.append((meaning, exchange))
        self._places.setdefault(meaning.digest, []).append(len(self._exchanges) - 1)
        return len(self._exchanges) - 1

    def find(self, asked: Meaning, used: set[int], earlier: Set[int] = frozenset()) -> int | None:
        """Return the number of the exchange that answers a request, and note it in `used`; None where none is left.

        Of several with its meaning, those with the very same ids go before all others, and alone; else those that have more of
        them in common. Equal ones come in recorded order.
        """
        with self._lock:
            places = self._places.get(asked.digest, [])
            equal = [one for one in places if self._exchanges[one][0].ids == asked.ids]
            left = [one for one in equal or places if one not in used]
            left = [one for one in left if one not in earlier] or (left if self.mode == "replay" else [])
            if not left:
                return None
            found = max(left, key=lambda one: (sum(map(eq, self._exchanges[one][0].ids, asked.ids)), -one))
            used.add(found)
            return found

    @property
    def tools(self) -> set[str]:
        """The tools of MCP servers whose calls are recorded."""
        with self._lock:
            of_servers = [one.request for _, one in self._exchanges if one.request.api == "mcp"]
        return {one.model.partition("/")[2] for one in of_servers if one.path == "tools/call"}

    def exchange(self, number: int) -> RecordedExchange:
        """Return an exchange."""
        with self._lock:
            return self._exchanges[number][1]

    def record(self, request: AskedRequest, meaning: Meaning, at: float, answer: RecordedAnswer, base_url: str) -> int:
        """Add an exchange to the file; return its number."""
        answer = clean_answer(answer, self.clean)
        with self._lock:
            assert self._stream is not None
            if self._new == 0:
                self._begin()
            taken, first = {one.id for _, one in self._exchanges}, meaning.digest[:10]
            names = (f"{first}-{number}" if number > 1 else first for number in count(1))
            name = next(one for one in names if one not in taken)
            self._head = self._head.model_copy(
                update={"recorded": _now(time.time()), "providers": {**self._head.providers, request.provider: plain_url(base_url)}}
            )  # fmt: skip
            exchange = RecordedExchange(id=name, at=_now(at), request=request, answer=answer, usage=usage_of(answer))
            append(self._draft or self._stream, exchange)
            self._new += 1
            return self._put(meaning, exchange)

    def _begin(self) -> None:
        """Make the file ready for its first new exchange: only now, so that a session that records nothing destroys nothing."""
        assert self._stream is not None
        if not self._exchanges:
            if self._is_new:
                self._stream.truncate(0)
            else:
                self._draft = self.path.with_name(f"{self.path.name}.recording").open("a", encoding="utf-8")
                self._draft.truncate(0)
            append(self._draft or self._stream, self._head.model_copy(update={"recorded": _now(time.time())}))

    def miss(self, asked: Meaning, why: str = "") -> str:
        """Return what to say of a request that was not recorded: the nearest one as a difference, and what to do.

        Args:
            why: why it could not be recorded now, where that is known.
        """
        with self._lock:
            known = [(meaning, exchange.id) for meaning, exchange in self._exchanges]
            times = len(self._places.get(asked.digest, ()))
        return not_recorded(asked, known, times, self.name, why)

    def close(self) -> None:
        """Write what was recorded in its stable order, and let other processes record."""
        with self._lock:
            if self._stream is None:
                return
            if self._new:
                write(self.path, self._head, self._exchanges)
            elif self._is_new:
                self.path.unlink()
            if self._draft is not None:
                self._draft.close()
                Path(self._draft.name).unlink()
            self._stream.close()
            self._stream = None


def _now(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
