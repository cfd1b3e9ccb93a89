"""`clawtrace completion`: real shells complete what the program offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clawtrace.cli.main import COMMANDS

BASH = """
eval "$(clawtrace completion bash)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_clawtrace_completion clawtrace
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compdef() { : }
_describe() { local name=$3; print -l -- ${${(P)name}%%:*} }
compadd() { local name=${@[-1]}; print -l -- ${(P)name} }
eval "$(clawtrace completion zsh)"
words=("$@") CURRENT=$#
_clawtrace_completion
"""
FISH = "clawtrace completion fish | source; complete -C (string join -- ' ' $argv) | string replace -r '\\t.*' ''"
SHELLS = {"bash": ["-c", BASH, "bash"], "zsh": ["-f", "-c", ZSH, "zsh"], "fish": ["--no-config", "-c", FISH]}
"""How each shell is asked for the completions of a line, whose words follow; the last one is incomplete."""

every_shell = pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in SHELLS])


def completed(shell: str, folder: Path, *words: str) -> list[str]:
    """What a shell completes, with the program as it is installed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [shell, *SHELLS[shell], "clawtrace", *words],
        cwd=folder,
        env=os.environ | {"PATH": path, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not done.stderr, done.stderr
    return sorted(line.strip() for line in done.stdout.splitlines() if line.strip())


@every_shell
def test_commands_are_completed(shell: str, tmp_path: Path) -> None:
    assert completed(shell, tmp_path, "e") == sorted(name for name in COMMANDS if name.startswith("e"))


@every_shell
def test_options_are_completed(shell: str, tmp_path: Path) -> None:
    found = completed(shell, tmp_path, "mutate", "--as")

    assert found == ["--assertions"]


@every_shell
def test_suites_and_cases_of_the_project_are_completed(shell: str, tmp_path: Path) -> None:
    """Their names come from the files of the folder that one stands in."""
    for name in ("suites/smoke.yaml", "suites/slow.yml", "cases/refund/test.yaml", "cases/billing/refuse/test.yaml"):
        (tmp_path / "configs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "configs" / name).write_text("{}", encoding="utf-8")

    assert completed(shell, tmp_path, "eval", "--suite", "s") == ["slow", "smoke"]
    assert completed(shell, tmp_path, "eval", "--case", "ref") == ["refund", "refuse"]


@every_shell
def test_assertion_types_are_completed(shell: str, tmp_path: Path) -> None:
    assert completed(shell, tmp_path, "explain", "tool_s") == ["tool_sequence"]


@every_shell
def test_a_broken_project_completes_nothing(shell: str, tmp_path: Path) -> None:
    """A prompt is no place for errors."""
    (tmp_path / "clawtrace.yaml").write_text("outputs: [", encoding="utf-8")

    assert completed(shell, tmp_path, "eval", "--suite", "s") == []
