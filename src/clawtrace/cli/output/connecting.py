"""The lines to add to an agent so that its spans arrive, by framework."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from clawtrace.config.files.document import display
from clawtrace.model.verdict import RunResult
from clawtrace.report.console import ConsoleOutput
from clawtrace.runners.inputs.named_files import shell_words
from clawtrace.runners.starting.used_frameworks import UsedFrameworks, language_setup, recipe, used_frameworks
from clawtrace.verdicts.judging.run_inputs import NAME_NO_RUN

__all__ = ["OF_NO_INSTRUMENTATION", "makes_no_model_call", "names_of", "say_how_to_connect"]

OF_NO_INSTRUMENTATION = (
    "None of the spans is a model call, a tool call or an agent of a known instrumentation. In spans that a program writes itself, "
    "`gen_ai.operation.name` says which one is: `chat`, `execute_tool` or `invoke_agent`. docs/exporters.md has the other attributes, "
    "docs/dialects.md says how to have names of your own read."
)
"""The message for a run whose spans no dialect reads."""

_TOOLS = {"python": "pip install", "javascript": "npm install"}


def makes_no_model_call(result: RunResult) -> bool:
    """Return whether no span of a run is of a model call, or there is no span at all."""
    return not result.totals.get("llm_calls_low") and not result.totals.get("usage_calls")


def say_how_to_connect(
    command: str | Sequence[str],
    console: ConsoleOutput,
    folder: Path | None = None,
    *,
    exports: bool = False,
    why: str = "",
) -> None:
    """Print the lines that an agent lacks, as far as it is known what it uses.

    Args:
        folder: where it is started; by default the current one.
        exports: whether spans came from it. Then its exporter works, and only what its sources import counts: what a project
            depends on, an agent need not use.
        why: why there is no trace, as a hint says it. Spans that name no run come from an agent that lacks nothing printed here.
    """
    if NAME_NO_RUN in why:
        return
    used = used_frameworks(_words_of(command), folder or Path.cwd())
    if used is None or (exports and used.place not in used.sources.files):
        return
    prepared = used.sources.sets_up or exports
    lacking = tuple(one for one in used.found if not used.sources.connects(one) or (one.setup and not prepared))
    if prepared:
        lacking = tuple(one for one in lacking if one.lines)
    if not lacking:
        return
    setup = language_setup(lacking[0].language)
    install, text = recipe(lacking, common=not prepared)
    console.line()
    if exports and not used.sources.sets_up:
        said = "Its spans arrive, but none records a model call. Add its instrumentation at the start of the agent:"
    elif prepared:
        said = "It sets up OpenTelemetry, but no instrumentation. Add, after the tracer provider is set:"
    else:
        said = f"To send its spans here, write `{setup.file}`, with {setup.use}:"
    console.paragraph(f"{display(used.place)} uses {names_of(used)}. {said}", style="cyan")
    console.line()
    for line in text.rstrip().splitlines():
        console.line((f"    {line}" if line else "", "bold"))
    console.line()
    if install:
        console.line((f"  {_TOOLS[lacking[0].language]} {' '.join(shlex.quote(one) for one in install)}", "bold"))
    for note in dict.fromkeys(one.note for one in lacking if one.note):
        console.paragraph(note, indent="  ", style="dim")
    console.line()


def _words_of(command: str | Sequence[str]) -> list[str]:
    """Return the words of a command, and those of a text for a shell in it: `sh -c "python agent.py"`."""
    words = [command] if isinstance(command, str) else list(command)
    return [inner for word in words for inner in dict.fromkeys((word, *shell_words(word)))]


def names_of(used: UsedFrameworks) -> str:
    """Return the names of the frameworks, as a sentence says them."""
    names = [one.name for one in used.found]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
