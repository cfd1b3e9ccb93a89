"""agentevals' eval sets (agentevals-cli 0.11; the `EvalSet` of Google's ADK), alone or named by its configuration.

A set says what was called and answered in each turn; the configuration says what of it is compared, and how. Without one, its
default is taken: the tool calls of each turn, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clawtrace.config.files.document import KeyPath, read_document
from clawtrace.config.imports.foreign import Import, Written, literal_arguments

__all__ = ["read_eval_set"]

_TRAJECTORY = "tool_trajectory_avg_score"
_METRICS = {
    "response_match_score": "compares answers by ROUGE-1; `final_response` has `similar_to`, which is ROUGE-L",
    "final_response_match_v2": "asks a judge; `llm_judge` needs a rubric and an evaluation profile",
}
_HALF = 0.5
"""The least average over the turns where a configuration states none."""
_UNUSED = ("rubrics", "session_input", "final_session_state", "conversation_scenario")


def read_eval_set(found: Import) -> None:
    """Add a case for each eval case."""
    data, match = found.document.data, "EXACT"
    least = None
    if "evaluators" in data:
        asked = _trajectory(found)
        if asked is None:
            return
        match, least = asked.get("trajectory_match_type") or "EXACT", asked.get("threshold", _HALF)
        if not isinstance(data.get("eval_set"), str):
            found.leave_out(("evaluators",), "names no `eval_set`: give the set itself, or name it", key=True)
            return
        found.document = read_document(Path(data["eval_set"]))
        data = found.document.data
    cases_key, cases = _of(data, "eval_cases")
    for index, case in enumerate(cases or ()):
        _read_case(found, case, (cases_key, index), match, least)


def _trajectory(found: Import) -> Mapping[str, Any] | None:
    """Return the evaluator of tool calls, noting all others."""
    asked = None
    for index, one in enumerate(found.document.data["evaluators"]):
        if isinstance(one, dict) and one.get("name") == _TRAJECTORY:
            asked = one
        else:
            name = one.get("name") if isinstance(one, dict) else one
            found.leave_out(("evaluators", index), _METRICS.get(str(name), f"`{name}` has no equal here"))
    return asked


def _read_case(found: Import, case: Mapping[str, Any], path: KeyPath, match: str, least: float | None) -> None:
    for name in _UNUSED:
        key, value = _of(case, name)
        if value:
            found.leave_out((*path, key), "has no equal here", key=True)
    key, turns = _of(case, "conversation")
    if not turns:
        found.leave_out(path, "has no conversation")
        return
    if least is not None and least <= 1 - 1 / len(turns):
        why = f"a threshold of {least:g} accepts that a part of its turns differs, which has no equal here; above {1 - 1 / len(turns):g} none may"
        found.leave_out((*path, key), why, key=True)
        return
    messages, assertions = [], []
    for index, turn in enumerate(turns):
        place = (*path, key, index)
        messages.append(_text(_of(turn, "user_content")[1]))
        ours = _calls(turn, match)
        if len(turns) > 1:
            ours["turn"] = index + 1
        assertions += found.accept(place, [ours], f"{_TRAJECTORY}, {match}")
        answer, content = _of(turn, "final_response")
        if content and least is None:
            found.leave_out(
                (*place, answer), "an answer word by word would fail on any other; see `final_response`", key=True
            )
    name = str(_of(case, "eval_id")[1] or "")
    found.add(name or messages[0], messages, assertions, name)


def _calls(turn: Mapping[str, Any], match: str) -> dict[str, Any]:
    """Return the tool calls of a turn as an assertion."""
    steps = [_step(call) for call in _tool_uses(turn)]
    if match == "ANY_ORDER" and len(steps) > 1:
        return {"type": "tool_sequence", "steps": [{"any_order": steps}]}
    if match == "EXACT":
        calls: Written = {"steps": steps} if steps else {"expected": []}
        return {"type": "tool_sequence", **calls, "mode": "strict", **({"order": "start_time"} if steps else {})}
    return {"type": "tool_sequence", "steps": steps, "order": "start_time"}


def _step(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool": f"literal:{call.get('name')}", "args": literal_arguments(call.get("args") or {}), "match": "exact"}


def _tool_uses(turn: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the calls of a turn, in either form that ADK writes."""
    data = _of(turn, "intermediate_data")[1] or {}
    yield from _of(data, "tool_uses")[1] or ()
    for event in _of(data, "invocation_events")[1] or ():
        for part in (event.get("content") or {}).get("parts") or ():
            if call := _of(part, "function_call")[1]:
                yield call


def _text(content: Mapping[str, Any] | None) -> str:
    return "".join(part.get("text") or "" for part in (content or {}).get("parts") or ())


def _of(written: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """Return the key and the value of a field, whose name ADK writes with underscores or in camel case."""
    head, *rest = name.split("_")
    camel = head + "".join(map(str.capitalize, rest))
    key = name if name in written else camel
    return key, written.get(key)
