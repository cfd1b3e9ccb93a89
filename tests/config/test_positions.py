"""Every problem names file, line, column and key, all problems at once (spec: config.md §1)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clawtrace.config.cases.case import CaseConfig
from clawtrace.config.files.document import parse_document, read_document
from clawtrace.errors import ConfigError
from clawtrace.runners.base import runner_types
from clawtrace.runners.command import CommandSettings

RUNNERS = " or ".join(f"`{name}`" for name in runner_types())
"""As messages list them."""


def yaml_problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "f.yaml")
    return [str(problem) for problem in caught.value.problems]


class TestYaml:
    def test_a_syntax_error_is_at_its_place(self):
        """What YAML itself refuses has line and column."""
        (problem,) = yaml_problems("a: 1\nb: [1, 2\nc: 3\n")

        assert problem == (
            "f.yaml:3:2: is not valid YAML: while parsing a flow sequence, did not find expected ',' or ']'"
        )

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            ("2024-13-45", "date"),
            ("2024-02-30", "date"),
            ("2024-01-01 25:00:00", "date"),
            ("!!timestamp x", "date"),
            ("!!int abc", "number"),
            ("!!int ''", "number"),
            ("!!float x", "number"),
            ("!!bool maybe", "truth value"),
            ("1" * 5_000, "number"),
            ("0x" + "f" * 5_000, "number"),
        ],
    )
    def test_what_only_looks_like_a_value(self, value, kind):
        """What YAML takes for a date or a number, and is none, is a problem of its place, and others are reported with it."""
        first, second = yaml_problems(f"a:\n  b: {value}\n  c: 2024-99-99\n")

        assert first.startswith("f.yaml:2:6: ")
        assert first.endswith(f"looks like a {kind} but is not valid. Put it in quotes where text is meant.")
        assert len(first) < 160
        assert second.startswith("f.yaml:3:6: '2024-99-99' looks like a date")

    @pytest.mark.parametrize(
        ("written", "value"),
        [("1e+22", 1e22), ("1e-3", 0.001), ("-2E6", -2e6), (".5e1", 5.0), ("1.e2", 100.0), ("1.0e+3", 1000.0)],
    )
    def test_numbers_with_an_exponent(self, written, value):
        """They are numbers as YAML 1.2 has them, also where YAML 1.1 reads a text: `max_usd: 1e-3` is a thousandth."""
        found = parse_document(f"a: {written}\n", "f.yaml").data["a"]

        assert (found, type(found)) == (value, float)

    @pytest.mark.parametrize("written", ["'1e3'", '"1e3"', "!!str 1e3", "1e", "e3", "1e3x", "12e999999"])
    def test_texts_that_resemble_numbers(self, written):
        """What is quoted, tagged, or no finite number stays a text."""
        assert isinstance(parse_document(f"a: {written}\n", "f.yaml").data["a"], str)

    def test_repeated_keys_are_errors(self):
        """A key that is used twice is refused, wherever it is, with the line of the first."""
        assert yaml_problems("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n") == [
            "f.yaml:5:1: the key `a` is used twice, first in line 1",
        ]
        assert yaml_problems("b:\n  c: 1\n  c: 2\n") == ["f.yaml:3:3: the key `c` is used twice, first in line 2"]

    def test_keys_are_text(self):
        """YAML reads `true` and `1` as no text: a key is said to need quotes, never silently renamed."""
        assert parse_document("on: 1\nOff: 2\n", "f.yaml").data == {"on": 1, "Off": 2}
        assert yaml_problems("true: 1\n") == ['f.yaml:1:1: a key must be text, found true. Write "true": in quotes.']
        assert yaml_problems("1: x\n") == ['f.yaml:1:1: a key must be text, found 1. Write "1": in quotes.']
        assert yaml_problems("a: {{case_id}}\n") == [
            "f.yaml:1:5: a key must be text, found a mapping. Put text that begins with `{` or `[` in quotes."
        ]

    def test_an_empty_file_and_a_list_are_named(self):
        """A file without a mapping is an error and no empty configuration."""
        assert yaml_problems("") == [
            "f.yaml:1:1: is empty, expected a mapping, or `{}`. `clawtrace schema` lists the keys."
        ]
        assert yaml_problems("- 1\n") == ["f.yaml:1:1: expected a mapping, found a list"]
        assert yaml_problems("a" * 3_000_000) == [f"f.yaml:1:1: expected a mapping, found '{'a' * 40}…'"]

    def test_a_list_of_assertions_is_sent_below_its_key(self):
        """Who leaves out `assertions:` reads where it belongs."""
        (said,) = yaml_problems("- type: tool_was_called\n  tool: a\n")
        assert said.endswith("found a list. Write `assertions:` on a line above the list.")

    def test_anchors_and_merges_work(self):
        """Anchors, aliases and merge keys are fine; a key that is merged may be overridden once."""
        document = parse_document("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\nagain: *b\n", "f.yaml")

        assert document.data == {"base": {"x": 1, "y": 2}, "mine": {"x": 1, "y": 3}, "again": {"x": 1, "y": 2}}
        assert document.locate(("mine", "y")) == (4, 6)

    def test_anchors_that_explode_are_refused(self):
        """A few lines that expand to millions of values are an error, and quickly so."""
        lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
        lines += [f"a{n}: &a{n} [" + ",".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 9)]
        (problem,) = yaml_problems("\n".join(lines))

        assert "the file contains more than 200000 values once its anchors are expanded" in problem
        assert "an anchor contains itself" in yaml_problems("a: &a [*a]\n")[0]

    def test_other_encodings_and_documents_are_refused(self, files):
        """A file that is no UTF-8, or holds two documents, is named."""
        path = files.root / "latin.yaml"
        path.write_bytes(b"b:\na: \xe9\n")

        with pytest.raises(
            ConfigError, match=r"latin\.yaml:2:4: is not UTF-8 text \(byte 6\)\. Save the file as UTF-8\."
        ):
            read_document(path)
        assert yaml_problems("a: \udcff\n") == ["f.yaml: is not UTF-8 text"]
        assert "but found another document" in yaml_problems("a: 1\n---\nb: 2\n")[0]
        assert yaml_problems("a: 1\nb: x\0y\n") == [
            "f.yaml:2:5: is not valid YAML: the control character U+0000 is not allowed in a file. Remove it; in quotes it "
            "can be written as an escape."
        ]

    @pytest.mark.parametrize(
        "text", ["a: " + "[" * 100_000, "- " * 50_000 + "x", "\n".join(" " * n + "a:" for n in range(5_000))]
    )
    def test_a_file_too_deep_for_its_reader_is_refused(self, text):
        """The process stays alive: composing such a text would overflow its stack."""
        (problem,) = yaml_problems(text)

        assert problem.startswith("f.yaml:")
        assert problem.endswith("is nested deeper than 200 levels")


def split(problems: list[str], word: str) -> tuple[str, list[str]]:
    """Return the one problem that holds a word, and the others."""
    (found,) = [problem for problem in problems if word in problem]
    return found, [problem for problem in problems if problem is not found]


class TestCaseProblems:
    def test_all_problems_of_all_files_at_once(self, files):
        """Suite, profile and two cases are read to their ends before the first complaint."""
        files.suite("titel: x\n")
        files.write(
            "configs/run_profiles/p.yaml",
            """\
            schema_version: 2
            run_profile_id: p
            title: P
            runner_defaults: {timeout_second: 3}
            execution_policy: {max_concurrency: 0}
            """,
        )
        files.suite("case_selection:\n  include_case_ids: [a, b, zz]\n")
        files.case("a", text="schema_version: 1\ncase_id: a\ntitle: 3\nrunner: {type: comand}\ninput: {}\n")
        files.case("b", text="schema_version: 1\ncase_id: bb\nrunner: {type: command}\ninput: {turn: []}\n")

        profile_setting, found = split(files.problems(run_profile="p"), "`runner_defaults.timeout_second`")
        assert profile_setting.startswith("configs/run_profiles/p.yaml:4:19: ")
        assert profile_setting.endswith("Did you mean `timeout_seconds`?")
        assert found == [
            "configs/run_profiles/p.yaml:1:17: `schema_version` found 2, valid is 1",
            "configs/run_profiles/p.yaml:5:37: `execution_policy.max_concurrency` must be greater than or equal to 1, "
            "found 0",
            "configs/suites/main.yaml:5:28: `case_selection.include_case_ids.2` there is no case 'zz'",
            'configs/cases/a/test.yaml:3:8: `title` must be text, found 3. Put it in quotes: "3".',
            f"configs/cases/a/test.yaml:4:16: `runner.type` found 'comand', valid is {RUNNERS}. Did you mean `command`?",
            "configs/cases/b/test.yaml:1:1: `title` is required",
            "configs/cases/b/test.yaml:2:10: `case_id` must be the name of the case's folder, 'b', found 'bb'",
            "configs/cases/b/test.yaml:4:9: `input.turn` is not a known key; known are `messages`, `turns`, `user`, `attachments`, "
            "`context`. Did you mean `turns`?",
        ]

    def test_a_wrong_suite_hides_no_mistake_of_its_cases(self, files):
        """What a suite says wrong next to its selection does not keep clawtrace from reading what it selects; nothing else is read."""
        files.suite("models: [{model_id: a b}]\ncase_selection: {include_case_ids: [a]}\nthreshold: {}\n")
        files.case("a", text="schema_version: 1\ncase_id: a\ntitle: A\nrunner: {type: comand}\ninput: {}\n")
        files.case("b", text="nonsense")

        assert [problem.split(" ", 2)[:2] for problem in files.problems()] == [
            ["configs/suites/main.yaml:4:21:", "`models.0.model_id`"],
            ["configs/suites/main.yaml:6:1:", "`threshold`"],
            ["configs/cases/a/test.yaml:4:16:", "`runner.type`"],
        ]
        files.suite("case_selection: {include_case_id: [a]}\n")
        assert len(files.problems()) == 1
        files.suite("case_selections: {include_case_ids: [a]}\n")
        assert len(files.problems()) == 1

    def test_what_a_wrong_model_or_profile_may_have_given_is_not_missed(self, files):
        """A setting that a case lacks is no mistake of its own while what may give it cannot be read."""
        files.write(
            "configs/run_profiles/p.yaml",
            "schema_version: 1\nrun_profile_id: p\ntitle: P\nmodel_overrides: {m: {command: [x]}}\n",
        )
        files.suite("models: [{model_id: m, requested_model: 5}]\n")
        files.case("a", text="schema_version: 1\ncase_id: a\ntitle: A\nrunner: {type: command}\ninput: {}\n")

        (problem,) = files.problems(run_profile="p")
        assert "`models.0.requested_model` must be text" in problem

    def test_one_wrong_message_hides_no_other_mistake_of_the_input(self, files):
        """Turns and attachments are checked although messages are wrong, and no user message is missed."""
        files.suite()
        text = (
            "schema_version: 1\ncase_id: a\ntitle: A\nrunner: {type: command, command: ['{{message}}'], input: json}\n"
            "input:\n  messages: [{role: usr, content: x}]\n  turns: [{role: system, content: x}]\n  attachments: [no.md]\n"
        )
        files.case("a", text=text)

        assert [problem.split(" ", 2)[:2] for problem in files.problems()] == [
            ["configs/cases/a/test.yaml:6:21:", "`input.messages.0.role`"],
            ["configs/cases/a/test.yaml:7:11:", "`input.turns.0`"],
            ["configs/cases/a/test.yaml:8:17:", "`input.attachments.0`"],
        ]

    @pytest.mark.parametrize("version", ["true", "1.0", "'1'"])
    def test_a_version_is_a_whole_number(self, files, version):
        """Python takes `true` and `1.0` for equal to 1; a file that says so is wrong."""
        files.suite()
        files.write("clawtrace.yaml", "schema_version: 1\n")
        files.case(
            "a",
            text=f"schema_version: {version}\ncase_id: a\ntitle: A\nrunner: {{type: command, command: [x]}}\ninput: {{}}\n",
        )

        (problem,) = files.problems()
        assert problem.startswith("configs/cases/a/test.yaml:1:17: `schema_version` must be a whole number, found ")

    def test_a_date_is_named_as_one(self, files):
        """No word of Python stands in a message."""
        files.suite()
        files.case("a", tags="2026-11-22")

        assert files.problems() == [
            'configs/cases/a/test.yaml:4:8: `tags.0` must be text, found the date 2026-11-22. Put it in quotes: "2026-11-22".'
        ]

    def test_what_no_program_can_be_given_is_refused(self, files):
        """Names of variables, NUL characters and an empty command are known before the run; one problem each."""
        files.suite()
        head = "schema_version: 1\ncase_id: a\ntitle: A\ninput: {}\n"

        def problems_of(settings: str) -> list[str]:
            files.case("a", text=f"{head}runner: {{type: command, {settings}}}\n")
            return [problem.split(" ", 1)[1] for problem in files.problems()]

        nul = "contains a NUL character, which cannot be passed to a program"
        assert problems_of('command: [x, "a\\0b"]') == [f"`runner.command.1` {nul}"]
        assert problems_of('command: "a\\0b"') == [f"`runner.command` {nul}"]
        assert problems_of("command: []") == ["`runner.command` is empty"]
        assert problems_of("command: ['', x]") == ["`runner.command` names no program"]
        assert problems_of('command: " "') == ["`runner.command` names no program"]
        assert problems_of('command: x, env: {A=B: x, A: "a\\0b"}') == [
            "`runner.env.A=B` must be the name of a variable, without `=`, found 'A=B'",
            f"`runner.env.A` {nul}",
        ]

    def test_one_wrong_key_hides_no_other_mistake_of_the_file(self, files):
        """The runner's settings, the messages' files and the folder's name are checked although a key is unknown."""
        files.suite()
        text = (
            "schema_version: 1\ncase_id: b\ntitel: x\nrunner: {type: command, comand: [x]}\n"
            "input: {messages: [{role: user, source: {path: gone.txt}}]}\n"
        )
        files.case("a", text=text)

        assert [problem.split(" ", 2)[:2] for problem in files.problems()] == [
            ["configs/cases/a/test.yaml:1:1:", "`title`"],
            ["configs/cases/a/test.yaml:2:10:", "`case_id`"],
            ["configs/cases/a/test.yaml:3:1:", "`titel`"],
            ["configs/cases/a/test.yaml:4:9:", "`runner.command`"],
            ["configs/cases/a/test.yaml:4:25:", "`runner.comand`"],
            ["configs/cases/a/test.yaml:5:48:", "`input.messages.0.source.path`"],
        ]

    def test_an_unknown_key_suggests_the_nearest(self, files):
        """A misspelt key points at the key itself and lists what is known there."""
        files.suite("case_selections: {}\n")
        files.case("a")

        assert files.problems() == [
            "configs/suites/main.yaml:4:1: `case_selections` is not a known key; known are `openclaw`, `schema_version`, "
            "`suite_id`, `title`, `models`, `case_selection`, `thresholds`, `quarantine_tags`, `metadata`. Did you mean `case_selection`?"
        ]

    def test_a_key_of_the_project_file_is_sent_there(self, files):
        """Not to the nearest key of this place, which means something else."""
        files.suite()
        files.case("a", text=CASE_WITH.format(runner="type: command\n  command: x\n  telemetry_env: {langsmith: on}"))

        (problem,) = files.problems()
        assert "telemetry_env` belongs at the top level of clawtrace.yaml, and has no effect here" in problem

    def test_a_key_of_a_run_profile_is_sent_there(self, files):
        """Repetitions belong to no suite."""
        files.suite("run_repetitions: 3\n")
        files.case("a")

        (problem,) = files.problems()
        assert "`run_repetitions` does not belong here: it is a key of `execution_policy` in a run profile" in problem

    def test_a_key_of_the_runner_is_sent_there(self, files):
        """The settings that are written a level too high are those of the runner."""
        files.suite()
        files.case("a", text=f"pass_env: [X]\n{CASE_WITH.format(runner='type: command')}")

        assert any("`pass_env` does not belong here: it is a key of `runner`" in one for one in files.problems())
        assert CaseConfig.keys_of_others.keys() <= CommandSettings.model_fields.keys()

    def test_runner_settings_are_checked_where_they_are_written(self, files):
        """A wrong setting is reported in the file and line that gave it: profile, override or case."""
        files.suite("models: [{model_id: m}]\n")
        files.write(
            "configs/run_profiles/p.yaml",
            """\
            schema_version: 1
            run_profile_id: p
            title: P
            runner_defaults: {telemetry: htp}
            model_overrides:
              m: {grace_seconds: soon, timeout_secs: 3}
            """,
        )
        files.case("a", text=CASE_WITH.format(runner="type: command\n  comand: [x]\n  env: {A: yes}"))

        assert files.problems(run_profile="p") == [
            "configs/run_profiles/p.yaml:4:30: `runner_defaults.telemetry` found 'htp', valid is 'grpc', 'http/protobuf' "
            "or 'http/json'",
            "configs/run_profiles/p.yaml:6:22: `model_overrides.m.grace_seconds` must be a number, found 'soon'",
            "configs/run_profiles/p.yaml:6:28: `model_overrides.m.timeout_secs` is not a setting of any runner; known are "
            "`agent`, `api_key_env`, `artifacts`, `base_url`, `cli`, `command`, `config`, `confined`, `cwd`, `deny_tools`, "
            "`docker_cli`, `env`, `grace_seconds`, `heartbeat`, `image`, `input`, "
            "`inputs`, `leftover_may_be_killed`, `leftover_seconds`, `logs`, `max_tokens`, `max_turns`, `pass_env`, `provider`, "
            "`read_paths`, `request_options`, `retries`, `retry_wait_seconds`, `run_id`, `run_timeout_seconds`, `scaffold`, "
            "`seed`, `settle_ms`, `setup`, `setup_timeout_seconds`, `stdin`, `store`, `telemetry`, `temperature`, "
            "`timeout_seconds`, `tool_timeout_seconds`, `top_p`, `traces`, `web_search`. Did you mean `timeout_seconds`?",
            "configs/cases/a/test.yaml:6:3: `runner.command` is required",
            "configs/cases/a/test.yaml:7:3: `runner.comand` is not a known key; known are `timeout_seconds`, `pass_env`, "
            "`scaffold`, `artifacts`, `command`, `env`, `cwd`, `stdin`, `input`, `setup`, `setup_timeout_seconds`, `agent`, "
            "`settle_ms`, `telemetry`, `grace_seconds`, `leftover_seconds`, `inputs`, `leftover_may_be_killed`, `logs`. Did you mean "
            "`command`?",
            'configs/cases/a/test.yaml:8:12: `runner.env.A` must be text, found true, which is how YAML reads yes. Put it in quotes: "yes".',
        ]

    def test_assertions_are_checked_in_place(self, files):
        """An assertion's problem is at its own line, with the path inside the list."""
        text = CASE_WITH.format(runner="type: command\n  command: [x]")
        text += (
            "assertions:\n  - type: tool_sequnce\n  - type: llm_call_count\n    mim: 1\n  - just text\n  - type: [x]\n"
        )
        files.suite()
        files.case("a", text=text)
        problems = files.problems()

        assert problems[0].startswith(
            "configs/cases/a/test.yaml:13:11: `assertions.0.type` unknown assertion type 'tool_sequnce'; `clawtrace assertions` "
        )
        assert problems[0].endswith("Did you mean `tool_sequence`?")
        assert any(
            problem.startswith("configs/cases/a/test.yaml:15:5: `assertions.1.mim` unknown field `mim`; valid: ")
            for problem in problems
        )
        assert problems[-2].startswith(
            "configs/cases/a/test.yaml:16:5: `assertions.2.just text` unknown assertion type"
        )
        assert (
            problems[-1] == "configs/cases/a/test.yaml:17:11: `assertions.3.type` must be the name of an assertion type"
        )

    def test_settings_of_another_runner_do_no_harm(self, files):
        """What a run profile says to one runner is not applied to the cases of another."""
        files.suite()
        files.case("a")
        files.write(
            "configs/run_profiles/p.yaml",
            "schema_version: 1\nrun_profile_id: p\ntitle: P\nrunner_defaults: {max_turns: 8}\n",
        )

        assert files.load(run_profile="p").cases

    def test_a_judge_says_how_it_is_asked(self, files):
        """A judge without its type is refused with its place; an empty list of judges is a deterministic profile."""
        files.suite()
        files.case("a")
        profile = "schema_version: 1\nevaluation_profile_id: e\ntitle: E\njudges: {}\n"
        files.write("configs/evaluation_profiles/e.yaml", profile.format("[{judge_id: j}]"))

        assert files.problems(evaluation_profile="e") == [
            "configs/evaluation_profiles/e.yaml:4:10: `judges.0.type` is required"
        ]
        files.write("configs/evaluation_profiles/e.yaml", profile.format("[]"))
        assert files.load(evaluation_profile="e").evaluation_profile.evaluation_profile_id == "e"


CASE_WITH = """\
schema_version: 1
case_id: a
title: A case
description: x
runner:
  {runner}
input:
  messages:
    - role: user
      content: hello
"""


def test_what_a_shell_pipes_in_is_read() -> None:
    """`<(…)` names a pipe in /dev/fd: a user who writes it waits for what it holds."""
    there, here = os.pipe()
    os.write(here, b"steps: []\n")
    os.close(here)
    try:
        assert read_document(Path(f"/dev/fd/{there}")).data == {"steps": []}
    finally:
        os.close(there)
