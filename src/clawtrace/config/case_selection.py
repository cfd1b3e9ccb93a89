"""Which cases a suite, or an agent, is for (spec: config.md §1)."""

from __future__ import annotations

from pydantic import Field

from clawtrace.config.base import ConfigModel, Slug

__all__ = ["CaseSelection"]


class CaseSelection(ConfigModel):
    """Which cases belong to the suite."""

    include_case_ids: list[Slug] = Field(default_factory=list)
    """Always in, in this order; exclusions do not remove them."""
    exclude_case_ids: list[Slug] = Field(default_factory=list)
    """Out, unless listed above."""
    include_tags: list[str] = Field(default_factory=list)
    """Cases with at least one of these tags are in; without any inclusion, all cases are."""
    exclude_tags: list[str] = Field(default_factory=list)
    """Cases with one of these tags are out, unless their id is included."""
