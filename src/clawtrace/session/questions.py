"""The question side of a session: facts brought up to date, verdicts, and what reports show with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.assertions.world import HookPolicy, JudgeOpinion, JudgeTask, World
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import UsageError
from clawtrace.model.progress import Progress, unseen
from clawtrace.model.query import Limits
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import RunResult
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.session.waiting import Waiting, answer
from clawtrace.store.api import Answer, QueryableStore
from clawtrace.store.duckdb import DuckStore

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion
    from clawtrace.dialects.load import Dialect
    from clawtrace.facts.runs.completeness import ClosingSigns
    from clawtrace.facts.scopes.scoped_facts import ScopedFacts
    from clawtrace.facts.scopes.scopes import Scope
    from clawtrace.verdicts.asking.probes import Probed
    from clawtrace.verdicts.asking.rerun import Rerun
    from clawtrace.verdicts.combined import WaitingQuestion
    from clawtrace.verdicts.reading.run_details import RunDetails
    from clawtrace.verdicts.reading.run_list import ListedRun
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["SessionQuestions"]


class SessionQuestions:
    """Queries of the runs of one store; see `clawtrace.session.session`."""

    def __init__(self, store: DuckStore, settings: SessionSettings) -> None:
        self.settings = settings
        self._store = store
        self._asked: QueryableStore = store
        """The connection for queries of verdicts and users."""
        self.progress: Progress = unseen
        """Called while recordings are read, facts computed and questions asked, with what is being done and how far it is."""
        self._engine: _Engine | None = None
        self._waiting = Waiting()
        self._redactor: Redactor | None = None
        """Redacts what probes report; created when first needed."""

    def run_ids(self) -> list[str]:
        """Return every run of the store, in the order of first sight."""
        return self._store.run_ids()

    def why_gone(self, run_id: str) -> str:
        """Return a sentence on a run that was deleted; empty where none of that id was, or it has come again."""
        from clawtrace.store.deleted_runs import why_gone

        return why_gone(self._store, run_id)

    def prepare(self) -> None:
        """Load what the first question needs, while nothing is asked yet: half of what it takes.

        Raises:
            ConfigError: a dialect of the project cannot be read.
        """
        self.evaluate((), ())
        with self._store.lock:
            self._store.sides()

    def evaluate(
        self,
        run_ids: Sequence[str],
        assertions: Sequence[Assertion],
        *,
        worlds: Mapping[str, World] | None = None,
        case_dir: Path | None = None,
        hooks: HookPolicy | None = None,
        judge: Callable[[World, JudgeTask], tuple[JudgeOpinion, ...]] | None = None,
        evidence_of_passes: bool = True,
        looked: Callable[[], None] = lambda: None,
    ) -> list[RunResult]:
        """Judge runs: one result a run, in the order of `run_ids`, its verdicts in the order of `assertions`.

        Probes of the world are asked first, outside of the store's lock: they may wait for a file or a command. What several
        threads ask meanwhile is then asked of the store together.

        Args:
            worlds: what is known of runs apart from their spans, by run id; by default what their records say.
            case_dir: folder of the file that holds the assertions, for runs that are not in `worlds`.
            hooks: what Python hooks may do in such runs; by default nothing.
            judge: asks a judge of the evaluation profile in such runs.
            evidence_of_passes: off, only verdicts that did not pass carry their spans (and half of the time is saved).
            looked: called once nothing but the store is to be asked any more; not at all where that is never so.
        """
        from clawtrace.verdicts.asking.ask import scope_of
        from clawtrace.verdicts.combined import WaitingQuestion
        from clawtrace.verdicts.evaluate import without_secrets

        self.settings.check(assertions)
        seen: Mapping[str, World] = {}
        probed: Mapping[int, Probed] = {}
        if run_ids and any(one.is_probe or one.reads_world() for one in assertions):
            from clawtrace.verdicts.asking.probes import Worlds, ask_probes

            common = World(
                "", case_dir=case_dir, env=os.environ, gateway=self.settings.gateway, hooks=hooks or HookPolicy(), judge=judge,
                clean=self.clean,
            )  # fmt: skip
            seen = Worlds(run_ids, worlds or {}, common, self._store.record, self._facts_of, self._conversation_of)
            probed = ask_probes(assertions, seen, self.clean, self.progress)
        logs = any(one.names_log for one in assertions)
        if not logs and not any(one.reads_world() for one in assertions):
            looked()
        alone = logs or any(scope_of(one) is not None for one in assertions)
        question = WaitingQuestion(
            run_ids, assertions, seen, probed, evidence_of_passes=evidence_of_passes, alone=alone
        )
        with self._waiting.waits(question), self._store.lock:
            if question.results is None:
                company = self._waiting.company_of(question, self.run_ids())
                answer(company, partial(self._ask, logs_of=(worlds or {}) if logs else None))
        assert question.results is not None
        return without_secrets(question.results, assertions, self.clean)

    def _ask(self, questions: Sequence[WaitingQuestion], logs_of: Mapping[str, World] | None) -> dict[str, RunResult]:
        """Ask the store what `questions` ask, with the lock held; with `logs_of`, worlds, also the logs that one question names."""
        from clawtrace.facts.facts import stand_ins
        from clawtrace.verdicts.asking.ask import scope_of
        from clawtrace.verdicts.combined import combine
        from clawtrace.verdicts.evaluate import evaluate

        asked = combine(questions)
        scopes = [scope for one in asked.assertions if (scope := scope_of(one)) is not None]
        engine = self._current(asked.run_ids, more=self._waiting.run_ids(), scopes=scopes)
        ask = partial(
            evaluate,
            self._asked,
            dialects=engine.dialects,
            worlds=asked.worlds,
            scoped=self._scoped,
            evidence_of_passes=questions[0].evidence_of_passes,
            progress=self.progress,
            unmarked=self.settings.redaction.unmarked(),
        )
        ask_all = partial(ask, probed=asked.probed, asked=asked.asked)
        if logs_of is None:
            results = ask_all(asked.assertions, asked.run_ids, stand_ins=stand_ins(self._store))
        else:
            from clawtrace.verdicts.log_fallback import LogFallback

            logs = LogFallback(self._store, self.settings.log_adapters, self.settings.redaction, logs_of)
            results = logs.evaluate(asked.assertions, asked.run_ids, ask_all, ask, self._current)
        return dict(zip(asked.run_ids, results, strict=True))

    def _facts_of(self, run_id: str) -> dict[str, Any]:
        (run,) = self.inspect([run_id])["runs"]
        return dict(run)

    def _conversation_of(self, run_id: str) -> str | None:
        from clawtrace.verdicts.reading.conversation import conversation

        with self._brought_up_to_date([run_id]):
            return conversation(self._store, run_id)

    def facts_states(self, run_ids: Sequence[str]) -> dict[str, tuple[int | str, ...]]:
        """Return what the facts of runs are computed from now: not `RunResult.facts_state` when a verdict is out of date."""
        from clawtrace.facts.facts import fact_states

        with self._brought_up_to_date(run_ids):
            self._store.select_runs(run_ids)
            return {run_id: state.computed_from for run_id, state in fact_states(self._store).items()}

    def _closing_signs(self, record: RunRecord) -> ClosingSigns:
        """Return what the spans that a run has so far say of its end."""
        with self._store.lock:
            return self._engine_at_hand().facts.signs(record.run_id, record)

    def provider_failure(self, run_id: str) -> str | None:
        """Return the provider's error that the last model call of a run ended with; None when it ended otherwise."""
        from clawtrace.verdicts.judging.provider_failures import provider_failure

        with self._brought_up_to_date([run_id]):
            return provider_failure(self._store, run_id)

    def put_judgements(self, run_id: str, asked_by: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store the scores that judges gave a run, in place of those that the same asked for before."""
        self._store.put_judgements(run_id, asked_by, rows)

    def clean(self, text: str) -> str:
        """Return `text` without the secrets that redaction knows."""
        if self._redactor is None:
            self._redactor = Redactor(self.settings.redaction)
        return self._redactor.clean(text)

    def inspect(self, run_ids: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the facts of runs as ``clawtrace.inspect/1`` (spec: cli.md); of all runs when None."""
        from clawtrace.verdicts.reading.inspect import inspect_runs

        wanted = self.run_ids() if run_ids is None else list(run_ids)
        with self._brought_up_to_date(wanted) as engine:
            return inspect_runs(self._store, wanted, engine.dialects)

    def inspect_with_trees(self, run_ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[SpanNode]]]:
        """Return the facts of runs and, by run id, their spans depth first, of one moment."""
        from clawtrace.verdicts.reading.inspect import inspect_runs
        from clawtrace.verdicts.reading.tree_view import span_tree

        with self._brought_up_to_date(run_ids) as engine:
            trees = {}
            for done, run_id in enumerate(run_ids):
                self.progress("reading the trees of spans", done, len(run_ids))
                trees[run_id] = span_tree(self._store, run_id)
            self.progress("reading the facts", 0, 0)
            return inspect_runs(self._store, run_ids, engine.dialects), trees

    def tree(self, run_id: str) -> list[SpanNode]:
        """Return the spans of a run, depth first."""
        from clawtrace.verdicts.reading.tree_view import span_tree

        with self._brought_up_to_date([run_id]):
            return span_tree(self._store, run_id)

    def details(self, run_ids: Sequence[str]) -> Iterator[RunDetails]:
        """Yield what the page shows of each run; the store waits meanwhile."""
        from clawtrace.verdicts.reading.run_details import run_details

        with self._brought_up_to_date(run_ids):
            yield from run_details(self._store, run_ids)

    def listed(self, run_ids: Sequence[str]) -> list[ListedRun]:
        """Return a line for each run: how it stands, agents, models, and what it took."""
        from clawtrace.verdicts.reading.run_list import listed_runs

        with self._brought_up_to_date(run_ids):
            return listed_runs(self._store, run_ids)

    def why_no_trace(self, run_id: str) -> str:
        """Return why no span of a run arrived, as far as the receiver knows."""
        from clawtrace.verdicts.judging.run_inputs import no_trace_hints

        with self._store.lock:
            return no_trace_hints(self._store, [run_id])[run_id]

    def explained(self, run_id: str) -> list[dict[str, Any]]:
        """Return for each span of a run what filled its columns: value, rule and the dialect whose file holds the rule."""
        from clawtrace.facts.explain_spans import explain_spans

        with self._brought_up_to_date([run_id]) as engine:
            return explain_spans(self._store, engine.dialects, run_id)

    def exported(self, run_id: str) -> Iterator[str]:
        """Yield the spans and log records of a run as lines of OTLP JSON; the store waits meanwhile."""
        from clawtrace.store.export import export_run

        with self._store.lock:
            yield from export_run(self._store, run_id)

    def query(
        self, sql: str, *, scope: Scope | None = None, time_limit_s: float | None = None, max_rows: int | None = None
    ) -> Answer:
        """Answer a user's own read-only SELECT over the relations of all runs; with `scope` of what may belong to it.

        Raises:
            QueryError: the text is no single SELECT, the engine refuses it, or the time limit has passed.
        """
        with self._store.lock:
            self._current(run_ids := self.run_ids())
            within = nullcontext() if scope is None else self._scoped([scope], run_ids)[scope].holding()
            with within:
                self.progress("asking the query", 0, 0)
                return self._asked.ask_user(sql, limits=Limits(time_limit_s, max_rows))

    def rerun(self, run_id: str, verdict: Mapping[str, Any], today: date | None = None) -> Rerun:
        """Ask again what decided a verdict, by the very SQL that it shows and the function that it names.

        Args:
            verdict: as ``clawtrace.results/1`` has it.
            today: the local date of the verdict, by which known failures end; None takes the clock's.

        Raises:
            UsageError: the store knows no such run.
            InvalidAssertionError: the assertion is invalid in this version.
        """
        from clawtrace.assertions.registry import parse_assertion
        from clawtrace.facts.facts import stand_ins
        from clawtrace.verdicts.asking.ask import ask
        from clawtrace.verdicts.asking.rerun import StoredQuestion
        from clawtrace.verdicts.evaluate import evaluate, without_secrets

        assertion = parse_assertion({**verdict["definition"], "id": verdict["id"]})
        asked_run = verdict["asked_run"]
        question = StoredQuestion(verdict)
        with self._brought_up_to_date([asked_run or run_id]) as engine:
            results = evaluate(
                self._asked,
                [assertion],
                [asked_run or run_id],
                engine.dialects,
                scoped=self._scoped,
                stand_ins=() if asked_run else stand_ins(self._store),
                evidence_of_passes=False,
                unmarked=self.settings.redaction.unmarked(),
                today=today,
                asker=question if verdict["sql"] else ask,
            )
            (result,) = without_secrets(results, [assertion], self.clean)
            return question.rerun(result.verdicts[0])

    def _scoped(self, scopes: Sequence[Scope], run_ids: Sequence[str]) -> Mapping[Scope, ScopedFacts]:
        """Return what of runs, whose facts are current, belongs to each scope; `holding` it narrows down what is asked."""
        return self._engine_at_hand().facts.scoped(scopes, run_ids)

    @contextmanager
    def _brought_up_to_date(self, run_ids: Sequence[str]) -> Iterator[_Engine]:
        """Hold the store while the facts of these runs are as their spans are now.

        Raises:
            UsageError: the store knows no run of that id.
        """
        with self._store.lock:
            yield self._current(run_ids)

    def _current(self, run_ids: Sequence[str], more: Iterable[str] = (), scopes: Iterable[Scope] = ()) -> _Engine:
        """Return the engine after bringing the facts of `run_ids` up to date, and those of `more` that the store knows.

        `scopes` are those that will be asked about (`Facts.ensure`).

        The facts of all runs that wait for the lock are computed together: that costs little more than those of one.

        Raises:
            UsageError: the store knows no run of that id.
        """
        known = set(self.run_ids())
        together = list(dict.fromkeys([*run_ids, *(run_id for run_id in more if run_id in known)]))
        unknown = [run_id for run_id in run_ids if run_id not in known]
        if unknown:
            raise UsageError(f"the store {self._store.path!r} has no run {unknown[0]!r}.")
        engine = self._engine_at_hand()
        engine.facts.ensure(together, self.progress, scopes)
        return engine

    def _engine_at_hand(self) -> _Engine:
        if self._engine is None:
            self._engine = _Engine(self._store, self.settings)
        return self._engine


class _Engine:
    """The engine of one session, made when it is first asked: recording alone needs none of it."""

    def __init__(self, store: DuckStore, settings: SessionSettings) -> None:
        from clawtrace.dialects.load import load_dialects
        from clawtrace.facts.facts import Facts

        dialects = load_dialects(settings.dialects)
        self.dialects: dict[str, Dialect] = {dialect.name: dialect for dialect in dialects}
        self.facts = Facts(store, dialects, settings.model_pricing, settings.parent_not_exported)
