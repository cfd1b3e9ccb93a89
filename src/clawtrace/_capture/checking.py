"""What a check takes, and what it says where it does not pass: the words of the report, with the span tree, and what only the capture knows of its trace."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import parse_assertion
from clawtrace.errors import ExitCode, UsageError
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.verdicts.gating.gate import Gate

if TYPE_CHECKING:
    from clawtrace._capture.scopes import CaptureScope
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = [
    "NOTHING_ENDED",
    "Allowed",
    "Asked",
    "CheckFailedError",
    "CheckWarning",
    "as_assertion",
    "as_gate",
    "failure_text",
    "is_warning",
    "lacking",
    "notes",
    "tree_text",
]

Allowed = Literal["missing_trace", "missing_data", "inconclusive"]
"""What a check may let pass: a skip, a warning for missing data, an inconclusive verdict."""

Asked = Assertion | Mapping[str, Any]
"""An assertion, or one in the long notation of case files."""


def as_assertion(asked: Any) -> Assertion:
    """Return what was asked as an assertion.

    Raises:
        InvalidAssertionError: it is invalid.
        UsageError: it is neither an assertion nor a mapping.
    """
    __tracebackhide__ = True
    if isinstance(asked, Assertion):
        return asked
    if isinstance(asked, Mapping):
        return parse_assertion(asked)
    called = f"; call it: `{asked.__name__}(…)`" if callable(asked) and hasattr(asked, "__name__") else ""
    called = "; a type's name is asked alone, or in a mapping" if isinstance(asked, str) else called
    raise UsageError(f"a check takes an assertion, a mapping or a type's name, found {asked!r}{called}")


def as_gate(allow: Iterable[Allowed]) -> Gate:
    """Return what decides whether a verdict fails the test: as strict as the command line, but for what is allowed.

    Raises:
        UsageError: `allow` holds another word.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    unknown = sorted(allowed - {"missing_trace", "missing_data", "inconclusive"})
    if unknown:
        raise UsageError(f"`allow` takes missing_trace, missing_data and inconclusive, found {', '.join(unknown)!r}")
    return Gate(
        allow_missing_trace="missing_trace" in allowed,
        allow_missing_data="missing_data" in allowed,
        gate_incomplete="warn" if "inconclusive" in allowed else "error",
    )


def is_warning(verdict: Verdict) -> bool:
    """Whether a verdict that the gate let through is worth a warning."""
    return verdict.status is Status.WARN or (verdict.status is not Status.PASS and verdict.severity == "warn")


NOTHING_ENDED = (
    "No span ended in this process while the capture was open. Is the agent instrumented, and with the global tracer "
    "provider? Others are given as `capture(tracer_provider=…)`. A child process exports here if `run()` starts it, or "
    "with the environment of `env()`."
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


class CheckFailedError(AssertionError):
    """Something that was asked of a trace is not known to be true; the message is a whole report with the tree."""

    def __init__(self, message: str, verdicts: Sequence[Verdict] = ()) -> None:
        super().__init__(message)
        self.verdicts = tuple(verdicts)
        """Those that did not pass, in the order of the question."""


class CheckWarning(UserWarning):
    """A verdict that did not pass and does not fail the test: its severity is `warn`, or it is a warning itself."""


for _public in (CheckFailedError, CheckWarning):
    _public.__module__ = "clawtrace"  # where people import it from is what tracebacks name


def failure_text(result: RunResult, failed: Sequence[Verdict], nodes: Sequence[SpanNode]) -> str:
    """Return the text about the verdicts `failed` of a run: sentence, evidence, hints, and the tree with its marks."""
    from clawtrace.report.base import CampaignReport
    from clawtrace.report.console import PlainConsole
    from clawtrace.report.terminal import print_verdicts

    stream = io.StringIO()
    shown = result._replace(verdicts=tuple(failed))
    report = CampaignReport(None, datetime.now(UTC), [shown], ExitCode.FAILED, trees={result.run_id: nodes})
    print_verdicts(report, PlainConsole(stream))
    text = stream.getvalue().strip("\n")
    drawn = {node.span_id for node in nodes} & {item.span_id for verdict in failed for item in verdict.evidence}
    return text if drawn or not nodes else f"{text}\n\n{tree_text(nodes)}"


def tree_text(nodes: Sequence[SpanNode]) -> str:
    """Return the spans of a run as a tree, as plain text."""
    from clawtrace.report.console import PlainConsole
    from clawtrace.report.tree import tree_lines

    stream = io.StringIO()
    console = PlainConsole(stream)
    for line in tree_lines(nodes):
        console.line(*line)
    return stream.getvalue().rstrip("\n")
