"""Faults in runs: what strikes is counted run by run, and a run in which one did not strike says nothing, loudly."""

from __future__ import annotations

import json
from pathlib import Path

import clawtrace
from clawtrace.model.verdict import Status

ASK = """\
import json, os, subprocess, sys, urllib.error, urllib.request
def post(url, body):
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        return urllib.request.urlopen(asked).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
for name in sys.argv[1:]:
    if name == "model":
        print(post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"model": "m", "messages": []}))
    elif name == "--proxy":
        # As the MCP SDK's client starts a server: with few variables.
        few = {"PATH": os.environ["PATH"], "PYTHONPATH": "SOURCE"}
        order = [sys.executable, "-m", "clawtrace", "mcp-proxy", "--name", "shop", *sys.argv[2:]]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {}}}
        with subprocess.Popen(order, env=few, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
            proxy.stdin.write(json.dumps(call) + "\\n")
            proxy.stdin.flush()
            print(proxy.stdout.readline(), end="")
            proxy.stdin.close()
        break
    elif "CLAWTRACE_RUN_SERVER" not in os.environ:
        print("null")
    else:
        call = {"server": "shop", "method": "tools/call", "params": {"name": name, "arguments": {}}}
        print(post(os.environ["CLAWTRACE_RUN_SERVER"] + "/clawtrace/mcp", {"asked": call}))
"""
SOURCE = str(Path(clawtrace.__file__).parents[1])


def agent(project, *asked: str) -> str:
    """An agent that asks the model, or calls tools through a proxy."""
    return f"'{{{{python}}}}' {project.write('ask.py', ASK.replace('SOURCE', SOURCE))} {' '.join(asked)}"


def results(project, **narrowing):
    return {one.case_id: one for one in project.run("{max_concurrency: 2}", **narrowing).results}


def said(project, case_id: str) -> list[str]:
    (stdout,) = project.root.glob(f"outputs/campaigns/*/*/runs/-/{case_id}/1/stdout")
    return stdout.read_text().splitlines()


def test_each_run_counts_its_own_calls(project):
    """Two runs at the same time: in each the second call of the model fails, and the first of the tool."""
    faults = "faults:\n- {model: {on: 2, status: 503}}\n- {tool: search, on: 1, error: down}\n"
    for case in ("a", "b"):
        project.case(case, agent(project, "search", "search", "model", "model"), faults)
    # The first call of the model is answered, too: no provider is asked here.
    for case in ("a", "b"):
        text = (project.root / f"configs/cases/{case}/test.yaml").read_text()
        project.write(f"configs/cases/{case}/test.yaml", text + "- {model: {on: 1, body: fine}}\n")
    found = results(project)

    assert {one.status for one in found.values()} == {Status.PASS}, found
    for case in ("a", "b"):
        first, *rest = said(project, case)
        assert '"text": "down"' in first
        assert rest == ["null", "fine", "503"]


def test_a_fault_that_did_not_strike_breaks_its_run_alone(project):
    """The run is an error that says which fault, and how often it was called; the others are run."""
    project.case("a", agent(project, "search"), "faults: [{tool: search, on: 2, error: down}]\n")
    project.case("b", agent(project, "search"), "faults: {down: [{tool: search, on: 1, error: down}]}\n")
    found = results(project)

    assert {case: one.status for case, one in found.items()} == {
        "a": Status.ERROR,
        "b": Status.PASS,
        "b-down": Status.PASS,
    }
    assert found["a"].error == (
        "the fault of the tool `search` on call 2 did not strike: it was called 1 time through `clawtrace mcp-proxy`"
    )
    assert said(project, "b-down") != said(project, "b")


def test_a_tool_call_that_was_not_recorded_breaks_the_run(project):
    """The agent gets an error of the tool, and the run is an error with the difference, whatever the agent made of it."""
    project.write(
        "configs/cases/a/a.yaml",
        "clawtrace_cassette: 1\n---\nid: one\nat: '2026-11-28T00:00:00Z'\n"
        "request: {provider: mcp, api: mcp, path: tools/call, model: shop/search, body: {arguments: {query: tea}}}\n"
        "answer: {status: 200, body: {result: {content: [], isError: false}}}\n",
    )
    project.case("a", agent(project, "search"), "cassette: {path: a.yaml}\n")
    (found,) = results(project).values()

    assert '"isError": true' in said(project, "a")[0]
    assert found.status is Status.ERROR
    assert "a request to `shop/search` was not recorded in configs/cases/a/a.yaml" in found.error
    assert "-  arguments:\n-    query: tea\n+  arguments: {}" in found.error


TAPE = (
    "clawtrace_cassette: 1\n---\nid: one\nat: '2026-11-28T00:00:00Z'\n"
    "request: {provider: mcp, api: mcp, path: tools/call, model: shop/%s, body: {arguments: {}}}\n"
    "answer: {status: 200, body: {result: {content: [], isError: false}}}\n"
)


def test_recorded_tools_that_were_called_elsewhere_break_the_run(project):
    """A live server that did what was recorded is an error; another tool than the recorded one is a note."""
    for case, tool in (("a", "search"), ("b", "order")):
        project.write(f"configs/cases/{case}/tape.yaml", TAPE % tool)
        project.case(case, "true", "cassette: {path: tape.yaml}\n")
    found = results(project)

    assert found["a"].status is Status.ERROR
    assert "the trace has calls of `search` that no replay answered" in found["a"].error
    assert found["b"].status is Status.PASS
    assert any("holds calls of MCP servers, and none came" in note for note in found["b"].diagnostics)


def test_a_proxy_with_few_variables_finds_its_run(project):
    """The run above it answers, though the client that started it passed on neither its server nor anything else of it."""
    project.write("configs/cases/a/tape.yaml", TAPE % "search")
    project.case("a", agent(project, "--proxy"), "cassette: {path: tape.yaml}\n")
    (found,) = results(project).values()

    assert json.loads(said(project, "a")[0])["result"] == {"content": [], "isError": False}
    assert found.status is Status.PASS


def test_a_miss_of_a_proxy_with_a_cassette_breaks_the_run(project):
    """The case itself has no cassette, and the agent does not mind the tool's error."""
    tape = project.write("tools.yaml", TAPE % "order")
    project.case("a", agent(project, "--proxy", "--cassette", str(tape)))
    (found,) = results(project).values()

    assert '"isError":true' in said(project, "a")[0]
    assert found.status is Status.ERROR
    assert "a request to `shop/search` was not recorded in" in found.error


def test_a_fault_changes_what_a_run_is(project):
    """A run with other faults is another run: no stored one stands in for it."""
    from clawtrace.campaign.planning.fingerprint import run_parts

    parts = []
    for error in ("down", "gone"):
        project.case("a", "true", f"faults: [{{tool: search, error: {error}}}]\n")
        (planned,) = project.plan().runs
        parts.append(run_parts(planned, {}, {}))

    assert {name for name in parts[0] if parts[0][name] != parts[1][name]} == {"the faults"}
