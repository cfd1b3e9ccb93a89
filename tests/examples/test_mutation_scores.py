"""The mutation scores of the bundled suites are those that the documentation shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.full
def test_a_suite_has_the_score_of_the_page(tmp_path: Path) -> None:
    """What is measured now of one of them is its line there; assertions with templates are asked with the run's own values."""
    spec = importlib.util.spec_from_file_location("mutation_scores", DOCS / "mutation_scores.py")
    assert spec is not None
    assert spec.loader is not None
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    bundled = next(one for one in command.SUITES if one.suite == "models")

    scores = command.measured(bundled, command.with_bundled_files(tmp_path))

    assert [score["not_holding"] for score in scores] == [[]]
    assert command.row(bundled, scores) in (DOCS / "suggest.md").read_text(encoding="utf-8")
