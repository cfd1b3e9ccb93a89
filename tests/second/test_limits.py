"""Nothing wrong is said of recordings from which the settings of an SDK, or a Collector, took something away."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "facts"))

import conformance
from limits import SETTINGS, rewritten

TESTS = Path(__file__).parents[1]
KNOWN: dict[tuple[str, str], tuple[str, ...]] = {
    # A text alone that is cut at a length that is no usual limit looks whole.
    ("values of 200", "claude-agent-sdk+openinference/soak-refused"): ("final_output",),
}


@pytest.mark.full
@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_setting_takes_away_makes_no_fact_wrong(setting: str, tmp_path: Path) -> None:
    recordings = random.Random(setting).sample(conformance.recordings(TESTS / "recordings"), 200)

    changed = list(rewritten(setting, recordings, tmp_path))

    with conformance.loaded(changed) as session:
        runs = conformance.inspected(session)
    assert len(changed) > 30
    if setting.endswith("attributes"):  # of spans; some lost attributes of events alone
        assert sum(run["complete"] is False for run in runs.values()) > 30
    wrong = []
    for path in changed:
        name = conformance.name(path)
        for fact, (status, found, true) in conformance.compare(path, runs[name]).items():
            # Whether a run that lost something is rightly called incomplete is not asked.
            if status == "wrong" and fact != "complete" and fact not in KNOWN.get((setting, name), ()):
                wrong.append(f"{name}: {fact}: found {found}, true is {true}")
    assert not wrong, "\n".join(wrong)
