"""Programs with hand-written spans, drawn from seeds: what is read of them is true or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from handwritten import compared


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(1000, 1200), marks=pytest.mark.full)], ids=["some", "many"]
)
def test_no_fact_of_a_program_of_ones_own_is_wrong(tmp_path: Path, seeds: range) -> None:
    """Whatever the program is like, and however it names and nests its spans; and most of the facts are known."""
    found = [(seed, fact, *of) for seed, (_, facts) in compared(seeds, tmp_path).items() for fact, of in facts.items()]

    assert [one for one in found if one[2] == "wrong"] == []
    assert sum(status == "true" for _, _, status, *_ in found) > len(found) / 2
