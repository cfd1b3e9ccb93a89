"""Templates are checked when a file is loaded and filled in once for each run (spec: config.md §1)."""

from __future__ import annotations

import pytest

from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.errors import ConfigError
from clawtrace.runners.starting.templates import NAMES, RunValues, render

VALUES = RunValues(
    run_id="s/m/c/1-ab",
    case_id="c",
    case_dir="/case",
    model_id=None,
    workspace="/w",
    started_at=1_800_000_000.25,
    env={"HOME": "/home/ann"},
    extra={},
)


def case(files, runner: str = "command: [x]", content: str = "hello", assertions: str = "") -> None:
    files.suite()
    files.case(
        "a",
        text=f"schema_version: 1\ncase_id: a\ntitle: A\nrunner:\n  type: command\n  {runner}\ninput:\n  messages:\n"
        f"    - role: user\n      content: '{content}'\n" + assertions,
    )


def test_every_name_has_a_value():
    """Each name that is documented stands for something, on one clock."""
    known = {name: VALUES.value(name) for name in NAMES if name != "env.NAME"}

    assert known["run_started_at"] == "2027-01-15T08:00:00.250Z"
    assert known["now"].startswith(known["today"] + "T")
    assert (known["model_id"], known["workspace"], VALUES.value("env.HOME")) == ("", "/w", "/home/ann")


def test_one_pass_and_an_escape():
    """What is inserted is not read again, and a backslash keeps the braces."""
    assert render(r"{{a}} \{{a}} {{ a }} {{", lambda _: "{{b}}") == "{{b}} {{a}} {{b}} {{"


def test_unknown_names_are_errors_at_load(files):
    """In settings, messages and assertions an unknown name is an error with its place and the nearest name."""
    case(
        files,
        runner='command: [x, "{{mesage}}"]',
        content="on {{tody}}",
        assertions="assertions:\n  - {type: tool_not_invoked, tool: '{{message}}'}\n",
    )
    problems = files.problems()

    assert [problem.split(" is not a known template")[0] for problem in problems] == [
        "configs/cases/a/test.yaml:6:16: `runner.command.1` `{{mesage}}`",
        "configs/cases/a/test.yaml:10:16: `input.messages.0.content` `{{tody}}`",
        "configs/cases/a/test.yaml:12:36: `assertions.0.tool` `{{message}}`",
    ]
    assert problems[1].endswith("Did you mean `today`?")
    assert problems[0].endswith("Did you mean `message`?")


def test_an_unset_variable_is_an_error_at_load(files):
    """`{{env.NAME}}` of a variable that is not set costs no run."""
    case(files, runner='command: [x, "{{env.TOKEN}}"]')

    assert files.problems() == [
        "configs/cases/a/test.yaml:6:16: `runner.command.1` `{{env.TOKEN}}` reads the environment variable `TOKEN`, which "
        "is not set. Set it, and run the command again."
    ]
    assert files.load(env={"TOKEN": "t"}).cases


def test_a_message_may_not_hold_the_message(files):
    """`{{message}}` is known to the runner's settings only."""
    case(files, content="{{message}}")

    assert "`{{message}}` is not a known template" in files.problems()[0]


def test_assertions_are_filled_in_for_each_run(files):
    """An assertion's texts take the values of the run it judges."""
    case(files, assertions="assertions:\n  - {type: tool_not_invoked, tool: 'literal:x-{{case_id}}-{{env.WHO}}'}\n")
    (loaded,) = files.load(env={"WHO": "ann"}).cases
    (assertion,) = loaded.assertions.for_run(VALUES._replace(env={"WHO": "ann"}))

    assert loaded.assertions.has_templates
    assert assertion.tool.text == "literal:x-c-ann"
    assert assertion.id == "tool_not_invoked"


def test_a_value_can_make_an_assertion_invalid(files):
    """A value that is no regular expression is an error of that run, at the assertion's place."""
    case(files, assertions="assertions:\n  - {type: tool_not_invoked, tool: 're:{{env.P}}-{{case_id}}'}\n")
    (loaded,) = files.load(env={"P": "x"}).cases
    with pytest.raises(ConfigError, match=r"test\.yaml:12:36: `assertions\.0\.tool`"):
        loaded.assertions.for_run(VALUES._replace(env={"P": "("}))


def test_recordings_know_only_the_environment(files):
    """In a file for recordings `{{env.NAME}}` works; what a runner would know is an error at load."""
    good = files.write("good.yaml", "assertions:\n  - {type: tool_not_invoked, tool: '{{env.T}}'}\n")
    bad = files.write("bad.yaml", "assertions:\n  - {type: tool_not_invoked, tool: '{{workspace}}'}\n")
    loaded = load_assertions_file(str(good), files.project(), {"T": "rm"})

    assert loaded.assertions.parsed[0].tool.text == "rm"
    with pytest.raises(
        ConfigError, match=r"bad\.yaml:2:36: .*`\{\{workspace\}\}` has no value here: a recording has no"
    ):
        load_assertions_file(str(bad), files.project(), {})
