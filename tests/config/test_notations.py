"""Three notations, one vocabulary (spec: assertions.md §1)."""

from __future__ import annotations

import pytest

from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.errors import ConfigError


def load(files, text):
    """Return the assertions of a file."""
    return load_assertions_file(str(files.write("checks.yaml", text)), files.project(), {}).assertions.parsed


def problems(files, text):
    """Return everything that is wrong with a file, without its name."""
    with pytest.raises(ConfigError) as caught:
        load(files, text)
    return [str(problem).removeprefix("checks.yaml:") for problem in caught.value.problems]


def long(**fields):
    """Return an assertion in the long notation."""
    return parse_assertion(fields)


class TestShort:
    @pytest.mark.parametrize(
        ("entry", "fields"),
        [
            ("tool_not_invoked: rm", {"type": "tool_not_invoked", "tool": "rm"}),
            ("tool_sequence: [a, b]", {"type": "tool_sequence", "expected": ["a", "b"]}),
            ("llm_call_count: {max: 3}", {"type": "llm_call_count", "max": 3}),
            ("no_span_errors", {"type": "no_span_errors"}),
            ("no_span_errors:", {"type": "no_span_errors"}),
            ("no_span_errors: true", {"type": "no_span_errors"}),
            ("tool_not_invoked: rm\n  severity: warn", {"type": "tool_not_invoked", "tool": "rm", "severity": "warn"}),
            ("llm_call_count:\n  max: 3\n  min: 1", {"type": "llm_call_count", "max": 3, "min": 1}),
        ],
    )
    def test_it_says_the_same_as_the_long_one(self, files, entry, fields):
        """A scalar or list fills the main field, a mapping the fields; fields may stand next to the type as well."""
        (short,) = load(files, f"assert:\n- {entry}\n")

        assert short == long(id=fields["type"], **fields)

    def test_problems_stand_where_they_were_written(self, files):
        """Unknown types, wrong values, two types in an entry and repeated fields each have their place."""
        text = """\
            assert:
              - rann: x
              - llm_call_count: {mim: 3}
              - trace_token_budget: 3
              - tool_not_invoked: [a]
              - tool_not_invoked: a
                no_span_errors: true
              - tool_not_invoked: {tool: a}
                tool: b
              - type: 3
              - [x]
            """
        found = problems(files, text)

        assert found[0].startswith("2:5: `assert.0.rann` unknown assertion type 'rann'; `clawtrace assertions` lists")
        assert found[1].startswith("3:22: `assert.1.llm_call_count.mim` unknown field `mim`; valid: ")
        assert any(
            line.startswith("4:25: `assert.2.trace_token_budget` `trace_token_budget` takes a mapping of")
            for line in found
        )
        assert "5:23: `assert.3.tool_not_invoked` must be text, found the list ['a']" in found
        assert (
            "7:5: `assert.4.no_span_errors` one entry contains one assertion: `tool_not_invoked` and `no_span_errors` are two. "
            "Start a new line with `- `." in found
        )
        assert "9:5: `assert.5.tool` the field `tool` is used twice" in found
        assert any(line.startswith("10:11: `assert.6.type` must be the name of an assertion type") for line in found)
        assert any(
            line.startswith("11:5: `assert.7` an assertion is a `type` and its fields, or a type") for line in found
        )


class TestChecks:
    def test_it_says_the_same_as_the_long_one(self, files):
        """`kind` names the type, `check_id` the id; common fields stand next to the check or in it."""
        (found,) = load(
            files,
            """\
            deterministic_checks:
              - check_id: three
                severity: warn
                declarative: {kind: tool_call_count, count: 3}
            """,
        )

        assert found == long(type="tool_call_count", count=3, id="three", severity="warn")

    def test_problems_stand_where_they_were_written(self, files):
        """What is missing, what is too much, and what the type itself complains of."""
        text = """\
            deterministic_checks:
              - declarative: {kind: tool_call_count, count: 3}
              - check_id: a
              - check_id: b
                declarative: {kind: tool_call_cont, count: 3}
              - check_id: c
                declarative: {kind: tool_call_count, cont: 3}
              - check_id: d
                declarative: {kind: no_span_errors, id: x}
                dimension: [task]
              - check_id: "e f"
                declarative: {kind: no_span_errors}
            """
        found = problems(files, text)

        assert "2:5: `deterministic_checks.0.check_id` is required" in found
        assert (
            "3:5: `deterministic_checks.1` a check has exactly one of `declarative` and `python_hook`; neither is given"
            in found
        )
        assert any(
            line.startswith("5:25: `deterministic_checks.2.declarative.kind` unknown kind 'tool_call_cont'")
            and line.endswith("Did you mean `tool_call_count`?")
            for line in found
        )
        assert any(
            line.startswith("7:42: `deterministic_checks.3.declarative.cont` unknown field `cont`") for line in found
        )
        assert any(
            line.startswith("9:41: `deterministic_checks.4.declarative.id` `id` does not belong") for line in found
        )
        assert any(
            line.startswith("10:5: `deterministic_checks.4.dimension` is not a known key of a check") for line in found
        )
        assert any(line.startswith("11:15: `deterministic_checks.5.check_id` an id has letters") for line in found)


class TestTogether:
    def test_all_three_in_one_file_in_its_order(self, files):
        """Ids are unique over the notations, and the order is the file's."""
        found = load(
            files,
            """\
            assert:
              - no_span_errors
            deterministic_checks:
              - {check_id: checked, declarative: {kind: no_span_errors}}
            assertions:
              - type: no_span_errors
            """,
        )

        assert [one.id for one in found] == ["no_span_errors", "checked", "no_span_errors-2"]

    def test_an_id_twice_is_an_error_across_notations(self, files):
        """Two verdicts of one name could not be distinguished."""
        text = (
            "assertions: [{type: no_span_errors, id: x}]\n"
            "deterministic_checks: [{check_id: x, declarative: {kind: no_span_errors}}]\n"
        )
        assert problems(files, text) == [
            "2:35: `deterministic_checks.0.check_id` the id 'x' is used twice, first in line 1"
        ]

    @pytest.mark.parametrize("key", ["assertions", "assert"])
    def test_either_form_under_either_key(self, files, key):
        """What an entry looks like says which it is, not the key above it."""
        text = f"{key}:\n  - no_span_errors: true\n  - no_span_errors\n  - type: no_span_errors\n  - ran: make\n    min_pass_rate: 0.5\n"
        found = load(files, text)

        assert [one.type_name for one in found] == ["no_span_errors"] * 3 + ["ran"]
        (wrong,) = problems(files, f"{key}:\n  - no_span_error: true\n")
        assert wrong.startswith(f"2:5: `{key}.0.no_span_error` unknown assertion type")
        assert "`no_span_errors`" in wrong

    def test_the_seeds_log_fields_mean_the_current_run(self, files):
        """`run_id: "{{run_id}}"` is every recorded run itself, and `{{today}}` the day on which it is judged."""
        import datetime

        (found,) = load(
            files,
            'assert:\n- tool_not_called: {tool: rm, run_id: "{{ run_id }}", log_path: "/tmp/openclaw-{{today}}.log"}\n',
        )

        assert found.run_id is None
        assert found.log_path == f"/tmp/openclaw-{datetime.date.today().isoformat()}.log"

    def test_a_recording_has_no_preconditions(self, files):
        """It has already run."""
        (found,) = problems(files, "assertions: []\npreconditions: []\n")

        assert found == (
            "2:1: `preconditions` does not belong here: a recording has already run; preconditions belong to a case"
        )
