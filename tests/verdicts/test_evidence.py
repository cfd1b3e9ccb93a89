"""The evidence of a verdict: the spans of its own run, with their names, and no longer than can be read."""

from __future__ import annotations

import pytest
from building import Lab, S, agent, hex_id

from clawtrace.model.query import Query
from clawtrace.model.verdict import Evidence
from clawtrace.verdicts.asking.evidence import EVIDENCE_ROWS, EvidenceByRun, ShownSpans, evidence_query

OTHER_TRACE = f"{2:032x}"


def evidence_of(lab: Lab, sql: str, run_ids: list[str]) -> EvidenceByRun:
    """The evidence that `sql` finds, as a verdict shows it."""
    lab.facts.ensure(run_ids)
    lab.store.select_runs(run_ids)
    rows = lab.store.ask_columns(evidence_query(Query(sql)), [])
    lab.store.select_runs(["nothing-of-this"])
    return EvidenceByRun(rows, ShownSpans(lab.store, run_ids, [rows]))


@pytest.fixture
def two_runs(lab: Lab) -> Lab:
    """Runs whose spans have the same ids; in each a tool span starts at a different time."""
    lab.put(agent("a"), S("t", "a", 3, name="tool of r"), run="r")
    lab.put(
        S("a", "", 5, 9, "agent of q", trace=OTHER_TRACE), S("t", "a", 7, name="tool of q", trace=OTHER_TRACE), run="q"
    )
    return lab


ROWS = """
SELECT z.run_id AS run_id, z.span_id AS span_id, 'seen' AS why, NULL AS reason,
       row_number() OVER (PARTITION BY z.run_id ORDER BY z.start_ns DESC) AS rank
FROM spans AS z JOIN selected_runs AS s ON s.run_id = z.run_id
"""


def test_each_run_shows_its_own_spans(two_runs: Lab) -> None:
    """Also where another run has spans of the same ids, and whichever runs were asked about before."""
    found = evidence_of(two_runs, ROWS, ["r", "q", "without"])

    assert [(e.trace_id, e.span_id, e.name, e.start_ns) for e in found.of("q")] == [
        (OTHER_TRACE, hex_id("t"), "tool of q", 7_000_000),
        (OTHER_TRACE, hex_id("a"), "agent of q", 5_000_000),
    ]
    assert [(e.name, e.start_ns) for e in found.of("r")] == [("tool of r", 3_000_000), ("invoke_agent", 0)]
    assert found.of("without") == []


def test_what_only_a_message_states_is_evidence_without_a_span(two_runs: Lab) -> None:
    by_message = ROWS.replace("z.span_id AS", "CASE WHEN z.start_ns = 3000000 THEN NULL ELSE z.span_id END AS")

    assert evidence_of(two_runs, by_message, ["r"]).of("r") == [
        Evidence(None, None, "", "seen", None),
        Evidence(f"{1:032x}", hex_id("a"), "invoke_agent", "seen", 0),
    ]


@pytest.mark.parametrize(("length", "shown"), [(300, "x" * 300), (301, "x" * 299 + "…")])
def test_a_long_reason_is_cut_to_three_hundred_characters(two_runs: Lab, length: int, shown: str) -> None:
    found = evidence_of(two_runs, ROWS.replace("'seen'", f"'{'x' * length}'"), ["r"])

    assert [one.why for one in found.of("r")] == [shown, shown]


def test_the_first_ranks_are_shown_and_no_more(lab: Lab) -> None:
    lab.put(agent("a"), *(S(f"s{n:02}", "a", n) for n in range(1, 30)))
    by_start = ROWS.replace(" DESC", "")

    names = [one.span_id for one in evidence_of(lab, by_start, ["r"]).of("r")]
    assert names == [hex_id("a"), *(hex_id(f"s{n:02}") for n in range(1, EVIDENCE_ROWS))]
