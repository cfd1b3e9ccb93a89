"""What `inputs` of a `command` runner declares: the files behind its paths, globs and packages (spec: config.md §5)."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from clawtrace.runners.inputs.content import files_below

__all__ = ["PACKAGE", "Unmatched", "declared_files", "forget_packages", "package_homes", "unmatched"]

PACKAGE = "package:"
"""Before the name of an installed Python package: `package:my-agent`."""


class Unmatched(NamedTuple):
    """An entry of `inputs` that names nothing."""

    position: int
    """Of the entry in the list, from 0."""
    message: str
    """One sentence."""


def unmatched(entries: Sequence[str], case_dir: Path, homes: Sequence[Path]) -> Iterator[Unmatched]:
    """Yield the entries that name no file.

    Args:
        case_dir: what paths and globs are relative to.
        homes: folders in which Python packages are installed.
    """
    for position, entry in enumerate(entries):
        if entry.startswith(PACKAGE):
            name = entry.removeprefix(PACKAGE)
            if not _package(name, tuple(homes)):
                where = ", ".join(map(str, homes)) or "no Python environment"
                yield Unmatched(
                    position, f"no Python package {name!r} is installed for this command (looked in {where})"
                )
        elif not any(True for _ in _matches(entry, case_dir)):
            yield Unmatched(
                position, f"{entry!r} matches no file, relative to the case file: correct the path, or remove it"
            )


def declared_files(
    entries: Iterable[str], case_dir: Path, homes: Sequence[Path], leave_out: Iterable[Path]
) -> list[Path] | None:
    """Return every file that the entries name; of a folder all that is in it. None when they are too many.

    Args:
        case_dir: what paths and globs are relative to.
        homes: folders in which Python packages are installed.
        leave_out: files and folders that count only where an entry names them, or one that is in them.
    """
    passed_over = tuple(leave_out)
    found: set[Path] = set()
    for entry in entries:
        is_package = entry.startswith(PACKAGE)
        named = _package(entry.removeprefix(PACKAGE), tuple(homes)) if is_package else _matches(entry, case_dir)
        for path in named:
            below = _below(path, passed_over) if path.is_dir() else [path]
            if below is None:
                return None
            found.update(below)
    return sorted(found)


def _matches(pattern: str, case_dir: Path) -> Iterator[Path]:
    names = glob.iglob(pattern, root_dir=case_dir, recursive=True, include_hidden=True)  # noqa: PTH207 (also "..")
    return (case_dir / name for name in names)


def _below(folder: Path, leave_out: Iterable[Path]) -> list[Path] | None:
    """Return the files of a folder that is named, also those that git ignores; of one that holds no sources as a rule, all."""
    real = os.path.realpath(folder) + os.sep
    inner = [path for path in leave_out if os.path.realpath(path).startswith(real)]
    found = files_below(folder, inner, ignored=True)
    if found == [] and not files_below(folder):
        return [file for file in folder.rglob("*") if file.is_symlink() or not file.is_dir()]
    return found


def package_homes(programs: Iterable[str | None], virtual_env: str | None) -> list[Path]:
    """Return the folders in which the Pythons of programs, or of the active environment, have packages installed."""
    homes = {Path(path).parent.parent for name in programs if name for path in (name, os.path.realpath(name))}
    homes |= {Path(virtual_env)} if virtual_env else set()
    kinds = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
    return sorted({folder for home in homes for kind in kinds for folder in home.glob(kind)})


def forget_packages() -> None:
    """Look at installed packages anew."""
    _package.cache_clear()


@lru_cache(maxsize=256)
def _package(name: str, homes: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the files of an installed package by its distribution's name or by the name it is imported by."""
    where = [str(home) for home in homes]
    found: set[Path] = set()
    for one in distributions(name=name, path=where) if name else ():
        found.update(Path(str(one.locate_file(file))) for file in one.files or () if "__pycache__" not in file.parts)
        found.update(_edited_in_place(one))
    if not found:
        inner = name.replace(".", os.sep)
        places = [home / f"{inner}{suffix}" for home in homes for suffix in ("", ".py")] if inner else []
        found.update(place for place in places if place.exists())
    return tuple(sorted(found))


def _edited_in_place(one: Distribution) -> Iterator[Path]:
    """Yield the folder of sources of a package that is installed in editable mode."""
    try:
        data: Mapping[str, object] = json.loads(one.read_text("direct_url.json") or "{}")
    except ValueError:
        return
    info, url = data.get("dir_info"), urlsplit(str(data.get("url", "")))
    if isinstance(info, dict) and info.get("editable") and url.scheme == "file":
        yield Path(unquote(url.path))
