"""`clawtrace.capture()`: what the code under test exports while a block runs, and questions about it.

::

    with clawtrace.capture() as trace:
        agent.run_sync("What is the weather in Paris?")
    trace.check(tool_sequence(["get_weather"]))

Each capture is one run in its own store. Spans of this process come from the SDK when they end; those of child
processes come through a receiver that starts when `Trace.env` or `Trace.run` is first used.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from clawtrace._capture.checking import (
    NOTHING_ENDED,
    Allowed,
    Asked,
    CheckFailedError,
    CheckWarning,
    as_assertion,
    as_gate,
    failure_text,
    is_warning,
    lacking,
    notes,
    tree_text,
)
from clawtrace._capture.children import Children, close_in, injected, run_child
from clawtrace.config.projects.session_settings import SessionSettings, session_settings
from clawtrace.errors import ExitCode, UsageError
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.runners.base import Protocol, TelemetryTarget
from clawtrace.runners.starting.environment import with_telemetry
from clawtrace.session.session import Session
from clawtrace.store.duckdb import MEMORY

if TYPE_CHECKING:
    from clawtrace._capture.scopes import CaptureScope

__all__ = ["Trace", "capture"]


def capture(
    name: str = "capture",
    *,
    in_process: bool = True,
    tracer_provider: object = None,
    project: Path | str | None = None,
    store: Path | str = MEMORY,
    settle_ms: int | None = None,
    trace_timeout_ms: int | None = None,
) -> Trace:
    """Return a context manager that takes what is exported while its block runs.

    Args:
        name: what reports call the run.
        in_process: whether spans of this process are taken; False needs no opentelemetry-sdk.
        tracer_provider: a provider (or a list of them) that the code under test uses and that is not of opentelemetry-sdk, or samples.
        project: a folder; `clawtrace.yaml` is looked for from there upwards, by default from the working folder.
        store: a DuckDB file that keeps the run; by default it is kept in memory.
        settle_ms: see `SessionSettings.settle_ms`; by default the project's.
        trace_timeout_ms: see `SessionSettings.trace_timeout_ms`; by default the project's.

    Raises:
        ConfigError: `clawtrace.yaml` has problems.
        UsageError: opentelemetry-sdk is missing, or a tracer provider takes no span processors (when the block begins).
    """
    from clawtrace.config.projects.project_file import load_project

    loaded = load_project(Path.cwd() if project is None else Path(project), os.environ)
    settings = session_settings(loaded)
    free_ports = replace(settings.receiver, grpc_port=0, http_port=0)  # captures run side by side
    waits: dict[str, Any] = {"settle_ms": settle_ms, "trace_timeout_ms": trace_timeout_ms}
    settings = settings._replace(receiver=free_ports, **{name: ms for name, ms in waits.items() if ms is not None})
    given = tracer_provider if isinstance(tracer_provider, list | tuple) else (tracer_provider,)
    providers = [provider for provider in given if provider is not None]
    return Trace(name, settings, loaded.config.telemetry_env, providers if in_process else None, store)


class Trace:
    """One capture: made by `capture`, filled while its block runs, asked after it (or in it, about what was so far)."""

    def __init__(
        self,
        name: str,
        settings: SessionSettings,
        switches: Mapping[str, bool | str],
        providers: Sequence[object] | None,
        store: Path | str,
    ) -> None:
        """Use `capture`; `providers` is None when no span of this process is taken."""
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:100] or "capture"
        self.run_id = f"{slug}-{secrets.token_hex(4)}"
        self._record = RunRecord(self.run_id, name, trace_id=secrets.token_hex(16), parent_span_id=secrets.token_hex(8))
        self.settings = settings
        """What holds for receiving, closing and pricing: the project's, but for what `capture` was given."""
        self._switches, self._store = switches, store
        self._providers = providers
        self._scope: CaptureScope | None = None
        self._session: Session | None = None
        self._closed = False
        self._left: float | None = None
        """When the block was left, in seconds of the monotonic clock."""
        self._ended = False
        """Whether it was said that nothing more will come."""
        self._children = Children()
        self._sampled: list[str] = []
        self._failed: list[str] = []
        self._recorded_state: object = None
        self._results: list[tuple[Verdict, int]] = []
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<clawtrace.Trace {self.run_id!r}>"

    # The block --------------------------------------------------------------------------------

    def __enter__(self) -> Trace:
        if self._record.started_ns is not None:
            raise UsageError("a capture is one block; make another with `clawtrace.capture()`.")
        if self._providers is not None:
            self._begin_in_process(self._providers)
        self._record = self._record._replace(started_ns=time.time_ns())
        return self

    def _begin_in_process(self, given: Sequence[object]) -> None:
        from clawtrace._capture import scopes, sdk

        common = sdk.global_provider(create=not given)
        providers = [*given, *([] if common is None else [common])]
        for provider in providers:
            sdk.hook_up(provider)
        self._sampled = [said for said in map(sdk.sampling_of, providers) if said]
        if around := sdk.current_span_ids():
            trace_id, span_id = injected(self._record, around)
            self._record = self._record._replace(trace_id=trace_id, parent_span_id=span_id)
        self._scope = scopes.CaptureScope(scopes.current_scope())
        weakref.finalize(self, self._scope.end)
        self._scope.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._record.ended_ns is None:
                self._record = self._record._replace(ended_ns=time.time_ns())
                self._left = time.monotonic()
                if self._scope is not None:
                    self._scope.end()

    def end(self) -> None:
        """Say that nothing more will come, also from unwatched child processes; ends the block's capture."""
        self.__exit__(None, None, None)
        self._ended = True

    def close(self) -> None:
        """Let go of the store and the receiver; nothing can be asked any more. Happens by itself with the last use."""
        self.__exit__(None, None, None)
        with self._lock:
            self._closed = True
            if self._session is not None:
                self._session.close()

    # Child processes --------------------------------------------------------------------------

    def env(self, base: Mapping[str, str] | None = None, *, protocol: Protocol = "http/protobuf") -> dict[str, str]:
        """Return an environment whose process exports to this capture, for processes that you start yourself.

        Such a process closes the run only by silence (`settle_ms` after the last arrival), or when `end` is called.

        Args:
            base: the environment to add to; this process's own by default.
            protocol: the OTLP protocol for the process.
        """
        with self._lock:
            self._children.unwatched = True
        return self._environment(os.environ if base is None else base, {}, protocol)

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        input: str | None = None,
        timeout: float | None = None,
        protocol: Protocol = "http/protobuf",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that exports to this capture, and everything it starts, to the end.

        Args:
            argv: the program and its arguments.
            env: variables to set in addition to this process's own and the telemetry's.
            cwd: its working folder.
            input: its standard input; nothing by default.
            timeout: its time limit in seconds.
            protocol: the OTLP protocol for the process.

        Returns:
            Exit code, standard output and standard error.

        Raises:
            RunnerError: it cannot be started.
            subprocess.TimeoutExpired: the time limit ended it; the run is incomplete.
        """
        whole = self._environment(os.environ, env or {}, protocol)
        end, done = run_child(argv, whole, cwd=Path(cwd or Path.cwd()).absolute(), text=input, timeout=timeout)
        with self._lock:
            self._children.note_end(end)
        if end.timed_out:
            assert timeout is not None
            raise subprocess.TimeoutExpired(list(argv), timeout, done.stdout, done.stderr)
        return done

    def _environment(self, base: Mapping[str, str], own: Mapping[str, str], protocol: Protocol) -> dict[str, str]:
        with self._lock:
            if self._record.started_ns is None or self._record.ended_ns is not None:
                raise UsageError("child processes must be started inside the capture's block.")
            self._children.handed_out += 1
            session = self._opened()
            endpoints = session.listen()
            trace_id, span_id = injected(self._record, self._current_span())
            session.announce_trace(self.run_id, trace_id)
        target = TelemetryTarget(endpoints.grpc, endpoints.http, trace_id, span_id, self._switches, endpoints.token)
        return with_telemetry(base, own, target, protocol, self.run_id)

    def _current_span(self) -> tuple[int, int] | None:
        """Return the current span when it is one of this capture."""
        if self._scope is None:
            return None
        from clawtrace._capture.sdk import current_span_ids

        current = current_span_ids()
        return current if current is not None and self._scope.holds(current[1]) else None

    # Questions --------------------------------------------------------------------------------

    @overload
    def check(self, asked: Asked | str, /, *, allow: Iterable[Allowed] = (), **fields: Any) -> Verdict: ...

    @overload
    def check(
        self, asked: Asked, second: Asked, /, *more: Asked, allow: Iterable[Allowed] = ()
    ) -> tuple[Verdict, ...]: ...

    def check(
        self, asked: Asked | str, /, *more: Asked, allow: Iterable[Allowed] = (), **fields: Any
    ) -> Verdict | tuple[Verdict, ...]:
        """Ask one question, or several at once; return the verdict, of several all of them, when they passed.

        Args:
            asked: an assertion (`clawtrace.expect` makes them), a mapping in the long notation, or a type's name.
            more: further assertions; one error lists all that did not pass.
            allow: what may pass although it did not: `missing_trace`, `missing_data`, `inconclusive`.
            fields: the assertion's fields, when `asked` is a type's name.

        Raises:
            CheckFailedError: one did not pass, or what was received does not decide it.
            InvalidAssertionError: an assertion is invalid.
        """
        __tracebackhide__ = True
        if isinstance(asked, str) and not more:
            asked = {"type": asked, **fields}
        elif fields:
            raise UsageError(f"fields ({', '.join(fields)}) go with a type's name; an assertion has its own.")
        verdicts = self._judge([asked, *more], allow)
        return verdicts if more else verdicts[0]

    def check_all(self, asked: Iterable[Asked], /, *, allow: Iterable[Allowed] = ()) -> tuple[Verdict, ...]:
        """Ask several questions at once, as `check` does; one error lists all that did not pass."""
        __tracebackhide__ = True
        return self._judge(list(asked), allow)

    @property
    def results(self) -> tuple[Verdict, ...]:
        """Every verdict so far, in the order of the questions; `stale` where more of the run arrived since."""
        with self._lock:
            if self._session is None:
                return ()
            if not self._closed:
                self._hand_in(self._session)
            now = self._session.arrived(self.run_id)
            return tuple(verdict._replace(stale=now > then) for verdict, then in self._results)

    def inspect(self) -> dict[str, Any]:
        """Return the facts of the run: its entry of ``clawtrace.inspect/1``."""
        with self._lock:
            (facts,) = self._current().inspect([self.run_id])["runs"]
            return dict(facts)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a read-only SELECT over the relations, by column name.

        Raises:
            QueryError: the text is no single SELECT, or the engine refuses it.
        """
        with self._lock:
            return self._current().query(sql).dicts()

    def tree(self) -> str:
        """Return the spans of the run as a tree, as text; empty when there is none."""
        with self._lock:
            return tree_text(self._current().tree(self.run_id))

    def glance(self) -> str:
        """Return the tree of what has arrived by now; unlike `tree` it waits for nothing and closes nothing."""
        with self._lock:
            if self._record.started_ns is None or self._closed:
                return ""
            session = self._opened()
            self._hand_in(session)
            return tree_text(session.tree(self.run_id))

    def _judge(self, asked: Sequence[Asked | str], allow: Iterable[Allowed]) -> tuple[Verdict, ...]:
        __tracebackhide__ = True
        assertions = list(map(as_assertion, asked))
        if not assertions:
            raise UsageError("nothing to check: give at least one assertion.")
        gate = as_gate(allow)
        with self._lock:
            session = self._current()
            (result,) = session.evaluate([self.run_id], assertions)
            result = self._completed(result)
            arrived = session.arrived(self.run_id)
            self._results += [(verdict, arrived) for verdict in result.verdicts]
            failed = [one for one in result.verdicts if gate.of_verdict(one) is not ExitCode.PASSED]
            if failed:
                raise CheckFailedError(failure_text(result, failed, session.tree(self.run_id)), failed)
        for verdict in result.verdicts:
            if is_warning(verdict):
                warnings.warn(f"{verdict.status} {verdict.id}: {verdict.message}", CheckWarning, stacklevel=3)
        return tuple(result.verdicts)

    def _completed(self, result: RunResult) -> RunResult:
        """Add what only the capture knows: why there is no span, and spans that no context gave to it."""
        verdicts = result.verdicts
        if not result.has_trace and not self._children.handed_out:
            verdicts = tuple(verdict._replace(hint=NOTHING_ENDED) for verdict in verdicts)
        said = (*result.diagnostics, *notes(self._scope), *self._children.notes())
        return result._replace(verdicts=verdicts, diagnostics=said)

    # Bringing the run up to date --------------------------------------------------------------

    def _opened(self) -> Session:
        if self._closed:
            raise UsageError("the capture is closed; check before `close`.")
        if self._session is None:
            self._session = Session.open(self._store, settings=self.settings)
            weakref.finalize(self, close_in, os.getpid(), self._session)
            self._session.open_run(self._record)
        return self._session

    def _hand_in(self, session: Session) -> None:
        if self._scope is None:
            return
        from clawtrace._capture.sdk import encode

        bodies, failed = encode(self._scope.take_ended(), self._scope.is_outside)
        self._failed += failed
        for body in bodies:
            session.take(self.run_id, body)

    def _current(self) -> Session:
        """Store what ended so far, and close the run as of now: asking says that the question is about this moment."""
        if self._record.started_ns is None:
            raise UsageError("nothing was captured yet: enter the block first (`with clawtrace.capture() as trace:`).")
        session = self._opened()
        self._hand_in(session)
        unfinished = self._scope is not None and self._scope.is_open and bool(self._scope.running)
        record = self._record._replace(
            lacking=lacking(self._scope, self._sampled, self._failed), **self._children.facts()
        )
        state = (record, unfinished, self._ended, self._children.handed_out, session.arrived(self.run_id))
        if state == self._recorded_state:
            return session
        if unfinished:
            session.open_run(record)
        else:
            if self._children.handed_out and record.ended_ns is None:
                record = record._replace(ended_ns=time.time_ns())
            end_run = self._ended or not self._children.handed_out
            session.close_run(record, processes_gone=self._children.gone, ended=self._left, end_run=end_run)
        self._recorded_state = (*state[:-1], session.arrived(self.run_id))
        return session
