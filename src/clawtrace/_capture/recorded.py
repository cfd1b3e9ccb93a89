"""`clawtrace.recorded()`: a run that a recording holds, asked as a capture is.

::

    @pytest.mark.parametrize("path", sorted(Path("recordings").glob("*.jsonl")), ids=str)
    def test_refund(path):
        clawtrace.recorded(path).check(tool_sequence(["lookup_order", "refund_order"]))
"""

from __future__ import annotations

import os
import warnings
import weakref
from pathlib import Path

from clawtrace._capture.checking import CheckWarning
from clawtrace._capture.children import close_in
from clawtrace._capture.trace import Trace
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.errors import UsageError
from clawtrace.model.verdict import RunResult
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

__all__ = ["recorded"]


def recorded(
    path: Path | str, *, run_id: str | None = None, one_run: bool = False, project: Path | str | None = None
) -> Trace:
    """Return a run of a recording: its `check`, `inspect`, `query` and `tree` are those of a capture after its block.

    Args:
        path: a file or folder, as `clawtrace eval --traces` reads it: OTLP, or what another tool exported.
        run_id: which run, where the recording holds several.
        one_run: whether all that it holds is one run.
        project: a folder; `clawtrace.yaml` is looked for from there upwards, by default from the working folder.

    Raises:
        InputError: it cannot be read.
        UsageError: it holds no run, or several and none is named.
        ConfigError: `clawtrace.yaml` has problems.
    """
    from clawtrace.config.projects.project_file import load_project

    settings = session_settings(load_project(Path.cwd() if project is None else Path(project), os.environ))
    session = Session.open(settings=settings)
    try:
        loaded = session.load_recordings([Path(path)], Grouping("one", run_id) if one_run else Grouping())
        found = [run_id] if run_id in loaded.run_ids else loaded.run_ids if run_id is None else []
        if len(found) != 1:
            held = ", ".join(loaded.run_ids[:10]) or "none"
            raise UsageError(
                f"{str(path)!r} holds the runs {held}: name one of them with `run_id`, or give `one_run=True`."
            )
    except BaseException:
        session.close()
        raise
    for reason, number in loaded.rejected.items():
        warnings.warn(f"{path}: rejected {number} spans or log records: {reason}", CheckWarning, stacklevel=2)
    return _RecordedTrace(found[0], session)


class _RecordedTrace(Trace):
    """A run that is over, in the session that its recording was loaded into."""

    def __init__(self, run_id: str, session: Session) -> None:
        super().__init__(run_id, session.settings, {}, None, "")
        self.run_id = run_id
        self._session = session
        weakref.finalize(self, close_in, os.getpid(), session)

    def __enter__(self) -> Trace:
        """Return the run: nothing is captured in the block."""
        return self

    def _current(self) -> Session:
        return self._opened()

    def _completed(self, result: RunResult) -> RunResult:
        return result
