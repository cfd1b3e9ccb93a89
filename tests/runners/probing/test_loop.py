"""Attempts at requests: whose failure it is."""

from __future__ import annotations

import pytest
from pydantic_ai import exceptions

from clawtrace.runners.probing.agent import is_providers


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
