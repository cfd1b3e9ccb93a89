"""Cleaning what an agent printed, however long it is and wherever a secret stands in it."""

from __future__ import annotations

import re
import stat

import pytest

from clawtrace.campaign.running import run_files
from clawtrace.campaign.running.run_files import clean_streams


@pytest.fixture
def small_blocks(monkeypatch):
    """Files are read sixteen bytes at a time."""
    monkeypatch.setattr(run_files, "_BLOCK", 16)
    monkeypatch.setattr(run_files, "_LONGEST", 64)


def clean(text: str) -> str:
    return re.sub(r"secret-\d+|-----BEGIN.*?-----END", "*", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("one\n" * 9 + "a secret-123456789\n" + "two\n" * 9, "one\n" * 9 + "a *\n" + "two\n" * 9),
        ("x" * 40 + " secret-12", "x" * 40 + " *"),
        ("-----BEGIN KEY\n" + "line\n" * 5 + "-----END KEY\nrest\n", "* KEY\nrest\n"),
        ("no\nline end", "no\nline end"),
        ("", ""),
    ],
    ids=["a block ends in a secret", "a line is longer than a block", "a key over many lines", "nothing", "empty"],
)
def test_a_secret_is_found_wherever_blocks_end(tmp_path, small_blocks, said, kept):
    """What is read at once ends where a line ends and no key is open."""
    (tmp_path / "stdout").write_text(said)
    clean_streams(tmp_path, clean)

    assert (tmp_path / "stdout").read_text() == kept
    assert [path.name for path in tmp_path.iterdir()] == ["stdout"]


def test_streams_of_every_turn_and_nothing_else(tmp_path):
    """What lies in the workspace is the agent's; a file without a secret is not written again; modes are kept."""
    for name in ("stdout", "stderr", "stdin", "setup.log", "turns/2/stdout", "workspace/stdout", "other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret-1")
    (tmp_path / "turns/2/stderr").write_text("plain")
    (tmp_path / "stdout").chmod(0o640)
    before = (tmp_path / "turns/2/stderr").stat().st_ino
    clean_streams(tmp_path, clean)

    cleaned = {
        path.relative_to(tmp_path).as_posix()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.read_text() == "*"
    }
    assert cleaned == {"stdout", "stderr", "stdin", "setup.log", "turns/2/stdout"}
    assert (tmp_path / "turns/2/stderr").stat().st_ino == before
    assert stat.S_IMODE((tmp_path / "stdout").stat().st_mode) == 0o640
