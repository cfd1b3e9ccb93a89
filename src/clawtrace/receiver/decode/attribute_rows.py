"""The attributes of items as rows of columns, remembered by the bytes they were sent as.

Most attributes repeat in span after span (names, models, providers), so what short ones mean is looked up by their
bytes, in any encoding: a `KeyValue` of protobuf or an object of JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from clawtrace.receiver.attribution.attribute import Claim, ClaimReader
from clawtrace.receiver.redaction.redact import Redactor

__all__ = ["AttributeColumns", "AttributeRows", "Attributes", "Resource", "Row", "Said"]

Row = tuple[str, str, str]
"""Key, value as text, type letter."""
Attributes = tuple[tuple[str, ...], tuple[str, ...], str]
"""Keys, values, type letters of one item."""
Said = tuple[tuple[str, str], ...]
"""The attributes of one item that matter to attribution."""

_SHORT = 96
_LIMIT = 20_000
_SHAPES_LIMIT = 5_000
_RESOURCES_LIMIT, _RESOURCE_BYTES = 1_000, 4_096


class AttributeColumns(NamedTuple):
    """The attributes of many items, one after the other; of repeated keys of an item the last one counts."""

    keys: Sequence[str]
    values: Sequence[str]
    ends: Sequence[int]
    """Where those of each item end."""
    letters: list[str]
    """Type letters of each item."""
    said: list[Said]


class Resource(NamedTuple):
    """What all items of a resource share."""

    attributes: Attributes
    claim: Claim
    service: str


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
        self._resources: dict[tuple[bytes, ...], Resource] = {}
        self._shapes: dict[tuple[str, ...], tuple[bool, tuple[int, ...]]] = {}
        """By the keys of an item: whether one repeats, and the places of those that matter to attribution."""

    def of(self, items: Sequence[Sequence[Any]]) -> AttributeColumns:
        """Decode the attributes of items.

        Args:
            items: of each its attributes as they were sent, as bytes.

        Raises:
            BadItemError: one makes no sense.
        """
        known, learn, read = self._known.get, self._learn, self._read
        # Long ones are not even looked up: the hash of a text takes as long as its decoding.
        rows = [known(raw) or learn(raw) if len(raw) < _SHORT else read(raw) for raws in items for raw in raws]
        return self._columns(rows, [*accumulate(map(len, items))])

    def of_resource(self, raws: Sequence[Any], suspect: bool) -> Resource:
        """Decode the attributes of a resource: redacted if they are `suspect`, and what they say about the run.

        Raises:
            BadItemError: one makes no sense.
        """
        sent = tuple(raws)
        known = None if suspect else self._resources.get(sent)
        if known is not None:
            return known
        columns = self.of([sent])
        keys, values = tuple(columns.keys), tuple(columns.values)
        claim = self._claims.of_resource(dict(zip(keys, values, strict=True)))
        if suspect:
            values = tuple(map(self._redactor.clean, values))
        services = [value for key, value in zip(keys, values, strict=True) if key == "service.name"]
        resource = Resource((keys, values, columns.letters[0]), claim, services[0] if services else "")
        if not suspect and sum(map(len, sent)) < _RESOURCE_BYTES:
            if len(self._resources) >= _RESOURCES_LIMIT:
                self._resources.clear()
            self._resources[sent] = resource
        return resource

    def _columns(self, rows: list[Row], ends: list[int]) -> AttributeColumns:
        keys, values = [row[0] for row in rows], [row[1] for row in rows]
        every = "".join([row[2] for row in rows])
        shapes, shape = self._shapes.get, self._shape
        letters: list[str] = []
        said: list[Said] = []
        start = 0
        for end in ends:
            own = tuple(keys[start:end])
            repeated, places = shapes(own) or shape(own)
            if repeated:
                return self._columns(*_distinct(rows, ends))
            letters.append(every[start:end])
            said.append(tuple([(own[place], values[start + place]) for place in places]))
            start = end
        return AttributeColumns(keys, values, ends, letters, said)

    def _learn(self, raw: bytes) -> Row:
        if len(self._known) >= _LIMIT:
            self._known.clear()
        row = self._known[raw] = self._read(raw)
        return row

    def _shape(self, keys: tuple[str, ...]) -> tuple[bool, tuple[int, ...]]:
        if len(self._shapes) >= _SHAPES_LIMIT:
            self._shapes.clear()
        places = tuple(place for place, key in enumerate(keys) if key in self._claims.keys)
        return self._shapes.setdefault(keys, (len(set(keys)) != len(keys), places))


def _distinct(rows: list[Row], ends: list[int]) -> tuple[list[Row], list[int]]:
    """Return the last row of each key of an item, and where the items end then."""
    own = [{row[0]: row for row in rows[start:end]} for start, end in zip([0, *ends], ends, strict=False)]
    return [row for item in own for row in item.values()], [*accumulate(map(len, own))]
