"""What can be known of a file that is no valid YAML: which suites select it, where it says so before it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

__all__ = ["tags_of_broken"]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def tags_of_broken(path: Path) -> set[str] | None:
    """Return the tags that a case file lists before the place where it breaks; None where it does not get so far."""
    try:
        events = yaml.parse(path.read_text(encoding="utf-8-sig"), _Loader)
        found = [_texts(value) for key, value in _entries(iter(events)) if key == "tags"]
    except (OSError, ValueError):
        return None
    if len(found) != 1 or found[0] is None:
        return None
    return set(found[0])


def _entries(events: Iterator[Any]) -> Iterator[tuple[str | None, list[Any]]]:
    """Yield the keys of a document's mapping, each with the events of its value, up to where the YAML breaks."""
    key: list[Any] | None = None
    try:
        while not isinstance(next(events), yaml.MappingStartEvent):
            pass
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            part = [event, *_inside(event, events)]
            if key is None:
                key = part
                continue
            yield (key[0].value if isinstance(key[0], yaml.ScalarEvent) else None), part
            key = None
    except (yaml.YAMLError, StopIteration):
        return


def _inside(event: Any, events: Iterator[Any]) -> Iterator[Any]:
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        inner = next(events)
        depth += isinstance(inner, yaml.CollectionStartEvent) - isinstance(inner, yaml.CollectionEndEvent)
        yield inner


def _texts(value: list[Any]) -> list[str] | None:
    """Return the texts of a list; None for anything else."""
    if not isinstance(value[0], yaml.SequenceStartEvent):
        return None
    items = value[1:-1]
    return [item.value for item in items] if all(isinstance(item, yaml.ScalarEvent) for item in items) else None
