"""An agent that exports nothing and writes a plain log, as gateways do."""

import sys
from pathlib import Path

run_id = sys.argv[1]
Path("agent.log").write_text(
    f"2026-11-20T10:00:00Z run_id={run_id} tool=memory.search agent=librarian status=ok\n"
    f"2026-11-20T10:00:01Z run_id={run_id} token_usage input=1000 output=500 total=1500\n"
)
sys.stdout.write("Found three notes.\n")
