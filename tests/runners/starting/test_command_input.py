"""What the agent of a `command` runner is given (spec: config.md §3)."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners.base import Message, ModelRequested
from clawtrace.runners.command import CommandRunner

CONVERSATION = (
    Message("system", "Be brief."),
    Message("user", "first"),
    Message("assistant", "ok"),
    Message("user", "second", name="ann"),
)


def test_the_last_user_message_is_on_stdin_and_in_a_variable(bench):
    """Without `{{message}}` in the command the last user message is on stdin; `CLAWTRACE_MESSAGE` always has it."""
    outcome = bench.run(command='cat; echo "/$CLAWTRACE_MESSAGE"', messages=CONVERSATION)

    assert outcome.final_output == "second/second"


def test_a_command_that_takes_the_message_gets_nothing_on_stdin(bench):
    """With `{{message}}` in the arguments stdin is empty, so that no agent reads its question twice."""
    outcome = bench.run(command=["sh", "-c", 'echo "$0"; cat', "{{message}}"], messages=CONVERSATION)

    assert outcome.final_output == "second"


def test_all_messages_as_json(bench):
    """`input: json` writes the whole conversation, with names where there are any."""
    outcome = bench.run(command=["cat"], input="json", messages=CONVERSATION)

    assert json.loads(outcome.final_output) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "second", "name": "ann"},
    ]


def test_stdin_of_the_cases_own(bench):
    """`stdin` is a text with templates."""
    outcome = bench.run(command=["cat"], stdin="Q: {{message}} ({{case_id}})")

    assert outcome.final_output == "Q: hello (case)"


@pytest.mark.parametrize("command", ["echo {{message}}", 'echo "{{message}}"', "echo '{{message}}'"])
def test_a_message_is_never_shell_code(bench, command):
    """However a shell text quotes it, a message that looks like code is printed and not run."""
    hostile = "a  'b' \"c\" $(touch pwned) `touch pwned`; touch pwned\nend"
    outcome = bench.run(command=command, messages=(Message("user", hostile),))

    assert outcome.final_output == hostile
    assert outcome.changes["created"] == []


def test_values_reach_arguments_variables_and_folders(bench):
    """Every general template stands for the run's own value, the same in all strings."""
    outcome = bench.run(
        command=["sh", "-c", 'echo "$0|$A|$(pwd)|$PORT"', "{{run_id}} {{model_id}} {{env.WHO}}"],
        base_env={"WHO": "ann", "GONE": "1"},
        env={"A": "{{case_dir}}", "PORT": 8080, "GONE": None},
        pass_env=["GONE"],
        setup=["mkdir inner"],
        cwd="inner",
        model_id="m1",
    )
    workspace = outcome.workspace

    assert outcome.final_output == f"suite/-/case/1-0001 m1 ann|{bench.case_dir}|{workspace}/inner|8080"
    assert bench.run(command="echo ${GONE-unset}", base_env={"GONE": "1"}).final_output == "unset"
    assert bench.run(command="echo $GONE", base_env={"GONE": "1"}, pass_env=["GONE"]).final_output == "1"


def test_an_unset_variable_in_a_template_is_an_error(bench):
    """`{{env.NAME}}` never becomes an empty text by accident."""
    with pytest.raises(RunnerError, match=r"`\{\{env.NOT_SET_ANYWHERE\}\}` has no value"):
        bench.run(command=["true", "{{env.NOT_SET_ANYWHERE}}"])


def test_what_was_inserted_is_not_read_again(bench):
    r"""A message that holds a template is data; `\{{name}}` writes the braces."""
    outcome = bench.run(command=["echo", "{{message}}", "\\{{run_id}}"], messages=(Message("user", "{{case_id}}"),))

    assert outcome.final_output == "{{case_id}} {{run_id}}"


def test_the_model_reaches_the_agent(bench):
    """The model's id, or what the suite requests, and its own keys are in variables."""
    command = 'echo "$CLAWTRACE_MODEL_ID $CLAWTRACE_REQUESTED_MODEL $CLAWTRACE_MODEL_SETTINGS"'
    request = replace(bench.request(command=command), asked=ModelRequested("mini", "openai/mini", {"effort": "low"}))
    outcome = CommandRunner().run(request, bench.target, bench.stop)

    assert outcome.final_output == 'mini openai/mini {"effort": "low"}'
    assert bench.run(command="echo $CLAWTRACE_REQUESTED_MODEL", model_id="m1").final_output == "m1"


def test_a_long_output_keeps_its_end(bench):
    """Of an output beyond 4 MiB the last part is the answer; the file has all of it."""
    outcome = bench.run(command=[sys.executable, "-c", "print('x' * 5_000_000 + 'end')"])

    assert len(outcome.final_output) < 4 * 1024 * 1024 + 1
    assert outcome.final_output.endswith("end")
    assert outcome.stdout.stat().st_size == 5_000_004


def test_a_message_that_no_argument_can_hold(bench):
    """A NUL character reaches the agent on stdin, and is explained where it cannot."""
    message = (Message("user", "a\0b"),)

    assert bench.run(command=["cat"], messages=message).final_output == "a\0b"
    with pytest.raises(RunnerError, match="`echo` cannot be passed a text with a NUL character"):
        bench.run(command=["echo", "{{message}}"], messages=message)
