"""Traps 17 to 24: clocks, totals and caches that deceive, stale files, false answers, hidden failures, imitations, edits."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from spoken import Span, agent, answer, model_call, tool_call
from trap_runs import Bench, post_agent

pytestmark = pytest.mark.full


NEVER = {"type": "tool_not_invoked", "tool": "rm"}
HOUR = 3_600_000.0


def statuses(judged) -> dict[str, list[str]]:
    """The statuses of each run."""
    return {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}


def test_t17_clock_skew_open_spans_and_idle_gaps(bench: Bench):
    """No clock that lies, no span without an end and no pause makes a duration pass that is unknown."""
    root = agent("root", "a", at=1000, to=2000)
    bench.record("whole", [root, tool_call("t", "read", "root", 1100, 1200)])
    bench.record("open", [root, tool_call("t", "read", "root", 1100).but(to=0)])
    bench.record("open root", [root.but(to=0), tool_call("t", "read", "root", 1100, 1200)])
    bench.record("ends before it starts", [root, tool_call("t", "read", "root", 1100).but(to=500)])
    bench.record("the root ends before it starts", [root.but(to=500), tool_call("t", "read", "root", 1100, 1200)])
    bench.record("another clock", [root, tool_call("t", "read", "root", HOUR, HOUR + 100)])
    late = [root.but(at=HOUR, to=HOUR + 1000), tool_call("t", "read", "root", 100, 200)]
    bench.record("another clock, behind", late)
    idle = [agent("root", "a", at=1000, to=1100), agent("next", "a", at=HOUR, to=HOUR + 100).but(trace="u")]
    bench.record("idle", idle)
    judged = bench.judge(
        {"type": "trace_duration", "max_ms": 5000},
        {"type": "span_duration", "span_type": "tool", "max_ms": 500},
        {"type": "trace_duration", "max_ms": 5000, "measure": "busy"},
        {"type": "tool_was_called", "tool": "read"},
        NEVER,
        {"type": "trace_duration", "max_ms": 5000, "agent": "a"},
    )
    found = statuses(judged)

    assert found["whole"] == ["pass"] * 6
    assert set(found["open"][:3]) == {"inconclusive"}
    assert found["open"][3:5] == ["pass", "inconclusive"]
    assert set(found["open root"][:1] + found["open root"][2:3]) == {"inconclusive"}
    assert found["ends before it starts"] == ["pass", "inconclusive", "pass", "pass", "pass", "pass"]
    assert found["the root ends before it starts"] == [
        "inconclusive",
        "pass",
        "inconclusive",
        "pass",
        "pass",
        "inconclusive",
    ]
    assert found["another clock"] == ["fail", "pass", "pass", "pass", "pass", "fail"]
    assert found["another clock, behind"] == ["inconclusive", "pass", "inconclusive", "pass", "pass", "inconclusive"]
    assert (found["idle"][0], found["idle"][2]) == ("fail", "pass")


def test_t18_an_agents_total_that_is_only_its_last_calls(bench: Bench):
    """What an agent writes of itself does not stand for what its calls used: the budget of the agent is over."""
    spans = [
        agent("root", "a", usage__input_tokens=100, usage__output_tokens=10),
        model_call("m1", "root", 10), model_call("m2", "root", 20), model_call("m3", "root", 30),
    ]  # fmt: skip
    judged = bench.judge_spans(
        spans,
        {"type": "per_span_budget", "span_type": "agent", "max_tokens": 329},
        {"type": "per_span_budget", "span_type": "subagent", "max_tokens": 330},
        {"type": "trace_token_budget", "max_total_tokens": 329},
        {"type": "trace_token_budget", "max_input_tokens": 300, "max_output_tokens": 30},
        {"type": "token_budget", "max_total_tokens": 110},
    )

    assert judged.statuses == ["fail", "pass", "fail", "pass", "fail"]


CACHED = ["pydantic-ai+anthropic/cached_write", "gemini-cli/cached_tokens", "vercel-ai7+legacy/cached_tokens",
          "openai-sdk+official+openinference/cached_tokens"]  # fmt: skip


@pytest.mark.parametrize("name", CACHED)
def test_t19_cached_tokens_inside_or_outside_of_the_input(bench: Bench, recordings: Path, name):
    """Whether an instrumentation counts cached tokens as input or apart from it: the budget is held against all input, once."""
    shutil.copytree(recordings / name, bench.root / "recordings" / "run")
    calls = json.loads((recordings / name / "truth.json").read_text())["llm_calls"]
    sent = sum(call["input_tokens"] for call in calls)
    cached = sum(call["cached_input_tokens"] for call in calls)
    asked = [{"type": "trace_token_budget", "max_input_tokens": most} for most in (sent, sent - 1, sent - cached)]
    judged = bench.judge(*asked)

    assert cached > 0
    assert judged.statuses == ["pass", "fail", "fail"]


def test_t19_more_cached_than_input_proves_that_it_was_left_out(bench: Bench):
    """Ten input tokens of which ninety were cached cannot be: the call used a hundred."""
    call = model_call("m", "root", 10, usage__input_tokens=10, usage__cache_read__input_tokens=90)
    judged = bench.judge_spans(
        [agent("root", "a"), call], *({"type": "trace_token_budget", "max_input_tokens": most} for most in (100, 99))
    )

    assert judged.statuses == ["pass", "fail"]


@pytest.mark.full
def test_t20_stale_files(bench: Bench):
    """A file that was there before the run is not the run's, in five ways of asking; one it changed is."""
    bench.write("configs/cases/one/start/report.md", "# Findings\nstatus: done\n")
    bench.write("configs/cases/one/start/state.yaml", "status: done\n")
    bench.write("configs/cases/one/golden.md", "# Findings\nstatus: done\n")
    asked = [
        {"type": "artifact_exists", "path": "report.md"},
        {"type": "artifact_contains", "path": "report.md", "sections": ["Findings"]},
        {"type": "openclaw_workspace_file_present", "relative_path": "report.md"},
        {"type": "output_artifact_present", "artifact_type": "md"},
        {"type": "artifact_exists", "path": "report.md", "updated_after": "{{run_started_at}}"},
    ]
    accepted = {"type": "artifact_exists", "path": "report.md", "allow_stale": True}
    stale = bench.live("true", *asked, accepted, runner={"scaffold": "start"})
    fresh = bench.live("echo '# Findings' > report.md", *asked, accepted, runner={"scaffold": "start"})

    assert stale.statuses == ["fail"] * 5 + ["pass"], stale.text
    assert fresh.statuses == ["pass"] * 6, fresh.text
    assert "was there before the run" in stale.verdicts[0]["message"]


@pytest.mark.parametrize(
    "prints",
    [
        "echo 'The report is done.' >&2",
        "echo '{\"payloads\": []}'",
        "echo '   '",
        "true",
        "echo 'The report is done.'; exit 3",
    ],
    ids=["standard error", "an envelope without content", "white space", "nothing", "and then fails"],
)
@pytest.mark.full
def test_t21_standard_error_or_raw_json_is_no_answer(bench: Bench, prints):
    """Only words on standard output of a run that ended well are an answer; a good answer passes both questions."""
    recording = bench.record("sent", [agent("root", "a"), tool_call("t", "read", "root", 10)])
    post = " ".join(f"'{word}'" for word in post_agent(recording, says="")[:-2])
    asked = [{"type": "final_response_present"}, {"type": "final_response", "equals": "The report is done."}]
    bench.case("one", f"{post} 1 '' >/dev/null; {prints}", asked)
    bench.case("good", f"{post} 1 '' >/dev/null; echo 'The report is done.'", asked)
    found = statuses(bench.suite())

    assert found["good"] == ["pass", "pass"]
    assert found["one"][0] in ("fail", "inconclusive")
    assert found["one"][1] != "pass" or "exit 3" in prints


def test_t22_a_last_command_that_hides_the_one_that_failed(bench: Bench):
    """`ls` after a broken build ends well; the build is asked for by name, by `all`, and by `ran` with `status: ok`."""

    def shell(id: str, text: str, at: float, code: int, out: str = "") -> Span:
        result = json.dumps({"exit_code": code, "stdout": out, "stderr": "" if code == 0 else "ld: failed"})
        arguments = json.dumps({"command": text})
        return tool_call(id, "bash", "root", at, tool__call__arguments=arguments, tool__call__result=result)

    spans = [agent("root", "a"), shell("t1", "make build", 10, 2), shell("t2", "ls", 20, 0, "README")]
    wanted = [
        ({"type": "exit_code", "value": 0}, "pass"),
        ({"type": "exit_code", "value": 0, "of": "all"}, "fail"),
        ({"type": "exit_code", "value": 0, "of": {"matching": "^make"}}, "fail"),
        ({"type": "exit_code", "value": 2, "of": "any"}, "pass"),
        ({"type": "ran", "pattern": "^make build", "status": "ok"}, "fail"),
        ({"type": "error_contains", "value": "failed", "of": {"matching": "^make"}}, "pass"),
        ({"type": "error_contains", "value": "failed"}, "fail"),
    ]
    judged = bench.judge_spans(spans, *(asked for asked, _ in wanted))
    hidden = bench.judge_spans(
        [spans[0], shell("t1", "make build; ls", 10, 0)], {"type": "exit_code", "value": 0, "of": {"matching": "^make"}}
    )

    assert judged.statuses == [status for _, status in wanted], judged.text
    assert hidden.statuses == ["inconclusive"]


IMITATIONS = [
    "tool=rm", "[gateway] tool_call tool=rm status=ok", "PASS  one · tool_was_called", "exit 0: everything passed",
    '{"exit_code": 0, "totals": {"passed": 9, "failed": 0}}', "clawtrace: verdict=pass", "\x1b[2K\rPASS",
]  # fmt: skip


def test_t23_an_agent_that_imitates_calls_and_verdicts(bench: Bench):
    """What it prints, answers, asks for or is answered makes no call and no verdict, live: rm was not called, save was not."""
    said = "\n".join(IMITATIONS)
    recording = bench.record(
        "sent",
        [
            agent("root", "a"),
            tool_call("t", "echo", "root", 10, error=said, tool__call__arguments=json.dumps({"text": said}), tool__call__result=said),
            model_call("m", "root", 20, output__messages=answer(said), usage__input_tokens=100),
        ],
    )  # fmt: skip
    judged = bench.live(
        post_agent(recording, says=said), NEVER, {"type": "tool_not_called", "tool": "rm"},
        {"type": "tool_call_count", "count": 1}, {"type": "tool_was_called", "tool": "save"},
        {"type": "tool_call", "tool": "rm"},
    )  # fmt: skip

    assert judged.statuses == ["pass", "pass", "pass", "fail", "fail"]
    assert judged.exit_code == 1
    assert "\x1b[2K" not in judged.stdout


def test_t23_a_span_that_imitates_a_verdict_or_another_run(bench: Bench):
    """Attributes with clawtrace's own names in a span of the run change neither its verdicts nor another run's."""
    spans = [
        agent("root", "a", agent__id="x").but(attributes={"clawtrace.verdict": "pass", "clawtrace.status": "pass"}),
        tool_call("t", "rm", "root", 10).but(attributes={"clawtrace.dialect": "none", "clawtrace.kind": "infra"}),
    ]
    judged = bench.judge_spans(spans, NEVER)

    assert judged.statuses == ["fail"]


@pytest.mark.full
def test_t24_a_verdict_is_not_kept_across_an_edit(bench: Bench):
    """The run is reused, its verdicts are not: each edit of an assertion is judged anew."""
    recording = bench.record("sent", [agent("root", "a"), tool_call("t", "read", "root", 10)])
    command = post_agent(recording)
    known = {"runner": {"inputs": []}}
    first = bench.live(command, {"type": "tool_was_called", "tool": "read"}, **known)
    edited = bench.live(command, {"type": "tool_not_called", "tool": "read"}, **known)
    back = bench.live(command, {"type": "tool_was_called", "tool": "read"}, **known)

    assert [one.statuses for one in (first, edited, back)] == [["pass"], ["fail"], ["pass"]]
    assert [one.run["reused"] for one in (first, edited, back)] == [False, True, True]


@pytest.mark.full
def test_t24_an_outage_is_not_kept(bench: Bench):
    """A run that broke, and one whose spans never came, are run again: the outage is over."""
    bench.write("agents/agent.sh", f"test -e '{bench.root}/up' || exit 7\n{sys.executable} \"$@\"\n")
    recording = bench.record("sent", [agent("root", "a"), tool_call("t", "read", "root", 10)])
    command = ["sh", str(bench.root / "agents/agent.sh"), *post_agent(recording)[1:]]
    asked = {"type": "tool_was_called", "tool": "read"}
    out = bench.live(command, asked, runner={"inputs": []})
    bench.write("up", "")
    back = bench.live(command, asked, runner={"inputs": []})

    assert out.statuses == ["skip", "fail"]
    assert (back.statuses, back.run["reused"]) == (["pass"], False)
