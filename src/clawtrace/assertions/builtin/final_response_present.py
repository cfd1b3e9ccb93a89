"""`final_response_present`: the agent answered."""

from __future__ import annotations

import json
from typing import Any

from clawtrace.assertions._final_answer import NONE, UNKNOWN, final_answer, shortened
from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.value import Value

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

    requires = ("runs.final_output",)
    asks_answer = True
    unscoped = "it checks how the whole run ended; `final_response` can ask about an agent or a turn."

    def question(self) -> Value:
        """Check how the run ended, then its answer."""
        return final_answer(
            lambda text: (0,) if _says_something(text) else (),
            first="CASE WHEN r.run_status <> 'success' OR r.answered = FALSE THEN FALSE ELSE NULL END",
            columns={"run_status": "r.run_status"},
        )

    def expectation(self) -> Any:
        """Return that there is one."""
        return "a final answer that is not empty"

    def actual(self, outcome: Outcome) -> Any:
        """Return the answer, cut to a readable length, and how the run ended."""
        answer = outcome.row["value"]
        return {"answer": answer and shortened(answer), "run_status": outcome.row["run_status"]}

    def explain(self, outcome: Outcome) -> str:
        """Return whether there is an answer, or why there is none."""
        answer, status = outcome.row["value"], outcome.row["run_status"]
        if status not in (None, "success"):
            return f"The run ended as `{status}`, so what it answered is not final."
        if answer is None:
            return UNKNOWN if outcome.holds is None else NONE
        so_far = " so far" if outcome.holds is None else ""
        if _says_something(answer):
            return f"There is a final answer of {len(answer)} characters{so_far}."
        return f"The final answer{so_far} is empty: {answer[:100]!r}."


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
