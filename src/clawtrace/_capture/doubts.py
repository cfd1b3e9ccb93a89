"""What only the capture knows of its trace: what may be missing from it, and what is remarkable about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clawtrace._capture.scopes import CaptureScope

__all__ = ["NOTHING_STARTED", "lacking", "notes"]

NOTHING_STARTED = (
    "No span started in this process while the capture was open. Is the agent instrumented, and with the global tracer "
    "provider? Others are given as `capture(tracer_provider=…)`."
)

_SHOWN = 5


def lacking(scope: CaptureScope | None, sampled: Sequence[str], failed: Sequence[str]) -> str | None:
    """Return which spans are or may be missing, in sentences; None when nothing is known to be.

    Args:
        scope: the spans of this process.
        sampled: samplers of tracer providers that drop spans, in their own words.
        failed: names of spans that could not be encoded.
    """
    said = [f"the tracer provider samples ({sampler}), so spans may be missing." for sampler in sampled]
    if failed:
        said.append(f"spans that OTLP cannot carry are missing: {_names(failed)}.")
    if scope is not None and scope.unclear:
        one = scope.unclear == 1
        said.append(
            f"{scope.unclear} span{'' if one else 's'} began without the context of a capture while several were open, "
            f"so which capture {'it belongs' if one else 'they belong'} to is unknown: start threads with "
            "`contextvars.copy_context().run`."
        )
    if scope is not None and scope.forked:
        said.append(
            "a forked child of this process started spans, which stay in that child: start it as a process with "
            "`trace.env()` or `trace.run()`, and let it export."
        )
    return " ".join(said) or None


def notes(scope: CaptureScope | None) -> list[str]:
    """Return what a reader of a failure should know about the spans of this process, one sentence each."""
    said = []
    if scope is not None and scope.strays:
        many = "s" if scope.strays > 1 else ""
        said.append(
            f"{scope.strays} trace{many} began without the context of this capture (in a thread that was started "
            "without it), and belong to it because no other capture was open."
        )
    if scope is not None and scope.is_open and (running := scope.running):
        said.append(f"this was checked while spans were running: {_names(span.name for span in running)}.")
    return said


def _names(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(f"`{name}`" for name in distinct[:_SHOWN]) + (" …" if len(distinct) > _SHOWN else "")
