"""The HTML report: one file that holds its results and spans as data, and lets its own script run and nothing else."""

import base64
import hashlib
import io
import json
import re
import zlib
from typing import Any

from clawtrace.model.verdict import Evidence
from clawtrace.report.page import PageReport, packed_details
from clawtrace.verdicts.reading.run_details import RunDetails, SpanDetails

HOSTILE = '</script><script>document.title="taken"</script><img src=x onerror=alert(1)>\u202e\x1b[31m'


def written(report: Any) -> str:
    stream = io.StringIO()
    PageReport().write(report, stream)
    return stream.getvalue()


def packed(page: str, attribute: str) -> Any:
    """Return what a data script of the page holds."""
    text = re.search(rf'<script type="text/plain" {attribute}>([^<]*)</script>', page)
    assert text is not None
    return json.loads(zlib.decompress(base64.b64decode(text[1])))


def test_the_page_holds_the_results_and_the_spans(verdict, run, campaign) -> None:
    """What `--report json` writes is in it, and the details of each run under its id."""
    details = RunDetails("r1", 10, "done", [], [], [], [], [], [], [], [], [])
    page = written(campaign(run(verdict(), run_id="r1"), details={"r1": packed_details(details)}))

    assert packed(page, 'id="results"')["cases"][0]["runs"][0]["run_id"] == "r1"
    assert packed(page, 'data-run="r1"') == details.data()


def test_the_sql_of_verdicts_is_apart(verdict, run, campaign) -> None:
    """Half of a large report is SQL, which the page unpacks when a query is shown; a verdict without SQL has none."""
    page = written(campaign(run(verdict(id="a", sql="SELECT 1"), verdict(id="b", sql=""), run_id="r1")))
    (case,) = packed(page, 'id="results"')["cases"]
    first, second = case["runs"][0]["assertions"]

    assert (first["sql"], second["sql"]) == ("-", "")
    assert packed(page, 'id="queries"') == {first["verdict_id"]: "SELECT 1"}


def test_what_a_trace_holds_is_data(verdict, run, campaign) -> None:
    """Markup in ids, messages and span names is nowhere in the document outside of packed data."""
    evidence = (Evidence(None, None, HOSTILE, HOSTILE),)
    judged = verdict("fail", message=HOSTILE, actual=HOSTILE, evidence=evidence)
    fields = dict.fromkeys(SpanDetails.__dataclass_fields__) | {"span_id": "1", "name": HOSTILE, "kind": "llm"}
    span = SpanDetails(**fields)
    details = RunDetails(HOSTILE, 1, HOSTILE, [span], [], [], [], [], [], [], [], [])
    empty = written(campaign(run(verdict())))
    page = written(campaign(run(judged, run_id=HOSTILE), details={HOSTILE: packed_details(details)}))

    assert page.count("<script") == empty.count("<script") + 1
    assert "onerror=alert(1)>" not in page
    assert packed(page, 'id="results"')["cases"][0]["runs"][0]["assertions"][0]["message"] == HOSTILE


def test_the_policy_allows_its_own_script_and_style_and_nothing_else(verdict, run, campaign) -> None:
    """The hashes are those of the script and the style that stand in the file; there is no address to fetch from."""
    page = written(campaign(run(verdict())))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    hashes = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in (
            ("script", re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[-1]),
            ("style", re.findall(r"<style>(.*?)</style>", page, re.DOTALL)[0]),
        )
    }

    assert policy[1].split("; ") == [
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "img-src data:",
        f"script-src 'sha256-{hashes['script']}'",
        f"style-src 'sha256-{hashes['style']}'",
    ]
    assert not re.search(r'(src|href)="(?!data:)[a-z]+:', page)


def test_a_large_report_is_packed_whole(verdict, run, campaign) -> None:
    """Data longer than a piece of base64 comes back as it was."""
    runs = [run(verdict(message=f"{n} " * 50), run_id=f"r{n}") for n in range(2000)]
    page = written(campaign(*runs))

    assert [case["run_id"] for one in packed(page, 'id="results"')["cases"] for case in one["runs"]] == [
        one.run_id for one in runs
    ]
