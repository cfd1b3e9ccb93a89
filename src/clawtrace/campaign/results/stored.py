"""The stored files of each run, and the choice of a stored run to reuse for a planned one (spec: config.md §5).

A run's folder holds ``run.json``, written last: without it the run never ended. It is found again by its fingerprint and
repetition, in its own place of the campaign or through the index under the folder of results, which holds relative paths
only, so that folders can be moved.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clawtrace.errors import StoreLockedError
from clawtrace.model.run import ClosedBy
from clawtrace.store.files.owner import command_of
from clawtrace.support.files import whole_text_file

__all__ = [
    "RUN_SCHEMA",
    "StoredRun",
    "StoredRuns",
    "campaign_lock",
    "edited",
    "fresh_folder",
    "kept_runs",
    "read_run",
    "run_or_why",
    "tokens_used",
    "write_json",
]


def write_json(path: Path, data: Mapping[str, Any], *, again: bool = True) -> None:
    """Write `data`, whole or not at all, and make the folders above it, `again` if an agent removes them meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file name that is no UTF-8 holds surrogates; with a backslash before it each is JSON again, and reads the same.
        with whole_text_file(path, errors="backslashreplace") as stream:
            json.dump(data, stream, indent=1, ensure_ascii=False, default=str)
            stream.write("\n")
    except FileNotFoundError:
        if not again:
            raise
        write_json(path, data, again=False)


def tokens_used(totals: Mapping[str, Any]) -> int | None:
    """Return input and output tokens of a run together; None where either is unknown."""
    given, made = totals.get("input_tokens"), totals.get("output_tokens")
    return None if given is None or made is None else int(given + made)


def fresh_folder(path: Path) -> Path:
    """Return `path` as an empty folder; what was there before is removed."""
    if path.exists():
        for folder, inner, _ in os.walk(path):
            for name in inner:  # an agent may have left folders without write permission
                if not Path(folder, name).is_symlink():
                    Path(folder, name).chmod(0o700)
        shutil.rmtree(path)
    path.mkdir(parents=True)
    return path


@contextlib.contextmanager
def campaign_lock(folder: Path) -> Iterator[None]:
    """Hold the campaign for this process; the system lets go of it when the process ends, however it ends.

    Raises:
        StoreLockedError: another process holds it; the message names it.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "campaign.lock"
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise StoreLockedError(
                f"the campaign in {str(folder)!r} is being run by {_holder(stream.read())}: wait until it has ended, or "
                "end it; then run the same command again to continue. To run at the same time, use another `--out` folder or run profile."
            ) from None
        stream.truncate(0)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        yield


def _holder(written: str) -> str:
    """Name who holds a lock, by what its file says; a process that is gone wrote it before the holder could."""
    pid = written.strip()
    command = command_of(int(pid)) if pid.isdecimal() else ""
    return f"process {pid} (`{command}`)" if command else f"process {pid}" if pid else "another process"


# --- runs that are kept -----------------------------------------------------------------------------------------------


RUN_SCHEMA = "clawtrace.run/1"
"""Version of ``run.json``; keys may be added. A file of another version is not reused."""

_WELL_ENDED = ("success", "failed", None)
"""Statuses of runs that are worth keeping: the agent's own end. Time-outs and broken providers are run again. How
a recording ended is unknown."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run that ended, with what is kept of it."""

    folder: Path
    """Absolute."""
    campaign: Path
    """Absolute folder of the campaign that it belongs to."""
    data: Mapping[str, Any]
    """The content of ``run.json``."""

    @property
    def run_id(self) -> str:
        """Id of the run, also in the campaign's span store."""
        return str(self.data["run_id"])

    @property
    def store(self) -> Path:
        """The span store that holds its spans."""
        return self.campaign / "spans.duckdb"

    @property
    def outlived(self) -> bool:
        """Whether its agent may have run before its command did, or after it: not the command's end closed the run."""
        return self.data.get("closed_by") in (ClosedBy.EVIDENCE, ClosedBy.SETTLED, ClosedBy.TIMEOUT)

    def why_not(self, fingerprint: str, parts: Mapping[str, str], describe: Callable[[str, str | None], str]) -> str:
        """Return why this run cannot be reused for a planned one; empty when it can.

        Args:
            fingerprint: of the run that is planned.
            parts: of that fingerprint, by name.
            describe: says more of an edited part, given its name and what it was before; empty where nothing is known.
        """
        if self.data.get("fingerprint") is None:
            return "it has no fingerprint"
        if self.data["fingerprint"] != fingerprint:
            return "edited since: " + ", ".join(edited(self.data.get("fingerprint_parts") or {}, parts, describe))
        status = self.data.get("run_status")
        if status not in _WELL_ENDED:
            return f"the stored run ended as `{status}`"
        if self.data.get("complete") is not True:
            return "its trace is not complete"
        if not self.store.is_file():
            return "its span store no longer exists"
        return ""


def edited(
    before: Mapping[str, str], parts: Mapping[str, str], describe: Callable[[str, str | None], str]
) -> list[str]:
    """Return which parts of a fingerprint differ, in words.

    Args:
        describe: says more of an edited part, given its name and what it was before; empty where nothing is known.
    """
    names = [name for name in {**before, **parts} if before.get(name) != parts.get(name)]
    more = {name: describe(name, before.get(name)) for name in names}
    return [f"{name} ({more[name]})" if more[name] else name for name in names]


def read_run(folder: Path, campaign: Path) -> StoredRun | None:
    """Return the run in a folder; None where none ended there, or its file cannot be read."""
    found = run_or_why(folder, campaign)
    return found if isinstance(found, StoredRun) else None


def run_or_why(folder: Path, campaign: Path) -> StoredRun | str:
    """Return the run in a folder, or why there is none, in a few words."""
    file = folder / "run.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        schema = data["schema"]
        if schema == RUN_SCHEMA and isinstance(data["run_id"], str) and isinstance(data["started_at"], int | float):
            return StoredRun(folder.absolute(), campaign.absolute(), data)
    except FileNotFoundError:
        return "it was not run before" if not any(folder.glob("*")) else "it was interrupted before it ended"
    except OSError as error:
        return f"its `run.json` cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError):
        schema = RUN_SCHEMA
    if not isinstance(schema, str) or schema == RUN_SCHEMA:
        return "its `run.json` is damaged"
    return f"its `run.json` is of another version ({schema!r}, this one reads {RUN_SCHEMA!r})"


def kept_runs(campaign: Path, but: Collection[Path] = ()) -> Iterator[StoredRun]:
    """Yield every run that a campaign's folder keeps; those in the folders `but` are not read."""
    for file in (campaign / "runs").glob("*/*/*/run.json"):
        run = None if file.parent in but else read_run(file.parent, campaign)
        if run is not None:
            yield run


class StoredRuns:
    """The runs below one folder of results, found by fingerprint and repetition."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs.absolute()

    def find(self, fingerprint: str, repetition: int, but: Path) -> StoredRun | None:
        """Return the run that the index names; None where there is none, or what it names is gone or another run.

        Args:
            but: absolute folder of a run that is known not to be it.
        """
        try:
            data = json.loads(self._entry(fingerprint, repetition).read_text(encoding="utf-8"))
            campaign, folder = self._outputs / data["campaign"], self._outputs / data["folder"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        found = None if folder == but else read_run(folder, campaign)
        return found if found is not None and found.run_id == data.get("run_id") else None

    def put(self, run: StoredRun, repetition: int) -> None:
        """Remember where a run is kept; one outside of the folder of results is not remembered."""
        fingerprint = run.data.get("fingerprint")
        if not fingerprint or not run.folder.is_relative_to(self._outputs):
            return
        write_json(
            self._entry(str(fingerprint), repetition),
            {
                "schema": "clawtrace.index/1",
                "run_id": run.run_id,
                "campaign": run.campaign.relative_to(self._outputs).as_posix(),
                "folder": run.folder.relative_to(self._outputs).as_posix(),
            },
        )

    def _entry(self, fingerprint: str, repetition: int) -> Path:
        return self._outputs / "index" / fingerprint[:2] / fingerprint / f"{repetition}.json"
