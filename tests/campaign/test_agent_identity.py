"""Which edits of agents and attachments make another run of it (spec: config.md §5)."""

from __future__ import annotations

import pytest
import yaml

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.reuse import decide
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project

SUITE = """\
schema_version: 1
suite_id: s
title: S
openclaw:
  agent_assignments:
    - {agent_id: one, case_selection: {include_case_ids: [a]}}
    - {agent_id: two, case_selection: {include_case_ids: [b]}}
"""


@pytest.fixture
def prints(project):
    """Return the fingerprint of each case's run, now."""
    project.write("configs/suites/s.yaml", SUITE)
    for case_id in ("a", "b", "c"):
        case = {
            "schema_version": 1,
            "case_id": case_id,
            "title": case_id,
            "runner": {"type": "command", "command": ["true"], "input": "json", "inputs": []},
            "input": {"attachments": ["../../shared/x.md"]} if case_id == "a" else {},
        }
        project.write(f"configs/cases/{case_id}/test.yaml", yaml.safe_dump(case))
    project.write("configs/shared/x.md", "x")
    for agent_id in ("one", "two"):
        project.write(f"configs/agents/{agent_id}/agent.yaml", f"schema_version: 1\nagent_id: {agent_id}\ntitle: T\n")
        project.write(f"configs/agents/{agent_id}/workspace/SOUL.md", "calm")
        project.write(f"configs/agents/{agent_id}/workspace/deep/tool.sh", "#!/bin/sh\n")

    def compute() -> dict[str, str]:
        plan = expand(load_suite("s", load_project(project.root, {}), project.env))
        found = decide(plan, project.env, reuse=False)
        return {run.case.config.case_id: found[run.run_id].fingerprint.digest for run in plan.runs}

    return compute


def changed(prints, edit) -> set[str]:
    before = prints()
    edit()
    after = prints()
    return {case_id for case_id in before if before[case_id] != after[case_id]}


def test_an_agents_files_are_its_runs_identity(project, prints):
    """Content, mode, a new file, a new empty folder and a link each change the runs of that agent, and of no other."""
    workspace = project.root / "configs/agents/one/workspace"

    assert changed(prints, lambda: (workspace / "SOUL.md").write_text("loud")) == {"a"}
    assert changed(prints, lambda: (workspace / "deep/tool.sh").chmod(0o755)) == {"a"}
    assert changed(prints, lambda: (workspace / "new").write_text("")) == {"a"}
    assert changed(prints, lambda: (workspace / "empty").mkdir()) == {"a"}
    assert changed(prints, lambda: (workspace / "link").symlink_to("SOUL.md")) == {"a"}
    assert changed(prints, lambda: None) == set()


def test_an_agents_labels_are_not(project, prints):
    """Title, description and tags change no run; what the CLI is given does."""
    file = project.root / "configs/agents/two/agent.yaml"

    assert changed(prints, lambda: file.write_text(file.read_text() + "description: d\ntags: [x]\n")) == set()
    assert changed(prints, lambda: file.write_text(file.read_text() + "openclaw: {agent: {prompt: p}}\n")) == {"b"}


def test_another_agent_is_another_run(project, prints):
    """Assigning an agent to a case changes that case's run."""
    suite = project.root / "configs/suites/s.yaml"

    def assign() -> None:
        suite.write_text(suite.read_text().replace("[b]", "[b, c]"))

    assert changed(prints, assign) == {"c"}


def test_an_attachment_is_its_name_and_content(project, prints):
    """Editing it changes the run; moving it to another folder does not."""
    attached, case = project.root / "configs/shared/x.md", project.root / "configs/cases/a/test.yaml"

    def move() -> None:
        project.write("configs/elsewhere/x.md", attached.read_text())
        case.write_text(case.read_text().replace("shared", "elsewhere"))

    assert changed(prints, lambda: attached.write_text("y")) == {"a"}
    assert changed(prints, move) == set()
