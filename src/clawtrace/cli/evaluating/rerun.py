"""`clawtrace query --verdict`: verdicts of JSON results, asked again by the SQL and the function that decided them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from clawtrace.assertions.probe import Probe
from clawtrace.assertions.registry import get, parse_assertion
from clawtrace.cli.output.data import print_json, print_table, stdout_console
from clawtrace.cli.output.progress import working
from clawtrace.cli.sources.source import TraceSource
from clawtrace.cli.sources.stored_results import flags_of_source, opened_source, read_results, source_of_results
from clawtrace.config.files.document import display
from clawtrace.errors import ClawtraceError, ExitCode, UsageError
from clawtrace.model.progress import Progress
from clawtrace.report.console import ConsoleOutput
from clawtrace.report.json_report import assertion_of
from clawtrace.report.json_text import json_text
from clawtrace.session.session import Session
from clawtrace.store.api import Answer
from clawtrace.support.did_you_mean import did_you_mean
from clawtrace.verdicts.asking.rerun import Rerun, differences

__all__ = ["rerun"]

_SCHEMA = "clawtrace.rerun/1"


class _Stored(NamedTuple):
    """One verdict of a results file, and what it is called."""

    case_id: str
    run_id: str
    verdict: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.verdict["verdict_id"])


class _Again(NamedTuple):
    """The result of one of them."""

    stored: _Stored
    again: Rerun | None
    """None where it could not be rerun."""
    why: str = ""
    """Why not, one sentence."""
    differs: Mapping[str, tuple[Any, Any]] = {}
    """Differences by key: the stored and the current value."""

    @property
    def word(self) -> str:
        return "not rerun" if self.again is None else "differs" if self.differs else "the same"


def rerun(where: str, source: TraceSource, *, as_json: bool) -> int:
    """Rerun the verdicts that `FILE[#ID]` names, print what came, and return the exit code.

    Raises:
        UsageError: there is no such file or verdict, or nothing says where the runs are.
    """
    path, wanted = _split(where)
    results = read_results(path)
    chosen = _chosen(results, path, wanted)
    today = datetime.fromisoformat(results["started_at"]).astimezone().date()
    run_ids = list(dict.fromkeys(one.run_id for one in chosen))
    with working() as shown, opened_source(results, path.parent, source, shown, run_ids) as session:
        answers = _all_again(session, chosen, today, shown)
    if as_json:
        print_json({"schema": _SCHEMA, "verdicts": [_as_json(one) for one in answers]})
    else:
        flags = flags_of_source(source if source.is_named else source_of_results(results, path.parent))
        _print(answers, path, where_to_ask=" ".join(["clawtrace query", *flags]), alone=wanted is not None)
    if any(one.differs for one in answers):
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if any(one.again is None for one in answers) or not answers else ExitCode.PASSED


# -- which verdicts ----------------------------------------------------------------------------------------------------


def _split(where: str) -> tuple[Path, str | None]:
    if Path(where).is_file() or "#" not in where:
        return Path(where), None
    path, _, wanted = where.partition(".json#")
    return (Path(f"{path}.json"), wanted) if wanted else (Path(where.partition("#")[0]), where.partition("#")[2])


def _chosen(results: Mapping[str, Any], path: Path, wanted: str | None) -> list[_Stored]:
    stored = [
        _Stored(case["case_id"], run["run_id"], verdict)
        for case in results["cases"]
        for run in case["runs"]
        for verdict in run["assertions"]
    ]
    if wanted is None:
        return stored
    for names in (
        lambda one: (one.name,),
        lambda one: (one.run_id, one.case_id, one.verdict["id"], f"{one.case_id}/{one.verdict['id']}"),
    ):
        if found := [one for one in stored if wanted in names(one)]:
            return found
    hint = did_you_mean(wanted, [one.name for one in stored]) or f"It has {len(stored)} verdicts."
    raise UsageError(f"{str(path)!r} has no verdict, run, case or assertion {wanted!r}. {hint}")


# -- asking again ------------------------------------------------------------------------------------------------------


def _all_again(session: Session, chosen: Sequence[_Stored], today: date, shown: Progress) -> list[_Again]:
    known = set(session.run_ids())
    session.facts_states([run_id for run_id in dict.fromkeys(one.run_id for one in chosen) if run_id in known])
    answers = []
    for number, one in enumerate(chosen):
        shown("rerunning verdicts", number, len(chosen))
        answers.append(_again(session, one, today))
    return answers


def _again(session: Session, stored: _Stored, today: date) -> _Again:
    verdict = stored.verdict
    try:
        if issubclass(get(verdict["type"]), Probe):
            return _Again(stored, None, "it checked files, services or commands, not the trace: there is no SQL.")
        if verdict["asked_run"]:  # reads the log that it names, where the store does not hold its lines
            session.evaluate([stored.run_id], [parse_assertion(verdict["definition"])])
        again = session.rerun(stored.run_id, verdict, today)
    except ClawtraceError as error:
        return _Again(stored, None, str(error))
    now = json.loads(json_text(assertion_of(again.verdict)))
    return _Again(stored, again, differs=differences(verdict, now))


# -- what is printed ---------------------------------------------------------------------------------------------------


def _print(answers: Sequence[_Again], path: Path, *, where_to_ask: str, alone: bool) -> None:
    console = stdout_console()
    for one in answers:
        style = {"the same": "green", "differs": "red"}.get(one.word, "yellow")
        console.line((one.word, style), (f"  {one.stored.name}", "bold"), (f"  {one.stored.verdict['status']}", ""))
        if one.again is None:
            console.paragraph(one.why, indent="  ")
        for key, (then, now) in one.differs.items():
            console.paragraph(f"{key} was {_value(then)}, and is {_value(now)}", indent="  ")
        if alone and len(answers) == 1:
            _print_whole(one, one.again, path, where_to_ask, console)
    words = Counter(one.word for one in answers)
    counted = ", ".join(f"{n} {'differ' if word == 'differs' and n != 1 else word}" for word, n in words.items())
    click.echo(
        f"{len(answers)} verdict{'' if len(answers) == 1 else 's'} of {path}: {counted or 'nothing to rerun'}", err=True
    )


def _print_whole(one: _Again, again: Rerun | None, path: Path, where_to_ask: str, console: ConsoleOutput) -> None:
    """Print everything that decided a verdict."""
    stored = one.stored.verdict
    console.paragraph(stored["message"] if again is None else again.verdict.message, indent="  ")
    for key in ("expected", "actual"):
        if stored[key] is not None:
            console.paragraph(_value(stored[key]), first=f"  {key}: ", indent="    ")
    for item in stored["evidence"]:
        said = ": ".join(filter(None, (item["name"], item["why"])))
        span = f" (span {item['span_id']})" if item["span_id"] else ""
        console.paragraph(f"{said}{span}", first="  • ", indent="    ")
    if stored["hint"]:
        console.paragraph(stored["hint"], first="  hint: ", indent="    ", style="cyan")
    if stored["file"]:
        place = display(path.parent / stored["file"])
        console.paragraph(f"{place}:{stored['line']}", first="  written in ", indent="    ", style="dim")
    if again is None or again.row is None:
        return
    _table("the run's row", again.row, console)
    if stored["decided_by"]:
        if again.rows is not None:
            _table("input of the function", again.rows, console)
        if world_rows := stored["decided_by"]["world_rows"]:
            console.line()
            console.paragraph(_value(world_rows), first="facts about the environment: ", indent="  ")
        console.line()
        console.line((f"decided by {stored['decided_by']['function']}", ""))
    if again.outcome is not None:
        holds = {True: "true", False: "false", None: "unknown"}[again.outcome.holds]
        missing = f", missing {again.outcome.missing}" if again.outcome.missing else ""
        console.line((f"holds {holds}{missing}", "bold"))
    scope = "".join(f" --{key} {value}" for key, value in (stored["scope"] or {}).items() if value is not None)
    console.line()
    console.line((f"the SQL, for {where_to_ask}{scope}:", ""))
    for line in stored["sql"].splitlines():
        console.line((f"  {line}", "dim"))


def _table(title: str, answer: Answer, console: ConsoleOutput) -> None:
    console.line()
    console.line((f"{title} ({len(answer)})" if len(answer) != 1 else title, ""))
    print_table(answer.columns, answer.rows)


def _as_json(one: _Again) -> dict[str, Any]:
    again, stored = one.again, one.stored.verdict
    outcome = None if again is None else again.outcome
    decided_by = stored["decided_by"] or {}
    return {
        "verdict_id": one.stored.name,
        "rerun": one.word,
        "why_not": one.why,
        "status": None if again is None else again.verdict.status.value,
        "message": None if again is None else again.verdict.message,
        "holds": None if outcome is None else outcome.holds,
        "missing": "" if outcome is None else outcome.missing,
        "scope": stored["scope"],
        "row": None if again is None or again.row is None else again.row.dicts(),
        "function": decided_by.get("function"),
        "rows": None if again is None or again.rows is None else again.rows.dicts(),
        "world_rows": decided_by.get("world_rows"),
        "differs": {key: {"stored": then, "now": now} for key, (then, now) in one.differs.items()},
        "sql": stored["sql"],
    }


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
