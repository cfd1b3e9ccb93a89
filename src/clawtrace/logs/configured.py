"""A log format that a project describes in `clawtrace.yaml`: regular expressions whose named groups say what a line records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import regex

from clawtrace.logs.events import GROUPS, Event, Events
from clawtrace.logs.form import Line, LogForm
from clawtrace.logs.model import LogReading

__all__ = ["ConfiguredForm", "FormSettings", "pattern_problem"]

_SECONDS = 0.5
"""How long one expression may look at one line: some take longer than anyone waits."""

_TELLING = ("tool", "to_agent", "child_run_id", "model", "input_tokens", "output_tokens")
"""Groups of which a pattern must have one, else its lines state no fact."""


class FormSettings(NamedTuple):
    """One entry of `log_adapters`."""

    name: str
    patterns: tuple[str, ...]
    """Regular expressions; the first one that finds something in a line reads it."""
    recognise: str | None = None
    """Regular expression that finds something in one of the first lines; by default any of `patterns` does."""


def pattern_problem(pattern: str) -> str:
    """Return what is wrong with a pattern of a form, empty when nothing is."""
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        return f"{pattern!r} is not a valid regular expression: {error}"
    unknown = [name for name in compiled.groupindex if name not in GROUPS]
    if unknown:
        return f"the group {unknown[0]!r} is unknown; known groups are {', '.join(GROUPS)}"
    if not set(compiled.groupindex) & set(_TELLING):
        return f"{pattern!r} has none of the groups that state a fact: {', '.join(_TELLING)}"
    return ""


class ConfiguredForm(LogForm):
    """A form of a project's own."""

    name = "configured"

    def __init__(self, settings: FormSettings) -> None:
        self.title = f"log adapter `{settings.name}`"
        self._patterns = [regex.compile(pattern) for pattern in settings.patterns]
        self._recognise = regex.compile(settings.recognise) if settings.recognise is not None else None
        groups = {name for pattern in self._patterns for name in pattern.groupindex}
        self.by_run = "run_id" in groups
        self._tells_tools = "tool" in groups

    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether one of the first lines matches its patterns."""
        patterns = self._patterns if self._recognise is None else [self._recognise]
        return any(_found(pattern, line) for pattern in patterns for line in head)

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read each line with the first pattern that finds something in it."""
        events = Events(reading)
        for number, text in lines:
            found = next((match for pattern in self._patterns if (match := _found(pattern, text))), None)
            groups = {name: value for name, value in found.groupdict().items() if value} if found is not None else {}
            if found is None or (self.by_run and "run_id" not in groups):
                reading.could_not_read(number, text, stray=not set(_TELLING).isdisjoint(groups))
                continue
            usage = bool({"input_tokens", "output_tokens"} & groups.keys())
            event = Event.of(
                groups | {"run_id": groups.get("run_id", reading.path.stem)}, time=groups.get("timestamp"), usage=usage
            )
            events.take(number, event)
        events.finish()
        reading.tells_tools = self._tells_tools


def _found(pattern: regex.Pattern[str], text: str) -> regex.Match[str] | None:
    """Return where a pattern finds something; nothing where it takes too long, so that the line counts as unread."""
    try:
        return pattern.search(text, timeout=_SECONDS)
    except TimeoutError:
        return None
