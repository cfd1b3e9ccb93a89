"""Run a plan: side by side on one receiver, stoppable, every run accounted for (spec: config.md §3)."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from clawtrace.assertions.world import Gateway, World
from clawtrace.campaign.attempts import attempt
from clawtrace.campaign.budget import Budget
from clawtrace.campaign.events import (
    CampaignEvent,
    Interrupted,
    Listener,
    PlanReady,
    RunFinished,
    RunJudging,
    RunNotRun,
    RunStarted,
)
from clawtrace.campaign.expand import Plan, PlannedRun
from clawtrace.campaign.layout import write_json
from clawtrace.campaign.one_run import (
    CampaignSession,
    RunContext,
    RunInterruptedError,
    assertion_problem,
    failed_result,
    run_one,
)
from clawtrace.campaign.reuse import Decision, decide, evaluation_folder, remember_reports
from clawtrace.campaign.reused_run import at_home, judge_stored
from clawtrace.campaign.stored import StoredRuns, read_run
from clawtrace.campaign.stored_results import kept_file, write_result
from clawtrace.config.case_file import LoadedCase
from clawtrace.config.permissions import hook_policy
from clawtrace.engine.gate import Gate
from clawtrace.errors import ClawtraceError, ConfigError, PreconditionError, RunnerError
from clawtrace.model.verdict import RunResult
from clawtrace.runners.base import Runner, StopSignal, runner_types

__all__ = ["CampaignResult", "NotRun", "execute", "missing_runtimes"]


@dataclass(frozen=True, slots=True)
class NotRun:
    """A planned run without a result."""

    run: PlannedRun
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """What came of a plan: each planned run is in exactly one of the two lists."""

    plan: Plan
    results: tuple[RunResult, ...]
    """In the order of the plan."""
    not_run: tuple[NotRun, ...]
    """In the order of the plan."""
    started_at: float
    """Seconds since the epoch."""
    ended_at: float
    interrupted: bool
    """Whether the user ended it (Ctrl-C)."""
    blind_spots: tuple[str, ...] = ()
    """What its budget could not see, one sentence each."""


def missing_runtimes(runs: Iterable[PlannedRun], env: Mapping[str, str]) -> dict[str, str]:
    """Return, by case id, what must be installed or set before the runs can start; empty when nothing is known to be."""
    found: dict[str, str] = {}
    types = runner_types()
    for planned in runs:
        runner = types[planned.case.config.runner.type]()
        missing = runner.missing(planned.settings, planned.case.path.parent, env)
        if missing is not None:
            found.setdefault(planned.case.config.case_id, missing)
    return found


def execute(
    plan: Plan,
    session: CampaignSession,
    env: Mapping[str, str],
    listener: Listener = lambda _: None,
    *,
    decisions: Mapping[str, Decision] | None = None,
    budget: Budget | None = None,
) -> CampaignResult:
    """Run every planned run and judge it; a stored run that can stand for a planned one spares its agent.

    The first Ctrl-C starts nothing new, ends the agents at work and returns what is there; a second one raises.
    A missing program, container runtime or key is reported before anything starts: no run is started then.

    Args:
        plan: from `expand`.
        session: open, with a receiver.
        env: the caller's environment.
        listener: told about progress, one event at a time.
        decisions: from `decide`, made before the campaign's store was opened; by default nothing is reused.
        budget: what may be spent before nothing new is started; by default there is no limit.
    """
    found = decide(plan, env, reuse=False) if decisions is None else decisions
    return _Execution(plan, session, env, listener, found, budget or Budget()).run()


class _Execution:
    def __init__(
        self,
        plan: Plan,
        session: CampaignSession,
        env: Mapping[str, str],
        listener: Listener,
        decisions: Mapping[str, Decision],
        budget: Budget,
    ) -> None:
        self.plan = plan
        self._budget = budget
        self._quarantine = frozenset(plan.suite.config.quarantine_tags)
        self._retries = plan.suite.run_profile.execution_policy.infrastructure_retries
        self._listener = listener
        self._telling = threading.Lock()
        self._halted: str | None = None
        self._interrupted = False
        self._active = 0
        self._decisions = decisions
        self._stored = StoredRuns(plan.outputs)
        self._evaluations = evaluation_folder(plan)
        self._results: dict[str, RunResult] = {}
        self._not_run: dict[str, NotRun] = {}
        types = runner_types()
        used = {planned.case.config.runner.type for planned in plan.runs}
        runners: dict[str, Runner] = {name: types[name]() for name in used}
        project = plan.suite.project.config
        gateway = Gateway(project.gateway.url, project.gateway.token)
        world = World("", gateway=gateway, hooks=hook_policy(plan.suite.evaluation_profile))
        self._context = RunContext(session, runners, StopSignal(), env, project.telemetry_env, plan.folder, world)

    def run(self) -> CampaignResult:
        started_at = time.time()
        remember_reports(self.plan)
        self._manifest(started_at)
        self._tell(PlanReady(self.plan))
        missing = missing_runtimes(self._to_start(), self._context.env)
        if missing:
            self._refuse(missing)
        else:
            self._work()
        return CampaignResult(
            plan=self.plan,
            results=tuple(self._results[run.run_id] for run in self.plan.runs if run.run_id in self._results),
            not_run=tuple(self._not_run[run.run_id] for run in self.plan.runs if run.run_id in self._not_run),
            started_at=started_at,
            ended_at=time.time(),
            interrupted=self._interrupted,
            blind_spots=tuple(self._budget.blind_spots()),
        )

    def _to_start(self) -> list[PlannedRun]:
        """Return the runs for which no stored run stands."""
        return [run for run in self.plan.runs if self._decisions[run.run_id].stored is None]

    def _refuse(self, missing: Mapping[str, str]) -> None:
        for planned in self.plan.runs:
            why = missing.get(planned.case.config.case_id)
            if why is not None:
                self._finish(planned, failed_result(planned, why))
            else:
                self._leave_out(planned, "another case of the suite cannot be run on this machine; nothing was started")

    def _work(self) -> None:
        pool = concurrent.futures.ThreadPoolExecutor(self.plan.max_concurrency, thread_name_prefix="run")
        futures = [pool.submit(self._one, planned) for planned in self.plan.runs]
        try:
            self._wait(futures)
        except BaseException:
            self._halted = self._halted or "the campaign was ended"
            self._context.stop.set()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _wait(self, futures: list[concurrent.futures.Future[None]]) -> None:
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except KeyboardInterrupt:
            self._interrupted = True
            self._halted = "interrupted"
            self._tell(Interrupted(self._active))
            self._context.stop.set()
            for future in concurrent.futures.as_completed(futures):
                future.result()

    def _one(self, planned: PlannedRun) -> None:
        if self._halted is not None:
            self._leave_out(planned, self._halted)
            return
        is_run = self._decisions[planned.run_id].stored is None
        if is_run and (spent := self._budget.spent()):
            self._leave_out(planned, spent)
            return
        self._count(1)
        self._tell(RunStarted(planned))
        try:
            result = self._result_of(planned)
        except RunInterruptedError:
            self._leave_out(planned, "interrupted while its agent was running")
            return
        except ConfigError as error:
            result = failed_result(planned, assertion_problem(error))
        except PreconditionError as error:
            result = failed_result(planned, str(error))
        except RunnerError as error:
            result = failed_result(planned, str(error))
            if self.plan.stop_on_runner_error:
                self._halt(f"the runner of `{planned.run_id}` failed before (`stop_on_runner_error`)")
        except ClawtraceError as error:
            result = failed_result(planned, str(error))
            self._halt(f"the store or the receiver failed in `{planned.run_id}`")
        finally:
            self._count(-1)
        if is_run:
            self._budget.add(result)
        self._finish(planned, result)
        if self.plan.fail_fast and self._is_lost(planned):
            self._halt(f"`{planned.run_id}` failed before (`fail_fast`)")

    def _is_lost(self, planned: PlannedRun) -> bool:
        """Return whether the case of a run has failed, whatever its other repetitions say."""
        repetitions = [run for run in self.plan.runs if run.case is planned.case and run.model_id == planned.model_id]
        ended = [self._results[run.run_id] for run in repetitions if run.run_id in self._results]
        if any(result.quarantined for result in ended):
            return False
        return Gate().is_lost(ended, len(repetitions))

    def _result_of(self, planned: PlannedRun) -> RunResult:
        """Run the agent, or judge the run that stands for it; keep what is new."""
        decision = self._decisions[planned.run_id]
        kept = kept_file(self._evaluations, planned.folder)
        folder = self.plan.folder / planned.folder
        if decision.stored is None or decision.evaluation is None:
            result = attempt(planned, self._retries, partial(self._run, decision=decision), self._context.stop)
            is_new = True
        else:
            stored = at_home(decision.stored, folder, self.plan.folder, self._context.session)
            evaluation = None if decision.judge_anew else decision.evaluation
            result, is_new = judge_stored(planned, stored, evaluation, kept, self._context)
        run = read_run(folder, self.plan.folder)
        if run is not None:
            self._stored.put(run, planned.repetition)
        if is_new and decision.evaluation is not None:
            write_result(kept, decision.evaluation, result)
        return result

    def _run(self, planned: PlannedRun, decision: Decision) -> RunResult:
        return run_one(planned, decision.fingerprint, self._context, lambda: self._tell(RunJudging(planned)))

    def _count(self, change: int) -> None:
        with self._telling:
            self._active += change

    def _halt(self, reason: str) -> None:
        self._halted = self._halted or reason

    def _finish(self, planned: PlannedRun, result: RunResult) -> None:
        result = result._replace(quarantined=not self._quarantine.isdisjoint(planned.case.config.tags))
        self._results[planned.run_id] = result
        self._tell(RunFinished(planned, result))

    def _leave_out(self, planned: PlannedRun, reason: str) -> None:
        self._not_run[planned.run_id] = NotRun(planned, reason)
        self._tell(RunNotRun(planned, reason))

    def _tell(self, event: CampaignEvent) -> None:
        with self._telling:
            self._listener(event)

    def _manifest(self, started_at: float) -> None:
        """Write ``manifest.json``: what this campaign is, with the labels that reports show."""
        suite, profile = self.plan.suite.config, self.plan.suite.run_profile
        judging = self.plan.suite.evaluation_profile
        cases: dict[str, Any] = {case.config.case_id: _case_entry(case) for case in self.plan.suite.cases}
        write_json(
            self.plan.folder / "manifest.json",
            {
                "schema": "clawtrace.campaign/1",
                "suite_id": suite.suite_id,
                "title": suite.title,
                "metadata": suite.metadata,
                "models": [model.model_dump() for model in suite.models],
                "run_profile": profile.model_dump(),
                "evaluation_profile": judging.model_dump() if judging else None,
                "cases": cases,
                "started_at": started_at,
                "runs": [{"run_id": run.run_id, "folder": run.folder} for run in self.plan.runs],
            },
        )


def _case_entry(case: LoadedCase) -> dict[str, Any]:
    """Return what a manifest says of a case: its labels, its agent, and what waits for a judge."""
    labels = case.config.model_dump(mode="json", include={"title", "description", "tags", "metadata"})
    agent = case.agent.config.model_dump(mode="json", exclude={"schema_version"}) if case.agent else None
    labels |= {"row_of": case.file_id} if case.dataset is not None else {}
    return labels | case.config.for_judges() | ({"agent": agent} if agent else {})
