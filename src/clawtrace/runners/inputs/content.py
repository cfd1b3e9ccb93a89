"""The content of files as one digest, which shows whether anything a run depends on was edited (spec: config.md §5)."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["MAX_FILES", "ProjectListing", "Tree", "file_digest", "files_below", "folder_tree", "tree"]

MAX_FILES = 50_000
"""The most files of one digest; with more, runs are not reused until `inputs` names fewer."""

_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache",
     ".pytest_cache", ".ruff_cache", ".hypothesis", ".idea", ".vscode"}
)  # fmt: skip
"""Folders that hold no input of an agent, where git does not say what is ignored."""


@lru_cache(maxsize=200_000)
def _digest(path: str, size: int, changed_ns: int, inode: int) -> str:
    """Return SHA-256 of a file; its state is part of the key, so that an edit is seen."""
    del size, changed_ns, inode
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_digest(file: Path) -> str:
    """Return a file's kind, permission bits and content as one text; of a link where it leads, and the file there.

    What is in a folder that a link leads to is not looked at: it may be everything that the machine has.
    """
    try:
        found = file.lstat()
        if stat.S_ISLNK(found.st_mode):
            return f"link:{file.readlink()}:{_behind(file)}"
        return _content(file, found)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"unreadable:{error.errno}"


def _behind(link: Path) -> str:
    try:
        return _content(link, link.stat())
    except OSError:  # it leads nowhere, or in a circle
        return ""


def _content(file: Path, found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "other"
    return f"{stat.S_IMODE(found.st_mode):o}:{_digest(str(file), found.st_size, found.st_mtime_ns, found.st_ino)}"


class Tree(NamedTuple):
    """Files as one digest, and each by itself, which shows what was edited."""

    digest: str
    """SHA-256 over paths and contents, as 64 hex digits."""
    files: Mapping[str, str]
    """The digest of each file, by its path relative to the root, in order."""


def tree(root: Path, files: Iterable[Path]) -> Tree:
    """Return the paths, relative to `root`, and the contents of `files`, in any order."""
    found = {name: file_digest(file) for name, file in sorted((os.path.relpath(file, root), file) for file in files)}
    total = hashlib.sha256()
    for name, digest in found.items():
        total.update(f"{name}\0{digest}\0".encode("utf-8", "surrogateescape"))
    return Tree(total.hexdigest(), found)


def folder_tree(root: Path) -> Tree:
    """Return the contents of all files below `root`."""
    return tree(root, (file for file in root.rglob("*") if file.is_symlink() or not file.is_dir()))


def files_below(
    root: Path, leave_out: Iterable[Path] = (), listing: ProjectListing | None = None, *, ignored: bool = False
) -> list[Path] | None:
    """Return the files below `root`: what git does not ignore, else all but the folders that hold no inputs.

    Results of campaigns are no inputs, in whichever folder they are.

    Args:
        leave_out: absolute files and folders that are passed over, with all that is in them.
        listing: what git said of the project, which spares the question for each of a thousand folders in it.
        ignored: whether what git ignores is among them, too, but for the folders that hold no inputs: an `.env` that an agent
            reads is ignored as a rule.

    Returns:
        The files, or None when they are more than `MAX_FILES`.
    """
    passed_over = {os.path.realpath(folder) for folder in leave_out}
    listed = _from_git(root) if listing is None else listing.below(root)
    if listed is not None:
        manifests = (path for path in listed if path.name == "manifest.json" and "campaigns" in path.parts[-4:-3])
        passed_over |= {kept for folder in {path.parents[3] for path in manifests} for kept in _results(folder)}
    found: dict[Path, None] = {}
    walked = _walked(root, passed_over) if listed is None or ignored else ()
    for path in itertools.chain(listed or (), walked):
        if passed_over.isdisjoint(map(str, (real := Path(os.path.realpath(path)), *real.parents))):
            found[path] = None
        if len(found) > MAX_FILES:
            return None
    return list(found)


def _from_git(root: Path) -> list[Path] | None:
    """Return tracked files and new ones that are not ignored; None where `root` is in no repository."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return [root / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


class ProjectListing:
    """The files of a project by git, queried once for all of its folders."""

    def __init__(self, project: Path) -> None:
        self._project = project.absolute()
        found = _from_git(self._project)
        self._is_repository = found is not None
        self._files = sorted(map(str, found or ()))

    def below(self, folder: Path) -> list[Path] | None:
        """Return the files of a folder like `_from_git`; one outside the project or in another repository asks git."""
        if not folder.is_relative_to(self._project) or self._has_repository(folder):
            return _from_git(folder)
        if not self._is_repository:
            return None
        prefix = str(folder) + os.sep
        first = bisect.bisect_left(self._files, prefix)
        below = itertools.takewhile(lambda name: name.startswith(prefix), itertools.islice(self._files, first, None))
        return [Path(name) for name in below]

    def _has_repository(self, folder: Path) -> bool:
        between = itertools.takewhile(lambda one: one != self._project, (folder, *folder.parents))
        return any((one / ".git").exists() for one in between)


def _results(folder: Path) -> set[str]:
    """Return which folders in one hold results of campaigns; none where no campaign of clawtrace is among them."""
    for manifest in (folder / "campaigns").glob("*/*/manifest.json"):
        try:
            with manifest.open("rb") as stream:
                is_ours = b'"clawtrace.campaign/' in stream.read(100)
        except OSError:
            continue
        if is_ours:
            return {os.path.realpath(folder / name) for name in ("campaigns", "index", "baselines")}
    return set()


def _walked(root: Path, passed_over: set[str]) -> Iterable[Path]:
    for folder, folders, files in os.walk(root):
        if "campaigns" in folders:
            passed_over |= _results(Path(folder))
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT and os.path.realpath(Path(folder, name)) not in passed_over
        ]
        yield from (Path(folder, name) for name in files)
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
