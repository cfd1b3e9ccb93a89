"""What a case gives its agent: turns, attachments, context (spec: config.md §1, §3)."""

from __future__ import annotations

import hashlib

import pytest

from clawtrace.runners.base import Message

HEAD = "schema_version: 1\ncase_id: a\ntitle: A\nrunner: {{type: command, command: [x]{more}}}\ninput:\n"


@pytest.fixture
def case(files):
    """Write the case's input and load it."""
    files.suite()

    def write(text: str, more: str = ""):
        files.case("a", text=HEAD.format(more=more) + text)
        return files

    return write


class TestTurns:
    def test_they_are_user_messages_from_the_case_or_from_files(self, case, files):
        """Turns are read like messages: inline, a text file, or a list in a file."""
        files.write("configs/cases/a/more.yaml", "- {role: user, content: two}\n- {role: user, content: three}\n")
        (loaded,) = (
            case("  turns:\n    - {role: user, content: one}\n    - {role: user, source: {path: more.yaml}}\n")
            .load()
            .cases
        )

        assert loaded.conversation.turns == (Message("user", "one"), Message("user", "two"), Message("user", "three"))
        assert loaded.conversation.messages == ()

    def test_only_the_user_takes_turns(self, case, files):
        """Another role among the turns is a mistake, also inside of a file."""
        files.write("configs/cases/a/more.yaml", "role: assistant\ncontent: two\n")
        case("  turns:\n    - {role: system, content: one}\n    - {role: user, source: {path: more.yaml}}\n")

        assert files.problems() == [
            "configs/cases/a/test.yaml:7:7: `input.turns.0` a turn is a user message, found a message of role 'system'",
            "configs/cases/a/test.yaml:8:7: `input.turns.1` a turn is a user message, found a message of role 'assistant'",
        ]

    def test_a_turn_is_a_user_message(self, case):
        """A command that uses `{{message}}` is satisfied by turns; templates in them are checked."""
        case("  turns: [{role: user, content: hi}]\n").load()
        files = case("  turns: [{role: user, content: '{{todya}}'}]\n")

        (problem,) = files.problems()
        assert problem.startswith("configs/cases/a/test.yaml:6:33: `input.turns.0.content` `{{todya}}` is not a known")
        assert problem.endswith("Did you mean `today`?")

    def test_what_is_not_sent_is_said(self, case):
        """With `input: text` an agent gets the last user message alone: a case that says more gives one warning."""
        more = "  messages: [{role: system, content: s}, {role: user, content: u}]\n"

        assert case(more).load().warnings == (
            "the agent of `a` gets only the last user message; set `input: json` in the runner to send all messages",
        )
        assert case(more, ", input: json").load().warnings == ()
        assert case("  messages: [{role: user, content: u}]\n").load().warnings == ()


class TestAttachments:
    def test_a_file_becomes_a_message_of_exactly_this_form(self, case, files):
        """The file is named and fenced; its text is taken as it is, templates and line ends included."""
        files.write("configs/cases/a/notes/todo.md", "buy {{milk}}\n")
        (files.root / "configs/cases/a/raw.txt").write_bytes(b"a\r\nb")
        text = "  messages: [{role: user, content: u}]\n  attachments: [notes/todo.md, raw.txt]\n"
        (loaded,) = case(text, ", input: json").load().cases
        todo, raw = loaded.conversation.attachments

        assert todo.message() == Message(
            "user",
            "Attached context file: todo.md\n--- BEGIN ATTACHMENT todo.md ---\nbuy {{milk}}\n"
            "--- END ATTACHMENT todo.md ---",
        )
        assert raw.message().content.splitlines(keepends=True)[2:4] == ["a\r\n", "b\n"]
        assert (todo.sha256, todo.size) == (hashlib.sha256(b"buy {{milk}}\n").hexdigest(), 13)

    def test_it_exists_and_is_text(self, case, files):
        """A missing file and one that is no text are found when the case is loaded."""
        files.write("configs/cases/a/x", "")
        (files.root / "configs/cases/a/image.png").write_bytes(b"\x89PNG\xff")
        case("  messages: []\n  attachments: [absent.md, image.png]\n", ", input: json")

        found = files.problems()
        assert found[0] == (
            "configs/cases/a/test.yaml:7:17: `input.attachments.0` the file 'absent.md' does not exist next to the case file"
        )
        assert found[1] == "configs/cases/a/image.png:1:1: is not UTF-8 text (byte 0). Save the file as UTF-8."

    def test_an_attachment_that_no_agent_would_see_is_refused(self, case, files):
        """With `input: text` an attachment reaches no agent: the contradiction is reported before anything runs."""
        files.write("configs/cases/a/x.md", "x")
        case("  messages: [{role: user, content: u}]\n  attachments: [x.md]\n")

        assert files.problems() == [
            "configs/cases/a/test.yaml:7:16: `input.attachments` an attachment is a separate message, and the agent "
            "gets only the last message. Set `input: json` in the runner to send all messages."
        ]


class TestContext:
    def test_free_keys_are_kept(self, case):
        """Anything may stand in the context besides what two runners read."""
        (loaded,) = case("  context: {lang: en, openclaw: {expected_artifact: r.md}, deep: [{x: 1}]}\n").load().cases
        context = loaded.config.input.context

        assert context.model_extra == {"lang": "en", "deep": [{"x": 1}]}
        assert context.openclaw.expected_artifact == "r.md"

    @pytest.mark.parametrize(
        ("context", "sentence"),
        [
            ("[x]", "`input.context` must be a mapping, found a list"),
            (
                "{llm_probe: {tools: [exec_shel]}}",
                "`input.context.llm_probe.tools.0` found 'exec_shel', valid is 'exec_shell', 'write_file', 'read_file' or "
                "'web_search'. Did you mean `exec_shell`?",
            ),
            ("{llm_probe: {tools: [read_file, read_file]}}", "the tool 'read_file' is used twice"),
            ("{llm_probe: {tool: []}}", "`input.context.llm_probe.tool` is not a known key; known are `tools`."),
            ("{openclaw: {expected_artifact: ../x}}", "must be a path inside the workspace, found '../x'"),
            ("{openclaw: {expected: x}}", "is not a known key; known are `expected_artifact`"),
            ("{greeting: '{{env.ABSENT}}'}", "reads the environment variable `ABSENT`, which is not set"),
        ],
    )
    def test_what_runners_read_is_checked(self, case, context, sentence):
        """The sections of the two runners have known keys and values; templates anywhere in it are checked."""
        (problem,) = case(f"  context: {context}\n").problems()

        assert sentence in problem
