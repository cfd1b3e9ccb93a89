"""Logs and transcripts of agents as spans: what is known of a run where spans are missing or incomplete (spec: assertions.md §6).

One module of `clawtrace.logs.forms` is one form of log; a project's own form is a list of regular expressions in
`clawtrace.yaml` (`configured`). A form turns lines into `LoggedSpan`s; everything after that is the way of any span.
"""

from __future__ import annotations

from clawtrace.logs.model import LoggedRun, LoggedSpan, LogReading
from clawtrace.logs.reading import LogFileError, read_log

__all__ = ["LogFileError", "LogReading", "LoggedRun", "LoggedSpan", "read_log"]
