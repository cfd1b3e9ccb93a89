"""Attempts at requests: whose failure it is."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("error", "arguments", "providers"),
    [
        ("ModelHTTPError", (503, "m"), True),
        ("ModelHTTPError", (401, "m"), True),
        ("ModelHTTPError", (404, "m"), True),
        ("ModelAPIError", ("m", "cannot be decoded"), True),
        ("UnexpectedModelBehavior", ("Invalid response",), True),
        ("TypeError", ("'NoneType' object is not iterable",), True),
        ("ModelContextWindowExceededError", ("m", "too long"), False),
        ("ContentFilterError", ("filtered",), False),
        ("OutputTokenLimitExceeded", ("cut",), False),
        ("UserError", ("wrong setting",), False),
    ],
)
def test_it_is_known_whose_failure_it_is(error, arguments, providers):
    """Outages, keys and unreadable answers are the provider's; too much text, filters and settings are not."""
    from pydantic_ai import exceptions  # half a second, which only the worker that runs these tests spends

    from clawtrace.runners.probing.agent import is_providers

    made = TypeError if error == "TypeError" else getattr(exceptions, error)
    assert is_providers(made(*arguments)) is providers
