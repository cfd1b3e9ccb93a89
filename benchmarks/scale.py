"""A store of many spans in one file: filling, judging, one run in detail, and deleting by age.

    python benchmarks/scale.py [RUNS]

Each run is the recording of `recorded_run.py`: 100 spans, so that 100 000 runs are 10 million spans. They come in as serialised
requests of one run each, without sockets (`ingest.py` measures these). The facts of all runs and twenty assertions over them
are computed in parts of 2 000 runs, as `clawtrace serve` computes them. The older half is deleted by the limit `hours`.
"""

from __future__ import annotations

import base64
import json
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from recorded_run import trace
from twenty_assertions import QUESTIONS

from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.session.session import Session
from clawtrace.store.retention import Keep

_AT_ONCE = 2_000
_CLIENTS = 8
_INSPECTED = 5
_NS_AN_HOUR = 3_600_000_000_000


def request() -> bytes:
    """A run as a serialised request; its trace id is 16 bytes of 7."""
    text = json.dumps(trace()).replace(f'"{7:032x}"', '"BwcHBwcHBwcHBwcHBwcHBw=="')
    for number in range(1, 101):
        text = text.replace(f'"{number:016x}"', json.dumps(base64.b64encode(number.to_bytes(8)).decode()))
    return Parse(text, ExportTraceServiceRequest()).SerializeToString()


def parts(things: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """As many at a time as the service judges and deletes."""
    return (things[start : start + _AT_ONCE] for start in range(0, len(things), _AT_ONCE))


def timed(what: Callable[[], object]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    one, spans = request(), 100 * runs
    assertions = [parse_assertion(question) for question in QUESTIONS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.duckdb")
        half = 0

        with Session.open(path) as session:

            def take(number: int) -> None:
                run_id, now = f"run-{number:06}", time.time_ns()
                session.take(run_id, one.replace(bytes([7] * 16), (number + 1).to_bytes(16)))
                session.put_record(
                    RunRecord(
                        run_id,
                        run_id,
                        agent_exit_code=0,
                        run_status="success",
                        closed_by=ClosedBy.END_RUN,
                        ended_ns=now,
                    )
                )

            def fill() -> None:
                nonlocal half
                with ThreadPoolExecutor(_CLIENTS) as clients:
                    list(clients.map(take, range(runs // 2)))
                    half = time.time_ns()
                    list(clients.map(take, range(runs // 2, runs)))

            filled = timed(fill)
            run_ids = session.run_ids()
            counted: Counter[str] = Counter()

            def judge() -> None:
                for part in parts(run_ids):
                    for result in session.evaluate(part, assertions):
                        counted[str(result.status)] += 1

            judged = timed(judge)
            again = timed(judge)
        stored = path.stat().st_size
        with Session.open(path) as session:
            looked_at = [run_ids[place * len(run_ids) // _INSPECTED] for place in range(_INSPECTED)]
            inspected = statistics.median(
                timed(lambda run_id=run_id: session.inspect([run_id])) for run_id in looked_at
            )
            found = session.surplus(Keep(hours=(time.time_ns() - half) / _NS_AN_HOUR))

            def delete() -> None:
                for part in parts(found):
                    session.delete_runs([one.run_id for one in part], "age", strays_before_ns=part[-1].last_ns)

            deleted = timed(delete)
            left = len(session.run_ids())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    print(f"{len(run_ids):,} runs x 100 spans; {stored / spans:,.0f} bytes a span in the file ({stored / 1e9:.2f} GB)")
    print(f"  stored: {filled:,.0f} s, {spans / filled:,.0f} spans/s")
    print(
        f"  facts and {len(QUESTIONS)} assertions: {judged:,.0f} s; from stored facts: {again:,.0f} s; {dict(counted)}"
    )
    print(f"  one run in detail, after opening: {inspected:.2f} s")
    print(f"  {len(found):,} runs deleted by age: {deleted:,.0f} s; {left:,} left")
    print(f"  memory at its height: {memory:,.0f} MiB")


if __name__ == "__main__":
    main()
