"""clawtrace: the OpenTelemetry-native evaluator for AI agents.

Importing the package loads nothing heavy: every room is imported where it is used,
so that ``clawtrace --help`` stays as fast as the command-line library itself.
The public names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawtrace._capture.checking import CheckFailedError, CheckWarning
    from clawtrace._capture.recorded import recorded
    from clawtrace._capture.trace import Trace, capture
    from clawtrace.model.verdict import Evidence, Status, Verdict

__all__ = [
    "CheckFailedError",
    "CheckWarning",
    "Evidence",
    "Status",
    "Trace",
    "Verdict",
    "__version__",
    "capture",
    "recorded",
]

__version__ = "0.1.0"

_LAZY = {
    "CheckFailedError": "_capture.checking",
    "CheckWarning": "_capture.checking",
    "Evidence": "model.verdict",
    "Status": "model.verdict",
    "Trace": "_capture.trace",
    "Verdict": "model.verdict",
    "capture": "_capture.trace",
    "recorded": "_capture.recorded",
}
"""Public names, and the module that defines each."""


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"clawtrace.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]
