"""A small, well-defined part of JSONPath (RFC 9535): enough to leave parts of recorded arguments out.

``$`` then any of ``.name``, ``['name']``, ``[0]``, ``[-1]``, ``.*``, ``[*]``, ``..name``. Filters, slices and unions
are refused when the file is loaded.
"""

from __future__ import annotations

import re
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


def without(value: Any, paths: tuple[tuple[Step, ...], ...]) -> Any:
    """Return `value` without what `paths` select; the value itself when there are no paths."""
    if not paths:
        return value
    value = _copied(value)
    for path in paths:
        parents = [value]
        for step in path[:-1]:
            parents = [child for parent in parents for child in _select(parent, step)]
        for parent in parents:
            _remove(parent, path[-1])
    return value


def _select(parent: Any, step: Step) -> list[Any]:
    kind, what = step
    if kind == "deep":
        return [node[what] for node in _nodes(parent) if isinstance(node, dict) and what in node]
    return [parent[key] for key in _keys(parent, kind, what)]


def _remove(parent: Any, step: Step) -> None:
    kind, what = step
    if kind == "deep":
        for node in _nodes(parent):
            if isinstance(node, dict):
                node.pop(what, None)
        return
    for key in sorted(_keys(parent, kind, what), reverse=True):
        del parent[key]


def _keys(parent: Any, kind: str, what: Any) -> list[Any]:
    if isinstance(parent, dict):
        return list(parent) if kind == "each" else [what] if kind == "name" and what in parent else []
    if isinstance(parent, list):
        if kind == "each":
            return list(range(len(parent)))
        if kind == "index" and -len(parent) <= what < len(parent):
            return [what % len(parent)]
    return []


def _copied(root: Any) -> Any:
    """Return a copy of `root` that shares nothing with it that can be changed; iterative like `_nodes`."""
    holder = [root]
    waiting: list[Any] = [holder]
    while waiting:
        node = waiting.pop()
        for key in _keys(node, "each", None):
            if isinstance(node[key], dict | list):
                node[key] = node[key].copy()
                waiting.append(node[key])
    return holder[0]


def _nodes(root: Any) -> list[Any]:
    """Return `root` and everything in it; iterative, because recorded values may be nested deeply."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
    return found
