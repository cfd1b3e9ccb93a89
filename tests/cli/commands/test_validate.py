"""`clawtrace validate`: everything that is wrong in a project's files, where it is, and what would be right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import Result

Invoke = Callable[..., Result]

CASE = """\
schema_version: 1
case_id: {case}
title: A case
tags: [{tags}]
runner: {{type: command, command: "true"}}
input: {{messages: []}}
assertions:
  - type: no_span_errors
"""


def write(folder: Path, name: str, text: str) -> None:
    """Write one file below the project."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")


def case(folder: Path, name: str, tags: str = "main", more: str = "") -> None:
    """Write a case."""
    write(folder, f"configs/cases/{name}/test.yaml", CASE.format(case=name, tags=tags) + more)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with nothing wrong in it: a suite that selects one case."""
    write(tmp_path, "clawtrace.yaml", "outputs: results\n")
    write(
        tmp_path,
        "configs/suites/main.yaml",
        """\
        schema_version: 1
        suite_id: main
        title: A suite
        models: [{model_id: small}]
        case_selection: {include_tags: [main]}
        """,
    )
    case(tmp_path, "good")
    return tmp_path


def report(result: Result) -> tuple[int, list[str], list[str]]:
    """Exit code, problems and warnings, as text."""
    lines = result.stdout.splitlines()
    return (
        result.exit_code,
        [line.removeprefix("error: ") for line in lines if line.startswith("error: ")],
        [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")],
    )


def test_a_sound_project_has_nothing_to_say(invoke: Invoke, project: Path):
    """Exit 0, no warning, and every file is counted."""
    found = invoke("validate")

    assert report(found) == (0, [], [])
    assert found.stdout == "3 files: 0 problems, 0 warnings\n"


def test_problems_of_all_files_are_reported_at_once(invoke: Invoke, project: Path):
    """Project file, suite, run profile, evaluation profile, agent, case and assertions file: each with its position."""
    write(project, "clawtrace.yaml", "output: results\n")
    write(project, "configs/suites/other.yaml", "schema_version: 1\nsuite_id: others\ntitle: x\n")
    write(
        project,
        "configs/run_profiles/fast.yaml",
        "schema_version: 1\nrun_profile_id: fast\ntitle: x\nrunner_defaults: {timeout_second: 3}\n",
    )
    write(
        project,
        "configs/evaluation_profiles/plain.yaml",
        "schema_version: 1\nevaluation_profile_id: plain\ntitle: x\nsecurity_polcy: {}\n",
    )
    write(project, "configs/agents/helper/agent.yaml", "schema_version: 1\nagent_id: helpr\ntitle: x\n")
    case(project, "broken", more="  - type: tool_sequnce\n    expected: [a]\n")
    write(project, "configs/assertions/checks.yaml", "assertions:\n  - type: tool_not_invoked\n    toll: rm\n")

    code, problems, _ = report(invoke("validate"))

    assert code == 2
    expected = [
        ("clawtrace.yaml:1:1: `output`", "Did you mean `outputs`"),
        ("configs/run_profiles/fast.yaml:4:19: `runner_defaults.timeout_second`", "Did you mean `timeout_seconds`"),
        ("configs/evaluation_profiles/plain.yaml:4:1: `security_polcy`", "Did you mean `security_policy`"),
        ("configs/suites/other.yaml:2:11: `suite_id`", "must be the name of the file"),
        ("configs/agents/helper/agent.yaml:2:11: `agent_id`", "must be the name of the agent's folder"),
        ("configs/cases/broken/test.yaml:9:11:", "Did you mean `tool_sequence`"),
        ("configs/assertions/checks.yaml:3:5:", "Did you mean `tool`"),
    ]
    for place, words in expected:
        assert [line for line in problems if line.startswith(place) and words in line], (place, words, problems)


def test_a_broken_case_that_no_suite_selects_is_a_warning(invoke: Invoke, project: Path):
    """Exit 0: `eval` would not read it; the position is that of the mistake."""
    case(project, "old", tags="retired", more="  - type: tool_sequnce\n    expected: [a]\n")
    case(project, "lonely", tags="retired")

    code, problems, warnings = report(invoke("validate"))

    assert (code, problems) == (0, [])
    assert warnings[0] == "configs/cases/lonely/test.yaml: no suite selects this case"
    assert warnings[1].startswith("configs/cases/old/test.yaml:9:11: `assertions.1.type` unknown assertion type")


def test_what_is_written_as_a_case_and_is_none_is_a_warning(invoke: Invoke, project: Path):
    """By its name or its place it is not read: without a word its assertions would never be asked."""
    case(project, "there")
    text = (project / "configs" / "cases" / "there" / "test.yaml").read_text()
    for name in ("flat.yaml", "other/case.yml", "a/b/deep/test.yaml"):
        write(project, f"configs/cases/{name}", text)
    write(project, "configs/cases/there/judge.yaml", "answers: []\n")

    code, problems, warnings = report(invoke("validate"))

    assert (code, problems) == (0, [])
    assert [one.split(":")[0] for one in warnings if "is not read: cases are `NAME/test.yaml`" in one] == [
        f"configs/cases/{name}" for name in ("a/b/deep/test.yaml", "flat.yaml", "other/case.yml")
    ]


def test_what_is_odd_is_a_warning(invoke: Invoke, project: Path):
    """Overrides of unknown models, hooks that are off, rubrics without a judge, empty cases, unused agents, absent programs."""
    write(
        project,
        "configs/run_profiles/fast.yaml",
        "schema_version: 1\nrun_profile_id: fast\ntitle: x\nmodel_overrides: {smal: {timeout_seconds: 3}}\n",
    )
    write(project, "configs/agents/helper/agent.yaml", "schema_version: 1\nagent_id: helper\ntitle: x\n")
    (project / "configs/agents/helper/workspace").mkdir()
    write(project, "configs/cases/odd/hook.py", "def check(run):\n    return True\n")
    case(
        project,
        "odd",
        more="  - type: python_hook\n    path: hook.py\n    callable_name: check\nexpectations: {hard_expectations: [{text: Is kind.}]}\n",
    )
    write(
        project,
        "configs/cases/empty/test.yaml",
        CASE.format(case="empty", tags="main").partition("assertions")[0].replace('"true"', "[no-such-program]"),
    )

    code, problems, warnings = report(invoke("validate"))

    assert (code, problems) == (0, [])
    for words in (
        "`model_overrides.smal` is a model that no suite lists. Did you mean `small`?",
        "Python hooks are off",
        "`expectations` no evaluation profile has a judge",
        "configs/cases/empty/test.yaml: has no assertions",
        "the program `no-such-program` is not on PATH",
        "configs/agents/helper/agent.yaml:2:11: `agent_id` no suite and no run profile names this agent",
    ):
        assert [line for line in warnings if words in line], (words, warnings)


def test_a_known_failure_whose_day_has_passed_is_a_warning(invoke: Invoke, project: Path):
    """It counts again, and somebody should know before the next run does."""
    known = "  - {type: tool_was_called, tool: a, expect: fail, reason: A bug., until: UNTIL}\n"
    case(project, "past", more=known.replace("UNTIL", "2020-01-31"))
    case(project, "future", more=known.replace("UNTIL", "2999-01-31"))

    code, problems, warnings = report(invoke("validate"))

    assert (code, problems) == (0, [])
    assert len(warnings) == 1
    assert warnings[0].startswith("configs/cases/past/test.yaml:9:")
    assert "the known failure expired on 2020-01-31" in warnings[0]


def test_a_profile_that_allows_hooks_silences_their_warning(invoke: Invoke, project: Path):
    """One evaluation profile with hooks is enough: the case can be run with it."""
    write(project, "configs/cases/odd/hook.py", "def check(run):\n    return True\n")
    case(project, "odd", more="  - type: python_hook\n    path: hook.py\n    callable_name: check\n")
    write(
        project,
        "configs/evaluation_profiles/hooks.yaml",
        """\
        schema_version: 1
        evaluation_profile_id: hooks
        title: x
        security_policy: {allow_local_python_hooks: true, network_access: allow}
        """,
    )

    assert report(invoke("validate")) == (0, [], [])
    assert report(invoke("validate", "--suite", "main"))[0] == 2
    assert report(invoke("validate", "--suite", "main", "--evaluation-profile", "hooks"))[0] == 0


def test_a_case_may_need_a_run_profile(invoke: Invoke, project: Path):
    """What a case lacks and a run profile gives is no problem; what none gives is one."""
    text = CASE.format(case="bare", tags="main").replace(', command: "true"', "")
    write(project, "configs/cases/bare/test.yaml", text)
    without = report(invoke("validate"))
    write(
        project,
        "configs/run_profiles/fast.yaml",
        'schema_version: 1\nrun_profile_id: fast\ntitle: x\nrunner_defaults: {command: "true"}\n',
    )

    assert without[0] == 2
    assert "`runner.command` is required" in without[1][0]
    assert report(invoke("validate")) == (0, [], [])


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("configs/suites/main.yaml", ["configs/suites/main.yaml", "configs/cases/good/test.yaml"]),
        ("configs/cases/good/test.yaml", ["configs/cases/good/test.yaml"]),
        ("clawtrace.yaml", ["clawtrace.yaml", "configs/suites/main.yaml", "configs/cases/good/test.yaml"]),
        ("checks.yaml", ["checks.yaml"]),
    ],
)
def test_one_file_can_be_checked(invoke: Invoke, project: Path, name: str, files: list[str]):
    """A path of any kind of file; a suite brings its cases, the project file everything."""
    write(project, "checks.yaml", "assert:\n  - ran: make test\n")

    result = invoke("validate", name, "--json")

    assert result.exit_code == 0, result.stdout
    assert json.loads(result.stdout)["files"] == files


def test_json_has_positions_and_hints(invoke: Invoke, project: Path):
    """Machines read file, line, column, key, message and hint."""
    case(project, "broken", more="  - type: tool_sequnce\n    expected: [a]\n")

    result = invoke("validate", "--json")

    found = json.loads(result.stdout)
    assert (result.exit_code, found["schema"]) == (2, "clawtrace.validate/1")
    (problem,) = found["problems"]
    assert problem["file"] == "configs/cases/broken/test.yaml"
    assert (problem["line"], problem["column"], problem["key"]) == (9, 11, "assertions.1.type")
    assert problem["hint"] == "Did you mean `tool_sequence`?"


def test_nothing_is_run(invoke: Invoke, project: Path):
    """A case whose command would leave a file leaves none, and no folder of results is made."""
    write(
        project,
        "configs/cases/good/test.yaml",
        CASE.format(case="good", tags="main").replace('"true"', f'"touch {project}/was-run"'),
    )

    assert report(invoke("validate"))[0] == 0
    assert not (project / "was-run").exists()
    assert not (project / "results").exists()


def test_an_empty_folder_is_no_project(invoke: Invoke):
    """There is nothing to check, which is not the same as nothing wrong."""
    result = invoke("validate")

    assert result.exit_code == 2
    assert "There is nothing to check" in result.stderr


def test_the_bundled_configuration_is_sound(invoke: Invoke):
    """The examples of this checkout have no problem."""
    result = invoke("validate", str(Path(__file__).parents[3]))

    assert report(result)[:2] == (0, [])


def test_dialects_of_the_project_are_checked(project: Path, invoke: Invoke) -> None:
    """Every file of the folders that `dialects` names, with line and column; what is right is listed by `dialects`."""
    write(project, "clawtrace.yaml", "dialects: [telemetry]\n")
    write(
        project,
        "telemetry/acme.yaml",
        """\
        dialect: acme
        title: Acme's own agent
        source: acme/bot
        about: GenAI conventions.
        extends: otel-genai
        detect: {priority: 90, any: [{scope: "acme.*"}]}
        """,
    )
    assert report(invoke("validate")) == (0, [], [])
    assert "acme  Acme's own agent" in invoke("dialects").stdout
    assert "telemetry/acme.yaml" in json.loads(invoke("validate", "--json").stdout)["files"]

    write(project, "telemetry/broken.yaml", "dialect: broken\ntitle: [\n")
    write(project, "telemetry/empty.yaml", "")
    write(
        project,
        "telemetry/misspelt.yaml",
        """\
        dialect: misspelt
        title: t
        source: s
        about: a
        detect: {priority: 1, any: [{scope: "acme.*"}]}
        events:
          - log: [x]
            is: llm
            colums: {}
        """,
    )
    code, problems, _ = report(invoke("validate"))

    assert code == 2
    assert [problem.split(" ")[0] for problem in problems] == [
        "telemetry/broken.yaml:3:1:", "telemetry/empty.yaml:", "telemetry/misspelt.yaml:9:5:",
    ]  # fmt: skip
    for asked in (["--suite", "main"], ["configs/suites/main.yaml"]):
        assert report(invoke("validate", *asked))[:2] == (2, problems)
    assert report(invoke("validate", "telemetry/misspelt.yaml")) == (2, problems[2:], [])
    assert report(invoke("validate", "telemetry/acme.yaml")) == (0, [], [])
    for started in (["eval", "--suite", "main"], ["run", "--", "touch", "ran"]):
        assert invoke(*started).exit_code == 2
    assert not any((project / left).exists() for left in ("results", "ran"))
    assert problems[1] == "telemetry/empty.yaml: must be a mapping of keys"
    assert problems[2].startswith("telemetry/misspelt.yaml:9:5: `events.0.colums` is not a known key; ")


def test_what_eval_refuses_is_refused(invoke: Invoke, project: Path):
    """Two assignments that claim one case: the same words, whether the project is checked or evaluated."""
    agents = "openclaw:\n  agent_assignments:\n"
    for name in ("one", "two"):
        agents += f"    - {{agent_id: {name}, case_selection: {{include_case_ids: [good]}}}}\n"
        write(project, f"configs/agents/{name}/agent.yaml", f"schema_version: 1\nagent_id: {name}\ntitle: T\n")
        write(project, f"configs/agents/{name}/workspace/SOUL.md", "calm")
    suite = project / "configs/suites/main.yaml"
    suite.write_text(suite.read_text() + agents)
    code, problems, _ = report(invoke("validate"))

    assert code == 2
    assert problems == [
        "configs/suites/main.yaml:9:7: `openclaw.agent_assignments.1` `two` selects the case `good`, which `one` (line 8) "
        "selects as well. A case has one agent."
    ]
    assert problems[0] in invoke("eval", "--suite", "main").output


def test_variables_of_profiles_that_are_not_set_are_reported(invoke: Invoke, project: Path):
    """An agent without its key, or a hook without its address, fails in ways that look like mistakes of another kind."""
    write(
        project,
        "configs/run_profiles/p.yaml",
        """\
        schema_version: 1
        run_profile_id: p
        title: P
        runner_defaults: {pass_env: [NO_SUCH_KEY, "NONE_*", PATH]}
        """,
    )
    write(
        project,
        "configs/evaluation_profiles/e.yaml",
        """\
        schema_version: 1
        evaluation_profile_id: e
        title: E
        security_policy: {allow_local_python_hooks: true, network_access: allow, pass_env: [NO_SUCH_URL, "NONE_*", PATH]}
        """,
    )
    hooks = "configs/evaluation_profiles/e.yaml: `NO_SUCH_URL` of `security_policy.pass_env` is not set: hooks run without it"
    code, problems, warnings = report(invoke("validate"))

    assert (code, problems) == (0, [])
    assert sorted(one.split(": ", 1)[1] for one in warnings) == [
        "`NO_SUCH_URL` of `security_policy.pass_env` is not set: hooks run without it",
        "`runner_defaults.pass_env` `NO_SUCH_KEY` is not set: agents would run without it",
    ]
    printed = invoke("eval", "--suite", "main", "--evaluation-profile", "e", "--dry-run").stderr
    assert f"warning: {hooks}" in printed
