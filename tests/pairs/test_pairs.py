"""A short run of the pairs: two and three instrumentations of one call, against the model that behaves at random."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from not_run import not_run

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
sys.path.insert(0, str(Path(__file__).parent))

from environments import CannotInstallError, program_of
from matrix import matrix, pairings

from soak import table

pytestmark = pytest.mark.full

SEED, RUNS = "12", 3


@pytest.mark.parametrize("name", ["anthropic-sdk", "openai-sdk"])
def test_nothing_is_counted_twice(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every pairing of an SDK's instrumentations no fact is wrong, and no verdict contradicts what happened."""
    (framework,) = pairings([name])
    try:
        program_of(framework)
    except CannotInstallError as error:
        not_run("frameworks", f"the pairs of {name}: {error}")
    found = matrix([name], SEED, RUNS)

    with capsys.disabled():
        print("", *table(found), sep="\n")
    assert {client: tally.runs for client, tally in found.items()} == {
        f"pairs+{'+'.join(pairing.split(','))}": RUNS for pairing in framework.instrumentations
    }
    assert [finding for tally in found.values() for finding in tally.wrong] == []
