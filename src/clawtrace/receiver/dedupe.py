"""Retries are recognised: a span by its ids and its start, a logs request by its bytes.

What is staged counts only once it is committed; after a failed commit the retry must be stored, not dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["RequestWindow", "SpanWindow"]


class SpanWindow:
    """The latest spans, by run and trace; the store dedupes again over everything when it computes facts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._seen: dict[tuple[int, str], set[str]] = {}
        self._staged: list[tuple[tuple[int, str], str]] = []

    def stage(self, run_nos: Sequence[int], trace_ids: Sequence[str], spans_sent: Sequence[str]) -> set[int]:
        """Note the spans of one request and return the rows that were seen before.

        `spans_sent` names each span by what makes it a repetition: its id, its start, and whether it has ended.
        """
        repeated: set[int] = set()
        key: tuple[int, str] | None = None
        spans: set[str] = set()
        for row, (run_no, trace_id, span) in enumerate(zip(run_nos, trace_ids, spans_sent, strict=True)):
            if key is None or trace_id != key[1] or run_no != key[0]:
                key = (run_no, trace_id)
                spans = self._seen.pop(key, set())
                self._seen[key] = spans
            if span in spans:
                repeated.add(row)
            else:
                spans.add(span)
                self._size += 1
                self._staged.append((key, span))
        return repeated

    def keep(self) -> None:
        """What was staged is committed; the oldest traces make room."""
        self._staged.clear()
        while self._size > self._limit:
            oldest = next(iter(self._seen))
            self._size -= len(self._seen.pop(oldest))

    def undo(self) -> None:
        """What was staged is not committed."""
        for key, span in self._staged:
            spans = self._seen.get(key, set())
            if span in spans:
                spans.remove(span)
                self._size -= 1
        self._staged.clear()


class RequestWindow:
    """The latest requests by digest, for items without ids (log records).

    A retry repeats its request byte for byte, times included, so every record of it is an exact repetition.
    """

    def __init__(self, limit: int = 8_192) -> None:
        self._limit = limit
        self._seen: dict[bytes, None] = {}
        self._staged: list[bytes] = []

    def stage(self, body: bytes, context: str) -> bool:
        """Note a request and return whether it was seen before; `context` is what else decides on its rows."""
        digest = hashlib.blake2b(body, digest_size=16, key=hashlib.sha256(context.encode()).digest()).digest()
        if digest in self._seen:
            return True
        self._seen[digest] = None
        self._staged.append(digest)
        return False

    def keep(self) -> None:
        """What was staged is committed; the oldest requests make room."""
        self._staged.clear()
        while len(self._seen) > self._limit:
            del self._seen[next(iter(self._seen))]

    def undo(self) -> None:
        """What was staged is not committed."""
        for digest in self._staged:
            self._seen.pop(digest, None)
        self._staged.clear()
