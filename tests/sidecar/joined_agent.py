"""An agent without a dependency: it calls the tools that its arguments name, and exports them as OTLP JSON.

Further arguments: `exit=N`; `silent` exports nothing; `kill=PID` kills a process before that; `wait=FIFO` then waits until another
process opens that pipe; `file=NAME` writes a file.
"""

import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path

words = dict(word.partition("=")[::2] for word in sys.argv[1:])
tools = [word for word, value in words.items() if not value and word != "silent"]
agent = os.urandom(8).hex()
_, trace_id, sent, _ = os.environ["TRACEPARENT"].split("-")
now = time.time_ns()


def span(name: str, span_id: str, parent: str, **attributes: str) -> dict[str, object]:
    """Return one span; names of attributes lack their `gen_ai.`."""
    found = [
        {"key": f"gen_ai.{key.replace('__', '.')}", "value": {"stringValue": value}}
        for key, value in attributes.items()
    ]
    return {
        "traceId": trace_id, "spanId": span_id, "parentSpanId": parent, "name": name, "attributes": found,
        "startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 1000),
    }  # fmt: skip


def export() -> None:
    """Send every span, and return when they are stored."""
    spans = [span("invoke_agent helper", agent, sent, operation__name="invoke_agent", agent__name="helper")]
    for tool in tools:
        said = {"operation__name": "execute_tool", "tool__name": tool, "tool__call__result": os.environ.get("SAID", "")}
        spans.append(span(f"execute_tool {tool}", os.urandom(8).hex(), agent, **said))
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    pairs = os.environ["OTEL_EXPORTER_OTLP_HEADERS"].split(",")
    headers = {"content-type": "application/json"} | dict(pair.split("=", 1) for pair in pairs)
    address = f"{os.environ['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces"
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=30):
        pass


if "kill" in words:
    os.kill(int(words["kill"]), signal.SIGKILL)
if "wait" in words:
    Path(words["wait"]).read_text()
if "file" in words:
    Path(words["file"]).touch()
if "silent" not in words:
    try:
        export()
    except OSError as error:
        print(error, file=sys.stderr)
print("done")
sys.exit(int(words.get("exit", "0")))
