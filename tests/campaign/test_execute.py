"""Every planned run has a result or a reason why not; runs share nothing (spec: config.md §3)."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import threading

import pytest

from clawtrace.campaign.results.stored import campaign_lock
from clawtrace.campaign.running.execute import execute
from clawtrace.errors import ConfigError, StoreError, StoreLockedError
from clawtrace.model.verdict import Status

pytestmark = pytest.mark.full


def statuses(result) -> dict[str, Status]:
    return {found.case_id: found.status for found in result.results}


def reasons(result) -> dict[str, str]:
    return {left.case_id: left.reason for left in result.not_run}


class TestOutcomes:
    @pytest.mark.smoke
    def test_a_run_is_announced_run_closed_and_judged(self, project):
        """The record says how the agent ended, with the ids that its environment carried."""
        project.case("a", 'echo "$TRACEPARENT"; exit 3')
        result = project.run()
        (found,) = result.results
        opened, (closed, gone) = project.session.opened[found.run_id], project.session.closed[found.run_id]

        assert (opened.started_ns, len(opened.trace_id), len(opened.parent_span_id)) == (None, 32, 16)
        assert closed.final_output == f"00-{opened.trace_id}-{opened.parent_span_id}-01"
        assert (closed.agent_exit_code, closed.run_status, gone) == (3, "failed", True)
        assert closed.ended_ns > closed.started_ns
        assert (found.case_id, found.model_id, found.repetition, found.status) == ("a", None, 1, Status.FAIL)
        assert [assertion.id for assertion in project.session.asked[found.run_id]] == [
            "no_span_errors",
            "agent_ended_well",
        ]

    def test_events_tell_the_progress(self, project):
        """Each run starts, is judged and finishes, after the plan is known."""
        project.case("a", "exit 0")
        project.run()

        assert [name for name, *_ in project.heard.events] == ["planned", "started", "judging", "finished"]

    @pytest.mark.smoke
    def test_results_are_in_the_order_of_the_plan(self, project):
        """Whichever run ends first, the report's order is the plan's."""
        project.case("a", "sleep 0.5")
        project.case("b", "exit 0")
        result = project.run("{max_concurrency: 2}")

        assert [found.case_id for found in result.results] == ["a", "b"]

    def test_assertions_know_their_run(self, project):
        """Templates in assertions are filled in with the run's own values."""
        more = "  - {type: tool_not_invoked, tool: 'literal:{{model_id}}/{{workspace}}'}\n"
        project.case("a", "exit 0")
        case = project.root / "configs/cases/a/test.yaml"
        case.write_text(case.read_text().replace("assertions: [{type: no_span_errors}]\n", "assertions:\n" + more))
        plan = project.plan(listed="[{model_id: big}]")
        result = execute(plan, project.session, project.env)
        (assertion,) = project.session.asked[result.results[0].run_id]

        assert assertion.tool.text == f"literal:big/{plan.folder}/runs/big/a/1/workspace"


class TestSideBySide:
    def test_runs_overlap(self, project):
        """With `max_concurrency: 2` two agents are alive at once: each waits for the other's greeting."""
        for name in ("ab", "ba"):
            os.mkfifo(project.root / name)
        project.case("a", f"echo hi > {project.root}/ab; cat {project.root}/ba")
        project.case("b", f"cat {project.root}/ab; echo ho > {project.root}/ba")
        result = project.run("{max_concurrency: 2}")

        assert statuses(result) == {"a": Status.PASS, "b": Status.PASS}

    def test_repetitions_share_nothing(self, project):
        """Each repetition has a separate workspace, trace id and streams."""
        project.case("a", "ls; echo spoiled > left-behind")
        result = project.run("{run_repetitions: 3, max_concurrency: 3}")
        records = [project.session.closed[found.run_id][0] for found in result.results]

        assert [found.repetition for found in result.results] == [1, 2, 3]
        assert [record.final_output for record in records] == [None, None, None]
        assert len({record.trace_id for record in records}) == 3
        assert len({record.workspace for record in records}) == 3


class TestStops:
    @pytest.mark.smoke
    def test_fail_fast_leaves_the_rest_out(self, project):
        """After the first failed case nothing new starts, and the rest is reported as not run."""
        project.case("a", "exit 0")
        project.case("b", "exit 1")
        project.case("c", "exit 0")
        result = project.run("{fail_fast: true}")

        assert statuses(result) == {"a": Status.PASS, "b": Status.FAIL}
        assert list(reasons(result)) == ["c"]
        assert reasons(result)["c"].endswith("failed before (`fail_fast`)")
        assert project.heard.events[-1][0] == "left_out"

    def test_fail_fast_waits_until_a_rate_is_out_of_reach(self, project):
        """A repetition that failed is no failed case yet where three of five must pass."""
        project.case("a", 'echo >> "$COUNT"; test $(wc -l < "$COUNT") -gt 3')
        case = project.root / "configs/cases/a/test.yaml"
        count = project.root / "count"
        text = case.read_text().replace("[{type: no_span_errors}]", "[{type: no_span_errors, min_pass_rate: 0.6}]")
        case.write_text(text.replace("  grace_seconds: 1", f"  grace_seconds: 1\n  env: {{COUNT: {count}}}"))
        project.case("b", "exit 0")
        result = project.run("{fail_fast: true, run_repetitions: 5}")

        assert [(found.repetition, found.status) for found in result.results] == [
            (number, Status.FAIL) for number in (1, 2, 3)
        ]
        assert {left.case_id for left in result.not_run} == {"a", "b"}

    def test_a_runner_error_stops_unless_configured_otherwise(self, project):
        """A run whose agent cannot be run is an error with its reason; `stop_on_runner_error` decides on the rest."""
        project.case("a", "exit 0", more="")
        case = project.root / "configs/cases/a/test.yaml"
        case.write_text(
            case.read_text().replace("grace_seconds: 1", "grace_seconds: 1\n  setup: ['echo broken; exit 9']")
        )
        project.case("b", "exit 0")
        stopped, went_on = project.run(), project.run("{stop_on_runner_error: false}")

        assert statuses(stopped) == {"a": Status.ERROR}
        assert stopped.results[0].error == "setup command 1 ended with exit code 9: broken"
        assert (stopped.results[0].run_status, stopped.results[0].has_trace) == ("invalid", False)
        assert list(reasons(stopped)) == ["b"]
        assert statuses(went_on) == {"a": Status.ERROR, "b": Status.PASS}

    def test_a_missing_program_is_known_before_anything_starts(self, project):
        """No agent is started when another case's program is missing, and the message says what to install."""
        project.case("a", f"touch {project.root}/started")
        project.case("b", "exit 0")
        case = project.root / "configs/cases/b/test.yaml"
        case.write_text(case.read_text().replace("command: |\n    exit 0", "command: [no-such-agent]"))
        result = project.run()

        assert not (project.root / "started").exists()
        assert statuses(result) == {"b": Status.ERROR}
        assert result.results[0].error.startswith("the program `no-such-agent` is not on PATH")
        assert "nothing was started" in reasons(result)["a"]

    def test_a_broken_store_stops_the_campaign(self, project):
        """When the store fails, its run is an error and nothing new starts."""
        project.case("a", "exit 0")
        project.case("b", "exit 0")

        def fail(*_, **__):
            raise StoreError("the disk is full")

        project.session.evaluate = fail
        result = project.run()

        assert [(found.status, found.error) for found in result.results] == [(Status.ERROR, "the disk is full")]
        assert list(reasons(result)) == ["b"]

    def test_ctrl_c_ends_agents_and_keeps_what_is_there(self, project):
        """After Ctrl-C finished runs keep their verdicts, the agent at work is ended, the rest is not run."""
        gate = project.root / "gate"
        os.mkfifo(gate)
        project.case("a", "exit 0")
        project.case("b", f"echo ready > {gate}; sleep 60")
        project.case("c", "exit 0")

        def interrupt() -> None:
            gate.read_text()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        result = project.run()

        assert result.interrupted
        assert statuses(result) == {"a": Status.PASS}
        assert reasons(result) == {"b": "interrupted while its agent was running", "c": "interrupted"}
        assert ("interrupted", 1) in project.heard.events
        assert len(project.session.closed) == 2


class TestFiles:
    def test_the_layout(self, project):
        """Manifest, run and workspace changes are written where they belong, without absolute paths."""
        project.case("a", "echo out; echo err >&2; echo x > made", more="metadata: {owner: ann}\n")
        result = project.run()
        run = result.plan.folder / "runs/-/a/1"
        manifest = json.loads((result.plan.folder / "manifest.json").read_text())
        kept = json.loads((run / "run.json").read_text())

        assert manifest["cases"]["a"] == {
            "title": "The case a",
            "description": "",
            "tags": [],
            "metadata": {"owner": "ann"},
        }
        assert (run / "stdout").read_text(), (run / "stderr").read_text() == ("out\n", "err\n")
        assert json.loads((run / "workspace.diff").read_text())["created"] == ["made"]
        assert (kept["run_status"], kept["exit_code"], kept["repetition"]) == ("success", 0, 1)
        assert (
            str(project.root) not in (result.plan.folder / "manifest.json").read_text() + (run / "run.json").read_text()
        )
        assert not [path for path in result.plan.folder.rglob(".*") if path.is_file()]

    def test_the_workspace_before_and_after(self, project):
        """`workspace.diff` says which files were there, and SHA-256 of what they held."""
        project.case("a", "echo one > kept; echo new > made; rm gone", more="")
        file = project.root / "configs/cases/a/test.yaml"
        file.write_text(file.read_text().replace("  grace_seconds", "  scaffold: start\n  grace_seconds"))
        for name in ("kept", "gone", "same"):
            project.write(f"configs/cases/a/start/{name}", name)
        result = project.run()
        (diff,) = result.plan.folder.rglob("workspace.diff")
        kept = json.loads(diff.read_text())

        assert [kept[kind] for kind in ("created", "modified", "deleted", "unchanged")] == [
            ["made"], ["kept"], ["gone"], ["same"]
        ]  # fmt: skip
        digest = {
            text: hashlib.sha256(text.encode()).hexdigest() for text in ("kept", "gone", "same", "one\n", "new\n")
        }
        assert kept["sha256"] == {
            "before": {"gone": digest["gone"], "kept": digest["kept"], "same": digest["same"]},
            "after": {"kept": digest["one\n"], "made": digest["new\n"], "same": digest["same"]},
        }

    def test_what_judging_needs_is_loaded_while_the_agent_runs(self, project, monkeypatch):
        """The agent ends only once it was; that it cannot be loaded is left to the question that needs it."""
        ready = project.root / "ready"
        os.mkfifo(ready)

        def prepare():
            ready.write_text("loaded")
            raise ConfigError("a dialect cannot be read")

        monkeypatch.setattr(project.session, "prepare", prepare)
        project.case("a", f"cat {ready}")
        (result,) = project.run().results

        assert project.session.closed[result.run_id][0].final_output == "loaded"

    def test_a_second_campaign_starts_afresh(self, project):
        """What an agent left, even without write permission, is gone before the next run of that place."""
        project.case("a", "ls; mkdir locked; echo x > locked/file; chmod 500 locked")
        project.run()
        second = project.run()
        record = project.session.closed[second.results[0].run_id][0]

        assert record.final_output is None
        assert stat.S_IMODE((second.plan.folder / "runs/-/a/1/workspace/locked").stat().st_mode) == 0o500

    def test_one_campaign_one_process(self, project):
        """A campaign's folder is held while it runs; another process gets an error that names its holder."""
        project.case("a", "exit 0")
        folder = project.plan().folder
        with campaign_lock(folder):
            taken = campaign_lock(folder)
            with pytest.raises(
                StoreLockedError, match=rf"process {os.getpid()} \(`.+`\): wait until it has ended, or end it;"
            ):
                taken.__enter__()
        with campaign_lock(folder):
            assert (folder / "campaign.lock").exists()
