"""Which files a flag names, which cases a suite selects, and how settings merge (spec: config.md §1, §2)."""

from __future__ import annotations

import os

import pytest
from tests.config.conftest import CASE

from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.loading.whole_project import ProjectCheck
from clawtrace.errors import ConfigError, UsageError
from clawtrace.runners.base import Message


def ids(suite) -> list[str]:
    return [case.config.case_id for case in suite.cases]


class TestPlaces:
    def test_an_id_and_a_path_name_the_same_file(self, files):
        """A value with a separator, a leading dot or a YAML suffix is a path; anything else is an id."""
        files.suite()
        files.case("a")
        by_id = files.load("main")

        assert files.load("configs/suites/main.yaml").path == by_id.path
        assert files.load("./configs/suites/main.yaml").path == by_id.path

    def test_yml_works_and_both_suffixes_are_an_error(self, files):
        """`.yml` is as good as `.yaml`; two files for one id cannot be meant."""
        files.suite().rename(files.root / "configs/suites/main.yml")
        files.case("a").rename(files.root / "configs/cases/a/test.yml")

        assert ids(files.load("main")) == ["a"]
        files.suite()
        with pytest.raises(UsageError, match=r"both configs/suites/main\.yaml and configs/suites/main\.yml exist"):
            files.load("main")

    @pytest.mark.parametrize("name", ["clawtrace.yaml", "configs/suites/main.yaml", "configs/cases/a/test.yaml"])
    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            ("folder", "Is a directory"),
            ("pipe", "it is a pipe, a socket or a device, not a file"),
            ("lost", "No such file"),
            ("loop", "Too many levels of symbolic links"),
        ],
    )
    def test_a_name_without_a_file_behind_it_is_reported(self, files, name, kind, why):
        """What has the name of a configuration file and is none is an error: nothing goes on as if it were not there."""
        files.suite()
        files.case("a")
        files.case("b")
        path = files.root / name
        path.unlink(missing_ok=True)
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("gone" if kind == "lost" else path.name)

        with pytest.raises(ConfigError, match=rf"({path.name}|gone): cannot be read: {why}"):
            files.load("main")

    def test_an_unknown_id_suggests_the_nearest(self, files):
        """A flag that names nothing says where it looked and what is there."""
        files.suite()
        with pytest.raises(
            UsageError, match=r"there is no suite 'mian' in configs/suites \(mian\.yaml\)\. Did you mean"
        ):
            files.load("mian")
        with pytest.raises(UsageError, match=r"the suite file '\./x\.yaml' does not exist"):
            files.load("./x.yaml")

    def test_in_the_wrong_folder_it_says_so(self, files):
        """Where there is no folder of suites at all, no id was misspelt."""
        with pytest.raises(
            UsageError, match=r"The folder does not exist: is the project in another folder\? `clawtrace init`"
        ):
            files.load("main")

    def test_the_id_in_a_file_is_its_name(self, files):
        """A file found by its id carries that id; a case carries its folder's name."""
        files.suite()
        (files.root / "configs/suites/main.yaml").rename(files.root / "configs/suites/other.yaml")
        files.case("a").rename(files.root / "configs/cases/a/test.yml")
        (files.root / "configs/cases/a").rename(files.root / "configs/cases/b")

        assert files.problems("other") == [
            "configs/suites/other.yaml:2:11: `suite_id` must be the name of the file, 'other', found 'main'",
            "configs/cases/b/test.yml:2:10: `case_id` must be the name of the case's folder, 'b', found 'a'",
        ]

    def test_cases_may_be_grouped(self, files):
        """A case is in `cases/` or one group folder deeper; one id in two places is an error when it is selected."""
        files.suite()
        files.case("a")
        files.case("b", group="smoke")
        assert ids(files.load()) == ["a", "b"]
        files.case("a", group="smoke")

        (problem,) = files.problems()
        assert "the case 'a' is used twice" in problem

    def test_a_link_to_a_folder_of_cases_shows_none_again(self, files):
        """Not even a link to the folder that it lies in; a link to a case that lies elsewhere is a case."""
        files.suite()
        files.case("b")
        files.case("c").parent.rename(files.root / "c")
        cases = files.root / "configs/cases"
        for name, target in (("a", "b"), ("again", "../cases"), ("c", "../../c")):
            (cases / name).symlink_to(target)

        assert ids(files.load()) == ["b", "c"]

    def test_the_project_file_is_found_upwards(self, files):
        """`clawtrace.yaml` of a parent folder holds; configs are next to it, whatever the current folder."""
        files.write("clawtrace.yaml", "settle_ms: 5\n")
        inner = files.root / "x" / "y"
        inner.mkdir(parents=True)
        from clawtrace.config.projects.project_file import load_project

        project = load_project(inner, {})
        assert (project.config.settle_ms, project.root) == (5, files.root)


class TestSelection:
    @pytest.fixture(autouse=True)
    def _cases(self, files):
        for case_id, tags in [("a", "smoke"), ("b", "smoke, slow"), ("c", "slow"), ("d", "")]:
            files.case(case_id, tags)

    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            ("{}", ["a", "b", "c", "d"]),
            ("{include_tags: [smoke]}", ["a", "b"]),
            ("{include_tags: [smoke], exclude_tags: [slow]}", ["a"]),
            ("{exclude_tags: [slow]}", ["a", "d"]),
            ("{exclude_case_ids: [a, d]}", ["b", "c"]),
            ("{include_case_ids: [d, b]}", ["d", "b"]),
            ("{include_case_ids: [d, b], exclude_case_ids: [b], exclude_tags: [slow]}", ["d", "b"]),
            ("{include_case_ids: [d], include_tags: [slow]}", ["d", "b", "c"]),
            ("{include_case_ids: [d], include_tags: [slow], exclude_case_ids: [c]}", ["d", "b"]),
            ("{include_tags: [smoke, slow]}", ["a", "b", "c"]),
        ],
    )
    def test_precedence_and_order(self, files, selection, expected):
        """Listed ids are always in and first, as listed; then tags, minus exclusions, by id."""
        files.suite(f"case_selection: {selection}\n")

        assert ids(files.load()) == expected

    def test_unknown_ids_are_errors_in_any_list(self, files):
        """An id that does not exist is an error also in an exclusion, where it would hide a mistake."""
        files.suite("case_selection: {exclude_case_ids: [e]}\n")

        assert files.problems() == [
            "configs/suites/main.yaml:4:37: `case_selection.exclude_case_ids.0` there is no case 'e'"
        ]

    def test_selecting_nothing_is_an_error(self, files):
        """A suite without a case is a mistake, not a success."""
        files.suite("case_selection: {include_tags: [nightly]}\n")

        assert files.problems() == [
            "configs/suites/main.yaml:4:17: `case_selection` the suite selects no case. All cases are excluded, or have "
            "none of the tags nightly."
        ]

    def test_a_broken_case_matters_only_when_it_is_selected(self, files):
        """An unselected case may be broken; one whose tags cannot be read is not left out silently."""
        files.case("c", text="schema_version: 1\ntags: [slow]\nnonsense: 1\n")
        files.suite("case_selection: {include_tags: [smoke]}\n")
        assert ids(files.load()) == ["a", "b"]
        files.case("c", text="schema_version: [\n")

        assert files.problems()[0].startswith("configs/cases/c/test.yaml:2:1: is not valid YAML")
        files.suite("case_selection: {include_case_ids: [a]}\n")
        assert ids(files.load()) == ["a"]


class TestSettings:
    PROFILE = """\
        schema_version: 1
        run_profile_id: p
        title: P
        runner_defaults: {timeout_seconds: 1, grace_seconds: 1, leftover_seconds: 1, traces: [x]}
        model_overrides:
          big: {grace_seconds: 2, leftover_seconds: 2}
          other: {grace_seconds: 9}
        """

    def test_later_wins(self, files):
        """Built-in, then `runner_defaults`, then `model_overrides`, then the case's own settings."""
        files.suite("models: [{model_id: big}, {model_id: small}]\n")
        files.write("configs/run_profiles/p.yaml", self.PROFILE)
        case = files.case("a")
        case.write_text(case.read_text().replace("command: [agent]", "command: [x]\n  leftover_seconds: 3"))
        suite = files.load(run_profile="p")
        (loaded,) = suite.cases
        seconds = {
            model: (found.timeout_seconds, found.grace_seconds, found.leftover_seconds, found.setup_timeout_seconds)
            for model, found in loaded.settings.items()
        }

        assert seconds == {"big": (1, 2, 3, 300), "small": (1, 1, 3, 300)}
        assert suite.warnings == (
            "configs/run_profiles/p.yaml: `model_overrides` names the model `other`, which the suite `main` does not list",
        )

    def test_a_suite_without_models_has_one_set_of_settings(self, files):
        """No models means one null model; numbers in a command are the text they are written as."""
        files.suite()
        case = files.case("a")
        case.write_text(case.read_text().replace("command: [agent]", "command: [agent, 3]"))
        (loaded,) = files.load().cases

        assert loaded.settings[None].command == ["agent", "3"]

    def test_a_truth_value_in_a_command_is_refused(self, files):
        """YAML reads `true` as a truth value: the program of that name needs quotes, and the message says so."""
        files.suite()
        case = files.case("a")
        case.write_text(case.read_text().replace("command: [agent]", "command: [true]"))

        assert files.problems() == [
            'configs/cases/a/test.yaml:7:13: `runner.command.0` must be text, found true. Put it in quotes: "true".'
        ]

    def test_models_pass_their_own_keys_through(self, files):
        """Keys of a model that clawtrace does not know are kept for the runner; an id is there once."""
        files.suite("models: [{model_id: m, requested_model: x/y, effort: low}]\n")
        files.case("a")
        (model,) = files.load().config.models
        assert (model.requested_model, model.model_extra) == ("x/y", {"effort": "low"})
        files.suite("models: [{model_id: m}, {model_id: m}]\n")

        assert files.problems() == ["configs/suites/main.yaml:4:9: `models` the model_id 'm' is used twice"]
        files.suite("models: [{model_id: m}, {model_id: M}]\n")
        assert "`models` the model_ids 'm' and 'M' differ in case only" in files.problems()[0]


def test_cases_whose_ids_differ_in_case_only(files):
    """Their results would share a folder on machines whose file names ignore upper and lower case."""
    files.suite()
    files.case("a", group="g")
    files.case("A", group="h")

    (problem,) = files.problems()
    assert (
        "this is the case `A`, and there is a case `a`: on machines whose file names ignore upper and lower case"
        in problem
    )


class TestWhatSettingsName:
    def case(self, files, runner: str) -> list[str]:
        files.suite()
        files.case("a", text=f"schema_version: 1\ncase_id: a\ntitle: A\nrunner: {{type: {runner}}}\ninput: {{}}\n")
        return files.problems()

    def test_it_is_there(self, files):
        """A scaffold, a recording or a store that is absent is known before anything runs, at its place."""
        file = "configs/cases/a/test.yaml"
        assert self.case(files, "command, command: [x], scaffold: gone") == [
            f"{file}:4:49: `runner.scaffold` the folder 'gone' does not exist next to the case file"
        ]
        assert self.case(files, "replay, traces: [no.json]") == [
            f"{file}:4:33: `runner.traces.0` the recording 'no.json' does not exist next to the case file"
        ]
        assert self.case(files, "replay, store: no.duckdb, run_id: r") == [
            f"{file}:4:31: `runner.store` the store 'no.duckdb' does not exist next to the case file"
        ]

    @pytest.mark.parametrize(
        "setting", ["pass_env: ['{{case_id}}']", "scaffold: '{{case_dir}}/x'", "inputs: ['{{env.A}}']"]
    )
    def test_no_template_stands_where_none_is_filled_in(self, files, setting):
        """It would be taken for plain text."""
        (problem,) = self.case(files, f"command, command: [x], {setting}")
        assert f"has no value here: `{setting.split(':')[0]}` is read before a run exists" in problem

    def test_a_scaffold_does_not_hold_the_results(self, files):
        """A workspace would be copied into itself."""
        (problem,) = self.case(files, "command, command: [x], scaffold: ../../..")
        assert "`runner.scaffold` the folder contains the results (outputs)" in problem


class TestMessages:
    def write(self, files, messages: str) -> None:
        files.suite()
        files.case(
            "a",
            text="schema_version: 1\ncase_id: a\ntitle: A\nrunner: {type: command, command: [x]}\ninput:\n  messages:\n"
            + messages,
        )

    def test_sources_of_every_form(self, files):
        """A source is a text, or YAML or JSON with one message or a list of them, relative to the case file."""
        files.write("configs/cases/a/m/one.md", "# Title\n")
        files.write("configs/cases/a/m/two.yaml", "role: assistant\ncontent: two\n")
        files.write(
            "configs/cases/a/m/three.json", '[{"role": "user", "content": "3"}, {"role": "user", "content": "4"}]'
        )
        files.write("configs/cases/a/m/five.yaml", "not: a message\n")
        self.write(
            files,
            "    - {role: system, source: {path: m/one.md}}\n"
            "    - {role: user, source: {path: m/two.yaml}}\n"
            "    - {role: user, source: {path: m/three.json}}\n"
            "    - {role: user, source: {path: m/five.yaml, format: text}}\n",
        )
        (case,) = files.load().cases

        assert case.conversation.messages == (
            Message("system", "# Title\n"),
            Message("assistant", "two"),
            Message("user", "3"),
            Message("user", "4"),
            Message("user", "not: a message\n"),
        )

    def test_a_message_has_one_text(self, files):
        """`content` and `source` exclude each other, a missing file is named, and a bad file is reported in itself."""
        files.write("configs/cases/a/bad.yaml", "role: boss\ncontent: x\n")
        self.write(
            files,
            "    - {role: user}\n    - {role: user, content: x, source: {path: y}}\n",
        )
        assert files.problems() == [
            "configs/cases/a/test.yaml:7:7: `input.messages.0` a message has either `content` or `source`",
            "configs/cases/a/test.yaml:8:7: `input.messages.1` a message has either `content` or `source`",
        ]
        self.write(files, "    - {role: user, source: {path: no.md}}\n    - {role: user, source: {path: bad.yaml}}\n")
        assert files.problems() == [
            "configs/cases/a/test.yaml:7:35: `input.messages.0.source.path` the file 'no.md' does not exist next to "
            "the case file",
            "configs/cases/a/bad.yaml:1:7: `role` found 'boss', valid is 'system', 'user', 'assistant' or 'tool'",
        ]

    def test_a_command_that_uses_the_message_needs_one(self, files):
        """`{{message}}` without any user message is found when the file is loaded."""
        self.write(files, "    - {role: system, content: x}\n")
        case = files.root / "configs/cases/a/test.yaml"
        case.write_text(case.read_text().replace("command: [x]", 'command: [x, "{{message}}"]'))

        assert files.problems() == [
            "configs/cases/a/test.yaml:6:3: `input` the case has no user message, but the runner's settings use one"
        ]


class TestAssertionsFile:
    def test_ids_are_given_and_unique(self, files):
        """An assertion without an id is called by its type, numbered from the second on, around given ids."""
        path = files.write(
            "checks.yaml",
            """\
            assertions:
              - {type: no_span_errors}
              - {type: no_span_errors}
              - {type: no_span_errors, id: no_span_errors-3}
              - {type: no_span_errors}
            model_pricing:
              mine: {input_per_1m: 1.0, output_per_1m: 2.0}
            """,
        )
        loaded = load_assertions_file(str(path), files.project(), {})

        assert [assertion.id for assertion in loaded.assertions.parsed] == [
            "no_span_errors",
            "no_span_errors-2",
            "no_span_errors-3",
            "no_span_errors-4",
        ]
        assert "mine" in loaded.project.pricing.exact

    def test_an_empty_list_is_valid_and_a_missing_one_is_not(self, files):
        """Nothing to assert can be said, but not forgotten."""
        from clawtrace.errors import ConfigError

        empty = files.write("empty.yaml", "assertions: []\n")
        missing = files.write("missing.yaml", "schema_version: 1\n")

        assert load_assertions_file(str(empty), files.project(), {}).assertions.parsed == ()
        with pytest.raises(ConfigError, match=r"missing\.yaml:1:1: one of `assertions`, `assert` and .* is required"):
            load_assertions_file(str(missing), files.project(), {})

    def test_the_same_id_twice_is_an_error(self, files):
        """Two verdicts of one name could not be distinguished."""
        from clawtrace.errors import ConfigError

        path = files.write("c.yaml", "assertions:\n- {type: no_span_errors, id: x}\n- {type: no_span_errors, id: x}\n")
        with pytest.raises(
            ConfigError, match=r"c\.yaml:3:30: `assertions\.1\.id` the id 'x' is used twice, first in line 2"
        ):
            load_assertions_file(str(path), files.project(), {})

    def test_a_files_prices_go_before_the_projects(self, files):
        """`model_pricing` of the file adds to the project's and replaces equal keys; a bad price is at its line."""
        from clawtrace.errors import ConfigError

        files.write(
            "clawtrace.yaml",
            "model_pricing:\n  a: {input_per_1m: 1, output_per_1m: 1}\n  b: {input_per_1m: 1, output_per_1m: 1}\n",
        )
        path = files.write("c.yaml", "assertions: []\nmodel_pricing:\n  a: {input_per_1m: 7, output_per_1m: 7}\n")
        pricing = load_assertions_file(str(path), files.project(), {}).project.pricing

        assert pricing.price_call(None, "a", 1_000_000, 0).usd == 7.0
        assert pricing.price_call(None, "b", 1_000_000, 0).usd == 1.0
        path.write_text("assertions: []\nmodel_pricing:\n  a: {inputs: 7}\n")
        with pytest.raises(ConfigError, match=r"c\.yaml:3:7: `model_pricing\.a\.inputs`"):
            load_assertions_file(str(path), files.project(), {})


class TestAllAtOnce:
    """A mistake does not hide the others, and makes no mistakes of what is right."""

    def test_profiles_that_do_not_exist_are_reported_with_the_rest(self, files):
        """Each flag with its nearest word, then the mistakes of the files."""
        files.suite("thresholds: {models: {x: 1}}\n")
        files.case(
            "a",
            text="schema_version: 1\ncase_id: a\ntitle: A\nrunner: {type: command}\ninput: {messages: []}\ntagz: [a]\n",
        )
        files.write("configs/run_profiles/fast.yaml", "schema_version: 1\nrun_profile_id: fast\ntitle: F\n")
        problems = files.problems(run_profile="fats", evaluation_profile="none")

        assert problems[0] == (
            "--run-profile: there is no run profile 'fats' in configs/run_profiles (fats.yaml). Did you mean `fast`?"
        )
        assert problems[1].startswith("--evaluation-profile: there is no evaluation profile 'none'")
        assert any("thresholds.models.x" in one for one in problems)
        assert any("tagz" in one for one in problems)
        # The profile might have said which command: its absence is no mistake of the case.
        assert not any("`runner" in one and "command" in one for one in problems)
        assert any("`runner" in one and "command" in one for one in files.problems())


class TestABrokenCase:
    """A case that is no YAML stops the suites that select it, and those that cannot know whether they do."""

    BROKEN = "schema_version: 1\ncase_id: b\ntags: [{tags}]\nrunner: [\n"

    def suite_of_smoke(self, files, broken: str) -> None:
        files.suite("case_selection: {include_tags: [smoke]}\n")
        files.case("a", tags="smoke")
        files.case("b", text=broken)

    def test_tags_that_can_be_read_decide(self, files):
        """One that the suite does not want is no mistake of this suite; `clawtrace validate` reports it."""
        self.suite_of_smoke(files, self.BROKEN.format(tags="slow"))
        assert ids(files.load()) == ["a"]

        self.suite_of_smoke(files, self.BROKEN.format(tags="slow, smoke"))
        (problem,) = files.problems()
        assert problem.startswith("configs/cases/b/test.yaml:")
        assert "may select it" not in problem

    @pytest.mark.parametrize(
        "broken",
        [
            "schema_version: 1\nrunner: [\ntags: [slow]\n",
            "tags: [slow\n",
            "tags: [slow]\ntags: [smoke]\nx: [",
            "# nothing\n",
        ],
        ids=["it breaks before them", "it breaks in them", "they are there twice", "the file is empty"],
    )
    def test_tags_that_cannot_be_read_may_be_wanted(self, files, broken):
        """Nothing is left out by a typing error."""
        self.suite_of_smoke(files, broken)

        (problem,) = files.problems()
        assert problem.startswith("configs/cases/b/test.yaml")
        assert problem.endswith(". Its tags cannot be read, so the suite might select it.")
        assert ".." not in problem

    def test_a_selection_by_id_never_looks_at_others(self, files):
        """Nor at their tags."""
        files.suite("case_selection: {include_case_ids: [a]}\n")
        files.case("a")
        files.case("b", text="{{{")

        assert ids(files.load()) == ["a"]


class TestTagsThatNoCaseHas:
    """A typing error in a list of tags leaves cases out, or lets them decide, without a word."""

    def test_a_suite_says_which(self, files):
        """Of what it takes and of what it puts apart, with the nearest tag that is there."""
        files.suite("case_selection: {include_tags: [smoke, smok]}\nquarantine_tags: [flakky]\n")
        files.case("a", tags="smoke, flaky")
        warnings = files.load().warnings

        assert warnings == (
            "configs/suites/main.yaml:4:32: `case_selection.include_tags` 'smok' selects no case. Did you mean `smoke`?",
            "configs/suites/main.yaml:5:18: `quarantine_tags` 'flakky' is not a tag of any case of the suite. Did you mean "
            "`flaky`?",
        )
        assert list(warnings) == [
            str(one) for one in ProjectCheck(files.project(), {}).whole().warnings if "suites" in one.file
        ]


def test_inputs_that_name_nothing_are_errors(files):
    """A misspelt entry would watch nothing: it is refused where it stands."""
    files.suite()
    text = CASE.format(case_id="a", tags="").replace("[agent]\n", "[agent]\n  inputs: [test.yaml, agnet.py]\n")
    files.case("a", text=text)

    (problem,) = files.problems()
    assert "test.yaml:8:23: `runner.inputs.1`" in problem
    assert "'agnet.py' matches no file, relative to the case file" in problem
