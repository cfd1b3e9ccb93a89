"""`--report github=-`: annotations of GitHub Actions, at the lines of the case files."""

from __future__ import annotations

from typing import TextIO

from clawtrace.errors import ExitCode
from clawtrace.report._failures import not_passed
from clawtrace.report.base import CampaignReport, Report

__all__ = ["GitHubReport"]

_MOST = 50
"""GitHub shows no more annotations of a job."""
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})


class GitHubReport(Report):
    """Workflow commands, which GitHub reads in a job's standard output."""

    format = "github"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write one command a line: errors first, then what is only shown."""
        found = sorted(not_passed(report), key=lambda one: one.level is ExitCode.PASSED)
        for one in found[:_MOST]:
            command = "notice" if one.level is ExitCode.PASSED else "error"
            title = f"{one.title}: {one.assertion_id or one.word}"
            where = "" if one.file is None else f"file={one.file.translate(_PROPERTY)},line={one.line},"
            text = f"{one.word}: {one.message}".translate(_TEXT)
            stream.write(f"::{command} {where}title={title.translate(_PROPERTY)}::{text}\n")
        if len(found) > _MOST:
            stream.write(f"::notice title=clawtrace::{len(found) - _MOST} more did not pass.\n")
