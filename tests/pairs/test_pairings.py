"""Two and three instrumentations of one call at once, live: nothing is wrong, and nothing is counted twice."""

from __future__ import annotations

import pytest
from matrix import NAMES, matrix

pytestmark = pytest.mark.full

RUNS = 3
"""Of each pairing: enough for tools side by side, failures, streams and a second agent."""


@pytest.mark.timeout(1200)  # environments are made when they are first needed
@pytest.mark.parametrize("framework", NAMES)
def test_pairings_of(framework: str) -> None:
    """Every fact of every run is true or unknown, and no verdict contradicts the truth."""
    tallies = matrix([framework], "pairs", RUNS)
    if not tallies:
        pytest.skip(f"{framework} and its instrumentations cannot be installed here")

    assert [finding for tally in tallies.values() for finding in tally.wrong] == []
    assert all(tally.facts["true"] > tally.facts["unknown"] for tally in tallies.values())
