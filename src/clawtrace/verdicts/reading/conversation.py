"""Everything that was said in a run, as the input and the answer of its last answered model call."""

from __future__ import annotations

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["conversation"]

_PARTS = """
SELECT m.direction AS direction, m.role AS role, m.type AS type, m.name AS name, m.text AS text
FROM selected_runs AS s
JOIN llm_calls AS c ON c.run_id = s.run_id
JOIN messages AS m ON m.run_id = c.run_id AND m.span_id = c.span_id
WHERE c.call_no = (SELECT max(o.call_no) FROM llm_calls AS o WHERE o.run_id = c.run_id AND o.outcome = 'ok')
ORDER BY m.direction, m.message_no, m.part_no
"""
_END = """
SELECT r.conversation_end AS ended FROM selected_runs AS s JOIN runs AS r ON r.run_id = s.run_id
WHERE r.conversation_end IS NOT NULL
"""


def conversation(store: QueryableStore, run_id: str) -> str | None:
    """Return the messages as text, one part a line, and how a simulated user ended them; None where no message of the last call is recorded."""
    store.select_runs([run_id])
    parts = store.ask(Query(_PARTS)).dicts()
    if not any(part["direction"] == "input" for part in parts):
        return None
    ended = (
        f"[end] The simulated user's conversation ended as `{row['ended']}`" for row in store.ask(Query(_END)).dicts()
    )
    return "\n".join((*map(_line, parts), *ended))


def _line(part: dict[str, str | None]) -> str:
    what = "" if part["type"] == "text" else f" {part['type']}"
    named = f" {part['name']}" if part["name"] else ""
    return (
        f"[{part['role'] or 'unknown'}{what}{named}] {part['text'] if part['text'] is not None else '(not recorded)'}"
    )
