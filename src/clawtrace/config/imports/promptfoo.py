"""promptfoo's configuration (as of 0.123): its assertions on output, cost, time, spans and trajectory, and ours of the same meaning.

It compares names as globs without regard to case, orders tool calls by their start, and takes what `type: tool` spans say for the
calls; a trace without a span that is asked about passes its `trace-*` checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from clawtrace.config.files.document import KeyPath
from clawtrace.config.imports.foreign import Import, NoEqualError, Written, literal_arguments
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["read_promptfoo"]

_TEMPLATE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
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


# --- checks -----------------------------------------------------------------------------------------------------------


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


def _ours(written: Mapping[str, Any]) -> list[Written]:
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


# --- tests ------------------------------------------------------------------------------------------------------------


def read_promptfoo(found: Import) -> None:
    """Add a case for each prompt and test."""
    data = found.document.data
    for key in ("providers", "targets"):
        if key in data:
            found.leave_out((key,), "how the agent is started is given with `--command` or `--traces`", key=True)
    for key in ("scenarios", "derivedMetrics", "redteam", "nunjucksFilters", "extensions"):
        if key in data:
            found.leave_out((key,), "has no equal here", key=True)
    default = data.get("defaultTest", {})
    if not isinstance(default, dict):
        return found.leave_out(
            ("defaultTest",), "is in another file, which is not read; so no test can be judged the same"
        )
    prompts = _prompts(found)
    tests = data.get("tests", [{}])
    if not isinstance(tests, list):
        return found.leave_out(("tests",), "is in another file, which is not read")
    for index, test in enumerate(tests):
        path: KeyPath = ("tests", index)
        if not isinstance(test, dict):
            found.leave_out(path, "is in another file, which is not read")
        elif not _decides_otherwise(found, test, path) and not _decides_otherwise(found, default, ("defaultTest",)):
            _read_test(found, test, path, default, prompts)
    return None


def _decides_otherwise(found: Import, test: Mapping[str, Any], path: KeyPath) -> bool:
    """Note a test whose assertions do not all have to hold, or look at something else than the output."""
    for key in ("threshold", "assertScoringFunction"):
        if key in test:
            found.leave_out(
                (*path, key),
                "its assertions need not all hold, which has no equal here; the test is left out",
                key=True,
            )
            return True
    options = test.get("options")
    for key in ("transform", "postprocess", "prefix", "suffix"):
        if isinstance(options, dict) and key in options:
            found.leave_out(
                (*path, "options", key),
                "changes message or output, which has no equal here; the test is left out",
                key=True,
            )
            return True
    return False


def _read_test(
    found: Import,
    test: Mapping[str, Any],
    path: KeyPath,
    default: Mapping[str, Any],
    prompts: list[tuple[KeyPath, str]],
) -> None:
    values: dict[str, Any] = {}
    assertions = []
    for place, written in ((("defaultTest",), default), (path, test)):
        for key, kind, words in (
            ("vars", dict, "a mapping"),
            ("assert", list, "a list"),
            ("options", dict, "a mapping"),
        ):
            if not isinstance(written.get(key, kind()), kind):
                found.leave_out((*place, key), f"expected {words} in this file; the test is left out")
                return
        values |= written.get("vars", {})
    for place, written in ((("defaultTest",), default), (path, test)):
        if written is default and test.get("options", {}).get("disableDefaultAsserts"):
            continue
        for index, one in enumerate(written.get("assert", [])):
            assertions += _assertions(found, one, (*place, "assert", index), values)
    if not assertions:
        found.leave_out(path, "nothing is left to check")
        return
    for number, (place, prompt) in enumerate(prompts, 1):
        try:
            message = _filled(prompt, values)
        except NoEqualError as error:
            found.leave_out(place, f"{error}: without the message that it makes, a test is left out")
            continue
        title = str(test.get("description") or message)
        found.add(" ".join(title.split())[:100], [message], assertions, f"{title} {number}" if number > 1 else title)


def _assertions(found: Import, written: Any, path: KeyPath, values: Mapping[str, Any]) -> list[tuple[Written, str]]:
    """Return what one of promptfoo's assertions is here; nothing where it has no equal."""
    if isinstance(written, dict) and isinstance(reference := written.get("$ref"), str):
        name = reference.rpartition("/")[2]
        templates = found.document.data.get("assertionTemplates")
        written, path = templates.get(name) if isinstance(templates, dict) else None, ("assertionTemplates", name)
    if not isinstance(written, dict):
        found.leave_out(path, "expected an assertion, a mapping with its `type`")
        return []
    inner = written.get("assert")
    if written.get("type") == "assert-set" and "threshold" not in written and isinstance(inner, list):
        return [
            one
            for index, part in enumerate(inner)
            for one in _assertions(found, part, (*path, "assert", index), values)
        ]
    try:
        ours = _ours({**written, "value": _filled(written.get("value"), values)})
    except NoEqualError as error:
        found.leave_out((*path, *error.path), str(error), key=error.key)
        return []
    return found.accept(path, ours, str(written["type"]))


def _prompts(found: Import) -> list[tuple[KeyPath, str]]:
    """Return the prompts that are written in the file."""
    written = found.document.data.get("prompts", ["{{prompt}}"])
    prompts: list[tuple[KeyPath, str]] = []
    for index, one in enumerate(written if isinstance(written, list) else [written]):
        path: KeyPath = ("prompts", index) if isinstance(written, list) else ("prompts",)
        text = one.get("raw") if isinstance(one, dict) else one
        if not isinstance(text, str) or re.match(
            r"\s*\[\s*\{|file://|exec:|.*\.(txt|json|yaml|yml|csv|j2|js|py)$", text
        ):
            found.leave_out(path, "a prompt is a text of one message here; its tests are left out")
        else:
            prompts.append((path, text))
    return prompts


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Put the test's variables where `{{name}}` stands for them.

    Raises:
        NoEqualError: a template is more than that.
    """
    if isinstance(value, dict):
        return {key: _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str):
        return value

    def put(match: re.Match[str]) -> str:
        given = values.get(match[1])
        if not isinstance(given, str | int) or isinstance(given, bool) or str(given).startswith("file://"):
            raise NoEqualError(f"no text stands for `{match[1]}`", "value")
        return str(given)

    text = _TEMPLATE.sub(put, value)
    if "{{" in text or "{%" in text:
        raise NoEqualError("a template of more than names of variables has no equal here", "value")
    return text
