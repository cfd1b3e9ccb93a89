"""What is known of a run apart from its spans, as the text that the store keeps of it."""

from __future__ import annotations

import json

from clawtrace.model.run import ClosedBy, RunRecord, SentTurn

__all__ = ["read_record", "write_record"]


def write_record(record: RunRecord) -> str:
    """Return `record` as JSON."""
    return json.dumps(record._asdict())


def read_record(text: str) -> RunRecord:
    """Return the record that was stored as JSON `text`."""
    fields = json.loads(text)
    fields["closed_by"] = ClosedBy(fields["closed_by"]) if fields["closed_by"] else None
    for name in ("session_ids", "notes"):
        fields[name] = tuple(fields.get(name, ()))
    fields["turns"] = tuple(SentTurn(*turn) for turn in fields.get("turns", ()))
    return RunRecord(**fields)
