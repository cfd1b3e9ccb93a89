"""A small, well-defined part of JSONPath (RFC 9535): enough to leave parts of recorded arguments out.

``$`` then any of ``.name``, ``['name']``, ``[0]``, ``[-1]``, ``.*``, ``[*]``, ``..name``. Filters, slices and unions
are refused when the file is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["parse_path", "without"]

Step = tuple[str, str | int | None]
"""("name", text) | ("index", number) | ("each", None) | ("deep", text)."""

_STEP = re.compile(
    r"""
    \.\.(?P<deep>[^\W\d][\w-]*)
  | \.(?P<each>\*) | \[(?P<every>\*)\]
  | \.(?P<name>[^\W\d][\w-]*)
  | \['(?P<single>(?:[^'\\]|\\.)*)'\] | \["(?P<double>(?:[^"\\]|\\.)*)"\]
  | \[(?P<index>-?\d+)\]
    """,
    re.VERBOSE,
)


def parse_path(path: str) -> tuple[Step, ...]:
    """Read a path.

    Raises:
        ValueError: the path is outside of the supported part; the text says where.
    """
    if not path.startswith("$") or path == "$":
        raise ValueError(f"a path starts at the arguments with '$.', for example '$.options.timeout', not {path!r}")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise ValueError(
                f"{path!r} cannot be read at character {at + 1}: use .name, ['name'], [0], [*], .* or ..name"
            )
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["deep"] is not None:
        return ("deep", found["deep"])
    if found["index"] is not None:
        return ("index", int(found["index"]))
    if found["each"] or found["every"]:
        return ("each", None)
    quoted = found["single"] if found["single"] is not None else found["double"]
    return ("name", found["name"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))


def without(value: Any, paths: Iterable[tuple[Step, ...]]) -> Any:
    """Return `value` without what `paths` select, one after the other; it stays as it is itself.

    Raises:
        RecursionError: it is nested too deeply.
    """
    for path in paths:
        value = _without(value, path)
    return value


def _without(node: Any, path: tuple[Step, ...]) -> Any:
    if not isinstance(node, dict | list):
        return node
    (kind, what), rest = path[0], path[1:]
    kept: dict[Any, Any] = {}
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(node, dict):
            meant = kind == "each" or (kind != "index" and key == what)
        else:
            meant = kind == "each" or (isinstance(what, int) and key == (what if what >= 0 else len(node) + what))
        if meant and not rest:
            continue
        kept[key] = _without(child, rest) if meant else child
        if kind == "deep":
            kept[key] = _without(kept[key], path)
    return kept if isinstance(node, dict) else list(kept.values())
