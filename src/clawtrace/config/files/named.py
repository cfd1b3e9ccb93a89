"""Configuration files by what names them: the value of a flag, or the folder of a case."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from clawtrace.config.files.document import SUFFIXES, display, with_either_suffix
from clawtrace.errors import ConfigProblem, UsageError
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["NamedFile", "case_files", "resolve", "unread_cases"]

_CASE_ID = re.compile(rb"^case_id[ \t]*:", re.MULTILINE)


class NamedFile(NamedTuple):
    """A configuration file that a flag named."""

    path: Path
    by_id: bool
    """Whether the flag gave an id; the file must then carry it."""


def resolve(value: str, folder: Path, kind: str) -> NamedFile:
    """Return the file that the flag `value` names: a path, or an id below `folder`.

    A value with a separator, a leading dot or a YAML suffix is a path.

    Args:
        folder: the conventional folder of this kind, for example ``configs/suites``.
        kind: the word for messages, for example ``suite``.

    Raises:
        UsageError: there is no such file, or both suffixes exist.
    """
    if os.sep in value or "/" in value or value.startswith(".") or value.endswith(SUFFIXES):
        path = Path(value)
        if not path.is_file():
            raise UsageError(f"the {kind} file {value!r} does not exist")
        return NamedFile(path.resolve(), by_id=False)
    found = with_either_suffix(folder / value)
    if found is None:
        known = sorted(path.stem for path in folder.glob("*") if path.suffix in SUFFIXES) if folder.is_dir() else []
        hint = did_you_mean(value, known) or (f"Known are {', '.join(known)}." if known else "")
        if not folder.is_dir():
            hint = "The folder does not exist: is the project in another folder?"
            hint += " `clawtrace init` writes a first suite." if kind == "suite" else ""
        where = f"there is no {kind} {value!r} in {display(folder)}"
        raise UsageError(f"{where} ({value}.yaml). {hint}".rstrip())
    return NamedFile(found, by_id=True)


def case_files(cases: Path) -> dict[str, list[Path]]:
    """Return the case files by the name of their folder: ``<case_id>/test.yaml``, or one group folder deeper.

    More than one file for a name is a problem only of a request for that case.

    Raises:
        UsageError: a folder holds both test.yaml and test.yml.
    """
    found: dict[str, list[Path]] = {}
    seen: set[str] = set()
    folders = _folders(cases)
    while folders:
        folder = folders.pop(0)
        file = with_either_suffix(folder / "test")
        if file is None:
            folders += _folders(folder) if folder.parent == cases else ()
        elif os.path.realpath(file) not in seen:  # a link to the folder of cases shows each of them again
            seen.add(os.path.realpath(file))
            found.setdefault(folder.name, []).append(file)
    return found


def unread_cases(cases: Path, files: Mapping[str, list[Path]]) -> Iterator[ConfigProblem]:
    """Yield the files that are written as cases, and are none because of their name or place; `files` are those that are."""
    known = {os.path.realpath(file) for found in files.values() for file in found}
    places = [f"{depth}*{suffix}" for depth in ("", "*/", "*/*/", "*/*/*/") for suffix in SUFFIXES]
    for path in sorted({path for place in places for path in cases.glob(place)}):
        is_known = os.path.realpath(path) in known or not (path.is_file() and os.access(path, os.R_OK))
        if not is_known and _CASE_ID.search(path.read_bytes()):
            yield ConfigProblem(
                display(path), 0, 0, "is not read: cases are `NAME/test.yaml` or `GROUP/NAME/test.yaml`"
            )


def _folders(parent: Path) -> list[Path]:
    """Return the folders in one, links last: a link is left out where the folder itself is there."""
    return sorted((path for path in parent.glob("*") if path.is_dir()), key=lambda path: (path.is_symlink(), path))
