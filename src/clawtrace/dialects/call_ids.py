"""Ids of tool calls that contradict their message: they join nothing (spec: span-model.md §4).

Some instrumentations number the parts of a message where a provider gave no ids (`get_weather_1` is the second part). Such
an id means one call next to the call's words and another one next to the results, which have other parts around them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from clawtrace.dialects.message_parts import Part

__all__ = ["canonical", "id_kind", "of_one_kind", "without_contradictions"]

_ID_KIND = re.compile("[A-Za-z]*")


def id_kind(call_id: str) -> str:
    """Return what distinguishes ids of one maker: the letters that they begin with, such as `call` or `toolu`."""
    found = _ID_KIND.match(call_id)
    return found.group() if found else ""


def of_one_kind(one: str | None, other: str | None) -> bool:
    """Return whether two call ids are of one kind, such as `call_1` and `call_2`; what has no id is of none."""
    return one is not None and other is not None and id_kind(one) == id_kind(other)


def canonical(arguments: str | None) -> str | None:
    """Return JSON text in one form, other text as it is."""
    if arguments is None:
        return None
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def without_contradictions(parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a payload, without those call ids that its calls and results contradict."""
    found = list(parts)
    if _is_plain(parts):
        return found
    earlier: set[str] = set()
    for calls, results in _rounds(parts):
        ids = {part.call_id for part in (parts[at] for at in calls)} - {None}
        doubtful = _repeated(parts, calls)
        if _contradict(parts, calls, results, earlier):
            doubtful = {parts[at].call_id for at in (*calls, *results)}
        for at in (*calls, *results):
            if found[at].call_id in doubtful:
                found[at] = found[at]._replace(call_id=None)
        earlier |= {call_id for call_id in ids - doubtful if call_id is not None}
    return found


def _is_plain(parts: Sequence[Part]) -> bool:
    """Return whether each id is that of one call and of results behind it, and none may count parts: nothing can contradict it."""
    asked: set[str] = set()
    for part in parts:
        call_id = part.call_id
        if call_id is None:
            continue
        if part.type == "tool_call":
            if call_id in asked or (part.name and call_id.startswith(part.name)):
                return False
            asked.add(call_id)
        elif part.type == "tool_call_response" and call_id not in asked:
            return False
    return True


def _rounds(parts: Sequence[Part]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the positions of calls, and of the results that follow them before the model speaks again."""
    calls: list[int] = []
    results: list[int] = []
    for at, part in enumerate(parts):
        if part.type == "tool_call_response":
            results.append(at)
            continue
        if results and (part.type == "tool_call" or part.role == "assistant"):
            yield calls, results
            calls, results = [], []
        if part.type == "tool_call":
            calls.append(at)
    yield calls, results


def _repeated(parts: Sequence[Part], calls: Sequence[int]) -> set[str | None]:
    """Return the ids that calls of other words share."""
    if len({parts[at].call_id for at in calls}) == len(calls):
        return set()
    words: dict[str | None, set[tuple[str | None, str | None]]] = defaultdict(set)
    for part in (parts[at] for at in calls):
        words[part.call_id].add((part.name, canonical(part.text)))
    return {call_id for call_id, variants in words.items() if len(variants) > 1}


def _contradict(parts: Sequence[Part], calls: Sequence[int], results: Sequence[int], earlier: set[str]) -> bool:
    """Return whether results name calls that there are not, in ids like those of the calls, or miscount numbered ones."""
    asked = [(parts[at].name, parts[at].call_id) for at in calls if parts[at].call_id is not None]
    named = [parts[at].call_id for at in results if parts[at].call_id is not None]
    if not asked or not named:
        return False
    ids = {call_id for _, call_id in asked}
    strangers = {id_kind(call_id) for call_id in named if call_id and call_id not in ids and call_id not in earlier}
    if strangers & {id_kind(call_id) for call_id in ids if call_id is not None}:
        return True
    return len(named) != len(asked) and all(
        name and re.fullmatch(rf"{re.escape(name)}_[0-9]+", call_id or "") for name, call_id in asked
    )
