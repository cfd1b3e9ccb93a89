"""Plausible faults of an agent, each as a change of the spans of a run in which it did not happen.

Every change is checked on the facts of the changed run: one that the telemetry does not show as this very fault is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from clawtrace.campaign.mutating.changed_spans import ChangedSpans
from clawtrace.campaign.results.stored import tokens_used

__all__ = ["FAULTS", "GoodRun", "RequestedTool", "SpanFault", "faults_of"]

FAULTS = {
    "left_out": "a tool is not called",
    "twice": "a tool call is repeated",
    "swapped": "two tool calls change places",
    "other_argument": "a tool gets another argument",
    "other_model": "a call uses another model",
    "hidden_error": "a tool fails, and nothing mentions it",
    "twice_the_tokens": "the run uses twice the tokens",
    "lost_delegation": "an agent is not delegated to",
}
"""Kinds of faults, each with what happens."""

_MOST_OF_A_KIND = 25
_OTHER_MODEL = "other-model-1"
_MESSAGE = "fault of a mutation"
_SPENT = ("token", "cost")


class RequestedTool(NamedTuple):
    """A tool call in the answer of a model."""

    span_id: str
    """The model's span."""
    name: str | None
    call_id: str | None


class GoodRun(NamedTuple):
    """A run into which faults are put."""

    facts: Mapping[str, Any]
    """Its entry of ``runs`` of ``clawtrace.inspect/1``."""
    counted_in: Mapping[str, str]
    """For each span of a call, the span that represents the call."""
    parents: Mapping[str, str | None]
    """The parent of each span."""
    requests: Sequence[RequestedTool] = ()
    """The tool requests in models' answers."""

    def spans_of(self, call: Mapping[str, Any]) -> set[str]:
        """Return all spans of a call."""
        if call["span_id"] is None:
            return set()
        return {span for span, owner in self.counted_in.items() if owner == call["span_id"]} | {call["span_id"]}

    @property
    def tool_calls(self) -> list[Mapping[str, Any]]:
        """The calls that count and have a name, in order."""
        return [call for call in self.facts["tool_calls"] or () if call["name"]]


class SpanFault(NamedTuple):
    """One fault that can be put into a run."""

    kind: str
    """One of `FAULTS`."""
    what: str
    """The fault, as a sentence without its full stop."""
    change: Callable[[ChangedSpans], None]
    happened: Callable[[Mapping[str, Any]], bool]
    """Whether the facts of the changed run say that it happened."""


def faults_of(run: GoodRun) -> list[SpanFault]:
    """Return the faults that can be put into a run, at most 25 of each kind."""
    found: list[SpanFault] = []
    for make in (
        _left_out,
        _twice,
        _swapped,
        _other_argument,
        _other_model,
        _hidden_error,
        _more_tokens,
        _lost_delegation,
    ):
        found += list(make(run))[:_MOST_OF_A_KIND]
    return found


def _by_tool(run: GoodRun) -> dict[str, list[Mapping[str, Any]]]:
    calls: dict[str, list[Mapping[str, Any]]] = {}
    for call in run.tool_calls:
        calls.setdefault(call["name"], []).append(call)
    return calls


def _names(facts: Mapping[str, Any]) -> list[str | None]:
    return [call["name"] for call in facts["tool_calls"] or ()]


def _left_out(run: GoodRun) -> Iterator[SpanFault]:
    for name, calls in _by_tool(run).items():
        yield SpanFault(
            "left_out",
            f"`{name}` is not called",
            partial(_without_tool, run=run, name=name, calls=calls),
            lambda after, name=name: after["tool_calls"] is not None and name not in _names(after),  # type: ignore[misc]
        )


def _without_tool(spans: ChangedSpans, run: GoodRun, name: str, calls: Sequence[Mapping[str, Any]]) -> None:
    """Remove a tool's calls, and the model calls whose answers only requested it."""
    _without_calls(spans, run, calls)
    models: dict[str, set[bool]] = {}
    for request in run.requests:
        models.setdefault(run.counted_in.get(request.span_id, request.span_id), set()).add(request.name == name)
        if request.name == name and request.call_id:
            spans.forget_call(request.call_id)
    only = {model for model, found in models.items() if found == {True}}
    spans.leave_out({span for span, call in run.counted_in.items() if call in only} | only)


def _without_calls(spans: ChangedSpans, run: GoodRun, calls: Sequence[Mapping[str, Any]]) -> None:
    for call in calls:
        spans.leave_out(spans.below(run.spans_of(call)))
        if call["call_id"]:
            spans.forget_call(call["call_id"])


def _twice(run: GoodRun) -> Iterator[SpanFault]:
    for name, calls in _by_tool(run).items():
        call = calls[-1]
        if call["span_id"] is None or None in (call["start_ns"], call["end_ns"]):
            continue
        wanted = _names(run.facts).count(name) + 1
        yield SpanFault(
            "twice",
            f"`{name}` is called again with the same arguments",
            partial(_again, run=run, call=call),
            lambda after, name=name, wanted=wanted: _names(after).count(name) == wanted,  # type: ignore[misc]
        )


def _again(spans: ChangedSpans, run: GoodRun, call: Mapping[str, Any]) -> None:
    ids = {call["call_id"]: f"{call['call_id']}-again"} if call["call_id"] else {}
    spans.repeat(spans.below(run.spans_of(call)), call["end_ns"] - call["start_ns"] + 1000, ids)


def _swapped(run: GoodRun) -> Iterator[SpanFault]:
    names, seen = _names(run.facts), set()
    for at, (one, two) in enumerate(pairwise(run.facts["tool_calls"] or ())):
        pair = (one["name"], two["name"])
        times = (one["start_ns"], one["end_ns"], two["start_ns"], two["end_ns"])
        if None in (*pair, *times, one["span_id"], two["span_id"]) or pair[0] == pair[1] or pair in seen:
            continue
        if one["end_ns"] > two["start_ns"] or run.parents.get(one["span_id"]) != run.parents.get(two["span_id"]):
            continue
        seen.add(pair)
        wanted = [*names[:at], pair[1], pair[0], *names[at + 2 :]]
        yield SpanFault(
            "swapped",
            f"`{pair[1]}` is called before `{pair[0]}`",
            partial(_exchange, run=run, one=one, two=two),
            lambda after, wanted=wanted: _names(after) == wanted,  # type: ignore[misc]
        )


def _exchange(spans: ChangedSpans, run: GoodRun, one: Mapping[str, Any], two: Mapping[str, Any]) -> None:
    first, second = spans.below(run.spans_of(one)), spans.below(run.spans_of(two))
    spans.shift(first, two["end_ns"] - one["end_ns"])
    spans.shift(second, one["start_ns"] - two["start_ns"])


def _other_argument(run: GoodRun) -> Iterator[SpanFault]:
    for name, calls in _by_tool(run).items():
        seen: set[str] = set()
        for call in calls:
            given = call["arguments"]
            for key, value in given.items() if isinstance(given, dict) else ():
                other = _otherwise(value)
                if key in seen or other is None:
                    continue
                seen.add(key)
                changed = {**given, key: other}
                number = (run.facts["tool_calls"] or []).index(call)
                yield SpanFault(
                    "other_argument",
                    f"`{name}` gets another `{key}`",
                    partial(_with_arguments, run=run, call=call, before=given, after=changed),
                    partial(_has_arguments, number=number, name=name, arguments=changed),
                )


def _otherwise(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value} other" if isinstance(value, str) else None


def _with_arguments(
    spans: ChangedSpans, run: GoodRun, call: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    def change(_: str, value: Any) -> Any:
        return after if value == before else value

    spans.rewrite(change, run.spans_of(call))
    if call["call_id"]:
        spans.rewrite_call(call["call_id"], change)


def _has_arguments(after: Mapping[str, Any], number: int, name: str, arguments: Mapping[str, Any]) -> bool:
    calls = after["tool_calls"] or []
    return len(calls) > number and calls[number]["name"] == name and calls[number]["arguments"] == arguments


def _other_model(run: GoodRun) -> Iterator[SpanFault]:
    seen = set()
    for call in run.facts["llm_calls"] or ():
        models = {call["request_model"], call["response_model"]} - {None}
        if not models or frozenset(models) in seen:
            continue
        seen.add(frozenset(models))

        def change(spans: ChangedSpans, call: Mapping[str, Any] = call, models: set[str] = models) -> None:
            spans.rewrite(lambda _, value: _OTHER_MODEL if _is_one_of(value, models) else value, run.spans_of(call))

        yield SpanFault(
            "other_model",
            f"a call uses another model than `{call['response_model'] or call['request_model']}`",
            change,
            lambda after: any(
                _OTHER_MODEL in (one["request_model"], one["response_model"]) for one in after["llm_calls"] or ()
            ),
        )


def _is_one_of(value: Any, names: set[str]) -> bool:
    return isinstance(value, str) and value in names


def _hidden_error(run: GoodRun) -> Iterator[SpanFault]:
    if run.facts["errors"] is None:
        return
    errors = len(run.facts["errors"])
    for name, calls in _by_tool(run).items():
        call = calls[-1]
        if call["span_id"] is None or call["outcome"] == "error":
            continue
        yield SpanFault(
            "hidden_error",
            f"`{name}` fails, and nothing mentions it",
            partial(_fail, span_ids=run.spans_of(call)),
            lambda after: after["errors"] is not None and len(after["errors"]) > errors,
        )


def _fail(spans: ChangedSpans, span_ids: set[str]) -> None:
    for span in spans.spans():
        if span["spanId"] in span_ids:
            span["status"] = {"code": 2, "message": _MESSAGE}
            span["attributes"].append({"key": "error.type", "value": {"stringValue": "FaultError"}})


def _more_tokens(run: GoodRun) -> Iterator[SpanFault]:
    used = tokens_used(run.facts["totals"])
    if not used:
        return

    def doubled(key: str, value: Any) -> Any:
        counts = isinstance(value, (int, float)) and not isinstance(value, bool)
        return 2 * value if counts and any(word in key.lower() for word in _SPENT) else value

    yield SpanFault(
        "twice_the_tokens",
        "the run uses twice the tokens",
        lambda spans: spans.rewrite(doubled),
        lambda after: tokens_used(after["totals"]) == 2 * used,
    )


def _lost_delegation(run: GoodRun) -> Iterator[SpanFault]:
    for pair in run.facts["delegations"] or ():
        spans = [
            agent["span_id"]
            for agent in run.facts["agents"] or ()
            if [agent["parent"], agent["name"]] == pair and agent["span_id"]
        ]
        if spans:
            yield SpanFault(
                "lost_delegation",
                f"`{pair[0]}` does not delegate to `{pair[1]}`",
                partial(_without_agents, run=run, span_ids=spans),
                lambda after, pair=pair: after["delegations"] is not None and pair not in after["delegations"],  # type: ignore[misc]
            )


def _without_agents(spans: ChangedSpans, run: GoodRun, span_ids: Sequence[str]) -> None:
    """Remove agents with their work and the tool calls that delegated to them."""
    agents = {agent["span_id"] for agent in run.facts["agents"] or ()}
    by_span = {span: call for call in run.tool_calls for span in run.spans_of(call)}
    for span_id in span_ids:
        above = run.parents.get(span_id)
        while above is not None and above not in agents and above not in by_span:
            above = run.parents.get(above)
        if above is not None and above in by_span:
            _without_calls(spans, run, [by_span[above]])
        spans.leave_out(spans.below([span_id]))
