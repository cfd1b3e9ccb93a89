"""What pydantic-ai's exceptions say of a provider."""

from __future__ import annotations

import pytest
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior

from clawtrace.providers.asking import ProviderFailure, failure_of, pause_before


@pytest.mark.parametrize(
    ("error", "kind", "passes"),
    [
        (ModelHTTPError(500, "m"), "outage", True),
        (UnexpectedModelBehavior("Exceeded maximum output retries (2)"), "malformed", False),
        (ValueError("a mistake of ours"), None, None),
    ],
)
def test_kinds(error, kind, passes):
    """Exceptions that are not the provider's are none of its failures."""
    found = failure_of(error)

    assert (found and found.kind, found and found.passes) == (kind, passes)


def test_pauses_grow_and_the_providers_word_goes_first():
    """Each pause is at most twice the one before; a minute is the longest."""
    outage = ProviderFailure("outage", "", passes=True)

    assert 0.5 <= pause_before(2, outage) <= 1
    assert 2 <= pause_before(4, outage) <= 4
    assert pause_before(30, outage) <= 60
    assert pause_before(2, outage._replace(retry_after=7.0)) == 7
