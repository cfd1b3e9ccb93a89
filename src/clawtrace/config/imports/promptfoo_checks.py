"""promptfoo's assertions on output, cost, time, spans and trajectory (as of 0.123), and ours of the same meaning.

It compares names as globs without regard to case, orders tool calls by their start, and takes what `type: tool` spans say for the
calls; a trace without a span that is asked about passes its `trace-*` checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from clawtrace.config.imports.foreign import NoEqualError, Written, literal_arguments
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["our_assertions"]

_COMMANDS = ("exec_command", "local_shell", "shell")
"""Tools whose calls promptfoo takes for commands."""
_SPACE = r"\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript's `\\s` finds, where Python's is of ASCII."""
_IGNORED = frozenset(("type", "value", "threshold", "metric", "weight"))
"""Keys of an assertion that are read here, or only label its score."""
_FAILED = [
    {"status": "error"},
    *({"attributes": {name: True}} for name in ("error", "exception", "failed", "failure")),
    {"attributes": {"http.status_code": ">=400"}},
    *({"attributes": {name: "ERROR"}} for name in ("otel.status_code", "status.code")),
]
"""Spans that promptfoo takes for failed."""


_JSON_TYPES = ["object", "array", "string", "number", "boolean", "null"]


def _mapping(value: Any, *known: str) -> Mapping[str, Any]:
    """Return the value of a check with only known keys."""
    if not isinstance(value, dict):
        raise NoEqualError("expected a mapping", "value")
    for key in value:
        if key not in known:
            raise NoEqualError("has no equal here", "value", key, key=True)
    return value


def _glob(pattern: Any) -> str:
    """Return a glob without regard to case as a matcher."""
    if not isinstance(pattern, str):
        raise NoEqualError("expected a text", "value", "pattern")
    escaped = re.sub(r"[.^$+{}()|\[\]\\]", r"\\\g<0>", pattern)
    return f"re:(?i)^{escaped.replace('*', '.*').replace('?', '.')}$"


def _tool(matcher: Any, *path: str | int) -> str:
    """Return the matcher of a tool's name."""
    written = matcher if isinstance(matcher, dict) else {"pattern": matcher}
    if written.get("type", "tool") not in ("tool", ["tool"]):
        raise NoEqualError("is about other steps than tool calls; only those are calls here", *path, "type")
    pattern = written.get("pattern") or written.get("name")
    if not isinstance(pattern, str):
        raise NoEqualError("needs the `name` or `pattern` of a tool", *path)
    if " " in pattern:
        raise NoEqualError("names a span; here it would be compared with names of tools", *path)
    if pattern.lower() in _COMMANDS:
        raise NoEqualError("is a command to promptfoo, never a tool; see `ran` and `run_count`", *path)
    return _glob(pattern)


def _tool_used(value: Any, inverse: bool) -> Iterator[Written]:
    if not isinstance(value, dict):
        names = value if isinstance(value, list) else [value]
        kind = "tool_not_invoked" if inverse else "tool_was_called"
        for index, name in enumerate(names):
            path = ("value", index) if isinstance(value, list) else ("value",)
            yield {"type": kind, "tool": _tool(name, *path)}
        return
    written = _mapping(value, "name", "pattern", "type", "min", "max")
    least, most = _number(written.get("min", 1), "value", "min"), written.get("max")
    if inverse:
        if most is not None or least < 1:
            raise NoEqualError("the opposite of a range of numbers has no equal here", "value")
        least, most = 0, least - 1
    bounds = {"min": least, "max": most}
    yield {"type": "tool_call_count", "tool": _tool(written, "value"), **_given(bounds)}


def _tool_args(value: Any, inverse: bool) -> Iterator[Written]:
    written = _mapping(value, "name", "pattern", "type", "args", "arguments", "mode", "ignore")
    key = "args" if "args" in written else "arguments"
    if not isinstance(written.get(key), dict):
        raise NoEqualError("arguments are a mapping here", "value", key)
    ignore = written.get("ignore", [])
    ignore = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
        raise NoEqualError("expected a text or a list of texts", "value", "ignore")
    if any("*" in name or "?" in name for name in ignore):
        raise NoEqualError("patterns of names have no equal here", "value", "ignore")
    paths = ["$['" + re.sub(r"['\\]", r"\\\g<0>", name) + "']" for name in ignore]
    asked = {"type": "tool_call", "tool": _tool(written, "value"), "args": literal_arguments(written[key])}
    asked["match"] = written.get("mode", "partial")
    yield asked | ({"ignore": paths} if paths else {}) | ({"count": 0} if inverse else {})


def _tool_sequence(value: Any, inverse: bool) -> Iterator[Written]:
    _refuse(inverse, "that a sequence does not occur has no equal here")
    written = {"steps": value} if isinstance(value, list) else _mapping(value, "steps", "mode")
    steps = written.get("steps")
    at = ("value",) if isinstance(value, list) else ("value", "steps")
    if not isinstance(steps, list):
        raise NoEqualError("expected a list of steps", *at)
    names = [_tool(step, *at, index) for index, step in enumerate(steps)]
    mode = "strict" if written.get("mode") == "exact" else "ordered"
    yield {"type": "tool_sequence", "expected": names, "mode": mode, "order": "start_time"}


def _step_count(value: Any, inverse: bool) -> Iterator[Written]:
    _refuse(inverse, "the opposite of a range of numbers has no equal here")
    written = _mapping(value, "name", "pattern", "type", "min", "max")
    if written.get("type") not in ("tool", ["tool"]):
        raise NoEqualError("counts steps other than tool calls; here `span_query` counts spans", "value")
    named = {"tool": _tool(written, "value")} if {"name", "pattern"} & written.keys() else {}
    yield {"type": "tool_call_count", **named, **_given({"min": written.get("min"), "max": written.get("max")})}


def _span_count(value: Any, inverse: bool) -> Iterator[Written]:
    _refuse(inverse, "promptfoo does not regard this `not-`")
    written = _mapping(value, "pattern", "min", "max")
    count = _given({"min": written.get("min"), "max": written.get("max")})
    yield {"type": "span_query", "select": {"name": _glob(written.get("pattern"))}, "count": count}


def _span_duration(value: Any, inverse: bool) -> Iterator[Written]:
    _refuse(inverse, "promptfoo does not regard this `not-`")
    written = _mapping(value, "pattern", "max", "percentile")
    select = {"ended": True} | ({"name": _glob(written["pattern"])} if "pattern" in written else {})
    where = {"duration_ns": f"<={_number(written.get('max'), 'value', 'max')}ms"}
    part: dict[str, Any] = {"count": {"min": 0}}
    if "percentile" in written:
        part = {"share": _number(written["percentile"], "value", "percentile") / 100}
    yield {"type": "span_query", "select": select, "where": where, **part}


def _error_spans(value: Any, inverse: bool) -> Iterator[Written]:
    _refuse(inverse, "promptfoo does not regard this `not-`")
    written = (
        {"max_count": value}
        if not isinstance(value, dict)
        else _mapping(value, "max_count", "max_percentage", "pattern")
    )
    select = {"name": _glob(written["pattern"])} if "pattern" in written else {}
    if written.get("max_count") is not None or "max_percentage" not in written:
        most = {"max": written.get("max_count") or 0}
        yield {"type": "span_query", "select": {**select, "or": _FAILED}, "count": most}
    if "max_percentage" in written:
        share = round(1 - _number(written["max_percentage"], "value", "max_percentage") / 100, 10)
        yield {"type": "span_query", "select": select, "where": {"not": {"or": _FAILED}}, "share": share}


def _text(value: Any) -> str:
    """Return a text to look for; promptfoo looks for numbers as JavaScript writes them."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise NoEqualError("expected a text", "value")


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise NoEqualError("expected a list of texts", "value")
    return [_text(one) for one in value]


def _contains(value: Any, inverse: bool) -> Written:
    return {"not_contains" if inverse else "contains": _text(value)}


def _contains_all(value: Any, inverse: bool) -> Written:
    _refuse(inverse, "that one of several texts is absent has no equal here")
    return {"contains": _texts(value)}


def _found(inverse: bool, *texts: str, flags: str = "", start: str = "") -> Written:
    """Return the condition that one of the texts is found."""
    return {"not_matches" if inverse else "matches": flags + start + "|".join(map(re.escape, texts))}


def _regex(value: Any, inverse: bool) -> Written:
    """Return a regular expression of JavaScript as one of Python, where both have the same meaning."""
    pattern = _text(value)
    of_ascii = re.search(r"\\[dwbDWB]", pattern) is not None
    tokens, inside = [], False
    for token in re.findall(r"\\.|.", pattern, re.DOTALL):
        written = token
        if token == r"\s" and of_ascii:
            written = _SPACE if inside else f"[{_SPACE}]"
        elif token == r"\S" and of_ascii:
            raise NoEqualError(r"`\S` means more here where `\d`, `\w` and `\b` are of ASCII", "value")
        elif token == "$" and not inside:
            written = r"\Z"
        elif token in "[]":
            inside = token == "["
        tokens.append(written)
    return {"not_matches" if inverse else "matches": ("(?a)" if of_ascii else "") + "".join(tokens)}


def _equals(value: Any, inverse: bool) -> Written:
    _refuse(inverse, "that the answer is another one has no equal here")
    if isinstance(value, dict | list):
        return {"json_schema": {"const": value}}
    if isinstance(value, str) and value != value.strip():
        raise NoEqualError("white space around an answer does not count here", "value")
    return {"equals": _text(value)}


def _is_json(value: Any, inverse: bool) -> Written:
    _refuse(inverse, "that the answer is no JSON has no equal here")
    if value is not None and not isinstance(value, dict):
        raise NoEqualError("a schema is a mapping here", "value")
    return {"json_schema": value or {"type": _JSON_TYPES}}


_OUTPUT: Mapping[str, Callable[[Any, bool], Written]] = {
    "contains": _contains,
    "contains-all": _contains_all,
    "contains-any": lambda value, inverse: (
        {"not_contains": _texts(value)} if inverse else _found(False, *_texts(value))
    ),
    "icontains": lambda value, inverse: _found(inverse, _text(value), flags="(?i)"),
    "icontains-any": lambda value, inverse: _found(inverse, *_texts(value), flags="(?i)"),
    "starts-with": lambda value, inverse: _found(inverse, _text(value), start=r"\A"),
    "regex": _regex,
    "equals": _equals,
    "is-json": _is_json,
}
"""Checks of the output: fields of `final_response`."""

_TRACE: Mapping[str, Callable[[Any, bool], Iterable[Written]]] = {
    "trajectory:tool-used": _tool_used,
    "trajectory:tool-args-match": _tool_args,
    "trajectory:tool-sequence": _tool_sequence,
    "trajectory:step-count": _step_count,
    "trace-span-count": _span_count,
    "trace-span-duration": _span_duration,
    "trace-error-spans": _error_spans,
}

_LIMITS = {"cost": ("trace_cost", "max_usd"), "latency": ("trace_duration", "max_ms")}
"""Checks of a number that stay within `threshold`."""


def _refuse(inverse: bool, why: str) -> None:
    if inverse:
        raise NoEqualError(why, "type")


def _number(value: Any, *path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoEqualError("expected a number", *path)
    return value


def _given(bounds: Mapping[str, Any]) -> dict[str, Any]:
    return {name: bound for name, bound in bounds.items() if bound is not None and (name, bound) != ("min", 0)}


def our_assertions(written: Mapping[str, Any]) -> list[Written]:
    """Return one of promptfoo's assertions in the long notation; one of weight 0 is shown and decides nothing.

    Raises:
        NoEqualError: it has no equal here.
    """
    for key in written.keys() - _IGNORED:
        raise NoEqualError("changes what is checked, and has no equal here", key, key=True)
    found = list(_equals_here(written))
    return [one | {"severity": "warn"} for one in found] if written.get("weight") == 0 else found


def _equals_here(written: Mapping[str, Any]) -> Iterable[Written]:
    name = str(written.get("type"))
    base, inverse = name.removeprefix("not-"), name.startswith("not-")
    value = written.get("value")
    if isinstance(value, str) and value.startswith(("file://", "package:")):
        raise NoEqualError("is in another file, which is not read", "value")
    if base in _LIMITS:
        _refuse(inverse, "that a number is exceeded has no equal here")
        kind, field = _LIMITS[base]
        return [{"type": kind, field: _number(written.get("threshold"), "threshold")}]
    if base not in _OUTPUT and base not in _TRACE:
        hint = did_you_mean(base, [*_OUTPUT, *_TRACE, *_LIMITS])
        raise NoEqualError(f"`{name}` has no equal here. {hint}".rstrip(), "type")
    if "threshold" in written:
        raise NoEqualError("a score above 0 and below 1 has no equal here", "threshold")
    if base in _TRACE:
        return _TRACE[base](value, inverse)
    return [{"type": "final_response", **_OUTPUT[base](value, inverse)}]
