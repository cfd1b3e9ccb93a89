"""`final_response`: what the agent answered."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from clawtrace.assertions._final_answer import NONE, UNKNOWN, final_answer, shortened
from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Natural, need_one_of
from clawtrace.assertions.forms.value import Value
from clawtrace.assertions.matching.answer_text import rouge_l
from clawtrace.assertions.matching.json_schema import check_schema, schema_problem
from clawtrace.assertions.matching.matchers import RegexText, checked_by, compile_regex, is_found_in_every, one_form
from clawtrace.assertions.matching.redacted import holds_mark, shortest
from clawtrace.assertions.refused import refused
from clawtrace.support.figures import beside

__all__ = ["FinalResponse"]

Text = Annotated[str, Field(min_length=1)]


class FinalResponse(Assertion):
    """The run's final answer is as asked, in every respect that is given.

    The answer comes from the spans' messages, else from what the runner read from the agent's output; of several turns it
    is the last one's. A run without any span is judged by what its runner read, once it is over. An agent whose
    work ended in a failure gave no answer, which meets no condition; where an answer is only not recorded, nothing is known. A secret that was redacted on arrival could have
    been any text: what is then neither sure nor impossible stays open, also that a text is absent.

    Example:
        - type: final_response
          contains: [refund, "42"]
          not_contains: [I cannot]
          max_length: 500
    """

    main_field = "contains"
    requires = ("runs.final_output",)
    asks_answer = True

    contains: Text | Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Text, or texts of which each one, that the answer contains, case-sensitively."""
    not_contains: Text | Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Text, or texts of which none, that the answer contains, case-sensitively."""
    matches: RegexText | None = None
    """Regular expression that is found somewhere in the answer."""
    not_matches: RegexText | None = None
    """Regular expression that is found nowhere in the answer."""
    equals: str | None = None
    """The whole answer, white space around it left out."""
    json_schema: Annotated[dict[str, Any], checked_by(check_schema)] | None = None
    """JSON Schema; the whole answer is one JSON document that it describes. Patterns without look-around."""
    similar_to: Text | None = None
    """Text to which the answer is similar: ROUGE-L F1 over words, without regard to case."""
    threshold: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.7
    """Least ROUGE-L F1 for `similar_to`, above 0 up to 1."""
    max_length: Natural | None = None
    """Most characters."""

    @model_validator(mode="after")
    def _check(self) -> FinalResponse:
        need_one_of(
            self, "contains", "not_contains", "matches", "not_matches", "equals", "json_schema", "similar_to", "max_length"
        )  # fmt: skip
        if "threshold" in self.model_fields_set and self.similar_to is None:
            raise refused("`threshold` belongs to `similar_to`, which is not given", "threshold")
        if self.matches is not None and is_found_in_every(self.matches, "", "a"):
            raise refused(f"{self.matches!r} matches every answer: nothing is checked", "matches")  # fmt: skip
        return self

    def decided(self, answer: str) -> dict[str, bool | None]:
        """Return what is asked of an answer, in words, and whether it is so.

        A part that was redacted could have been anything: what the rest of such a text does not show is unknown, and that
        it is absent is unknown too. Texts are compared in one form (`one_form`).
        """
        text = one_form(answer)
        asked = [(f"contain {part!r}", True, one_form(part) in text) for part in _texts(self.contains)]
        asked += [(f"avoid {part!r}", False, one_form(part) in text) for part in _texts(self.not_contains)]
        if self.matches is not None:
            asked.append((f"match {self.matches!r}", True, compile_regex(self.matches)(text)))
        if self.not_matches is not None:
            asked.append((f"avoid what {self.not_matches!r} finds", False, compile_regex(self.not_matches)(text)))
        if self.equals is not None:
            same = one_form(answer.strip()) == one_form(self.equals.strip())
            asked.append((f"equal {shortened(self.equals)!r}", True, same))
        if self.json_schema is not None:
            asked.append(("match the JSON schema", True, schema_problem(self.json_schema, answer) == ""))
        if self.similar_to is not None:
            close = rouge_l(self.similar_to, answer) >= self.threshold
            asked.append((f"resemble the given text (ROUGE-L at least {self.threshold:g})", True, close))
        if self.max_length is not None:
            asked.append((f"have at most {self.max_length} characters", False, shortest(answer) > self.max_length))
        hidden = holds_mark(answer)
        return {words: None if hidden and not found else found is wanted for words, wanted, found in asked}

    def _items(self, answer: str) -> tuple[int, ...]:
        decided = self.decided(answer).values()
        return () if False in decided else (1,) if None in decided else (0,)

    def question(self) -> Value:
        """Decide the answer."""
        return final_answer(self._items)

    def expectation(self) -> Any:
        """Return what is asked of the answer."""
        asked = super().expectation()
        if self.similar_to is None:
            del asked["threshold"]
        return asked

    def actual(self, outcome: Outcome) -> Any:
        """Return the answer, cut to a readable length, its length, and its similarity where that is asked."""
        answer = outcome.row["value"]
        if answer is None:
            return None
        score = {} if self.similar_to is None else {"rouge_l": float(self._likeness(answer))}
        return {"answer": shortened(answer), "length": len(answer), **score}

    def explain(self, outcome: Outcome) -> str:
        """Return which of the conditions the answer does not meet."""
        answer = outcome.row["value"]
        if answer is None:
            return UNKNOWN if outcome.holds is None else NONE
        decided = self.decided(answer)
        so_far = "The final answer so far" if outcome.holds is None else "The final answer"
        unmet = [words for words, met in decided.items() if met is False]
        if unmet:
            said = " and ".join(
                f"contains {words[6:]}, which it must not" if words.startswith("avoid ") else f"does not {words}"
                for words in unmet
            )
            return f"{so_far} {said}{self._because(answer, unmet)}."
        unknown = ", ".join(words for words, met in decided.items() if met is None)
        if unknown:
            return f"Parts of the final answer were redacted, so it is unknown whether it does: {unknown}."
        return f"{so_far} meets every condition: {', '.join(decided)}."

    def _likeness(self, answer: str) -> str:
        """Return ROUGE-L of the answer against `similar_to`, in digits."""
        return beside(rouge_l(self.similar_to or "", answer), self.threshold, written=".4g")

    def _because(self, answer: str, unmet: list[str]) -> str:
        """Add details where the condition alone does not show what is wrong."""
        notes = []
        if self.json_schema is not None and "match the JSON schema" in unmet:
            notes.append(schema_problem(self.json_schema, answer))
        if self.similar_to is not None and any(words.startswith("resemble") for words in unmet):
            notes.append(f"ROUGE-L is {self._likeness(answer)}")
        if self.max_length is not None and any(words.startswith("have at most") for words in unmet):
            notes.append(f"it has {'about ' if holds_mark(answer) else ''}{len(answer)} characters")
        return f" ({'; '.join(notes)})" if notes else ""


def _texts(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else given
