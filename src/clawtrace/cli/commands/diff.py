"""`clawtrace diff`: two runs side by side: calls, tools, agents, tokens, cost, time, tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.cli.sources.source import Recordings, TraceSource, chosen_runs, server_option, source_of
from clawtrace.errors import UsageError
from clawtrace.report.console import ConsoleOutput, TableColumn
from clawtrace.support.figures import UNKNOWN, dollars, duration, listed

if TYPE_CHECKING:
    from clawtrace.report.difference import Difference, Number, TreeStep
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["command"]

_SIGNS = {"same": (" ", ""), "removed": ("-", "red"), "added": ("+", "green")}
_AROUND = 2
"""Unchanged spans that are shown before and after a change."""
_WORDS = {"duration_ms": "time", "cost_usd": "cost"}


@click.command(epilog="Example: clawtrace diff yesterday.otlp.jsonl today.otlp.jsonl")
@click.argument("first")
@click.argument("second")
@click.option(
    "--store",
    "stores",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="The span store of runs named by id; given twice, the first is for FIRST.  [default: the project's, else the newest]",
)
@server_option
@click.option("--one-run", is_flag=True, help="Treat each recording as one run.")
@json_option
def command(
    first: str, second: str, stores: tuple[Path, ...], server: str | None, one_run: bool, as_json: bool
) -> None:
    """Show the run SECOND next to the run FIRST.

    Each is a recording (a file or folder that holds one run) or the id of a run in a store. Spans are alike when depth,
    kind and name are; `-` is in the first run only, `+` in the second only. Unknown is `?`, never 0.

    Two single runs differ for many reasons; whether a change made things worse is answered by `clawtrace compare`, from
    repetitions. The exit code is 0 with any difference.
    """
    from clawtrace.report.difference import difference_of

    if len(stores) > 2:
        raise click.UsageError("give --store once, or once for each of the two runs.")
    by_side = [(stores[0] if stores else None), (stores[-1] if stores else None)]
    (run_1, tree_1), (run_2, tree_2) = (
        _run(name, store, server, one_run) for name, store in zip((first, second), by_side, strict=True)
    )
    found = difference_of((run_1, run_2), (tree_1, tree_2), (first, second))
    if as_json:
        print_json(found)
    else:
        _print(found, stdout_console())


def _run(name: str, store: Path | None, server: str | None, one_run: bool) -> tuple[dict[str, Any], Sequence[SpanNode]]:
    """Return the facts and the tree of the one run that `name` means."""
    recorded = Path(name).exists()
    recordings = Recordings((Path(name),), "one" if one_run else "rules")
    source = TraceSource(recordings) if recorded else source_of(Recordings(), store, server)
    try:
        with source.opened() as (asked, known):
            if recorded and len(known) != 1:
                some = f": {listed(known, 3)}" if known else ""
                raise UsageError(
                    f"{name!r} contains {len(known)} runs{some}; give a recording of one run, or --one-run."
                )
            (run_id,) = known if recorded else chosen_runs([name], known, asked.why_gone)
            facts, trees = asked.inspect_with_trees([run_id])
    except (UsageError, click.UsageError) as error:
        raise error if recorded else UsageError(f"{name!r} is not a file. {error}") from error
    return facts["runs"][0], trees[run_id]


def _print(found: Difference, console: ConsoleOutput) -> None:
    for word, side in (("first ", found.first), ("second", found.second)):
        named = side.run_id if side.name == side.run_id else f"{side.name} ({side.run_id})"
        console.line((word, "bold"), (f"  {named}", ""))
        if side.complete is False:
            console.line(("        its trace is not complete: the differences may be due to missing spans", "yellow"))
    console.line()
    known = [figure for figure in found.figures if figure.first is not None or figure.second is not None]
    rows = []
    for figure in known:
        texts = [_text(figure.name, value) for value in (figure.first, figure.second)]
        sign = "" if figure.difference is None or figure.difference <= 0 else "+"
        change = _text(figure.name, figure.difference, sign) if figure.difference else ""
        rows.append([(_word(figure.name), ""), *((t, "") for t in texts), (change, "")])
    console.table(
        [
            TableColumn(""),
            TableColumn("first", "right"),
            TableColumn("second", "right"),
            TableColumn("change", "right"),
        ],
        rows,
    )
    for word, numbers in (("tools", found.tools), ("models", found.models), ("agents", found.agents)):
        _print_numbers(word, numbers, console)
    unknown = [_word(figure.name) for figure in found.figures if figure not in known]
    if unknown:
        console.paragraph(", ".join(unknown), first="unknown in both runs: ", indent="  ", style="dim")
    _print_order(found, console)
    console.line()
    _print_tree(found.tree, console)


def _word(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _text(name: str, value: float | None, sign: str = "") -> str:
    if value is None:
        return UNKNOWN
    if value < 0:
        return _text(name, -value, "-")
    shown = {"duration_ms": duration, "cost_usd": dollars}.get(name)
    return sign + (shown(value) if shown else f"{value:,.0f}")


def _print_numbers(word: str, numbers: list[Number] | None, console: ConsoleOutput) -> None:
    if numbers is None:
        console.line((f"{word}: unknown in at least one of the runs", "yellow"))
        return
    changed = [f"{one.name} {one.first} → {one.second}" for one in numbers if one.first != one.second]
    if changed:
        console.paragraph(", ".join(changed), first=f"{word}: ", indent="  ")


def _print_order(found: Difference, console: ConsoleOutput) -> None:
    steps = found.tool_order or []
    if any(step.change != "same" for step in steps):
        console.line(("tool calls:", ""))
        for step in steps:
            sign, style = _SIGNS[step.change]
            console.line((f"  {sign} {step.name}", style))


def _print_tree(steps: Sequence[TreeStep], console: ConsoleOutput) -> None:
    """Print the spans around each change; what is left out in between is counted."""
    changed = [index for index, step in enumerate(steps) if step.change != "same"]
    if not changed:
        console.line((f"the trees are alike: {len(steps)} spans", ""))
        return
    shown = {near for index in changed for near in range(index - _AROUND, index + _AROUND + 1)}
    hidden = 0
    for index, step in enumerate(steps):
        if index not in shown:
            hidden += 1
            continue
        _print_hidden(hidden, console)
        hidden = 0
        sign, style = _SIGNS[step.change]
        console.line((f"{sign} {'  ' * step.depth}{step.name}  {step.kind}", style))
    _print_hidden(hidden, console)


def _print_hidden(number: int, console: ConsoleOutput) -> None:
    if number:
        console.line((f"  … {number} alike", "dim"))
