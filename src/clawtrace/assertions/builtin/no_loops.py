"""`no_loops`: the agent did not do the same thing over and over."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.order import Order, OrderAnswer, OrderedRows
from clawtrace.assertions.forms.where import Where
from clawtrace.assertions.matching.arguments import read_arguments
from clawtrace.model.masks import holds_mask

__all__ = ["NoLoops"]

_SHOWN = {"name": "name", "start_ns": "start", "arguments": "argument"}
"""Columns of a call that may be unknown, and their words."""

_MANY = float("inf")


class _Call(NamedTuple):
    """One call; its name and its arguments in one form are None where they are unknown."""

    name: str | None
    arguments: str | None
    certain: bool = True


_More = tuple[_Call, float]
"""A call that may be anywhere, and how many such there are at most."""


class NoLoops(Assertion):
    """No tool is called more than `max_repeats` times in a row with the same arguments.

    An agent that repeats itself burns money without getting anywhere. In a row means without another call in between,
    among all calls of the run by start or among those of one agent that the spans show. Executed, failed and blocked calls count. Arguments
    are compared as JSON values; where they were not captured, cut off or masked, calls of one tool may be the same. A call
    that nothing records may part a row as well as lengthen it.

    Example:
        - type: no_loops
          max_repeats: 3
    """

    main_field = "max_repeats"
    requires = ("tool_calls.name", "tool_calls.arguments", "tool_calls.outcome")

    max_repeats: Annotated[int, Field(strict=True, ge=1)] = 3
    """Most calls in a row of one tool with the same arguments; 1 allows no repetition."""

    def question(self) -> Order:
        """Read the attempts in order."""
        return Order(
            "tool_calls",
            self._answer,
            empty=True,
            columns=("start_ns", "end_ns", "arguments", "agent_span_id"),
            where=Where(
                "CASE WHEN r.name IS NULL OR r.arguments IS NULL OR r.start_ns IS NULL THEN NULL ELSE TRUE END",
                columns=("name", "arguments", "start_ns"),
            ),
            shown="""'call ' || r.call_no || ': ' || coalesce(r.name, '(tool without a name)') || ', arguments '
         || coalesce(r.arguments, 'not captured')""",
            first="-(count(*) OVER (PARTITION BY r.run_id, r.name, r.arguments))",
        )

    def _answer(self, recorded: OrderedRows) -> OrderAnswer:
        """Find the longest row that there is in every world, and the longest there may be in any."""
        forms: dict[str, str | None] = {}
        lists: dict[Any, list[tuple[int, _Call]]] = {"": []}
        anywhere: dict[Any, list[_More]] = defaultdict(list)
        for one in recorded.rows:
            for key in ("", one["agent_span_id"]):
                if key is None:
                    continue
                call = _Call(one["name"], _one_form(one["arguments"], forms), one["certain"])
                # When a call was carried out that a model asked for, and no span shows, is not known.
                if one["start_ns"] is None or (one["end_ns"] is None and not one["certain"]):
                    anywhere[key].append((call, 1))
                else:
                    lists.setdefault(key, []).append((one["start_ns"], call))
        # What no agent is recorded to have called may be any agent's.
        ownerless = [(_Call(one["name"], None), 1) for one in recorded.rows if one["agent_span_id"] is None]
        unseen = [
            (_Call(gap["name"], None), _MANY if gap["at_most"] is None else gap["at_most"]) for gap in recorded.gaps
        ]
        sure, possible = (0, _Call(None, None)), 0.0
        for key, calls in lists.items():
            more = anywhere[key] + unseen + (ownerless if key else [])
            kinds: dict[int, set[Any]] = defaultdict(set)
            for start, call in calls:
                kinds[start].add(call[:2])
            # Different calls that start at once have no order: any of them may part a row, or not.
            parted = [_Call(None, None) if len(kinds[start]) > 1 else call for start, call in calls]
            joined = [call._replace(certain=call.certain and len(kinds[start]) == 1) for start, call in calls]
            sure = max(sure, _longest_for_sure(parted, sum(n for _, n in more)), key=lambda found: found[0])
            possible = max(possible, _longest_possible(joined, more))
        holds = False if sure[0] > self.max_repeats else None if possible > self.max_repeats else True
        found = {"longest": sure[0], "possible": None if possible == _MANY else int(possible), "repeated": sure[1]}
        return OrderAnswer(holds, found, missing=_unknown(recorded))

    def actual(self, outcome: Outcome) -> Any:
        """Return the longest row for sure, the longest there may be, and the tool; None without any call."""
        row = outcome.row
        if "longest" not in row:
            return None
        return {"longest": row["longest"], "possible": row["possible"], "tool": row["repeated"].name}

    def explain(self, outcome: Outcome) -> str:
        """Return the longest row in words."""
        row = outcome.row
        asked = f"at most {self.max_repeats} allowed"
        if outcome.holds is False:
            name, arguments, _ = row["repeated"]
            short = arguments if len(arguments) <= 100 else arguments[:99] + "…"
            return f"`{name}` was called {row['longest']} times in a row with the arguments {short}, {asked}."
        if outcome.holds:
            return f"No tool was called more than {plural(self.max_repeats, 'time')} in a row with the same arguments."
        if row["possible"] is None:
            return f"Whether calls were repeated cannot be known, {asked}: not every call is recorded."
        _, _, column = outcome.missing.partition(".")
        why = f": not every {_SHOWN[column]} is known" if column else ""
        return f"Up to {row['possible']} calls in a row may be the same, {asked}{why}."


def _unknown(recorded: OrderedRows) -> str:
    """Return the fact that is not known; empty for the calls themselves."""
    if recorded.gaps or not all(one["certain"] for one in recorded.rows):
        return ""
    return (
        f"tool_calls.{next((name for name in _SHOWN if any(one[name] is None for one in recorded.rows)), 'arguments')}"
    )


def _one_form(recorded: str | None, forms: dict[str, str | None]) -> str | None:
    """Return arguments as canonical JSON; None when they were not captured, cut off or masked."""
    if recorded is not None and recorded not in forms:
        try:
            value = read_arguments(recorded)
            form = json.dumps(value, sort_keys=True, ensure_ascii=False)
            if ".0" in form or "e+" in form:  # the same number, as another language writes it
                form = json.dumps(json.loads(form, parse_float=_number), ensure_ascii=False)
            forms[recorded] = None if holds_mask(value) else form
        except (ValueError, RecursionError):
            forms[recorded] = None
    return None if recorded is None else forms[recorded]


def _number(written: str) -> float:
    return int(float(written)) if float(written).is_integer() else float(written)


def _longest_for_sure(calls: Sequence[_Call], more: float) -> tuple[int, _Call]:
    """Return how long a row of equal calls is in every world, and its call.

    A call that is not certain parts a row unless it is the same; so may each of the `more` calls that may be anywhere.
    """
    best, length, before = (0, _Call(None, None)), 0, None
    for call in calls:
        same = before is not None and call[:2] == before[:2]
        if same and not call.certain:
            continue
        known = call.certain and None not in call
        length = (length + 1 if same else 1) if known else 0
        before = call if known else None
        if length > best[0]:
            best = (length, call)
    return (0 if more == _MANY else ceil(best[0] / (more + 1))), best[1]


def _longest_possible(calls: Sequence[_Call], more: Sequence[_More]) -> float:
    """Return how long a row of calls can be of which no two are known to differ, `more` calls among them.

    `rows` are those that end at a call, by the name and the arguments that they have so far.
    """
    rows: dict[tuple[str | None, str | None], int] = {}
    best: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for name, arguments, certain in calls:
        longer = {} if certain else dict(rows)
        for (so_far, given), length in [*rows.items(), ((None, None), 0)]:
            if not _differ(so_far, name) and not _differ(given, arguments):
                key = (name if so_far is None else so_far, arguments if given is None else given)
                longer[key] = max(longer.get(key, 0), length + 1)
        rows = longer
        for key, length in rows.items():
            best[key] = max(best[key], length)
    anywhere: dict[tuple[str | None, str | None], float] = defaultdict(float)
    for call, number in more:
        anywhere[call[:2]] += number
    kinds = {*best, *anywhere} or {(None, None)}
    nameless, bare = ([kind for kind in kinds if kind[side] is None] for side in (0, 1))
    names, known = ({kind[side] for kind in kinds if None not in kind} for side in (0, 1))
    # What is known of a kind and fits another one, of which more is known, makes no longer row than that one.
    kinds -= {one for one in bare if one[0] in names or (one[0] is None and len(kinds) > 1)}
    kinds -= {one for one in nameless if one[1] in known}
    alike = (
        {kind, (kind[0], None), (None, kind[1]), (None, None)}
        if None not in kind
        else {kind, *(bare if kind[0] is None else ()), *(nameless if kind[1] is None else ())}
        for kind in kinds
    )
    return max(max(best.get(one, 0) for one in some) + sum(anywhere.get(one, 0) for one in some) for some in alike)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
