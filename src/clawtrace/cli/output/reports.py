"""`--report FORMAT=PATH`: read the option, and write the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from clawtrace.support.files import shared_folder, whole_text_file

if TYPE_CHECKING:
    from clawtrace.report.base import CampaignReport

__all__ = ["ReportTarget", "in_every_format", "report_option", "report_target", "write_reports", "writes_to_stdout"]

ReportTarget = tuple[str, str]
"""Format and path; the path `-` is standard output."""


def _targets(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[ReportTarget]:
    """Read `--report` options; a mistake is reported before anything runs."""
    del ctx, param
    targets = [report_target(value) for value in values]
    places = [path if path == "-" else os.path.realpath(path) for _, path in targets]
    for place, (_, path) in zip(places, targets, strict=True):
        if places.count(place) > 1 and not Path(place).is_char_device():
            raise click.BadParameter(f"two reports cannot be one file: {path!r}.")
    return targets


def report_target(value: str) -> ReportTarget:
    """Return `FORMAT=PATH` as a target.

    Raises:
        BadParameter: it is none, or its file cannot be written.
    """
    from clawtrace.report.base import formats

    word, separator, path = value.partition("=")
    if not separator or not path:
        raise click.BadParameter(f"{value!r} is not FORMAT=PATH, for example {_example(word)}.")
    if word not in formats():
        raise click.BadParameter(f"there is no report format {word!r}; there are: {', '.join(formats())}.")
    if path != "-" and Path(path).is_dir():
        raise click.BadParameter(f"{path!r} is a folder; name a file in it.")
    parent = next(folder for folder in Path(path).absolute().parents if folder.exists())
    if path != "-" and not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise click.BadParameter(f"{path!r} cannot be written: {str(parent)!r} is not a writable folder.")
    return word, path


class _ReportOption(click.Option):
    """An option whose help names the formats that exist, found when the help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from clawtrace.report.base import formats

        self.help = f"Also write the results to a file, as {' or '.join(formats())}; `-` is stdout. Repeatable."
        return super().get_help_record(ctx)


report_option = click.option(
    "--report", "reports", metavar="FORMAT=PATH", multiple=True, callback=_targets, cls=_ReportOption
)


def _example(word: str) -> str:
    """Return an example of the flag's value, with the format that was probably meant."""
    from clawtrace.report.base import formats

    if word not in formats():
        return "json=results.json"
    return f"{word}=results.{ {'junit': 'xml', 'markdown': 'md', 'comment': 'md', 'github': 'txt'}.get(word, word) }"


def writes_to_stdout(targets: Sequence[ReportTarget]) -> bool:
    """Whether standard output carries a report, so that what people read must go to standard error."""
    return any(path == "-" for _, path in targets)


def write_reports(
    targets: Sequence[ReportTarget], report: CampaignReport, private: Sequence[ReportTarget] = ()
) -> list[str]:
    """Write each report; a file appears whole or not at all. Return which could not be written, one sentence each.

    Args:
        targets: those that the user asked for.
        private: those for this user alone.
    """
    from clawtrace.cli.output.progress import working

    unwritten = []
    with working() as shown:
        files = [*(target for target in targets if target[1] != "-"), *private]
        for done, (word, path) in enumerate(files):
            shown(f"writing the report {word}", done, len(files))
            try:
                _write_file(word, report, Path(path), shared=done < len(files) - len(private))
            except OSError as error:
                unwritten.append(f"The report {path!r} cannot be written: {error.strerror}.")
    for word, path in targets:
        if path == "-":
            _write(word, report, sys.stdout)
    return unwritten


def _write_file(word: str, report: CampaignReport, path: Path, *, shared: bool) -> None:
    if shared:
        shared_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.is_file() or not path.exists()  # else a pipe or a device, which keeps its place
    with whole_text_file(path, sync=False, shared=shared) if whole else path.open("w", encoding="utf-8") as stream:
        _write(word, report._replace(folder=path.parent), stream)


def _write(word: str, report: CampaignReport, stream: TextIO) -> None:
    from clawtrace.report.base import formats

    formats()[word]().write(report, stream)


def in_every_format(folder: Path) -> list[ReportTarget]:
    """Return the report of every format in a folder of results."""
    from clawtrace.report.base import formats

    return [(name, str(folder / cls.file_name)) for name, cls in formats().items() if cls.file_name]
