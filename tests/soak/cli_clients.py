"""Coding agents as clients of the soak: how each is started, which of its tools the model calls, and what its refusals say."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "live_agents"))

from agents_install import PACKAGES, install

MARKS = "marks.txt"
"""File in the workspace into which each shell command writes that it ran."""


@dataclass(frozen=True)
class Shell:
    """A tool that runs commands."""

    tool: str
    key: str
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments."""
    limit: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that end a command after a short while; empty where there are none."""
    limit_fails: bool = True
    """Whether a call that was ended so has failed."""


@dataclass(frozen=True)
class Client:
    """One program: every fact of it that the soak needs."""

    name: str
    package: str
    start: tuple[str, ...]
    """Command line before the user's words."""
    resume: tuple[str, ...]
    """Command line of a further turn."""
    shell: Shell
    read: tuple[str, str]
    """Tool that reads a file and the name of its path."""
    write: tuple[str, str, str] | None
    """Tool that writes a file, and the names of path and content."""
    helper: tuple[str, Mapping[str, Any], str] | None
    """Tool that starts a sub-agent, its arguments other than the prompt, and the name of the prompt."""
    helper_name: str
    """Name of the sub-agent; the agent's own is `main`."""
    refused: str
    """Regular expression of the results of calls that no tool was started for."""
    unclear: str = r"(?!)"
    """Regular expression of the results of failed calls that may be said to have been executed, or not."""
    failed: str = r"(?!)"
    """Regular expression of the results of failed calls, where the protocol has no mark for them."""
    versions: tuple[str, str] = ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20")
    """Models that answers name, the second one now and then."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further variables; ``{url}`` is the model of the run, ``{home}`` its home."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files in its home; ``{url}`` is the model of the run."""
    relative_paths: bool = False
    cuts_arguments: bool = True
    """Whether the protocol can carry arguments that are no JSON."""
    main: str = ""
    """Name of the agent, where it is not the client's."""
    named_agents: bool = True
    counts_itself: bool = False
    seconds: float = 120
    """Time limit of one command."""

    def install(self, _: ExitStack) -> tuple[Path, Mapping[str, str]]:
        """Return the folder of its programs and more of its environment; what must be there until the end is put on the stack.

        Raises:
            CannotInstallError: this machine cannot have it.
        """
        return install(self.package), {}

    def commands(self, _: Place, turns: Sequence[str]) -> list[list[str]]:
        """Return the command lines of a run, one after the other."""
        return [[*(self.resume if number else self.start), words] for number, words in enumerate(turns)]

    def logs(self, _: Path) -> Sequence[Path]:
        """Return the transcripts that a run left in its folder; none where its spans are judged alone."""
        return ()


@dataclass(frozen=True)
class Place:
    """Where a run is."""

    folder: Path
    """Of the run, with its home in `home`."""
    workspace: Path
    programs: Path
    url: str
    """Of its model."""


def results(request: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield the results of tools that a request sends to the model: id of the call, text, and whether it is marked as failed."""
    for message in request.get("messages") or request.get("input") or request.get("contents") or ():
        if message.get("type") == "function_call_output":
            yield message["call_id"], _text(message.get("output")), False
        elif message.get("role") == "tool":
            yield message["tool_call_id"], _text(message.get("content")), False
        content = message.get("parts") or message.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "tool_result":
                yield part["tool_use_id"], _text(part.get("content")), bool(part.get("is_error"))
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                said = answer["response"]
                yield answer["id"], _text(said.get("error") or said.get("output") or said), "error" in said


def _text(content: Any) -> str:
    """Return the text of a result: of texts in a list, one below the other."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if "text" in part)
    return content if isinstance(content, str) else json.dumps(content)


def words_given(request: Mapping[str, Any]) -> str:
    """Return the texts of a request's user messages, without results of tools, and of the system's, where a sub-agent's task may be."""
    texts = []
    for message in request.get("messages") or request.get("input") or request.get("contents") or ():
        if message.get("role") in ("system", "user"):
            content = message.get("parts") or message.get("content")
            parts = [content] if isinstance(content, str) else content or ()
            texts += [part if isinstance(part, str) else part.get("text") or "" for part in parts]
    return "\n".join(texts)


_SUBTASK = re.compile(r"SUBTASK (\d+)|Task (\d+\.\d+): do what is needed\.")


def task_of(request: Mapping[str, Any]) -> tuple[bool, str] | None:
    """Return whether a request is a sub-agent's, and the latest task it was given; None where it was given none of ours."""
    found = list(_SUBTASK.finditer(words_given(request)))
    if not found:
        return None
    return found[0][1] is not None, found[-1][0]


CLAUDE = Client(
    "claude-code", PACKAGES["claude_code"],
    start=("claude", "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Write,Edit,Agent", "-p"),
    resume=("claude", "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Write,Edit,Agent", "-c", "-p"),
    shell=Shell("Bash", "command", {"description": "run"}, {"timeout": 500}),
    read=("Read", "file_path"), write=("Write", "file_path", "content"),
    helper=("Agent", {"description": "look", "subagent_type": "general-purpose", "run_in_background": False}, "prompt"),
    helper_name="general-purpose",
    refused=r"InputValidationError|No such tool available|Cancelled: parallel",
    unclear=r"tool_use_error",
    versions=("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20251101"),
    env={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
)  # fmt: skip
_CODEX = """\
model = "gpt-5-codex"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
_CODEX_TELEMETRY = (
    "-c", 'otel.trace_exporter={otlp-http={endpoint="$OTLP/v1/traces",protocol="binary"}}',
    "-c", 'otel.exporter={otlp-http={endpoint="$OTLP/v1/logs",protocol="binary"}}',
)  # fmt: skip
_CODEX_FREE = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
CODEX = Client(
    "codex", PACKAGES["codex"],
    start=("codex", "exec", *_CODEX_FREE, *_CODEX_TELEMETRY, "--"),
    resume=("codex", "exec", *_CODEX_FREE, *_CODEX_TELEMETRY, "resume", "--last", "--"),
    shell=Shell("exec_command", "cmd"),
    read=("view_image", "path"), write=None,
    helper=None, helper_name="nobody-else",
    refused=r"failed to parse function arguments|unsupported call",
    failed=r"exited with code [1-9]|unable to (locate|read|process) image|write_stdin failed",
    versions=("gpt-5-codex-2025-09-15", "gpt-5-codex-2026-01-20"),
    env={"OPENAI_API_KEY": "scripted"},
    files={".codex/config.toml": _CODEX},
)  # fmt: skip
_GEMINI = ("gemini", "--approval-mode", "yolo")
GEMINI = Client(
    "gemini-cli", PACKAGES["gemini_cli"],
    start=(*_GEMINI, "-p"), resume=(*_GEMINI, "--resume", "latest", "-p"),
    shell=Shell("run_shell_command", "command"),
    read=("read_file", "file_path"), write=("write_file", "file_path", "content"),
    helper=("invoke_agent", {"agent_name": "generalist"}, "prompt"), helper_name="generalist",
    refused=r"params must have required property|params/\S+ must be|Tool \W+\w+\W+ not found|Unauthorized tool call",
    failed=r"\nExit Code: [1-9]\d*\nProcess Group",
    versions=("gemini-2.5-flash-001", "gemini-2.5-flash-002"),
    env={
        "GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_MODEL": "gemini-2.5-flash",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    files={".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
    cuts_arguments=False,
)  # fmt: skip
_QWEN = ("qwen", "--approval-mode", "yolo")
QWEN = Client(
    "qwen-code", PACKAGES["qwen_code"],
    start=(*_QWEN, "-p"), resume=(*_QWEN, "-c", "-p"),
    shell=Shell("run_shell_command", "command", {"is_background": False}, {"timeout": 500}),
    read=("read_file", "file_path"), write=("write_file", "file_path", "content"),
    helper=("agent", {"description": "look", "subagent_type": "general-purpose"}, "prompt"), helper_name="general-purpose",
    refused=r"params must have required property|params/\S+ must be|not found in registry|not found\. Tools must|Blocked: standalone",
    failed=r"\nExit Code: [1-9]\d*\nSignal|File not found",
    env={"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "gpt-4o"},
    named_agents=False,
)  # fmt: skip
_OPENCODE = {
    "model": "scripted/gpt-4o", "small_model": "scripted/gpt-4o", "autoupdate": False,
    "experimental": {"openTelemetry": True}, "plugin": ["file://{home}/last_spans.js"],
    "provider": {"scripted": {
        "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}/v1", "apiKey": "scripted"},
        "models": {"gpt-4o": {"tool_call": True}},
    }},
}  # fmt: skip
_RECIPE = Path(__file__).parents[2] / "configs" / "cases" / "coding_agents" / "opencode"
OPENCODE = Client(
    "opencode", PACKAGES["opencode"],
    start=("opencode", "run"), resume=("opencode", "run", "-c"),
    shell=Shell("bash", "command", {}, {"timeout": 500}),
    read=("read", "filePath"), write=("write", "filePath", "content"),
    helper=("task", {"description": "look", "subagent_type": "general"}, "prompt"), helper_name="general",
    refused=r"was called with invalid arguments|The arguments provided to the tool are invalid",
    failed=r"File not found|Subagent failed",
    env={"OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE), "OPENCODE_PERMISSION": '{"*": "allow"}'},
    files={"last_spans.js": (_RECIPE / "last_spans.js").read_text(encoding="utf-8")},
    main="build",
)  # fmt: skip
AGENTS = (CLAUDE, CODEX, GEMINI, QWEN, OPENCODE)
