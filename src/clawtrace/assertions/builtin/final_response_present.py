"""`final_response_present`: the agent answered."""

from __future__ import annotations

import json
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.model.query import Query, Resolve

__all__ = ["FinalResponsePresent"]

_ENVELOPE = ("payloads", "result", "reply", "output", "text", "content", "message")
"""Keys under which agents put their answer when they print JSON; an envelope with nothing in it is no answer."""


class FinalResponsePresent(Assertion):
    """The run ended well, with a final answer that is not empty.

    An agent that ends without a word has not finished. The answer comes from the spans' messages, else from the runner's
    reading of the agent's standard output; standard error is no answer, and neither is JSON without content, such as an
    empty list of payloads. A run without any span is judged by what its runner read, once it is over. A run that
    failed, timed out or lost its provider gave no answer, regardless of what it printed.

    Example:
        - type: final_response_present
    """

    growth = "exact"
    requires = ("runs.final_output",)
    asks_answer = True
    unscoped = "it checks how the whole run ended; `final_response` can ask about an agent or a turn."

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct output whether there is an answer in it."""
        return (Resolve("answers", "runs", "final_output", lambda text: (0,) if _says_something(text) else ()),)

    def query(self) -> Query:
        """Look at how the run ended and at what it said."""
        return Query("""
SELECT s.run_id AS run_id, r.final_output AS answer, r.run_status AS run_status,
       CASE WHEN r.run_status IS NOT NULL AND r.run_status <> 'success' THEN TRUE ELSE FALSE END AS final,
       CASE WHEN r.run_status IS NOT NULL AND r.run_status <> 'success' THEN FALSE
            WHEN r.final_output IS NULL THEN NULL
            WHEN r.final_output IN (SELECT m.value FROM answers AS m) THEN TRUE
            ELSE FALSE END AS holds,
       CASE WHEN r.final_output IS NULL AND (r.run_status IS NULL OR r.run_status = 'success')
            THEN 'runs.final_output' ELSE NULL END AS missing
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN run_totals AS t ON t.run_id = s.run_id
WHERE t.run_id IS NOT NULL OR r.final_output IS NOT NULL
""")

    def expectation(self) -> Any:
        """Return that there is one."""
        return "a final answer that is not empty"

    def actual(self, outcome: Outcome) -> Any:
        """Return the answer, cut to a readable length, and how the run ended."""
        answer = outcome.row["answer"]
        return {"answer": answer if answer is None else answer[:300], "run_status": outcome.row["run_status"]}

    def explain(self, outcome: Outcome) -> str:
        """Say whether there is an answer, or why there is none."""
        answer, status = outcome.row["answer"], outcome.row["run_status"]
        if status not in (None, "success"):
            return f"The run ended as `{status}`, so there is no final answer."
        if answer is None:
            return "The final answer is unknown: no message and no output of the agent was recorded as one."
        if outcome.holds:
            return f"There is a final answer of {len(answer)} characters."
        return f"The final answer is empty: {answer[:100]!r}."


def _says_something(text: str) -> bool:
    """Return whether there is content in an output: not only white space, nor JSON that holds none."""
    stripped = text.strip()
    if not stripped:
        return False
    if stripped[0] in "[{":
        try:
            return _has_content(json.loads(stripped))
        except (ValueError, RecursionError):
            return True
    return stripped not in ("null", '""')


def _has_content(value: Any) -> bool:
    if isinstance(value, dict):
        named = [value[key] for key in _ENVELOPE if key in value]
        return any(map(_has_content, named or value.values()))
    if isinstance(value, list):
        return any(map(_has_content, value))
    return bool(value.strip()) if isinstance(value, str) else value is not None
