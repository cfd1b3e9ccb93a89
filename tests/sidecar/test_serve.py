"""`clawtrace serve` as a process: shells, other commands, signals, and two that want one store."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exported import export
from running import Running, environment

from clawtrace.errors import QueryError, ReceiverError

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
CHECKS = "assert:\n- tool_was_called: search\n- tool_not_invoked: delete_all\n"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*flags: str) -> Running:
        started.append(Running(tmp_path, *flags))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.mark.smoke
def test_commands_ask_the_service_and_its_store_outlives_it(serve) -> None:
    """`--server` takes the ready file or the address; after SIGTERM the store says the same."""
    running = serve()
    export(f"{running.http}/run/r1", "search")
    running.client.end_run("r1", exit_code=0)
    (running.folder / "checks.yaml").write_text(CHECKS)
    judged = running.clawtrace(
        "eval", "--server", running.ready, "--assertions", "checks.yaml", "--report", "junit=r.xml"
    )
    token = {"CLAWTRACE_SERVER": running.http, "CLAWTRACE_SERVER_TOKEN": running.said["token"]}
    asked = running.clawtrace("query", "SELECT name FROM tool_calls", "--format", "csv", **token)
    listed = running.clawtrace("runs", "list", "--json", **token)
    shown = running.clawtrace("inspect", "--json", **token)
    code, stderr = running.end()
    after = running.clawtrace("eval", "--store", running.said["store"], "--assertions", "checks.yaml")

    assert (judged.returncode, after.returncode) == (0, 0), judged.stderr + after.stderr
    assert 'tests="2" failures="0"' in (running.folder / "r.xml").read_text()
    assert asked.stdout == "name\nsearch\n"
    assert [run["run_id"] for run in json.loads(listed.stdout)] == ["r1"]
    assert json.loads(shown.stdout)["runs"][0]["totals"]["tool_calls"] == 1
    assert (code, stderr) == (0, "asked to stop; storing what was received\nstopped\n")
    assert not running.ready.exists()


def test_runs_are_adopted_and_deleted_through_the_service(serve) -> None:
    running = serve()
    export(running.http, "search", traceparent=f"00-{9:032x}-{9:016x}-01")
    export(f"{running.http}/run/a", "search")
    adopted = running.clawtrace("runs", "adopt", "a", f"{9:032x}", "--server", running.ready)
    listed = running.clawtrace("runs", "list", "--json", "--server", running.ready)
    missed = running.clawtrace("runs", "delete", "a", "b", "--server", running.ready)
    running.client.end_run("a", exit_code=0)
    deleted = running.clawtrace("runs", "delete", "a", "--server", running.ready)
    after = running.clawtrace("runs", "list", "--json", "--server", running.ready)

    assert (adopted.returncode, deleted.returncode) == (0, 0), adopted.stderr + deleted.stderr
    assert [(run["run_id"], run["traces"]) for run in json.loads(listed.stdout)] == [("a", 2)]
    assert (missed.returncode, json.loads(after.stdout)) == (2, []), missed.stderr


def test_runs_are_compared_and_exported_through_the_service(serve) -> None:
    """What is exported reads again as the same run."""
    running = serve()
    for run_id, tools in (("a", ["search"]), ("b", ["search", "search"])):
        export(f"{running.http}/run/{run_id}", *tools)
    compared = running.clawtrace("diff", "a", "b", "--server", running.ready, "--json")
    exported = running.clawtrace("runs", "export", "b", "--server", running.ready, "--out", "b.jsonl")
    read = running.clawtrace(
        "query", "SELECT run_id, n_low FROM run_tools", "--traces", "b.jsonl", "--one-run", "b", "--format", "csv"
    )

    assert compared.returncode == exported.returncode == 0, compared.stderr + exported.stderr
    assert json.loads(compared.stdout)["tools"] == [{"name": "search", "first": 1, "second": 2}]
    assert read.stdout == "run_id,n_low\nb,2\n"


def test_what_is_wrong_for_eval_is_said_where_the_file_is(serve) -> None:
    """A mistake has file and line; a failure is exit 1 with its tree."""
    running = serve()
    export(f"{running.http}/run/r1", "search", "delete_all")
    running.client.end_run("r1", exit_code=0)
    (running.folder / "wrong.yaml").write_text("assert:\n- tool_was_caled: search\n")
    (running.folder / "checks.yaml").write_text(CHECKS)
    wrong = running.clawtrace("eval", "--server", running.ready, "--assertions", "wrong.yaml")
    failed = running.clawtrace("eval", "--server", running.ready, "--assertions", "checks.yaml")
    two = running.clawtrace("eval", "--server", running.ready, "--store", running.said["store"], "--assertions", "x")

    assert wrong.returncode == 2
    assert "wrong.yaml:2:3" in wrong.stderr
    assert failed.returncode == 1
    assert "execute_tool delete_all" in failed.stdout
    assert (two.returncode, "--store and --server are two sources" in two.stderr) == (2, True)


SHELL = """
set -eu
api="$(python3 -c 'import json; print(json.load(open("sidecar.json"))["http"])')/clawtrace/v1"
auth="authorization: Bearer $(python3 -c 'import json; print(json.load(open("sidecar.json"))["token"])')"
curl -sf -X POST -H "$auth" "$api/runs?format=shell" -d '{"case_id": "refund"}' >run.env
( . ./run.env; "$AGENT_PYTHON" agent.py )
. ./run.env
curl -sf -X POST -H "$auth" "$api/runs/$CLAWTRACE_RUN_ID/end" -d '{"exit_code": 0}'
curl -sf -X POST -H "$auth" "$api/evaluate?run_id=$CLAWTRACE_RUN_ID" --data-binary @checks.yaml -D headers -o results.json
exit "$(sed -n 's/^x-clawtrace-exit-code: *\\([0-9]*\\).*/\\1/p' headers)"
"""

AGENT = """
import os, sys
sys.path.insert(0, os.environ["TESTS"])
from exported import export
from running import Running, environment
export(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], *os.environ["TOOLS"].split())
"""


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("tools", "code"), [("search", 0), ("search delete_all", 1), ("", 1)])
def test_a_shell_with_curl_gates_a_build(serve, tools, code) -> None:
    """Announce, run, end, judge: the script's exit code is the verdict's."""
    running = serve()
    (running.folder / "checks.yaml").write_text(CHECKS)
    (running.folder / "agent.py").write_text(AGENT)
    env = environment(AGENT_PYTHON=sys.executable, TESTS=str(HERE), TOOLS=tools)
    done = subprocess.run(["sh", "-c", SHELL], cwd=running.folder, env=env, capture_output=True, text=True, timeout=60)

    assert done.returncode == code, done.stderr
    assert json.loads((running.folder / "results.json").read_text())["cases"][0]["case_id"] == "refund"


def test_it_stops_when_nothing_comes(serve) -> None:
    running = serve("--stop-after-idle", "0.5")
    _, stderr = running.process.communicate(timeout=30)

    assert running.process.returncode == 0
    assert stderr.startswith("nothing came for 0.5 s")
    assert not running.ready.exists()


def test_a_second_one_gets_the_name_of_the_stores_holder(serve) -> None:
    """Two processes never have one store; the first one is not disturbed."""
    running = serve()
    second = running.clawtrace("serve", "--grpc-port", "0", "--http-port", "0")

    assert second.returncode == 4
    assert f"process {running.process.pid} has the store open; waiting 5 s" in second.stderr
    assert f"is open in process {running.process.pid}" in second.stderr
    assert running.client.list_runs() == []


def test_a_port_that_is_taken_is_named(serve) -> None:
    running = serve()
    port = running.http.rpartition(":")[2]
    second = running.clawtrace("serve", "--http-port", port, "--store", "other.duckdb")

    assert second.returncode == 4
    assert f":{port}: Address already in use" in second.stderr
    assert not (running.folder / "other.duckdb").exists()  # or it would be read as the newest store


def test_what_was_acknowledged_outlives_a_kill(serve) -> None:
    """SIGKILL between two requests: the next service on the store has every span, and ends the run."""
    running = serve()
    running.client.begin_run(run_id="r1")
    export(f"{running.http}/run/r1", "search")
    running.end(signal.SIGKILL)
    again = serve()
    ended = again.client.end_run("r1", exit_code=0)

    assert (ended["complete"], ended["spans"]) == (True, 2)


def test_a_store_that_is_deleted_meanwhile_is_said_to_be(serve) -> None:
    """Nothing is acknowledged into a file that nothing can open again, and nothing read; where it comes back, all goes on."""
    running = serve()
    export(f"{running.http}/run/r1", "search")
    folder = running.folder / "outputs" / "serve"
    moved = folder.rename(running.folder / "moved")
    sending = threading.Thread(target=export, args=(f"{running.http}/run/r2", "search"))
    sending.start()
    assert "was deleted, moved or replaced" in running.process.stderr.readline()
    with pytest.raises(ReceiverError, match="was deleted, moved or replaced"):
        running.client.list_runs()
    moved.rename(folder)
    sending.join(60)  # its exporter sends again until it is acknowledged
    assert {run["run_id"] for run in running.client.list_runs()} == {"r1", "r2"}

    store = folder / "spans.duckdb"
    shutil.copy(store, running.folder / "copy")
    (running.folder / "copy").rename(store)
    code, said = running.end()
    assert (code, "nanobind" in said) == (4, False), said
    assert "was deleted, moved or replaced" in said.splitlines()[-1]


def test_what_is_kept_is_set_by_flag_and_changed_by_sighup(serve) -> None:
    """A store with more is made smaller before anything is answered; SIGHUP reads the limits of clawtrace.yaml again."""
    running = serve()
    for run_id in "abc":
        export(f"{running.http}/run/{run_id}", "search")
        running.client.end_run(run_id, exit_code=0)
    running.end()
    again = serve("--keep-runs", "2")
    assert [run["run_id"] for run in again.client.list_runs()] == ["b", "c"]
    again.end()

    last = serve()
    (last.folder / "clawtrace.yaml").write_text("serve: {keep: {runs: 1}}\n")
    last.process.send_signal(signal.SIGHUP)
    request = urllib.request.Request(f"{last.http}/clawtrace/v1/events?after=0")
    request.add_header("authorization", f"Bearer {last.said['token']}")
    with urllib.request.urlopen(request, timeout=30) as events:
        event = json.loads(events.readline())
    assert (event["event"], event["run_id"], event["why"]) == ("run.deleted", "b", "count")
    assert [run["run_id"] for run in last.client.list_runs()] == ["c"]


@pytest.mark.skipif(sys.platform != "linux", reason="the bound is Linux's")
def test_one_long_text_is_bounded_by_the_operating_system(serve) -> None:
    """One text of 4 GB, in a query or in an assertion of a request, is refused; spans come in, and others are answered."""
    running = serve()
    export(f"{running.http}/run/r1", "search")
    running.client.query("SELECT 1")
    before = grown(running.process.pid)
    long = "SELECT length(repeat('x', 4000000000)) AS n"
    with pytest.raises(QueryError, match="Out of Memory"):
        running.client.query(long)
    of_a_run = f"{long} FROM runs WHERE run_id = :run_id"
    written = json.dumps({"assert": [{"sql": {"select": of_a_run, "expect": [{"n": 1}]}}]})
    judged = running.client.evaluate(written)
    export(f"{running.http}/run/r2", "search")

    assert judged["exit_code"] == 4
    assert grown(running.process.pid) - before < 1 << 20
    assert [run["run_id"] for run in running.client.list_runs()] == ["r1", "r2"]
    gathered = "SELECT count(*) AS n FROM (SELECT DISTINCT range FROM range(3000000))"
    assert running.client.query(gathered)["rows"] == [[3_000_000]]


def grown(pid: int) -> int:
    """Return the most memory that a process ever had, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def test_ctrl_c_stops_it_as_sigterm_does(serve) -> None:
    assert serve().end(signal.SIGINT) == (0, "asked to stop; storing what was received\nstopped\n")


def test_a_second_sigterm_changes_nothing(serve) -> None:
    """The command `timeout` sends it to the process, and then to the group of the process."""
    running = serve()
    running.process.terminate()
    assert running.process.stderr.readline() == "asked to stop; storing what was received\n"
    assert running.end() == (0, "stopped\n")


def test_a_suite_is_judged_where_it_runs_and_its_tee_reaches_the_service(serve) -> None:
    """With a tee the service has the runs of a suite under their ids, and judges them alike."""
    running = serve()
    agent = json.dumps([sys.executable, str(HERE.parent / "cli" / "agent.py"), "search"])
    files = {
        "clawtrace.yaml": f"receiver: {{tee: {{endpoint: '{running.http}'}}}}\n",
        "configs/cases/one/test.yaml": "schema_version: 1\ncase_id: one\ntitle: One\ntags: [all]\ninput: {messages: []}\n"
        f"runner: {{type: command, command: {agent}}}\n{CHECKS}",
        "configs/suites/all.yaml": "schema_version: 1\nsuite_id: all\ntitle: All\ncase_selection: {include_tags: [all]}\n",
    }
    for name, text in files.items():
        path = running.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    judged = running.clawtrace("eval", "--suite", "all", "--report", "json=r.json")
    assert judged.returncode == 0, judged.stderr
    here = json.loads((running.folder / "r.json").read_text())["cases"][0]["runs"]
    run_ids = [run["run_id"] for run in here]
    running.client.end_run(run_ids[0], exit_code=0)
    there = running.client.evaluate(CHECKS)["cases"][0]["runs"]

    assert [(run["run_id"], run["status"]) for run in there] == [(run_ids[0], "pass")]
    assert [run["status"] for run in here] == ["pass"]
