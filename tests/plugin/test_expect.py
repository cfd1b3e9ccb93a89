"""`clawtrace.expect`: one function for each assertion type."""

from __future__ import annotations

import inspect

import pytest

from clawtrace import expect
from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import all_types, names, parse_assertion
from clawtrace.expect import spans, tool_sequence


def test_every_type_has_its_function():
    """What the registry knows can be imported, and says what it is."""
    assert dir(expect) == sorted([*names(), "spans", "Spans"])
    for name, cls in all_types().items():
        function = getattr(expect, name)
        assert function.__name__ == name
        assert function.__doc__ == inspect.getdoc(cls)
        assert {*inspect.signature(function).parameters} == {*cls.model_fields}


def test_functions_make_what_files_make():
    """A function gives the very assertion that the long notation gives; the main field may come without its name."""
    written = parse_assertion({"type": "tool_sequence", "expected": ["a", "b"], "mode": "strict", "id": "x"})

    assert tool_sequence(["a", "b"], mode="strict", id="x") == written
    assert tool_sequence(expected=["a", "b"], mode="strict", id="x") == written
    assert tool_sequence is expect.tool_sequence


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: expect.tool_sequnce, AttributeError, "Did you mean `tool_sequence`"),
        (lambda: expect._nothing, AttributeError, "has no attribute '_nothing'"),
        (lambda: expect.tool_call(), InvalidAssertionError, "`tool` is required"),
        (lambda: tool_sequence(["a"], expected=["b"]), TypeError, "two values for `expected`"),
        (lambda: tool_sequence(["a"], "strict"), TypeError, "only `expected` may come without its name"),
        (lambda: expect.tool_call("a"), TypeError, r"each needs its name: tool_call\(tool=…\)"),
        (lambda: expect.trace_token_budget(5), TypeError, "each needs its name"),
        (lambda: tool_sequence(["a"], mod="strict"), InvalidAssertionError, "unknown field `mod`.*Did you mean `mode`"),
        (lambda: tool_sequence(["a"], mode="strikt"), InvalidAssertionError, "Did you mean `strict`"),
    ],
)
def test_mistakes_are_explained(make, error, said):
    """Names and fields that do not exist are refused, with what would be valid."""
    with pytest.raises(error, match=said):
        make()


def test_an_unknown_name_cannot_be_imported():
    """`from clawtrace.expect import …` refuses what is no type, as any import does."""
    with pytest.raises(ImportError, match="tool_sequnce"):
        from clawtrace.expect import tool_sequnce  # noqa: F401


TOOLS = spans(kind="tool")
AGENT = {"kind": "agent", "agent_name": "researcher"}


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (TOOLS.exist(), {"select": {"kind": "tool"}}),
        (TOOLS.do_not_exist(), {"select": {"kind": "tool"}, "count": 0}),
        (TOOLS.number(2), {"select": {"kind": "tool"}, "count": {"min": 2, "max": 2}}),
        (TOOLS.number(min=1, max=3), {"select": {"kind": "tool"}, "count": {"min": 1, "max": 3}}),
        (TOOLS.under(**AGENT).exist(), {"select": {"kind": "tool", "ancestor": AGENT}}),
        (TOOLS.child_of(spans(AGENT)).exist(), {"select": {"kind": "tool", "parent": AGENT}}),
        (spans(AGENT).parent_of(TOOLS).exist(), {"select": {**AGENT, "child": {"kind": "tool"}}}),
        (spans(AGENT).over(TOOLS, error="any").exist(), {"select": {**AGENT, "descendant": {"kind": "tool", "error": "any"}}}),
        (TOOLS.sibling_of(kind="llm").exist(), {"select": {"kind": "tool", "sibling": {"kind": "llm"}}}),
        (TOOLS.before(kind="llm").exist(), {"select": {"kind": "tool", "before": {"kind": "llm"}}}),
        (TOOLS.after(kind="llm").exist(), {"select": {"kind": "tool", "after": {"kind": "llm"}}}),
        (TOOLS.overlapping(TOOLS).exist(), {"select": {"kind": "tool", "overlaps": {"kind": "tool"}}}),
        ((~TOOLS).exist(), {"select": {"not": {"kind": "tool"}}}),
        ((TOOLS | spans(kind="llm")).exist(), {"select": {"or": [{"kind": "tool"}, {"kind": "llm"}]}}),
        ((TOOLS & spans(error=None)).exist(), {"select": {"kind": "tool", "error": None}}),
        (TOOLS.before(kind="llm").before(kind="agent").exist(),
         {"select": {"and": [{"kind": "tool", "before": {"kind": "llm"}}, {"before": {"kind": "agent"}}]}}),
        (TOOLS.all_are(parent=spans(AGENT)), {"select": {"kind": "tool"}, "where": {"parent": AGENT}}),
        (TOOLS.all_are(~spans(error="any")), {"select": {"kind": "tool"}, "where": {"not": {"error": "any"}}}),
        (spans({"attributes": {"a.b": ">=3"}}).exist(), {"select": {"attributes": {"a.b": ">=3"}}}),
    ],
)  # fmt: skip
def test_conditions_written_in_python_are_those_of_files(made, written):
    """`spans` gives the very assertion that a case file gives."""
    expected = parse_assertion({"type": "span_query", **written})

    assert (made.expectation(), made.form.query()) == (expected.expectation(), expected.form.query())


def test_a_mistake_in_a_condition_is_explained():
    """Columns that do not exist are refused, with the nearest."""
    with pytest.raises(InvalidAssertionError, match=r"select.parent.agent_nam.*Did you mean `agent_name`"):
        spans(kind="tool").child_of(agent_nam="x").exist()


def test_everything_can_be_imported_at_once():
    """`import *` gives every type."""
    given: dict[str, object] = {}
    exec("from clawtrace.expect import *", given)

    assert given["tool_not_invoked"](tool="rm").tool.text == "rm"
    assert "spans" in given
