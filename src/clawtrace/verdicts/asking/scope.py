"""Of which part of a run an assertion asks (`agent`, `turn`; spec: assertions.md §1)."""

from __future__ import annotations

from clawtrace.assertions.base import Assertion
from clawtrace.facts.scopes.scopes import Scope

__all__ = ["scope_of"]


def scope_of(assertion: Assertion) -> Scope | None:
    """Return the scope of an assertion; None for the whole run."""
    if assertion.agent is None and assertion.turn is None:
        return None
    return Scope(assertion.agent, assertion.turn)
