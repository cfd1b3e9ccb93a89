"""What telemetry itself says about the run it belongs to (spec: span-model.md §2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["RUN_ID", "Claim", "ClaimReader"]

RUN_ID = "clawtrace.run_id"
"""Resource and span attribute that names the run (rules 1 and 2)."""

_CACHE_LIMIT = 10_000


class Claim(NamedTuple):
    """What one span or log record says about its run; empty text says nothing."""

    resource: str = ""
    """Rule 1."""
    span: str = ""
    """Rule 2."""
    sessions: tuple[str, ...] = ()
    """Rule 7."""
    key: str = ""
    """Rule 8: the value of the attribute that `run_key` names."""
    links: tuple[str, ...] = ()
    """Rule 6: trace ids that the span links to."""


class ClaimReader:
    """Reads claims from attributes; equal claims are one object.

    Args:
        run_key: attribute that names the run in foreign data (rule 8).
        session_keys: attributes that hold a session or conversation id (rule 7).
    """

    def __init__(self, run_key: str | None = None, session_keys: Sequence[str] = ()) -> None:
        self._run_key = run_key
        self._session_keys = session_keys
        self.keys = frozenset({RUN_ID, *session_keys, *([run_key] if run_key else [])})
        """Attributes that matter here; others need not be shown."""
        self._known: dict[Claim, Claim] = {}

    def of_resource(self, attributes: Mapping[str, str]) -> Claim:
        """Return what a resource says for everything below it."""
        return self._one(Claim(attributes.get(RUN_ID, ""), "", self._sessions(attributes), self._key(attributes)))

    def of_item(self, base: Claim, attributes: Mapping[str, str], links: tuple[str, ...] = ()) -> Claim:
        """Return what a span or log record says, in addition to what its resource says (`base`)."""
        sessions = tuple(dict.fromkeys((*base.sessions, *self._sessions(attributes))))
        key = self._key(attributes) or base.key
        return self._one(Claim(base.resource, attributes.get(RUN_ID, ""), sessions, key, links))

    def _key(self, attributes: Mapping[str, str]) -> str:
        return attributes.get(self._run_key, "") if self._run_key else ""

    def _sessions(self, attributes: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(attributes[key] for key in self._session_keys if attributes.get(key)))

    def _one(self, claim: Claim) -> Claim:
        if len(self._known) > _CACHE_LIMIT:
            self._known.clear()
        return self._known.setdefault(claim, claim)
