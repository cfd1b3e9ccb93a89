"""Rows as the columns that a store is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clawtrace.model.relations import RELATIONS

__all__ = ["columns", "columns_of"]


def columns(types: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> dict[str, tuple[str, Sequence[Any]]]:
    """Return rows, each in the order of `types`, as columns with these types."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return {name: (kind, of) for (name, kind), of in zip(types.items(), values, strict=True)}


def columns_of(relation: str, rows: Sequence[Sequence[Any]]) -> dict[str, tuple[str, Sequence[Any]]]:
    """Return rows of a relation, each in the order of its columns, as its columns with their types."""
    return columns({column.name: column.type for column in RELATIONS[relation].columns}, rows)
