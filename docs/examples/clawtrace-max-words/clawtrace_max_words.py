"""`max_words`: an assertion type of a third party, for clawtrace."""

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.value import Value


class MaxWords(Assertion):
    """The final answer has at most `limit` words.

    A support agent that writes an essay is not read. Words are what white space parts; where no answer was recorded the
    question stays open.

    Example:
        - type: max_words
          limit: 120
    """

    main_field = "limit"
    requires = ("runs.final_output",)

    limit: Annotated[int, Field(strict=True, ge=1)]
    """Most words, counted from 1."""

    def question(self) -> Value:
        """Decide in Python, once for each distinct answer; an answer that is unknown, or may yet change, is open."""
        return Value("final_output", self._items)

    def _items(self, answer: str) -> tuple[int, ...]:
        return (0,) if len(answer.split()) <= self.limit else ()

    def expectation(self) -> Any:
        """Return the limit."""
        return {"max_words": self.limit}

    def actual(self, outcome: Outcome) -> int | None:
        """Return the number of words; None when unknown."""
        answer = outcome.row["value"]
        return None if answer is None else len(answer.split())

    def explain(self, outcome: Outcome) -> str:
        """Say the number of words against the limit."""
        words = self.actual(outcome)
        if words is None:
            return f"The final answer is unknown, at most {self.limit} words asked for."
        return f"The final answer has {words} words, at most {self.limit} asked for."
