"""Assertions that name a log: where their run has no spans, the log's lines are its spans (spec: assertions.md §6).

Such spans are in the store like any others, of a run whose record names the log. They answer the assertions that name
it; for every other assertion the run has no trace still, because it is not stated that this log is all that there is.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probing.files import stale_reason
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError
from clawtrace.facts.facts import stand_ins
from clawtrace.facts.logs.importing import store_logged_run
from clawtrace.logs.configured import ConfiguredForm, FormSettings
from clawtrace.logs.model import LoggedRun, LogReading
from clawtrace.logs.reading import read_log
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult, Status, Verdict, run_status_of
from clawtrace.receiver.redaction.redact import RedactionSettings
from clawtrace.store.api import FactStore
from clawtrace.support.figures import listed

__all__ = ["LogFallback"]

_SEEN = 5
"""Runs of a log that a message names."""

_SPANS = "SELECT t.run_id FROM run_totals AS t JOIN wanted_runs AS w ON w.run_id = t.run_id"


class _StandIn(NamedTuple):
    """The source of the answer for one assertion and run."""

    stored: str | None
    """The run that holds the log's spans; None where there is none."""
    said: str
    """About the log, one sentence."""
    error: bool = False
    """Whether the log is there and cannot be read."""


class LogFallback:
    """Reads the logs that assertions name, for the runs that have no spans; used once, facts must be current.

    Args:
        redaction: as for everything that is stored.
        worlds: where the agent worked, by run id: paths are relative to it, without one to the working folder.
    """

    def __init__(
        self,
        store: FactStore,
        adapters: Sequence[FormSettings],
        redaction: RedactionSettings,
        worlds: Mapping[str, World],
    ) -> None:
        self._store = store
        self._forms = [ConfiguredForm(settings) for settings in adapters]
        self._redaction = redaction
        self._worlds = worlds
        self._readings: dict[Path, LogReading | ClawtraceError] = {}
        self._stored: dict[tuple[Path, str], _StandIn] = {}
        self._answers: dict[tuple[int, str], _StandIn] = {}
        self.stand_ins = stand_ins(store)
        """Runs whose only spans are a log's: they have no trace."""

    def evaluate(
        self,
        assertions: Sequence[Assertion],
        run_ids: Sequence[str],
        ask_all: Callable[..., list[RunResult]],
        ask_log: Callable[..., list[RunResult]],
        ensure: Callable[[Sequence[str]], object],
    ) -> list[RunResult]:
        """Ask every assertion of every run, those that name a log of the log where the run has no spans.

        Args:
            ask_all: asks assertions of runs; takes `stand_ins`.
            ask_log: the same without what was found outside of the spans.
            ensure: makes the facts of runs current.
        """
        self._read(assertions, run_ids)
        ensure(sorted(self.stand_ins & {answer.stored for answer in self._answers.values()}))
        results = ask_all(assertions, run_ids, stand_ins=self.stand_ins)
        return [self._result(result, assertions, lambda run_id, one: ask_log([one], [run_id])[0]) for result in results]

    def _read(self, assertions: Sequence[Assertion], run_ids: Sequence[str]) -> None:
        """Read what is needed to answer."""
        asked = {
            (place, run_id): (one, one.run_id or run_id)
            for place, one in enumerate(assertions)
            if isinstance(one, LogSource) and one.log_path is not None
            for run_id in run_ids
        }
        self._store.load("wanted_runs", {"run_id": ("text", sorted({named for _, named in asked.values()}))})
        traced = {run_id for (run_id,) in self._store.script(_SPANS)} - self.stand_ins
        for (place, run_id), (one, named) in asked.items():
            if named not in traced:
                assert one.log_path is not None
                self._answers[place, run_id] = self._answer(one.log_path, run_id, named)

    def _result(
        self, result: RunResult, assertions: Sequence[Assertion], ask: Callable[[str, Assertion], RunResult]
    ) -> RunResult:
        verdicts = list(result.verdicts)
        said = list(result.diagnostics)
        for place, one in enumerate(assertions):
            if not isinstance(one, LogSource) or one.log_path is None:
                continue
            answer = self._answers.get((place, result.run_id))
            if answer is None:
                why = f"The log `{one.log_path}` was not read: the run has spans."
                verdicts[place] = _with_message(verdicts[place], why)
            elif answer.stored is None:
                verdicts[place] = _without(verdicts[place], one, answer, result.run_id)
            else:
                found = ask(answer.stored, one.model_copy(update={"run_id": None}))
                verdicts[place] = found.verdicts[0]._replace(run_id=result.run_id, asked_run=answer.stored)
                verdicts[place] = _with_message(verdicts[place], answer.said)
                said += [text for text in found.diagnostics if text not in said]
        return result._replace(verdicts=tuple(verdicts), status=run_status_of(verdicts), diagnostics=tuple(said))

    def _answer(self, log_path: str, run_id: str, named: str) -> _StandIn:
        there = self._paths(log_path, run_id)
        if not there:
            return _StandIn(None, f"The log `{log_path}` does not exist.")
        found = [path for path in there if not self._is_stale(path, run_id)]
        if not found:
            said = "existed before the run and was not changed, and its lines name no run"
            return _StandIn(None, f"The log `{log_path}` {said}: it is the log of an earlier run.")
        for path in found:
            key = (path.resolve(), named)
            if key not in self._stored:
                self._stored[key] = self._store_run(path, named, [other for other in found if other != path])
            if self._stored[key].stored is not None or self._stored[key].error:
                return self._stored[key]
        return self._stored[found[-1].resolve(), named]

    def _paths(self, log_path: str, run_id: str) -> list[Path]:
        """Return the files of a path, which may be a glob."""
        world = self._worlds.get(run_id)
        record = self._store.record(run_id)
        workspace = (
            world.workspace if world is not None else Path(record.workspace) if record and record.workspace else None
        )
        path = Path(log_path) if workspace is None else workspace / log_path
        if path.is_file():
            return [path]
        found = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
        return sorted(one for one in found if one.is_file())

    def _is_stale(self, path: Path, run_id: str) -> bool:
        """Return whether a log that is all of one run's cannot be this run's, because the run did not write it."""
        reading, world = self._reading(path), self._worlds.get(run_id)
        own = isinstance(reading, LogReading) and not reading.by_run
        return own and world is not None and bool(stale_reason(path, world, None))

    def _store_run(self, path: Path, named: str, others: Sequence[Path]) -> _StandIn:
        """Store what a log records of a run, unless it is there."""
        reading = self._reading(path)
        if isinstance(reading, ClawtraceError):
            return _StandIn(None, str(reading), error=True)
        if reading.by_run:
            run = reading.whole(named) if named in reading.runs else LoggedRun(named)
        else:
            for other in others:
                further = self._reading(other)
                if isinstance(further, LogReading) and further.form == reading.form:
                    reading.join(further)
            run = reading.all()
        if not run.spans:
            return _StandIn(None, _nothing(reading, path, named))
        stored = self._name(path, named)
        if stored not in self.stand_ins:
            store_logged_run(self._store, stored, reading, run, path, self._redaction)
            record = self._store.record(stored) or RunRecord(stored, stored, closed_by=ClosedBy.RECORDING)
            self._store.put_record(record._replace(log=str(path)))
            self.stand_ins.add(stored)
        whose = f", run {named!r}" if reading.by_run else ""
        return _StandIn(stored, f"This is from the log `{path.name}` ({reading.title}{whose}): the run sent no spans.")

    def _reading(self, path: Path) -> LogReading | ClawtraceError:
        if path not in self._readings:
            try:
                self._readings[path] = read_log(path, self._forms)
            except ClawtraceError as error:
                self._readings[path] = error
        return self._readings[path]

    def _name(self, path: Path, named: str) -> str:
        """Return the run that holds a log's spans of a run: that run, or for another log of it a separate one."""
        for stored in (named, f"{named} ({path.name})", f"{named} ({path})"):
            record = self._store.record(stored)
            if stored not in self.stand_ins or (record is not None and record.log == str(path)):
                return stored
        return f"{named} ({path})"


def _nothing(reading: LogReading, path: Path, named: str) -> str:
    """Report that a log records nothing of a run, and what it does record."""
    if reading.by_run and named in reading.runs:
        return (
            f"The log `{path.name}` ({reading.title}) has lines of run {named!r}, and none of them is about a tool, a "
            "model call or an agent."
        )
    seen = listed(list(map(repr, reading.runs)), _SEEN)
    contents = f"it is about {seen}" if seen else f"{reading.unread} of its {reading.lines} lines could not be read"
    return f"The log `{path.name}` ({reading.title}) has no line of run {named!r}; {contents}."


def _with_message(verdict: Verdict, said: str) -> Verdict:
    return verdict._replace(message=f"{verdict.message} {said}")


def _without(verdict: Verdict, asked: LogSource, answer: _StandIn, run_id: str) -> Verdict:
    """Return the sentence for a run that neither spans nor a log record."""
    if answer.error:
        message = f"the assertion could not be evaluated: {answer.said}"
        return verdict._replace(status=Status.ERROR, final=False, message=message, hint="", actual=None, evidence=())
    status = Status(asked.on_missing) if asked.on_missing is not None else Status.SKIP
    named = f"run {asked.run_id!r}" if asked.run_id not in (None, run_id) else "this run"
    message = f"there is no trace of {named}, and no log of it."
    if status is not Status.SKIP:
        message = f"{message} `on_missing: {status}` decides."
    return verdict._replace(
        status=status, final=False, message=message, hint=answer.said, missing="trace", actual=None, evidence=(),
        missing_data=False,
    )  # fmt: skip
