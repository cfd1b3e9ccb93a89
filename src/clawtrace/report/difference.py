"""`clawtrace.diff/1`: two runs side by side: figures, tools, models, agents, the order of tool calls, the tree.

What is unknown on a side is null, and so is its difference. The structs are the contract: keys are added, never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from clawtrace import __version__
from clawtrace.model.relations import COUNTED
from clawtrace.report.json_text import Struct

if TYPE_CHECKING:
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["Difference", "Number", "TreeStep", "difference_of"]

Item = TypeVar("Item")
Change = Literal["same", "removed", "added"]

_TOTALS = (*(name for name in COUNTED if name not in ("errors", "unrecovered_errors", "agents")), "cost_usd")


class RunSide(Struct):
    """One of the two runs."""

    name: str
    """As it was called on the command line."""
    run_id: str
    """The run's id."""
    complete: bool | None
    """Whether its trace is known to be whole; a run that is not may lack what the other has."""


class Figure(Struct):
    """A number of each run."""

    name: str
    """spans, duration_ms, errors, or a total of `clawtrace.inspect/1`."""
    first: float | None
    """Of the first run; null when unknown."""
    second: float | None
    """Of the second run; null when unknown."""
    difference: float | None
    """Second minus first; null when either is unknown."""


class Number(Struct):
    """The number of occurrences of a name in each run."""

    name: str
    """The tool, model or agent."""
    first: int
    """In the first run."""
    second: int
    """In the second run."""


class ToolStep(Struct):
    """A tool call in the order of starts."""

    change: Change
    """`removed` is in the first run only, `added` in the second only."""
    name: str
    """The tool."""


class TreeStep(Struct):
    """A span of the trees, depth first; spans are alike by depth, kind and name."""

    change: Change
    """`removed` is in the first run only, `added` in the second only."""
    depth: int
    """Number of received ancestors."""
    kind: str
    """The span's kind."""
    name: str
    """The span's name."""
    first_span_id: str | None
    """Its id in the first run; null when it is not there."""
    second_span_id: str | None
    """Its id in the second run; null when it is not there."""


class Difference(Struct):
    """Two runs side by side."""

    schema: Literal["clawtrace.diff/1"]
    """Name and version of this format: keys may be added, never changed."""
    clawtrace: str
    """Version of clawtrace that compared."""
    first: RunSide
    """The first run."""
    second: RunSide
    """The second run."""
    figures: list[Figure]
    """Calls, tokens, cost, time."""
    tools: list[Number] | None
    """Calls of each tool; null when a run's instrumentation cannot record them."""
    models: list[Number] | None
    """Answered calls of each model; null when a run's instrumentation cannot record them."""
    agents: list[Number] | None
    """Activations of each agent; null when a run's instrumentation cannot record them."""
    tool_order: list[ToolStep] | None
    """The tool calls of both runs, aligned in the order of their starts; null like `tools`."""
    tree: list[TreeStep]
    """The spans of both runs."""


def difference_of(
    runs: tuple[Mapping[str, Any], Mapping[str, Any]],
    trees: tuple[Sequence[SpanNode], Sequence[SpanNode]],
    names: tuple[str, str],
) -> Difference:
    """Return two runs side by side.

    Args:
        runs: two runs of `clawtrace.inspect/1`.
        trees: their spans, depth first.
    """
    first, second = runs
    sides = [
        RunSide(name=name, run_id=run["run_id"], complete=run["complete"])
        for name, run in zip(names, runs, strict=True)
    ]
    tools = [_names(run["tool_calls"], "name") for run in runs]
    return Difference(
        schema="clawtrace.diff/1",
        clawtrace=__version__,
        first=sides[0],
        second=sides[1],
        figures=_figures(first, second),
        tools=_numbers(*tools),
        models=_numbers(*(_names(run["llm_calls"], "response_model", "request_model") for run in runs)),
        agents=_numbers(*(_names(run["agents"], "name") for run in runs)),
        tool_order=None
        if tools[0] is None or tools[1] is None
        else [
            ToolStep(change=change, name=old or new or "")
            for change, old, new in _changes(tools[0], tools[1], tools[0], tools[1])
        ],
        tree=list(_tree(*trees)),
    )


def _figures(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Figure]:
    rows: list[tuple[str, Any, Any]] = [
        ("spans", first["spans"], second["spans"]),
        ("duration_ms", first["duration_ms"], second["duration_ms"]),
    ]
    rows += [(name, first["totals"][name], second["totals"][name]) for name in _TOTALS]
    failed = [None if run["errors"] is None else len(run["errors"]) for run in (first, second)]
    rows.append(("errors", failed[0], failed[1]))
    return [
        Figure(name=name, first=old, second=new, difference=None if old is None or new is None else new - old)
        for name, old, new in rows
    ]


def _names(rows: Sequence[Mapping[str, Any]] | None, *keys: str) -> list[str] | None:
    """Return a name of each row, the first that is known; None when the rows themselves are unknown."""
    if rows is None:
        return None
    return [next((str(row[key]) for key in keys if row[key] is not None), "?") for row in rows]


def _numbers(first: list[str] | None, second: list[str] | None) -> list[Number] | None:
    if first is None or second is None:
        return None
    old, new = Counter(first), Counter(second)
    return [Number(name=name, first=old[name], second=new[name]) for name in dict.fromkeys([*first, *second])]


def _tree(first: Sequence[SpanNode], second: Sequence[SpanNode]) -> Iterator[TreeStep]:
    keys = [[(node.depth, node.kind, node.name) for node in nodes] for nodes in (first, second)]
    for change, old, new in _changes(first, second, *keys):
        node = new or old
        assert node is not None
        yield TreeStep(
            change=change,
            depth=node.depth,
            kind=node.kind,
            name=node.name,
            first_span_id=old.span_id if old else None,
            second_span_id=new.span_id if new else None,
        )


def _changes(
    first: Sequence[Item], second: Sequence[Item], first_keys: Sequence[Hashable], second_keys: Sequence[Hashable]
) -> Iterator[tuple[Change, Item | None, Item | None]]:
    """Yield the items of both in order, those with equal keys as pairs."""
    for _, a, b, c, d in SequenceMatcher(None, first_keys, second_keys, autojunk=False).get_opcodes():
        if list(first_keys[a:b]) == list(second_keys[c:d]):
            yield from (("same", old, new) for old, new in zip(first[a:b], second[c:d], strict=True))
        else:
            yield from (("removed", old, None) for old in first[a:b])
            yield from (("added", None, new) for new in second[c:d])
