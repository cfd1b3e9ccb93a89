"""What the lines of campaigns say together, without running any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clawtrace.campaign.comparing import history
from clawtrace.campaign.comparing.history import CaseHistory, KeptCampaign, KeptCase, history_of, keep

PASSED = {"exit_code": 0, "passed": 1, "fresh": (1, 0)}
FAILED = {"exit_code": 1, "failed": 1, "fresh": (0, 1)}


def case(**said: Any) -> KeptCase:
    plain = {
        "case_id": "a", "model_id": "m", "exit_code": 0, "passed": 0, "failed": 0, "undecided": 0, "broke": 0, "not_run": 0,
        "quarantined": False, "reused": 0, "fresh": (0, 0), "measures": {}, "parts": {"the model": "1", "the day": "2"},
        "unknown": "", "edited": (),
    }  # fmt: skip
    return KeptCase(**plain | said)


def kept(folder: Path, *cases: KeptCase, day: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    keep(KeptCampaign("s", "default", f"2026-01-{day:02}T00:00:00.000Z", {one.key: one for one in cases}), folder)


def only(place: Path) -> CaseHistory:
    (suite,) = history_of(place).suites
    (found,) = suite.cases
    return found


def test_folders_of_one_suite_and_profile_are_one_history(tmp_path):
    """An edited profile is another folder; the order is that of the days."""
    one, other = tmp_path / "campaigns/s/default-1", tmp_path / "campaigns/s/default-2"
    kept(one, case(**PASSED), day=1)
    kept(other, case(**FAILED, edited=("the runner's settings",)), day=3)
    kept(one, case(**PASSED), day=2)

    found = only(tmp_path)

    assert [one.campaign for one in found.campaigns] == ["s/default-1", "s/default-1", "s/default-2"]
    assert found.last_green is not None
    assert (found.last_green.campaign, found.last_green.started_at[:10]) == ("s/default-1", "2026-01-02")
    assert found == only(tmp_path / "campaigns/s")
    assert len(only(one).campaigns) == 2


@pytest.mark.parametrize(
    ("second", "is_green"),
    [
        ({**PASSED, "not_run": 1}, False),
        ({"exit_code": 0, "undecided": 1}, False),
        ({"exit_code": 0, "passed": 2, "failed": 1}, True),
    ],
    ids=["a part of the runs", "nothing decided", "as often as it must"],
)
def test_green_is_what_was_decided_of_all_runs(tmp_path, second, is_green):
    """Neither a part of the runs nor an allowed skip makes a case green again."""
    kept(tmp_path, case(**FAILED), day=1)
    kept(tmp_path, case(**second), day=2)

    assert (only(tmp_path).broke is None) is is_green
    assert only(tmp_path).last_green is None


def test_runs_are_equal_where_nothing_known_and_nothing_unknown_differs(tmp_path):
    """A reused run counts once; where the agent's code is not declared, only the runs of one campaign are equal."""
    for day, said in enumerate((PASSED, {**PASSED, "fresh": (0, 0), "reused": 1}, FAILED), 1):
        kept(tmp_path / "known", case(**said), day=day)
        kept(tmp_path / "unknown", case(**said, unknown="its `inputs` are not declared"), day=day)
        kept(tmp_path / "edited", case(**said, parts={"the model": str(day // 3)}), day=day)

    flaky = only(tmp_path / "known").flaky
    assert flaky is not None
    assert (flaky.otherwise, flaky.runs) == (1, 2)
    assert only(tmp_path / "unknown").flaky is None
    assert only(tmp_path / "edited").flaky is None
    mixed = {"exit_code": 1, "passed": 2, "failed": 3, "unknown": "its `inputs` are not declared"}
    kept(tmp_path / "unknown", case(**mixed), day=4)
    assert (flaky := only(tmp_path / "unknown").flaky) is not None
    assert (flaky.otherwise, flaky.runs) == (2, 5)


def test_the_oldest_lines_go_first(tmp_path, monkeypatch):
    """Of too many campaigns, and of too many bytes; the newest line stays, however long it is."""
    monkeypatch.setattr(history, "MOST_CAMPAIGNS", 3)
    for day in range(1, 6):
        kept(tmp_path, case(**PASSED), case(case_id="b", **PASSED, parts={"the model": "1", "the case": "b"}), day=day)
    (suite,) = history_of(tmp_path).suites
    assert [one.started_at[8:10] for one in suite.cases[0].campaigns] == ["03", "04", "05"]
    (line, *_) = history.kept_in([tmp_path])
    assert line.cases["b", "m"].parts == {"the model": "1", "the case": "b"}
    assert line.cases["a", "m"].parts == {"the model": "1", "the day": "2"}

    monkeypatch.setattr(history, "MOST_BYTES", 10)
    kept(tmp_path, case(**PASSED), day=6)
    assert [one.started_at[8:10] for one in only(tmp_path).campaigns] == ["06"]
