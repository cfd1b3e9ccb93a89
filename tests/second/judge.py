"""A second judge, written from the specification alone: an assertion is a plain question about one world, asked in each of them.

A world is facts without anything unknown. `verdict` makes the worlds that facts allow and asks each: a pass is true in all, a fail in
none. Where they are too many it asks some of them: answers of both kinds leave the question open, one kind alone proves nothing.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

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
    "tool_call": {"tools": ("name", "outcome", "arguments")},
    "tool_sequence": {"tools": ("name", "outcome")},
    "no_loops": {"tools": ("name", "arguments")},
    "delegation_occurred": {"agents": ("name", "parent")},
    "delegation_path": {"agents": ("name", "parent")},
    "no_span_errors": {"errors": ("recovered",)},
    "trace_duration": {},
}
"""The relations that a type looks at, and the columns in which it matters that they may be unknown."""

SOME_ORDERS = 120
"""How many orders of calls that start at once are looked at."""

World = dict[str, list[Row]]


def verdict(facts: Facts, asked: dict[str, Any]) -> str:
    """Return what the worlds say: pass, fail, inconclusive or warn; unsure where there are too many to ask all."""
    if asked["type"] == "trace_duration":
        return _duration(facts, asked)
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


# Worlds -------------------------------------------------------------------------------------------------------------------


def worlds(facts: Facts, asked: dict[str, Any]) -> tuple[Iterator[World], bool]:
    """Return the worlds that facts allow as far as an assertion sees them, and whether these are all."""
    choices: list[list[Any]] = []  # each of (relation, rows that are there by this choice)
    reads = dict(READS[asked["type"]])
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
        "outcome": ["ok", "error", "blocked"], "arguments": [asked.get("args", {}), {"zz": 1}], "recovered": [True, False],
        "parent": [None, *(one["id"] for one in facts.agents if one["id"] != row.get("id"))],
        "agent": [None, *(one["id"] for one in facts.agents)],
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
    unknown = [one for one in columns if row.get(one) == UNKNOWN or (one == "response" and row[one] is None)]
    return [
        {**row, **dict(zip(unknown, values, strict=True))}
        for values in itertools.product(*(domain[one] for one in unknown))
    ]


def _names(asked: dict[str, Any]) -> list[str]:
    """Return the names that an assertion has, and one that each pattern matches."""
    said = [
        asked.get(key)
        for key in ("tool", "to_agent", "expected", "not_expected", "only", "allowed_tools", "agent", "steps")
    ]
    names = {
        one for one in _flat([one if isinstance(one, list) else [one] for one in said if one]) if isinstance(one, str)
    }
    return sorted(re.sub(r"^\w+:", "", one).replace("^", "").replace("*", "e") for one in names)


def _flat(said: Any) -> Iterator[Any]:
    if isinstance(said, dict):
        said = [one for key, one in said.items() if key not in ("status", "min", "max")]
    for one in said if isinstance(said, list | tuple) else ():
        yield from _flat(one) if isinstance(one, list | tuple | dict) else (one,)


def _missing(relation: str, asked: dict[str, Any], facts: Facts) -> Iterator[list[Row]]:
    """Yield rows that nothing shows and that may exist: none, some of each name, one of each that an order needs."""
    yield []
    wide = {
        "start": 0,
        "end": ANY**3,
        "agent": None,
        "turn": facts.turns if asked.get("turn") == "last" else asked.get("turn", 1),
        "certain": True,
        "arguments": asked.get("args", {}),
    }
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
        needed = list(_steps([asked.get("expected", []), asked.get("steps", [])]))
        calls = [one if isinstance(one, dict) else {"tool": one} for one in needed]
        for size in range(2, len(calls) + 1):
            for some in itertools.combinations(calls, size):
                yield [{**wide, "name": one["tool"], "outcome": one.get("status", "ok")} for one in some]
    elif relation == "agents":
        needed = [
            one for one in _flat([asked.get("expected", []), asked.get("to_agent", []), [asked.get("to_agent")]]) if one
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


# Questions ----------------------------------------------------------------------------------------------------------------


def holds(world: World, asked: dict[str, Any], facts: Facts) -> bool | None:
    """Return whether an assertion is true in a world; None where there is nothing that it could be asked of."""
    if "turn" in asked:
        turn = facts.turns if asked["turn"] == "last" else asked["turn"]
        if turn > facts.turns:
            return None
        world = {name: [row for row in rows if row["turn"] == turn] for name, rows in world.items()}
    if "agent" in asked:
        meant = _at_or_under(world["agents"], asked["agent"])
        if not meant:
            return None
        world = {
            name: [row for row in rows if row.get("id" if name == "agents" else "agent") in meant]
            for name, rows in world.items()
        }
    answer: bool | None = globals()[f"_{asked['type']}"](world, asked)
    return answer


def _at_or_under(agents: list[Row], name: str) -> set[Any]:
    found = {one["id"] for one in agents if one["name"] == name}
    while more := {one["id"] for one in agents if one["parent"] in found} - found:
        found |= more
    return found


def _within(number: int, asked: dict[str, Any]) -> bool:
    bounds = asked.get("count", asked)
    if isinstance(bounds, int):
        return number == bounds
    return bounds.get("min", 0) <= number <= bounds.get("max", ANY)


def _matches(name: Any, asked: str) -> bool:
    kind, _, rest = asked.partition(":")
    if kind == "glob":
        return re.fullmatch(re.escape(rest).replace(r"\*", ".*"), name) is not None
    if kind == "re":
        return re.search(rest, name) is not None
    return bool(name == asked)


def _llm_call_count(world: World, asked: dict[str, Any]) -> bool:
    return _within(sum(row["ok"] or bool(asked.get("include_failed")) for row in world["llm"]), asked)


def _bare(model: str) -> str:
    return re.sub(r"-(20\d\d-?\d\d-?\d\d|latest)$", "", model.rpartition("/")[2])


def _is_model(model: str, asked: str, *, wide: bool = False) -> bool:
    """A version reaches to the end of the bare name, a family is any run of whole segments, and what is forbidden is both."""
    if ":" in asked:
        return _matches(_bare(model), asked)
    segments = re.escape(asked)
    if any(letter.isdigit() for letter in asked) and not wide:
        return re.search(rf"(^|[-./:]){segments}$", _bare(model)) is not None
    return re.search(rf"(^|[-./:]){segments}($|[-./:])", _bare(model)) is not None


def _model_used(world: World, asked: dict[str, Any]) -> bool | None:
    def models(row: Row) -> list[str]:
        return [
            one
            for one in ((row["response"],) if asked.get("answered_by") else (row["request"], row["response"]))
            if one
        ]

    calls = [row for row in world["llm"] if row["ok"] or not asked.get("answered_by")]
    answer: list[bool] = []
    if "expected" in asked:
        answer.append(any(_is_model(one, asked["expected"]) for row in calls if row["ok"] for one in models(row)))
    if ("not_expected" in asked or "only" in asked) and not calls:
        return None
    if "not_expected" in asked:
        answer.append(not any(_is_model(one, asked["not_expected"], wide=True) for row in calls for one in models(row)))
    if "only" in asked:
        answer.append(all(any(_is_model(one, name) for name in asked["only"]) for row in calls for one in models(row)))
    return all(answer)


def _trace_token_budget(world: World, asked: dict[str, Any]) -> bool:
    used = {"input": sum(row["input"] for row in world["llm"]), "output": sum(row["output"] for row in world["llm"])}
    used["total"] = used["input"] + used["output"]
    return all(number <= asked.get(f"max_{kind}_tokens", 10**15) for kind, number in used.items())


def _tool_call_count(world: World, asked: dict[str, Any]) -> bool:
    return _within(sum("tool" not in asked or _matches(row["name"], asked["tool"]) for row in world["tools"]), asked)


def _tool_not_invoked(world: World, asked: dict[str, Any]) -> bool:
    return not any(_matches(row["name"], asked["tool"]) for row in world["tools"])


def _tool_not_permitted(world: World, asked: dict[str, Any]) -> bool:
    return all(any(_matches(row["name"], one) for one in asked["allowed_tools"]) for row in world["tools"])


def _tool_call(world: World, asked: dict[str, Any]) -> bool:
    def right(row: Row) -> bool:
        if not _matches(row["name"], asked["tool"]) or row["outcome"] != asked.get("status", row["outcome"]):
            return False
        given, expected = row["arguments"], asked.get("args", {})
        if "args" not in asked or given == UNKNOWN:
            return True
        extra = asked.get("match") == "exact" and set(given) != set(expected)
        return not extra and all(key in given and given[key] == value for key, value in expected.items())

    return _within(sum(right(row) for row in world["tools"]), {"count": asked.get("count", {"min": 1})})


def _no_loops(world: World, asked: dict[str, Any]) -> bool | None:
    """Calls that start at once have no order: where that decides, the answer is open."""

    def longest(rows: list[Row]) -> int:
        return max(
            (
                len(list(some))
                for _, some in itertools.groupby(rows, key=lambda row: (row["name"], repr(row["arguments"])))
            ),
            default=0,
        )

    rows = sorted(world["tools"], key=lambda row: row["start"])
    at_once = [list(some) for _, some in itertools.groupby(rows, key=lambda row: row["start"])]
    if math.prod(math.factorial(len(some)) for some in at_once) > SOME_ORDERS:
        return None
    found = set()
    for order in itertools.product(*map(itertools.permutations, at_once)):
        ordered = list(itertools.chain(*order))
        of_agents = [[one for one in ordered if one["agent"] == agent] for agent in {row["agent"] for row in rows}]
        found.add(max(map(longest, [ordered, *of_agents])) <= asked.get("max_repeats", 3))
    return None if len(found) > 1 else found == {True}


def _delegation_occurred(world: World, asked: dict[str, Any]) -> bool:
    return any(_matches(one["name"], asked["to_agent"]) and one["parent"] is not None for one in world["agents"])


def _delegation_path(world: World, asked: dict[str, Any]) -> bool:
    agents, names = sorted(world["agents"], key=lambda one: one["start"]), asked["expected"]
    if asked.get("mode") != "path":
        rest = iter(agents)
        return all(any(_matches(one["name"], name) for one in rest) for name in names)

    def chain(one: Row, names: list[str]) -> bool:
        if not _matches(one["name"], names[0]):
            return False
        return len(names) == 1 or any(
            chain(next_one, names[1:]) for next_one in agents if next_one["parent"] == one["id"]
        )

    return any(chain(one, names) for one in agents if one["parent"] is None)


def _no_span_errors(world: World, asked: dict[str, Any]) -> bool:
    def counts(row: Row) -> bool:
        ignored = any(_matches(name, one) for one in asked.get("ignore", ()) for name in (row["name"], *row["also"]))
        return not ignored and not (asked.get("unrecovered") and row["recovered"])

    return not any(counts(row) for row in world["errors"])


def _tool_sequence(world: World, asked: dict[str, Any]) -> bool:
    calls = world["tools"]
    if asked.get("order") == "start_time":
        calls = [{**row, "end": row["start"] + 1} for row in calls]  # of two that start at once either may be the first
    mode = asked.get("mode", "ordered")
    if mode == "contains":
        have, rows = Counter(row["name"] for row in calls), asked["expected"]
        return all(have[name] >= number for name, number in Counter(rows).items())
    if "steps" not in asked and mode == "ordered":
        return _chosen(calls, asked["expected"], [])
    if "steps" not in asked:
        return len(calls) == len(asked["expected"]) and _lined_up(calls, asked["expected"])
    calls = [row for row in calls if mode == "strict" or any(_meets(row, step) for step in _steps(asked["steps"]))]
    limited = {
        name
        for step in asked["steps"]
        if isinstance(step, dict) and ("optional" in step or "max" in step)
        for name in _flat(step)
    }
    for wanted in _sequences(asked["steps"], calls):
        if mode == "strict":
            if len(wanted) == len(calls) and _lined_up(calls, wanted):
                return True
        elif _chosen(calls, wanted, [], limited):
            return True
    return False


def _meets(row: Row, step: Any) -> bool:
    if isinstance(step, dict):
        return row["name"] == step["tool"] and row["outcome"] == step.get("status", row["outcome"])
    return _matches(row["name"], step)


def _steps(said: Any) -> Iterator[Any]:
    """Yield the names and calls in steps."""
    if isinstance(said, list):
        for one in said:
            yield from _steps(one)
    elif isinstance(said, dict) and "tool" not in said:
        yield from _steps([one for key, one in said.items() if key not in ("min", "max")])
    else:
        yield said


def _sequences(steps: list[Any], calls: list[Row]) -> list[list[Any]]:
    """Return every list of steps that is allowed and of which there are enough calls."""
    found: list[list[Any]] = [[]]
    most = len(calls)
    for step in steps:
        if isinstance(step, dict) and "any_order" in step:
            parts = [list(one) for one in itertools.permutations(step["any_order"])]
        elif isinstance(step, dict) and "optional" in step:
            parts = [[], [step["optional"]]]
        elif isinstance(step, dict) and "repeat" in step:
            least, meeting = step.get("min", 1), sum(_meets(row, step["repeat"]) for row in calls)
            parts = [[step["repeat"]] * number for number in range(least, min(step.get("max", most), meeting) + 1)]
        else:
            parts = [[step]]
        found = [[*one, *part] for one in found for part in parts if len(one) + len(part) <= most]
    return [one for one in found if all(sum(_meets(row, step) for row in calls) >= one.count(step) for step in one)]


def _chosen(calls: list[Row], wanted: list[Any], taken: list[int], limited: Any = ()) -> bool:
    """Whether distinct calls can be chosen so that each may have been before those after it, and none is left of `limited`."""
    if len(taken) == len(wanted):
        return not any(row["name"] in limited for number, row in enumerate(calls) if number not in taken)
    tried = set()
    for number, row in enumerate(calls):
        same = (row["name"], row["outcome"], row["start"], row["end"])
        if number in taken or same in tried or not _meets(row, wanted[len(taken)]):
            continue
        tried.add(same)
        if all(calls[one]["start"] < row["end"] for one in taken) and _chosen(calls, wanted, [*taken, number], limited):
            return True
    return False


def _lined_up(calls: list[Row], wanted: list[Any]) -> bool:
    """Whether all calls in an order that they may have had are the list."""
    if not wanted:
        return True
    for number, row in enumerate(calls):
        rest = [*calls[:number], *calls[number + 1 :]]
        if _meets(row, wanted[0]) and all(row["start"] < one["end"] for one in rest) and _lined_up(rest, wanted[1:]):
            return True
    return False
