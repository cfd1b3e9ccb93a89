"""The assertions of a file: parsed when it is loaded, filled in for each run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.problems import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.cases.notations import WrittenAssertion, read_entries
from clawtrace.config.files.document import Document, KeyPath
from clawtrace.config.files.problems import Place
from clawtrace.config.files.template_check import template_problems, texts
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.starting.templates import RunValues, names_in, render_tree

__all__ = ["AssertionList", "load_assertions"]

_OF_A_RUN = ("run_id", "session_id", "case_id", "model_id", "workspace", "run_started_at")
"""Templates that only a run which is started now can fill in."""
_CURRENT_RUN = re.compile(r"\{\{\s*run_id\s*\}\}")


class AssertionList(NamedTuple):
    """The assertions of one file, in order; each has its own id."""

    parsed: tuple[Assertion, ...]
    """As checked when the file was loaded: templates of a run hold samples, ``{{env.NAME}}`` its value."""
    entries: tuple[WrittenAssertion, ...]
    """As written, with their ids."""
    document: Document

    @property
    def folder(self) -> Path | None:
        """Folder of the file, absolute; None for text that came from no file."""
        return None if self.document.path is None else self.document.path.absolute().parent

    @property
    def has_templates(self) -> bool:
        """Whether any text waits for a run's values."""
        written = [entry.fields for entry in self.entries]
        return any(not name.startswith("env.") for _, text in texts(written) for name in names_in(text))

    @property
    def lines(self) -> dict[str, int]:
        """The line of each assertion in the file, by its id; counted from 1."""
        return {entry.fields["id"]: self.document.locate(entry.path)[0] for entry in self.entries}

    def for_run(self, values: RunValues) -> list[Assertion]:
        """Return the assertions with the templates of one run filled in.

        Raises:
            ConfigError: a value makes an assertion invalid (for example a regular expression).
        """
        if not self.has_templates:
            return list(self.parsed)
        problems: list[ConfigProblem] = []
        parsed = [_parse(entry, values.value, self.document, problems) for entry in self.entries]
        if problems:
            raise ConfigError(problems)
        return [assertion for assertion in parsed if assertion is not None]


def load_assertions(
    document: Document,
    keys: Sequence[str],
    env: Mapping[str, str],
    problems: list[ConfigProblem],
    *,
    recorded: bool = False,
) -> AssertionList:
    """Parse the assertions of a file, in any of their notations, adding every problem to `problems`.

    Args:
        keys: the keys of the file that hold assertions.
        recorded: whether the runs are recordings, of which nothing is known before they are read.
    """
    without = dict.fromkeys(_OF_A_RUN, "a recording has no runner, which would supply it") if recorded else {}
    read = read_entries(document.data, tuple(keys), document, problems)
    entries = _named([_of_each_run(entry) for entry in read] if recorded else read, document, problems)
    folder = str(document.path.absolute().parent) if document.path is not None else "/case"
    sample = partial(_sample, RunValues("run", "case", folder, "model", "/workspace", time.time(), env, {}))
    parsed = []
    for entry in entries:
        problems += template_problems(entry.fields, _placed(entry, document), env, without=without)
        assertion = _parse(entry, sample, document, problems)
        if assertion is not None:
            parsed.append(assertion)
            problems += _missing_files(entry, assertion, document)
    return AssertionList(tuple(parsed), tuple(entries), document)


def _of_each_run(entry: WrittenAssertion) -> WrittenAssertion:
    """Return an entry without a `run_id` that means the current run, whichever it is: that is its default."""
    named = entry.fields.get("run_id")
    if not isinstance(named, str) or not _CURRENT_RUN.fullmatch(named.strip()):
        return entry
    return entry._replace(fields={name: value for name, value in entry.fields.items() if name != "run_id"})


def _placed(entry: WrittenAssertion, document: Document) -> Place:
    return lambda path: (document, entry.place(path))


def _sample(values: RunValues, name: str) -> str:
    """Return a plausible value of a template, so that an assertion can be checked before any run."""
    try:
        return values.value(name)
    except KeyError:
        return "unknown"


def _named(
    entries: Sequence[WrittenAssertion], document: Document, problems: list[ConfigProblem]
) -> list[WrittenAssertion]:
    """Return the entries with an id each: the given one, else the type, numbered from the second on."""
    taken: dict[str, KeyPath] = {}
    for entry in entries:
        given = entry.fields.get("id")
        if not isinstance(given, str):
            continue
        if given in taken:
            first = document.locate(taken[given])[0]
            problems.append(
                document.problem(entry.place(("id",)), f"the id {given!r} is used twice, first in line {first}")
            )
        taken.setdefault(given, entry.path)
    named = []
    for entry in entries:
        if entry.fields.get("id") is None and isinstance(entry.fields.get("type"), str):
            kind = entry.fields["type"]
            name, number = kind, 2
            while name in taken:
                name, number = f"{kind}-{number}", number + 1
            taken[name] = entry.path
            entry = entry._replace(fields=entry.fields | {"id": name})
        named.append(entry)
    return named


def _parse(
    entry: WrittenAssertion, value: Callable[[str], str], document: Document, problems: list[ConfigProblem]
) -> Assertion | None:
    """Return one entry, its templates filled in, as an assertion; None after adding what is wrong with it."""
    try:
        return parse_assertion(render_tree(entry.fields, value))
    except InvalidAssertionError as error:
        for problem in error.problems:
            key = problem.message.startswith("unknown field")
            problems.append(document.problem(entry.place(problem.path), problem.message, problem.hint, key=key))
        return None


def _missing_files(entry: WrittenAssertion, assertion: Assertion, document: Document) -> list[ConfigProblem]:
    """Return the files next to the case that an assertion names and that do not exist."""
    if not isinstance(assertion, Probe) or document.path is None:
        return []
    found = []
    for field in assertion.case_files:
        written = entry.fields.get(field)
        if isinstance(written, str) and not names_in(written) and not (document.path.parent / written).is_file():
            message = f"the file {written!r} does not exist next to {document.path.name}"
            found.append(document.problem(entry.place((field,)), message))
    return found
