"""The run's final answer as a value: what assertions about it have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from clawtrace.assertions.forms.value import Value
from clawtrace.model.query import Query

__all__ = ["NONE", "UNKNOWN", "final_answer", "shortened"]

NONE = "The agent's work ended in a failure, without a final answer."
UNKNOWN = "The final answer is unknown: the spans record none, or do not say which is the last."

_SHOWN = 300
"""Characters of the answer that a report shows."""

_EVIDENCE = Query("""
SELECT r.run_id AS run_id, max(m.span_id) AS span_id, max(d.reason) AS reason,
       'final answer: ' || coalesce(max(r.final_output), 'unknown') AS why, 1 AS rank
FROM runs AS r
JOIN selected_runs AS s ON s.run_id = r.run_id
LEFT JOIN messages AS m ON m.run_id = r.run_id AND m.text = r.final_output AND m.direction = 'output'
LEFT JOIN doubts AS d ON d.run_id = r.run_id AND d.relation = 'runs' AND d.column_name = 'final_output'
WHERE r.final_output IS NOT NULL OR d.run_id IS NOT NULL
GROUP BY r.run_id
""")
"""The answer, the span whose message it is where there is one, and why it may not be the last word."""


def final_answer(
    items: Callable[[str], Iterable[int]],
    *,
    first: str = "CASE WHEN r.answered = FALSE THEN FALSE END",
    columns: Mapping[str, str] | None = None,
) -> Value:
    """Return the question about the answer; the arguments are those of `Value`."""
    return Value("final_output", items, first=first, columns=columns or {}, asked="answered", shown=_EVIDENCE)


def shortened(text: str) -> str:
    """Return a text cut to a readable length."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
