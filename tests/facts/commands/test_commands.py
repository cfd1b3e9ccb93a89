"""The relation `commands`, from spans and from recordings of real agents, and what its assertions say of those."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from building import Lab, S, agent, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

RECORDINGS = Path(__file__).parents[2] / "recordings"
SHELLS = {glob for dialect in load_dialects() for rule in dialect.file.shell for glob in rule.tools}
"""Tools that run shell commands, as the dialects say."""


def ran(id: str, command: object, result: object = None, *, at: int = 1, name: str = "bash", **more: str) -> S:
    """A call of a shell tool."""
    given = {"gen_ai.tool.call.arguments": command if isinstance(command, str) else json.dumps({"command": command[0]})}
    outcome = {} if result is None else {"gen_ai.tool.call.result": json.dumps(result)}
    return tool(id, "a", at=at, tool=name, **given, **outcome, **more)


class TestRows:
    def test_the_whole_and_each_command_in_it(self, lab: Lab) -> None:
        lab.put(agent("a"), ran("t", ["cd x && sudo git push"], {"exit_code": 0, "stdout": "done"}))

        assert lab.rows("SELECT command_no, text, argv0, simple, last_no, exit_code, ok, stdout FROM commands") == [
            (1, "cd x && sudo git push", "cd", False, 4, 0, True, "done"),
            (2, "cd x", "cd", True, 2, 0, True, None),
            (3, "sudo git push", "sudo", False, 4, 0, True, None),
            (4, "git push", "git", True, 4, 0, True, None),
        ]
        assert lab.rows("SELECT DISTINCT whole FROM commands") == [("cd x && sudo git push",)]

    def test_an_envelope_of_texts_is_opened(self, lab: Lab) -> None:
        """MCP servers and OpenClaw put what a command printed into a list of parts; other JSON is what it printed."""
        printed = {
            "content": [{"type": "text", "text": '1 "row"\n'}],
            "details": {"exitCode": 3, "status": "completed"},
        }
        pictures = {"content": [{"type": "image", "data": "x"}]}
        lab.put(
            agent("a"),
            ran("t", ["psql"], printed), ran("u", ["psql"], printed["content"], at=10), ran("v", ["psql"], pictures, at=20),
        )  # fmt: skip

        assert lab.rows("SELECT output, exit_code, ok FROM commands WHERE command_no = 1 ORDER BY tool_call_no") == [
            ('1 "row"\n', 3, False), ('1 "row"\n', None, None), (json.dumps(pictures), None, None),
        ]  # fmt: skip

    def test_t22_the_last_commands_exit_code_is_of_no_other_command(self, lab: Lab) -> None:
        """T22: `make; ls` with exit code 0 says nothing of make, and with 2 too."""
        lab.put(agent("a"), ran("t", ["make; ls"], {"exit_code": 0}), ran("u", ["make; ls"], {"exit_code": 2}, at=10))

        assert lab.rows("SELECT text, exit_code, ok FROM commands WHERE simple ORDER BY tool_call_no, command_no") == [
            ("make", None, None), ("ls", 0, True), ("make", None, None), ("ls", 2, False),
        ]  # fmt: skip

    def test_of_a_chain_that_failed_the_last_command_did_not_succeed(self, lab: Lab) -> None:
        """It failed, or the shell never came to it: its exit code is unknown, and so is everything of the first."""
        lab.put(agent("a"), ran("t", ["a && b"], {"exit_code": 2}))

        assert lab.rows("SELECT text, exit_code, ok FROM commands ORDER BY command_no") == [
            ("a && b", 2, False), ("a", None, None), ("b", None, False),
        ]  # fmt: skip

    def test_a_command_that_was_not_captured_is_a_row_without_text(self, lab: Lab) -> None:
        """A shell ran something: what, is unknown."""
        arguments = ["ls -la", '{"command": "ls', '"ls"', '{"zz": "ls"}', '{"command": {"a": 1}}']
        runs = {one: tool("t", "a", at=1, tool="bash", **{"gen_ai.tool.call.arguments": one}) for one in arguments}
        runs["none"] = tool("t", "a", at=1, tool="bash")
        lab.put_each({run: (agent("a"), call) for run, call in runs.items()})

        for run in runs:
            found = lab.rows("SELECT text, argv0, whole, simple, last_no FROM commands", run)
            assert found == [(None, None, None, False, None)], run

    def test_a_call_without_a_command_runs_none(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a", at=1, tool="exec", **{"gen_ai.tool.call.arguments": '{"session": 3}'}))

        assert lab.rows("SELECT * FROM commands") == []

    def test_t15_a_failed_call_with_exit_code_0_did_neither_succeed_nor_fail(self, lab: Lab) -> None:
        lab.put(agent("a"), replace(ran("t", ["ls"], {"exit_code": 0}), error="broken pipe"))

        assert lab.rows("SELECT exit_code, ok FROM commands WHERE command_no = 1") == [(0, None)]

    def test_a_call_that_is_ok_says_nothing_of_its_command(self, lab: Lab) -> None:
        """T15: most shell tools return normally whatever the exit code was."""
        lab.put(agent("a"), ran("t", ["make"], "make: *** Error 2"))

        assert lab.rows("SELECT exit_code, ok FROM commands WHERE command_no = 1") == [(None, None)]

    def test_powershell_is_not_split(self, lab: Lab) -> None:
        lab.put(agent("a"), ran("t", ["Get-ChildItem; Remove-Item x"], name="powershell"))

        assert lab.rows("SELECT text, simple, last_no FROM commands") == [("Get-ChildItem; Remove-Item x", False, None)]

    def test_a_text_that_does_not_parse_stays_whole_and_the_run_says_so(self, lab: Lab) -> None:
        lab.put(agent("a"), ran("t", ["if ("]), ran("u", ["a" * 1_000_000], at=10))

        assert lab.rows("SELECT simple, last_no FROM commands") == [(False, None), (False, None)]
        assert lab.rows("SELECT diagnostics FROM fact_state") == [
            (json.dumps(["2 of the commands could not be split into simple ones: they are too long or not POSIX shell text."]),)
        ]  # fmt: skip

    def test_half_a_character_is_replaced(self, lab: Lab) -> None:
        lab.put(agent("a"), ran("t", '{"command": "echo \\ud800"}'))

        assert lab.rows("SELECT DISTINCT text FROM commands") == [("echo ?",)]


def recorded(paths: list[Path]) -> Session:
    session = Session.open()
    for path in paths:
        session.load_recordings([path], Grouping("one", f"{path.parent.name}/{path.name}"))
    return session


def shell_calls(path: Path) -> list[dict[str, Any]]:
    """The calls of shells in the truth of a recording that were carried out."""
    tools = json.loads((path / "truth.json").read_text(encoding="utf-8")).get("tools", [])
    return [one for one in tools if not one.get("denied") and any(fnmatchcase(one["name"], glob) for glob in SHELLS)]


def folders() -> list[Path]:
    """The recordings with shells; a heartbeat's command is no work of the agent's, and its truth does not say whose it is."""
    found = (path.parent for path in RECORDINGS.glob("*/*/truth.json") if path.parent.name != "heartbeat_noise")
    return sorted(path for path in found if shell_calls(path))


def test_the_commands_of_real_agents_are_those_that_truly_ran() -> None:
    """Each shell call of the truth is a row: with its text where the client records arguments, without it otherwise."""
    with recorded(folders()) as session:
        found: dict[str, list[str | None]] = {}
        sql = "SELECT run_id, text FROM commands WHERE command_no = 1 ORDER BY run_id, tool_call_no"
        for run_id, text in session.query(sql).rows:
            found.setdefault(run_id, []).append(text)
        known = {
            run_id for (run_id,) in session.query("SELECT run_id FROM tool_calls WHERE arguments IS NOT NULL").rows
        }
        for path in folders():
            run_id = f"{path.parent.name}/{path.name}"
            texts = [one["arguments"].get("command", one["arguments"].get("cmd")) for one in shell_calls(path)]

            assert found.get(run_id, []) == (texts if run_id in known else [None] * len(texts)), run_id


ASKED = [
    ("claude-code/delegation", {"type": "ran", "pattern": "^echo hi", "status": "ok"}, "pass"),
    ("claude-code/delegation", {"type": "not_ran", "pattern": "^rm"}, "pass"),
    ("claude-code/delegation", {"type": "not_ran", "pattern": "echo"}, "fail"),
    ("claude-code/delegation", {"type": "run_count", "pattern": "echo", "min": 1, "max": 1}, "pass"),
    ("claude-code/delegation", {"type": "output_equals", "value": "hi"}, "pass"),
    ("claude-code/delegation", {"type": "exit_code", "value": 0}, "pass"),
    ("claude-code/commands", {"type": "ran", "pattern": "^echo harmless", "status": "ok"}, "pass"),
    ("claude-code/commands", {"type": "not_ran", "pattern": "touch made"}, "pass"),
    ("claude-code/commands", {"type": "ran", "pattern": "^grep nope", "status": "ok"}, "inconclusive"),
    ("claude-code/commands", {"type": "ran", "pattern": "^touch late", "status": "ok"}, "inconclusive"),
    ("claude-code/commands", {"type": "exit_code", "value": 0}, "inconclusive"),
    ("claude-code/commands", {"type": "llm_call_count", "include_failed": True, "count": 6}, "pass"),
    ("codex/delegation", {"type": "ran", "pattern": "^echo hi"}, "pass"),
    ("codex/delegation", {"type": "ran", "pattern": "^echo hi", "status": "ok"}, "pass"),
    ("codex/delegation", {"type": "output_contains", "value": "hi"}, "pass"),
    ("codex/delegation", {"type": "output_equals", "value": "hi"}, "inconclusive"),
    ("codex/delegation", {"type": "output_equals", "value": "bye"}, "fail"),
    ("gemini-cli/delegation", {"type": "error_contains", "value": "no such file"}, "fail"),
    ("openclaw/exec_exit_code", {"type": "ran", "pattern": "^echo"}, "inconclusive"),
    ("openclaw/exec_exit_code", {"type": "not_ran", "pattern": "^rm"}, "inconclusive"),
    ("openclaw/exec_exit_code", {"type": "exit_code", "value": 0}, "fail"),
    ("openclaw/exec_exit_code", {"type": "exit_code", "value": 3, "of": {"matching": "^echo"}}, "inconclusive"),
    ("claude-code/delegation", {"type": "ran", "pattern": "^echo", "agent": "general-purpose"}, "pass"),
    ("claude-code/delegation", {"type": "tool_call", "tool": "Bash", "args": {"command": "re:^echo"}, "status": "ok"}, "pass"),
    ("codex/delegation", {"type": "tool_call", "tool": "exec_command", "args": {"cmd": "echo hi"}}, "pass"),
    ("codex/delegation", {"type": "tool_call", "tool": "exec_command", "args": {"cmd": "re:^rm"}, "count": {"max": 0}}, "pass"),
    ("codex/delegation", {"type": "no_loops", "max_repeats": 1}, "pass"),
    ("openclaw/delegation", {"type": "tool_call", "tool": "exec", "args": {"command": "re:^rm"}, "count": {"max": 0}}, "inconclusive"),
    ("openclaw/delegation", {"type": "no_loops", "max_repeats": 1}, "pass"),
    ("claude-code/tool_denied", {"type": "not_ran", "pattern": "rm"}, "pass"),
    ("claude-code/tool_denied", {"type": "exit_code", "value": 0}, "fail"),
]  # fmt: skip


@pytest.mark.full
def test_what_is_asked_of_real_agents_commands_is_answered_truly() -> None:
    """Where the client records too little the answer is open, never a pass."""
    with recorded([RECORDINGS / name for name in sorted({name for name, _, _ in ASKED})]) as session:
        found = [
            (run_id, asked, session.evaluate([run_id], [parse_assertion(asked)])[0].verdicts[0])
            for run_id, asked, _ in ASKED
        ]

        assert [(run_id, asked, str(verdict.status)) for run_id, asked, verdict in found] == ASKED
        hints = {(run_id, asked["type"]): verdict.hint for run_id, asked, verdict in found}
        assert "arguments" in hints["openclaw/exec_exit_code", "not_ran"]
        assert "OTEL_LOG_TOOL_DETAILS" in hints["claude-code/commands", "exit_code"]


class TestCommands:
    def test_a_shell_tools_command(self, lab: Lab) -> None:
        """Text, program, exit code and output come from where the dialect says that they stand."""
        arguments, result = '{"command": "/usr/bin/git status"}', '{"exit_code": 3, "stdout": "x", "stderr": "y"}'
        call = tool("t", "a", at=1, tool="bash", **{"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result})  # fmt: skip
        lab.put(agent("a"), call)

        assert lab.rows("SELECT text, argv0, exit_code, stdout, stderr, output, simple, ok FROM commands") == [
            ("/usr/bin/git status", "git", 3, "x", "y", None, False, False),
            ("/usr/bin/git status", "git", 3, None, None, None, True, False),
        ]

    def test_a_program_with_its_arguments(self, lab: Lab) -> None:
        arguments = '{"command": ["bash", "-lc", "rm -rf /"]}'
        lab.put(agent("a"), tool("t", "a", at=1, tool="shell", **{"gen_ai.tool.call.arguments": arguments}))

        assert lab.rows("SELECT command_no, text, argv0, exit_code, simple, last_no FROM commands") == [
            (1, "bash -lc 'rm -rf /'", "bash", None, False, 3),
            (2, "bash -lc 'rm -rf /'", "bash", None, False, 3),
            (3, "rm -rf /", "rm", None, True, 3),
        ]

    def test_other_tools_run_no_command(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a", at=1, **{"gen_ai.tool.call.arguments": '{"command": "ls"}'}))

        assert lab.rows("SELECT * FROM commands") == []
