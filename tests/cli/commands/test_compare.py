"""Repetitions, thresholds, baselines and comparisons, of campaigns whose faults are planned."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from jsonschema_rs import validator_for
from tests.cli.conftest import run_in_process

from clawtrace.cli.commands.schema import schemas

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "flaky_agent.py"


class Suite:
    """A suite of cases, each of which must call `search` and never `rm`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "clawtrace.yaml").write_text("schema_version: 1\n")

    def clawtrace(self, *args: object) -> subprocess.CompletedProcess[str]:
        """Run the program in the project."""
        return run_in_process(self.root, *args)

    def write(self, suite: str = "", **cases: str) -> None:
        """Write the suite; each case is what the agent does."""
        for case_id, words in cases.items():
            folder = self.root / "configs/cases" / case_id
            folder.mkdir(parents=True, exist_ok=True)
            command = json.dumps([sys.executable, str(AGENT), "{{run_id}}", *words.split()])
            (folder / "test.yaml").write_text(
                f"schema_version: 1\ncase_id: {case_id}\ntitle: {case_id}\nrunner: {{type: command, command: {command}, inputs: []}}\n"
                "input: {messages: [{role: user, content: go}]}\nassertions:\n"
                "  - {type: tool_was_called, tool: search}\n  - {type: tool_not_invoked, tool: rm}\n"
            )
        (self.root / "configs/suites").mkdir(exist_ok=True)
        listed = f"case_selection: {{include_case_ids: [{', '.join(cases)}]}}\n"
        (self.root / "configs/suites/s.yaml").write_text(f"schema_version: 1\nsuite_id: s\ntitle: S\n{listed}{suite}")

    def run(self, repetitions: int, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run it; return the finished process."""
        return self.clawtrace("eval", "--suite", "s", "--repeat", repetitions, "--concurrency", 4, *flags)

    @property
    def folder(self) -> Path:
        """The campaign's folder."""
        (report,) = (self.root / "outputs/campaigns").rglob("report.json")
        return report.parent

    @property
    def results(self) -> dict:
        """What is in report.json."""
        return json.loads((self.folder / "report.json").read_text())

    def compare(self, *args: object) -> tuple[int, dict]:
        """Compare and return the exit code and the JSON, which is what its schema says."""
        done = self.clawtrace(*args, "--json")
        found = json.loads(done.stdout)
        validator_for(schemas()["compare.schema.json"]).validate(found)
        return done.returncode, found


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_repetitions_have_rates_intervals_and_a_class(suite) -> None:
    """Of three repetitions one calls the forbidden tool: the report, the terminal and JUnit say how flaky that is."""
    suite.write(good="search", flaky="search rm@2", bad="rm")
    done = suite.run(3)
    good, flaky, bad = suite.results["cases"]

    assert done.returncode == 1
    assert [case["stability"] for case in (good, flaky, bad)] == ["stable-pass", "flaky", "stable-fail"]
    assert (flaky["passed"], flaky["failed"], flaky["undecided"]) == (2, 1, 0)
    assert flaky["pass_rate"] == pytest.approx(2 / 3)
    assert flaky["interval"] == pytest.approx([0.2077, 0.9385], abs=1e-4)
    assert flaky["pass_at_k"] == pytest.approx({"1": 2 / 3, "2": 1, "3": 1})
    assert flaky["pass_hat_k"] == pytest.approx({"1": 2 / 3, "2": 1 / 3, "3": 0})
    called, not_called = flaky["assertions"]
    assert (called["id"], called["stability"], called["passed"]) == ("tool_was_called", "stable-pass", 3)
    assert (not_called["id"], not_called["stability"], not_called["failed"]) == ("tool_not_invoked", "flaky", 1)
    assert "flaky · tool_not_invoked: flaky, 2/3 passed, 0.67 (0.21 to 0.94)" in done.stdout
    assert "good · tool_not_invoked" not in done.stdout
    of_flaky = ET.parse(suite.folder / "report.xml").getroot().findall("testsuite")[1]
    properties = {entry.get("name"): entry.get("value") for entry in of_flaky.iter("property")}
    assert properties == {
        "pass_rate": "0.666667", "pass_rate_low": "0.20766", "pass_rate_high": "0.938508", "stability": "flaky",
    }  # fmt: skip


class TestThresholds:
    LOSING = "search rm@1"
    """One of two runs fails."""

    @pytest.mark.parametrize(
        ("thresholds", "flags", "said"),
        [
            ("{default: 0.5}", (), "threshold reached: 1 of 2 runs of the suite passed: 0.50, between 0.09 and 0.91"),
            ("{default: 0.6, tolerance: 0.1}", (), "threshold reached: "),
            ("{default: 0.6}", (), "threshold BELOW: "),
            ("{default: 0.6, behavior: informational}", (), "threshold BELOW (informational): "),
            ("{default: 0.2}", ("--gate-on", "lower-bound"), "threshold BELOW: "),
        ],
    )
    def test_a_suites_pass_rate_is_held_against_it(self, suite, thresholds, flags, said) -> None:
        """Threshold, tolerance, behaviour and --gate-on decide what is said, in the terminal, in JSON and in JUnit."""
        suite.write(f"thresholds: {thresholds}\n", losing=self.LOSING)
        done = suite.run(2, *flags)
        (found,) = suite.results["thresholds"]
        case = ET.parse(suite.folder / "report.xml").getroot().find("testsuite[@name='(thresholds)']/testcase")

        assert said in done.stdout
        assert found["reached"] is ("reached:" in said)
        assert found["gate_on"] == (flags[1] if flags else "rate")
        assert (case.find("failure") is not None) == (said == "threshold BELOW: ")
        assert (case.find("skipped") is not None) == ("informational" in said)

    def test_alone_it_is_exit_1(self, suite) -> None:
        """Two good runs do not show a rate of 0.9: nothing else failed, and the campaign did."""
        suite.write("thresholds: {default: 0.9}\n", good="search")
        done = suite.run(2, "--gate-on", "lower-bound", "--quiet")

        assert done.returncode == 1
        assert done.stdout.splitlines()[0] == (
            "threshold BELOW: 2 of 2 runs of the suite passed: 1.00, between 0.34 and 1.00; the threshold is 0.9, held "
            "against the lower end"
        )
        assert "exit 1: the suite's pass rate is below its threshold" in done.stdout

    def test_a_model_has_its_own(self, suite) -> None:
        """`models` goes before `default`, and each model's runs are counted apart."""
        suite.write(
            "models: [{model_id: big}, {model_id: small}]\nthresholds: {default: 0.9, models: {small: 0.4}}\n",
            losing=self.LOSING,
        )
        suite.run(2)

        assert [(one["model_id"], one["threshold"], one["reached"]) for one in suite.results["thresholds"]] == [
            ("big", 0.9, False),
            ("small", 0.4, True),
        ]

    @pytest.mark.parametrize(
        ("incomplete", "flags", "code"),
        [("error", (), 3), ("warn", (), 0), ("warn", ("--gate-incomplete", "error"), 3)],
    )
    def test_incomplete_is_the_flags_default(self, suite, incomplete, flags, code) -> None:
        """`incomplete: warn` lets inconclusive runs pass, unless the flag says otherwise."""
        suite.write(f"thresholds: {{incomplete: {incomplete}}}\n", unsure="search")
        case = suite.root / "configs/cases/unsure/test.yaml"
        case.write_text(case.read_text() + "  - {type: trace_cost, max_usd: 1, on_missing: inconclusive}\n")
        done = suite.run(1, *flags)

        assert suite.results["cases"][0]["runs"][0]["status"] == "inconclusive", done.stdout
        assert done.returncode == code

    def test_undecided_runs_leave_it_undecided(self, suite) -> None:
        """Runs that could have passed keep a rate from being below as they keep it from being reached: exit 3."""
        suite.write("thresholds: {default: 1.0}\n", unsure="search")
        case = suite.root / "configs/cases/unsure/test.yaml"
        case.write_text(case.read_text() + "  - {type: trace_cost, max_usd: 1, on_missing: inconclusive}\n")
        done = suite.run(2)

        assert done.returncode == 3
        assert "threshold UNDECIDED: 0 of 2 runs of the suite passed, 2 undecided" in done.stdout
        assert suite.results["thresholds"][0]["reached"] is None


class TestComparison:
    @pytest.fixture(scope="class")
    @staticmethod
    def later(tmp_path_factory: pytest.TempPathFactory) -> Suite:
        """A project with a baseline of a healthy suite, and a later campaign with planned faults in two of its cases."""
        suite = Suite(tmp_path_factory.mktemp("compared"))
        suite.write(refund="search tokens=100", steady="search rm@3", hungry="search tokens=100", gone="search")
        assert suite.run(6).returncode == 1
        assert suite.clawtrace("baseline", "set", "main", "s").returncode == 0
        suite.write(
            refund="search rm@1,2,3,4,5 tokens=100", steady="search rm@3", hungry="search tokens=300", new="search"
        )
        assert suite.run(6).returncode == 1
        return suite

    def test_the_faults_are_found_and_nothing_else(self, later) -> None:
        """A fault in five of six runs is a regression of the pass rate, three times the tokens one of tokens; exit 1."""
        code, found = later.compare("compare", "main", "s", "--fail-on", "pass-rate")
        cases = {case["case_id"]: case for case in found["cases"]}
        tokens = {name: _measure(case, "tokens") for name, case in cases.items()}

        assert code == 1
        assert found["verdict"] == "regression"
        assert {name: case["pass_rate"]["verdict"] for name, case in cases.items()} == {
            "refund": "regression", "steady": "no evidence", "hungry": "no evidence",
        }  # fmt: skip
        refund = cases["refund"]["pass_rate"]
        assert (refund["first"]["passed"], refund["second"]["passed"], refund["second"]["failed"]) == (6, 1, 5)
        assert refund["difference"] == pytest.approx(-5 / 6)
        assert refund["p_value"] == pytest.approx(14 / 924)  # (6 + 1 + 6 + 1) / C(12, 6): Fisher's by hand
        assert refund["adjusted_p_value"] == refund["p_value"]
        assert (tokens["hungry"]["verdict"], tokens["hungry"]["difference"]) == ("regression", 200)
        assert (tokens["refund"]["verdict"], tokens["refund"]["reason"]) == (
            "no evidence",
            "all runs have the same value",
        )
        assert tokens["steady"] is None
        assert cases["refund"]["assertions"] == [
            {
                "id": "tool_not_invoked",
                "first_passed": 6,
                "first_asked": 6,
                "second_passed": 1,
                "second_asked": 6,
                "edited": False,
            }
        ]
        assert cases["steady"]["assertions"] == []

    def test_cases_of_one_side_are_listed(self, later) -> None:
        """A case that is gone could hide a regression, which is said; a new one is only named."""
        _, found = later.compare("compare", "main", "s")

        assert [case["case_id"] for case in found["only_in_first"]] == ["gone"]
        assert [case["case_id"] for case in found["only_in_second"]] == ["new"]
        assert found["not_shown"] == ["1 of the first campaign's cases are not in the second."]

    def test_a_baseline_is_checked_by_its_bare_name(self, later) -> None:
        """`baseline check main` holds the campaign against the baseline, and never the baseline against itself."""
        by_name = later.clawtrace("baseline", "check", "main")

        assert by_name.returncode == 1
        assert by_name.stdout == later.clawtrace("baseline", "check").stdout

    def test_reviewers_read_the_same(self, later) -> None:
        """The comment names what got worse with its culprit, not the case that fails as before, and what is not known."""
        done = later.clawtrace("report", "s", "--compare", "main", "--to", "comment")
        text = html.unescape(re.sub(r"</?code>", "`", done.stdout))
        head, worse = text.split("\n\n#### What did not pass")[0].split("\n\n#### What got worse\n\n")
        refund, message, span, *hungry = worse.splitlines()

        assert head.startswith(
            "### ❌ s: 18 of 24 runs passed\nExit code 1: something failed.\nAgainst main: 2 cases got worse."
        )
        assert "tokens 210 → 410 (+95%), known of 2 of 3 cases; time " in head
        assert head.endswith(". 1 of the first campaign's cases are not in the second.")
        assert refund.startswith("- **refund**: passed 6/6 → 1/6")
        assert message.startswith("  - `tool_not_invoked`: `rm` was attempted 1 time")
        assert message.endswith("(`configs/cases/refund/test.yaml:8`)")
        assert re.match(r"    span `execute_tool rm` `[0-9a-f]{16}`: ", span)
        assert hungry == ["- **hungry**: tokens 105 → 305"]

    def test_people_read_the_same(self, later) -> None:
        """The table has the plain numbers, the sizes, what changed, and the exit code with its meaning."""
        done = later.clawtrace("baseline", "check")
        lines = [line.split() for line in done.stdout.splitlines()]

        assert done.returncode == 1
        assert ["refund", "passed", "6/6", "1/6", "-83", "points", "(-97", "to", "-28)", "0.015", "regression"] in lines
        assert "hungry       tokens" in done.stdout
        assert "steady       tokens" not in done.stdout
        assert "  • refund · tool_not_invoked: passed in 6/6, now in 1/6\n" in done.stdout
        assert "only in the first: gone\nonly in the second: new\n" in done.stdout
        assert "not shown: 1 of the first campaign's cases" in done.stdout
        assert "exit 1: regression" in done.stdout

    def test_never_is_never(self, later) -> None:
        """--fail-on never prints the regression and exits 0."""
        code, found = later.compare("compare", "main", "s", "--fail-on", "never")

        assert (code, found["verdict"]) == (0, "regression")

    def test_the_other_way_round_it_is_an_improvement(self, later) -> None:
        """What is a regression from A to B is an improvement from B to A."""
        _, found = later.compare("compare", "s", "main", "--fail-on", "pass-rate")
        cases = {case["case_id"]: case for case in found["cases"]}

        assert cases["refund"]["pass_rate"]["verdict"] == "improvement"
        assert _measure(cases["hungry"], "tokens")["verdict"] == "improvement"

    def test_a_baseline_outlives_its_campaign(self, later, tmp_path) -> None:
        """Its folder moved away, a baseline says the same as before; all three names of a campaign mean it."""
        shutil.copytree(later.root / "outputs", tmp_path / "outputs")
        before = later.compare("compare", "main", "s")[1]
        (folder,) = (tmp_path / "outputs/campaigns/s").iterdir()
        folder.rename(tmp_path / "elsewhere")
        baseline = tmp_path / "outputs/baselines/main.json"
        for first, second in (("main", tmp_path / "elsewhere"), (baseline, tmp_path / "elsewhere/report.json")):
            after = later.compare("compare", first, second, "--out", tmp_path / "outputs")[1]

            assert (after["cases"], after["suites"]) == (before["cases"], before["suites"])
        assert str(later.root) not in baseline.read_text()

    def test_show(self, later) -> None:
        """`baseline show` lists baselines, and the pass rates of one."""
        listed = later.clawtrace("baseline", "show")
        (shown,) = json.loads(later.clawtrace("baseline", "show", "main", "--json").stdout)

        assert listed.stdout.splitlines()[1].split()[:4] == ["main", "s", "4", "24"]
        assert shown["source"].startswith("campaigns/s/default-")
        assert [(case["case_id"], case["passed"], case["failed"]) for case in shown["cases"]] == [
            ("refund", 6, 0), ("steady", 5, 1), ("hungry", 6, 0), ("gone", 6, 0),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (("compare", "mian", "s"), "There is no campaign 'mian'. Did you mean `main`?"),
            (("compare", "main", "configs"), "The folder 'configs' has no report.json"),
            (("compare", "main", "clawtrace.yaml"), "'clawtrace.yaml' is not JSON"),
            (("baseline", "set", "a b", "s"), "found 'a b'"),
            (("baseline", "show", "old"), "There is no baseline 'old'. There are: main."),
            (("baseline", "check", "s", "--name", "mian"), "There is no baseline 'mian'. Did you mean `main`?"),
        ],
    )
    def test_mistakes(self, later, args, said) -> None:
        """What does not exist or is something else is one line, with what there is, and exit 2."""
        done = later.clawtrace(*args)

        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr


class TestModels:
    def test_two_of_one_campaign(self, suite) -> None:
        """Their runs are compared case by case; the same models with each other are no regression."""
        suite.write("models: [{model_id: small}, {model_id: large}]\n", case="search rm@large")
        suite.run(4)
        code, found = suite.compare("compare", "s@small", "s@large")
        (case,) = found["cases"]
        passed = [case["pass_rate"][side]["passed"] for side in ("first", "second")]

        assert (code, case["verdict"], case["model_id"], passed) == (1, "regression", None, [4, 0])
        assert suite.compare("compare", "s", "s")[1]["cases"][0]["model_id"] == "small"
        for sides, said in (
            (("s@small", "s"), "Name a model on both sides"),
            (("s@smal", "s@large"), "has no runs with the model 'smal'. Did you mean `small`?"),
        ):
            done = suite.clawtrace("compare", *sides)
            assert (done.returncode, done.stdout) == (2, "")
            assert said in done.stderr


class TestNoFalseComfort:
    @pytest.mark.smoke
    def test_single_runs_show_nothing_and_say_so(self, suite) -> None:
        """One run against one: whatever the second does is no evidence, and that is exit 3, not 0."""
        suite.write(only="search")
        suite.run(1)
        suite.clawtrace("baseline", "set", "main", "s")
        suite.write(only="search rm")
        suite.run(1)
        code, found = suite.compare("baseline", "check")
        test = found["cases"][0]["pass_rate"]

        assert (code, found["verdict"]) == (3, "no evidence")
        assert (test["reason"], test["noticed_at"]) == ("too few runs to detect any difference", None)
        assert "even if all runs had failed" in found["not_shown"][0]
        assert "3 repetitions in both campaigns would show it" in found["not_shown"][0]
        assert "never" in suite.clawtrace("baseline", "check").stdout

    def test_an_unchanged_suite_passes_and_says_what_it_would_have_seen(self, suite) -> None:
        """Six good runs against six: exit 0, and a fall to one of six would have been noticed."""
        suite.write(only="search")
        suite.run(6)
        suite.clawtrace("baseline", "set", "main", "s")
        suite.run(6, "--no-reuse")
        code, found = suite.compare("baseline", "check", "--fail-on", "pass-rate")

        assert (code, found["not_shown"], found["shared_runs"]) == (0, [], 0)
        assert found["cases"][0]["pass_rate"]["noticed_at"] == 1
        assert found["suites"][0]["pass_rate"]["noticed_at"] == 1

    def test_runs_that_were_reused_are_no_evidence(self, suite) -> None:
        """Nothing was edited, so the same six runs stand for themselves: that says nothing of the agent today."""
        suite.write(only="search")
        suite.run(6)
        suite.clawtrace("baseline", "set", "main", "s")
        suite.run(6)
        code, found = suite.compare("baseline", "check")

        assert (code, found["shared_runs"]) == (3, 6)
        assert "nothing new was measured" in found["not_shown"][0]

    def test_undecided_runs_are_no_evidence(self, suite) -> None:
        """When the second campaign's runs leave no trace nothing was decided: exit 3, with the reason."""
        suite.write(only="search")
        suite.run(4)
        suite.clawtrace("baseline", "set", "main", "s")
        case = suite.root / "configs/cases/only/test.yaml"
        case.write_text(case.read_text().replace(str(AGENT), "-c").replace('"{{run_id}}"', '"pass"'))
        suite.run(4)
        code, found = suite.compare("baseline", "check")
        test = found["cases"][0]["pass_rate"]

        assert code == 3
        assert (test["second"]["undecided"], test["p_value"]) == (4, None)
        assert test["reason"] == "the second campaign has no decided run"
        assert "1 case has no decided run in one of the campaigns, such as 'only'." in found["not_shown"]

    def test_a_campaign_is_not_compared_with_itself(self, suite) -> None:
        """Checking a baseline before anything was run again is a mistake, not a pass."""
        suite.write(only="search")
        suite.run(1)
        assert "There is no baseline yet" in suite.clawtrace("baseline", "check").stderr
        done = suite.clawtrace("baseline", "set", "main", "s")
        assert done.returncode == 0, done.stderr
        done = suite.clawtrace("baseline", "check")

        assert done.returncode == 2
        assert "was not run again since it became the baseline `main`" in done.stderr
        assert suite.clawtrace("baseline", "check", "main").stderr == done.stderr


def _measure(case: dict, name: str) -> dict | None:
    return next((one for one in case["measures"] if one["measure"] == name), None)
