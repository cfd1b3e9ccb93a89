"""A second judge, written from the specification alone: an assertion is a plain question about one world, asked in each of them.

A world is facts without anything unknown. `verdict` makes the worlds that facts allow and asks each: a pass is true in all, a fail in
none. Where they are too many it asks some of them: answers of both kinds leave the question open, one kind alone proves nothing.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

from one_world import COMMANDS, World, flat, holds, steps_of

from facts import ANY, UNKNOWN, Facts, Row

PASS, FAIL, OPEN, WARN, UNSURE = "pass", "fail", "inconclusive", "warn", "unsure"
MOST_WORLDS = 1500
READS: dict[str, dict[str, tuple[str, ...]]] = {
    "llm_call_count": {"llm": ("ok",)},
    "model_used": {"llm": ("ok", "response")},
    "trace_token_budget": {"llm": ("input", "output")},
    "tool_call_count": {"tools": ("name",)},
    "tool_not_invoked": {"tools": ("name",)},
    "tool_not_permitted": {"tools": ("name",)},
    "tool_call": {"tools": ("name", "outcome", "arguments", "result")},
    "tool_sequence": {"tools": ("name", "outcome")},
    "no_loops": {"tools": ("name", "arguments")},
    "delegation_occurred": {"agents": ("name", "parent")},
    "delegation_path": {"agents": ("name", "parent")},
    "no_span_errors": {"errors": ("recovered",)},
    "trace_duration": {},
    "per_span_budget": {"llm": ("input", "output")},
    "ran": {"tools": ("name", "arguments")},
    "not_ran": {"tools": ("name", "arguments")},
    "run_count": {"tools": ("name", "arguments")},
}
"""The relations that a type looks at, and the columns in which it matters that they may be unknown."""


def verdict(facts: Facts, asked: dict[str, Any]) -> str:
    """Return what the worlds say: pass, fail, inconclusive or warn; unsure where there are too many to ask all."""
    if asked["type"] == "trace_duration":
        return _duration(facts, asked)
    if asked["type"] == "span_duration":
        return _span_duration(facts, asked)
    if asked["type"] == "final_response":
        return _final_response(facts, asked)
    if asked["type"] == "delegation_path" and not facts.agents and not facts.reasons:
        return WARN
    found: set[Any] = set()
    every, whole = worlds(facts, asked)
    for world in every:
        found.add(holds(world, asked, facts))
        if len(found) > 1 or None in found:
            return OPEN
    return (PASS if found == {True} else FAIL) if whole else UNSURE


def _duration(facts: Facts, asked: dict[str, Any]) -> str:
    if not facts.spans:
        return OPEN
    if any(end is None for _, end in facts.spans):
        low = max(end or start for start, end in facts.spans) - min(start for start, _ in facts.spans)
        return FAIL if low > asked["max_ms"] * 1e6 else OPEN
    length, reach = 0, 0
    for start, end in sorted(facts.spans):  # type: ignore[type-var]
        length += max(0, end - max(start, reach))  # type: ignore[operator]
        reach = max(reach, end)  # type: ignore[type-var]
    if asked.get("measure") != "busy":
        length = reach - min(start for start, _ in facts.spans)
    return FAIL if length > asked["max_ms"] * 1e6 else OPEN if facts.reasons else PASS


def _span_duration(facts: Facts, asked: dict[str, Any]) -> str:
    """All spans that were received are certain; others may be missing, and one that is open may take any time."""
    lengths, most = facts.lengths.get(asked["span_type"], []), asked["max_ms"] * 1e6
    if not lengths:
        return OPEN
    within = [
        sum(one is not None and one <= most for one in lengths),
        sum(one is None or one <= most for one in lengths),
    ]
    least = asked.get("quantile", 1.0) * len(lengths)
    if facts.reasons or asked["span_type"] in facts.gaps:
        return FAIL if least == len(lengths) > within[1] else OPEN
    return PASS if within[0] >= least else FAIL if within[1] < least else OPEN


def _final_response(facts: Facts, asked: dict[str, Any]) -> str:
    if facts.reasons or facts.final == UNKNOWN:
        return OPEN
    said = [asked[key] in (facts.final or "") for key in ("contains", "not_contains") if key in asked]
    right = facts.final is not None and said == [
        key == "contains" for key in ("contains", "not_contains") if key in asked
    ]
    return PASS if right else FAIL


# Worlds -------------------------------------------------------------------------------------------------------------------


def worlds(facts: Facts, asked: dict[str, Any]) -> tuple[Iterator[World], bool]:
    """Return the worlds that facts allow as far as an assertion sees them, and whether these are all."""
    choices: list[list[Any]] = []  # each of (relation, rows that are there by this choice)
    reads = dict(READS[asked["type"]])
    if "by_agent" in asked:
        reads = {"tools": (*reads["tools"], "agent"), "agents": ("name",)}
    if "agent" in asked:
        reads = {name: (*columns, "agent") for name, columns in reads.items()} | {"agents": ("name", "parent")}
    for relation, columns in reads.items():
        for row in getattr(facts, relation):
            options = [(relation, [one]) for one in _values(row, columns, asked, facts)]
            choices.append(options if row["certain"] else [(relation, []), *options])
        gap = relation in facts.gaps or (relation == "llm" and asked.get("include_failed") and "failed" in facts.gaps)
        if gap:
            choices.append([(relation, rows) for rows in _missing(relation, asked, facts)])
    count = 1
    for options in choices:
        count *= len(options)
    if count <= MOST_WORLDS:
        return (_world(chosen) for chosen in itertools.product(*choices)), True
    drawn = random.Random(count)
    return (_world([drawn.choice(options) for options in choices]) for _ in range(MOST_WORLDS // 3)), False


def _world(chosen: Any) -> World:
    world: World = {"llm": [], "tools": [], "agents": [], "errors": []}
    for relation, rows in chosen:
        world[relation] += rows
    return world


def _values(row: Row, columns: tuple[str, ...], asked: dict[str, Any], facts: Facts) -> list[Row]:
    """Return what a row may be: one for each value that what is unknown in it may have."""
    domain = {
        "ok": [True, False], "response": [*_names(asked), "zz"], "input": [0, ANY], "output": [0, ANY], "name": [*_names(asked), "zz"],
        "outcome": ["ok", "error", "blocked"], "arguments": [asked.get("args", COMMANDS.get(asked.get("pattern"), {})), {"command": "zz"}],
        "recovered": [True, False], "result": [asked.get("result_contains"), "zz"],
        "parent": [None, *(one["id"] for one in facts.agents if one["id"] != row.get("id"))],
        "agent": [None, *(["missing-0"] if "by_agent" in asked and "agents" in facts.gaps else []), *(one["id"] for one in facts.agents)],
    }  # fmt: skip
    if row.get("response") is None and not asked.get("answered_by"):
        columns = tuple(one for one in columns if one != "response")
    if "window" in row and asked["type"] in ("tool_sequence", "no_loops"):
        first, last, place = row["window"]
        row = {**row, "start": first, "end": last}
        times = [{**row, "start": when, "end": when + 1} for when in (first + 2 * place, last - 2 * place)]
        row = {key: value for key, value in row.items() if key != "window"}
        times = [{key: value for key, value in one.items() if key != "window"} for one in times]
        return [found for one in (row, *times) for found in _values(one, columns, asked, facts)]
    if row.get("end") == ANY**3 and asked["type"] == "tool_sequence":  # its span never ended
        ends = [{**row, "end": row["start"] + 1}, {**row, "end": ANY**3 + 1}]
        return [found for one in ends for found in _values(one, columns, asked, facts)]
    unknown = [one for one in columns if row.get(one) == UNKNOWN or (one == "response" and row[one] is None)]
    return [
        {**row, **dict(zip(unknown, values, strict=True))}
        for values in itertools.product(*(domain[one] for one in unknown))
    ]


def _names(asked: dict[str, Any]) -> list[str]:
    """Return the names that an assertion has, and one that each pattern matches."""
    said = [
        asked.get(key)
        for key in (
            "tool",
            "to_agent",
            "expected",
            "not_expected",
            "only",
            "allowed_tools",
            "agent",
            "steps",
            "by_agent",
        )
    ]
    said += ["bash"] if "pattern" in asked else []
    names = {
        one for one in flat([one if isinstance(one, list) else [one] for one in said if one]) if isinstance(one, str)
    }
    return sorted(re.sub(r"^\w+:", "", one).replace("^", "").replace("*", "e") for one in names)


def _missing(relation: str, asked: dict[str, Any], facts: Facts) -> Iterator[list[Row]]:
    """Yield rows that nothing shows and that may exist: none, some of each name, one of each that an order needs."""
    yield []
    wide = {
        "start": 0,
        "end": ANY**3,
        "agent": None,
        "turn": facts.turns if asked.get("turn") == "last" else asked.get("turn", 1),
        "certain": True,
        "arguments": asked.get("args", COMMANDS.get(asked.get("pattern"), {})),
        "result": asked.get("result_contains"),
    }
    if "by_agent" in asked:
        wide["agent"] = next((one["id"] for one in facts.agents if one["name"] == asked["by_agent"]), "missing-0")
    if "agent" in asked and relation != "agents":
        meant = [one["id"] for one in facts.agents if one["name"] == asked["agent"]]
        wide["agent"] = meant[0] if meant else None
    if relation == "llm":
        oks = (True, False) if "llm" in facts.gaps else (False,)
        models = [*_names(asked), "zz"]
        for ok, model, number in itertools.product(oks, models, range(1, 9)):
            yield [{**wide, "ok": ok, "request": model, "response": model, "input": ANY, "output": ANY}] * number
    elif relation == "tools":
        statuses = (asked.get("status", "ok"), "error")
        numbers = range(1, 2 if asked["type"] == "tool_sequence" else 9)
        for name, status, number in itertools.product([*_names(asked), "zz"], statuses, numbers):
            yield [{**wide, "name": name, "outcome": status}] * number
        needed = list(steps_of([asked.get("expected", []), asked.get("steps", [])]))
        calls = [one if isinstance(one, dict) else {"tool": one} for one in needed]
        for size in range(2, len(calls) + 1):
            for some in itertools.combinations(calls, size):
                yield [{**wide, "name": one["tool"], "outcome": one.get("status", "ok")} for one in some]
    elif relation == "agents":
        needed = [
            one
            for one in flat(
                [asked.get("expected", []), asked.get("to_agent", []), [asked.get("to_agent"), asked.get("by_agent")]]
            )
            if one
        ]
        rows = []
        for number, name in enumerate(needed):  # a chain before everything
            rows.append(
                {**wide, "id": f"missing-{number}", "name": name, "parent": f"missing-{number - 1}" if number else None}
            )
        yield rows
        yield [{**row, "parent": "elsewhere"} for row in rows] + [
            {**wide, "id": "elsewhere", "name": "zz", "parent": None}
        ]
    elif relation == "errors":
        yield [{**wide, "name": "zz", "also": ("zz",), "recovered": False}]
