"""Ids, enumerations and how a bad id is reported."""

from __future__ import annotations

__all__ = ["NO_SPAN", "NO_TRACE", "SPAN_KINDS", "STATUS_CODES", "span_id_problem"]

NO_TRACE = "0" * 32
NO_SPAN = "0" * 16

SPAN_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUS_CODES = ("Unset", "Ok", "Error")


def span_id_problem(trace_id: str, span_id: str, parent_id: str) -> str:
    """Say what is wrong with a span's ids (lower-case hex); empty when nothing is.

    A parent of zeros is no parent; one of another length is refused, because the tree cannot be built from it.
    """
    for what, value, zero in (("trace id", trace_id, NO_TRACE), ("span id", span_id, NO_SPAN)):
        if not value:
            return f"the {what} is missing"
        if len(value) != len(zero):
            return f"the {what} has {len(value) // 2} bytes instead of {len(zero) // 2}"
        if value == zero:
            return f"the {what} is zero"
    if parent_id and len(parent_id) != 16:
        return f"the parent span id has {len(parent_id) // 2} bytes instead of 8"
    return ""
