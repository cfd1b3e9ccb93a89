"""`clawtrace compare`: two campaigns, and which differences are more than chance."""

from __future__ import annotations

from pathlib import Path

import click

from clawtrace.cli.flags import outputs_option
from clawtrace.cli.output.comparison import ComparisonFlags, comparison_options, print_compared

__all__ = ["command"]


@click.command(
    epilog="Example: clawtrace compare main outputs/campaigns/smoke/default-0123456789ab --fail-on pass-rate",
)
@click.argument("first")
@click.argument("second")
@outputs_option
@comparison_options
def command(first: str, second: str, outputs: Path, flags: ComparisonFlags) -> int:
    """Compare the campaign SECOND with the campaign FIRST.

    Each is a campaign's folder, a report.json, a campaign or suite below the folder of results, or the name of a
    baseline. With `@` and a model after both (`smoke@small smoke@large`) their runs with these models are compared. Pass rates are compared by Fisher's exact test, time, tokens, cost and calls by the Mann-Whitney test, with
    Holm's correction; the table says which difference would have been noticed.

    Exit codes: 0 no regression; 1 regression; 2 usage; 3 no evidence of one, but one may have gone unseen: a case is
    gone or was not decided, or there are too few runs to notice anything.
    """
    from clawtrace.campaign.comparing.measured import find_sides

    return print_compared(*find_sides(first, second, outputs), (first, second), flags)
