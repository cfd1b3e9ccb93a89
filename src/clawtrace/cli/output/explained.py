"""Print what filled the columns of a run's spans (`inspect --explain`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clawtrace.dialects.load import EVIDENCE
from clawtrace.facts.calls.rules import CALL_RULES
from clawtrace.report.console import ConsoleOutput

__all__ = ["print_calls", "print_evidence", "print_explained", "print_unknown_attributes"]

_LONG = 40
"""Characters of a value that are shown."""


def print_explained(spans: Sequence[Mapping[str, Any]], console: ConsoleOutput) -> None:
    """Print each span with its dialect, and for each column its value and the rule that filled it."""
    wide = max((len(entry["column"]) for span in spans for entry in span["columns"]), default=0)
    for span in spans:
        counted = f", counted as {span['counted_as']}" if span["counted_as"] != "none" else ""
        if span["counted_as"] == "duplicate" and span["counted_in"]:
            counted += f" of {span['counted_in']}"
        console.line(
            ("  ", ""),
            (span["name"], "bold"),
            (f"  {span['span_id']}", "dim"),
            (f"  {span['dialect']}, {span['rule']}{counted}", ""),
        )
        for entry in span["columns"]:
            value = _shown(entry["value"])
            if "counted" in entry:
                value += f" ({_shown(entry['counted'])} counted)"
            console.line((f"    {entry['column']:<{wide}}", "cyan"), (f" {value}", ""))
            lead = " " * (wide + 5)
            console.paragraph(f"from {entry['rule']} [{entry['dialect']}]", first=lead, indent=lead, style="dim")


def print_calls(spans: Sequence[Mapping[str, Any]], console: ConsoleOutput) -> None:
    """Print which spans are one call, which are not counted, and by which rules; nothing where each call has one span."""
    calls: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for span in spans:
        if span["counted_in"] is not None:
            calls[span["counted_in"]].append(span)
    named: list[str] = []
    for members in calls.values():
        rules = list(dict.fromkeys(span["counted_by"] for span in members if span["counted_by"] is not None))
        if not rules:
            continue
        which = ", ".join(f"`{span['name']}` {span['span_id']}" for span in members)
        are = f"these {len(members)} spans are one call" if len(members) > 1 else "this span is a separate call"
        console.paragraph(f"{are}: {_rules(rules)} ({which})", first="  ", indent="    ")
        named += rules
    alone: dict[str, list[str]] = defaultdict(list)
    for span in spans:
        if span["counted_in"] is None and span["counted_by"] is not None:
            alone[span["counted_by"]].append(f"`{span['name']}` {span['span_id']}")
    for rule, uncounted in alone.items():
        console.paragraph(f"not counted: {_rules([rule])} ({', '.join(uncounted)})", first="  ", indent="    ")
        named.append(rule)
    for rule in dict.fromkeys(named):
        console.paragraph(f"{rule}: {CALL_RULES[rule].meaning}", first="  rule ", indent="    ", style="dim")


def print_evidence(spans: Sequence[Mapping[str, Any]], console: ConsoleOutput) -> None:
    """Print the instrumentations whose spans no recording of their version verifies; nothing where all are verified."""
    alike: dict[tuple[Any, ...], int] = defaultdict(int)
    for span in spans:
        if span["rule"] not in (None, "verified"):
            alike[span["rule"], span["scope"], span["scope_version"], span["dialect"]] += 1
    for (rule, scope, version, dialect), n in alike.items():
        named = f"`{scope}`" if scope else "no instrumentation scope"
        which = f"{n} span{'s' if n > 1 else ''} of {named} {version or 'without a version'}"
        console.paragraph(f"{which} (dialect `{dialect}`): {rule}", first="  ", indent="    ", style="yellow")
    for rule in dict.fromkeys(key[0] for key in alike):
        console.paragraph(f"{rule}: {EVIDENCE[rule]}", first="  evidence ", indent="    ", style="dim")


def print_unknown_attributes(spans: Sequence[Mapping[str, Any]], console: ConsoleOutput) -> None:
    """Print, by instrumentation, the attributes of which neither its dialect nor any recording knows; nothing for none."""
    alike: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for span in spans:
        alike[span["scope"], span["scope_version"], span["dialect"]] += span["unknown_attributes"]
    for (scope, version, dialect), attributes in alike.items():
        if attributes:
            whose = f"`{scope}` {version or ''}".rstrip() if scope else "spans without an instrumentation scope"
            named = ", ".join(sorted(set(attributes)))
            text = f"attributes of {whose} that the dialect `{dialect}` does not know: {named}"
            console.paragraph(text, first="  ", indent="    ", style="yellow")


def _rules(ids: Iterable[str]) -> str:
    listed = ", ".join(f"`{one}`" for one in ids)
    return f"rule{'s' if ',' in listed else ''} {listed}"


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
