"""promptfoo and agentevals themselves, and what `import-config` makes of their checks: alike, check by check.

Two of promptfoo's public examples are written anew; a provider plays a recorded run to it, and the imported case replays the same spans.
agentevals judges recorded runs by an eval set.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import clawtrace
from clawtrace.cli.commands.import_config import import_config
from free_port import free_port
from not_run import not_run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "soak"))

import environments  # noqa: E402

pytestmark = pytest.mark.full

PACKAGES = ("promptfoo@0.123.1", "@libsql/linux-x64-gnu@0.5.29")
"""The second is promptfoo's database, which would come with a gigabyte of other optional packages."""
PROGRAM = Path(sys.executable).parent / "clawtrace"

ROOT = "00f067aa0ba902b7"
QUESTION = "Where is order 123?"


def span(number: int, name: str, start: int, end: int, error: str = "", **attributes: object) -> dict[str, Any]:
    """A span of milliseconds `start` to `end`, below the first."""
    values = {
        key.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
        for key, value in attributes.items()
    }
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": ROOT if number == 0 else f"{number:016x}",
        "parentSpanId": "" if number == 0 else ROOT,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(1_795_900_000_000_000_000 + start * 1_000_000),
        "endTimeUnixNano": str(1_795_900_000_000_000_000 + end * 1_000_000),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
        "status": {"code": 2, "message": error} if error else {},
    }


def agent(*calls: tuple[str, dict[str, Any]], answer: str) -> list[dict[str, Any]]:
    """An agent's run: tools one after the other, then the answer."""
    spans = [
        span(0, "invoke_agent support", 0, 1000, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="support")
    ]
    for number, (tool, arguments) in enumerate(calls, 1):
        facts = {"gen_ai__tool__name": tool, "gen_ai__tool__call__id": f"call-{number}"}
        facts |= {"gen_ai__tool__call__arguments": json.dumps(arguments), "gen_ai__tool__call__result": "done"}
        spans.append(
            span(
                number,
                f"execute_tool {tool}",
                number * 100,
                number * 100 + 50,
                gen_ai__operation__name="execute_tool",
                **facts,
            )
        )
    said = [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    chat = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}
    chat |= {"gen_ai__input__messages": json.dumps(asked), "gen_ai__output__messages": json.dumps(said)}
    spans.append(span(99, "chat gpt-4o", 800, 950, **chat))
    spans[-1]["attributes"] += [
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "300"}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "40"}},
    ]
    return spans


def workflow(retrieved: int, took: int, answer: str, error: str = "") -> list[dict[str, Any]]:
    """A workflow without an agent's attributes but for its answer."""
    spans = agent(answer=answer)
    spans[0]["name"] = "rag_agent_workflow"
    spans += [span(n, f"retrieve_document_{n}", n, n + took, error if n == 1 else "") for n in range(1, retrieved + 1)]
    spans += [span(n + 50, f"reasoning_{n}", 600 + n, 620 + n) for n in range(1, 4)]
    return spans


SEARCH = {"order_id": "123", "page": {"size": 5}, "trace": "t-1"}
RUNS = {
    "orders-good": agent(("search_orders", SEARCH), ("compose_reply", {}), answer="Order 123 has shipped."),
    "orders-bad": agent(
        ("compose_reply", {}), ("search_orders", {"order_id": "124", "page": {"size": 500}}), ("Delete_order", {}),
        answer="Sorry, I cannot find it",
    ),
    "workflow-good": workflow(3, 120, "It keeps qubits in superposition."),
    "workflow-bad": workflow(2, 400, "TODO: explain qubits", error="the index is gone"),
}  # fmt: skip


def answer_of(spans: list[dict[str, Any]]) -> str:
    said = next(
        a["value"]["stringValue"] for s in spans for a in s["attributes"] if a["key"] == "gen_ai.output.messages"
    )
    return json.loads(said)[0]["parts"][0]["content"]


def judged_there(config: Path, run: str, folder: Path) -> list[tuple[str, bool]]:
    """What promptfoo says of each check, in the order of its file."""
    try:
        installed = environments.packages("promptfoo", PACKAGES)
    except environments.CannotInstallError as error:
        not_run("promptfoo", str(error))
    port = free_port()
    played = {"traces": str(folder / "run.json"), "port": port, "answer": answer_of(RUNS[run]), "cost": 0.0012}
    written = yaml.safe_load(config.read_text())
    written["providers"] = [{"id": f"file://{HERE / 'promptfoo' / 'provider.mjs'}", "config": played}]
    written["tracing"] = {"enabled": True, "otlp": {"http": {"enabled": True, "port": port, "host": "127.0.0.1"}}}
    (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(written))
    env = os.environ | {
        "PROMPTFOO_CONFIG_DIR": str(folder / "home"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
    program = ["node", str(installed / "node_modules" / "promptfoo" / "dist" / "src" / "main.js")]
    command = [*program, "eval", "-c", "promptfooconfig.yaml", "--no-cache", "-o", "out.json"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert (folder / "out.json").is_file(), done.stdout + done.stderr
    (result,) = json.loads((folder / "out.json").read_text())["results"]["results"]
    return [(one["assertion"]["type"], one["pass"]) for one in result["gradingResult"]["componentResults"]]


def judged_here(config: Path, folder: Path) -> list[tuple[str, bool]]:
    """What clawtrace says of each check after `import-config`: a check passes where all its assertions do."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(PROGRAM), *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout

    said = run("import-config", str(config), "--traces", "run.json", "--suite", "both")
    assert "left out" not in said
    (case,) = (folder / "configs" / "cases").iterdir()
    places = [
        line.split(": ")[0] + line.rpartition(" ")[2]
        for line in (case / "test.yaml").read_text().splitlines()
        if line.startswith("  # ") and ".yaml:" in line
    ]
    run("eval", "--suite", "both", "--report", "json=results.json")
    (judged,) = json.loads((folder / "results.json").read_text())["cases"]
    (results,) = judged["runs"]
    checks: dict[str, list[bool]] = {}
    for place, verdict in zip(places, results["assertions"], strict=True):
        weightless = verdict.get("severity") == "warn"
        checks.setdefault(place, []).append(weightless or verdict["status"] == "pass")
        assert verdict["status"] in ("pass", "fail", "warn"), verdict
    return [(place.rpartition(":")[2], all(passed)) for place, passed in checks.items()]


@pytest.mark.parametrize("run", RUNS)
def test_both_judge_alike(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("node") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"):
        not_run("promptfoo", "no Node.js on Linux, x86-64")
    monkeypatch.setenv("npm_config_omit", "optional")
    monkeypatch.setenv("npm_config_ignore_scripts", "true")
    request: Mapping[str, Any] = {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
                "scopeSpans": [{"scope": {"name": "shop"}, "spans": RUNS[run]}],
            }
        ]
    }
    (tmp_path / "run.json").write_text(json.dumps(request))
    config = HERE / "promptfoo" / f"{run.partition('-')[0]}.yaml"

    there, here = judged_there(config, run, tmp_path), judged_here(config, tmp_path)

    assert [passed for _, passed in here] == [passed for _, passed in there], list(zip(there, here, strict=False))
    assert all(passed for _, passed in there) == run.endswith("good")


EXPECTED = ["search_orders", SEARCH], ["compose_reply", {}]
CALLED: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "as expected": (("search_orders", SEARCH), ("compose_reply", {})),
    "the other way round": (("compose_reply", {}), ("search_orders", SEARCH)),
    "one more between": (("search_orders", SEARCH), ("audit", {}), ("compose_reply", {})),
    "one more before": (("audit", {}), ("search_orders", SEARCH), ("compose_reply", {})),
    "one twice": (("search_orders", SEARCH), ("search_orders", SEARCH), ("compose_reply", {})),
    "one missing": (("search_orders", SEARCH),),
    "another value": (("search_orders", {**SEARCH, "order_id": "124"}), ("compose_reply", {})),
    "an argument more": (("search_orders", {**SEARCH, "force": True}), ("compose_reply", {})),
    "an argument less": (("search_orders", {"order_id": "123"}), ("compose_reply", {})),
    "another case": (("Search_Orders", SEARCH), ("compose_reply", {})),
    "no call": (),
}
MEANT = {"EXACT": {"as expected"}, "IN_ORDER": {"as expected", "one more between", "one more before", "one twice"}}
MEANT["ANY_ORDER"] = MEANT["IN_ORDER"] | {"the other way round"}


@pytest.mark.parametrize("match", MEANT)
def test_agentevals_judges_alike(match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls of one run of an agent, compared with those of an eval set."""
    try:
        program = environments.environment("agentevals", ("agentevals-cli==0.11.0",)) / "venv" / "bin" / "agentevals"
    except environments.CannotInstallError as error:
        not_run("agentevals", str(error))
    monkeypatch.chdir(tmp_path)
    uses = [{"name": name, "args": arguments} for name, arguments in EXPECTED]
    said = {"user_content": {"parts": [{"text": QUESTION}]}, "intermediate_data": {"tool_uses": uses}}
    Path("set.json").write_text(
        json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": "order", "conversation": [said]}]})
    )
    evaluator = {"name": "tool_trajectory_avg_score", "type": "builtin", "threshold": 1, "trajectory_match_type": match}
    Path("eval.yaml").write_text(yaml.safe_dump({"eval_set": "set.json", "evaluators": [evaluator]}))
    found = import_config(Path("eval.yaml"))
    ((assertion, _),) = found.cases[0].assertions
    here: dict[str, str] = {}
    files = []
    for number, (name, calls) in enumerate(CALLED.items(), 1):
        spans = [{**one, "traceId": f"{number:032x}"} for one in agent(*calls, answer="It has shipped.")]
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(
            json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "shop"}, "spans": spans}]}]})
        )
        try:
            here[name] = clawtrace.recorded(files[-1]).check(assertion).status
        except clawtrace.CheckFailedError as failed:
            here[name] = failed.verdicts[0].status
    command = [program, "run", *files, "--config", "eval.yaml", "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    judged = {one["trace_id"]: one["metrics"] for one in json.loads(done.stdout)["traces"]}
    there = {name: judged[f"{number:032x}"][0]["eval_status"] for number, name in enumerate(CALLED, 1)}

    meant = {name: name in MEANT[match] for name in CALLED}
    assert not found.left_out
    assert here == {name: "pass" if passed else "fail" for name, passed in meant.items()}
    assert there == {name: "PASSED" if passed else "FAILED" for name, passed in meant.items()}, done.stderr
