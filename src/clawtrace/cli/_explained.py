"""Print what filled the columns of a run's spans (`inspect --explain`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawtrace.report.console import Paper

__all__ = ["print_explained"]

_LONG = 40
"""Characters of a value that are shown."""


def print_explained(spans: Sequence[Mapping[str, Any]], paper: Paper) -> None:
    """Print each span with its dialect, and for each column its value and the rule that filled it."""
    wide = max((len(entry["column"]) for span in spans for entry in span["columns"]), default=0)
    for span in spans:
        counted = f", counted as {span['counted_as']}" if span["counted_as"] != "none" else ""
        if span["counted_as"] == "duplicate" and span["counted_in"]:
            counted += f" of {span['counted_in']}"
        paper.line(
            ("  ", ""), (span["name"], "bold"), (f"  {span['span_id']}", "dim"), (f"  {span['dialect']}{counted}", "")
        )
        for entry in span["columns"]:
            value = _shown(entry["value"])
            if "counted" in entry:
                value += f" ({_shown(entry['counted'])} counted)"
            paper.line((f"    {entry['column']:<{wide}}", "cyan"), (f" {value}", ""))
            lead = " " * (wide + 5)
            paper.paragraph(f"from {entry['rule']} [{entry['dialect']}]", first=lead, indent=lead, style="dim")


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
