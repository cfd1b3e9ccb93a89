"""Attempts at requests: whose failure it is, and how long to wait."""

from __future__ import annotations

import pytest
from pydantic_ai import exceptions

from clawtrace.runners.probing.loop import ProbeLoop, is_providers


@pytest.mark.parametrize(
    ("error", "providers"),
    [
        (exceptions.ModelHTTPError(503, "m"), True),
        (exceptions.ModelHTTPError(401, "m"), True),
        (exceptions.ModelHTTPError(404, "m"), True),
        (exceptions.ModelAPIError("m", "cannot be decoded"), True),
        (exceptions.UnexpectedModelBehavior("Invalid response"), True),
        (TypeError("'NoneType' object is not iterable"), True),
        (exceptions.ModelContextWindowExceededError("m", "too long"), False),
        (exceptions.ContentFilterError("filtered"), False),
        (exceptions.OutputTokenLimitExceeded("cut"), False),
        (exceptions.UserError("wrong setting"), False),
    ],
    ids=lambda one: type(one).__name__,
)
def test_it_is_known_whose_failure_it_is(error, providers):
    """Outages, keys and unreadable answers are the provider's; too much text, filters and settings are not."""
    assert is_providers(error) is providers


def test_waits_double_and_are_spread():
    """Each wait is at most twice the one before, at least half of that, and never over a minute."""
    loop = ProbeLoop(retries=9, wait_seconds=1.0, max_turns=1)
    for attempt, longest in enumerate((1, 2, 4, 8, 16, 32, 60, 60), start=1):
        waits = {loop.wait(attempt, None) for _ in range(50)}
        assert longest / 2 <= min(waits) <= max(waits) <= longest
        assert len(waits) > 10


def test_the_providers_wait_is_kept():
    """What the provider asks for is waited, and little more."""
    loop = ProbeLoop(retries=1, wait_seconds=30.0, max_turns=1)

    assert loop.wait(1, 0) == 0
    assert all(4 <= loop.wait(1, 4) <= 4.4 for _ in range(20))
    assert loop.wait(1, 3600) <= 66
