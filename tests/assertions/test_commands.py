"""Assertions on commands: what is refused when they are loaded, what a pattern may hide, and how much a message shows."""

import random
from itertools import product

import pytest
from assertion_facts import join, outcomes_of, rows_of

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.commands.commands import SHOWN, _anchored
from clawtrace.assertions.matching.matchers import PatternTimeoutError
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
    ({"type": "run_count", "pattern": "a"}, "needs at least one of `count`, `min` or `max`"),
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
    return asked.assertion.explain(outcomes_of(asked)[0])


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


def worlds(commands):
    """Every way in which the commands of a run may have been: those in doubt ran or not, an unknown exit code is one."""
    ways = [
        [
            {"text": one["text"], "exit_code": code}
            for code in ([0, 1] if one["exit_code"] is None else [one["exit_code"]])
        ]
        + ([] if one["certain"] else [None])
        for one in commands
    ]
    return [[one for one in world if one is not None] for world in product(*ways)]


def makes(world):
    return [one for one in world if one["text"] == "make"]


def ended(of):
    return lambda world: bool(world) and of([one["exit_code"] == 0 for one in world])


ASKED = [
    ({"type": "ran", "pattern": "make"}, lambda world: bool(makes(world))),
    (
        {"type": "ran", "pattern": "make", "status": "ok"},
        lambda world: any(not one["exit_code"] for one in makes(world)),
    ),
    ({"type": "not_ran", "pattern": "make"}, lambda world: not makes(world)),
    ({"type": "run_count", "pattern": "make", "min": 1, "max": 2}, lambda world: 1 <= len(makes(world)) <= 2),
    ({"type": "exit_code", "value": 0}, ended(lambda fits: fits[-1])),
    ({"type": "exit_code", "value": 0, "of": "any"}, ended(any)),
    ({"type": "exit_code", "value": 0, "of": "all"}, ended(all)),
    ({"type": "exit_code", "value": 0, "of": {"matching": "make"}}, lambda w: ended(lambda fits: fits[-1])(makes(w))),
]


def test_an_answer_is_what_holds_in_every_world(duck):
    """Of random runs whose commands may not have run, or ended nobody knows how."""
    rng = random.Random(7)
    runs = {
        f"r{place}": [
            {
                "text": rng.choice(["make", "ls"]),
                "exit_code": rng.choice([0, 0, 1, None]),
                "certain": rng.random() < 0.6,
            }
            for _ in range(rng.randint(0, 4))
        ]
        for place in range(150)
    }
    duck.load(join(rows_of(run_id, {"commands": commands} if commands else {}) for run_id, commands in runs.items()))
    for written, holds in ASKED:
        found = {
            outcome.run_id: outcome.holds for outcome in outcomes_of(ask(duck, parse_assertion(written), list(runs)))
        }
        for run_id, commands in runs.items():
            answers = {holds(world) for world in worlds(commands)}
            assert found[run_id] is (answers.pop() if len(answers) == 1 else None), (written, commands)
