"""Traps 25 to 28: settings that decide nothing, dead keys, swallowed warnings, secrets in stored traces."""

from __future__ import annotations

import ast
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from spoken import agent, answer, model_call, tool_call
from trap_runs import Bench, Judged, post_agent, sdk_agent

import clawtrace
from clawtrace.assertions.registry import all_types
from clawtrace.config.base import ConfigModel

pytestmark = pytest.mark.full


NEVER = {"type": "tool_not_invoked", "tool": "delete_all"}
CALLED = {"type": "tool_was_called", "tool": "read"}
SECRET = "sk-" + "proj-7Zq2LmNf81XcVbTr40PyGh63KdWs95Ej7aTb2Qx8Lm"
PROFILE = {"schema_version": 1, "evaluation_profile_id": "e", "title": "E", "judges": []}


def with_profile(bench: Bench, **more: object) -> Judged:
    """Run a case that passes under an evaluation profile."""
    bench.write("configs/evaluation_profiles/e.yaml", yaml.safe_dump(PROFILE | more, sort_keys=False))
    bench.case("one", sdk_agent("flush", "read"), [CALLED])
    return bench.suite("--evaluation-profile", "e")


@pytest.mark.parametrize("method", ["median", "mean", "p90", "trimmed_mean"])
@pytest.mark.full
def test_t25_aggregation_that_would_all_give_the_median(bench: Bench, method):
    """True today: there is no judge, so that no aggregation exists. The method changes no verdict, and that is said.

    A method with a threshold would gate on a score that never comes: it is refused. When the judge comes, each method
    must be shown here to give its own number.
    """
    said = with_profile(bench, aggregation={"method": method})
    gated = with_profile(bench, aggregation={"method": method, "pass_threshold": 3})

    if said.exit_code == 2:
        assert "`aggregation.method`" in said.stderr
        assert "valid is" in said.stderr
    else:
        assert (said.exit_code, said.statuses) == (0, ["pass"])
        assert "no judge is configured, so `aggregation` changes no verdict" in said.text
    assert gated.exit_code == 2
    assert "aggregation" in gated.stderr


UNKNOWN_KEYS = [
    ("configs/cases/one/test.yaml", ("zzz",)),
    ("configs/cases/one/test.yaml", ("runner", "zzz")),
    ("configs/cases/one/test.yaml", ("input", "zzz")),
    ("configs/cases/one/test.yaml", ("input", "messages", 0, "zzz")),
    ("configs/cases/one/test.yaml", ("assertions", 0, "zzz")),
    ("configs/cases/one/test.yaml", ("assertions", 0, "count", "zzz")),
    ("configs/suites/s.yaml", ("zzz",)),
    ("configs/suites/s.yaml", ("case_selection", "zzz")),
    ("configs/suites/s.yaml", ("thresholds", "zzz")),
    ("configs/run_profiles/p.yaml", ("zzz",)),
    ("configs/run_profiles/p.yaml", ("execution_policy", "zzz")),
    ("configs/evaluation_profiles/e.yaml", ("zzz",)),
    ("configs/evaluation_profiles/e.yaml", ("security_policy", "zzz")),
    ("clawtrace.yaml", ("zzz",)),
    ("clawtrace.yaml", ("store", "zzz")),
    ("clawtrace.yaml", ("model_pricing", "gpt-4o", "zzz")),
]


@pytest.mark.parametrize(
    ("file", "path"), UNKNOWN_KEYS, ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else ""
)
def test_t26_a_key_that_means_nothing_is_refused(bench: Bench, file, path):
    """At every depth of every file: a misspelt key is no comment. The same files without it load."""
    files = {
        "configs/cases/one/test.yaml": {
            "schema_version": 1, "case_id": "one", "title": "T", "runner": {"type": "command", "command": ["true"]},
            "input": {"messages": [{"role": "user", "content": "go"}]},
            "assertions": [{"type": "tool_call", "tool": "a", "count": {"max": 0}}],
        },
        "configs/suites/s.yaml": {
            "schema_version": 1, "suite_id": "s", "title": "S", "case_selection": {"include_case_ids": ["one"]}, "thresholds": {},
        },
        "configs/run_profiles/p.yaml": {"schema_version": 1, "run_profile_id": "p", "title": "P", "execution_policy": {}},
        "configs/evaluation_profiles/e.yaml": PROFILE | {"security_policy": {}},
        "clawtrace.yaml": {"schema_version": 1, "store": {}, "model_pricing": {"gpt-4o": {"input_per_1k": 1, "output_per_1k": 1}}},
    }  # fmt: skip
    for name, data in files.items():
        bench.write(name, yaml.safe_dump(data, sort_keys=False))
    asked = ("eval", "--suite", "s", "--run-profile", "p", "--evaluation-profile", "e", "--dry-run")
    assert bench.program(*asked).exit_code == 0
    place = files[file]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = 1
    bench.write(file, yaml.safe_dump(files[file], sort_keys=False))
    judged = bench.program(*asked)

    assert judged.exit_code == 2
    assert f"error: {file}:" in judged.stderr
    assert "zzz" in judged.stderr


def _attributes_read() -> set[str]:
    """Every name that the package reads as an attribute, or hands over as a text."""
    found = set()
    for path in Path(clawtrace.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found.add(node.value)
    return found


AWAITED = {
    ("Criterion", "what_bad_looks_like"), ("Criterion", "what_good_looks_like"), ("Rubric", "scoring_instructions"),
    ("Expectation", "weight"), ("JudgeRunConfig", "judge_run_id"), ("OpenClawFragments", "model_defaults"),
    ("OpenClawRunProfile", "image"), ("OpenClawRunProfile", "docker_cli"),
}  # fmt: skip
"""Keys that a judge or the runner `openclaw` will read; until then a file that relies on them is refused or warned about."""


def _models(cls: type[ConfigModel]) -> set[type[ConfigModel]]:
    return {cls} | {below for one in cls.__subclasses__() for below in _models(one)}


def test_t26_every_key_is_read():
    """Each key of each file, and each field of each assertion, is looked at by some code."""
    import clawtrace.config.loading.suite_file  # noqa: F401 - defines the models of a suite's files

    read = _attributes_read()
    keys = {(model.__name__, name) for model in _models(ConfigModel) for name in model.model_fields}
    fields = {(name, field) for name, cls in all_types().items() for field in cls.model_fields}

    assert len(keys) > 50
    assert {(where, name) for where, name in keys | fields if name not in read} <= AWAITED


def test_t27_warnings_are_shown_counted_and_reported(bench: Bench):
    """A failed assertion of severity warn, and a warning for missing data: in the terminal, JSON and JUnit, also with -q."""
    bench.record(
        "run", [agent("root", "a"), tool_call("t", "read", "root", 5), model_call("m", "root", 10, model="in-house")]
    )
    warned = NEVER | {"tool": "read", "severity": "warn", "id": "gentle"}
    asked = [warned, {"type": "trace_cost", "max_usd": 1}]
    loud = bench.judge(*asked, flags=["--report", "junit=r.xml"])
    quiet = bench.judge(*asked, flags=["-q", "--allow-missing-data"])
    strict = bench.judge(warned, flags=["--strict"])

    assert (loud.statuses, loud.run["status"], loud.exit_code) == (["fail", "warn"], "warn", 3)
    assert ("severity warn" in loud.stdout, "WARN  " in loud.stdout) == (True, True)
    assert "gentle" in loud.stdout
    assert "gentle" in "".join(ET.parse(bench.root / "r.xml").getroot().itertext()) + (bench.root / "r.xml").read_text()
    assert quiet.exit_code == 0
    assert "warn" in quiet.stdout.lower()
    assert strict.exit_code == 1


def test_t27_what_was_lost_on_the_way_in_is_shown(bench: Bench):
    """Spans that the receiver had to reject are reported, and the run is not whole."""
    bench.record("run", [agent("root", "a")])
    path = bench.root / "recordings/run/traces.jsonl"
    broken = path.read_text().replace('"spanId": "', '"spanId": "zz')
    path.write_text(path.read_text() + broken)
    judged = bench.judge(NEVER)

    assert judged.exit_code in (3, 4)
    assert "pass" not in judged.statuses
    assert "rejected" in judged.text


def _files_with(root: Path, text: str) -> list[str]:
    """Files below a folder whose bytes hold a text, compressed columns of the store included as they are."""
    return [
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
    ]


@pytest.mark.full
def test_t28_secrets_are_in_no_stored_trace(bench: Bench):
    """Live: what an agent exports, prints and is given in its environment is in no file of results, and the leak fails."""
    spans = [
        agent("root", "a"),
        tool_call("t", "read", "root", 10, tool__call__arguments=json.dumps({"key": SECRET}), tool__call__result="of the env-S3cretValue-91x"),
        model_call("m", "root", 20, output__messages=answer(f"your key is {SECRET}")),
    ]  # fmt: skip
    recording, secret = bench.record("sent", spans), "env-S3cretValue-91x"
    bench.write("said.txt", f"key {SECRET} and {secret}")
    post = " ".join(f"'{word}'" for word in post_agent(recording))
    bench.case("one", f"{post}; cat '{bench.root}/said.txt'", [{"type": "no_secret_leak"}, CALLED],
               runner={"pass_env": ["SERVICE_API_KEY"]})  # fmt: skip
    bench.case("printed", f"cat '{bench.root}/said.txt'", [{"type": "no_secret_leak"}])
    judged = bench.suite("-v", env={"SERVICE_API_KEY": secret})
    store = next((bench.root / "outputs").rglob("spans.duckdb"))
    asked = bench.program("query", "SELECT arguments, result FROM tool_calls", "--store", store, "--format", "csv")

    assert [one["status"] for one in judged.runs["one"]["assertions"]] == ["fail", "pass"]
    assert SECRET not in judged.text + json.dumps(judged.report)
    assert "[REDACTED:openai:" in asked.stdout
    assert "[REDACTED:env:" in asked.stdout
    assert (SECRET in asked.stdout, secret in asked.stdout) == (False, False)
    for leaked in (secret, SECRET[:30]):
        assert _files_with(bench.root / "outputs", leaked) == []
