"""What is wrong with an assertion as written is said in words, with the path and the nearest valid word."""

import pytest

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion

SEQUENCE = {"type": "tool_sequence", "expected": ["a"]}
BAD = {
    "no type": ({"expected": ["a"]}, ("type",), "is required", ""),
    "unknown type": ({"type": "tool_sequense"}, ("type",), "unknown assertion type 'tool_sequense'; `clawtrace assertions` lists", "Did you mean `tool_sequence`?"),
    "type is no text": ({"type": 3}, ("type",), "unknown assertion type 3", ""),
    "unknown field": (SEQUENCE | {"mod": "strict"}, ("mod",), "unknown field `mod`; valid: ", "Did you mean `mode`?"),
    "missing field": ({"type": "tool_call"}, ("tool",), "is required", ""),
    "no sequence": ({"type": "tool_sequence"}, ("expected",), "takes exactly one of `expected` and `steps`; found none", ""),
    "two sequences": (SEQUENCE | {"steps": ["a"]}, ("expected",), "takes exactly one of `expected` and `steps`; found both", ""),
    "no step": ({"type": "tool_sequence", "steps": []}, ("steps",), "needs at least 1 entry, found 0", ""),
    "misspelt step": ({"type": "tool_sequence", "steps": ["a", {"any_odrer": ["b", "c"]}]}, ("steps", 1), "a step has exactly one of `tool`, `any_order`, `optional`, `repeat`; found `any_odrer`", "Did you mean `any_order`?"),
    "two steps in one": ({"type": "tool_sequence", "steps": [{"optional": "b", "repeat": "c"}]}, ("steps", 0), "found `optional` and `repeat`", ""),
    "step is a number": ({"type": "tool_sequence", "steps": [3]}, ("steps", 0), "a step is a tool's name, a list of steps, or a mapping", ""),
    "unknown field of a step": ({"type": "tool_sequence", "steps": ["a", {"repeat": "b", "mxa": 3}]}, ("steps", 1, "mxa"), "unknown field `mxa`; valid: repeat, min, max", "Did you mean `max`?"),
    "unknown field of a nested step": ({"type": "tool_sequence", "steps": ["x", {"any_order": ["a", [{"repeat": "b", "mni": 3}]]}]}, ("steps", 1, "any_order", 1, 0, "mni"), "unknown field `mni`; valid: repeat, min, max", "Did you mean `min`?"),
    "t8 inverted repeat": ({"type": "tool_sequence", "steps": [{"repeat": "b", "min": 3, "max": 2}]}, ("steps", 0, "min"), "`min` (3) is greater than `max` (2)", ""),
    "lonely group": ({"type": "tool_sequence", "steps": [{"any_order": ["b"]}]}, ("steps", 0, "any_order"), "needs at least 2 entries, found 1", ""),
    "t9 regex of a step": ({"type": "tool_sequence", "steps": [{"optional": "re:("}, "a"]}, ("steps", 0, "optional"), "invalid regular expression '('", ""),
    "steps that ask nothing": ({"type": "tool_sequence", "steps": [{"optional": "a"}]}, ("steps",), "every step is optional", ""),
    "steps of a bag": ({"type": "tool_sequence", "steps": ["a"], "mode": "contains"}, ("mode",), "write `any_order` instead of `mode: contains`", ""),
    "t26 rule about no step": (SEQUENCE | {"expected": ["lookup", "send"], "forbid_between": {"tools": "x", "after": "lokup", "before": "send"}}, ("forbid_between",), "`lokup` is not a step, so the rule may never apply; steps: lookup, send", "Did you mean `lookup`?"),
    "rule without a place": (SEQUENCE | {"forbid_between": {"tools": ["x"]}}, ("forbid_between",), "needs `after` or `before`", ""),
    "rule with both places": (SEQUENCE | {"require": {"tool": "x", "after": "a", "before": "a"}}, ("require",), "takes exactly one of `before` and `after`", ""),
    "unknown field of a rule": (SEQUENCE | {"forbid_between": {"tool": ["x"], "tools": "x", "after": "a"}}, ("forbid_between", "tool"), "unknown field `tool`; valid: tools, after, before", "Did you mean `tools`?"),
    "t8 unknown mode": (SEQUENCE | {"mode": "stric"}, ("mode",), "'stric' is not valid; valid: ordered, strict, contains", "Did you mean `strict`?"),
    "mode far off": (SEQUENCE | {"mode": "xyz"}, ("mode",), "'xyz' is not valid; valid: ordered, strict, contains", ""),
    "t8 missing bound": ({"type": "llm_call_count"}, (), "needs at least one of `count`, `min` or `max`", ""),
    "t8 missing budget": ({"type": "trace_token_budget"}, (), "needs at least one of `max_input_tokens`", ""),
    "t8 inverted bounds": ({"type": "llm_call_count", "min": 3, "max": 1}, ("min",), "`min` (3) is greater than `max` (1)", ""),
    "t8 inverted inner bounds": ({"type": "tool_call", "tool": "a", "count": {"min": 3, "max": 1}}, ("count", "min"), "greater than", ""),
    "inner unknown field": ({"type": "tool_call", "tool": "a", "count": {"mni": 3}}, ("count", "mni"), "unknown field `mni`; valid: min, max", "Did you mean `min`?"),
    "inner not a mapping": ({"type": "tool_call", "tool": "a", "count": [3]}, ("count",), "must be a whole number, or a mapping of `min` and `max`, found [3]", ""),
    "t7 both": ({"type": "model_used", "expected": "a", "not_expected": "b"}, ("not_expected",), "takes `expected` or `not_expected`, not both: write two assertions", ""),
    "t7 none": ({"type": "model_used"}, (), "needs at least one of `expected`", ""),
    "t9 regex": (SEQUENCE | {"expected": ["a", "re:("]}, ("expected", 1), "invalid regular expression '('", ""),
    "t9 regex of a model": ({"type": "model_used", "expected": "re:["}, ("expected",), "invalid regular expression '['", ""),
    "t9 regex in arguments": ({"type": "tool_call", "tool": "a", "args": {"x": {"y": ["re:*"]}}}, ("args",), "`x.y[0]`: invalid regular expression '*'", ""),
    "not a list": (SEQUENCE | {"expected": "a"}, ("expected",), "must be a list, found the text 'a'", ""),
    "not text": (SEQUENCE | {"expected": [3]}, ("expected", 0), "must be text, found the number 3; put it in quotes", ""),
    "a list for text": ({"type": "tool_call", "tool": ["a"]}, ("tool",), "must be text, found the list ['a']", ""),
    "empty list": (SEQUENCE | {"expected": []}, ("expected",), "an empty list checks nothing", ""),
    "empty path": ({"type": "delegation_path", "expected": []}, ("expected",), "needs at least 1 entry, found 0", ""),
    "fallback of a tree": ({"type": "delegation_path", "expected": ["a"], "mode": "path", "state_path": "x.yaml"}, ("state_path",), "`mode: path` cannot use it", ""),
    "text for a number": ({"type": "trace_duration", "max_ms": "30"}, ("max_ms",), "must be a number, found the text '30'", ""),
    "t8 exact count outside of bounds": ({"type": "llm_call_count", "count": 1, "min": 3}, (), "`count` (1) is outside of `min` and `max`", ""),
    "neither a number nor bounds": ({"type": "llm_call_count", "count": "1"}, ("count",), "must be a whole number, or a mapping of `min` and `max`, found '1'", ""),
    "unknown key of a count": ({"type": "llm_call_count", "count": {"mni": 1}}, ("count", "mni"), "unknown field `mni`; valid: min, max", "Did you mean `min`?"),
    "boolean for a number": ({"type": "llm_call_count", "max": True}, ("max",), "must be a whole number, found the boolean True", ""),
    "negative": ({"type": "trace_cost", "max_usd": -1}, ("max_usd",), "must be at least 0", ""),
    "infinite": ({"type": "trace_cost", "max_usd": float("inf")}, ("max_usd",), "must be a finite number", ""),
    "boolean": ({"type": "tool_not_invoked", "tool": "a", "count_blocked": "x"}, ("count_blocked",), "must be true or false, found the text 'x'", ""),
    "dead order": ({"type": "tool_sequence", "mode": "contains", "expected": ["a"], "order": "start_time"}, ("order",), "`mode: contains` ignores the order", ""),
    "dead match": ({"type": "tool_call", "tool": "a", "match": "exact"}, ("match",), "`match` says how to compare `args`, which are not given", ""),
    "json path": ({"type": "tool_call", "tool": "a", "args": {}, "ignore": ["$.a[?]"]}, ("ignore", 0), "cannot be read at character 4", ""),
    "type is a list": ({"type": ["tool_sequence"]}, ("type",), "unknown assertion type ['tool_sequence']", ""),
    "type is a mapping": ({"type": {"a": 1}}, ("type",), "unknown assertion type {'a': 1}", ""),
    "t8 no count": ({"type": "tool_call_count", "tool": "a"}, (), "needs at least one of `count`, `min` or `max`", ""),
    "t8 count outside of bounds": ({"type": "tool_call_count", "count": 5, "max": 3}, (), "`count` (5) is outside of `min` and `max`", ""),
    "t8 misspelt span type": ({"type": "per_span_budget", "max_tokens": 1, "span_type": "llms"}, ("span_type",), "'llms' is not valid; valid: llm, tool", "Did you mean `llm`?"),
    "t8 no token budget": ({"type": "token_budget", "log_path": "x"}, (), "needs at least one of `max_input_tokens`", ""),
    "quantile of 0": ({"type": "span_duration", "max_ms": 1, "quantile": 0}, ("quantile",), "must be more than 0", ""),
    "quantile in percent": ({"type": "span_duration", "max_ms": 1, "quantile": 95}, ("quantile",), "must be at most 1", ""),
    "dead first token": ({"type": "span_duration", "max_ms": 1, "span_type": "tool", "first_token": True}, ("first_token",), "only model calls have a first token", ""),
    "empty span name": ({"type": "span_duration", "max_ms": 1, "span_name": ""}, ("span_name",), "must not be empty", ""),
    "nothing about the answer": ({"type": "final_response"}, (), "needs at least one of `contains`", ""),
    "dead threshold": ({"type": "final_response", "contains": "a", "threshold": 0.5}, ("threshold",), "`threshold` belongs to `similar_to`", ""),
    "t9 regex of the answer": ({"type": "final_response", "matches": "("}, ("matches",), "invalid regular expression '('", ""),
    "regex of every answer": ({"type": "final_response", "matches": "^.*$"}, ("matches",), "'^.*$' matches every answer: nothing is checked", ""),
    "everything is allowed": ({"type": "tool_not_permitted", "allowed_tools": ["a", "glob:*"]}, ("allowed_tools", 1), "'glob:*' means every name: nothing is checked", ""),
    "every model is allowed": ({"type": "model_used", "only": ["re:.*"]}, ("only", 0), "'re:.*' means every name", ""),
    "every secret is allowed": ({"type": "no_secret_leak", "allow": ["re:[\\s\\S]"]}, ("allow", 0), "means every name", ""),
    "every error is ignored": ({"type": "no_span_errors", "ignore": ["re:."]}, ("ignore", 0), "means every name", ""),
    "any number of spans": ({"type": "span_query", "select": {"kind": "tool"}, "count": {"min": 0}}, ("count",), "every number is at least 0: nothing is checked", ""),
    "schema of no type": ({"type": "final_response", "json_schema": {"type": "objct"}}, ("json_schema",), "\"objct\" is not valid", ""),
    "schema that says nothing": ({"type": "final_response", "json_schema": {}}, ("json_schema",), "an empty schema describes every document", ""),
    "t26 dead keyword": ({"type": "final_response", "json_schema": {"properties": {"a": {"requird": ["b"]}}}}, ("json_schema",), "unknown keyword `requird`: it would have no effect. Did you mean `required`?", ""),
    "schema elsewhere": ({"type": "final_response", "json_schema": {"$ref": "file:///etc/hostname"}}, ("json_schema",), "Retrieval is disabled", ""),
    "negative exit code": ({"type": "agent_exit_code", "value": -1}, ("value",), "must be at least 0", ""),
    "no repetition at all": ({"type": "no_loops", "max_repeats": 0}, ("max_repeats",), "must be at least 1", ""),
    "sql of all runs": ({"type": "sql", "select": "SELECT 1 FROM tool_calls"}, ("select",), "must use `:run_id`", ""),
    "sql cast": ({"type": "sql", "select": "SELECT 1::run_id"}, ("select",), "must use `:run_id`", ""),
    "sql without a limit": ({"type": "sql", "select": "SELECT :run_id", "time_limit_s": 0}, ("time_limit_s",), "must be more than 0", ""),
    "severity": (SEQUENCE | {"severity": "warning"}, ("severity",), "'warning' is not valid; valid: error, warn", "Did you mean `warn`?"),
    "on_missing": (SEQUENCE | {"on_missing": "ignore"}, ("on_missing",), "valid: skip, inconclusive, fail, pass", ""),
    "empty id": (SEQUENCE | {"id": ""}, ("id",), "must not be empty", ""),
}  # fmt: skip


@pytest.mark.parametrize(("written", "path", "message", "hint"), BAD.values(), ids=BAD)
def test_a_problem_names_its_place_what_was_found_and_what_is_valid(written, path, message, hint):
    """One problem each, with path, message and "did you mean"."""
    with pytest.raises(InvalidAssertionError) as caught:
        parse_assertion(written)
    (problem,) = caught.value.problems

    assert (problem.path, problem.hint) == (path, hint)
    assert message in problem.message
    assert ("put it in quotes" in problem.message) == ("put it in quotes" in message)


def test_all_problems_of_an_assertion_are_reported_at_once():
    """A file is repaired in one go."""
    with pytest.raises(InvalidAssertionError) as caught:
        parse_assertion({"type": "tool_call", "match": "x", "extra": 1})

    assert {problem.path for problem in caught.value.problems} == {("match",), ("extra",), ("tool",)}


def test_the_error_itself_says_all_of_it():
    """Of an assertion in Python code the message is all that is shown."""
    with pytest.raises(InvalidAssertionError, match=r"'x' is not valid; .*; `mod` unknown field `mod`"):
        parse_assertion(SEQUENCE | {"mod": "strict", "mode": "x"})


def test_the_seeds_spellings_are_accepted():
    """The examples of the seeds for these types load as they are."""
    for written in (
        {"type": "tool_was_called", "tool": "a", "log_path": "/tmp/x.log", "run_id": "r"},
        {"type": "tool_not_permitted", "allowed_tools": ["read"], "log_path": "/tmp/x.log", "run_id": "r"},
        {"type": "llm_call_count", "min": 1, "max": 4},
        {"type": "model_used", "not_expected": "claude-opus-4-6"},
        {"type": "trace_duration", "max_ms": 30000},
        {"type": "trace_cost", "max_usd": 0.05},
        {"type": "no_span_errors"},
        {"type": "tool_not_called", "tool": "resend.send", "log_path": "/tmp/x.log", "run_id": "r"},
        {"type": "delegation_occurred", "to_agent": "agents-brand", "log_path": "/tmp/x.log", "run_id": "r"},
        {"type": "token_budget", "log_path": "/tmp/x.log", "run_id": "r", "max_total_tokens": 12000},
        {"type": "per_span_budget", "max_tokens": 8000, "span_type": "llm"},
        {"type": "per_span_budget", "max_tokens": 4000, "span_name": "summarize"},
        {"type": "tool_call_count", "count": 3},
    ):
        assert parse_assertion(written).type_name == written["type"]
