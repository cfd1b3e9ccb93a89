"""Truth: what each peer says of recordings of real agents, whose `truth.json` the model's and the tools' own logs wrote.

Asked are five numbers of each recording: tool calls, model calls, input tokens, output tokens and the models. A peer that finds
neither model calls nor tool calls in a recording, or no tokens, does not know them: that is unknown and not wrong.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from ingest import http_sender
from judging import spent
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from peers import ROOT, Peer, command
from receiving import wait_for
from serving import Served

SCENARIOS = ("one_tool", "parallel_tools", "tool_error", "streaming", "cached_tokens")
STATES = ("true", "unknown", "wrong")
FACTS = ("tool calls", "model calls", "input tokens", "output tokens", "models")

Said = Mapping[str, Any]


def recordings() -> list[Path]:
    """Return the folders of these scenarios, of all clients, whose truth judges all that is asked."""
    found = (ROOT / "tests" / "recordings").glob("*/*/truth.json")
    return sorted(
        path.parent for path in found
        if path.parent.name in SCENARIOS and (path.parent / "traces.otlp.jsonl").exists()
        and not json.loads(path.read_text(encoding="utf-8")).get("unjudged")
    )  # fmt: skip


def happened(recording: Path) -> dict[str, Any]:
    """Return what is true of a recording; of the models the names that were asked for, and those that answered."""
    said = json.loads((recording / "truth.json").read_text(encoding="utf-8"))
    calls = said["llm_calls"]
    return {
        "tool calls": len(said["tools"]),
        "model calls": len(calls),
        "input tokens": sum(call["input_tokens"] or 0 for call in calls),
        "output tokens": sum(call["output_tokens"] or 0 for call in calls),
        "models": [{call["model"] for call in calls}, {call["response_model"] or call["model"] for call in calls}],
    }


def requests(recording: Path) -> list[dict[str, Any]]:
    """Return the requests of a recording."""
    lines = (recording / "traces.otlp.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def spans(recording: Path) -> Iterable[dict[str, Any]]:
    """Yield the spans of a recording."""
    for request in requests(recording):
        for group in request.get("resourceSpans", ()):
            for scope in group.get("scopeSpans", ()):
                yield from scope.get("spans", ())


def linked(found: list[Path], folder: Path) -> dict[str, Path]:
    """Link the recordings in `folder`, each with a different name; return the recordings by name."""
    named = {f"{recording.parent.name}-{recording.name}.otlp.jsonl": recording for recording in found}
    for name, recording in named.items():
        (folder / name).symlink_to(recording / "traces.otlp.jsonl")
    return named


def of_clawtrace(peer: Peer, found: list[Path], folder: Path) -> dict[Path, Said]:
    """Ask `clawtrace inspect`."""
    said, named = {}, linked(found, folder)
    inspect = ("clawtrace", "inspect", *named, "--run-per-file", "--json")
    for run in json.loads(spent(command(peer, inspect), folder)[1])["runs"]:
        totals, calls = run["totals"], run["llm_calls"]
        models = None if calls is None else {call["response_model"] for call in calls}
        (recording,) = (path for name, path in named.items() if run["run_id"] in (name, name.split(".otlp")[0]))
        said[recording] = {
            "tool calls": totals["tool_calls"],
            "model calls": totals["llm_calls"],
            "input tokens": totals["input_tokens"],
            "output tokens": totals["output_tokens"],
            "models": None if not models or None in models else models,
        }
    return said


def of_agentevals(peer: Peer, found: list[Path], folder: Path) -> dict[Path, Said]:
    """Ask `agentevals run`, which prints what it read of each trace. It ends with 1, as nothing was expected of them."""
    said, named = {}, linked(found, folder)
    run = ("agentevals", "run", "-o", "json", *named)
    traces = json.loads(spent(command(peer, run), folder, (0, 1))[1])["traces"]
    for recording in found:
        ids = {span["traceId"] for span in spans(recording)}
        read = [one.get("performance_metrics") for one in traces if one["trace_id"] in ids]
        read = [one for one in read if one is not None]
        said[recording] = numbers(
            sum(one["counts"]["tool_calls"] for one in read),
            sum(one["counts"]["llm_calls"] for one in read),
            sum(one["tokens"]["total_prompt"] for one in read),
            sum(one["tokens"]["total_output"] for one in read),
            {model for one in read for model in one["models"]},
        )
    return said


def by_hand(_: Peer, found: list[Path], __: Path) -> dict[Path, Said]:
    """Count spans by the attributes of OpenTelemetry's conventions, as one would in a test."""
    said = {}
    for recording in found:
        read = [
            {one["key"]: next(iter(one["value"].values()), None) for one in span.get("attributes", ())}
            for span in spans(recording)
        ]
        calls = [
            one for one in read if one.get("gen_ai.operation.name") in ("chat", "text_completion", "generate_content")
        ]
        said[recording] = numbers(
            sum(one.get("gen_ai.operation.name") == "execute_tool" for one in read), len(calls),
            sum(int(one.get("gen_ai.usage.input_tokens", 0)) for one in calls),
            sum(int(one.get("gen_ai.usage.output_tokens", 0)) for one in calls),
            {one["gen_ai.response.model"] for one in calls if "gen_ai.response.model" in one},
        )  # fmt: skip
    return said


def numbers(tools: int, calls: int, tokens_in: int, tokens_out: int, models: set[str]) -> Said:
    """Return what was read; what was found nothing of is unknown."""
    counted = tools + calls > 0
    return {
        "tool calls": tools if counted else None,
        "model calls": calls if counted else None,
        "input tokens": tokens_in or None,
        "output tokens": tokens_out or None,
        "models": models or None,
    }


PHOENIX = """
SELECT sum(span_kind = 'TOOL'), sum(span_kind = 'LLM'), sum(iif(parent_id IS NULL, cumulative_llm_token_count_prompt, 0)),
       sum(iif(parent_id IS NULL, cumulative_llm_token_count_completion, 0)),
       json_group_array(DISTINCT json_extract(attributes, '$.llm.model_name'))
FROM spans WHERE span_id IN ({})
"""
"""What Phoenix shows of a trace: kinds of spans, tokens of the root, models."""
MLFLOW = """
import json, mlflow
found = mlflow.search_traces(locations=["0"], return_type="list", max_results=5000)
read = {}
for trace in found:
    kinds, used = [span.span_type for span in trace.data.spans], trace.info.token_usage or {}
    models = {span.model_name for span in trace.data.spans if span.model_name}
    tools, calls = kinds.count("TOOL"), kinds.count("LLM") + kinds.count("CHAT_MODEL")
    read[trace.info.trace_id] = tools, calls, used.get("input_tokens", 0), used.get("output_tokens", 0), list(models)
print(json.dumps(read))
"""
"""Asks MLflow's client, run in its environment: what its spans mean is decided when they are read."""


def of_server(server: Served, found: list[Path]) -> dict[Path, Said]:
    """Send the recordings to a server and ask what it made of them."""
    there = server.count()
    send = http_sender(f"http://{server.address}", "application/x-protobuf", server.server.headers)
    for recording in found:
        for request in requests(recording):
            for group in request.get("resourceSpans", ()):
                for scope in group.get("scopeSpans", ()):
                    for span in scope.get("spans", ()):
                        for one in (span, *span.get("links", ())):
                            ids = {key: one[key] for key in ("traceId", "spanId", "parentSpanId") if one.get(key)}
                            one |= {key: base64.b64encode(bytes.fromhex(value)).decode() for key, value in ids.items()}
            send(ParseDict(request, ExportTraceServiceRequest(), ignore_unknown_fields=True).SerializeToString())
    ids = {recording: {span["spanId"] for span in spans(recording)} for recording in found}
    wait_for(server, there + len(set().union(*ids.values())))
    if server.peer.name == "phoenix":
        listed = {recording: ", ".join(f"'{span_id}'" for span_id in ids[recording]) for recording in found}
        rows = {recording: server.rows(PHOENIX.format(listed[recording])) for recording in found}
        rows = {recording: [(*row[:4], json.loads(row[4])) for row in of_one] for recording, of_one in rows.items()}
    else:
        uri = {"MLFLOW_TRACKING_URI": f"http://{server.address}", "MLFLOW_DISABLE_TELEMETRY": "true"}
        text = spent(command(server.peer, ("python", "-c", "{script}"), script=MLFLOW), server.folder, more=uri)[1]
        read = json.loads(text.strip().splitlines()[-1])
        traces = {recording: {f"tr-{span['traceId']}" for span in spans(recording)} for recording in found}
        rows = {recording: [read[one] for one in traces[recording] if one in read] for recording in found}
    return {
        recording: numbers(
            *(sum(int(row[place] or 0) for row in of_one) for place in range(4)),
            {model for row in of_one for model in row[4] if model},
        )
        for recording, of_one in rows.items()
    }


SERVED = ("phoenix", "mlflow")
READERS: dict[str, Callable[[Peer, list[Path], Path], dict[Path, Said]]] = {
    "clawtrace": of_clawtrace,
    "agentevals": of_agentevals,
    "in-memory": by_hand,
}


def same_models(said: set[str] | None, asked: set[str], answered: set[str]) -> bool:
    """Return whether all models are named, by either name, with or without their provider, and no other."""
    named = {model.rpartition("/")[2] for model in said or ()}
    return named <= asked | answered and (asked <= named or answered <= named)


def compared(said: Mapping[Path, Said]) -> dict[str, list[float]]:
    """Return how many facts are true, unknown and wrong, and which are wrong most."""
    states: Counter[str] = Counter()
    for recording, facts in said.items():
        true = happened(recording)
        for fact in FACTS:
            value, expected = facts[fact], true[fact]
            right = same_models(value, *expected) if fact == "models" else value == expected
            states["unknown" if value is None else "true" if right else "wrong"] += 1
    return {f"facts of {len(said)} recordings: {state} (%)": [100 * states[state] / states.total()] for state in STATES}
