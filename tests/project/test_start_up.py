"""What one recorded run imports and runs, as a whole process: people wait for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST_FILES = 146
"""Files of clawtrace of which a function or a class body runs: 146 do."""
MOST_FUNCTIONS = 1_494
"""Functions and class bodies of clawtrace that run: 1 491 do, the aim is 1 200."""

COUNT = """
import json, sys, threading

ran = set()

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and frame.f_globals.get("__name__", "").split(".")[0] == "clawtrace" and code.co_name != "<module>":
        ran.add((code.co_filename, code.co_qualname))

threading.setprofile(note)
sys.setprofile(note)
from clawtrace.cli.main import cli

cli.main(sys.argv[2:], standalone_mode=False)
sys.setprofile(None)
threading.setprofile(None)
with open(sys.argv[1], "w") as file:
    json.dump({"files": len({name for name, _ in ran}), "functions": len(ran), "modules": sorted(sys.modules)}, file)
"""


def counted(folder: Path, assertions: str, **attributes: object) -> dict:
    """Judge a recording of one span; return what ran, as the program above writes it."""
    kinds = {str: "stringValue", int: "intValue"}
    said = [{"key": key.replace("__", "."), "value": {kinds[type(one)]: one}} for key, one in attributes.items()]
    span = {
        "traceId": f"{7:032x}", "spanId": f"{1:016x}", "name": "call", "startTimeUnixNano": str(10**18),
        "endTimeUnixNano": str(10**18 + 10**8), "attributes": said,
    }  # fmt: skip
    spans = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "touched"}, "spans": [span]}]}]}
    (folder / "trace.json").write_text(json.dumps(spans))
    (folder / "assertions.yaml").write_text(f"assertions: [{assertions}]\n")
    command = [sys.executable, "-c", COUNT, "counted.json", "eval", "--traces", "trace.json", "--assertions"]
    done = subprocess.run([*command, "assertions.yaml"], cwd=folder, check=True, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout
    found: dict = json.loads((folder / "counted.json").read_text())
    return found


def test_one_recorded_run_with_one_assertion_passes_through_few_files(tmp_path):
    """What a run does not use, it does not import."""
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "search"}
    found = counted(tmp_path, "{type: tool_sequence, expected: [search]}", **tool)

    assert found["files"] <= MOST_FILES
    assert found["functions"] <= MOST_FUNCTIONS


def test_a_price_loads_no_http_client(tmp_path):
    """The tables of prices are data: nothing that could fetch newer ones is loaded."""
    call = {
        "gen_ai__operation__name": "chat", "gen_ai__provider__name": "openai", "gen_ai__request__model": "gpt-4o",
        "gen_ai__usage__input_tokens": 900, "gen_ai__usage__output_tokens": 20,
    }  # fmt: skip
    found = counted(tmp_path, "{type: trace_cost, max_usd: 1}", **call)

    assert not {"httpx", "httpx2", "asyncio", "genai_prices"} & set(found["modules"])
