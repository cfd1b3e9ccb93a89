"""`clawtrace.expect`: one function for each assertion type."""

from __future__ import annotations

import inspect

import pytest

from clawtrace import expect
from clawtrace.assertions.problems import InvalidAssertionError
from clawtrace.assertions.registry import all_types, names, parse_assertion
from clawtrace.expect import tool_sequence


def test_every_type_has_its_function():
    """What the registry knows can be imported, and says what it is."""
    assert dir(expect) == names()
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
        (lambda: expect.tool_sequnce, AttributeError, "did you mean `tool_sequence`"),
        (lambda: expect._nothing, AttributeError, "has no attribute '_nothing'"),
        (lambda: tool_sequence(), InvalidAssertionError, "`expected` is missing"),
        (lambda: tool_sequence(["a"], expected=["b"]), TypeError, "two values for `expected`"),
        (lambda: tool_sequence(["a"], "strict"), TypeError, "only `expected` may come without its name"),
        (lambda: expect.trace_token_budget(5), TypeError, "each needs its name"),
        (lambda: tool_sequence(["a"], mod="strict"), InvalidAssertionError, "unknown field `mod`.*did you mean `mode`"),
        (lambda: tool_sequence(["a"], mode="strikt"), InvalidAssertionError, "did you mean `strict`"),
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
