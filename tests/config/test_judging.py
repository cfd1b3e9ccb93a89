"""Expectations, rubrics and what a profile says of judges: checked, kept, and never passed off as judged (config.md §4)."""

from __future__ import annotations

import pytest

RUBRIC = """\
expectations:
  hard_expectations:
    - {text: Answers with 4.}
  soft_expectations:
    - {text: Is brief., weight: 0.5}
rubric:
  version: 2
  scale: {min: 1, max: 5}
  anchors: {"5": Perfect., "1": Wrong.}
  criteria:
    - {name: Facts, what_good_looks_like: Right., what_bad_looks_like: Wrong.}
  scoring_instructions: Cap at 2 without a source.
"""
PROFILE = "schema_version: 1\nevaluation_profile_id: e\ntitle: E\n"
WARNING = "no judge is configured: the expectations and the rubric are not judged, of `a`"


@pytest.fixture
def case(files):
    """Write a case with more keys, and return the project."""
    files.suite()

    def write(more: str):
        path = files.case("a")
        path.write_text(path.read_text() + more)
        return files

    return write


class TestCase:
    def test_every_key(self, case):
        """What a judge will be given arrives as written, and one warning says that no judge is asked."""
        loaded = case(RUBRIC).load()
        config = loaded.cases[0].config

        assert [one.text for one in config.expectations.hard_expectations] == ["Answers with 4."]
        assert [
            one.weight for one in (*config.expectations.hard_expectations, *config.expectations.soft_expectations)
        ] == [
            1.0,
            0.5,
        ]
        assert (config.rubric.version, config.rubric.scale.max, config.rubric.anchors["5"]) == (2, 5, "Perfect.")
        assert config.rubric.criteria[0].what_bad_looks_like == "Wrong."
        assert set(config.for_judges()) == {"expectations", "rubric"}
        assert loaded.warnings == (WARNING,)

    def test_anchors_may_stand_in_the_scale(self, case):
        """Either place describes a score; one score has one description."""
        loaded = case('rubric: {scale: {max: 5, anchors: {"5": Perfect.}}, anchors: {"0": Wrong.}}\n').load()

        assert loaded.cases[0].config.rubric.scale.anchors == {"5": "Perfect."}

    def test_a_case_without_them_warns_of_nothing(self, case):
        """Empty expectations ask no judge anything."""
        loaded = case("expectations: {hard_expectations: []}\n").load()

        assert loaded.warnings == ()
        assert loaded.cases[0].config.for_judges() == {}

    @pytest.mark.parametrize(
        ("more", "sentence"),
        [
            ("expectations: {hard: []}\n", "test.yaml:12:16: `expectations.hard` is not a known key"),
            (
                "expectations: {soft_expectations: [{text: ''}]}\n",
                "`expectations.soft_expectations.0.text` text should have at least 1 character",
            ),
            (
                "expectations: {soft_expectations: [{text: x, weight: 0}]}\n",
                "`expectations.soft_expectations.0.weight` must be greater than 0, found 0",
            ),
            (
                "expectations: {soft_expectations: [x]}\n",
                "`expectations.soft_expectations.0` must be a mapping, found 'x'",
            ),
            ("rubric: {scale: {min: 5, max: 5}}\n", "`rubric.scale` `min` (5) must be less than `max` (5)"),
            (
                'rubric: {anchors: {"11": x}}\n',
                "test.yaml:12:20: `rubric.anchors.11` the score 11 is outside of the scale, 0 to 10",
            ),
            (
                'rubric: {scale: {max: 5, anchors: {"6": x}}}\n',
                "test.yaml:12:36: `rubric.scale.anchors.6` the score 6 is outside of the scale, 0 to 5",
            ),
            (
                'rubric: {scale: {anchors: {"5": x}}, anchors: {"5": y}}\n',
                'the score "5" has two descriptions, in `anchors` and in `scale.anchors`',
            ),
            ("rubric: {anchors: {best: x}}\n", "an anchor must be a score of the scale, such as \"10\", found 'best'"),
            ("rubric: {anchors: {10: x}}\n", 'a key must be text, found 10. Write "10": in quotes.'),
            ("rubric: {criteria: [{name: A}, {name: A}]}\n", "the criterion 'A' is used twice"),
            ("rubric: {version: 0}\n", "`rubric.version` must be greater than or equal to 1, found 0"),
        ],
    )
    def test_what_cannot_be_meant(self, case, more, sentence):
        """Unknown keys, empty words, weights that count nothing and anchors off the scale are reported with their place."""
        (problem,) = case(more).problems()

        assert sentence in problem


class TestProfile:
    @pytest.fixture
    def profile(self, case):
        """Write an evaluation profile, and return the project."""
        files = case("")

        def write(more: str):
            files.write("configs/evaluation_profiles/e.yaml", PROFILE + more)
            return files

        return write

    def test_a_profile_without_judges_says_what_it_leaves_idle(self, profile):
        """Shapes are checked, and one warning names the keys that change no verdict."""
        more = (
            "judges: []\naggregation: {method: mean}\nanchors: {enabled: true, references: [{anchor_id: x, text: t}]}\n"
            "judge_system_prompt: Be fair.\n"
        )
        loaded = profile(more).load(evaluation_profile="e")

        assert loaded.warnings == (
            "configs/evaluation_profiles/e.yaml: no judge is configured, so `aggregation`, `anchors` and "
            "`judge_system_prompt` change no verdict",
        )
        assert loaded.evaluation_profile.aggregation.method == "mean"
        assert profile("judges: []\n").load(evaluation_profile="e").warnings == ()

    @pytest.mark.parametrize(
        ("more", "sentence"),
        [
            (
                "judge_runs: [{judge_run_id: r, judge_id: j}]\n",
                "e.yaml:4:42: `judge_runs.0.judge_id` names the judge 'j'; `judges` lists none",
            ),
            (
                "aggregation: {pass_threshold: 7}\n",
                "`aggregation.pass_threshold` needs a judge's score, but no judge is configured: it would have no "
                "effect. Without a judge, use `min_pass_rate` of an assertion or `thresholds` of the suite.",
            ),
            (
                "aggregation: {method: majority_vote}\n",
                "counts the scores that reach `pass_threshold`, which is missing",
            ),
            (
                "judges: [{judge_id: main, type: llm_probe}]\njudge_runs: [{judge_run_id: r, judge_id: mian}]\n",
                "names the judge 'mian'; `judges` lists `main`",
            ),
            (
                "judges: [{judge_id: j, type: llm_probe}, {judge_id: j, type: llm_probe}]\n",
                "the id 'j' is used twice",
            ),
            ("judges: [{judge_id: j, type: llm}]\n", "`judges.0.type` found 'llm', valid is 'llm_probe'"),
            (
                "judges: [{judge_id: j, type: llm_probe, api_key: x}]\n",
                "name the variable that holds it with `api_key_env`",
            ),
            ("aggregation: {method: meen}\n", "valid is 'median', 'mean', 'majority_vote' or 'all_pass'"),
            ("judge_runs: [{judge_run_id: r, judge_id: j, sample_size: 2}]\n", "`sample_size` (2) is greater than"),
            ("anchors: {references: [{anchor_id: x, text: a}, {anchor_id: x, text: b}]}\n", "'x' is used twice"),
            ("judge_system_prompt: a\njudge_system_prompt_path: b\n", "exclude each other; keep one of them"),
            (
                "judge_system_prompt_path: prompts/p.md\n",
                "`judge_system_prompt_path` the file 'prompts/p.md' does not exist next to the profile",
            ),
        ],
    )
    def test_what_needs_a_judge_or_cannot_be_meant(self, profile, more, sentence):
        """A gate on a score that no judge gives is refused; so are contradictions and a prompt that is not there."""
        (problem,) = profile(more).problems(evaluation_profile="e")

        assert sentence in problem

    def test_a_prompt_file_is_found(self, profile):
        """The path is relative to the profile; its words become part of what verdicts depend on."""
        files = profile("judge_system_prompt_path: prompts/p.md\n")
        files.write("configs/evaluation_profiles/prompts/p.md", "Be fair.")

        loaded = files.load(evaluation_profile="e").evaluation_profile
        assert (loaded.judge_system_prompt_path, loaded.judge_system_prompt) == ("prompts/p.md", "Be fair.")

    def test_other_keys_of_a_judge_are_options_of_its_requests(self, profile):
        """They go with `request_options`, which win."""
        files = profile(
            "judges: [{judge_id: j, type: llm_probe, temperature: 0, request_options: {reasoning: {effort: none}}}]\n"
        )
        (judge,) = files.load(evaluation_profile="e").evaluation_profile.judges

        assert judge.options == {"temperature": 0, "reasoning": {"effort": "none"}}

    def test_recordings_warn_as_well(self, profile):
        """The warning of idle keys also comes where a profile judges recordings."""
        from clawtrace.config.loading.assertions_file import load_assertions_file

        files = profile("anchors: {enabled: true}\n")
        path = files.write("c.yaml", "assertions: []\n")
        loaded = load_assertions_file(str(path), files.project(), {}, evaluation_profile="e")

        assert loaded.warnings == (
            "configs/evaluation_profiles/e.yaml: no judge is configured, so `anchors` changes no verdict",
        )
