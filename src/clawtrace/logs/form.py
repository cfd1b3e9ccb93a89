"""What a form of log is: how it is recognised by its content, and how its lines become spans."""

from __future__ import annotations

import glob
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from clawtrace.logs.model import LogReading

__all__ = ["JsonLines", "LogForm", "json_object", "started_names"]

Line = tuple[int, str]
"""Number of a line, from 1, and its text without its end."""

_FILE_NAME = re.compile(r"[\w.:@+-]{1,200}")
"""An id that a file may be called after; with any other a log could name files that are not its own."""


class LogForm(ABC):
    """Base of the forms; one module of `clawtrace.logs.forms` each."""

    name: str
    """Name in messages, and of the scope of its spans."""
    title: str
    """What people call it."""
    by_run: bool = True
    """Whether lines name their run; else the file is the work of one run."""

    @abstractmethod
    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether lines at the beginning of a file are of this form."""

    @abstractmethod
    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read a file into `reading`."""

    def companions(self, reading: LogReading) -> list[Path]:
        """Return further files that hold what this one refers to."""
        del reading
        return []


class JsonLines(LogForm):
    """Base of the forms of which each line is a JSON object."""

    by_run = False

    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether one of the first objects is a line of this form."""
        return any(found is not None and self.owns(found) for found in map(json_object, head))

    @abstractmethod
    def owns(self, line: dict[str, Any]) -> bool:
        """Return whether an object can only be a line of this form."""

    def objects(self, lines: Iterable[Line], reading: LogReading) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the lines that are objects; others are counted."""
        for number, text in lines:
            found = json_object(text)
            if found is None:
                reading.could_not_read(number, text)
            else:
                yield number, found


def started_names(reading: LogReading) -> list[str]:
    """Return the ids of the runs that those of a log started, where a file may be called after them, for `Path.glob`."""
    started = {run_id for run in reading.runs.values() for run_id in run.started}
    return [glob.escape(run_id) for run_id in sorted(started) if _FILE_NAME.fullmatch(run_id)]


def json_object(text: str) -> dict[str, Any] | None:
    """Return the object that a line is; None where it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
