"""What is known of a run when its agent has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawtrace.campaign.running import reused_run
from clawtrace.campaign.running.ended import with_outcome
from clawtrace.model.run import RunRecord
from clawtrace.runners.base import RunOutcome


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("Queue full, dropping Span.\n", True),
        ("Queue is full, likely spans/logs will be dropped.\n", True),
        ("Dropped 12 spans because maxQueueSize reached\n", True),
        ("Dropping span batch: serialized size 90000642 bytes exceeds max_request_size 67108864 bytes.\n", True),
        ("the queue is full\n", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_an_sdk_that_says_that_it_dropped_spans(tmp_path: Path, said: str, lacks: bool, stream: str) -> None:
    """Nothing else shows them: without their parent or child they leave no sign, and a ban on their tool would pass."""
    (tmp_path / stream).write_text(said + "x" * 5_000_000 * lacks)
    record = with_outcome(RunRecord("r", "c"), RunOutcome(run_status="success", **{stream: tmp_path / stream}))

    assert (record.lacking is not None) == lacks
    assert with_outcome(record, RunOutcome(run_status="success")).lacking == record.lacking


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "5",
        '"created"',
        '{"created": null}',
        '{"created": 5, "modified": []}',
        "{}",
        '{"created": "a.txt"}',
        '{"created": [{}]}',
    ],
)
def test_a_damaged_workspace_diff_is_no_record(tmp_path: Path, text: str) -> None:
    """What the run changed is unknown then, and a question about it is open, not an error."""
    (tmp_path / "workspace.diff").write_text(text)

    assert reused_run._changes(tmp_path / "workspace.diff") is None
