"""Matchers and arguments: what a name or a value in YAML means."""

import pytest
from pydantic import TypeAdapter, ValidationError

from clawtrace.assertions.matching import matchers
from clawtrace.assertions.matching.arguments import match_arguments
from clawtrace.assertions.matching.json_path import parse_path, without
from clawtrace.assertions.matching.matchers import Matcher, PatternTimeoutError

ADAPTER = TypeAdapter(Matcher)


@pytest.mark.parametrize(
    ("text", "value", "meant"),
    [
        ("search", "search", True),
        ("search", "Search", False),
        ("search", "search2", False),
        ("memory.search", "memory-search", False),
        ("glob:memory.*", "memory.search", True),
        ("glob:memory.*", "Memory.search", False),
        ("glob:memory.*", "xmemory.search", False),
        ("glob:git_[pc]*", "git_push", True),
        ("re:^git (push|commit)", "git push --force", True),
        ("re:push", "git push", True),
        ("re:(?=.*rm)(?=.*-rf)", "rm -rf /", True),
        ("literal:re:x", "re:x", True),
        ("literal:glob:*", "anything", False),
        ("http://x", "http://x", True),
        ("mcp:read", "mcp:read", True),
        ("literal:GET /api/*", "GET /api/*", True),
        ("gr\u00fc\u00dfe", "gr\u00fc\u00dfe", True),
        ("gr\u00fc\u00dfe", "gru\u0308\u00dfe", True),
        ("gru\u0308\u00dfe", "gr\u00fc\u00dfe", True),
        ("re:^gru\u0308", "gr\u00fc\u00dfe", True),
        ("glob:gr\u00fc*", "gru\u0308\u00dfe", True),
        ("literal: rm", " rm", True),
        ("mcp: send", "mcp: send", True),
    ],
)
def test_a_matcher_means_a_whole_name_unless_it_says_otherwise(text, value, meant):
    """Whole and case-sensitive; `glob:`, `re:` and `literal:` as written."""
    assert ADAPTER.validate_python(text)(value) is meant


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("re:(", "invalid regular expression '(': missing ), unterminated subpattern at character 1"),
        ("re:a[", "invalid regular expression 'a[': unterminated character set at character 2"),
        ("re:", "the regular expression is empty"),
        ("glob:", "the glob is empty"),
        ("", "an empty text matches nothing"),
        ("literal:", "an empty text matches nothing"),
        ("memory.*", "write 'glob:memory.*' for a pattern, 'literal:memory.*' for this name"),
        ("regex:^rm", "'regex' is not a matcher: write 're:^rm', or 'literal:regex:^rm' for a name that begins so"),
        ("RE:^rm", "write 're:^rm'"),
        ("Glob:rm_*", "write 'glob:rm_*'"),
        (" rm", "begins or ends with white space: write 'rm'; `literal:` or `re:[ ]` keeps it"),
        ("rm\n", "write 'rm'"),
        ("glob: rm_*", "write 'glob:rm_*'"),
        ("re: ^rm", "write 're:^rm'"),
    ],
)
def test_t9_an_invalid_pattern_is_refused_when_the_file_is_loaded(text, problem):
    """T9: an invalid regular expression never becomes a text that matches nothing."""
    with pytest.raises(ValidationError, match=r"(?s).*") as caught:
        ADAPTER.validate_python(text)

    assert problem in str(caught.value)


def test_a_regular_expression_that_takes_too_long_is_an_error(monkeypatch):
    """A pattern that explodes on a value ends with an error that names both, never with yes or no."""
    monkeypatch.setattr(matchers, "TIME_LIMIT_S", 0.05)
    search = ADAPTER.validate_python("re:^(?:(?:a|aa)+)+b$")
    with pytest.raises(PatternTimeoutError, match="rewrite its nested repetitions"):
        search("a" * 80)


def test_a_matcher_is_written_back_as_it_was_read():
    """Serialising gives the text."""
    assert ADAPTER.dump_python(ADAPTER.validate_python("re:^a")) == "re:^a"


ARGUMENTS = [
    # (expected, recorded, mode, ignore, met)
    ({"n": 3}, '{"n": 3.0}', "subset", (), True),
    ({"n": 3.0}, '{"n": 3}', "subset", (), True),
    ({"n": 1}, '{"n": true}', "subset", (), False),
    ({"n": True}, '{"n": 1}', "subset", (), False),
    ({"n": True}, '{"n": true}', "subset", (), True),
    ({"n": "3"}, '{"n": 3}', "subset", (), False),
    ({"n": ">=3"}, '{"n": 3}', "subset", (), True),
    ({"n": ">= 3.5"}, '{"n": 3}', "subset", (), False),
    ({"n": "<-1"}, '{"n": -2}', "subset", (), True),
    ({"n": "!=2"}, '{"n": 3}', "subset", (), True),
    ({"n": ">=3"}, '{"n": "5"}', "subset", (), False),
    ({"n": ">=3"}, '{"n": true}', "subset", (), False),
    ({"n": "literal:>=3"}, '{"n": ">=3"}', "subset", (), True),
    ({"n": "any"}, '{"n": null}', "subset", (), True),
    ({"n": "any"}, "{}", "subset", (), False),
    ({"n": "literal:any"}, '{"n": "any"}', "subset", (), True),
    ({"n": "literal:any"}, '{"n": "other"}', "subset", (), False),
    ({"n": None}, '{"n": null}', "subset", (), True),
    ({"n": None}, '{"n": 0}', "subset", (), False),
    ({"s": "re:^/tmp/"}, '{"s": "/tmp/x"}', "subset", (), True),
    ({"s": "glob:*.md"}, '{"s": "a.txt"}', "subset", (), False),
    ({"s": "gr\u00fc\u00df"}, '{"s": "gr\\u00fc\\u00df"}', "subset", (), True),
    ({"s": "gr\u00fc\u00df"}, '{"s": "gru\u0308\u00df"}', "subset", (), True),
    ({"s": "\U0001f980"}, '{"s": "\\ud83e\\udd80"}', "subset", (), True),
    ({"o": {"a": 1}}, '{"o": {"a": 1, "b": 2}}', "subset", (), False),
    ({"o": {"a": "any", "b": ">1"}}, '{"o": {"a": 1, "b": 2}}', "subset", (), True),
    ({"o": {"a": 1}}, '{"o": {"a": 1, "b": 2}}', "subset", ("$.o.b",), True),
    ({"l": [1, "re:x"]}, '{"l": [1, "xy"]}', "subset", (), True),
    ({"l": [1]}, '{"l": [1, 2]}', "subset", (), False),
    ({"a": 1}, '{"a": 1, "b": 2}', "subset", (), True),
    ({"a": 1}, '{"a": 1, "b": 2}', "exact", (), False),
    ({"a": 1, "b": 2}, '{"b": 2, "a": 1}', "exact", (), True),
    ({"a": 1}, '{"a": 1, "b": 2}', "exact", ("$.b",), True),
    (
        {"o": {"a": 1, "p": {"c": "re:x"}}},
        '{"o": {"a": 1, "b": 2, "p": {"c": "xy", "d": 3}}, "q": 4}',
        "partial",
        (),
        True,
    ),
    ({"o": {"a": 1}}, '{"o": {"b": 2}}', "partial", (), False),
    ({"l": [{"a": 1}, 2]}, '{"l": [{"a": 1, "b": 2}, 2]}', "partial", (), True),
    ({"l": [{"a": 1}]}, '{"l": [{"a": 1}, 2]}', "partial", (), False),
    ({"a": 1, "b": 2}, '{"a": 1}', "superset", (), True),
    ({"a": 1}, '{"a": 1, "b": 2}', "superset", (), False),
    ({"a": 1, "b": 2}, '{"a": 2}', "superset", (), False),
    ({"a": 1}, '"{\\"a\\": 1}"', "subset", (), True),
    ({"a": 1}, '"\\"{\\\\\\"a\\\\\\": 1}\\""', "subset", (), True),
    ({}, "", "exact", (), True),
    ({}, "null", "exact", (), True),
    ({"a": 1}, "ls -la", "subset", (), None),
    ({"a": 1}, "[1]", "subset", (), None),
    ({"a": 1}, '{"a": 1, "text": "cut o', "subset", (), None),
    ({"a": 1}, "{'a': 1}", "subset", (), None),
    ({"a": "secret"}, '{"a": "[REDACTED:key:1a2b3c4d]"}', "subset", (), None),
    ({"a": "secret", "b": 1}, '{"a": "[REDACTED:key:1a2b3c4d]", "b": 2}', "subset", (), False),
    ({"a": "Ada"}, '{"a": "[Filtered]"}', "subset", (), None),
    ({"a": "Ada", "b": 1}, '{"a": "****", "b": 2}', "subset", (), False),
    ({"a": "Ada"}, '{"a": "filtered"}', "subset", (), False),
    ({"a": "any"}, '{"a": "[REDACTED:key:1a2b3c4d]"}', "subset", (), True),
    ({"a": 12345678901234567890}, '{"a": 12345678901234567890}', "subset", (), True),
    ({"a": 1}, "[" * 100_000, "subset", (), None),
]


@pytest.mark.parametrize(("expected", "recorded", "mode", "ignore", "met"), ARGUMENTS)
def test_arguments_are_met_as_the_table_says(expected, recorded, mode, ignore, met):
    """Numbers equal by value, text whole, unknown where the record cannot tell."""
    assert match_arguments(expected, recorded, mode, ignore) is met


PATHS = [
    ("$.a", {"a": 1, "b": 2}, {"b": 2}),
    ("$['a b']", {"a b": 1}, {}),
    ('$["a"]', {"a": 1}, {}),
    ("$.a.b", {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
    ("$.l[0]", {"l": [1, 2]}, {"l": [2]}),
    ("$.l[-1]", {"l": [1, 2]}, {"l": [1]}),
    ("$.l[9]", {"l": [1, 2]}, {"l": [1, 2]}),
    ("$.l[*].id", {"l": [{"id": 1, "x": 2}, {"id": 3}]}, {"l": [{"x": 2}, {}]}),
    ("$.l[*]", {"l": [1, 2]}, {"l": []}),
    ("$.*", {"a": 1}, {}),
    ("$..id", {"id": 1, "o": {"id": 2, "l": [{"id": 3}]}}, {"o": {"l": [{}]}}),
    ("$..o.id", {"o": {"id": 2, "x": 1}}, {"o": {"x": 1}}),
    ("$.nothing.here", {"a": 1}, {"a": 1}),
    ("$.a.b", {"a": "text"}, {"a": "text"}),
]


@pytest.mark.parametrize(("path", "value", "left"), PATHS)
def test_a_path_takes_out_what_it_selects_and_nothing_else(path, value, left):
    """The supported part of JSONPath, on objects and lists; the value given stays as it was."""
    before = repr(value)

    assert without(value, (parse_path(path),)) == left
    assert repr(value) == before


@pytest.mark.parametrize("path", ["a", "$", "", "$.", "$.a[?(@.b)]", "$.a[1:2]", "$.a['b','c']", "$a"])
def test_a_path_outside_of_the_supported_part_is_refused(path):
    """Filters, slices and unions are errors, never silently nothing."""
    with pytest.raises(ValueError, match=r"path|cannot be read"):
        parse_path(path)
