"""What dialects say of the spans of executions, and of the answers to calls that a framework refused."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["ExecutionWords", "ExecutionsOf", "words_of"]

_INVALID_ARGUMENTS = r"(ValidationError: |Validation Error found:\n)?\d+ validation errors? for {tool}(?i:_?args)?\n"
"""What pydantic says of arguments, with which Python's frameworks check them before the tool runs."""


class ExecutionWords(NamedTuple):
    """What a dialect says of the spans of executions (`DialectFile.executions`, `DialectFile.refusals`)."""

    written: str | None
    """``spans``, ``none``; None where it is not known."""
    refusals: tuple[str, ...]

    def refused(self, tool: str | None, *said: str | None) -> bool:
        """Return whether a result, or a failure, says that the framework ran no tool."""
        name = re.escape(tool or "")
        texts = [text for text in said if text is not None]
        refusals = (*self.refusals, _INVALID_ARGUMENTS)
        return any(re.match(words.replace("{tool}", name), text) for words in refusals for text in texts)


ExecutionsOf = Callable[[str, str], ExecutionWords]
"""What is known of the spans of executions that a dialect writes under a scope."""


def words_of(
    run: RunSpans, asked: Sequence[ToolRequest], executions_of: ExecutionsOf
) -> dict[int, list[ExecutionWords]]:
    """Return by number what is said of executions where a request was recorded: by its model spans and its agent's."""
    writers: dict[int, set[int]] = defaultdict(set)
    for index in run.kinds.get("llm", ()) if asked else ():
        number = run.group[index]
        if number is not None:
            writers[number].add(index)
    spans = {one.number: writers[one.group] | (set() if one.agent is None else {one.agent}) for one in asked}
    return {
        number: [executions_of(*of) for of in {(run.spans[index].dialect, run.spans[index].scope) for index in indices}]
        for number, indices in spans.items()
    }
