"""`max_words`: an assertion type of a third party, for clawtrace."""

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.model.query import Query, Resolve


class MaxWords(Assertion):
    """The final answer has at most `limit` words.

    A support agent that writes an essay is not read. Words are what white space parts; where no answer was recorded the
    question stays open.

    Example:
        - type: max_words
          limit: 120
    """

    growth = "exact"
    main_field = "limit"
    requires = ("runs.final_output",)

    limit: Annotated[int, Field(strict=True, ge=1)]
    """Most words, counted from 1."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Count words in Python, once for each distinct answer; SQL sees only which answers are short."""
        return (Resolve("short_answers", "runs", "final_output", self._items),)

    def _items(self, answer: str) -> tuple[int, ...]:
        return (0,) if len(answer.split()) <= self.limit else ()

    def query(self) -> Query:
        """One row for each selected run that has a trace; NULL is unknown, never false."""
        return Query("""
SELECT t.run_id AS run_id, r.final_output AS answer, FALSE AS final,
       CASE WHEN r.final_output IS NULL THEN NULL
            WHEN r.final_output IN (SELECT a.value FROM short_answers AS a) THEN TRUE
            ELSE FALSE END AS holds,
       CASE WHEN r.final_output IS NULL THEN 'runs.final_output' ELSE NULL END AS missing
FROM run_totals AS t
JOIN selected_runs AS s ON s.run_id = t.run_id
LEFT JOIN runs AS r ON r.run_id = t.run_id
""")

    def expectation(self) -> Any:
        """Return the limit."""
        return {"max_words": self.limit}

    def actual(self, outcome: Outcome) -> Any:
        """Return the number of words; None when unknown."""
        answer = outcome.row["answer"]
        return None if answer is None else len(answer.split())

    def explain(self, outcome: Outcome) -> str:
        """Say the number of words against the limit."""
        words = self.actual(outcome)
        if words is None:
            return f"The final answer is unknown, at most {self.limit} words asked for."
        return f"The final answer has {words} words, at most {self.limit} asked for."
