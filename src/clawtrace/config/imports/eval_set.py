"""agentevals' eval sets (agentevals-cli 0.11; the `EvalSet` of Google's ADK), alone or named by its configuration.

A set says what was called and answered in each turn; the configuration says what of it is compared, and how. Without one, its
default is taken: the tool calls of each turn, exactly. ADK writes names with underscores or in camel case.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from clawtrace.config.files.document import KeyPath, read_document
from clawtrace.config.files.problems import read_as
from clawtrace.config.imports.foreign import Import, Written, literal_arguments

__all__ = ["read_eval_set"]

_TRAJECTORY = "tool_trajectory_avg_score"
_METRICS = {
    "response_match_score": "compares answers by ROUGE-1; `final_response` has `similar_to`, which is ROUGE-L",
    "final_response_match_v2": "asks a judge; `llm_judge` needs a rubric and an evaluation profile",
}


class _AdkPart(BaseModel):
    """What is read of a set; other fields may be there."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class _AdkCall(_AdkPart):
    name: str
    args: dict[str, Any] | None = None


class _AdkContentPart(_AdkPart):
    text: str | None = None
    function_call: _AdkCall | None = None


class _AdkContent(_AdkPart):
    parts: list[_AdkContentPart] | None = None


class _AdkEvent(_AdkPart):
    content: _AdkContent | None = None


class _AdkBetween(_AdkPart):
    tool_uses: list[_AdkCall] | None = None
    invocation_events: list[_AdkEvent] | None = None


class _AdkTurn(_AdkPart):
    user_content: _AdkContent
    final_response: Any = None
    intermediate_data: _AdkBetween | None = None


class _AdkCase(_AdkPart):
    eval_id: str
    conversation: list[_AdkTurn] | None = None
    rubrics: Any = None
    session_input: Any = None
    final_session_state: Any = None
    conversation_scenario: Any = None


class _AdkEvalSet(_AdkPart):
    eval_cases: list[_AdkCase]


class _Evaluator(BaseModel):
    name: str
    threshold: float = Field(default=0.5, ge=0, le=1)
    """The least average over the turns."""
    trajectory_match_type: Literal["EXACT", "IN_ORDER", "ANY_ORDER"] | None = None


class _Configuration(BaseModel):
    evaluators: list[_Evaluator]
    eval_set: str


def read_eval_set(found: Import) -> None:
    """Add a case for each eval case.

    Raises:
        ConfigError: it is no eval set, or no configuration that names one.
    """
    asked = None
    if "evaluators" in found.document.data:
        configuration = read_as(_Configuration, found.document)
        for index, one in enumerate(configuration.evaluators):
            if one.name == _TRAJECTORY:
                asked = one
            else:
                found.leave_out(("evaluators", index), _METRICS.get(one.name, f"`{one.name}` has no equal here"))
        if asked is None:
            return
        found.document = read_document(Path(configuration.eval_set))
    cases = read_as(_AdkEvalSet, found.document)
    for index, case in enumerate(cases.eval_cases):
        _read_case(found, case, (_key(found.document.data, "eval_cases"), index), asked)


def _read_case(found: Import, case: _AdkCase, path: KeyPath, asked: _Evaluator | None) -> None:
    written = found.document.data[path[0]][path[1]]
    for name in ("rubrics", "session_input", "final_session_state", "conversation_scenario"):
        if getattr(case, name):
            found.leave_out((*path, _key(written, name)), "has no equal here", key=True)
    turns = case.conversation
    if not turns:
        found.leave_out(path, "has no conversation")
        return
    most = 1 - 1 / len(turns)
    if asked is not None and asked.threshold <= most:
        why = f"a threshold of {asked.threshold:g} accepts that a part of its turns differs, which has no equal here; above {most:g} none may"
        found.leave_out((*path, "conversation"), why, key=True)
        return
    match = (asked and asked.trajectory_match_type) or "EXACT"
    messages, assertions = [], []
    for index, turn in enumerate(turns):
        place = (*path, "conversation", index)
        messages.append("".join(part.text or "" for part in turn.user_content.parts or ()))
        ours = _calls(turn, match) | ({"turn": index + 1} if len(turns) > 1 else {})
        assertions += found.accept(place, [ours], f"{_TRAJECTORY}, {match}")
        if turn.final_response and asked is None:
            key = _key(written["conversation"][index], "final_response")
            why = "an answer word by word would fail on any other; see `final_response`"
            found.leave_out((*place, key), why, key=True)
    found.add(case.eval_id, messages, assertions)


def _calls(turn: _AdkTurn, match: str) -> Written:
    """Return the tool calls of a turn as an assertion."""
    steps = [
        {"tool": f"literal:{call.name}", "args": literal_arguments(call.args or {}), "match": "exact"}
        for call in _tool_uses(turn.intermediate_data or _AdkBetween())
    ]
    if match == "ANY_ORDER" and len(steps) > 1:
        return {"type": "tool_sequence", "steps": [{"any_order": steps}]}
    if match == "EXACT" and not steps:
        return {"type": "tool_sequence", "expected": [], "mode": "strict"}
    mode = {"mode": "strict"} if match == "EXACT" else {}
    return {"type": "tool_sequence", "steps": steps, **mode, "order": "start_time"}


def _tool_uses(between: _AdkBetween) -> Iterator[_AdkCall]:
    """Yield the calls of a turn, in either form that ADK writes."""
    yield from between.tool_uses or ()
    for event in between.invocation_events or ():
        for part in event.content.parts or () if event.content else ():
            if part.function_call is not None:
                yield part.function_call


def _key(written: dict[str, Any], name: str) -> str:
    """Return the key of a field as it is written."""
    return name if name in written else to_camel(name)
