"""Assertions as plain questions about one world: facts without anything unknown."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from facts import ANY, UNKNOWN, Facts, Row

SOME_ORDERS = 120
"""How many orders of calls that start at once are looked at."""

World = dict[str, list[Row]]


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
    if "by_agent" in asked:
        meant = {one["id"] for one in world["agents"] if one["name"] == asked["by_agent"]}
        world = {**world, "tools": [row for row in world["tools"] if row["agent"] in meant]}
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
        if asked.get("result_contains") and asked["result_contains"] not in (row["result"] or ""):
            return False
        given, expected = row["arguments"], asked.get("args", {})
        if "args" not in asked or given == UNKNOWN:
            return True
        extra = asked.get("match") == "exact" and set(given) != set(expected)
        return not extra and all(key in given and given[key] == value for key, value in expected.items())

    return _within(sum(right(row) for row in world["tools"]), {"count": asked.get("count", {"min": 1})})


def _per_span_budget(world: World, asked: dict[str, Any]) -> bool | None:
    return all(row["input"] + row["output"] <= asked["max_tokens"] for row in world["llm"]) if world["llm"] else None


COMMANDS = {
    pattern: {"command": command}
    for pattern, command in {
        "^rm": "rm",
        "rm -rf": "rm -rf",
        "^make": "make",
        "^git": "git",
        "^sh$": "sh",
        "http": "http",
        "l": "l",
    }.items()
}
"""Patterns, each with a command in which it is found."""


def _commands(world: World, asked: dict[str, Any]) -> int:
    """How many simple commands match; where only the whole text does, it is one."""
    found = 0
    for row in world["tools"]:
        text = row["arguments"].get("command") if row["name"] == "bash" else None
        if text and row["outcome"] != "blocked":
            parts = sum(re.search(asked["pattern"], one.strip()) is not None for one in re.split(r"&&|\|", text))
            found += parts or re.search(asked["pattern"], text) is not None
    return found


def _ran(world: World, asked: dict[str, Any]) -> bool:
    return _commands(world, asked) > 0


def _not_ran(world: World, asked: dict[str, Any]) -> bool:
    return _commands(world, asked) == 0


def _run_count(world: World, asked: dict[str, Any]) -> bool:
    return _within(_commands(world, asked), asked)


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
    calls = [row for row in calls if mode == "strict" or any(_meets(row, step) for step in steps_of(asked["steps"]))]
    limited = {
        name
        for step in asked["steps"]
        if isinstance(step, dict) and ("optional" in step or "max" in step)
        for name in flat(step)
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


def steps_of(said: Any) -> Iterator[Any]:
    """Yield the names and calls in steps."""
    if isinstance(said, list):
        for one in said:
            yield from steps_of(one)
    elif isinstance(said, dict) and "tool" not in said:
        yield from steps_of([one for key, one in said.items() if key not in ("min", "max")])
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


def flat(said: Any) -> Iterator[Any]:
    if isinstance(said, dict):
        said = [one for key, one in said.items() if key not in ("status", "min", "max")]
    for one in said if isinstance(said, list | tuple) else ():
        yield from flat(one) if isinstance(one, list | tuple | dict) else (one,)
