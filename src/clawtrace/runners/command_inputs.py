"""What a command depends on beside its settings, as digests (spec: config.md §5)."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.runners.base import Inputs, InputsRequest
from clawtrace.runners.content import MAX_FILES, ProjectListing, Tree, file_digest, files_below, tree
from clawtrace.runners.templates import names_in, render

if TYPE_CHECKING:
    from clawtrace.runners.command_settings import CommandSettings

__all__ = ["command_inputs", "forget_project_digests"]


def command_inputs(request: InputsRequest, settings: CommandSettings) -> Inputs:
    """Return the program, the case's folder, the files that the agent depends on, and the variables passed to it."""
    own = files_below(request.case_dir, request.judging, _listing(request.project_root))
    if own is None:
        return Inputs({}, f"the case's folder holds more than {MAX_FILES} files")
    program = _program(request, settings)
    named = _named_files(request, settings)
    digests: dict[str, Any] = {
        "the program": None if program is None else file_digest(Path(os.path.realpath(program))),
        "installed Python packages": _packages(program, request.env.get("VIRTUAL_ENV")),
        "a file that the command names": named,
        "the scaffold": None,
        "variables of `pass_env`": _variables(request, settings),
    }
    trees = {"the case's folder": tree(request.case_dir, own)}
    if settings.scaffold is not None:
        trees["the scaffold"] = _folder(request.case_dir / settings.scaffold)
    unknown = ""
    if settings.inputs is not None:
        trees["the files of `inputs`"] = tree(request.case_dir, _globbed(request.case_dir, settings.inputs))
    elif (project := _project(request.project_root, request.leave_out)) is not None:
        trees["files of the project"] = project
    else:
        unknown = f"the project holds more than {MAX_FILES} files that could matter; `inputs` of the runner names those that do"
    files = {name: one.files for name, one in trees.items()}
    return Inputs(
        digests | {name: one.digest for name, one in trees.items()},
        unknown,
        files | {"a file that the command names": named},
    )


def forget_project_digests() -> None:
    """Look at the project's files and at what is installed anew when the next digest is asked for."""
    _project.cache_clear()
    _packages.cache_clear()
    _listing.cache_clear()


@lru_cache(maxsize=8)
def _listing(root: Path) -> ProjectListing:
    return ProjectListing(root)


@lru_cache(maxsize=8)
def _project(root: Path, leave_out: frozenset[Path]) -> Tree | None:
    """Return a project's files; they are the same for all cases of a campaign."""
    files = files_below(root, leave_out, _listing(root))
    return None if files is None else tree(root, files)


def _folder(root: Path) -> Tree:
    return tree(root, (file for file in root.rglob("*") if file.is_symlink() or not file.is_dir()))


def _globbed(case_dir: Path, patterns: Iterable[str]) -> list[Path]:
    found: set[Path] = set()
    for pattern in patterns:
        for name in glob.iglob(pattern, root_dir=case_dir, recursive=True, include_hidden=True):  # noqa: PTH207 (also "..")
            path = case_dir / name
            found |= {file for file in path.rglob("*") if not file.is_dir()} if path.is_dir() else {path}
    return sorted(found)


def _program(request: InputsRequest, settings: CommandSettings) -> str | None:
    """Return the path of the program, of a shell text the first word's; None where it is not found."""
    command = settings.command
    first = next(iter(_shell_words(command)), "") if isinstance(command, str) else command[0]
    name = _rendered(first, request)
    return shutil.which(name, path=settings.env.get("PATH") or request.env.get("PATH", os.defpath)) if name else None


@lru_cache(maxsize=64)
def _packages(program: str | None, virtual_env: str | None) -> str:
    """Return which versions of which packages the Python of the program, or of the active environment, has installed.

    An agent changes when its framework is upgraded, and no file of the project need tell.
    """
    homes = {Path(path).parent.parent for path in (program, program and os.path.realpath(program)) if path}
    homes |= {Path(virtual_env)} if virtual_env else set()
    found = set()
    for home in homes:
        for folder in (*home.glob("lib/python3*/site-packages"), *home.glob("lib/python3*/dist-packages")):
            found |= {
                f"{entry.name}:{entry.stat().st_mtime_ns}"
                for entry in os.scandir(folder)
                if entry.name.endswith((".dist-info", ".egg-info", ".egg-link", ".pth"))
            }
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


def _named_files(request: InputsRequest, settings: CommandSettings) -> dict[str, str]:
    """Return the files that the settings name by a path, wherever they are."""
    commands = [settings.command, *settings.setup]
    texts = [text for one in commands for text in (_shell_words(one) if isinstance(one, str) else one)]
    texts += [text for text in settings.env.values() if text is not None]
    found = {}
    for text in texts:
        path = _rendered(text, request)
        if path is not None and os.sep in path and len(path) < 4096 and (request.case_dir / path).is_file():
            found[text] = file_digest(request.case_dir / path)
    return found


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # quotes that are never closed: the shell will say so
        return text.split()


def _rendered(text: str, request: InputsRequest) -> str | None:
    """Return a text with the templates that are known before a run; None where it holds others."""
    known = {"python": sys.executable, "case_dir": str(request.case_dir)}
    return None if set(names_in(text)) - known.keys() or "\0" in text else render(text, known.__getitem__)


def _variables(request: InputsRequest, settings: CommandSettings) -> dict[str, str]:
    """Return the caller's variables that `pass_env` lets through, as digests: keys and switches change agents."""
    given = {
        name: value
        for name, value in request.env.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in settings.pass_env)
    }
    return {name: hashlib.sha256(value.encode()).hexdigest() for name, value in sorted(given.items())}
