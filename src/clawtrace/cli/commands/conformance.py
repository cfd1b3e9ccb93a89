"""`clawtrace conformance -- CMD`: whether what an agent exports tells what it did, scenario by scenario."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.flags import FILE
from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.errors import UsageError
from clawtrace.report.console import ConsoleOutput, TableColumn

if TYPE_CHECKING:
    from clawtrace.conformance.trial import Conformance, Fact

__all__ = ["command"]

_MARKS = {"true": ("✓", "green"), "absent": ("·", "yellow"), "wrong": ("✗", "red")}
_LONGEST = 160
"""Characters of a value that are shown."""


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: clawtrace conformance --markdown conformance.md -- python agent.py",
)
@click.argument("cmd", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--scenario", "names", multiple=True, metavar="NAME", help="Only this scenario; may be repeated.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=60, show_default=True, metavar="SECONDS",
    help="Time limit of each scenario.",
)  # fmt: skip
@click.option("--markdown", type=FILE, metavar="FILE", help="Write the table here.")
@click.option("--badge", type=FILE, metavar="FILE", help="Write a badge of shields.io here: JSON.")
@click.option(
    "--against", type=FILE, metavar="FILE",
    help="Say what changed since this output of --json, as of another version.",
)  # fmt: skip
@json_option
def command(
    cmd: tuple[str, ...],
    names: tuple[str, ...],
    timeout: float,
    markdown: Path | None,
    badge: Path | None,
    against: Path | None,
    as_json: bool,
) -> int:
    """Run an agent once for each scenario against a scripted model, and compare what its spans say with what happened.

    The model asks for the tools that the agent offers, so that nothing has to be known of it; what truly happened is what
    the model's server saw. The agent finds the server in its environment, as with `clawtrace model-server`, and the name of
    the scenario in CLAWTRACE_SCENARIO. It may write what its tools and agents did to the file CLAWTRACE_TRUTH names, one JSON
    object a line: {"tool": NAME, "arguments": {…}, "error": true}, {"agent": NAME, "parent": NAME}, {"answer": TEXT}; then these are
    compared as well.

    Exit codes: 0 nothing is wrong; 1 something is; 3 no scenario happened, or no span came; 4 the agent cannot be started.
    """
    from clawtrace import __version__
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.config.projects.session_settings import session_settings
    from clawtrace.conformance.scenarios import SCENARIOS
    from clawtrace.conformance.trial import Conformance, try_scenario
    from clawtrace.support.did_you_mean import did_you_mean
    from clawtrace.support.files import whole_text_file

    known = [one.name for one in SCENARIOS]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"There are: {', '.join(known)}."
            raise click.UsageError(f"There is no scenario {name!r}. {hint}")
    before = _earlier(against, list(names) or known) if against is not None else None
    project = load_project()
    trials = []
    for scenario in SCENARIOS:
        if not names or scenario.name in names:
            click.echo(f"{scenario.name}: {scenario.meaning}", err=True)
            trials.append(
                try_scenario(
                    scenario, cmd, os.environ, session_settings(project), project.config.telemetry_env, timeout
                )
            )
    found = Conformance(schema="clawtrace.conformance/1", clawtrace=__version__, trials=trials)
    for path, text in ((markdown, _markdown(found)), (badge, _badge(found))):
        if path is not None:
            with whole_text_file(path, sync=False) as stream:
                stream.write(text)
    if as_json:
        print_json(asdict(found))
    else:
        _show(found, stdout_console())
        if before is not None:
            _show_changes(before, found, stdout_console())
    return 1 if found.count("wrong") else 0 if found.count("true") else 3


def _earlier(path: Path, tried: list[str]) -> dict[str, str]:
    """Return what an earlier call told of the scenarios that are tried now.

    Raises:
        UsageError: the file cannot be read, or is none of this command.
    """
    try:
        return _told([one for one in json.loads(path.read_text("utf-8"))["trials"] if one["scenario"] in tried])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not what `clawtrace conformance --json` prints"
        raise UsageError(f"{str(path)!r} cannot be compared with: {why}.") from error


def _told(trials: list[dict[str, Any]]) -> dict[str, str]:
    """Return the status of each fact and the types of each attribute."""
    told = {f"{name} in {one['scenario']}": fact["status"] for one in trials for name, fact in one["facts"].items()}
    types = dict[str, set[str]]()
    for one in trials:
        for key, said in one["attributes"].items():
            types.setdefault(f"attribute {key}", set()).update(said.split(" or "))
    return told | {key: " or ".join(sorted(types[key])) for key in sorted(types)}


def _show_changes(was: dict[str, str], found: Conformance, console: ConsoleOutput) -> None:
    now = _told(asdict(found)["trials"])
    changed = [key for key in {**now, **was} if now.get(key) != was.get(key)]
    for key in changed:
        if key not in now:
            mark, style, said = "-", "red", "vanished"
        elif key not in was:
            mark, style, said = "+", "green", f"appeared: {now[key]}"
        else:
            mark, style = _MARKS.get(now[key], ("~", "yellow"))
            said = f"was {was[key]}, and is {now[key]}"
        console.paragraph(f"{key} {said}", first=f"{mark} ", indent="  ", first_style=style)
    if not changed:
        console.paragraph("Nothing changed since then in what both have.")


def _summary(found: Conformance) -> str:
    numbers = [found.count(status) for status in ("true", "absent", "wrong")]
    return f"{sum(numbers)} facts: {numbers[0]} true, {numbers[1]} absent, {numbers[2]} wrong."


def _facts(found: Conformance) -> list[str]:
    """Return the facts that any scenario decides, in the order of the table."""
    from clawtrace.conformance.trial import CONVENTIONS

    return [fact for fact in CONVENTIONS if any(fact in trial.facts for trial in found.trials)]


def _open(found: Conformance) -> list[tuple[str, Fact, list[str]]]:
    """Return what is wrong or absent: each fact with its first instance and the scenarios, the wrong ones first."""
    alike: dict[tuple[str, str], tuple[Fact, list[str]]] = {}
    for trial in found.trials:
        for name, fact in trial.facts.items():
            if fact.status != "true":
                alike.setdefault((name, fact.status), (fact, []))[1].append(trial.scenario)
    listed = [(name, fact, scenarios) for (name, _), (fact, scenarios) in alike.items()]
    return sorted(listed, key=lambda one: one[1].status != "wrong")


def _notes(found: Conformance) -> dict[str, list[str]]:
    """Return what is noted, with the scenarios of which it is."""
    notes: dict[str, list[str]] = {}
    for trial in found.trials:
        if trial.note:
            notes.setdefault(trial.note, []).append(trial.scenario)
    return notes


def _said(name: str, fact: Fact) -> list[str]:
    """Return what is known of a fact that is not true, in sentences."""
    from clawtrace.conformance.trial import CONVENTIONS

    one = CONVENTIONS[name]
    said = [f"Found {_value(fact.found)}; what happened: {_value(fact.happened)}."] if fact.status == "wrong" else []
    said += fact.because if fact.status == "absent" else []
    if fact.spans:
        said.append(f"Spans: {'; '.join(_span(span) for span in fact.spans)}.")
    if one.attribute:
        said.append(f"Convention (`{one.attribute}`): {one.says} {one.link}")
    return said


def _span(span: dict[str, object]) -> str:
    values = (f"{key} is {_value(value)}" for key, value in span.items() if key != "span_id")
    return f"{span['span_id']}: {', '.join(values)}"


def _value(value: object) -> str:
    text = "not recorded" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _show(found: Conformance, console: ConsoleOutput) -> None:
    facts = _facts(found)
    console.line()
    if facts:
        happened = [trial for trial in found.trials if trial.happened]
        columns = [TableColumn("fact"), *(TableColumn(trial.scenario) for trial in happened)]
        cells = [
            [(fact, ""), *(_MARKS[t.facts[fact].status] if fact in t.facts else ("", "") for t in happened)]
            for fact in facts
        ]
        console.table(columns, cells)
        console.line()
    for name, fact, scenarios in _open(found):
        mark, style = _MARKS[fact.status]
        console.paragraph(
            f"{name} is {fact.status} in {', '.join(scenarios)}", first=f"{mark} ", indent="  ", first_style=style
        )
        for sentence in _said(name, fact):
            console.paragraph(sentence, indent="    ", style="dim")
    for note, scenarios in _notes(found).items():
        console.paragraph(f"{', '.join(scenarios)}: {note}", first="– ", indent="  ")
    if _open(found) or _notes(found):
        console.line()
    console.line((f"{_summary(found)} ✓ true, · absent, ✗ wrong", "bold"))


def _markdown(found: Conformance) -> str:
    happened = [trial for trial in found.trials if trial.happened]
    dialects = sorted({dialect for trial in happened for dialect in trial.dialects})
    lines = [
        "# Conformance",
        "",
        f"{_summary(found)} clawtrace {found.clawtrace}, read by: {', '.join(dialects) or 'no dialect'}.",
        "",
    ]
    lines += [f"| fact | {' | '.join(trial.scenario for trial in happened)} |", f"|---|{'---|' * len(happened)}"]
    for name in _facts(found):
        cells = (_MARKS[trial.facts[name].status][0] if name in trial.facts else " " for trial in happened)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    lines.append("")
    for name, fact, scenarios in _open(found):
        lines.append(f"- **`{name}` is {fact.status}** in {', '.join(scenarios)}. {' '.join(_said(name, fact))}")
    lines += [f"- {', '.join(scenarios)}: {note}" for note, scenarios in _notes(found).items()]
    return "\n".join(lines) + "\n"


def _badge(found: Conformance) -> str:
    """Return what shields.io's endpoint badges read."""
    true, wrong = found.count("true"), found.count("wrong")
    share = true / max(1, true + found.count("absent") + wrong)
    colour = "red" if wrong else "brightgreen" if share > 0.95 else "green" if share > 0.8 else "yellow"
    said = f"{wrong} facts wrong" if wrong else f"{int(100 * share)} % of facts true"
    return json.dumps({"schemaVersion": 1, "label": "clawtrace conformance", "message": said, "color": colour}) + "\n"
