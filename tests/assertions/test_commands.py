"""Assertions on commands: what is refused when they are loaded, what a pattern may hide, and how much a message shows."""

import pytest
from assertion_facts import rows_of

from clawtrace.assertions.commands.commands import SHOWN, _anchored
from clawtrace.assertions.matching.matchers import PatternTimeoutError
from clawtrace.assertions.problems import InvalidAssertionError
from clawtrace.assertions.registry import get, parse_assertion
from clawtrace.verdicts.asking.ask import ask

MAIN = {
    "ran": "pattern",
    "not_ran": "pattern",
    "run_count": "pattern",
    "exit_code": "value",
    "output_contains": "value",
    "output_equals": "value",
    "error_contains": "value",
}

REFUSED = [
    ({"type": "ran", "pattern": "("}, "invalid regular expression"),
    ({"type": "not_ran", "pattern": ""}, "empty"),
    ({"type": "not_ran"}, "pattern"),
    ({"type": "ran", "pattern": "a", "status": "failed"}, "valid: any, ok"),
    ({"type": "run_count", "pattern": "a"}, "needs at least one of `min` or `max`"),
    ({"type": "run_count", "pattern": "a", "min": 2, "max": 1}, "greater than"),
    ({"type": "exit_code", "value": "0"}, "whole number"),
    ({"type": "exit_code", "value": True}, "whole number"),
    ({"type": "exit_code", "value": 0, "of": "first"}, "of"),
    ({"type": "exit_code", "value": 0, "of": {"matching": "("}}, "invalid regular expression"),
    ({"type": "output_contains", "value": ""}, "value"),
]

HIDDEN = [
    ("rm -rf", False),
    ("git (push|commit)", False),
    (r"\brm\b", False),
    (r"a\$", False),
    ("[$^]a", False),
    ("(?P<x>a)(?:b)", False),
    ("^rm", True),
    ("rm$", True),
    (r"\Arm", True),
    ("(?!sudo)rm", True),
    ("(?<=;)rm", True),
]


@pytest.mark.parametrize(("name", "field"), MAIN.items())
def test_a_scalar_fills_the_main_field(name, field):
    assert get(name).main_field == field


@pytest.mark.parametrize(("written", "words"), REFUSED, ids=[str(written) for written, _ in REFUSED])
def test_t8_t9_what_cannot_be_asked_is_refused_when_it_is_loaded(written, words):
    """T8, T9: a wrong pattern is never a substring, a missing bound never a pass."""
    with pytest.raises(InvalidAssertionError) as refused:
        parse_assertion(written)

    assert words in str(refused.value)


@pytest.mark.parametrize(("pattern", "hidden"), HIDDEN)
def test_a_pattern_that_looks_beyond_its_match_may_be_in_a_part_and_not_in_the_whole(pattern, hidden):
    assert _anchored(pattern) is hidden


def one(facts, written, described):
    facts.load(rows_of("r1", described))
    asked = ask(facts, parse_assertion(written), ["r1"])
    return asked.assertion.explain(asked.outcomes[0])


def test_a_message_shows_two_thousand_characters(duck):
    """The whole text is looked at; a message shows its beginning."""
    command = {"text": "echo " + "a" * 5000 + " needle", "output": "b" * 5000 + " needle"}
    ran = one(duck, {"type": "ran", "pattern": "needle"}, {"commands": [command]})
    printed = one(duck, {"type": "output_contains", "value": "needle"}, {"commands": [command]})

    assert ran.count("a") < SHOWN < 2 * ran.count("a")
    assert "…" in ran
    assert SHOWN - 10 < printed.count("b") < SHOWN + 10
    assert "is not" not in printed


def test_a_pattern_that_takes_too_long_is_an_error(duck):
    """It is neither a match nor none."""
    with pytest.raises(PatternTimeoutError):
        one(duck, {"type": "not_ran", "pattern": "(a|aa)+$"}, {"commands": ["a" * 5000 + "b"]})
