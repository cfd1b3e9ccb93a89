"""What every assertion accepts: each mistake in it is reported with its field, in these words."""

import pytest

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion

PLAIN = {"type": "no_span_errors"}
KNOWN = {"expect": "fail", "reason": "known", "until": "2026-12-01"}
BAD = {
    "turn 0": ({"turn": 0}, "turn", "must be the number of a turn, counted from 1, or `last`, found 0"),
    "turn is true": ({"turn": True}, "turn", "must be the number of a turn, counted from 1, or `last`, found True"),
    "turn in words": ({"turn": "first"}, "turn", "must be the number of a turn, counted from 1, or `last`, found 'first'"),
    "empty agent": ({"agent": ""}, "agent", "an empty text matches nothing"),
    "t9 regex": ({"agent": "re:("}, "agent", "invalid regular expression '(': missing ), unterminated subpattern at character 1"),
    "agent is a list": ({"agent": ["a"]}, "agent", "must be text, found the list ['a']"),
    "dimension": ({"dimensions": ["taks"]}, "dimensions", "'taks' is not valid; valid: task, process, autonomy, closeness, efficiency, spark"),
    "one dimension": ({"dimensions": "task"}, "dimensions", "must be a list, found the text 'task'"),
    "percent": ({"min_pass_rate": 80}, "min_pass_rate", "must be at most 1, found the number 80"),
    "no rate": ({"min_pass_rate": 0}, "min_pass_rate", "must be more than 0, found the number 0"),
    "expect": ({"expect": "pass"}, "expect", "'pass' is not valid; valid: fail"),
    "no reason": ({"expect": "fail", "until": "2026-12-01"}, "reason", "`expect: fail` needs `reason`: what is known to be wrong"),
    "empty reason": (KNOWN | {"reason": ""}, "reason", "must not be empty"),
    "no day": (
        {"expect": "fail", "reason": "known"},
        "until",
        "`expect: fail` needs `until`: the day on which to look at it again, such as 2026-11-20",
    ),
    "no such day": (KNOWN | {"until": "2026-02-30"}, "until", "must be a date such as 2026-11-20, found '2026-02-30'"),
    "a day in numbers": (KNOWN | {"until": 20261201}, "until", "must be a date such as 2026-11-20, found 20261201"),
    "a time": (KNOWN | {"until": "2026-12-01T10:00:00"}, "until", "must be a date such as 2026-11-20, found '2026-12-01T10:00:00'"),
    "dead reason": ({"reason": "known"}, "reason", "`reason` belongs to `expect: fail`, which is not given"),
    "dead day": ({"until": "2026-12-01"}, "until", "`until` belongs to `expect: fail`, which is not given"),
    "known and rated": (
        KNOWN | {"min_pass_rate": 0.5},
        "min_pass_rate",
        "`min_pass_rate` and `expect: fail` exclude each other: a known failure has no rate",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "field", "message"), BAD.values(), ids=BAD)
def test_a_mistake_is_reported_with_its_field(fields, field, message) -> None:
    with pytest.raises(InvalidAssertionError) as caught:
        parse_assertion(PLAIN | fields)

    (problem,) = caught.value.problems
    assert (problem.path[0], problem.message) == (field, message)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"type": "agent_exit_code", "agent": "a"}, "`agent` cannot be used here: the exit code is that of the whole process."),
        (
            {"type": "sql", "select": "SELECT 1 WHERE :run_id <> ''", "turn": 1},
            "`turn` cannot be used here: put the condition into the SELECT, on `agent_span_id` or `turn`.",
        ),
    ],
)  # fmt: skip
def test_a_type_without_a_scope_says_why(written, message) -> None:
    with pytest.raises(InvalidAssertionError) as caught:
        parse_assertion(written)

    assert [problem.message for problem in caught.value.problems] == [message]


def test_what_is_right_is_read() -> None:
    found = parse_assertion(
        PLAIN | KNOWN | {"agent": "glob:w*", "turn": "last", "dimensions": ["task", "spark", "task"]}
    )

    assert (found.expects_failure, str(found.until), found.turn) == (True, "2026-12-01", "last")
    assert found.agent("writer")
    assert not found.agent("ghostwriter")
    assert found.dimensions == ("task", "spark")
