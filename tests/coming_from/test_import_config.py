"""`clawtrace import-config`: what is left out is listed with its line, what is written is valid, and nothing is overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from clawtrace.cli.commands.import_config import import_config
from clawtrace.cli.main import cli
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checks(*asserts: dict[str, Any], **more: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Our assertions of promptfoo's, and what is left out."""
    test = {"vars": {"name": "Ada"}, "assert": list(asserts)}
    Path("p.yaml").write_text(yaml.safe_dump({"prompts": ["Hello {{name}}"], "tests": [test], **more}))
    found = import_config(Path("p.yaml"))
    ours = [one for case in found.cases for one, _ in case.assertions]
    return ours, [problem.message for problem in found.left_out]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"type": "contains", "value": "Hi {{name}}"}, {"contains": "Hi Ada"}),
        ({"type": "icontains", "value": "a.b"}, {"matches": r"(?i)a\.b"}),
        ({"type": "regex", "value": r"[\w.]+@\s*x$"}, {"matches": r"(?a)[\w.]+@[\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]*x\Z"}),
        ({"type": "equals", "value": {"a": [1]}}, {"json_schema": {"const": {"a": [1]}}}),
        ({"type": "is-json", "value": {"type": "object"}}, {"json_schema": {"type": "object"}}),
        ({"type": "contains", "value": "x", "weight": 0}, {"contains": "x", "severity": "warn"}),
    ],
)  # fmt: skip
def test_output(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    assert checks(theirs) == ([{"type": "final_response", **ours}], [])


def test_arguments_are_compared_as_they_are() -> None:
    """A text that would be a comparison or a pattern here stays a text."""
    ((ours,), _) = checks(
        {
            "type": "trajectory:tool-args-match",
            "value": {"name": "t", "args": {"a": ">3", "b": ["any", {"c": "re:x"}], "d": 5}},
        }
    )

    assert ours["args"] == {"a": "literal:>3", "b": ["literal:any", {"c": "literal:re:x"}], "d": 5}


def test_assertions_of_the_default_test_and_of_templates() -> None:
    ours, left_out = checks(
        {"$ref": "#/assertionTemplates/short"},
        {"type": "assert-set", "assert": [{"type": "cost", "threshold": 1}]},
        assertionTemplates={"short": {"type": "latency", "threshold": 50}},
        defaultTest={"assert": [{"type": "trajectory:tool-used", "value": "Find_*"}]},
    )

    assert ours == [
        {"type": "tool_was_called", "tool": "re:(?i)^Find_.*$"},
        {"type": "trace_duration", "max_ms": 50},
        {"type": "trace_cost", "max_usd": 1},
    ]
    assert left_out == []


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        ({"type": "llm-rubric", "value": "polite"}, "`llm-rubric` has no equal here"),
        ({"type": "trajectory:tool-usd", "value": "x"}, "Did you mean `trajectory:tool-used`?"),
        ({"type": "contains", "value": "{{name | upper}}"}, "a template of more than names of variables"),
        ({"type": "contains", "value": "{{other}}"}, "no variable `other` is a text or a whole number"),
        ({"type": "contains", "value": "x", "transform": "output.a"}, "changes what is checked"),
        ({"type": "javascript", "value": "file://check.js"}, "is in another file"),
        ({"type": "regex", "value": "(?<year>[0-9])"}, "invalid regular expression"),
        ({"type": "regex", "value": ".*"}, "matches every answer"),
        ({"type": "equals", "value": " x"}, "white space around an answer"),
        ({"type": "not-trajectory:tool-sequence", "value": ["a"]}, "that a sequence does not occur"),
        ({"type": "not-trajectory:tool-used", "value": {"name": "a", "max": 3}}, "the opposite of a range"),
        ({"type": "trajectory:tool-used", "value": "execute_tool *"}, "names a span"),
        ({"type": "trajectory:tool-used", "value": "shell"}, "is a command to promptfoo"),
        ({"type": "trajectory:step-count", "value": {"type": "command", "max": 1}}, "steps other than tool calls"),
        ({"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {}, "defaults": {}}}, "has no equal here"),
        ({"type": "not-trace-span-count", "value": {"pattern": "a", "min": 1}}, "promptfoo does not regard this `not-`"),
        ({"type": "trace-span-count", "value": {"pattern": "a"}}, "refuses it"),
        ({"type": "trajectory:tool-sequence", "value": {"steps": []}}, "refuses it"),
        ({"type": "trajectory:tool-used", "value": {"name": "a", "min": "one"}}, "expected a number"),
        ({"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {}, "ignore": 3}}, "expected a text or a list"),
        ({"type": "trace-span-count", "value": {"pattern": 3, "min": 1}}, "expected a text"),
        ({"type": "assert-set", "assert": "x"}, "has no equal here"),
    ],
)  # fmt: skip
def test_what_has_no_equal_is_left_out(theirs: dict[str, Any], why: str) -> None:
    ours, left_out = checks({"type": "cost", "threshold": 1}, theirs)

    assert ours == [{"type": "trace_cost", "max_usd": 1}]
    assert [why in message for message in left_out] == [True], left_out


@pytest.mark.parametrize("key", ["threshold", "assertScoringFunction"])
def test_a_test_whose_assertions_need_not_all_hold_is_left_out(key: str) -> None:
    ours, left_out = checks({"type": "cost", "threshold": 1}, defaultTest={key: 0.5})

    assert ours == []
    assert "need not all hold" in left_out[0]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["import-config", *arguments], prog_name="clawtrace")


CONFIG = """\
prompts: ["{{q}}"]
providers: [exec:python agent.py]
tests:
  - vars: {q: Refund 42}
    assert:
      - {type: contains, value: "42"}
      - type: similar
        value: x
  - vars: {q: 'Refund 43'}
    assert: [{type: cost, threshold: 0.5}]
"""


def test_the_command_writes_a_suite_that_loads() -> None:
    Path("p.yaml").write_text(CONFIG)

    done = run("p.yaml", "--command", "python agent.py", "--suite", "moved")

    assert done.exit_code == 0, done.output
    assert done.stdout == "wrote 2 cases with 2 assertions to configs; 2 left out\n"
    assert "left out: p.yaml:2:1: `providers`" in done.stderr
    assert "left out: p.yaml:7:15: `tests.0.assert.1.type` `similar` has no equal here" in done.stderr
    suite = load_suite("moved", load_project(), os.environ)
    assert [case.config.case_id for case in suite.cases] == ["refund-42", "refund-43"]
    assert [one.type_name for one in suite.cases[0].assertions.parsed] == ["final_response"]
    assert "# p.yaml:6:9: contains" in Path("configs/cases/refund-42/test.yaml").read_text()


@pytest.mark.parametrize(("options", "messages"), [({}, ["Hi Bob", "Hi Eve"]), ({"disableVarExpansion": True}, [])])
def test_a_variable_that_is_a_list_makes_several_tests(options: dict[str, Any], messages: list[str]) -> None:
    """Each with the assertions of its own value."""
    test = {"vars": {"name": ["Bob", "Eve"]}, "options": options, "assert": [{"type": "contains", "value": "{{name}}"}]}
    Path("p.yaml").write_text(yaml.safe_dump({"prompts": ["Hi {{name}}"], "tests": [test]}))
    found = import_config(Path("p.yaml"))

    assert [case.turns for case in found.cases] == [[message] for message in messages]
    assert [case.assertions[0][0]["contains"] for case in found.cases] == [text[3:] for text in messages]


def test_nothing_is_overwritten() -> None:
    Path("p.yaml").write_text(CONFIG)
    run("p.yaml", "--command", "x")
    before = Path("configs/cases/refund-42/test.yaml").read_text()

    done = run("p.yaml", "--command", "y", "--suite", "second")

    assert done.exit_code == 2
    assert "already exists, and nothing is overwritten" in done.stderr
    assert Path("configs/cases/refund-42/test.yaml").read_text() == before
    assert not Path("configs/suites/second.yaml").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "p.yaml:1:1: is neither a configuration of promptfoo (`tests`) nor of agentevals"),
        ("tests: [\n", "p.yaml:2:1: is not valid YAML"),
        ("tests:\n  - file://more.yaml\n", "p.yaml:2:5: `tests.0` is in another file, which is not read"),
        ("tests: []\n", "p.yaml:1:1: has no test"),
        ("tests:\n  - assert: {a: 1}\n", "p.yaml:2:13: `tests.0.assert` expected a list in this file"),
        ("eval_cases:\n  - eval_id: 3\n", "p.yaml:2:14: `eval_cases.0.eval_id` must be text, found 3"),
        ("evaluators: []\n", "p.yaml:1:1: `eval_set` is required"),
        ("evaluators:\n  - {name: x, threshold: 2}\neval_set: s.json\n", "p.yaml:2:26: `evaluators.0.threshold` "),
    ],
)
def test_a_file_without_any_check_is_an_error(text: str, message: str) -> None:
    Path("p.yaml").write_text(text)

    done = run("p.yaml", "--command", "x")

    assert done.exit_code == 2
    assert message in done.stderr
    assert not Path("configs").exists()


def turn(said: str, *calls: tuple[str, dict[str, Any]], camel: bool = False) -> dict[str, Any]:
    uses = [{"name": name, "args": args} for name, args in calls]
    data = {"intermediateData": {"toolUses": uses}} if camel else {"intermediate_data": {"tool_uses": uses}}
    return {"userContent" if camel else "user_content": {"parts": [{"text": said}]}, **data}


@pytest.mark.parametrize("camel", [False, True])
def test_an_eval_set(camel: bool) -> None:
    """The names of a set are written with underscores, or as ADK writes them."""
    turns = [turn("Roll", ("roll_die", {"sides": 20}), camel=camel), turn("Thanks", camel=camel)]
    case = {"evalId" if camel else "eval_id": "Roll a die", "conversation": turns, "rubrics": [{"rubric_id": "r"}]}
    Path("set.json").write_text(json.dumps({"evalCases" if camel else "eval_cases": [case]}))

    found = import_config(Path("set.json"))

    (imported,) = found.cases
    call = {"tool": "literal:roll_die", "args": {"sides": 20}, "match": "exact"}
    assert (imported.name, imported.turns) == ("roll-a-die", ["Roll", "Thanks"])
    assert [one for one, _ in imported.assertions] == [
        {"type": "tool_sequence", "steps": [call], "mode": "strict", "order": "start_time", "turn": 1},
        {"type": "tool_sequence", "expected": [], "mode": "strict", "turn": 2},
    ]
    assert [problem.key for problem in found.left_out] == [
        "eval_cases.0.rubrics".replace("eval_cases", "evalCases" if camel else "eval_cases")
    ]


CALLS = [{"tool": f"literal:{name}", "args": {}, "match": "exact"} for name in "ac"]


@pytest.mark.parametrize(
    ("match", "threshold", "ours"),
    [
        ("IN_ORDER", 0.9, {"steps": CALLS, "order": "start_time", "turn": 1}),
        ("ANY_ORDER", 1, {"steps": [{"any_order": CALLS}], "turn": 1}),
        ("EXACT", 0.5, None),
    ],
)  # fmt: skip
def test_the_configuration_of_an_eval_set_says_how_calls_are_compared(match: str, threshold: float, ours: Any) -> None:
    """A threshold that one of two turns may miss has no equal."""
    Path("set.json").write_text(
        json.dumps(
            {"eval_cases": [{"eval_id": "x", "conversation": [turn("q", ("a", {}), ("c", {})), turn("r", ("b", {}))]}]}
        )
    )
    Path("eval.yaml").write_text(
        dedent(f"""\
        eval_set: set.json
        evaluators:
          - {{name: tool_trajectory_avg_score, type: builtin, threshold: {threshold}, trajectory_match_type: {match}}}
          - {{name: response_match_score, type: builtin}}
        """)
    )

    found = import_config(Path("eval.yaml"))

    assert str(found.left_out[0]).startswith("eval.yaml:4:5: `evaluators.1` compares answers by ROUGE-1")
    if ours is None:
        assert "accepts that a part of its turns differs" in found.left_out[1].message
        assert found.cases == []
    else:
        assert found.cases[0].assertions[0][0] == {"type": "tool_sequence", **ours}
