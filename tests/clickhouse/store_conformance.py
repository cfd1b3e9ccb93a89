"""Verdicts on the recordings' runs from DuckDB and from ClickHouse, compared.

python tests/clickhouse/store_conformance.py           # ask every assertion case about every recording; exit code 1: one differs
python tests/clickhouse/store_conformance.py --write   # and write docs/clickhouse-conformance.md
"""

from __future__ import annotations

import gzip
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from clawtrace.assertions import registry
from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.clickhouse import ClickHouseSession
from clawtrace.session.session import Session

__all__ = ["EVERY_CLIENT", "RECORDINGS", "Pair", "asked", "compared"]

TESTS = Path(__file__).parents[1]
RECORDINGS = TESTS / "recordings"
PAGE = TESTS.parent / "docs" / "clickhouse-conformance.md"
CASES = TESTS / "assertions" / "cases"
EVERY_CLIENT = sorted({path.relative_to(RECORDINGS).parts[0] for path in RECORDINGS.glob("**/*.otlp.jsonl*")})
SCOPED: list[dict[str, Any]] = [
    {"type": "tool_call_count", "max": 3, "agent": "re:.*"},
    {"type": "no_span_errors", "turn": 1},
    {"type": "trace_token_budget", "max_total_tokens": 100_000, "turn": "last"},
]
_ROW = re.compile(r"\{[^{}]*\}")
_UNWRITTEN = re.compile(rb'"(flags|dropped[A-Za-z]+Count)": ?[0-9]+')
"""What no Collector writes into ClickHouse."""


class Pair(NamedTuple):
    """What the two stores say to one question."""

    client: str
    run_id: str
    question: str
    type: str
    status: str
    ours: tuple[object, ...]
    """From DuckDB."""
    theirs: tuple[object, ...]
    """From ClickHouse."""

    @property
    def same(self) -> bool:
        """Whether status, finality, message, missing fact, actual value and evidence are the same."""
        return self.ours == self.theirs


def questions(every: int) -> list[Assertion]:
    """Return every so many of the assertions that the cases ask, of each type at least one, and some of a part of a run.

    The exporter writes no attributes of scopes: none asks for them.
    """
    found: list[dict[str, Any]] = []
    for file in sorted(CASES.glob("*.yaml")):
        if not issubclass(registry.get(file.stem), Probe):
            cases = yaml.safe_load(file.read_text(encoding="utf-8"))
            cases = [case for case in cases if "scope_attributes" not in str(case["assert"])]
            found += [{"type": file.stem} | case["assert"] for case in cases[::every]]
    return [registry.parse_assertion(one) for one in [*found, *SCOPED]]


def compared(server: Any, database: str, clients: Sequence[str], every: int) -> list[Pair]:
    """Write the recordings of some clients into ClickHouse, and ask both stores about them.

    Args:
        server: a `clickhouse_tables.ClickHouseServer`.
        database: with the Collector's tables, empty.
        clients: folders of `RECORDINGS`.
        every: see `questions`.
    """
    server.write([RECORDINGS / name for name in clients], database)
    return asked(server, database, clients, every)


def asked(server: Any, database: str, clients: Sequence[str], every: int) -> list[Pair]:
    """Ask both stores about recordings that are in ClickHouse already; see `compared`."""
    assertions = questions(every)
    client_of: dict[str, str] = {}
    with Session.open() as ours, tempfile.TemporaryDirectory() as copies:
        for folder in [_as_written(name, Path(copies)) for name in clients]:
            client_of |= dict.fromkeys(ours.load_recordings([folder], Grouping()).run_ids, folder.name)
        run_ids = ours.run_ids()
        expected = ours.evaluate(run_ids, assertions)
    with ClickHouseSession.open_at(server.address(database)) as there:
        assert set(there.run_ids()) == set(run_ids)
        found = there.evaluate(run_ids, assertions)
    return [
        Pair(
            client_of[one.run_id], one.run_id, verdict.id, verdict.type, verdict.status.value,
            _said(verdict), _said(twin),
        )
        for one, other in zip(expected, found, strict=True)
        for verdict, twin in _twins(one, other)
    ]  # fmt: skip


def _as_written(client: str, copies: Path) -> Path:
    """Copy the recordings of a client without the flags of spans and the numbers of what they dropped."""
    for path in sorted((RECORDINGS / client).glob("**/*.otlp.jsonl*")):
        copy = copies / path.relative_to(RECORDINGS).with_suffix("" if path.suffix == ".gz" else path.suffix)
        copy.parent.mkdir(parents=True, exist_ok=True)
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        copy.write_bytes(_UNWRITTEN.sub(rb'"\1":0', content))
    return copies / client


def _twins(one: RunResult, other: RunResult) -> Iterable[tuple[Verdict, Verdict]]:
    return zip(one.verdicts, other.verdicts, strict=True)


def _said(verdict: Verdict) -> tuple[object, ...]:
    """Return what a verdict says, apart from how an engine writes numbers as text.

    Rows of `sql` are in no order, and its message shows the first of them.
    """
    spans = {row.span_id for row in verdict.evidence}
    message, actual = verdict.message, str(verdict.actual)
    rows: tuple[object, ...] = ()
    if verdict.type == "sql":
        rows = tuple(sorted(_ROW.findall(actual)))
        message, actual = _ROW.sub("", message), _ROW.sub("", actual)
    return verdict.status, verdict.final, message, verdict.missing, actual, frozenset(spans), rows


def _table(name: str, pairs: Iterable[tuple[str, Pair]]) -> str:
    rows: defaultdict[str, list[Pair]] = defaultdict(list)
    for key, pair in pairs:
        rows[key].append(pair)
    lines = [f"| {name} | runs | verdicts | pass | fail | others | the same |", "|---|---:|---:|---:|---:|---:|---:|"]
    for key, of_key in sorted(rows.items()):
        by_status = Counter(pair.status for pair in of_key)
        passed, failed, same = by_status["pass"], by_status["fail"], sum(pair.same for pair in of_key)
        runs = len({pair.run_id for pair in of_key})
        lines.append(
            f"| {key} | {runs} | {len(of_key):,} | {passed:,} | {failed:,} | {len(of_key) - passed - failed:,} | {same:,} |"
        )
    return "\n".join(lines)


def _page(pairs: Sequence[Pair]) -> str:
    same = sum(pair.same for pair in pairs)
    return f"""# DuckDB and ClickHouse give the same verdicts

Every recording of this repository is written into the tables of the OpenTelemetry Collector's ClickHouse exporter. Then every
assertion case of the tests is asked about every run, once there and once in DuckDB. Two verdicts are the same when status,
finality, message, missing fact, actual value and evidence spans are. Of {len(pairs):,} pairs {same:,} are the same.

`python tests/clickhouse/store_conformance.py --write` makes this page; ClickHouse is its own engine
([chDB](https://clickhouse.com/docs/chdb)) behind ClickHouse's HTTP protocol. Rows of `sql` are compared without order. What the exporter does not
write, and what follows from that, is in [clickhouse.md](clickhouse.md#what-the-exporter-does-not-write).

## By assertion type

{_table("type", ((f"`{pair.type}`", pair) for pair in pairs))}

## By client

{_table("client", ((pair.client, pair) for pair in pairs))}
"""


def main() -> int:
    """Compare everything; return 1 where anything differs."""
    from clickhouse_tables import ClickHouseServer

    with tempfile.TemporaryDirectory() as folder:
        server = ClickHouseServer(Path(folder))
        try:
            server.make_tables("otel")
            pairs = compared(server, "otel", EVERY_CLIENT, 1)
        finally:
            server.stop()
    differing = [pair for pair in pairs if not pair.same]
    for pair in differing:
        sys.stdout.write(f"{pair.run_id} {pair.question}\n  DuckDB      {pair.ours}\n  ClickHouse  {pair.theirs}\n")
    sys.stdout.write(f"{len(pairs)} pairs of verdicts, {len(differing)} differ\n")
    if "--write" in sys.argv[1:]:
        PAGE.write_text(_page(pairs), encoding="utf-8")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
