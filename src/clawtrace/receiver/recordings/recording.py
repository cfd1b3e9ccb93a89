"""Recorded OTLP as input: files, folders, standard input, each request through the receiver's own decoders.

Nothing of the servers is imported; protobuf only when a recording is protobuf.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from clawtrace.errors import InputError, StoreError
from clawtrace.model.progress import Progress, unseen
from clawtrace.model.raw import RawSink
from clawtrace.receiver.attribution.attribute import Attribution
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.recordings.recording_files import (
    ForeignRows,
    ForeignTraceError,
    NotOtlpError,
    RecordedRequest,
    read_recording,
)
from clawtrace.receiver.redaction.redact import RedactionSettings, Redactor
from clawtrace.receiver.request import BadPayloadError, Request, Signal

if TYPE_CHECKING:
    from clawtrace.receiver.decode.foreign_forms import ForeignForm

__all__ = ["Grouping", "LoadReport", "load_recordings", "load_requests"]

Parquet = Callable[[Path], Iterable[tuple[Signal | Literal["rows"], str]]]

_STDIN = Path("-")
_PARQUET = b"PAR1"
_CHUNK_ROWS = 20_000
_CHUNK_BYTES = 32 << 20
_NO_LIMIT = 1 << 60
_WINDOW = 1 << 19


class Grouping(NamedTuple):
    """How recordings are split into runs (spec: cli.md)."""

    mode: Literal["rules", "one", "file", "dir"] = "rules"
    """`rules`: what the spans say decides (span-model.md §2). `one`: everything given is exactly one run, also when it holds no span.
    `file`, `dir`: each recording file, or each folder that holds one, is a run."""
    run_id: str | None = None
    """Of mode `one`; derived from the paths when None."""


@dataclass(slots=True)
class LoadReport:
    """The result of loading recordings."""

    run_ids: list[str] = field(default_factory=list)
    """In order: by path where runs were given, else as first seen."""
    files: int = 0
    """Recording files read."""
    foreign: dict[ForeignForm, str] = field(default_factory=dict)
    """Other tools' forms that were read, each with the first file that has it."""
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    """Files of folders that are not OTLP by content: path and what was found instead."""
    requests: int = 0
    spans: int = 0
    logs: int = 0
    points: int = 0
    """Metric data points, counted only."""
    duplicates: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Items that were rejected, by reason."""
    unattributed_logs: int = 0
    """Log records without a trace that no rule gives to a run; they are stored, and belong to none."""


class _RecordingFile(NamedTuple):
    path: Path
    root: Path
    """The folder that was given, or the file itself."""
    named: bool
    """Whether it was named itself, so that it must be OTLP."""


def load_recordings(
    paths: Sequence[Path],
    grouping: Grouping,
    sink: RawSink,
    *,
    redaction: RedactionSettings | None = None,
    run_key: str | None = None,
    environ: Mapping[str, str] | None = None,
    stdin: IO[bytes] | None = None,
    parquet: Parquet | None = None,
    progress: Progress = unseen,
) -> LoadReport:
    """Read recordings into a sink; the report holds the run ids in order.

    Args:
        paths: files, folders (read recursively), or ``-`` for standard input.
        sink: where it goes, in bounded commits.
        run_key: attribute that carries the run id (rule 8).
        environ: where secret values are looked up; the process environment when None.
        stdin: what ``-`` reads; standard input when None.
        parquet: yields what a Parquet file holds, as requests of OTLP JSON, each with its signal, or as rows of another tool.
        progress: called with the bytes that were read.

    Raises:
        InputError: a path does not exist, a named file is not OTLP, or a recording is damaged; what was read before
            it may be in the sink already.
        StoreError: the sink could not write.
    """
    files = list(_files(paths))
    loader = _RecordingLoader(sink, Redactor(redaction, environ), run_key, stdin, _Bytes(files, progress), parquet)
    names = None if grouping.mode == "rules" else _RunNames(paths, grouping)
    given = dict.fromkeys([names.only] if names and names.only else [])
    for file in files:
        run_id = names.of(file) if names else None
        if loader.load(file, run_id) and run_id is not None:
            given[run_id] = None
    loader.finish()
    loader.report.run_ids = list(given) if names else loader.attributed_runs()
    for run_id in given:
        sink.run_no(run_id)
    return loader.report


def load_requests(
    requests: Iterable[tuple[Signal, str]],
    sink: RawSink,
    *,
    redaction: RedactionSettings | None = None,
    run_key: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> LoadReport:
    """Store requests of OTLP JSON, each with its signal, as `load_recordings` does those of files; what they say decides the runs.

    Raises:
        StoreError: the sink could not write.
    """
    loader = _RecordingLoader(sink, Redactor(redaction, environ), run_key, None, _Bytes((), unseen))
    for number, (signal, body) in enumerate(requests, 1):
        loader.add("request", RecordedRequest(signal, body.encode(), None, str(number), is_json=True), None)
    loader.finish()
    loader.report.run_ids = loader.attributed_runs()
    return loader.report


def _files(paths: Sequence[Path]) -> Iterator[_RecordingFile]:
    """Yield every file once: those of folders sorted by path, in the order the paths were given."""
    seen: set[str] = set()
    for path in paths:
        if path == _STDIN:
            yield _RecordingFile(path, path, named=True)
            continue
        if not path.exists():
            raise InputError(f"`{path}` does not exist")
        found = [path]
        if path.is_dir():
            walk = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
            found = sorted((file for file in walk if file.is_file()), key=lambda file: file.parts)
        for file in found:
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield _RecordingFile(file, path, named=not path.is_dir())


class _RunNames:
    """Run ids of recordings: paths relative to the folder that was given, its name where that is empty."""

    def __init__(self, paths: Sequence[Path], grouping: Grouping) -> None:
        self._per_file = grouping.mode == "file"
        self._owners: dict[str, str] = {}
        self.only = ""
        """The id of the only run, empty when each file or folder has its own."""
        if grouping.mode == "one":
            self.only = _readable(grouping.run_id or (_own_name(paths[0]) if len(paths) == 1 else "recording"))

    def of(self, file: _RecordingFile) -> str:
        """Return the id of the run that a file belongs to; different files or folders never share one."""
        if self.only:
            return self.only
        place = file.path if self._per_file else file.path.parent
        if file.path == _STDIN:
            return "stdin"
        root = file.root.parent if file.named else file.root
        relative = place.relative_to(root).as_posix()
        name = relative if relative != "." else _own_name(root)
        owner = os.path.realpath(place)
        for candidate in map(_readable, (name, f"{_own_name(root)}/{name}", Path(owner).as_posix())):
            if self._owners.setdefault(candidate, owner) == owner:
                return candidate
        raise InputError(f"`{place}`: no unique run id can be made from its name; rename it")


def _readable(name: str) -> str:
    """Return a name as valid Unicode: a file's need not be UTF-8, and Python keeps the other bytes as half characters."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _own_name(path: Path) -> str:
    if path == _STDIN:
        return "stdin"
    return path.resolve().name or "root"


def _head(content: IO[bytes]) -> bytes:
    """Return the first four bytes of a file, and leave it at its beginning."""
    head = content.read(4)
    content.seek(0)
    return head


class _Bytes:
    """The number of bytes of the recordings that were read."""

    def __init__(self, files: Sequence[_RecordingFile], progress: Progress) -> None:
        self._sizes = {file.path: file.path.stat().st_size for file in files if file.path.is_file()}
        self._total = sum(self._sizes.values()) if len(self._sizes) == len(files) else 0
        self._before = 0
        self._progress = progress
        progress("reading recordings", 0, self._total)

    def so_far(self, content: IO[bytes]) -> None:
        """Record how much of a file was read."""
        done = self._before + content.tell() if self._total else 0
        self._progress("reading recordings", min(done, self._total), self._total)

    def whole(self, file: _RecordingFile) -> None:
        """Record that a file was read."""
        self._before += self._sizes.get(file.path, 0)


class _RecordingLoader:
    """Brings recordings into a sink."""

    def __init__(
        self,
        sink: RawSink,
        redactor: Redactor,
        run_key: str | None,
        stdin: IO[bytes] | None,
        read: _Bytes,
        parquet: Parquet | None = None,
    ) -> None:
        self.report = LoadReport()
        self._read = read
        self._sink = sink
        self._stdin = stdin
        self._parquet = parquet
        self._attribution = Attribution(sink.run_no, trace_limit=_NO_LIMIT)
        self._intake = Intake(self._attribution, redactor, run_key=run_key, span_window=_WINDOW)
        self._numbers: dict[int, None] = {}
        self._bytes = 0

    def load(self, file: _RecordingFile, run_id: str | None) -> bool:
        """Read one file; False when it is passed over."""
        name = str(file.path)
        try:
            with self._open(file) as content:
                for recorded in self._recorded(file, content):
                    self.add(name, recorded, run_id)
                    if recorded.form:
                        self.report.foreign.setdefault(recorded.form, name)
                    self._read.so_far(content)
        except NotOtlpError as reason:
            if file.named:
                if isinstance(reason, ForeignTraceError):
                    raise InputError(f"`{name}` cannot be read: {reason}") from None
                raise InputError(
                    f"`{name}` is not OTLP: {reason}. Other tools' exports that are read are in docs/imports.md; an agent's own "
                    "log is given with --log"
                ) from None
            self.report.passed_over.append((name, str(reason)))
            return False
        except OSError as error:
            raise InputError(f"`{name}` cannot be read: {error.strerror or error}") from error
        except MemoryError:
            raise InputError(
                f"`{name}` does not fit into memory; split it, or write one request per line: such a file is read line by line"
            ) from None
        self._read.whole(file)
        self.report.files += 1
        return True

    def finish(self) -> None:
        """Commit what is left."""
        taken = self._intake.take()
        self._bytes = 0
        if not taken:
            return
        try:
            receipts = [note.receipt for note in taken.notes]
            self._sink.commit(taken.spans, taken.logs, receipts, taken.adopted)
        except StoreError:
            self._intake.failed(taken)
            raise
        self._intake.committed()
        self.report.spans += len(taken.spans)
        self.report.logs += len(taken.logs)
        for receipt in receipts:
            self.report.duplicates += receipt.duplicates
            if receipt.rejected:
                self.report.rejected[receipt.reason] += receipt.rejected
            if receipt.signal == "metrics":
                self.report.points += receipt.accepted

    def attributed_runs(self) -> list[str]:
        """Return the ids of runs that spans or log records were given to; adopted traces are no runs any more."""
        names = self._attribution.names()
        return [names[number] for number in self._numbers if number in names]

    def _recorded(self, file: _RecordingFile, content: IO[bytes]) -> Iterator[RecordedRequest]:
        """Return the requests of a file."""
        if self._parquet is None or not file.path.is_file() or _head(content) != _PARQUET:
            return read_recording(str(file.path), content)
        return _of_parquet(str(file.path), self._parquet(file.path))

    @contextmanager
    def _open(self, file: _RecordingFile) -> Iterator[IO[bytes]]:
        if file.path == _STDIN:
            yield self._stdin or sys.stdin.buffer
        else:
            with file.path.open("rb") as content:
                yield content

    def add(self, name: str, recorded: RecordedRequest, run_id: str | None) -> None:
        """Accept one request.

        Raises:
            InputError: it is damaged.
        """
        request = Request(
            recorded.signal,
            "file",
            recorded.body,
            recorded.is_json,
            time.time_ns(),
            given_run=run_id or "",
            document=recorded.document,
        )
        try:
            self._intake.add(request)
        except BadPayloadError as problem:
            raise InputError(f"`{name}` {recorded.place}: {problem}") from None
        self.report.requests += 1
        self.report.unattributed_logs += request.outside
        self._numbers.update(dict.fromkeys(request.runs))
        self._bytes += len(recorded.body)
        if len(self._intake) >= _CHUNK_ROWS or self._bytes >= _CHUNK_BYTES:
            self.finish()


def _of_parquet(name: str, parts: Iterable[tuple[Signal | Literal["rows"], str]]) -> Iterator[RecordedRequest]:
    foreign = ForeignRows(name)
    for number, (signal, body) in enumerate(parts, 1):
        if signal == "rows":
            try:
                yield from foreign.add(json.loads(body), f"part {number}")
            except ForeignTraceError:
                raise
            except NotOtlpError:
                raise NotOtlpError(
                    "it is a Parquet file of neither `clawtrace runs export --format parquet` nor a tool whose files are read (docs/imports.md)"
                ) from None
        else:
            yield RecordedRequest(signal, body.encode(), None, f"part {number}", is_json=True)
    yield from foreign.rest()
