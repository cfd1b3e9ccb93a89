"""Attributes in which instrumentations record a session or conversation id, by which a span is attributed to a run.

A separate module, which needs no dialect loaded: the receiver gets them before any span arrives.
"""

from __future__ import annotations

__all__ = ["SESSION_KEYS"]

SESSION_KEYS = (
    "gen_ai.conversation.id",  # OpenTelemetry GenAI
    "session.id",  # OpenTelemetry, OpenInference
    "conversation.id",  # Codex
    "langfuse.session.id",
    "traceloop.association.properties.session_id",  # OpenLLMetry
)
"""Rule 7 of attribution (spec: span-model.md §2)."""
