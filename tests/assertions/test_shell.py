"""Commands of checks: how much of their output is read (`clawtrace.assertions.probing.shell`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawtrace.assertions.probing import shell


@pytest.mark.parametrize(("size", "cut"), [(7, False), (8, False), (9, True)])
def test_output_beyond_the_limit_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, cut: bool) -> None:
    monkeypatch.setattr(shell, "_MOST", 8)
    ended = shell.run_shell(f"printf %{size}s x", tmp_path, {}, 20)

    assert (ended.exit_code, len(ended.stdout), ended.cut) == (0, min(size, 8), cut)
