"""What `inspect` prints: what the spans of a run leave open (`clawtrace.inspect/1`: `doubts`, `gaps`), what models asked for in vain, what filled the columns of spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clawtrace.dialects.load import EVIDENCE
from clawtrace.facts.calls.rules import CALL_RULES
from clawtrace.model.reasons import REASONS
from clawtrace.report.console import ConsoleOutput
from clawtrace.support.figures import amount, listed

__all__ = [
    "marks_of",
    "print_calls",
    "print_evidence",
    "print_explained",
    "print_open",
    "print_reasons",
    "print_requests",
    "print_unknown_attributes",
]

_NOUNS = {
    "llm_calls": "model call", "tool_calls": "tool call", "commands": "command", "agents": "agent", "errors": "failure",
    "spans": "span", "messages": "message", "runs": "run", "background_tool_calls": "background tool call",
    "background_commands": "background command",
}  # fmt: skip
_REQUESTS = {
    "not-offered": "the model did not have it",
    "not-run": "no span records an execution, and there is one for each",
    "handed-over": "a handoff to another agent",
}
_NAMED = 8
"""Rows that a line names."""

_NUMBERS = {"agents": "activation_no", "errors": "error_no"}


def marks_of(run: Mapping[str, Any]) -> dict[str, str]:
    """Return why a row is in doubt, by the id of the span that records it."""
    found = {}
    for doubt in run["doubts"]:
        if doubt["column_name"] is None:
            row = _row(run, doubt)
            span_id = (row and row["span_id"]) or doubt["span_id"]
            if span_id is not None:
                found[span_id] = f"{_noun(doubt['relation'])} in doubt: {doubt['because']}"
    return found


def print_open(run: Mapping[str, Any], console: ConsoleOutput) -> None:
    """Print the rows that are in doubt and the rows that may be missing, a line for each reason; incompleteness left out."""
    rows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for doubt in run["doubts"]:
        if doubt["column_name"] is None and not REASONS[doubt["reason"]].unfinished:
            row = _row(run, doubt) or {}
            name = row.get("name") or row.get("response_model")
            rows[doubt["because"], doubt["relation"]].append(f"`{name}`" if name else "name unknown")
    for (because, relation), names in rows.items():
        text = f"{amount(len(names), _noun(relation))} ({listed(list(dict.fromkeys(names)), _NAMED)}): {because}"
        console.paragraph(text, first="  in doubt: ", indent="    ", style="yellow")
    gaps: dict[str, dict[str, None]] = defaultdict(dict)
    for gap in run["gaps"]:
        # Of most SDKs it is unknown whether they ask again: who counts failed requests is told by the total.
        if not REASONS[gap["reason"]].unfinished and gap["reason"] != "attempts-not-recorded":
            gaps[gap["because"]][_missing(gap)] = None
    for because, missing in gaps.items():
        console.paragraph(f"{', '.join(missing)}: {because}", first="  may be missing: ", indent="    ", style="yellow")


def print_requests(requests: Iterable[Mapping[str, Any]], console: ConsoleOutput) -> None:
    """Print the tools that a model asked for and that were not run, each with how often and why."""
    asked = Counter((one["reason"], one["name"] or "a tool without a name") for one in requests)
    by_reason: dict[str, list[str]] = defaultdict(list)
    for (reason, name), number in asked.items():
        by_reason[reason].append(name if number == 1 else f"{name} ({number} times)")
    for reason, names in by_reason.items():
        text = f"{', '.join(names)}: {_REQUESTS[reason]}"
        console.paragraph(text, first="  asked for, not run: ", indent="    ")


def print_reasons(run: Mapping[str, Any], console: ConsoleOutput) -> None:
    """Print every doubt and gap, those of one reason together, then what the reasons mean and what would settle them."""
    alike: Counter[tuple[str, str | None, str]] = Counter()
    every = set()
    for doubt in run["doubts"]:
        key = (doubt["relation"], doubt["column_name"], doubt["reason"])
        alike[key] += 1
        if doubt["row_no"] is None:
            every.add(key)
    for (relation, column, reason), number in alike.items():
        rows = "" if (relation, column, reason) in every else f" of {number}"
        what = "not certain" if column is None else f"{column} unknown"
        console.paragraph(f"{relation}: {what}{rows}: reason `{reason}`", first="  ", indent="    ", style="yellow")
    for gap, number in Counter((_missing(one), one["reason"]) for one in run["gaps"]).items():
        times = f" ({number} times)" if number > 1 else ""
        console.paragraph(
            f"{gap[0]} may be missing{times}: reason `{gap[1]}`", first="  ", indent="    ", style="yellow"
        )
    for reason in dict.fromkeys(one["reason"] for one in (*run["doubts"], *run["gaps"])):
        known = REASONS[reason]
        settled = f" What settles it: {known.settled_by}" if known.settled_by else ""
        console.paragraph(f"{reason}: {known.sentence}{settled}", first="  reason ", indent="    ", style="dim")


def _row(run: Mapping[str, Any], doubt: Mapping[str, Any]) -> Mapping[str, Any] | None:
    relation = doubt["relation"]
    number = _NUMBERS.get(relation, "call_no")
    rows = run.get(relation) or run["seen"].get(relation) or ()
    return next((row for row in rows if row[number] == doubt["row_no"]), None)


def _missing(gap: Mapping[str, Any]) -> str:
    outcome = None if gap["relation"] == "errors" else "failed" if gap["outcome"] == "error" else gap["outcome"]
    what = " ".join(filter(None, (outcome, _noun(gap["relation"]))))
    number = f"any number of {what}s" if gap["at_most"] is None else f"at most {amount(gap['at_most'], what)}"
    named = f" of `{gap['name']}`" if gap["name"] is not None else ""
    return f"{number}{named}" + (f" of agent `{gap['agent']}`" if gap["agent"] is not None else "")


def _noun(relation: str) -> str:
    return _NOUNS.get(relation, relation)


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
        which = f"{amount(n, 'span')} of {named} {version or 'without a version'}"
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
