"""What a command depends on apart from its settings, and what its `inputs` declare, as digests (spec: config.md §5)."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from clawtrace.runners.base import ALREADY_RAN, AgentInputs, InputsRequest
from clawtrace.runners.inputs.content import (
    MAX_FILES,
    ProjectListing,
    Tree,
    file_digest,
    files_below,
    folder_tree,
    tree,
)
from clawtrace.runners.inputs.named_files import Named, forget_named_folders, inner, named_by, rendered, shell_words
from clawtrace.runners.starting.command_turn import ProgramSettings

__all__ = ["PROJECT_FILES", "command_inputs", "forget_project_digests", "unmatched_inputs"]

PACKAGE = "package:"
"""Before the name of an installed Python package: `package:my-agent`."""


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
    found = files_below(folder, inner(folder, leave_out), ignored=True)
    if found == [] and not files_below(folder):
        return [file for file in folder.rglob("*") if file.is_symlink() or not file.is_dir()]
    return found


def package_homes(programs: Iterable[str | None], virtual_env: str | None) -> list[Path]:
    """Return the folders in which the Pythons of programs, or of the active environment, have packages installed."""
    homes = {Path(path).parent.parent for name in programs if name for path in (name, os.path.realpath(name))}
    homes |= {Path(virtual_env)} if virtual_env else set()
    kinds = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
    return sorted({folder for home in homes for kind in kinds for folder in home.glob(kind)})


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


# --- what a command depends on ----------------------------------------------------------------------------------------


PROJECT_FILES = "files of the project"
"""A part of what an agent depends on; its paths are relative to the project's folder."""
_MODULE = re.compile(r"-m\s*([A-Za-z_]\w*)")


def command_inputs(request: InputsRequest, settings: ProgramSettings) -> AgentInputs:
    """Return the program, the case's folder, the files that the agent depends on, and the variables passed to it.

    What code a program loads apart from the files that its command names, only its author knows: `inputs` says it.
    """
    own = files_below(request.case_dir, request.judging, _listing(request.project_root))
    if own is None:
        return AgentInputs({}, f"the case's folder holds more than {MAX_FILES} files")
    program = _program(settings, request.case_dir, request.env)
    passed = _passed(settings, request.env)
    named = named_by(settings, request, passed | settings.env)
    homes = tuple(package_homes([program], request.env.get("VIRTUAL_ENV")))
    digests: dict[str, Any] = {
        "the program": None if program is None else file_digest(Path(os.path.realpath(program))),
        "installed Python packages": _packages(homes),
        "the scaffold": None,
        "variables of `pass_env`": {
            name: hashlib.sha256(value.encode()).hexdigest() for name, value in sorted(passed.items())
        },
    }
    trees = {"the case's folder": tree(request.case_dir, own)}
    if settings.scaffold is not None:
        trees["the scaffold"] = folder_tree(request.case_dir / settings.scaffold)
    unknown = ALREADY_RAN if settings.agent == "running" else ""
    if named.too_many:
        unknown = (
            f"a folder that the command or `cwd` names holds over {MAX_FILES} files, or some that cannot be listed"
        )
    if settings.inputs is None:
        unknown = unknown or _undeclared(settings, request.case_dir, named)
        project = _project(request.project_root, request.leave_out)
        trees |= {} if project is None else {PROJECT_FILES: project}
    else:
        declared = declared_files(settings.inputs, request.case_dir, homes, (*request.leave_out, *request.judging))
        unknown = unknown or (f"`inputs` names more than {MAX_FILES} files" if declared is None else "")
        trees["the files of `inputs`"] = tree(request.case_dir, declared or ())
    by_path = {"a file that the command names": named.files, "a folder that the command or `cwd` names": named.folders}
    digests |= {name: one.digest for name, one in trees.items()}
    return AgentInputs(digests | by_path, unknown, {name: one.files for name, one in trees.items()} | by_path)


def unmatched_inputs(
    settings: ProgramSettings, case_dir: Path, env: Mapping[str, str]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the entries of `inputs` that name nothing: the position of each, and a sentence."""
    homes = package_homes([_program(settings, case_dir, env)], env.get("VIRTUAL_ENV")) if settings.inputs else []
    for number, entry in enumerate(settings.inputs or ()):
        if not entry.startswith(PACKAGE):
            if not any(True for _ in _matches(entry, case_dir)):
                yield (
                    ("inputs", number),
                    f"{entry!r} matches no file, relative to the case file: correct the path, or remove it",
                )
        elif not _package(name := entry.removeprefix(PACKAGE), tuple(homes)):
            where = ", ".join(map(str, homes)) or "no Python environment"
            yield ("inputs", number), f"no Python package {name!r} is installed for this command (looked in {where})"


def forget_project_digests() -> None:
    """Read the project's files and installed packages again for the next digest."""
    _project.cache_clear()
    _packages.cache_clear()
    _listing.cache_clear()
    _package.cache_clear()
    forget_named_folders()


def _undeclared(settings: ProgramSettings, case_dir: Path, named: Named) -> str:
    """Return that nothing says where the agent's code is, with what may say it."""
    command = settings.command if isinstance(settings.command, str) else " ".join(settings.command)
    guesses = [os.path.relpath(folder, case_dir) for folder in dict.fromkeys(named.scripts)]
    guesses += [f"{PACKAGE}{name}" for name in _MODULE.findall(command) if name != "clawtrace"]
    example = ", ".join(guesses) or f"PATH or GLOB or {PACKAGE}NAME"
    return f"which code the agent loads is unknown: list all of it in the case's `runner`, as in `inputs: [{example}]`"


@lru_cache(maxsize=8)
def _listing(root: Path) -> ProjectListing:
    return ProjectListing(root)


@lru_cache(maxsize=8)
def _project(root: Path, leave_out: frozenset[Path]) -> Tree | None:
    """Return a project's files; they are the same for all cases of a campaign."""
    files = files_below(root, leave_out, _listing(root))
    return None if files is None else tree(root, files)


def _program(settings: ProgramSettings, case_dir: Path, env: Mapping[str, str]) -> str | None:
    """Return the path of the program, of a shell text the first word's; None where it is not found."""
    command = settings.command
    first = next(iter(shell_words(command)), "") if isinstance(command, str) else command[0]
    name = rendered(first, case_dir)
    return shutil.which(name, path=settings.env.get("PATH") or env.get("PATH", os.defpath)) if name else None


@lru_cache(maxsize=64)
def _packages(homes: tuple[Path, ...]) -> str:
    """Return which versions of which packages are installed.

    An agent changes when its framework is upgraded, which may change no file of the project.
    """
    found = {
        f"{entry.name}:{entry.stat().st_mtime_ns}"
        for folder in homes
        for entry in os.scandir(folder)
        if entry.name.endswith((".dist-info", ".egg-info", ".egg-link", ".pth"))
    }
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


def _passed(settings: ProgramSettings, env: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's variables that `pass_env` lets through: keys and switches change agents."""
    return {
        name: value
        for name, value in env.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in settings.pass_env)
    }
