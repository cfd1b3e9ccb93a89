"""`--report junit=PATH`: JUnit XML as CI systems read it.

One suite a case and model, one test case an assertion and run. What is red follows from the gate, so that a CI
system shows red exactly when the exit code is not 0:

- the gate says failed → `<failure>`;
- the gate says undecided or broken → `<error>` with the status as its type: skipped and inconclusive are not green;
- the gate lets something pass that is no pass (a failed assertion of `severity: warn`, a skip under
  `--allow-missing-trace`) → `<skipped>` with the reason: visible, not red;
- of an assertion with `min_pass_rate` below 1 its rate is a separate test case, which is red or not; a single
  repetition that did not pass is `<skipped>`;
- a run that broke, was not run, or of which nothing was asked, has a separate test case, named `(run)`;
- each threshold of the suite is a test case; how often repetitions passed is in the properties of their test suite.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.report._failures import NOTHING_ASKED, shown_value
from clawtrace.report.base import CampaignReport, CaseLabels, Report, cases_of, without_reasons
from clawtrace.report.results import NotRun
from clawtrace.support.figures import amount
from clawtrace.verdicts.gating.gate import Gate, Rated
from clawtrace.verdicts.gating.pass_rate import PassRate, rate_of_runs

__all__ = ["JunitReport"]

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot carry, not even escaped."""

_TOTALS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""Attribute and element."""

_RED = {ExitCode.FAILED: "failure", ExitCode.UNDECIDED: "error", ExitCode.BROKEN: "error"}


class JunitReport(Report):
    """JUnit XML."""

    format = "junit"
    file_name = "report.xml"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write one XML document in UTF-8; of its suites one at a time is in memory."""
        root = ET.Element("testsuites", name=_xml(report.suite_id or "clawtrace"))
        totals: Counter[str] = Counter()
        with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as written:  # the totals come before the suites
            for suite in _suites(report):
                own = _counted(suite)
                totals.update(own)
                _note(suite, own)
                ET.indent(suite, level=1)
                written.write(f"\n  {ET.tostring(suite, encoding='unicode')}")
            _note(root, totals)
            stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
            stream.write(ET.tostring(root, encoding="unicode").removesuffix(" />") + ">")
            written.seek(0)
            shutil.copyfileobj(written, stream)
        stream.write("\n</testsuites>\n")


def _suites(report: CampaignReport) -> Iterator[ET.Element]:
    for (case_id, model_id), runs in cases_of(report.results).items():
        name = _name(case_id, model_id)
        suite = ET.Element("testsuite", name=_xml(name))
        suite.set("timestamp", report.started_at.isoformat(timespec="seconds"))
        labels = report.labels.get(case_id)
        _add_properties(suite, _rate(rate_of_runs(runs)) if len(runs) > 1 else {}, labels)
        rated = {one.place: one for one in report.gate.rates(runs)}
        for run in runs:
            _add_run(suite, name, run, report.gate, rated, repeated=len(runs) > 1)
        _add_rated(suite, name, runs, rated.values())
        yield suite
    if report.left_out:
        yield _left_out(report.left_out)
    if report.thresholds:
        yield _thresholds(report)
    if all(run.quarantined for run in report.results) and all(run.quarantined for run in report.left_out):
        suite = ET.Element("testsuite", name="clawtrace")
        case = _case(suite, "clawtrace", "(campaign)")
        why = "everything is in quarantine" if report.results or report.left_out else "there was no run"
        _outcome(case, "error", "nothing", f"Nothing was evaluated: {why}.", "")
        yield suite


def _add_run(
    suite: ET.Element, classname: str, run: RunResult, gate: Gate, rated: Mapping[int, Rated], *, repeated: bool
) -> None:
    suffix = f" [repetition {run.repetition}]" if repeated else ""
    for place, verdict in enumerate(run.verdicts):
        case = _case(suite, classname, verdict.id + suffix, verdict.duration_ms / 1000)
        code = gate.of_verdict(verdict)
        word = "known failure" if verdict.known_failure else verdict.status.value
        message = without_reasons(run, verdict)
        if code in _RED and run.quarantined:
            _outcome(case, "skipped", "quarantined", f"quarantined, {word}: {message}", _details(verdict, message))
        elif code in _RED and (place not in rated or code is ExitCode.BROKEN):
            _outcome(case, _RED[code], word, message, _details(verdict, message))
        elif verdict.status is not Status.PASS:
            _outcome(case, "skipped", word, f"{word}: {message}", "")
        ET.SubElement(case, "system-out").text = _xml(_account(run, verdict))
    if run.error or not run.verdicts:
        case = _case(suite, classname, f"(run){suffix}")
        message = run.error or NOTHING_ASKED
        tag, kind = ("skipped", "quarantined") if run.quarantined else ("error", "error" if run.error else "nothing")
        _outcome(case, tag, kind, message, "\n".join(run.diagnostics))


def _add_rated(suite: ET.Element, classname: str, runs: Sequence[RunResult], rated: Iterable[Rated]) -> None:
    """Add a test case for each assertion that need not pass every time: its rate decides, not one repetition."""
    for one in rated:
        verdicts = next(run.verdicts for run in runs if len(run.verdicts))
        case = _case(suite, classname, f"{verdicts[one.place].id} (pass rate)")
        if one.code in _RED:
            tag, kind = ("skipped", "quarantined") if runs[0].quarantined else (_RED[one.code], "pass rate")
            _outcome(case, tag, kind, one.sentence, "")
        ET.SubElement(case, "system-out").text = _xml(one.sentence)


def _left_out(left_out: Sequence[NotRun]) -> ET.Element:
    suite = ET.Element("testsuite", name="(not run)")
    for run in left_out:
        case = _case(suite, _name(run.case_id, run.model_id), f"(run) [repetition {run.repetition}]")
        how = ("skipped", "quarantined", "quarantined, not run") if run.quarantined else ("error", "not run", "Not run")
        _outcome(case, *how[:2], f"{how[2]}: {run.reason}", "")
    return suite


def _rate(rate: PassRate) -> dict[str, str]:
    """Return how often the repetitions passed; what is unknown is left out."""
    low, high = rate.interval or (None, None)
    found = {"pass_rate": rate.rate, "pass_rate_low": low, "pass_rate_high": high}
    values = {name: f"{value:.6g}" for name, value in found.items() if value is not None}
    return values | ({"stability": rate.stability} if rate.stability else {})


def _add_properties(suite: ET.Element, values: Mapping[str, str], labels: CaseLabels | None) -> None:
    """Write properties: how often the repetitions passed, and further notes on the case."""
    if labels is not None and labels.row_of is not None:
        values = {**values, "row_of": labels.row_of}
    if labels is not None and labels.unjudged:
        values = {**values, "unjudged": ", ".join(labels.unjudged)}
    if not values:
        return
    properties = ET.SubElement(suite, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=value)


def _thresholds(report: CampaignReport) -> ET.Element:
    suite = ET.Element("testsuite", name="(thresholds)")
    for found in report.thresholds:
        case = _case(suite, report.suite_id or "suite", _name("pass rate", found.model_id))
        code = found.code(report.gate)
        if code in _RED or not found.reached:
            _outcome(case, _RED.get(code, "skipped"), "threshold", found.sentence, "")
        ET.SubElement(case, "system-out").text = _xml(found.sentence)
    return suite


def _name(what: str, model_id: str | None) -> str:
    return what if model_id is None else f"{what} [{model_id}]"


def _case(suite: ET.Element, classname: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_xml(classname), name=_xml(name), time=f"{seconds:.3f}")


def _outcome(case: ET.Element, tag: str, kind: str, message: str, text: str) -> None:
    element = ET.SubElement(case, tag, type=kind, message=_xml(message))
    element.text = _xml(text) or None


def _counted(suite: ET.Element) -> Counter[str]:
    """Return the test cases of a suite by what came of them, and their milliseconds."""
    cases = suite.findall("testcase")
    counted = Counter(tests=len(cases), ms=sum(round(1000 * float(case.get("time", "0"))) for case in cases))
    for total, tag in _TOTALS.items():
        counted[total] = sum(case.find(tag) is not None for case in cases)
    return counted


def _note(element: ET.Element, counted: Mapping[str, int]) -> None:
    for name in ("tests", *_TOTALS):
        element.set(name, str(counted.get(name, 0)))
    element.set("time", f"{counted.get('ms', 0) / 1000:.3f}")


def _details(verdict: Verdict, message: str) -> str:
    lines = [message, f"expected: {shown_value(verdict.expected)}", f"actual: {shown_value(verdict.actual)}"]
    for item in verdict.evidence:
        where = f"span {item.span_id} {item.name}" if item.span_id is not None else item.name
        lines.append(": ".join(filter(None, (where, item.why))))
    if verdict.hint:
        lines.append(f"hint: {verdict.hint}")
    return "\n".join(lines)


def _account(run: RunResult, verdict: Verdict) -> str:
    """Return what `<system-out>` says: the run, the sentence, the evidence; the SQL of what did not pass."""
    spans = f"{amount(run.spans, 'span')} in {amount(run.traces, 'trace')}"
    lines = [f"run {run.run_id}: {spans}"]
    lines += [f"incomplete: {reason}" for reason in run.incomplete_because]
    lines.append(f"{verdict.type}: {verdict.status.value}")
    if verdict.dimensions:
        lines.append(f"dimensions: {', '.join(verdict.dimensions)}")
    if verdict.description:
        lines.append(verdict.description)
    lines.append(_details(verdict, without_reasons(run, verdict)))
    lines += [f"note: {note}" for note in run.diagnostics]
    lines += [f"retried: {why}" for why in run.retried]
    if verdict.sql and verdict.status is not Status.PASS:  # of thousands that passed it is most of the file
        lines += ["", verdict.sql]
    return "\n".join(lines)


def _xml(text: str) -> str:
    """Return `text` with what XML 1.0 cannot carry written as Python would escape it."""
    return _NOT_XML.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)
