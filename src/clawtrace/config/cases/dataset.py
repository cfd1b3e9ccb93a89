"""The rows of a case's `dataset`: one case each, with ``{{row.field}}`` filled in before anything is checked."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.config.base import is_slug
from clawtrace.config.cases.assertion_list import ASSERTIONS, PRECONDITIONS
from clawtrace.config.files.document import Document, KeyPath, display, problem_at, unreadable
from clawtrace.errors import ConfigProblem
from clawtrace.runners.starting.templates import escaped, names_in, replaced
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["DatasetRow", "load_rows"]

_ASKED = frozenset((*ASSERTIONS, *PRECONDITIONS))
_RENDERED = _ASKED | {"input", "runner"}
"""Keys whose texts are rendered again for each run; what a row says there must not be read as a template."""
_OF_ALL_ROWS = frozenset({"schema_version", "case_id", "dataset", "tags"})
"""Keys that are the same for all rows: suites select by them before any row is read."""


_PREFIX = "row."
_ALONE = re.compile(r"\{\{[^{}]*\}\}")


class DatasetRow(NamedTuple):
    """One row of a dataset."""

    name: str
    """Its field `id`, else its number, counted from 1."""
    fields: Mapping[str, Any]
    """JSON values by name; from CSV all of them are texts."""
    file: str
    """As problems name it."""
    line: int

    def problem(self, one: ConfigProblem) -> ConfigProblem:
        """Return a problem of the case file that this row showed, saying so."""
        message = f"{one.message.rstrip('.')} (row `{self.name}`, {self.file}:{self.line})"
        return one._replace(message=f"{message}." if one.hint else message)

    def fill(self, document: Document, problems: list[ConfigProblem]) -> Document:
        """Return a case file with this row's values; the places of its values stay what they are."""
        data = {
            key: value if key in _OF_ALL_ROWS else self._filled(value, (key,), document, problems)
            for key, value in document.data.items()
        }
        return document.with_data(data)

    def text(self, text: str, unknown: Callable[[str, str], None]) -> str:
        """Return a text that is rendered again later, with this row's values.

        Args:
            text: with ``{{row.field}}``.
            unknown: called with a message and a hint for each field that the row does not have.
        """
        return replaced(text, _PREFIX, lambda name: escaped(_as_text(self._value(name, unknown))))

    def _filled(self, data: Any, path: KeyPath, document: Document, problems: list[ConfigProblem]) -> Any:
        if isinstance(data, dict):
            return {key: self._filled(value, (*path, key), document, problems) for key, value in data.items()}
        if isinstance(data, list):
            return [self._filled(value, (*path, index), document, problems) for index, value in enumerate(data)]
        if not isinstance(data, str) or "{{" not in data:
            return data

        def unknown(message: str, hint: str) -> None:
            problems.append(document.problem(path, message, hint))

        (first, *more) = names_in(data) or [""]
        if path[0] in _ASKED and first.startswith(_PREFIX) and not more and _ALONE.fullmatch(data):
            value = self._value(first, unknown)
            return escaped(value) if isinstance(value, str) else value
        if path[0] in _RENDERED:
            return self.text(data, unknown)
        return replaced(data, _PREFIX, lambda name: _as_text(self._value(name, unknown)))

    def _value(self, name: str, unknown: Callable[[str, str], None]) -> Any:
        value: Any = self.fields
        for step in name.removeprefix(_PREFIX).split("."):
            if not isinstance(value, Mapping) or step not in value:
                known = [str(key) for key in value] if isinstance(value, Mapping) else []
                listed = ", ".join(f"`{key}`" for key in known) or "none"
                unknown(
                    f"`{{{{{name}}}}}`: the row does not have this field; it has {listed}", did_you_mean(step, known)
                )
                return ""
            value = value[step]
        return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def load_rows(name: Any, document: Document, problems: list[ConfigProblem]) -> tuple[Path | None, list[DatasetRow]]:
    """Return the file and the rows of a case's `dataset`, adding every problem to `problems`.

    Args:
        name: the value of `dataset`.
        document: the case file, whose folder the path is relative to.
    """
    if not isinstance(name, str) or document.path is None:
        problems.append(document.problem(("dataset",), "must be the path of a .jsonl or .csv file"))
        return None, []
    file = document.path.parent / name
    reader = {".jsonl": _json_lines, ".csv": _csv}.get(file.suffix.lower())
    if reader is None:
        problems.append(document.problem(("dataset",), f"must end in .jsonl or .csv, found {name!r}"))
        return None, []
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        problems.append(document.problem(("dataset",), f"the file {name!r} does not exist next to the case file"))
        return None, []
    except (OSError, UnicodeDecodeError) as error:
        problems.append(unreadable(file, error))
        return None, []
    before = len(problems)
    rows = _named(list(reader(text, display(file), problems)), display(file), problems)
    if not rows and len(problems) == before:
        problems.append(ConfigProblem(display(file), 0, 0, "has no rows, so that nothing would run"))
    return file, rows


def _named(read: list[tuple[int, dict[str, Any]]], file: str, problems: list[ConfigProblem]) -> list[DatasetRow]:
    """Return the rows by their ids, which are given for all of them or for none."""
    taken: dict[str, int] = {}
    rows = []
    for number, (line, fields) in enumerate(read, start=1):
        name = _as_text(fields["id"]) if "id" in fields else str(number)
        if not is_slug(name):
            message = f"the row's `id` has letters, digits, `_`, `-` and `.` only, found {name!r}"
            problems.append(problem_at(file, line, 1, message))
        elif name in taken:
            problems.append(problem_at(file, line, 1, f"the row {name!r} is used twice, first in line {taken[name]}"))
        else:
            taken[name] = line
            rows.append(DatasetRow(name, fields, file, line))
    return rows


def _json_lines(text: str, file: str, problems: list[ConfigProblem]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object, parse_constant=_no_number)
            line.encode()
            json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            column, message = getattr(error, "colno", 1), getattr(error, "msg", error)
            if isinstance(error, UnicodeEncodeError):
                message = "it contains half of a surrogate pair, which is not a character"
            elif isinstance(error, RecursionError):
                message = "it is nested too deeply"
            problems.append(problem_at(file, number, column, f"is not valid JSON: {message}"))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(problem_at(file, number, 1, "each line must be one JSON object"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a key that is used twice would hide a value.

    Raises:
        ValueError: one is.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{twice}` is used twice")
    return found


def _no_number(word: str) -> Any:
    """Refuse what Python reads beyond JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{word} is not a JSON number")


def _csv(text: str, file: str, problems: list[ConfigProblem]) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    start = 1
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            if not cells:
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                if "" in header or len(set(header)) < len(header):
                    problems.append(problem_at(file, line, 1, "the first line must name each column once"))
                    return
            elif len(cells) != len(header):
                message = f"the row has {len(cells)} values, but the first line names {len(header)} columns"
                problems.append(problem_at(file, line, 1, message))
            else:
                yield line, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        problems.append(problem_at(file, reader.line_num, 1, f"is not valid CSV: {error}"))
