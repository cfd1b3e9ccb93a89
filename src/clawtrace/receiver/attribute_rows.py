"""The attributes of items as rows of columns, remembered by the bytes they were sent as.

Most attributes repeat in span after span (names, models, providers), so what short ones mean is looked up by their
bytes, in whatever encoding: a `KeyValue` of protobuf or an object of JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from clawtrace.receiver.claims import Claim, ClaimReader
from clawtrace.receiver.redact import Redactor

__all__ = ["AttributeRows", "Attributes", "Row", "Said"]

Row = tuple[str, str, str]
"""Key, value as text, type letter."""
Attributes = tuple[tuple[str, ...], tuple[str, ...], str]
"""Keys, values, type letters of one item."""
Said = tuple[tuple[str, str], ...]
"""The attributes of one item that matter to attribution."""

_SHORT = 96
_LIMIT = 20_000
_SHAPES_LIMIT = 5_000


class AttributeRows:
    """Decodes attributes; used by one thread at a time, because it remembers those it has seen.

    Args:
        read: decodes one attribute; it raises `BadItemError` for one that makes no sense.
        redactor: cleans the values of resources.
        claims: says which attributes matter to attribution.
    """

    def __init__(self, read: Callable[[bytes], Row], redactor: Redactor, claims: ClaimReader) -> None:
        self._read = read
        self._redactor = redactor
        self._claims = claims
        self._known: dict[bytes, Row] = {}
        self._shapes: dict[tuple[str, ...], tuple[bool, tuple[int, ...]]] = {}
        """By the keys of an item: whether one repeats, and the places of those that matter to attribution."""

    def of(self, raws: Iterable[Any]) -> tuple[Attributes, Said]:
        """Decode the attributes of one item; of repeated keys the last one counts.

        Args:
            raws: each as it was sent, as bytes.

        Raises:
            BadItemError: one makes no sense.
        """
        known, learn, read = self._known.get, self._learn, self._read
        # Long ones are not even looked up: the hash of a text takes as long as its decoding.
        rows: list[Row] = [known(raw) or learn(raw) if len(raw) < _SHORT else read(raw) for raw in raws]
        if not rows:
            return ((), (), ""), ()
        keys, values, letters = zip(*rows, strict=True)
        repeated, places = self._shapes.get(keys) or self._shape(keys)
        if repeated:
            keys, values, letters = zip(*{row[0]: row for row in rows}.values(), strict=True)
            places = self._places(keys)
        return (keys, values, "".join(letters)), tuple([(keys[place], values[place]) for place in places])

    def of_resource(self, raws: Iterable[Any], suspect: bool) -> tuple[Attributes, Claim]:
        """Decode the attributes of a resource: redacted if they are `suspect`, and what they say about the run."""
        (keys, values, letters), _ = self.of(raws)
        claim = self._claims.of_resource(dict(zip(keys, values, strict=True)))
        if suspect:
            values = tuple(map(self._redactor.clean, values))
        return (keys, values, letters), claim

    def _learn(self, raw: bytes) -> Row:
        if len(self._known) >= _LIMIT:
            self._known.clear()
        row = self._known[raw] = self._read(raw)
        return row

    def _shape(self, keys: tuple[str, ...]) -> tuple[bool, tuple[int, ...]]:
        if len(self._shapes) >= _SHAPES_LIMIT:
            self._shapes.clear()
        return self._shapes.setdefault(keys, (len(set(keys)) != len(keys), self._places(keys)))

    def _places(self, keys: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(place for place, key in enumerate(keys) if key in self._claims.keys)
