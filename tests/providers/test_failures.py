"""What pydantic-ai's exceptions say of a provider."""

from __future__ import annotations

from clawtrace.providers.asking import ProviderFailure, failure_of, pause_before


def test_kinds():
    """Exceptions that are not the provider's are none of its failures."""
    from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior  # a second, of this worker alone

    found = [
        failure_of(error)
        for error in (
            ModelHTTPError(500, "m"),
            UnexpectedModelBehavior("Exceeded maximum output retries (2)"),
            ValueError("a mistake of ours"),
        )
    ]

    assert [one and (one.kind, one.passes) for one in found] == [("outage", True), ("malformed", False), None]


def test_pauses_grow_and_the_providers_word_goes_first():
    """Each pause is at most twice the one before; a minute is the longest."""
    outage = ProviderFailure("outage", "", passes=True)

    assert 0.5 <= pause_before(2, outage) <= 1
    assert 2 <= pause_before(4, outage) <= 4
    assert pause_before(30, outage) <= 60
    assert pause_before(2, outage._replace(retry_after=7.0)) == 7
