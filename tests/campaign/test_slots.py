"""Agents at work are as many as a plan allows; runs that wait for their verdicts take no place, unless a verdict decides."""

from __future__ import annotations

import threading

from clawtrace.campaign.running.at_work import Budget
from clawtrace.campaign.running.execute import execute
from clawtrace.model.verdict import Status


class Verdicts:
    """Holds back the verdicts of a session."""

    def __init__(self, session) -> None:
        self.given = threading.Event()
        self.waiting = threading.Semaphore(0)
        """Counts the runs that wait for theirs."""
        self._judge = session.evaluate
        session.evaluate = self._evaluate

    def _evaluate(self, run_ids, assertions, **more):
        found = self._judge(run_ids, assertions, **more)
        self.waiting.release()
        assert self.given.wait(60)
        return found


def started(project) -> list[str]:
    return [said[0].case.config.case_id for name, *said in project.heard.events if name == "started"]


def begun(project, budget: Budget | None = None, policy: str = "{}") -> threading.Thread:
    """Start the campaign in a separate thread."""
    plan = project.plan(policy)
    thread = threading.Thread(target=lambda: execute(plan, project.session, project.env, project.heard, budget=budget))
    thread.start()
    return thread


def test_the_next_agent_starts_while_a_verdict_is_awaited(project) -> None:
    """One agent at a time: the second one works before the first run has its verdict."""
    verdicts = Verdicts(project.session)
    for name in "ab":
        project.case(name, "exit 0")
    campaign = begun(project)
    for _ in "ab":
        assert verdicts.waiting.acquire(timeout=30)
    verdicts.given.set()
    campaign.join()

    assert started(project) == ["a", "b"]


def test_no_agent_starts_before_the_one_before_has_ended(project) -> None:
    """With a place for one, agents never meet, and they come in the order of the plan."""
    meeting, log = project.root / "meeting", project.root / "log"
    names = [f"c{number:02}" for number in range(24)]
    for name in names:
        project.case(name, f"mkdir {meeting} && echo {name} >> {log} && rmdir {meeting}")
    result = project.run()

    assert {found.status for found in result.results} == {Status.PASS}
    assert log.read_text().split() == names


def test_a_verdict_that_decides_is_awaited(project) -> None:
    """With `fail_fast`, or something to spend, the second agent does not start before the first run has its verdict."""
    for more in ({"policy": "{fail_fast: true}"}, {"budget": Budget(max_tokens=1_000)}):
        project.heard.events.clear()
        verdicts = Verdicts(project.session)
        for name in "ab":
            project.case(name, "exit 0")
        campaign = begun(project, **more)
        assert verdicts.waiting.acquire(timeout=30)

        assert not verdicts.waiting.acquire(timeout=0.5)
        assert started(project) == ["a"]

        verdicts.given.set()
        campaign.join()

        assert started(project) == ["a", "b"]


def test_a_runner_error_stops_before_another_agent_starts(project) -> None:
    """The place of a run that broke is kept until nothing new starts."""
    project.case("a", "exit 0")
    case = project.root / "configs/cases/a/test.yaml"
    case.write_text(case.read_text().replace("grace_seconds: 1", "grace_seconds: 1\n  setup: ['exit 9']"))
    for name in "bcdefgh":
        project.case(name, f"touch {project.root}/started")
    result = project.run()

    assert [found.case_id for found in result.results] == ["a"]
    assert not (project.root / "started").exists()
