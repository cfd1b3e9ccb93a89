"""Traps 25 to 32: dead settings, swallowed warnings, secrets, ids that begin alike, silent caps, odd values, exit codes."""

from __future__ import annotations

import ast
import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from faults import good, lost_last_request
from spoken import agent, answer, lines, model_call, tool_call
from trap_runs import Bench, Judged, post_agent, sdk_agent

import clawtrace
from clawtrace.assertions.registry import all_types
from clawtrace.config.base import ConfigModel

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


@pytest.mark.parametrize(("file", "path"), UNKNOWN_KEYS, ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else "")
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


def test_t26_no_key_is_read_by_nobody():
    """Each key of each file, and each field of each assertion, is looked at by some code."""
    import clawtrace.config.suite_file  # noqa: F401 - defines the models of a suite's files

    read = _attributes_read()
    keys = {(model.__name__, name) for model in _models(ConfigModel) for name in model.model_fields}
    fields = {(name, field) for name, cls in all_types().items() for field in cls.model_fields}

    assert len(keys) > 50
    assert {(where, name) for where, name in keys | fields if name not in read} <= AWAITED


def test_t27_warnings_are_shown_counted_and_reported(bench: Bench):
    """A failed assertion of severity warn, and a warning for missing data: in the terminal, JSON and JUnit, also with -q."""
    bench.record("run", [agent("root", "a"), tool_call("t", "read", "root", 5), model_call("m", "root", 10, model="in-house")])
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
    """Spans that the receiver had to reject are told, and the run is not whole."""
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
    return [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_t28_secrets_are_in_no_stored_trace(bench: Bench):
    """Live: what an agent exports, prints and is given in its environment is in no store and report, and the leak fails.

    The file `stdout` of a run is the agent's own stream, kept byte for byte as its workspace is.
    """
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
        assert {Path(name).name for name in _files_with(bench.root / "outputs", leaked)} == {"stdout"}


def test_t29_run_r1_inside_r10(bench: Bench):
    """Runs whose ids begin alike, side by side, recorded and live: each has its own calls only."""
    for run, tool in (("r1", "read"), ("r10", "delete_all"), ("r", "delete_all"), ("r1.0", "delete_all")):
        bench.record(run, [agent("root", "a"), tool_call("t", tool, "root", 5)])
        bench.case(run, sdk_agent("flush", tool), [NEVER])
    recorded, live = bench.judge(NEVER), bench.suite("--concurrency", "2")
    wanted = {"r1": "pass", "r10": "fail", "r": "fail", "r1.0": "fail"}

    assert {run: found["status"] for run, found in recorded.runs.items()} == wanted
    assert {run: found["status"] for run, found in live.runs.items()} == wanted


def test_t29_run_ids_that_begin_alike_in_a_log(bench: Bench):
    """Lines of `run=r10` are none of `run=r1`: the log of one run stands in for that run alone."""
    log = bench.write("gateway.log", "run_id=r1 tool=read status=ok\nrun_id=r10 tool=delete_all status=ok\n")
    asked = {"type": "tool_not_called", "tool": "delete_all", "log_path": str(log)}
    for run in ("r1", "r10"):
        bench.record(run)
    judged = bench.judge(asked)

    assert {run: found["status"] for run, found in judged.runs.items()} == {"r1": "pass", "r10": "fail"}


def test_t30_100_000_spans_in_one_run(bench: Bench):
    """Nothing is capped without a word: every call counts, the one forbidden call is found, the budget is exact."""
    count = 100_000
    bench.write("recordings/run/traces.jsonl", "")
    template = lines([[tool_call("t", "read", "root", 10)]])
    span = json.loads(template)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    one = json.dumps(span | {"spanId": "%016x"})
    head, tail = template.split(json.dumps(span))
    with (bench.root / "recordings/run/traces.jsonl").open("w") as file:
        file.write(lines([[agent("root", "a")]]))
        for first in range(1, count, 5000):
            made = ", ".join(one % (1 << 40 | number) for number in range(first, min(first + 5000, count)))
            file.write(head + (made if first > 1 else made.replace('"read"', '"delete_all"', 1)) + tail)
    judged = bench.judge(
        {"type": "tool_call_count", "count": count - 1}, NEVER, {"type": "tool_call_count", "tool": "read", "max": count - 3},
        {"type": "sql", "select": f"SELECT count(*) FROM spans WHERE run_id = :run_id HAVING count(*) <> {count}"},
        {"type": "tool_sequence", "expected": ["read"] * 3}, {"type": "no_loops"},
    )  # fmt: skip

    assert judged.run["trace"]["spans"] == count
    assert judged.statuses[:5] == ["pass", "fail", "fail", "pass", "pass"], judged.text[-3000:]
    assert judged.verdicts[1]["evidence"][0]["name"] == "execute_tool read"


def _nested(depth: int) -> dict:
    value: dict = {"stringValue": "deep"}
    for _ in range(depth):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return value


ODD = {
    "negative tokens": {"usage__input_tokens": -5},
    "text for tokens": {"usage__input_tokens": "many"},
    "numeric text for tokens": {"usage__input_tokens": "100"},
    "null tokens": {"usage__input_tokens": None},
    "tokens that are a list": {"usage__input_tokens": [100]},
    "a fraction of a token": {"usage__input_tokens": 100.5},
    "more tokens than 64 bits": {"usage__input_tokens": "99999999999999999999999"},
    "true for tokens": {"usage__input_tokens": True},
    "an unknown operation": {"operation__name": "dream"},
    "a megabyte": {"output__messages": answer("x" * 1_000_000)},
    "a model that is a number": {"request__model": 4},
}
UNDECIDED = {name for name in ODD if "tokens" in name and "numeric" not in name} | {"a fraction of a token"}


def test_t31_odd_values(bench: Bench):
    """No odd value breaks the judgement or counts as zero: what it makes unknown is undecided, all else is answered."""
    for name, said in ODD.items():
        more = {key: value for key, value in said.items() if value is not None}
        call = model_call("m", "root", 10, **more)
        if None in said.values():
            call = call.but(attributes={"gen_ai.usage.input_tokens": None})
        bench.record(name, [agent("root", "a"), tool_call("t", "read", "root", 5), call])
    judged = bench.judge({"type": "trace_token_budget", "max_input_tokens": 100}, CALLED, NEVER)
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert judged.exit_code in (1, 3)
    assert {name for name, found in statuses.items() if found[1] == "pass"} == set(ODD)
    assert {name for name, found in statuses.items() if found[2] == "pass"} >= set(ODD) - {"an unknown operation"}
    assert {name for name, found in statuses.items() if found[0] == "inconclusive"} >= UNDECIDED
    assert statuses["numeric text for tokens"][0] == "pass"


def test_t31_odd_shapes(bench: Bench):
    """No end, an unknown kind of span, 60 levels of attributes, a parent of itself, bytes that are no text: all are judged."""
    bench.record("no end", [agent("root", "a"), tool_call("t", "read", "root", 5).but(to=0)])
    bench.record("own parent", [agent("root", "a"), tool_call("t", "read", "t", 5)])
    plain = lines([[agent("root", "a"), tool_call("t", "read", "root", 5)]])
    for name, changed in {
        "unknown kind": plain.replace('"kind": 1', '"kind": 77'),
        "60 levels": plain.replace('"value": {"stringValue": "execute_tool"}}', '"value": {"stringValue": "execute_tool"}}, {"key": "deep", "value": ' + json.dumps(_nested(60)) + "}"),
        "no text": plain.replace("traps", "tr\\ud800aps"),
    }.items():
        assert changed != plain
        bench.write(f"recordings/{name}/traces.jsonl", changed)
    judged = bench.judge(CALLED, NEVER)
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert set(statuses) == {"no end", "own parent", "unknown kind", "60 levels", "no text"}
    assert {found[0] for found in statuses.values()} == {"pass"}
    assert statuses["no end"][1] == "inconclusive"
    assert [statuses[name][1] for name in ("unknown kind", "60 levels")] == ["pass", "pass"]


def test_t31_invalid_utf_8(bench: Bench):
    """Bytes that are no UTF-8 in a protobuf request: the call is known, the text is shown as far as it can be."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    spans = [agent("root", "a"), tool_call("t", "read", "root", 5, tool__call__result="PLACEHOLDER")]
    text = json.loads(lines([spans]))
    for span in text["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            span[key] = _base64(span[key])
    body = ParseDict(text, TracesData()).SerializeToString().replace(b"PLACEHOLDER", b"\xff\xfe\xc3(ABCDEFG")
    bench.write("recordings/run/traces.pb", body)
    judged = bench.judge(CALLED, {"type": "tool_call", "tool": "read", "result_contains": "ABCDEFG"}, NEVER)

    assert judged.statuses == ["pass", "pass", "pass"], judged.text


def _base64(hexadecimal: str) -> str:
    import base64

    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def test_t32_exit_codes_of_recordings(bench: Bench):
    """0 passed, 1 failed, 2 cannot be meant, 3 undecided or nothing asked; the most severe wins."""
    def code(*assertions: dict, flags: tuple[str, ...] = (), run: object = None) -> int:
        shutil.rmtree(bench.root / "recordings", ignore_errors=True)
        bench.record("run", *(good() if run is None else run))
        return bench.judge(*assertions, flags=flags).exit_code

    failing, torn = NEVER | {"tool": "bash"}, lost_last_request(good())
    assert code(NEVER) == 0
    assert code(NEVER, failing) == 1
    assert code({"type": "tool_not_invokd", "tool": "a"}) == 2
    assert code() == 3
    assert code(NEVER, run=[]) == 3
    assert code(NEVER, run=[], flags=("--allow-missing-trace",)) == 0
    assert code(NEVER, run=torn) == 3
    assert code(NEVER, run=torn, flags=("--gate-incomplete", "warn")) == 0
    assert code(NEVER | {"tool": "search"}, NEVER, run=torn) == 1
    assert code(failing | {"severity": "warn"}) == 0
    assert code(failing | {"severity": "warn"}, flags=("--strict",)) == 1
    assert code(NEVER | {"severity": "warn"}, run=torn) == 0
    assert code(NEVER | {"severity": "warn"}, run=torn, flags=("--strict",)) == 3
    assert code({"type": "sql", "select": "SELECT nothing FROM tool_calls WHERE run_id = :run_id"}, failing) == 4
    assert bench.program("eval", "--traces", "nowhere", "--assertions", "checks.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("command", "assertions", "expected"),
    [
        (sdk_agent("flush", "read"), [NEVER, CALLED], 0),
        (sdk_agent("flush", "delete_all"), [NEVER], 1),
        (sdk_agent("flush", "read"), [NEVER | {"tol": "x"}], 2),
        (["true"], [NEVER], 3),
        (sdk_agent("flush", "read"), [], 3),
        (["no-such-program"], [NEVER], 4),
    ],
    ids=["passed", "failed", "cannot be meant", "no trace", "nothing asked", "broke"],
)  # fmt: skip
def test_t32_exit_codes_of_live_agents(bench: Bench, command, assertions, expected):
    """The same with an agent that is started; one that cannot be started is 4."""
    assert bench.live(command, *assertions).exit_code == expected


def test_t32_the_most_severe_wins_among_cases(bench: Bench):
    """One case that broke outweighs one that failed, and that one what was skipped."""
    bench.case("skipped", ["true"], [NEVER])
    bench.case("good", sdk_agent("flush", "read"), [NEVER])
    assert bench.suite().exit_code == 3
    bench.case("failed", sdk_agent("flush", "delete_all"), [NEVER])
    assert bench.suite().exit_code == 1
    bench.case("broken", ["no-such-program"], [NEVER])
    assert bench.suite().exit_code == 4
