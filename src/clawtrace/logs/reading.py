"""What a form of log is, and how a log file is read: its form is recognised by its content, and every line that does not fit is counted."""

from __future__ import annotations

import glob
import gzip
import json
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from clawtrace._discover import subclasses_in
from clawtrace.errors import InputError
from clawtrace.logs.model import LogReading

__all__ = ["JsonLines", "LogFileError", "LogForm", "forms", "json_object", "read_log", "started_names"]

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


# --- files ------------------------------------------------------------------------------------------------------------


FORMS = "clawtrace.logs.forms"

_HEAD_LINES = 200
"""Lines at the beginning that a form is recognised by."""

_LONGEST = 64 * 1024 * 1024
"""Bytes of a line that are looked at."""

_GZIP = b"\x1f\x8b"


class LogFileError(InputError):
    """A log cannot be read, or is of no form that is known."""


@cache
def forms() -> tuple[LogForm, ...]:
    """Return the built-in forms, least specific forms last."""
    return tuple(
        sorted(
            (form() for form in subclasses_in(FORMS, LogForm)),  # type: ignore[type-abstract]
            key=lambda form: form.by_run,
        )
    )


def read_log(path: Path, configured: Sequence[LogForm] = ()) -> LogReading:
    """Return what a log records; a project's own formats are tried first.

    Raises:
        LogFileError: it cannot be read, or no form recognises it.
    """
    return _read_file(path, configured, {os.path.realpath(path)})


def _read_file(path: Path, configured: Sequence[LogForm], met: set[str]) -> LogReading:
    """Read a log and what it refers to, but for the files that were `met` on the way to it."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP
            content: IO[bytes] = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw
            return _read(path, _lines(content), configured, met)
    except (OSError, EOFError, zlib.error) as error:
        raise LogFileError(f"the log `{path}` cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _lines(content: IO[bytes]) -> Iterator[str]:
    while line := content.readline(_LONGEST):
        rest = line
        while len(rest) == _LONGEST and not rest.endswith(b"\n"):  # what is cut is no line of any form
            rest = content.readline(_LONGEST)
        yield line.decode("utf-8-sig" if line[:3] == b"\xef\xbb\xbf" else "utf-8", "replace").rstrip("\r\n")


def _read(path: Path, lines: Iterator[str], configured: Sequence[LogForm], met: set[str]) -> LogReading:
    head = list(islice(lines, _HEAD_LINES))
    form = next((form for form in (*configured, *forms()) if form.recognises(head)), None)
    if form is None:
        if not any(head):
            return LogReading("empty", "an empty log", path, by_run=True)
        known = ", ".join(one.title for one in (*configured, *forms()))
        raise LogFileError(
            f"the log `{path}` is in no known format ({known}); describe its lines under `log_adapters` in "
            "clawtrace.yaml."
        )
    reading = LogReading(form.name, form.title, path, form.by_run)

    def numbered() -> Iterator[tuple[int, str]]:
        for number, line in enumerate(chain(head, lines), 1):
            reading.lines = number
            if line.strip():
                yield number, line

    form.read(numbered(), reading)
    if reading.unread and not reading.by_run:
        for run in reading.runs.values():
            run.lacking.append(f"{reading.unread} of {reading.lines} lines of its transcript could not be read.")
    if reading.strays:
        for run in reading.runs.values():
            run.lacking.append(
                f"{reading.strays} of {reading.lines} lines of its log name no run, and may belong to any."
            )
    for further in form.companions(reading):
        if (real := os.path.realpath(further)) not in met:
            met.add(real)
            reading.join(_read_file(further, configured, met))
    return reading
