"""One judged run of the first tier: from a suite through the judge to the exit code."""

from __future__ import annotations

from tests.judge.conftest import answer, says


def test_a_judge_scores_a_run_and_the_threshold_decides(project, query):
    """The score is in the verdict, in the report and in the store."""
    project.profile["aggregation"] = {"pass_threshold": 7}
    found = project.evaluate(says(answer(6)))

    assert (found.exit_code, found.verdict()["status"], found.run["final_score"]) == (1, "fail", 6)
    assert query("SELECT score FROM judgements WHERE part = 'overall'") == [{"score": 6}, {"score": 6}]
