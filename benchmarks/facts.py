"""Row facts and run facts: from raw rows in the store to the relations that assertions ask, in spans a second.

    python benchmarks/facts.py [RUNS]

Each run is the recording of `recorded_run.py`: 100 spans, 4 to 9 attributes each. The facts of all runs are computed at
once, in a file. Row facts and run facts are computed in one pass and measured together; the bar for both together follows
from the two bars, 1 / (1 / 200 000 + 1 / 100 000). Memory is that of the whole process at its height.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from recorded_run import trace

from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

BAR = 1 / (1 / 200_000 + 1 / 100_000)


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with tempfile.TemporaryDirectory() as folder:
        recordings = Path(folder, "recordings")
        recordings.mkdir()
        one = json.dumps(trace())
        for number in range(runs):
            text = one.replace(f'"{7:032x}"', f'"{number + 1:032x}"')
            Path(recordings, f"{number:06}.json").write_text(text, encoding="utf-8")
        with Session.open(Path(folder, "store.duckdb")) as session:
            session.load_recordings(sorted(recordings.iterdir()), Grouping("file"))
            run_ids = session.run_ids()
            wall, cpu = time.perf_counter(), time.process_time()
            session.evaluate(run_ids, [])
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    spans = 100 * len(run_ids)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    print(f"row facts and run facts of {len(run_ids)} runs x 100 spans: {wall:.2f} s, {cpu:.2f} s of CPU")
    print(f"  {spans / wall:,.0f} spans/s; {spans / wall / BAR:.2f} x the bar of {BAR:,.0f}; memory {memory:,.0f} MiB")


if __name__ == "__main__":
    main()
