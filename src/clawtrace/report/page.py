"""`--report html=PATH`: one HTML file that holds the application, the results and the spans, and needs no network.

The application is in `src/page` (TypeScript), built into `assets/page.html`. What stands in the file of a trace is packed
(zlib, base64), so that it is data whatever it contains; the file's Content-Security-Policy allows its one script alone.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from typing import TextIO

from clawtrace.report.base import CampaignReport, Report
from clawtrace.report.json_report import results_of
from clawtrace.report.json_text import json_pieces
from clawtrace.report.results import Case
from clawtrace.report.verdict_results import AssertionResult
from clawtrace.verdicts.reading.run_details import RunDetails

__all__ = ["PageReport", "live_page", "packed_details"]

_MARK = "<!-- data -->"
_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')
_NOT_BUILT = "assets/page.html is not the page: build it with `npm run build` in src/page"
_APART = "-"
"""In place of a verdict's SQL, which is under its id in the data `queries`."""
_PIECE = 3 * 16384
"""Bytes that are written at a time; a multiple of three, which base64 writes without padding."""


class PageReport(Report):
    """A page for a browser."""

    format = "html"
    file_name = "report.html"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write one HTML document."""
        before, after = _application()
        stream.write(before)
        results = results_of(report)
        cases = _Lean(results.cases)
        _write_data(stream, 'id="results"', _packed(json_pieces(replace(results, cases=cases), indent=None)))
        _write_data(stream, 'id="queries"', cases.queries())
        if report.comparison is not None:
            _write_data(stream, 'id="comparison"', _packed(json_pieces(report.comparison)))
        if report.history is not None:
            _write_data(stream, 'id="history"', _packed(json_pieces(report.history, indent=None)))
        for run_id, packed in report.details.items():
            _write_data(stream, f'data-run="{html.escape(run_id)}"', [packed])
        stream.write(after)


class _Lean(Iterable[Case]):
    """The cases without the SQL of their verdicts: half of the text, which the page reads only when it shows a query."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._cases = cases
        self._packer = zlib.compressobj()
        self._queries: list[bytes] = []

    def __iter__(self) -> Iterator[Case]:
        for case in self._cases:
            yield replace(
                case, runs=[replace(run, assertions=list(map(self._lean, run.assertions))) for run in case.runs]
            )

    def _lean(self, verdict: AssertionResult) -> AssertionResult:
        if not verdict.sql:
            return verdict
        self._add(f"{',' if self._queries else '{'}{json.dumps(verdict.verdict_id)}:{json.dumps(verdict.sql)}")
        return replace(verdict, sql=_APART)

    def _add(self, text: str) -> None:
        self._queries.append(self._packer.compress(text.encode()))

    def queries(self) -> list[bytes]:
        """Return the SQL by the id of its verdict, packed, once the cases were gone through."""
        self._add("}" if self._queries else "{}")
        return [*self._queries, self._packer.flush()]


def _write_data(stream: TextIO, named: str, pieces: Iterable[bytes]) -> None:
    stream.write(f'<script type="text/plain" {named}>')
    stream.writelines(_base64(pieces))
    stream.write("</script>\n")


def live_page() -> tuple[str, str]:
    """Return the page that asks the service which sent it, and the Content-Security-Policy that it is to be sent with."""
    before, after = _application()
    found = _POLICY.search(before)
    if found is None:
        raise ValueError(_NOT_BUILT)
    policy = f"{found[1]}; connect-src 'self'"
    return f'{before.replace(found[1], policy)}<script type="text/plain" id="live"></script>\n{after}', policy


def _application() -> tuple[str, str]:
    """Return the page before and behind its data."""
    before, mark, after = (files("clawtrace.report") / "assets" / "page.html").read_text("utf-8").partition(_MARK)
    if not mark:
        raise ValueError(_NOT_BUILT)
    return before, after


def packed_details(details: RunDetails) -> bytes:
    """Return the details of a run as the page holds them: JSON, compressed by zlib."""
    return zlib.compress(
        json.dumps(details.data(), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    )


def _packed(pieces: Iterable[str]) -> Iterator[bytes]:
    packer = zlib.compressobj()
    for piece in pieces:
        yield packer.compress(piece.encode("utf-8", "replace"))
    yield packer.flush()


def _base64(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        rest += piece
        whole = len(rest) - len(rest) % _PIECE
        if whole:
            yield base64.b64encode(rest[:whole]).decode("ascii")
            rest = rest[whole:]
    yield base64.b64encode(rest).decode("ascii")
