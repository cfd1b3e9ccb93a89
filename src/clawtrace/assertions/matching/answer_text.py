"""The similarity of two texts; pure functions."""

from __future__ import annotations

import re

__all__ = ["rouge_l"]

_WORD = re.compile(r"\w+")


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
