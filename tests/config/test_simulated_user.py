"""Who plays the user of a case: what is wrong with it is said with file, line and column (`input.user`)."""

from __future__ import annotations

import pytest

HEAD = "schema_version: 1\ncase_id: a\ntitle: A\nrunner: {type: command, command: [x]}\ninput:\n  user:\n"
USER = "    goal: a refund\n    model: m\n"
AT = "configs/cases/a/test.yaml"


@pytest.fixture
def problems(files):
    """Return the problems of a case whose lines from the sixth on are given."""
    files.suite()

    def found(text: str, head: str = HEAD) -> list[str]:
        files.case("a", text=head + text)
        return files.problems()

    return found


def test_the_defaults(files):
    """A goal and a model are enough: eight turns, and the first message is the model's."""
    files.suite()
    files.case("a", text=HEAD + USER)
    (case,) = files.load().cases
    user = case.config.input.user

    assert (user.max_turns, user.opening, user.persona, user.facts, user.options) == (8, None, "", {}, {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("    goal: a refund\n", "7:5: `input.user.model` is required"),
        ("    model: m\n", "7:5: `input.user.goal` is required"),
        (USER + "    max_turns: 0\n", "9:16: `input.user.max_turns` must be greater than or equal to 1, found 0"),
        (USER + "    goals: x\n", "9:5: `input.user.goals` is not a known key"),
        (USER + "    opening: ''\n", "9:14: `input.user.opening` text should have at least 1 character"),
        (USER + "    facts: [x]\n", "9:12: `input.user.facts` must be a mapping or text, found a list"),
        (USER + "    persona: '{{who}}'\n", "9:14: `input.user.persona` `{{who}}` is not a known template"),
        (USER + "    base_url: '{{env.URL}}'\n", "9:15: `input.user.base_url` "),
        (USER + "    request_options: {api_key: x}\n", "7:5: `input.user` `api_key` does not belong in a file"),
        (USER + "  turns: [{role: user, content: x}]\n", "7:5: `input.user` `turns` say what the user says"),
        (USER + "  messages: [{role: user, content: x}]\n", "7:5: `input.user` the last of `messages` is a user's"),
    ],
    ids=lambda one: one.strip().splitlines()[-1].strip()[:30],
)
def test_mistakes(problems, text, says):
    """Each is one problem, at its key."""
    (found,) = problems(text)

    assert found.startswith(f"{AT}:{says}")


def test_a_replay_has_no_one_to_talk_to(problems):
    """A runner that starts no agent is refused."""
    head = HEAD.replace("command, command: [x]", "replay, traces: [test.yaml]")
    (found,) = problems(USER, head)

    assert found == f"{AT}:7:5: `input.user` a `replay` runner starts no agent, so that there is nobody to talk to"


def test_setup_has_no_message_without_an_opening(problems, files):
    """What runs before the agent cannot use a message that the model has not written yet."""
    head = HEAD.replace("command: [x]", "command: [x], setup: ['echo {{message}}']")
    (found,) = problems(USER, head)
    files.case("a", text=head + USER + "    opening: hello\n")

    assert "before the agent starts, when the model has said nothing yet. Give an `opening`." in found
    assert files.load().cases


def test_messages_before_the_conversation(files):
    """Earlier messages may end with the agent's."""
    files.suite()
    more = "  messages: [{role: system, content: s}, {role: user, content: u}, {role: assistant, content: a}]\n"
    files.case("a", text=HEAD + USER + more)

    assert files.load().cases[0].config.input.user is not None
