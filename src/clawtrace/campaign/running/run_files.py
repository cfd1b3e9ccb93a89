"""The files of a run's folder, with secrets redacted (spec: span-model.md §1, config.md §5).

An agent prints what it likes. Its streams are cleaned when it has ended, before anything judges them, so that a run that is
judged again is judged by the same words. Files that it wrote into its workspace stay as they are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from clawtrace.campaign.planning.expand import PlannedRun
from clawtrace.campaign.results.stored import RUN_SCHEMA, tokens_used, write_json
from clawtrace.campaign.running.reuse import RunFingerprint
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import RunResult
from clawtrace.runners.base import RunOutcome
from clawtrace.support.files import whole_file
from clawtrace.support.texts import cleaned

__all__ = ["clean_streams", "keep_run", "without_secrets"]

_STREAMS = (
    "stdin",
    "stdout",
    "stderr",
    "*.log",
    "transcripts/**/*.jsonl",
    "turns/*/stdin",
    "turns/*/stdout",
    "turns/*/stderr",
)
_OF_RECORD = (
    "run_id", "case_id", "model_id", "repetition", "run_status", "ended_by_signal", "timed_out", "final_output", "started_ns", "ended_ns",
    "cassette",
)  # fmt: skip
_OF_RESULT = ("closed_by", "complete", "incomplete_because", "duration_ms", "retried")
_BLOCK = 16 << 20
"""Bytes of a stream that are cleaned at once."""
_LONGEST = 4 * _BLOCK
"""A line, or a key over many lines, is not cut before it is so long."""


def without_secrets(outcome: RunOutcome, folder: Path, clean: Callable[[str], str]) -> RunOutcome:
    """Return how a run ended with every text cleaned, after cleaning the streams that its folder keeps."""
    clean_streams(folder, clean)
    return replace(
        outcome,
        final_output=outcome.final_output and clean(outcome.final_output),
        runner_error=outcome.runner_error and clean(outcome.runner_error),
        notes=tuple(map(clean, outcome.notes)),
    )


def clean_streams(folder: Path, clean: Callable[[str], str]) -> None:
    """Clean what was said to an agent and what it printed, file by file; one that holds no secret is left alone."""
    for pattern in _STREAMS:
        for file in folder.glob(pattern):
            if file.is_file() and not file.is_symlink():
                _clean_file(file, clean)


def _clean_file(file: Path, clean: Callable[[str], str]) -> None:
    with file.open("rb") as stream:
        if all(_cleaned_bytes(block, clean) == block for block in _blocks(stream)):
            return
    with file.open("rb") as stream, whole_file(file, mode=0o600, sync=False) as target:
        os.fchmod(target.fileno(), stat.S_IMODE(os.fstat(stream.fileno()).st_mode))
        target.writelines(_cleaned_bytes(block, clean) for block in _blocks(stream))


def _cleaned_bytes(block: bytes, clean: Callable[[str], str]) -> bytes:
    """Return a part of a stream cleaned; what is no UTF-8 comes back as it was."""
    return clean(block.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a stream in parts that end where a line ends and no key is open."""
    left = b""
    while block := stream.read(_BLOCK):
        left += block
        end = left.rfind(b"\n") + 1
        key = left.rfind(b"-----BEGIN", 0, end)
        if key >= 0 and left.find(b"-----END", key, end) < 0:
            end = left.rfind(b"\n", 0, key) + 1
        if end == 0 and len(left) >= _LONGEST:
            end = len(left)
        if end:
            yield left[:end]
            left = left[end:]
    if left:
        yield left


def keep_run(
    folder: Path,
    planned: PlannedRun,
    fingerprint: RunFingerprint,
    execution: str,
    started_at: float,
    record: RunRecord,
    outcome: RunOutcome,
    result: RunResult,
    clean: Callable[[str], str],
) -> None:
    """Write ``run.json`` and ``workspace.diff`` of a finished run; paths in them are relative to the run's folder."""
    if outcome.workspace is not None:
        digests = {"sha256": outcome.digests}
        write_json(folder / "workspace.diff", {"schema": "clawtrace.workspace/1", **outcome.changes, **digests})
    settings = cleaned(planned.settings.model_dump(mode="json"), clean)
    write_json(
        folder / "run.json",
        {
            "schema": RUN_SCHEMA,
            **{name: getattr(record, name) for name in _OF_RECORD},
            **{name: getattr(result, name) for name in _OF_RESULT},
            "fingerprint": fingerprint.digest,
            "fingerprint_parts": dict(fingerprint.parts),
            "execution": execution,
            "requested_model": planned.model.requested_model if planned.model else None,
            "runner": {"type": planned.case.config.runner.type, **settings},
            "exit_code": record.agent_exit_code,
            "started_at": started_at,
            "tokens": tokens_used(result.totals),
            "cost_usd": result.totals.get("cost_usd"),
            "agent_id": planned.case.agent.config.agent_id if planned.case.agent else None,
            "artifacts": [asdict(artifact) for artifact in outcome.artifacts],
            "notes": list(outcome.notes),
        },
    )
