"""One case a row of a dataset (spec: config.md §7)."""

from __future__ import annotations

import json
import sys

import pytest
from tests.cli.evaluating.test_reuse import AGENT, Project, reused

pytestmark = pytest.mark.full

CASE = f"""\
schema_version: 1
case_id: qa
title: "Question {{{{row.id}}}}"
tags: [rows]
dataset: rows.jsonl
runner:
  type: command
  command: ["{sys.executable}", "{AGENT}", "{{{{row.tool}}}}"]
  env: {{QUESTION: "{{{{row.question}}}}"}}
  inputs: []
input:
  messages:
    - {{role: user, content: "{{{{row.question}}}} (as {{{{case_id}}}})"}}
    - {{role: user, source: {{path: more.txt}}}}
  context: {{of: "{{{{row.question}}}}", braces: '\\{{{{row.question}}}}'}}
assertions:
  - {{type: tool_was_called, tool: search}}
  - {{type: agent_exit_code, value: "{{{{row.expect.code}}}}"}}
"""
ROWS = [
    {"id": "one", "question": "What is {{env.HOME}}?", "tool": "search", "expect": {"code": 0}},
    {"id": "two", "question": "And?", "tool": "read", "expect": {"code": 0}},
    {"id": "three", "question": "So?", "tool": "search", "expect": {"code": 0}},
]

IN_PROCESS = True


@pytest.fixture
def project(tmp_path, program):
    """A project whose only case has a dataset of three rows."""
    found = Project(tmp_path, program)
    for name in ("a", "b"):
        (tmp_path / f"configs/cases/{name}/test.yaml").unlink()
    found.write("configs/cases/qa/test.yaml", CASE)
    found.write("configs/cases/qa/more.txt", "Asked with {{row.tool}} in {{workspace}}\n")
    write(found, ROWS)
    return found


def write(project, rows, name="rows.jsonl") -> None:
    project.write(f"configs/cases/qa/{name}", "".join(json.dumps(row) + "\n" for row in rows))


def loaded(project):
    """Return the cases of the suite by id, loaded in this process."""
    import os

    from clawtrace.config.loading.suite_file import load_suite
    from clawtrace.config.projects.project_file import load_project

    return {
        case.config.case_id: case for case in load_suite("s", load_project(project.root, os.environ), os.environ).cases
    }


def refused(project) -> str:
    """Return what is said of a dataset that cannot be loaded; nothing is run then."""
    ended = project.clawtrace("eval", "--suite", "s")
    assert ended.returncode == 2, ended.stderr
    assert not (project.root / "outputs").exists()
    return ended.stderr


class TestRows:
    @pytest.mark.smoke
    def test_each_row_is_a_case(self, project):
        """It has an id, is judged by its own values, and reports say which case file it is of."""
        runs = project.eval()

        assert runs == {
            ("qa-one", 1): (False, "pass"),
            ("qa-two", 1): (False, "fail"),
            ("qa-three", 1): (False, "pass"),
        }
        assert "qa: 2 of 3 rows passed; not: qa-two" in project.ended.stdout
        data = json.loads((project.root / "report.out").read_text())
        assert {case["row_of"] for case in data["cases"]} == {"qa"}
        assert [case["title"] for case in data["cases"]] == ["Question one", "Question two", "Question three"]
        (folder,) = (project.root / "outputs/campaigns/s").glob("default-*")
        assert json.loads((folder / "manifest.json").read_text())["cases"]["qa-one"]["row_of"] == "qa"
        assert '<property name="row_of" value="qa" />' in (folder / "report.xml").read_text()

    def test_values_go_wherever_strings_are_rendered(self, project):
        """Messages, files of messages, context, settings and assertions; what a row says is never a template itself."""
        from clawtrace.runners.starting.templates import render

        case = loaded(project)["qa-one"]
        texts = [message.content for message in case.conversation.messages]
        assert [render(text, {"case_id": "qa-one", "workspace": "/w"}.__getitem__) for text in texts] == [
            "What is {{env.HOME}}? (as qa-one)",
            "Asked with search in /w\n",
        ]
        assert render(case.settings[None].env["QUESTION"], {}.__getitem__) == "What is {{env.HOME}}?"
        assert render(case.config.input.context.model_extra["of"], {}.__getitem__) == "What is {{env.HOME}}?"
        assert render(case.config.input.context.model_extra["braces"], {}.__getitem__) == "{{row.question}}"
        assert case.assertions.parsed[1].value == 0

    def test_an_edit_of_one_row_runs_that_row(self, project):
        """The other rows are as they were, also when a new row stands before them."""
        project.eval()
        write(project, [{**ROWS[0], "id": "new"}, ROWS[0], {**ROWS[1], "question": "Or?"}, ROWS[2]])

        assert reused(project.eval()) == {"qa-one", "qa-three"}

    def test_an_edit_of_what_only_judges_runs_nothing(self, project):
        """A row's expected values are part of the judgement, not of the run."""
        project.eval()
        write(project, [{**ROWS[0], "expect": {"code": 7}}, *ROWS[1:]])
        runs = project.eval()

        assert reused(runs) == {"qa-one", "qa-two", "qa-three"}
        assert runs["qa-one", 1] == (True, "fail")

    def test_rows_are_chosen_by_their_id_or_by_the_case(self, project):
        """`--case` names one row or all of them."""
        assert set(project.eval("--case", "qa-two")) == {("qa-two", 1)}
        assert {case for case, _ in project.eval("--case", "qa")} == {"qa-one", "qa-two", "qa-three"}

    def test_a_dataset_outside_of_the_cases_folder(self, project):
        """Agents that depend on the whole project do not depend on the other rows of a dataset in it."""
        write(project, ROWS, name="../../../data/rows.jsonl")
        case = CASE.replace("dataset: rows.jsonl", "dataset: ../../../data/rows.jsonl").replace(
            "inputs: []", "inputs: [../../..]"
        )
        project.write("configs/cases/qa/test.yaml", case)
        project.eval()
        write(project, [{**ROWS[0], "question": "x"}, *ROWS[1:]], name="../../../data/rows.jsonl")

        assert reused(project.eval()) == {"qa-two", "qa-three"}

    def test_csv_without_ids(self, project):
        """Rows are numbered; a quoted value may hold a comma and a line end."""
        text = CASE.replace("rows.jsonl", "rows.csv").replace('"{{row.expect.code}}"', "0").replace("{{row.id}}", "x")
        project.write("configs/cases/qa/test.yaml", text)
        project.write("configs/cases/qa/rows.csv", '\ufefftool,question\nsearch,"a, b\nc"\n\nread,d\n')
        cases = loaded(project)

        assert list(cases) == ["qa-1", "qa-2"]
        assert cases["qa-1"].conversation.messages[0].content.startswith("a, b\nc (as")


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"id": "one"', "rows.jsonl:1:13: is not valid JSON"),
            ('{"id": "a"}\n[1]\n', "rows.jsonl:2:1: each line must be one JSON object"),
            ("\n\n", "rows.jsonl: has no rows"),
            ('{"id": "a/b"}', "rows.jsonl:1:1: the row's `id` has letters"),
            ('{"id": "a"}\n\n{"id": "a"}', "rows.jsonl:3:1: the row 'a' is used twice, first in line 1"),
        ],
    )
    def test_of_json_lines(self, project, text, message):
        """Each has its line."""
        project.write("configs/cases/qa/rows.jsonl", text)

        assert message in refused(project)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "rows.csv: has no rows"),
            ("id,question\n", "rows.csv: has no rows"),
            ("id,id\n1,2\n", "rows.csv:1:1: the first line must name each column once"),
            ('id,question\n1,"a\nb"\n2\n', "rows.csv:4:1: the row has 1 values, but the first line names 2 columns"),
            ('id,question\n1,"a\n', "rows.csv:2:1: is not valid CSV"),
        ],
    )
    def test_of_csv(self, project, text, message):
        """Each has its line."""
        project.write("configs/cases/qa/test.yaml", CASE.replace("rows.jsonl", "rows.csv"))
        project.write("configs/cases/qa/rows.csv", text)

        assert message in refused(project)

    def test_a_field_that_a_row_lacks(self, project):
        """Both places are reported: the template's and the row's."""
        write(project, [ROWS[0], {"id": "two", "question": "And?", "tol": "x", "expect": {"code": 0}}])
        said = refused(project)

        assert "test.yaml:8:" in said
        assert "the row does not have this field; it has `id`, `question`, `tol`, `expect` (row `two`, " in said
        assert "rows.jsonl:2)" in said
        assert "Did you mean `tol`?" in said

    def test_a_mistake_of_the_case_file_is_reported_once(self, project):
        """Not once a row."""
        project.write("configs/cases/qa/test.yaml", CASE.replace("tool_was_called", "tool_was_caled"))

        assert refused(project).count("tool_was_caled") == 1

    @pytest.mark.parametrize(
        ("dataset", "message"),
        [
            ("none.jsonl", "the file 'none.jsonl' does not exist next to the case file"),
            ("rows.txt", "must end in .jsonl or .csv, found 'rows.txt'"),
            ("[a]", "must be the path of a .jsonl or .csv file"),
        ],
    )
    def test_of_the_path(self, project, dataset, message):
        """At the key."""
        project.write("configs/cases/qa/test.yaml", CASE.replace("rows.jsonl", dataset))

        assert message in refused(project)

    def test_a_row_without_a_dataset(self, project):
        """The name is known, and the case has none."""
        project.write("configs/cases/qa/test.yaml", CASE.replace("dataset: rows.jsonl\n", ""))

        assert "`{{row.question}}` is a field of a `dataset`, and this case has none" in refused(project)

    def test_a_row_with_the_id_of_another_case(self, project):
        """Results of two cases would be one."""
        project.case("qa-two")

        assert "a row makes the case `qa-two`, which is the id of another case" in refused(project)

    def test_a_row_whose_folder_would_be_that_of_another_case(self, project):
        """Machines whose file names ignore case would write both into one."""
        project.case("QA-Two")

        assert "the case `qa-two`, and there is a case `QA-Two`: on machines whose file names" in refused(project)

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ('{"id": "one", "id": "two"}', "the key `id` is used twice"),
            ('{"id": NaN}', "NaN is not a JSON number"),
            ('{"id": "\\ud800"}', "it contains half of a surrogate pair, which is not a character"),
            (f'{{"id": {"[" * 5000}{"]" * 5000}}}', "it is nested too deeply"),
        ],
    )
    def test_what_python_would_read_and_json_is_not(self, project, line, why):
        """With the line, and no fault of the program."""
        project.write("configs/cases/qa/rows.jsonl", f"{line}\n")

        assert f"configs/cases/qa/rows.jsonl:1:1: is not valid JSON: {why}" in refused(project)


def test_a_row_that_broke_or_was_not_run_did_not_pass(project):
    """The line about a dataset counts all of its planned rows."""
    profile = "schema_version: 1\nrun_profile_id: p\ntitle: P\nexecution_policy: {stop_on_runner_error: true}\n"
    project.write("configs/run_profiles/p.yaml", profile)
    project.write("configs/cases/qa/test.yaml", CASE.replace("  inputs: []", '  inputs: []\n  setup: ["exit 3"]'))

    ended = project.clawtrace("eval", "--suite", "s", "--run-profile", "p")

    assert ended.returncode == 4
    assert "qa: 0 of 3 rows passed; not: qa-one, qa-two, qa-three" in ended.stdout
