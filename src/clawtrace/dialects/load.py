"""Load dialect files: the built-in ones and those of a project's own folders; resolve ``extends``.

A project's own files are checked when they are loaded. Built-in ones are checked by the tests, and of each only the `head` is
read before it is used: the spans at hand were written by one or two of the many instrumentations.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from clawtrace.dialects.rules import fits
from clawtrace.dialects.schema import Detect, DialectFile, EventRule, Merge, Recorded, Verified
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.yaml_reading import read_foreign_yaml, read_yaml

__all__ = ["BUILTIN", "EVIDENCE", "Dialect", "Evidence", "Executions", "evidence", "load_dialects"]

Evidence = Literal["verified", "other-version", "generic"]
Executions = Literal["spans", "none"]

EVIDENCE: dict[Evidence, str] = {
    "verified": "The rules were verified on recordings of this instrumentation in this version range.",
    "other-version": "The rules were verified on recordings of this instrumentation in other versions only. In a later minor version they are "
    "believed; in an earlier one, or another major one, what is doubted of `generic` spans is doubted.",
    "generic": "No recording of this instrumentation was verified: only the general rules of a convention read it.",
}
"""Every kind of evidence (`spans.rule`), with what it means."""

_NUMBERS = re.compile(r"\d+")


def evidence(verified: Iterable[Verified], scope: str, version: str) -> Evidence:
    """Return what the declarations of a dialect say of an instrumentation scope and version."""
    entries = [entry for entry in verified if fits(scope, entry.scope)]
    if not entries:
        return "generic"
    return "verified" if any(_within(entry.versions, version) for entry in entries) else "other-version"


def _within(versions: Sequence[str], version: str, *, later: bool = False) -> bool:
    """Return whether a version is in the range of those that were recorded: of one major version, from minor to minor, or `later`."""
    if not version:
        return later or not versions or version in versions
    major, minor = _series(version)
    minors = [_series(recorded)[1] for recorded in versions if recorded and _series(recorded)[0] == major]
    return version in versions or (bool(minors) and min(minors) <= minor and (later or minor <= max(minors)))


def _series(version: str) -> tuple[int, int]:
    """Return major and minor version."""
    numbers = [int(digits) for digits in _NUMBERS.findall(version)[:2]]
    return (*numbers, 0, 0)[0], (*numbers, 0, 0)[1]


BUILTIN = Path(__file__).parent / "builtin"
_HEAD = re.compile(rb".*?^detect:.*?(?=^[a-z]|\Z)", re.MULTILINE | re.DOTALL)
_OF_HEAD = re.compile(rb"^(?:dialect|extends|detect):.*?(?=^[a-z]|\Z)", re.MULTILINE | re.DOTALL)


class _Source:
    """One dialect file: what its `head` says of it, and all of its words, which are read and checked when they are first used."""

    def __init__(self, path: Path, data: bytes, head: Any) -> None:
        self.path = path
        self.data = data
        self.name = str(head["dialect"])
        self.extends: str | None = head.get("extends")
        self.programs: Sequence[str] = [
            one["scope"] for one in head.get("verified", ()) if one.get("version") == "service.version"
        ]
        """The verified scopes of agents that are programs, whose version is in the resource."""
        self._detect = head["detect"]

    @cached_property
    def words(self) -> DialectFile:
        """The words of the file.

        Raises:
            ValidationError: it is no dialect.
        """
        return DialectFile.model_validate(read_yaml(self.data))

    def says(self, word: str) -> bool:
        """Whether the file may say anything of a word: a built-in one need not be read where it does not."""
        return "words" in vars(self) or f"\n{word}:".encode() in self.data

    @cached_property
    def detect(self) -> Detect:
        """How its spans are recognised."""
        return Detect.model_validate(self._detect)


class Dialect:
    """A dialect with its ancestors merged in, ready to compile."""

    def __init__(self, source: _Source, base: Dialect | None) -> None:
        self._source = source
        self._base = base
        self.name = source.name
        self.path = str(source.path)
        inherited = b"" if base is None else base.digest.encode()
        self.digest: str = hashlib.sha256(source.data + inherited).hexdigest()
        """SHA-256 over the file and its ancestors."""
        self._evidence: dict[tuple[str, str], Evidence] = {}
        self._unproven: dict[tuple[str, str], bool] = {}
        self._executions: dict[str, Executions | None] = {}

    @cached_property
    def file(self) -> DialectFile:
        """The merged words: its own rules first, then those of what it extends."""
        words = self._source.words
        return words if self._base is None else _merge(words, self._base.file)

    @cached_property
    def detect(self) -> Detect:
        """How its spans are recognised: known without the rest of `file`, since every span is held against it."""
        return self._source.detect

    @cached_property
    def events(self) -> Sequence[EventRule]:
        """What its log records describe: known without the rest of `file`, since every log record is held against it."""
        if self._base is not None and not (
            self._source.says("events") and "events" in self._source.words.model_fields_set
        ):
            return self._base.events
        return self._source.words.events

    @cached_property
    def event_name(self) -> Sequence[str]:
        """Attributes that hold the name of an event: known without the rest of `file`, too."""
        own = self._source.words.event_name if self._source.says("event_name") else ()
        return (*own, *(() if self._base is None else self._base.event_name))

    @cached_property
    def verified(self) -> Sequence[Verified]:
        """The instrumentations whose spans it was verified to read."""
        return self._source.words.verified

    @property
    def programs(self) -> Sequence[str]:
        """The scopes among them whose version is the resource attribute ``service.version``."""
        return self._source.programs

    def evidence(self, scope: str, version: str) -> Evidence:
        """Return on what evidence its rules read spans of an instrumentation scope and version (`spans.rule`)."""
        found = self._evidence.get((scope, version))
        if found is None:
            found = self._evidence[scope, version] = evidence(self.verified, scope, version)
        return found

    def unproven(self, scope: str, version: str) -> bool:
        """Return whether no recording shows that its rules hold for spans of an instrumentation scope and version.

        Those without a version, or of a later minor version than one that was recorded, are taken to be like it; before it, and in
        another major version, a scope may have written otherwise.
        """
        found = self._unproven.get((scope, version))
        if found is None:
            said = self.evidence(scope, version)
            found = said == "generic" or (
                said == "other-version"
                and not any(
                    _within(one.versions, version, later=True) for one in self.verified if fits(scope, one.scope)
                )
            )
            self._unproven[scope, version] = found
        return found

    def executions(self, scope: str) -> Executions | None:
        """Return whether there is a span for each execution under an instrumentation scope (`DialectFile.executions`)."""
        if scope not in self._executions:
            said = [rule.is_ for rule in self.file.executions if any(fits(scope, glob) for glob in rule.scopes)]
            self._executions[scope] = said[0] if said else None
        return self._executions[scope]

    @property
    def agent_settings(self) -> Mapping[Literal["usage", "content"], str]:
        """What an agent of this framework sets to have more recorded."""
        return self._source.words.agent_settings

    def records(self, fact: str, by: Literal["spans", "logs"] = "spans") -> bool | str:
        """Return whether `fact` (one of `RECORDABLE`) can be recorded: yes, no, or the setting that makes it so."""
        said = self._source.words.records.get(fact)
        if said is None:
            return self._base.records(fact, by) if self._base is not None else False
        return getattr(said, by) if isinstance(said, Recorded) else said


def load_dialects(folders: Sequence[Path] = ()) -> tuple[Dialect, ...]:
    """Return every dialect, highest priority first; a project's own file replaces a built-in of the same name.

    Raises:
        ConfigError: a file is not a dialect, or extends one that does not exist.
    """
    states = tuple((str(path), *_state(path)) for folder in folders for path in _files(folder))
    return _load(tuple(str(folder) for folder in folders), states)


def _state(path: Path) -> tuple[int, int]:
    """Return what changes when a file is edited; zeros where it cannot be looked at."""
    try:
        seen = path.stat()
    except OSError:
        return 0, 0
    return seen.st_mtime_ns, seen.st_size


def _files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])


@lru_cache(maxsize=8)
def _load(folders: tuple[str, ...], states: tuple[tuple[str, int, int], ...]) -> tuple[Dialect, ...]:
    """Load the dialects; `states` of a project's own files are only given so that an edited one is read again."""
    del states
    sources: dict[str, _Source] = {}
    problems: list[ConfigProblem] = []
    for folder in (BUILTIN, *map(Path, folders)):
        if not folder.is_dir():
            problems.append(ConfigProblem(_shown(folder), 0, 0, "is not a folder of dialect files."))
        for path in _files(folder):
            try:
                source = _read(path, checked=folder is BUILTIN)
            except OSError as error:
                problems.append(ConfigProblem(_shown(path), 0, 0, f"cannot be read: {error.strerror}"))
                continue
            except (ValueError, yaml.YAMLError) as error:
                problems.extend(_problems(path, error))
                continue
            sources[source.name] = source
    for source in sources.values():
        if source.extends is not None and source.extends not in sources:
            problems.append(
                ConfigProblem(_shown(source.path), 0, 0, f"extends {source.extends!r}, which does not exist.")
            )
    if problems:
        raise ConfigError(problems)
    found = [_dialect(name, sources) for name in sources]
    return tuple(sorted(found, key=lambda dialect: (-dialect.detect.priority, dialect.name)))


def _read(path: Path, *, checked: bool) -> _Source:
    """Return one file; unless the tests have `checked` it, it is checked now."""
    data = path.read_bytes()
    if checked:
        return _Source(path, data, read_yaml(head(data)))
    said = read_foreign_yaml(data)
    words = DialectFile.model_validate(said)
    source = _Source(path, data, said)
    source.words = words
    return source


def head(data: bytes) -> bytes:
    """Return the lines of a built-in file up to the end of `detect`: a third, in which its name, base and scopes stand.

    Without those for people, and without `verified` where no scope is that of a program: they take half of the time.
    """
    found = _HEAD.match(data)
    assert found is not None, "a built-in dialect has `detect`"
    return found[0] if b"version: service.version" in found[0] else b"".join(_OF_HEAD.findall(found[0]))


def _dialect(name: str, sources: Mapping[str, _Source]) -> Dialect:
    source = sources[name]
    return Dialect(source, None if source.extends is None else _dialect(source.extends, sources))


def _problems(path: Path, error: ValueError | yaml.YAMLError) -> list[ConfigProblem]:
    """Return what is wrong with a file, each problem at the line and column of its key."""
    if isinstance(error, ValidationError):
        root = yaml.compose(path.read_bytes())
        return [
            ConfigProblem(
                _shown(path), *_place(root, entry["loc"]), _message(entry), key=".".join(map(str, entry["loc"]))
            )
            for entry in error.errors()
        ]
    mark = getattr(error, "problem_mark", None)
    place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return [ConfigProblem(_shown(path), place[0], place[1], str(getattr(error, "problem", error)))]


def _message(entry: ErrorDetails) -> str:
    words = {
        "extra_forbidden": "is not a known key; docs/reference/dialect-words.md lists all",
        "missing": "is required",
        "model_type": "must be a mapping of keys",
    }
    return words.get(entry["type"], entry["msg"])


def _place(node: yaml.Node | None, path: Sequence[str | int]) -> tuple[int, int]:
    """Return line and column (1-based) of the key at `path`, or of the nearest thing around it; 0 in an empty file."""
    if node is None:
        return 0, 0
    mark = node.start_mark
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key.start_mark, value) for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = node.value[step].start_mark, node.value[step]
        else:
            found = None
        if found is not None:
            mark, node = found
    return mark.line + 1, mark.column + 1


def _shown(path: Path) -> str:
    """Return a path as the user would write it: below the working folder it is relative."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _merge(words: DialectFile, inherited: DialectFile) -> DialectFile:
    """Return `words` with what they do not say taken from `inherited`, as each word declares (`Merge`)."""
    merged: dict[str, Any] = {}
    for name, field in DialectFile.model_fields.items():
        policy = next((word for word in field.metadata if isinstance(word, Merge)), Merge.INSTEAD)
        own, above = getattr(words, name), getattr(inherited, name)
        if policy is Merge.BEFORE:
            merged[name] = [*own, *above]
        elif policy is Merge.OVER:
            merged[name] = {**above, **own}
        elif policy is Merge.INSTEAD and name not in words.model_fields_set:
            merged[name] = above
    return words.model_copy(update=merged)
