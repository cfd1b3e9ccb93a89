"""Recordings of one trace, for the page."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["HOSTILE", "Evaluate", "agent_and_tools", "changed", "recorded"]

Evaluate = Callable[..., str]
"""Judges recordings by an assertions file; returns the address of the page."""

HOSTILE = '</script><script>document.title="taken"</script><img src=x onerror="document.title=\'taken\'">'


def recorded(path: Path, spans: list[dict[str, Any]], trace: str = "") -> Path:
    """Write a recording of one trace; each span is name, milliseconds from and to, and attributes."""
    start = 1_764_000_000_000_000_000
    written = [
        {
            "traceId": (trace.encode().hex() or "1").rjust(32, "0"),
            "spanId": f"{number:016x}",
            "parentSpanId": f"{1:016x}" if number > 1 else "",
            "name": span["name"],
            "startTimeUnixNano": str(start + int(span["at"] * 1e6)),
            "endTimeUnixNano": str(start + int(span["to"] * 1e6)),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in span["attributes"].items()],
        }
        for number, span in enumerate(spans, start=1)
    ]
    scope = {"scope": {"name": "test"}, "spans": written}
    path.write_text(json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}) + "\n")
    return path


def agent_and_tools(names: list[str], **attributes: str) -> list[dict[str, Any]]:
    """Return an agent that calls these tools, one after the other."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "boss"}
    tool = {"gen_ai.operation.name": "execute_tool", **attributes}
    return [
        {"name": "invoke_agent boss", "at": 0, "to": 10 * len(names) + 1, "attributes": agent},
        *(
            {"name": f"tool {n}", "at": 10 * n, "to": 10 * n + 8, "attributes": {**tool, "gen_ai.tool.name": name}}
            for n, name in enumerate(names)
        ),
    ]


def changed(address: str, change: Callable[[Any], None], part: str = 'id="results"') -> str:
    """Change a part of the data that a page holds; return its address."""
    file = Path(address.removeprefix("file://"))
    before, packed, after = re.split(rf"(?<={part}>)([^<]*)", file.read_text("utf-8"), maxsplit=1)
    data = json.loads(zlib.decompress(base64.b64decode(packed)))
    change(data)
    again = base64.b64encode(zlib.compress(json.dumps(data).encode())).decode()
    file.write_text(before + again + after, "utf-8")
    return address
