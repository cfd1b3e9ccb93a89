"""Run a plan: side by side on one receiver, stoppable, every run accounted for (spec: config.md §3)."""

from __future__ import annotations

import concurrent.futures
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clawtrace.assertions.world import Gateway, World
from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.results.stored import StoredRun, StoredRuns, read_run
from clawtrace.campaign.results.stored_results import kept_file, mark_what_grew, packed, with_unjudged, write_result
from clawtrace.campaign.running.at_work import Budget, Place, RunInterruptedError, attempt, interrupts, preparing
from clawtrace.campaign.running.cassettes import opened_cassettes
from clawtrace.campaign.running.listener import Listener
from clawtrace.campaign.running.one_run import RunContext, assertion_problem, failed_result, run_one
from clawtrace.campaign.running.opening import refusals, write_manifest
from clawtrace.campaign.running.reuse import Decision, decide, evaluation_folder, remember_inputs, remember_reports
from clawtrace.campaign.running.reused_run import at_home, judge_stored
from clawtrace.campaign.running.simulated_user import read_conversation
from clawtrace.config.loading.judges import hook_policy, panel_of
from clawtrace.errors import (
    CassetteMissError,
    ClawtraceError,
    ConfigError,
    FaultNotStruckError,
    InputError,
    PreconditionError,
    RunnerError,
)
from clawtrace.judge.judging import Judging
from clawtrace.model.verdict import RunResult
from clawtrace.pricing.price import Pricing
from clawtrace.report.results import NotRun
from clawtrace.runners.base import StopSignal
from clawtrace.session.session import Session
from clawtrace.verdicts.gating.gate import Gate

__all__ = ["CampaignResult", "execute"]

_AHEAD = 16
"""Runs whose agents have ended that may wait for their verdicts while others start: those that wait are judged together."""

_GREW = "spans arrived after the verdict, so the run was judged again"


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """The results of a plan: each planned run is in exactly one of the two lists."""

    plan: Plan
    results: tuple[RunResult, ...]
    """In the order of the plan."""
    not_run: tuple[NotRun, ...]
    """In the order of the plan."""
    started_at: float
    """Seconds since the epoch."""
    ended_at: float
    """As many seconds later as it took, even if the clock was set meanwhile."""
    interrupted: int
    """The exit code where Ctrl-C or SIGTERM ended it: 128 + the signal's number; else 0."""
    blind_spots: tuple[str, ...] = ()
    """Costs that its budget could not count, one sentence each."""
    stale: tuple[str, ...] = ()
    """Other runs that the campaign keeps, of which more arrived now: their verdicts are out of date, and marked so."""


def execute(
    plan: Plan,
    session: Session,
    env: Mapping[str, str],
    listener: Listener | None = None,
    *,
    decisions: Mapping[str, Decision] | None = None,
    budget: Budget | None = None,
) -> CampaignResult:
    """Run every planned run and judge it; where a stored run can be reused, its agent is not run.

    The first Ctrl-C starts nothing new, ends the agents at work and returns what is there; a second one raises.
    A missing program, container runtime or key is reported before anything starts: no run is started then. When the last agent
    has ended the session stops receiving, so that every verdict is of all that its store holds.

    Args:
        session: open, with a receiver.
        listener: hears the progress.
        decisions: from `decide`, made before the campaign's store was opened; by default nothing is reused.
        budget: what may be spent before nothing new is started; by default there is no limit.
    """
    found = decide(plan, env, reuse=False) if decisions is None else decisions
    return _Execution(plan, session, env, listener or Listener(), found, budget or Budget()).run()


class _Execution:
    def __init__(
        self,
        plan: Plan,
        session: Session,
        env: Mapping[str, str],
        listener: Listener,
        decisions: Mapping[str, Decision],
        budget: Budget,
    ) -> None:
        self.plan = plan
        self._budget = budget
        self._policy = plan.suite.run_profile.execution_policy
        self._listener = listener
        self._telling = threading.Lock()
        self._halted: str | None = None
        self._interrupted = 0
        self._is_cut_short = False
        self._at_work = 0
        self._queue = iter(plan.runs)
        self._places = threading.BoundedSemaphore(plan.max_concurrency)
        # Where a verdict decides whether anything more starts, nothing starts before it.
        self._ahead = 0 if plan.fail_fast or budget.is_limited else _AHEAD
        self._decisions = decisions
        self._stored = StoredRuns(plan.outputs)
        self._evaluations = evaluation_folder(plan)
        self._results: dict[str, RunResult] = {}
        self._not_run: dict[str, NotRun] = {}
        project = plan.suite.project.config
        gateway = Gateway(project.gateway.url, project.gateway.token)
        world = World("", gateway=gateway, hooks=hook_policy(plan.suite.evaluation_profile))
        stop = StopSignal()
        panel = panel_of(plan.suite.evaluation_profile)
        judging = None
        if panel is not None:
            prices, took = plan.suite.project.pricing or Pricing(), budget.add_judging
            judging = Judging(panel, env, prices, session.put_judgements, budget.spent, took, lambda: stop.is_set)
            world = world._replace(judge=judging.opinions)
        self._context = RunContext(session, stop, env, plan, world, budget, judging)

    def run(self) -> CampaignResult:
        started_at, began = time.time(), time.monotonic()
        clean = self._context.session.clean
        remember_reports(self.plan)
        remember_inputs(self.plan, self._decisions.values())
        write_manifest(self.plan, self._decisions, started_at, clean, finished=False)
        self._tell(self._listener.planned, self.plan)
        stale: tuple[str, ...] = ()
        missing = refusals(self.plan, self._decisions, self._context.env)
        if missing:
            self._refuse(missing)
        else:
            with (
                interrupts(self._interrupt),
                preparing(self._context.session) if self._to_start() else nullcontext(),
                opened_cassettes(self.plan, self._to_start(), self._context.env) as self._context.cassettes,
            ):
                self._work()
                with self._broken_store_is_known():
                    self._close_what_grew()
            self._context.session.stop_receiving()
            stale = mark_what_grew(self.plan, self._context.session)
            with self._broken_store_is_known():
                self._judge_what_grew()
        if not self._is_cut_short:
            write_manifest(self.plan, self._decisions, started_at, clean, finished=True)
        return CampaignResult(
            plan=self.plan,
            results=tuple(self._results[run.run_id] for run in self.plan.runs if run.run_id in self._results),
            not_run=tuple(self._not_run[run.run_id] for run in self.plan.runs if run.run_id in self._not_run),
            started_at=started_at,
            ended_at=started_at + time.monotonic() - began,
            interrupted=self._interrupted,
            blind_spots=tuple(self._budget.blind_spots()),
            stale=stale,
        )

    def _to_start(self) -> list[PlannedRun]:
        """Return the runs for which no stored run is reused."""
        return [run for run in self.plan.runs if self._decisions[run.run_id].stored is None]

    def _refuse(self, missing: Mapping[str, str]) -> None:
        for planned in self.plan.runs:
            why = missing.get(planned.case.config.case_id)
            if why is not None:
                self._finish(planned, failed_result(planned, why))
            else:
                self._leave_out(planned, "another case of the suite cannot be run on this machine; nothing was started")

    def _work(self) -> None:
        threads = self.plan.max_concurrency + self._ahead
        pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="run")
        futures = [pool.submit(self._work_through) for _ in range(threads)]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            self._halted = self._halted or "the campaign was ended"
            self._queue = iter(())
            self._context.stop.set()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _interrupt(self, number: int) -> None:
        if self._interrupted:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return  # the command `timeout` sends SIGTERM twice
        self._interrupted, self._is_cut_short = 128 + number, True
        self._halted = "interrupted"
        self._tell(self._listener.interrupted, self._at_work)
        self._context.stop.set()

    def _work_through(self) -> None:
        """Start the runs in the order of the plan, as places become free."""
        while True:
            with Place(self._places) as place:
                place.take()
                planned = next(self._queue, None)
                if planned is None:
                    return
                self._one(planned, place)

    def _one(self, planned: PlannedRun, place: Place) -> None:
        if self._halted is not None:
            self._leave_out(planned, self._halted)
            return
        is_run = self._decisions[planned.run_id].stored is None
        if not is_run:
            place.give_back()  # no agent will work
        if is_run and (spent := self._budget.spent()):
            self._is_cut_short = True
            self._leave_out(planned, spent)
            return
        self._tell(self._listener.started, planned)
        try:
            result = self._result_of(planned, place)
        except RunInterruptedError:
            self._leave_out(planned, "interrupted while its agent was running")
            return
        except ConfigError as error:
            result = failed_result(planned, assertion_problem(error))
        except (PreconditionError, CassetteMissError, FaultNotStruckError) as error:
            result = self._broken(planned, error)
        except RunnerError as error:
            result = self._broken(planned, error)
            if self._policy.stop_on_runner_error and not self.plan.suite.in_quarantine(planned.case):
                self._halt(f"the runner of `{planned.run_id}` failed before (`stop_on_runner_error`)")
        except ClawtraceError as error:
            result = self._broken(planned, error)
            self._halt(f"the store or the receiver failed in `{planned.run_id}`")
        if is_run and result.error:
            self._budget.add(result)
        self._finish(planned, result)
        if self.plan.fail_fast and self._is_lost(planned):
            self._halt(f"`{planned.run_id}` failed before (`fail_fast`)")

    def _broken(self, planned: PlannedRun, error: ClawtraceError) -> RunResult:
        """Return the result of a run that broke; the error may repeat what the agent's setup printed."""
        result = failed_result(planned, self._context.session.clean(str(error)))
        return result._replace(conversation=read_conversation(self.plan.folder / planned.folder))

    def _is_lost(self, planned: PlannedRun) -> bool:
        """Return whether the case of a run has failed, regardless of its other repetitions."""
        repetitions = [run for run in self.plan.runs if run.case is planned.case and run.model_id == planned.model_id]
        ended = [self._results[run.run_id] for run in repetitions if run.run_id in self._results]
        if any(result.quarantined for result in ended):
            return False
        return Gate().is_lost(ended, len(repetitions))

    def _result_of(self, planned: PlannedRun, place: Place) -> RunResult:
        """Run the agent, or judge the reused run; keep what is new."""
        decision = self._decisions[planned.run_id]
        kept = kept_file(self._evaluations, planned.folder)
        folder = self.plan.folder / planned.folder
        stored = self._at_home(decision, folder)
        if stored is None:
            tried = partial(self._run, decision=decision, place=place)
            result = attempt(
                planned, self._policy.infrastructure_retries, tried, self._context.stop, self._budget.spent
            )
            is_new = True
        else:
            evaluation = None if decision.judge_anew else decision.evaluation
            result, is_new = judge_stored(planned, stored, evaluation, kept, self._context)
        run = read_run(folder, self.plan.folder)
        if run is not None:
            self._stored.put(run, planned.repetition)
        if is_new:
            write_result(kept, decision.evaluation, result)
        return result

    def _at_home(self, decision: Decision, folder: Path) -> StoredRun | None:
        """Return the run that is reused for one, in this campaign's folder; None where there is none, or it is gone."""
        if decision.stored is None:
            return None
        try:
            return at_home(decision.stored, folder, self.plan.folder, self._context.session)
        except InputError:  # another process has opened its store since
            return None

    def _run(self, planned: PlannedRun, failed: Sequence[str], decision: Decision, place: Place) -> RunResult:
        place.take()
        with ExitStack() as at_work:
            self._count(1)
            at_work.callback(self._count, -1)

            def looked() -> None:
                at_work.close()
                place.give_back()

            waiting = partial(self._tell, self._listener.waiting, planned)
            report = partial(self._tell, self._listener.judging, planned)
            result = run_one(planned, decision.fingerprint, self._context, report, looked, failed, waiting)
            self._budget.add(result)  # each attempt took what it took
            return result

    @contextmanager
    def _broken_store_is_known(self) -> Iterator[None]:
        """Pass over the failure of a store that broke before: the results say it."""
        try:
            yield
        except ClawtraceError:
            if not any(result.error for result in self._results.values()):
                raise

    def _close_what_grew(self) -> None:
        """Wait for the rest of the runs of which more arrived after they were closed, while other agents were at work."""
        for planned, before in self._grown():
            if not self._interrupted:
                self._context.session.close_again(before.run_id, partial(self._tell, self._listener.waiting, planned))

    def _judge_what_grew(self) -> None:
        """Judge the runs again of which more arrived after their verdict."""
        for planned, before in self._grown():
            self._results[planned.run_id] = packed(self._judged_again(planned, before))

    def _grown(self) -> list[tuple[PlannedRun, RunResult]]:
        """Return the runs whose verdicts are not of all that the store holds, with their results."""
        judged = {run_id: one for run_id, one in self._results.items() if one.facts_state}
        states = self._context.session.facts_states([one.run_id for one in judged.values()]) if judged else {}
        planned = [run for run in self.plan.runs if run.run_id in judged]
        found = [(run, judged[run.run_id]) for run in planned]
        return [(run, before) for run, before in found if states[before.run_id] != before.facts_state]

    def _judged_again(self, planned: PlannedRun, before: RunResult) -> RunResult:
        stored = read_run(self.plan.folder / planned.folder, self.plan.folder)
        assert stored is not None  # it was judged, and so it was kept
        kept = kept_file(self._evaluations, planned.folder)
        result, _ = judge_stored(planned, stored, None, kept, self._context)
        result = result._replace(reused=before.reused, diagnostics=(*result.diagnostics, _GREW))
        write_result(kept, self._decisions[planned.run_id].evaluation, result)
        return with_unjudged(self.plan, planned, result)._replace(quarantined=before.quarantined)

    def _count(self, change: int) -> None:
        with self._telling:
            self._at_work += change

    def _halt(self, reason: str) -> None:
        self._halted = self._halted or reason

    def _finish(self, planned: PlannedRun, result: RunResult) -> None:
        result = with_unjudged(self.plan, planned, result)
        result = result._replace(quarantined=self.plan.suite.in_quarantine(planned.case))
        self._results[planned.run_id] = packed(result)
        self._tell(self._listener.finished, planned, result)

    def _leave_out(self, planned: PlannedRun, reason: str) -> None:
        self._not_run[planned.run_id] = NotRun(
            run_id=planned.run_id,
            **planned.place,
            reason=reason,
            quarantined=self.plan.suite.in_quarantine(planned.case),
        )
        self._tell(self._listener.left_out, planned, reason)

    def _tell(self, happened: Callable[..., None], *said: object) -> None:
        with self._telling:
            happened(*said)
