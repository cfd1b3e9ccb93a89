"""Sources of existing runs, recordings or a store: the same flags for every command that reads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from clawtrace.cli.flags import together
from clawtrace.cli.sources.clickhouse import ClickHouseSource, store_options
from clawtrace.errors import StoreLockedError, UsageError
from clawtrace.support.files import keep_private

if TYPE_CHECKING:
    from clawtrace.config.projects.project_file import Project
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.logs.model import LogReading
    from clawtrace.model.progress import Progress
    from clawtrace.session.session import Session
    from clawtrace.store.files.owner import Owner
    from clawtrace.verdicts.reading.remote import HeldStore

__all__ = [
    "Recordings",
    "TraceSource",
    "chosen_runs",
    "existing_store",
    "held_by",
    "load_recordings",
    "open_or_ask",
    "recordings_options",
    "server_option",
    "service_at",
    "source_of",
    "source_options",
]

_IN_MEMORY = 256 << 20
"""Bytes of recordings that are kept in memory; more go to a file, and memory is bounded by the largest run."""
_NO_ID = "\0"
"""The value of `--one-run` without an id; it cannot be typed."""


class Recordings(NamedTuple):
    """`--traces`, and how their content is split into runs."""

    paths: tuple[Path, ...] = ()
    mode: Literal["rules", "one", "file", "dir"] = "rules"
    run_id: str | None = None
    """Of mode `one`; None when none was given."""
    logs: tuple[Path, ...] = ()
    """`--log`: agents' own logs and transcripts."""

    def __bool__(self) -> bool:
        """Whether there is anything to read."""
        return bool(self.paths or self.logs)


class TraceSource(NamedTuple):
    """Recordings, a store, or a running service."""

    recordings: Recordings = Recordings()
    store: Path | ClickHouseSource | None = None
    server: str | None = None
    """Address or ready file of the service; None where none was named."""

    @contextmanager
    def opened(self, wanted: Sequence[str] = ()) -> Iterator[tuple[Session | HeldStore, list[str]]]:
        """Yield what can be asked, with the ids of its runs in order. A store is held in the block: ask, then print.

        A store that another process holds is asked through that process. Of a ClickHouse only the runs in `wanted` are read.

        Raises:
            UsageError: there is nothing to read.
            InputError: a file that was named is not OTLP.
            StoreLockedError: another process holds the store and does not answer.
        """
        from clawtrace.cli.output.progress import working
        from clawtrace.config.projects.project_file import load_project
        from clawtrace.config.projects.session_settings import session_settings
        from clawtrace.session.session import Session

        project = load_project()
        settings = session_settings(project)
        if self.server is not None and not self.recordings:
            held = held_by(service_at(self.server))
            yield held, held.run_ids()
            return
        store = None if self.recordings else _store_to_read(self.store, project)
        with working() as shown:
            if not isinstance(store, Path):
                with self._replace(store=store).held(settings, shown, wanted) as found:
                    yield found
                return
            shown("waiting for the store", 0, 0)
            with closing(open_or_ask(store, settings)) as asked:
                if isinstance(asked, Session):
                    asked.progress = shown
                yield asked, asked.run_ids()

    @contextmanager
    def held(
        self, settings: SessionSettings, shown: Progress, wanted: Sequence[str] = ()
    ) -> Iterator[tuple[Session, list[str]]]:
        """Yield a session of this process that holds the runs of the recordings or of the store, with their ids."""
        from clawtrace.session.session import Session

        if isinstance(self.store, ClickHouseSource):
            with self.store.opened(settings, shown, wanted) as there:
                yield there, there.run_ids()
            return
        keep_private()
        with (
            _room(self.recordings) if self.store is None else nullcontext(self.store) as path,
            Session.open(path, settings=settings) as session,
        ):
            session.progress = shown
            yield session, load_recordings(session, self.recordings) if self.store is None else session.run_ids()

    @property
    def is_named(self) -> bool:
        """Whether flags name recordings or a store."""
        return bool(self.recordings) or self.store is not None


@contextmanager
def _room(recordings: Recordings) -> Iterator[str | Path]:
    """Yield where the spans of recordings are kept: in memory, or, where they are many, in a file that is deleted in the end."""
    from tempfile import TemporaryDirectory

    from clawtrace.store.duckdb import MEMORY

    if sum(map(_size, recordings.paths)) <= _IN_MEMORY:
        yield MEMORY
    else:
        with TemporaryDirectory(prefix="clawtrace-") as folder:
            yield Path(folder, "spans.duckdb")


def _size(path: Path) -> int:
    """Return how many bytes of recordings a file or folder holds, about ten times as many as are there where they are compressed."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size * (10 if one.suffix == ".gz" else 1) for one in files if one.is_file())


def held_by(service: Owner) -> HeldStore:
    """Return the store of a running service."""
    from clawtrace.verdicts.reading.remote import HeldStore

    return HeldStore(service.address, service)


def service_at(server: str) -> Owner:
    """Return address and token of the service that `--server` names.

    Raises:
        UsageError: it is not named rightly, or its token is missing.
    """
    from clawtrace.sidecar.client import server_named

    return server_named(server, os.environ.get("CLAWTRACE_SERVER_TOKEN"))


def open_or_ask(path: Path, settings: SessionSettings) -> Session | HeldStore:
    """Open a store, or find the process that holds it and answers; both are tried for as long as a lock is retried."""
    from clawtrace.session.session import Session
    from clawtrace.store.files.owner import patiently

    keep_private()

    def attempt() -> Session | HeldStore:
        try:
            return Session.open(path, settings=settings, patience_s=0)
        except StoreLockedError:
            from clawtrace.verdicts.reading.remote import HeldStore

            held = HeldStore.of(str(path))
            if held is None:
                raise
            return held

    return patiently(attempt)


def load_recordings(session: Session, recordings: Recordings) -> list[str]:
    """Load recordings and logs, and say on stderr what is not in the runs; return the run ids, in order."""
    run_ids = _load_traces(session, recordings) if recordings.paths else []
    if recordings.logs:
        loaded = session.load_logs(recordings.logs, _run_of_log(recordings, run_ids))
        for note in loaded.notes:
            click.echo(f"note: {note}", err=True)
        run_ids += [run_id for run_id in loaded.run_ids if run_id not in run_ids]
    return run_ids


def _load_traces(session: Session, recordings: Recordings) -> list[str]:
    from clawtrace.receiver.recordings.recording import Grouping

    loaded = session.load_recordings(recordings.paths, Grouping(recordings.mode, recordings.run_id))
    for form, name in loaded.foreign.items():
        click.echo(f"note: {name} is {form.name}, which does not hold {form.lacks} (docs/imports.md)", err=True)
    if loaded.passed_over:
        name, found = loaded.passed_over[0]
        number = len(loaded.passed_over)
        which = f"{number} files that are not OTLP, such as {name}" if number > 1 else f"{name}: {found}"
        click.echo(f"note: skipped {which}", err=True)
    for reason, number in loaded.rejected.items():
        click.echo(f"note: rejected {number} spans or log records: {reason}", err=True)
    if loaded.unattributed_logs:
        click.echo(f"note: {loaded.unattributed_logs} log records do not belong to any run", err=True)
    return loaded.run_ids


def _run_of_log(recordings: Recordings, run_ids: Sequence[str]) -> Callable[[LogReading], str | None]:
    """Return what says which run a log belongs to: the only one, the one of its folder; None where only its own lines do."""
    alone = run_ids[0] if len(run_ids) == 1 else None
    if recordings.mode == "one":
        only = alone or recordings.run_id or recordings.logs[0].name
        return lambda _: only
    folders: dict[Path, str] = {}
    roots = [path.resolve() for path in recordings.paths if path.is_dir()] if recordings.mode == "dir" else []
    for root, run_id in ((root, run_id) for run_id in run_ids for root in roots):
        for place in (root / run_id, root.parent / run_id):
            if place.is_dir():
                folders.setdefault(place, run_id)

    def run_of(reading: LogReading) -> str | None:
        place = next((folder for folder in reading.path.resolve().parents if folder in folders), None)
        if place is not None:
            return folders[place]
        return None if reading.by_run else alone  # a transcript records the only run; lines may name another one

    return run_of


server_option = click.option(
    "--server",
    envvar="CLAWTRACE_SERVER",
    metavar="URL|FILE",
    help="A running `clawtrace serve`: its address, with CLAWTRACE_SERVER_TOKEN set, or its ready file.",
)


def source_of(recordings: Recordings, store: Path | ClickHouseSource | None, server: str | None) -> TraceSource:
    """Return the one source that was named. The variable CLAWTRACE_SERVER gives way to a flag that names another one.

    Raises:
        UsageError: flags name two.
    """
    named = {"--traces": bool(recordings.paths), "--log": bool(recordings.logs) and not recordings.paths}
    given = [name for name, is_given in {**named, "--store": store is not None}.items() if is_given]
    if server is not None and given:
        from click.core import ParameterSource

        if click.get_current_context().get_parameter_source("server") is ParameterSource.ENVIRONMENT:
            server = None
    if server is not None:
        given.append("--server")
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} are two sources; give one of them.")
    return TraceSource(recordings, store, server)


def _recordings(
    traces: tuple[Path, ...],
    one_run: str | None,
    run_per_file: bool,
    run_per_dir: bool,
    logs: tuple[Path, ...],
    paths: tuple[Path, ...] = (),
) -> Recordings:
    """Return what the flags name, and the argument `paths` of a command that has one."""
    traces = (*paths, *traces)
    flags = {"--one-run": one_run is not None, "--run-per-file": run_per_file, "--run-per-dir": run_per_dir}
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} contradict each other.")
    if given and not (traces or (logs and one_run is not None)):
        raise click.UsageError(f"{given[0]} groups recordings into runs, and needs --traces.")
    if one_run is not None:
        return Recordings(traces, "one", None if one_run == _NO_ID else one_run, logs)
    return Recordings(traces, "file" if run_per_file else "dir" if run_per_dir else "rules", logs=logs)


recordings_options = together(
    "recordings",
    _recordings,
    click.option(
        "--traces",
        type=click.Path(exists=True, allow_dash=True, path_type=Path),
        multiple=True,
        help="Recorded OTLP: a file, a folder (read recursively), or - for standard input. Repeatable.",
    ),
    click.option(
        "--one-run", is_flag=False, flag_value=_NO_ID, metavar="[ID]", help="Treat all input as one run with this id."
    ),
    click.option("--run-per-file", is_flag=True, help="Each file is one run."),
    click.option("--run-per-dir", is_flag=True, help="Each folder that holds recordings is one run."),
    click.option(
        "--log",
        "logs",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        help="An agent's own log or transcript: completes a run of the input, or is a run itself. Repeatable.",
    ),
)

source_options = together(
    "source",
    source_of,
    recordings_options,
    store_options("A span store: a DuckDB file, or clickhouse://USER@HOST:8123/DATABASE."),
    server_option,
)


def chosen_runs(wanted: Sequence[str], known: Sequence[str], why_gone: Callable[[str], str]) -> list[str]:
    """Return the runs that `--run-id` names, all of them where it was not given.

    Args:
        why_gone: says of a run that was deleted why.

    Raises:
        UsageError: there is no such run.
    """
    number = f"There is one run, {known[0]!r}." if len(known) == 1 else f"There are {len(known)} runs."
    for run_id in wanted:
        if run_id not in known:
            from clawtrace.support.did_you_mean import did_you_mean

            if gone := why_gone(run_id):
                raise click.UsageError(f"{gone[0].upper()}{gone[1:]}.")
            raise click.UsageError(f"There is no run {run_id!r}. {did_you_mean(run_id, known) or number}")
    return list(dict.fromkeys(wanted)) or list(known)


def _store_to_read(store: Path | ClickHouseSource | None, project: Project) -> Path | ClickHouseSource:
    """Return the store of the flag or of the project, else the newest that a campaign or `serve` left here, and say so.

    Raises:
        UsageError: there is none of them.
    """
    kept = [path for folder in ("campaigns/*/*", "serve") for path in project.outputs.glob(f"{folder}/spans.duckdb")]
    if store or project.store or project.clickhouse or not kept:
        return existing_store(store, project)
    newest = max(kept, key=lambda path: path.stat().st_mtime)
    click.echo(f"note: nothing was named: this is the newest, --store {shlex.quote(os.path.relpath(newest))}", err=True)
    return newest


def existing_store(store: Path | ClickHouseSource | None, project: Project) -> Path | ClickHouseSource:
    """Return the store to read: the flag's, else the project's.

    Raises:
        UsageError: neither names one, or the project's file is not there.
    """
    if isinstance(store, ClickHouseSource):
        return store
    if store is None and project.clickhouse is not None:
        return ClickHouseSource(project.clickhouse)
    path = store or project.store
    if path is None:
        raise UsageError(
            "There is nothing to read: give --traces or --store, set `store: {url: …}` in clawtrace.yaml, or run "
            "`clawtrace eval --suite ID`."
        )
    if not path.is_file():
        raise UsageError(f"The store {str(path)!r} of clawtrace.yaml does not exist yet.")
    return path
