"""Programs whose spans follow no convention, drawn from seeds: what is read of them is true or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign import ForeignProgram
from handwritten import compared

pytestmark = pytest.mark.full


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(600), marks=pytest.mark.full)], ids=["some", "many"])
def test_no_fact_of_a_foreign_program_is_wrong(tmp_path: Path, seeds: range) -> None:
    """Whatever words it has for agents, tools and models, and whatever shapes its values have; and many facts are known."""
    programs = compared(seeds, tmp_path, ForeignProgram)

    # A trace that begins nowhere may be said to lack something.
    found = [
        (seed, fact, *of) for seed, (_, facts) in programs.items() for fact, of in facts.items() if fact != "complete"
    ]
    assert [one for one in found if one[2] == "wrong"] == []
    assert sum(status == "true" for _, _, status, *_ in found) > len(found) / 3
