"""The files of a first case: their texts, and writing them all or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.errors import UsageError
from clawtrace.support.files import shared_folder, whole_text_file

if TYPE_CHECKING:
    from clawtrace.campaign.comparing.observed import Observation

__all__ = [
    "PROJECT",
    "CaseDraft",
    "NewPaths",
    "assertions_file_text",
    "case_text",
    "last_words",
    "replace_file",
    "suite_text",
]

_LAST_LINES = 5
_PASSED = ("*_API_KEY", "*_BASE_URL")

PROJECT = """\
# yaml-language-server: $schema=configs/schemas/project.schema.json
# Settings of the whole project. Every setting has a default, so a file with just `{}` is valid.

# Folder of results: one folder a campaign. Keep it out of version control, but for its folder `baselines`.
outputs: outputs

# Prices of models that clawtrace does not know, in USD for a million tokens:
# model_pricing:
#   my-model: {input_per_1m: 2.00, output_per_1m: 8.00}
"""

SUITE = """\
# yaml-language-server: $schema=../schemas/suite.schema.json
# A suite names cases: `clawtrace eval --suite {suite}` runs them.
schema_version: 1
suite_id: {suite}
title: {title}

# Each case with this tag. `include_case_ids: [...]` names cases one by one.
case_selection:
  include_tags: [{suite}]

# Each case runs once per model; the agent reads the name from CLAWTRACE_REQUESTED_MODEL.
# models:
#   - {{model_id: small, requested_model: openai/gpt-4o-mini}}
"""

CASE = """\
# yaml-language-server: $schema=../../schemas/case.schema.json
# A case says what to run, which message to send, and which assertions its trace must pass.
schema_version: 1
case_id: {case}
title: {title}
tags: [{suite}]

runner:
{runner}
{input}
# What must be true. `clawtrace assertions` lists the types, `clawtrace explain tool_call` explains one.
# Set the numbers to what you would accept: a bound that is too tight fails good runs.
{assertions}
"""

COMMAND = """\
  type: command
  # A text goes to /bin/sh; a list of words is started as it is. Where the agent takes its message as an argument, write
  # {{{{message}}}}; otherwise it reads the message on standard input.
  command: {command}
  # The project's folder. Without `cwd` each run starts in an empty folder of its own, and assertions such as
  # `artifact_exists` look at what it leaves there.
  cwd: {cwd}
  # All code and prompts of the agent: paths, globs, `package:NAME`. While they are unchanged, a stored run is
  # reused; without `inputs`, each evaluation runs the agent. This is the project's folder:
  # inputs: [../../..]
  # Few of your environment variables reach the agent. Name those that it needs, such as keys.
  pass_env: {pass_env}
  timeout_seconds: {timeout}
"""

REPLAY = """\
  # The recording replaces the agent. To run the agent itself:
  #   type: command
  #   command: python agent.py
  type: replay
  traces: {traces}
"""

INPUT = """\
input:
  {key}:
"""
MESSAGE = """\
    - role: user
      content: {message}
"""

NO_INPUT = "input: {messages: []}\n"

MINIMUM = """\
assertions:
  # No call failed, not even one whose failure the agent did not mention.
  - type: no_span_errors
  # More assertions:
  # - type: tool_sequence
  #   expected: [look_up, answer]
  # - type: tool_not_invoked
  #   tool: delete_everything
"""


FILE = """\
# What holds for {of}, from `clawtrace suggest`.
# Set the numbers to what you would accept: a bound that is too tight fails good runs.
{assertions}
"""


class CaseDraft(NamedTuple):
    """A case that is to be written."""

    case_id: str
    suite_id: str
    title: str
    turns: Sequence[str]
    """The user's messages; empty if unknown."""
    command: str | None
    """None: the recordings are replayed."""
    cwd: str
    """Of the command, as its case file names it."""
    traces: Sequence[str]
    """Relative to the case file."""
    timeout_seconds: int
    pass_env: Sequence[str] = ()
    """Variables that its agent gets in addition to keys and addresses of models."""


def suite_text(suite: str) -> str:
    """Return the suite's file."""
    return SUITE.format(suite=suite, title=_scalar(f"Cases of {suite}"))


def case_text(draft: CaseDraft, found: Sequence[Observation] | None = None) -> str:
    """Return the case's file, with the assertions that pass for a run; without a run, a minimal one."""
    if draft.command is None:
        runner = REPLAY.format(traces=_scalar(list(draft.traces)))
    else:
        runner = COMMAND.format(
            command=_scalar(draft.command),
            cwd=_scalar(draft.cwd),
            pass_env=json.dumps([*_PASSED, *draft.pass_env]),
            timeout=draft.timeout_seconds,
        )
    input_lines = INPUT.format(key="messages" if len(draft.turns) == 1 else "turns") if draft.turns else NO_INPUT
    input_lines += "".join(MESSAGE.format(message=_scalar(text)) for text in draft.turns)
    return CASE.format(
        case=draft.case_id,
        title=_scalar(draft.title),
        suite=draft.suite_id,
        runner=runner.rstrip("\n") + "\n",
        input=input_lines,
        assertions=(_assertions(found) if found else MINIMUM).rstrip("\n"),
    )


def assertions_file_text(found: Sequence[Observation], run_ids: Sequence[str]) -> str:
    """Return a file for `--assertions`, with what holds for the runs."""
    number = len(run_ids)
    of = f"the run {run_ids[0]!r}" if number == 1 else f"all {number} runs, the first of which is {run_ids[0]!r}"
    return FILE.format(of=" ".join(of.split()), assertions=_assertions(found) if found else "assertions: []")


def _assertions(found: Sequence[Observation]) -> str:
    lines = ["assertions:"]
    for one in found:
        lines.append(f"  # {one.why}")
        lines.append(f"  - type: {one.fields['type']}")
        lines += [f"    {key}: {_scalar(value)}" for key, value in one.fields.items() if key != "type"]
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    """Return a value as YAML in one line; JSON is YAML where quotes are needed."""
    import yaml

    if isinstance(value, str):
        plain = yaml.safe_dump(value, width=10_000, allow_unicode=True).removesuffix("\n...\n").strip()
        return json.dumps(value, ensure_ascii=False) if "\n" in plain else plain
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    if isinstance(value, list):
        return (
            "["
            + ", ".join(_scalar(one) if _is_plain(one) else json.dumps(one, ensure_ascii=False) for one in value)
            + "]"
        )
    return json.dumps(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and not set(value) & set(",[]{}\n")


class NewPaths:
    """Files and folders that are created, to be removed again if the command fails."""

    def __init__(self, made: Iterable[Path]) -> None:
        """Record what exists.

        Args:
            made: files that will be written, and folders that will be made or added to.
        """
        self._made = list(made)
        around = {folder for path in self._made for folder in path.parents if not folder.is_dir()}
        self._around = sorted(around, key=lambda folder: len(folder.parts), reverse=True)
        self._before = {one for path in self._made for one in (path, *path.rglob("*")) if one.exists()}

    def write(self, texts: Mapping[Path, str]) -> None:
        """Write every file, or none.

        Raises:
            UsageError: a file cannot be written.
        """
        try:
            for path, text in texts.items():
                shared_folder(path.parent)
                replace_file(path, text)
        except OSError as error:
            self.undo()
            raise UsageError(f"{error.filename!r} cannot be written: {error.strerror}") from error

    def undo(self) -> None:
        """Remove what did not exist before; a folder with other files stays."""
        for path in self._made:
            self._clear(path)
        for folder in self._around:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _clear(self, path: Path) -> None:
        from clawtrace.campaign.results.stored import fresh_folder

        if not path.is_dir() or path.is_symlink():
            if path not in self._before:
                path.unlink(missing_ok=True)
        elif path in self._before:
            for inner in [*path.iterdir()]:
                self._clear(inner)
        else:
            fresh_folder(path).rmdir()


def last_words(folder: Path) -> str:
    """Return the last lines that an agent wrote on standard error; empty where it wrote none."""
    try:
        text = (folder / "stderr").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-_LAST_LINES:])


def replace_file(path: Path, text: str) -> None:
    """Write `text`, whole or not at all."""
    with whole_text_file(path, shared=True) as stream:
        stream.write(text)
