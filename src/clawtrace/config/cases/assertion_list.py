"""The assertions of a file: read from three notations into one, parsed when it is loaded, filled in for each run.

| notation | keys | an entry |
|---|---|---|
| long | all but the last one's | ``{type: tool_sequence, expected: [a, b]}`` |
| short | the same | ``{ran: "docker build"}``, ``{run_count: {pattern: curl, min: 2}}`` |
| check | `deterministic_checks` | ``{check_id: x, declarative: {kind: tool_call_count, count: 3}}`` or with `python_hook` |

Where each field was written is kept, so that a problem found in the one form is shown in the other (spec: assertions.md §1).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.assertions.base import Assertion, InvalidAssertionError
from clawtrace.assertions.registry import UnknownTypeError, get, names, parse_assertion
from clawtrace.config.base import is_slug
from clawtrace.config.files.document import Document, KeyPath
from clawtrace.config.files.problems import Place, template_problems, texts
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.starting.templates import RunValues, names_in, render_tree
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["ASSERTIONS", "PRECONDITIONS", "AssertionList", "EntryReader", "load_assertions"]

_CHECKS = "deterministic_checks"
ASSERTIONS = ("assertions", "assert", _CHECKS)
"""The keys of assertions."""
PRECONDITIONS = ("preconditions", "given")
"""The two keys of preconditions."""

_SHARED = tuple(name for name in Assertion.model_fields if name != "id")
"""Fields that every assertion has, and that an entry in the check notation may hold next to its check."""


class WrittenAssertion(NamedTuple):
    """One assertion as it was written."""

    fields: dict[str, Any]
    """`type` and the fields of that type, as in the long notation."""
    path: KeyPath
    """Position of the entry."""
    places: Mapping[str, KeyPath]
    """Positions of fields that are not below `path` under their own name."""
    inner: KeyPath = ()
    """Position where absent fields would be; empty where that is `path`."""

    def place(self, path: KeyPath) -> KeyPath:
        """Return the position in the file of a path below `fields`."""
        if not path:
            return self.path
        return self.places.get(str(path[0]), (*(self.inner or self.path), path[0])) + path[1:]


@dataclass(slots=True)
class EntryReader:
    """Reads the assertions of a file, and notes every problem; an entry that cannot be read is left out."""

    document: Document
    problems: list[ConfigProblem]

    def read(self, keys: Sequence[str]) -> list[WrittenAssertion]:
        """Return the assertions below `keys`, in the order in which the file has them.

        That a list is no list is the business of the file's model.
        """
        found = []
        for key, raw in self.document.data.items():
            if key not in keys or not isinstance(raw, list):
                continue
            for index, written in enumerate(raw):
                entry = self._entry(key, written, (key, index))
                if entry is not None:
                    found.append(entry)
        return found

    def _add(self, path: KeyPath, message: str, hint: str = "", *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, message, hint, key=key))

    def _entry(self, key: str, written: Any, path: KeyPath) -> WrittenAssertion | None:
        if key == _CHECKS:
            return self._check(written, path)
        if isinstance(written, str):
            written = {written: None}
        if not isinstance(written, dict) or not written:
            self._add(path, 'an assertion is a `type` and its fields, or a type and its value: `- ran: "make test"`')
            return None
        if "type" not in written and (key != "assertions" or len(written) == 1 or next(iter(written)) in names()):
            return self._short(written, path)
        if not isinstance(written.get("type", ""), str):
            self._add((*path, "type"), "must be the name of an assertion type")
            return None
        return WrittenAssertion(dict(written), path, {})

    def _short(self, written: dict[str, Any], path: KeyPath) -> WrittenAssertion | None:
        name, value = next(iter(written.items()))
        try:
            cls = get(name)
        except UnknownTypeError as error:
            self._add((*path, name), error.problem, error.hint, key=True)
            return None
        places: dict[str, KeyPath] = {"type": (*path, name)}
        fields: dict[str, Any] = {"type": name}
        inner = path
        if isinstance(value, dict) and "type" not in value:
            inner = (*path, name)
            fields |= value
            places |= {field: (*path, name, field) for field in value}
        elif value is not None and cls.main_field is not None:
            fields[cls.main_field] = value
            places[cls.main_field] = (*path, name)
        elif value is not None and value is not True:
            self._add((*path, name), _no_main_field(cls, value))
            return None
        for field, more in list(written.items())[1:]:
            if field in fields:
                self._add((*path, field), f"the field `{field}` is used twice", key=True)
            elif field not in cls.model_fields and field in names():
                message = f"one entry contains one assertion: `{name}` and `{field}` are two"
                self._add((*path, field), message, "Start a new line with `- `.", key=True)
            else:
                fields[field] = more
                places[field] = (*path, field)
        return WrittenAssertion(fields, path, places, inner)

    def _check(self, written: Any, path: KeyPath) -> WrittenAssertion | None:
        before = len(self.problems)
        if not isinstance(written, dict):
            self._add(path, "a check is a mapping with `check_id` and `declarative` or `python_hook`")
            return None
        known = ("check_id", "declarative", "python_hook", *_SHARED)
        for key in written:
            if key not in known:
                message = f"is not a known key of a check; known are {', '.join(f'`{word}`' for word in known)}"
                self._add((*path, key), message, did_you_mean(key, known), key=True)
        check_id = written.get("check_id")
        if check_id is None:
            self._add((*path, "check_id"), "is required")
        elif not isinstance(check_id, str) or not is_slug(check_id):
            rule = "an id has letters, digits, `_`, `-` and `.` only and starts with no `-` or `.`"
            self._add((*path, "check_id"), f"{rule}, found {check_id!r}")
        forms = [form for form in ("declarative", "python_hook") if form in written]
        if len(forms) != 1:
            found = "both are given" if forms else "neither is given"
            self._add(path, f"a check has exactly one of `declarative` and `python_hook`; {found}")
            return None
        inner = written[forms[0]]
        if not isinstance(inner, dict):
            self._add((*path, forms[0]), "must be a mapping")
            return None
        fields, places = self._inner(inner, forms[0], path)
        if len(self.problems) > before:
            return None
        shared = {key: value for key, value in written.items() if key in _SHARED}
        fields |= shared | {"id": check_id}
        places |= {key: (*path, key) for key in shared} | {"id": (*path, "check_id")}
        return WrittenAssertion(fields, path, places, (*path, forms[0]))

    def _inner(self, inner: dict[str, Any], form: str, path: KeyPath) -> tuple[dict[str, Any], dict[str, KeyPath]]:
        """Return type and fields of the check itself, and their positions."""
        fields = dict(inner)
        places: dict[str, KeyPath] = {key: (*path, form, key) for key in inner}
        for key in ("type", "id", *(("kind",) if form == "python_hook" else ())):
            if key in fields:
                known = "`kind` names the type" if key == "type" else f"`{key}` does not belong here"
                self._add((*path, form, key), known, key=True)
                del fields[key]
        if form == "python_hook":
            return {"type": "python_hook"} | fields, places | {"type": (*path, form)}
        kind = fields.pop("kind", None)
        if kind is None:
            self._add((*path, form, "kind"), "is required: the kind of check")
        elif not isinstance(kind, str) or kind not in names():
            unknown = UnknownTypeError(kind)
            message = unknown.problem.replace("unknown assertion type", "unknown kind")
            self._add((*path, form, "kind"), message, unknown.hint)
        return {"type": kind} | fields, places | {"type": (*path, form, "kind")}

    def named(self, entries: Sequence[WrittenAssertion]) -> list[WrittenAssertion]:
        """Return the entries with an id each: the given one, else the type, numbered from the second on."""
        taken: dict[str, KeyPath] = {}
        for entry in entries:
            given = entry.fields.get("id")
            if not isinstance(given, str):
                continue
            if given in taken:
                first = self.document.locate(taken[given])[0]
                self._add(entry.place(("id",)), f"the id {given!r} is used twice, first in line {first}")
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


def _no_main_field(cls: type[Assertion], value: Any) -> str:
    if isinstance(value, dict):
        return f"the key is already the `type` here: `{cls.type_name}: {{…}}` contains the fields of `{cls.type_name}` only"
    own = [name for name in cls.model_fields if name not in Assertion.model_fields]
    what = f"a mapping of its fields ({', '.join(own)})" if own else "nothing, `true`, or a mapping of common fields"
    return f"`{cls.type_name}` takes {what}, found {value!r}"


# --- the list ---------------------------------------------------------------------------------------------------------


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
    reader = EntryReader(document, problems)
    read = reader.read(keys)
    entries = reader.named([_of_each_run(entry) for entry in read] if recorded else read)
    folder = str(document.path.absolute().parent) if document.path is not None else "/case"
    sample = partial(_sample, RunValues("run", "case", folder, "model", "/workspace", time.time(), env))
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
    if document.path is None:
        return []
    found = []
    for field in assertion.case_files:
        written = entry.fields.get(field)
        if isinstance(written, str) and not names_in(written) and not (document.path.parent / written).is_file():
            message = f"the file {written!r} does not exist next to {document.path.name}"
            found.append(document.problem(entry.place((field,)), message))
    return found
