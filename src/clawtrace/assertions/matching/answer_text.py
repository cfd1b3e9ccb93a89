"""Conditions on the text of an answer, each decided yes, no or unknown; pure functions.

A part that was redacted could have been anything: what is not met by the rest of such a text is unknown, and that a text
is absent from it is unknown too. Texts are compared in one form (`one_form`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from clawtrace.assertions.matching.json_schema import schema_problem
from clawtrace.assertions.matching.matchers import compile_regex, one_form
from clawtrace.assertions.matching.redacted import holds_mark, shortest

__all__ = [
    "Condition",
    "absent",
    "fits_schema",
    "is_equal",
    "is_long",
    "matches",
    "matches_not",
    "present",
    "rouge_l",
    "similar",
]

Condition = Callable[[str], bool | None]

_WORD = re.compile(r"\w+")


def _unless_redacted(met: bool, text: str) -> bool | None:
    """Return that the condition is met; that it is not is known only of a whole text."""
    return True if met else None if holds_mark(text) else False


def present(part: str) -> Condition:
    """Return the condition that the text contains `part`."""
    wanted = one_form(part)
    return lambda text: _unless_redacted(wanted in one_form(text), text)


def absent(part: str) -> Condition:
    """Return the condition that the text does not contain `part`."""
    unwanted = one_form(part)
    return lambda text: False if unwanted in one_form(text) else None if holds_mark(text) else True


def matches(pattern: str) -> Condition:
    """Return the condition that the regular expression is found somewhere in the text."""
    return lambda text: _unless_redacted(compile_regex(pattern)(one_form(text)), text)


def matches_not(pattern: str) -> Condition:
    """Return the condition that the regular expression is found nowhere in the text."""
    search = compile_regex(pattern)
    return lambda text: False if search(one_form(text)) else None if holds_mark(text) else True


def is_equal(whole: str) -> Condition:
    """Return the condition that the text is `whole`, white space around both left out."""
    return lambda text: _unless_redacted(one_form(text.strip()) == one_form(whole.strip()), text)


def is_long(most: int) -> Condition:
    """Return the condition that the text has at most `most` characters (Unicode code points)."""

    def decide(text: str) -> bool | None:
        if shortest(text) > most:
            return False
        return None if holds_mark(text) else True

    return decide


def similar(reference: str, threshold: float) -> Condition:
    """Return the condition that ROUGE-L F1 of the text against `reference` is at least `threshold`."""
    return lambda text: _unless_redacted(rouge_l(reference, text) >= threshold, text)


def rouge_l(reference: str, text: str) -> float:
    """Return ROUGE-L F1 (Lin 2004, as google-research's rouge-score computes it) of the text against the reference.

    Words are runs of letters, digits and underscores in any script, without regard to case; no stemming.
    """
    from rouge_score_rs.rouge_scorer import RougeScorer

    return float(RougeScorer(["rougeL"], tokenizer=_RougeWords()).score(reference, text)["rougeL"].fmeasure)


class _RougeWords:
    """Splits text into words for ROUGE-L; rouge-score's own tokenizer finds none outside of ASCII."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text, in lower case."""
        return _WORD.findall(text.casefold())


def fits_schema(schema: Mapping[str, Any]) -> Condition:
    """Return the condition that the whole text is one JSON document that the schema describes."""
    return lambda text: _unless_redacted(schema_problem(schema, text) == "", text)
