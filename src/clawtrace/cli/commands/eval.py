"""`clawtrace eval`: run a suite and judge it, or judge what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from clawtrace.cli.evaluating.suite import SuiteFlags, eval_suite, suite_options
from clawtrace.cli.flags import FOLDER, complete_suites
from clawtrace.cli.output.outcome import Output, finish, gate_options, output_options
from clawtrace.cli.sources.clickhouse import ClickHouseSource, store_options
from clawtrace.cli.sources.source import Recordings, recordings_options, server_option, source_of

if TYPE_CHECKING:
    from clawtrace.verdicts.gating.gate import Gate

__all__ = ["command"]


class _Eval(click.Command):
    """The command, whose `--help` lists its options by section; those of no section come last, under "Other options"."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Run a suite": (
            "suite", "run_profile", "evaluation_profile", "case", "tag", "model", "repeat", "concurrency", "fail_fast", "max_cost",
            "max_tokens", "cassette_mode", "dry_run", "watch",
        ),
        "Stored runs of a suite": ("reuse", "no_reuse", "last_failed"),
        "Judge what was recorded": (
            "traces", "one_run", "run_per_file", "run_per_dir", "logs", "store", "server", "wanted", "where", "assertions",
        ),
        "ClickHouse": ("since", "until", "spans_where", "max_spans"),
        "What passes": (
            "strict", "allow_missing_trace", "allow_missing_data", "gate_incomplete", "gate_on", "allow_unjudged",
        ),
        "Results": ("out", "reports", "quiet", "verbose"),
    }  # fmt: skip
    """Names of parameters by heading, both in the order in which they are shown."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section that has an option."""
        left = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        for heading, names in self.sections.items():
            _write(ctx, formatter, heading, [left.pop(name) for name in names])
        _write(ctx, formatter, "Other options", list(left.values()))


def _write(ctx: click.Context, formatter: click.HelpFormatter, heading: str, options: Sequence[click.Option]) -> None:
    records = [record for option in options if (record := option.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(heading):
            formatter.write_dl(records)


@click.command(
    cls=_Eval,
    epilog="Examples: clawtrace eval --suite smoke --report junit=results.xml; "
    "clawtrace eval --traces recordings/ --run-per-dir --assertions checks.yaml",
)
@click.argument("stray", nargs=-1, metavar="")
@click.option(
    "--suite",
    metavar="ID|PATH",
    shell_complete=complete_suites,
    help="Run this suite: configs/suites/<ID>.yaml, or a path. Not needed where the project has one suite only.",
)
@suite_options
@recordings_options
@store_options("Judge the runs of a span store: a DuckDB file, or clickhouse://USER@HOST:8123/DATABASE.")
@server_option
@click.option("--run-id", "wanted", multiple=True, metavar="ID", help="Only this recorded or stored run. Repeatable.")
@click.option("--where", metavar="SQL", help="Only runs that match this condition, such as \"case_id = 'refund'\".")
@click.option(
    "--assertions",
    type=click.Path(),
    metavar="FILE",
    help="File with the assertions for recorded or stored runs; - is stdin.",
)
@click.option("--out", type=FOLDER, help="Folder of results.  [default for a suite: the project's outputs/]")
@output_options
@gate_options
def command(
    stray: tuple[str, ...],
    suite: str | None,
    recordings: Recordings,
    store: Path | ClickHouseSource | None,
    server: str | None,
    wanted: tuple[str, ...],
    where: str | None,
    assertions: str | None,
    out: Path | None,
    output: Output,
    gate: Gate,
    suite_flags: SuiteFlags,
) -> int:
    """Judge agents by their traces.

    With --suite, or where the project has one suite, every case is run, its spans are received (with --server by a running
    `clawtrace serve`), and its assertions are asked. With --traces the runs are recordings, with --store those of a span
    store, with --server those of a running `clawtrace serve`, and --assertions says what must be true of each.

    Exit codes: 0 everything passed; 1 something failed; 2 usage or configuration, nothing was judged; 3 nothing
    failed, but something was skipped, inconclusive or not asked; 4 an agent, a precondition, a hook or the store broke.
    """
    from clawtrace.cli.evaluating.existing_runs import ExistingRuns, judge_runs, only_suite

    if stray:
        raise click.UsageError(f"{stray[0]!r} is not a flag: use --suite for a suite, --traces for a recording.")
    there = ExistingRuns(source_of(recordings, store, server if suite is None else None), wanted, where)
    if suite is None and server is None and assertions is None and not there.given():
        suite = only_suite()
    if suite is not None:
        if there.given() or assertions is not None:
            raise click.UsageError(
                "--suite runs agents; --traces or --store with --assertions judges existing runs; give one of them."
            )
        if suite_flags.reuse is not None and suite_flags.no_reuse:
            raise click.UsageError("--reuse and --no-reuse contradict each other: give one of them.")
        return eval_suite(suite, suite_flags, out, output, gate, server)
    there = there.located(asked=assertions is not None)
    if assertions == "-" and Path("-") in recordings.paths:
        raise click.UsageError("--traces - and --assertions - both read standard input; give one of them a file.")
    if assertions is None:
        raise click.UsageError(
            "--assertions is missing: name the file with the assertions for these runs; `clawtrace suggest` writes one."
        )
    profile, suite_flags = suite_flags.evaluation_profile, suite_flags._replace(evaluation_profile=None)
    if suite_flags.given():
        raise click.UsageError(f"{', '.join(suite_flags.given())} needs --suite; it does not apply to recordings.")
    report = judge_runs(there, assertions, profile, gate, output, out)
    return finish(report, output, folder=out)
