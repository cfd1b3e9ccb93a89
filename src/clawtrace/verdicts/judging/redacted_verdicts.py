"""Secrets in assertions themselves, such as ``{{env.API_KEY}}``: no verdict repeats them (spec: config.md §4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clawtrace.assertions.base import Assertion
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.support.texts import cleaned

__all__ = ["without_secrets"]

_SAYING = ("message", "expected", "actual", "sql", "params", "decided_by", "definition", "hint", "description", "scope")
"""Fields of a verdict that may repeat what its assertion says."""


def without_secrets(
    results: Sequence[RunResult], assertions: Sequence[Assertion], clean: Callable[[str], str]
) -> list[RunResult]:
    """Return results of which no verdict says a secret of its assertion; mostly none has any, and they are as they were.

    What was received is redacted already, and what probes found: a secret can come only from the question.

    Args:
        results: one a run, their verdicts in the order of `assertions`.
        clean: takes known secrets out of a text.
    """
    places = {
        place
        for place, one in enumerate(assertions)
        if (fields := one.model_dump(mode="json", fallback=str)) != cleaned(fields, clean, keys=True)
    }
    if not places:
        return list(results)
    return [
        result._replace(
            verdicts=tuple(
                _clean_verdict(verdict, clean) if place in places else verdict
                for place, verdict in enumerate(result.verdicts)
            )
        )
        for result in results
    ]


def _clean_verdict(verdict: Verdict, clean: Callable[[str], str]) -> Verdict:
    evidence = tuple(one._replace(why=clean(one.why)) for one in verdict.evidence)
    return verdict._replace(
        evidence=evidence, **{name: cleaned(getattr(verdict, name), clean, keys=True) for name in _SAYING}
    )
