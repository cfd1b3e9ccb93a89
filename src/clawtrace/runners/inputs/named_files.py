"""The files and folders that a command's settings name: they count with their content, wherever they lie (spec: config.md §5)."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clawtrace.runners.inputs.content import file_digest, files_below
from clawtrace.runners.starting.environment import SEARCHED
from clawtrace.runners.starting.templates import names_in, render

if TYPE_CHECKING:
    from clawtrace.runners.base import InputsRequest
    from clawtrace.runners.starting.command_turn import ProgramSettings

__all__ = ["Named", "forget_named_folders", "inner", "named_by", "rendered", "shell_words"]

_SCRIPTS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".rb", ".pl", ".php", ".sh", ".lua"})
"""Endings of programs that load files of the same kind from their own folder."""
_LONGEST_PATH = 4096


class Named(NamedTuple):
    """What the settings name."""

    files: dict[str, str]
    """The digest of each file, by its path as written."""
    folders: dict[str, str]
    """The digest of each file in a named folder, or in the folder of a named script, by its path."""
    scripts: list[Path]
    """The folders of the scripts among the files."""
    too_many: bool
    """Whether a folder holds more files than are looked at, or some that cannot be listed."""


def named_by(settings: ProgramSettings, request: InputsRequest, passed: Mapping[str, str | None]) -> Named:
    """Return the files and folders that the words of the commands, the working folder and the variables name.

    Args:
        passed: the variables that the agent gets by `pass_env` or `env`.
    """
    found = Named({}, {}, [], False)
    folders: dict[Path, str | None] = {}
    for text, path in _paths(settings, request, passed):
        if path.is_file():
            found.files[text] = file_digest(path)
            if path.suffix in _SCRIPTS:
                found.scripts.append(path.parent)
                folders.setdefault(path.parent, path.suffix)
        else:
            folders[path] = None
    too_many = False
    for folder, suffix in folders.items():
        below = _below(folder, request, ignored=suffix is None)
        too_many |= below is None
        for file in below or ():
            if suffix is None or file.suffix == suffix:
                found.folders[os.path.relpath(file, request.case_dir)] = file_digest(file)
    return found._replace(too_many=too_many)


def _below(folder: Path, request: InputsRequest, *, ignored: bool) -> list[Path] | None:
    """Return the files of a named folder; None where they are too many, or some of them cannot be listed.

    What judges a case lies in its own folder as a rule, which is left out: then a folder is the same for all cases.
    """
    left_out = _left_out(folder, request.leave_out)
    judging = frozenset(path for path in inner(folder, request.judging) if left_out.isdisjoint(path.parents))
    try:
        return _listed(folder, left_out | judging if judging else left_out, ignored)
    except OSError:
        return None


@functools.cache
def _left_out(folder: Path, leave_out: frozenset[Path]) -> frozenset[Path]:
    return frozenset(inner(folder, leave_out))


@functools.cache
def _listed(folder: Path, leave_out: frozenset[Path], ignored: bool) -> list[Path] | None:
    return files_below(folder, leave_out, ignored=ignored)


def forget_named_folders() -> None:
    """List each named folder anew the next time."""
    _left_out.cache_clear()
    _listed.cache_clear()


def inner(folder: Path, leave_out: Iterable[Path]) -> list[Path]:
    """Return what of `leave_out` is in a folder; a folder that is named itself counts, wherever it is."""
    real = os.path.realpath(folder) + os.sep
    return [path for path in leave_out if os.path.realpath(path).startswith(real)]


def _paths(
    settings: ProgramSettings, request: InputsRequest, passed: Mapping[str, str | None]
) -> Iterator[tuple[str, Path]]:
    """Yield each text that is the path of a file or folder that exists, with the path."""
    cwd = rendered(settings.cwd, request.case_dir)
    at_work = Path(cwd) if cwd is not None and Path(cwd).is_absolute() else None
    if at_work is not None and at_work.is_dir():
        # `{{case_dir}}/../..` is one folder for all cases, but where a link is in it
        plain = Path(os.path.normpath(at_work))
        at_work = plain if plain.is_dir() and plain.samefile(at_work) else at_work
        yield settings.cwd, at_work
    for text in _words(settings, passed):
        path = rendered(text, request.case_dir)
        if not path or len(path) >= _LONGEST_PATH:
            continue
        places = ([request.case_dir] if os.sep in path else []) + ([at_work] if at_work else [])
        there = next((place / path for place in places if (place / path).is_file() or (place / path).is_dir()), None)
        if there is not None and there != Path(there.anchor):  # `cd / && …` says nothing of what is run
            yield text, Path(os.path.normpath(there))


def _words(settings: ProgramSettings, passed: Mapping[str, str | None]) -> Iterator[str]:
    for command in (settings.command, *settings.setup):
        for word in shell_words(command) if isinstance(command, str) else command:
            yield from _parts(word)
    for name, value in passed.items():
        for part in () if value is None else _parts(value):
            if name in SEARCHED or not Path(part).is_dir():
                yield part


def _parts(word: str) -> Iterable[str]:
    """Yield a word, what follows an equals sign in it, and the paths of a list: `PYTHONPATH=/a:/b`, `--config=/c`."""
    values = {word, word.partition("=")[2]}
    return sorted({part for value in values for part in (value, *value.split(os.pathsep)) if part})


def shell_words(text: str) -> list[str]:
    """Return the words of a shell text, without its operators."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        return [word for word in lexer if word.strip("();<>|&")]
    except ValueError:  # quotes that are never closed: the shell will say so
        return text.split()


def rendered(text: str, case_dir: Path) -> str | None:
    """Return a text with the templates that are known before a run; None where it holds others."""
    known = {"python": sys.executable, "case_dir": str(case_dir)}
    return None if set(names_in(text)) - known.keys() or "\0" in text else render(text, known.__getitem__)
