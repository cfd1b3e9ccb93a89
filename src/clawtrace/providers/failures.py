"""What went wrong with a provider, in one word, and whether to try again (issue 19: outages, rate limits, wrong keys)."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

__all__ = ["ProviderFailure", "failure_of", "pause_before"]

Kind = Literal[
    "unavailable", "budget", "outage", "rate_limit", "quota", "wrong_key", "unknown_model", "rejected", "malformed",
]  # fmt: skip

_LONGEST_PAUSE = 60.0


class ProviderFailure(NamedTuple):
    """Why a model gave no answer that can be used."""

    kind: Kind
    """``unavailable``: a package or a key is missing here; ``budget``: nothing more may be spent; ``malformed``: it answered, and not in the form that was asked for."""
    message: str
    """The provider's own words."""
    passes: bool
    """Whether it may work a little later."""
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""


def failure_of(error: Exception) -> ProviderFailure | None:
    """Return what an exception of pydantic-ai says of a provider; None for any other."""
    from pydantic_ai import exceptions as of

    kinds: tuple[tuple[tuple[type[Exception], ...], Kind, bool], ...] = (
        ((of.ModelRateLimitError,), "rate_limit", True),
        ((of.ModelQuotaExceededError,), "quota", False),
        ((of.ModelAuthenticationError,), "wrong_key", False),
        ((of.ModelNotFoundError,), "unknown_model", False),
        ((of.ModelRequestRejectedError,), "rejected", False),
        ((of.ModelAPIError,), "outage", True),
        ((of.UnexpectedModelBehavior,), "malformed", False),
    )
    for types, kind, passes in kinds:
        if isinstance(error, types):
            return ProviderFailure(kind, " ".join(str(error).split()), passes, getattr(error, "retry_after", None))
    return None


def pause_before(attempt: int, failure: ProviderFailure, first: float = 1.0) -> float:
    """Return the seconds to wait before attempt number `attempt` (2 is the first that repeats): twice as long each time, with jitter.

    A provider that says how long to wait is given as long.
    """
    if failure.retry_after is not None:
        return min(failure.retry_after, _LONGEST_PAUSE)
    return min(first * 2.0 ** (attempt - 2), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
