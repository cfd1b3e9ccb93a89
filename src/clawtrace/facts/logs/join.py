"""Which span a log record belongs to (spec: span-model.md §5): the equality of what both record and order, never a time window."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from clawtrace.dialects.schema import EventRule, JoinPair, JoinPart
from clawtrace.facts.logs.rows import EventRecord, JoinedRow, RunRows, comparable

__all__ = ["join_records", "separate_attempts"]

_STRUCTURE = frozenset(("span", "only_in_trace", "parent", "inside", "around"))


def join_records(run: RunRows, rule: EventRule, records: Sequence[EventRecord], new: int) -> list[JoinedRow]:
    """Join the `records` of one rule to the rows of a run, each to one row and each row once.

    Returns:
        the rows that records without a span become, numbered down from `new`; they have been added to the run.
    """
    left = list(records)
    taken: set[int] = set()
    for step in rule.join:
        if left:
            left = _step(run, rule, step, left, taken)
    spans = any(row.kind == rule.is_ and row.record is None for row in run.rows)
    stay = rule.alone == "always" or (rule.alone == "without_span" and not spans)
    rows = [_alone(rule, record, new - nth) for nth, record in enumerate(left)] if stay else []
    for row in rows:
        run.add(row, run.received(row.above))
    return rows


def separate_attempts(rows: Sequence[JoinedRow]) -> list[JoinedRow]:
    """Let each failed model call record its own attempts only, where every attempt was written with its number.

    Returns:
        the rows of a run that changed; `rows` are those that log records became.
    """
    changed = []
    last: dict[tuple[int, str | None], int] = {}
    for row in sorted(rows, key=lambda row: (row.start_ns, row.sid)):
        number = row.columns.get("attempts")
        if row.kind != "llm" or not row.failed or row.record is None or number is None:
            continue
        key = (row.record.rule, row.column("session_id"))
        before = last.get(key, 0)
        last[key] = number
        if before < number and before > 0:
            row.columns = {**row.columns, "attempts": number - before}
            changed.append(row)
    return changed


def _step(
    run: RunRows, rule: EventRule, step: Sequence[JoinPart], left: list[EventRecord], taken: set[int]
) -> list[EventRecord]:
    """Join by one list of parts; return the records that found no row."""
    below = run.first_below(rule.is_) if "around" in step else {}
    alone = run.traces_of_one(rule.is_) if "only_in_trace" in step else {}
    asking: dict[Hashable, list[EventRecord]] = defaultdict(list)
    unjoined = []
    for record in left:
        key = _key_of_record(run, rule, step, record, below, alone)
        if key is None:
            unjoined.append(record)
        else:
            asking[key].append(record)
    free: dict[Hashable, list[JoinedRow]] = defaultdict(list)
    if asking:
        for row in run.rows:
            if row.kind == rule.is_ and row.sid not in taken:
                key = _key_of_row(step, row)
                if key in asking:
                    free[key].append(row)
    for key, together in asking.items():
        together.sort(key=lambda record: (record.at_ns, record.sid))
        if "latest" in step:
            unjoined += _latest(rule, together, free[key], taken)
            continue
        rows = sorted(free[key], key=lambda row: (row.start_ns, row.sid))
        for record in together:
            tokens = record.columns.get("input_tokens")
            # Never one that records other input tokens.
            alike = (row for row in rows if tokens is None or row.column("input_tokens") in (None, tokens))
            found = next(alike, None)
            if found is None:
                unjoined.append(record)
                continue
            (found.before if rule.stands == "before" else found.fills).append(record)
            if not rule.gather:
                rows.remove(found)
                taken.add(found.sid)
    return unjoined


def _latest(
    rule: EventRule, together: Sequence[EventRecord], free: Sequence[JoinedRow], taken: set[int]
) -> list[EventRecord]:
    """Join each record to the last row that had ended when it was written; return the records that found none."""
    rows = sorted((row for row in free if row.end_ns is not None), key=lambda row: (row.end_ns, row.sid), reverse=True)
    ended: list[JoinedRow] = []
    unjoined = []
    for record in together:  # in order of time
        while rows and (rows[-1].end_ns or 0) <= record.at_ns:
            ended.append(rows.pop())
        if not ended:
            unjoined.append(record)
            continue
        found = ended.pop()
        (found.before if rule.stands == "before" else found.fills).append(record)
        taken.add(found.sid)
    return unjoined


def _key_of_record(
    run: RunRows,
    rule: EventRule,
    step: Sequence[JoinPart],
    record: EventRecord,
    below: Mapping[int, JoinedRow],
    alone: Mapping[str, int],
) -> Hashable | None:
    parts: list[Hashable] = []
    for part in step:
        if isinstance(part, JoinPair):
            parts.append(_text(part, record))
        elif part == "latest":
            continue
        elif part in ("span", "parent"):
            parts.append(record.named)
        elif part == "only_in_trace":
            parts.append(alone.get(record.trace_id) if record.named is None else None)
        elif part in _STRUCTURE:
            named = run.received(record.named)
            found = None
            if named is not None:
                found = run.nearest(rule.is_, named) if part == "inside" else below.get(named.sid)
            parts.append(None if found is None else found.sid)
        else:
            parts.append(comparable(part, record.columns.get(part)))
    return None if None in parts else (*parts, *_agreement(step, record))


def _key_of_row(step: Sequence[JoinPart], row: JoinedRow) -> Hashable | None:
    parts: list[Hashable] = []
    for part in step:
        if isinstance(part, JoinPair):
            parts.append(row.attribute(part.span or part.log))
        elif part == "latest":
            continue
        elif part == "span":
            parts.append(row.key)
        elif part == "parent":
            parts.append(row.above)
        elif part in _STRUCTURE:
            parts.append(row.sid)
        else:
            parts.append(comparable(part, row.column(part)))
    return None if None in parts else (*parts, *_agreement(step, row))


def _agreement(step: Sequence[JoinPart], one: EventRecord | JoinedRow) -> tuple[Hashable, ...]:
    """What else both sides agree on: which model calls failed, and who wrote it where no id of a span says so."""
    if "span" in step or "only_in_trace" in step:
        return ()
    failed = one.failed if one.kind == "llm" and "latest" not in step else None
    return (failed,) if any(part in _STRUCTURE for part in step if isinstance(part, str)) else (failed, one.dialect)


def _text(part: JoinPair, record: EventRecord) -> str | None:
    text = record.attributes.get(part.log)
    if text is not None and part.capture is not None:
        found = re.search(part.capture, text)
        text = found.group(1) if found else None
    if text is not None and part.ahead:
        text = str(int(text) - part.ahead) if text.isdecimal() and len(text) < 19 else None
    return text


def _alone(rule: EventRule, record: EventRecord, sid: int) -> JoinedRow:
    lasted = record.attributes.get(rule.duration_ms) if rule.duration_ms is not None else None
    try:
        start_ns = record.at_ns - max(round(float(lasted or 0) * 1e6), 0)
    except (ValueError, OverflowError):
        start_ns = record.at_ns
    return JoinedRow(
        sid, record.dialect, record.kind, record.failed, ("", ""), record.named, max(start_ns, 0), record.at_ns,
        record.columns, record.attributes, record,
    )  # fmt: skip
