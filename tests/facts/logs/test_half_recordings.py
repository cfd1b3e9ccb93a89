"""Recordings of agents whose truth is in spans and logs, with one of the two missing: less is known, nothing is wrong."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import conformance
import pytest

RECORDINGS = Path(__file__).parents[2] / "recordings"
CODING_AGENTS = ("claude-code", "codex", "gemini-cli", "qwen-code")
WITHOUT_FAILURES = ("openclaw/model_error_final",)
"""Spans that say of a failed request that it ended; only a log record says that it failed."""
CASES = [path for path in conformance.recordings(RECORDINGS) if conformance.name(path) not in WITHOUT_FAILURES]
SIGNALS = {"traces": '{"resourceSpans"', "logs": '{"resourceLogs"'}


def requests(path: Path) -> list[str]:
    """The export requests of a recording, of either signal."""
    files = [
        path / name for name in ("traces.otlp.jsonl", "traces.otlp.jsonl.gz", "logs.otlp.jsonl", "logs.otlp.jsonl.gz")
    ]
    read = [
        gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        for file in files
        if file.exists()
    ]
    return [line for data in read for line in data.decode().split("\n") if line]


@pytest.mark.parametrize("missing", ["traces", "logs"])
@pytest.mark.full
def test_what_half_of_a_recording_says_is_true(missing: str, tmp_path: Path) -> None:
    """Each fact is true or unknown, or the run is not complete; what the other half still records of coding agents is known."""
    for path in CASES:
        sent = requests(path)
        kept = [line for line in sent if not line.replace(" ", "").startswith(SIGNALS[missing])]
        if 0 < len(kept) < len(sent):
            half = tmp_path / path.parent.name / path.name
            half.mkdir(parents=True)
            shutil.copy(path / "truth.json", half)
            (half / "traces.otlp.jsonl").write_text("\n".join(kept), encoding="utf-8")
    halves = conformance.recordings(tmp_path)
    with conformance.loaded(halves) as session:
        runs = conformance.inspected(session)

    assert len(halves) > 20
    for half in halves:
        run = runs.get(conformance.name(half))
        lost = conformance.name(half) in conformance.LOST
        if run is None or lost or (run["complete"] is False and half.parent.name not in CODING_AGENTS):
            continue
        if run["complete"] is None:  # Logs of which no span is made: nothing is known.
            assert (run["spans"], {*run["totals"].values()}, {*run["seen"].values()}) == (0, {None}, {None})
            continue
        facts = conformance.compare(half, run)
        wrong = {fact: found for fact, found in facts.items() if found[0] == "wrong"}

        assert (conformance.name(half), wrong) == (conformance.name(half), {})
        if half.parent.name in CODING_AGENTS:
            assert facts["llm_calls"][0] == facts["input_tokens"][0] == "true", conformance.name(half)
