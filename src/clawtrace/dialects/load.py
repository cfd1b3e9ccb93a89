"""Load dialect files: the built-in ones and those of a project's own folders; resolve ``extends``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from clawtrace.dialects.schema import RECORDABLE, DialectFile
from clawtrace.errors import ConfigError, ConfigProblem

__all__ = ["Dialect", "load_dialects"]

_BUILTIN = Path(__file__).parent / "builtin"
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect with its ancestors merged in, ready to compile."""

    name: str
    file: DialectFile
    """The merged words: its own rules first, then those of what it extends."""
    path: str
    digest: str
    """SHA-256 over the file and its ancestors."""

    def records(self, fact: str) -> bool | str:
        """Return whether `fact` (one of `RECORDABLE`) can be recorded: yes, no, or the setting that makes it so."""
        return self.file.records.get(fact, False)


def load_dialects(folders: Sequence[Path] = ()) -> tuple[Dialect, ...]:
    """Return every dialect, highest priority first; a project's own file replaces a built-in of the same name.

    Raises:
        ConfigError: a file is not a dialect, or extends one that does not exist.
    """
    return _load(tuple(str(folder) for folder in folders))


@lru_cache(maxsize=8)
def _load(folders: tuple[str, ...]) -> tuple[Dialect, ...]:
    raw: dict[str, tuple[DialectFile, Path, bytes]] = {}
    problems: list[ConfigProblem] = []
    for folder in (_BUILTIN, *map(Path, folders)):
        if not folder.is_dir():
            problems.append(ConfigProblem(str(folder), 0, 0, "is not a folder of dialect files."))
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            data = path.read_bytes()
            try:
                words = DialectFile.model_validate(yaml.load(data, Loader=_LOADER))
            except (ValidationError, yaml.YAMLError) as error:
                problems.extend(_problems(path, error))
                continue
            raw[words.dialect] = (words, path, data)
    for words, path, _ in raw.values():
        if words.extends is not None and words.extends not in raw:
            problems.append(ConfigProblem(str(path), 0, 0, f"extends {words.extends!r}, which does not exist."))
    if problems:
        raise ConfigError(problems)
    merged = [_merge(name, raw) for name in raw]
    return tuple(sorted(merged, key=lambda dialect: (-dialect.file.detect.priority, dialect.name)))


def _problems(path: Path, error: ValidationError | yaml.YAMLError) -> list[ConfigProblem]:
    if isinstance(error, ValidationError):
        return [
            ConfigProblem(str(path), 0, 0, entry["msg"], key=".".join(str(part) for part in entry["loc"]))
            for entry in error.errors()
        ]
    mark = getattr(error, "problem_mark", None)
    place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return [ConfigProblem(str(path), place[0], place[1], str(getattr(error, "problem", error)))]


def _merge(name: str, raw: dict[str, tuple[DialectFile, Path, bytes]]) -> Dialect:
    words, path, data = raw[name]
    if words.extends is None:
        return Dialect(name, words, str(path), hashlib.sha256(data).hexdigest())
    base = _merge(words.extends, raw)
    inherited = base.file
    file = words.model_copy(
        update={
            "kind": [*words.kind, *inherited.kind],
            "roles": [*words.roles, *inherited.roles],
            "columns": {**inherited.columns, **words.columns},
            "errors": words.errors or inherited.errors,
            "tool_failed": words.tool_failed or inherited.tool_failed,
            "tool_blocked": words.tool_blocked or inherited.tool_blocked,
            "excludes_cache": words.excludes_cache or inherited.excludes_cache,
            "excludes_reasoning": words.excludes_reasoning or inherited.excludes_reasoning,
            "shell": [*words.shell, *inherited.shell],
            "messages": [*words.messages, *inherited.messages],
            "parent_not_exported": [*words.parent_not_exported, *inherited.parent_not_exported],
            "records": {**{fact: inherited.records.get(fact, False) for fact in RECORDABLE}, **words.records},
        }
    )
    return Dialect(name, file, str(path), hashlib.sha256(data + base.digest.encode()).hexdigest())
