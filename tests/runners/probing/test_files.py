"""Files by the names that a model gives them: what is in the workspace, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clawtrace.runners.probing import tools
from clawtrace.runners.probing.tools import ToolError, read_text, write_text


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with links to inside and outside, next to a secret."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("secret")
    root = tmp_path / "workspace"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.txt").write_text("inside")
    (root / "link").symlink_to("notes/a.txt")
    (root / "folder").symlink_to("notes")
    (root / "out").symlink_to("../secret/key.txt")
    (root / "out_folder").symlink_to(tmp_path / "secret")
    (root / "dangling").symlink_to(tmp_path / "new.txt")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    return root


@pytest.mark.parametrize("name", ["notes/a.txt", "./notes/../notes/a.txt", "link", "folder/a.txt"])
def test_files_of_the_workspace_are_read(workspace: Path, name: str):
    """Plain paths, dots and links that stay inside lead to the file."""
    assert read_text(workspace, name) == "inside"
    assert read_text(workspace, str(workspace / name)) == "inside"


OUTSIDE = [
    "../secret/key.txt", "notes/../../secret/key.txt", "/etc/passwd", "out", "out_folder/key.txt", "dangling", "loop", "..", ".",
    "", "notes/\0a",
]  # fmt: skip


@pytest.mark.parametrize("name", [*OUTSIDE, "pipe", "notes", "missing.txt"])
def test_nothing_else_is_read(workspace: Path, name: str):
    """Dots, absolute paths and links that lead out, pipes, folders and what is not there: refused, with the name."""
    with pytest.raises(ToolError):
        read_text(workspace, name)


@pytest.mark.parametrize("name", [*OUTSIDE, "notes", "pipe", "link/x", "out_folder/new.txt", "../new.txt"])
def test_nothing_else_is_written(workspace: Path, name: str):
    """No write leaves the workspace or makes anything there."""
    before = sorted(map(str, workspace.parent.rglob("*")))
    with pytest.raises(ToolError):
        write_text(workspace, name, "evil")

    assert sorted(map(str, workspace.parent.rglob("*"))) == before
    assert (workspace.parent / "secret" / "key.txt").read_text() == "secret"


def test_a_file_is_written_with_its_folders(workspace: Path):
    """New folders are made; a file that exists is replaced whole."""
    write_text(workspace, "a/b/c.txt", "long text")
    write_text(workspace, "a/b/c.txt", "short")

    assert (workspace / "a" / "b" / "c.txt").read_text() == "short"


def test_a_file_that_has_another_name_outside_is_not_written(workspace: Path):
    """A hard link to a file outside is not written through."""
    os.link(workspace.parent / "secret" / "key.txt", workspace / "hard")
    with pytest.raises(ToolError):
        write_text(workspace, "hard", "evil")

    assert (workspace.parent / "secret" / "key.txt").read_text() == "secret"


def test_a_link_that_appears_meanwhile_is_not_followed(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    """Where a folder becomes a link after the path was resolved, the open fails instead of leading out."""
    entered = tools._entered

    def swapped(folder: int, part: str, name: str, *, create: bool) -> int:
        (workspace / "notes").rename(workspace / "moved")
        (workspace / "notes").symlink_to(workspace.parent / "secret")
        return entered(folder, part, name, create=create)

    monkeypatch.setattr(tools, "_entered", swapped)
    with pytest.raises(ToolError):
        read_text(workspace, "notes/key.txt")
