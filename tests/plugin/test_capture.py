"""Captures of this process: what is taken, what a check says of it, and that nothing that is missing goes unnoticed."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from plugin_agents import agent_span, call_tool, run_agent

import clawtrace
from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.errors import UsageError
from clawtrace.expect import tool_not_invoked, tool_sequence, tool_was_called, trace_token_budget
from clawtrace.model.verdict import Status
from clawtrace.session.session import Session

TOOLS = "SELECT name FROM tool_calls ORDER BY call_no"


def tools_of(trace: clawtrace.Trace) -> list[str]:
    return [row["name"] for row in trace.query(TOOLS)]


def test_a_pydantic_ai_agent_is_captured_in_process():
    """An agent of a real framework, instrumented by itself, needs nothing but the block around it."""
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        names = ["get_place", "get_weather"]
        asked = sum(isinstance(message, ModelResponse) for message in messages)
        part = ToolCallPart(names[asked], {"day": "today"}) if asked < 2 else TextPart("It is sunny.")
        return ModelResponse([part])

    agent = Agent(FunctionModel(model), name="weather", capabilities=[Instrumentation()])
    agent.tool_plain(lambda day: f"Paris, {day}", name="get_place")
    agent.tool_plain(lambda day: f"sunny {day}", name="get_weather")

    with clawtrace.capture() as trace:
        assert agent.run_sync("How is the weather?").output == "It is sunny."

    verdict = trace.check(tool_sequence(["get_place", "get_weather"], mode="strict"))
    assert (verdict.status, verdict.final) == (Status.PASS, True)
    trace.check("tool_call", tool="get_weather", args={"day": "today"})
    trace.check("llm_call_count", min=3, max=3)
    facts = trace.inspect()
    assert (facts["complete"], facts["closed_by"]) == (True, "end_run")
    with pytest.raises(clawtrace.CheckFailedError, match=r"get_weather.*was attempted"):
        trace.check(tool_not_invoked("get_weather"))


def test_a_model_over_http_is_captured_with_its_figures():
    """Model calls of a framework that asks a server show model and tokens, as the server reported them."""
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from clawtrace.testing import scripted_model

    steps = [
        {"tool_calls": [{"name": "lookup", "arguments": {"id": 7}}], "usage": {"input": 100, "output": 10}},
        {"text": "done", "usage": {"input": 150, "output": 5}},
    ]
    with scripted_model(steps) as model, clawtrace.capture() as trace:
        provider = OpenAIProvider(base_url=model.url + "/v1", api_key="scripted")
        agent = Agent(OpenAIChatModel("gpt-4o-mini", provider=provider), capabilities=[Instrumentation()])
        agent.tool_plain(lambda id: f"found {id}", name="lookup")
        asyncio.run(agent.run("Look it up."))

    trace.check_all(
        [
            tool_was_called("lookup"),
            {"type": "model_used", "expected": "gpt-4o-mini"},
            trace_token_budget(max_input_tokens=250, max_output_tokens=15),
        ]
    )
    with pytest.raises(clawtrace.CheckFailedError):
        trace.check(trace_token_budget(max_input_tokens=249))


def test_a_failure_shows_sentence_evidence_and_the_marked_tree():
    """The error is a whole report: what was found, and where in the tree; it keeps the verdicts."""
    with clawtrace.capture("refund") as trace:
        run_agent("search", "rm")

    with pytest.raises(AssertionError) as caught:
        trace.check_all([tool_not_invoked("rm"), tool_was_called("search"), tool_was_called("pay")])

    text = str(caught.value)
    assert text.startswith("FAIL  refund · tool_not_invoked")
    assert "▶ └─ execute_tool rm" in text
    assert "  ├─ execute_tool search" in text
    assert isinstance(caught.value, clawtrace.CheckFailedError)
    assert [verdict.type for verdict in caught.value.verdicts] == ["tool_not_invoked", "tool_was_called"]
    assert [verdict.status for verdict in trace.results] == [Status.FAIL, Status.PASS, Status.FAIL]


def test_a_failure_without_evidence_shows_the_tree_all_the_same():
    """What was not called has no span to point at; the tree shows what was."""
    with clawtrace.capture() as trace:
        run_agent("search")

    with pytest.raises(clawtrace.CheckFailedError) as caught:
        trace.check(tool_was_called("pay"))

    assert "  └─ execute_tool search" in str(caught.value)
    assert trace.tree() in str(caught.value)


def test_one_check_takes_several_assertions():
    """As everybody tries first: all verdicts, or one error that shows each that did not pass."""
    with clawtrace.capture() as trace:
        run_agent("search")

    verdicts = trace.check(tool_not_invoked("rm"), {"type": "tool_was_called", "tool": "search"})
    assert [one.status for one in verdicts] == [Status.PASS, Status.PASS]
    with pytest.raises(clawtrace.CheckFailedError) as caught:
        trace.check(tool_was_called("pay"), tool_was_called("search"), tool_not_invoked("search"))
    assert "tool_was_called" in str(caught.value)
    assert "tool_not_invoked" in str(caught.value)


def test_nothing_captured_is_no_pass():
    """A forbidden tool is not shown to be absent by a trace that is not there; the error says what to look at."""
    with clawtrace.capture() as trace:
        pass

    with pytest.raises(clawtrace.CheckFailedError, match=r"(?s)SKIP.*There is no trace.*No span ended.*instrumented"):
        trace.check(tool_not_invoked("rm"))
    assert trace.check(tool_not_invoked("rm"), allow=["missing_trace"]).status is Status.SKIP


def test_spans_outside_of_the_block_are_not_taken():
    """The provider is left as it was found: before and after the block its spans go where they went before."""
    run_agent("before")
    with clawtrace.capture() as trace:
        run_agent("inside")
    run_agent("after")

    assert tools_of(trace) == ["inside"]


def test_a_span_that_never_ends_makes_absence_undecided():
    """A span that still runs when the block ends is stored without an end, and what is not final is inconclusive."""
    with clawtrace.capture() as trace:
        run_agent("search")
        running = otel.get_tracer("agents").start_span("stream")

    try:
        assert trace.check(tool_was_called("search")).status is Status.PASS
        with pytest.raises(clawtrace.CheckFailedError, match=r"(?s)INCONCLUSIVE.*stream") as caught:
            trace.check(tool_not_invoked("rm"))
        assert "never ended" in str(caught.value)
        assert trace.check(tool_not_invoked("rm"), allow=["inconclusive"]).status is Status.INCONCLUSIVE
    finally:
        running.end()


def test_asking_inside_of_the_block_asks_about_what_was_so_far():
    """Between two agent runs a check judges the first; the next check judges both, and the earlier verdict is stale."""
    with clawtrace.capture() as trace:
        run_agent("search")
        assert trace.check(tool_not_invoked("rm")).status is Status.PASS
        run_agent("rm")
        with pytest.raises(clawtrace.CheckFailedError):
            trace.check(tool_not_invoked("rm"))
        assert [verdict.stale for verdict in trace.results] == [True, False]


def test_asking_while_the_agent_runs_decides_only_what_is_final():
    """Inside of an agent's span more may come: a call that happened is one, a call that did not may still happen."""
    with clawtrace.capture() as trace, agent_span():
        call_tool("search")

        assert trace.check(tool_was_called("search")).final
        with pytest.raises(clawtrace.CheckFailedError, match=r"(?s)not closed yet.*running: `invoke_agent tester`"):
            trace.check(tool_not_invoked("rm"))
    assert trace.check(tool_not_invoked("rm")).status is Status.PASS


def test_late_spans_of_the_same_trace_are_stored_and_verdicts_go_stale():
    """A trace that goes on after the block belongs to it: what was reported before is marked, asking again sees it."""
    with clawtrace.capture() as trace:
        with agent_span():
            context = otel.set_span_in_context(otel.get_current_span(), Context())
        trace.check(tool_not_invoked("rm"))

    with clawtrace.capture() as other:
        background = threading.Thread(target=call_tool, args=("rm",), kwargs={"context": context})
        background.start()
        background.join()

    assert [verdict.stale for verdict in trace.results] == [True]
    with pytest.raises(clawtrace.CheckFailedError):
        trace.check(tool_not_invoked("rm"))
    assert other.query("SELECT name FROM spans") == []


def test_the_spans_take_the_way_of_received_ones():
    """In-process spans are redacted, attributed and stored as received ones are; the protocol is `sdk`."""
    with clawtrace.capture() as trace:
        call_tool(
            "login", **{"gen_ai.tool.call.arguments": '{"key": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"}'}
        )

    (row,) = trace.query("SELECT arguments FROM tool_calls")
    assert "abcdefghijklmnop" not in row["arguments"]
    assert "[REDACTED:" in row["arguments"]
    assert trace.query("SELECT DISTINCT protocol, run_rule FROM otel_traces") == [
        {"protocol": "sdk", "run_rule": "given"}
    ]


def test_a_process_that_is_itself_a_run_keeps_its_captures():
    """A resource that names another run (pytest under `clawtrace run`) does not draw a capture's spans there."""
    provider = TracerProvider(resource=Resource.create({"clawtrace.run_id": "another"}))
    with clawtrace.capture(tracer_provider=provider) as trace:
        run_agent("search", tracer=provider.get_tracer("agents"))

    assert tools_of(trace) == ["search"]


def test_providers_other_than_the_global_one_are_captured_when_named():
    """Code with a separate provider is captured through `tracer_provider`, together with the global one."""
    with clawtrace.capture():
        pass  # from here on there is a global one
    ours, theirs = TracerProvider(), TracerProvider()
    with clawtrace.capture(tracer_provider=[ours, theirs]) as trace:
        run_agent("one", tracer=ours.get_tracer("a"))
        run_agent("two", tracer=theirs.get_tracer("b"))
        run_agent("three")

    assert tools_of(trace) == ["one", "two", "three"]


def test_providers_that_are_not_named_are_captured():
    """A provider of the SDK is captured whoever made it: before the first capture or in a block, and what it exports stays."""
    before = TracerProvider()
    with clawtrace.capture() as trace:
        run_agent("one")
        run_agent("two", tracer=before.get_tracer("a"))
        run_agent("rm", tracer=TracerProvider().get_tracer("b"))

    assert tools_of(trace) == ["one", "two", "rm"]


def test_the_processors_of_a_provider_stay():
    """A provider that replaces its processor with the next one (Phoenix) is not told of ours."""

    class Replacing(TracerProvider):
        def add_span_processor(self, _):
            raise AssertionError("replaces what it has")

    with clawtrace.capture(tracer_provider=Replacing()) as trace:
        run_agent("one", tracer=Replacing().get_tracer("a"))

    assert tools_of(trace) == ["one"]


def test_a_parent_that_began_before_the_block_is_no_loss():
    """A capture inside of a longer span is complete: the parent is outside, not lost."""
    unrelated = otel.get_tracer("agents").start_span("a server's own span")
    with agent_span(), clawtrace.capture() as trace:
        call_tool("search")
        call_tool("send", context=otel.set_span_in_context(unrelated, Context()))
    unrelated.end()

    facts = trace.inspect()
    assert (facts["complete"], facts["incomplete_because"], facts["spans"]) == (True, [], 2)
    trace.check(tool_not_invoked("rm"))


def test_a_sampled_provider_shows_no_absence():
    """Where the provider drops traces, a pass that lost spans could turn is inconclusive, and the sampler is named."""
    provider = TracerProvider(sampler=TraceIdRatioBased(0.999999))
    with clawtrace.capture(tracer_provider=provider) as trace:
        run_agent("search", tracer=provider.get_tracer("agents"))

    assert trace.check(tool_was_called("search")).status is Status.PASS
    with pytest.raises(clawtrace.CheckFailedError, match=r"samples \(TraceIdRatioBased"):
        trace.check(tool_not_invoked("rm"))


def test_spans_of_a_forked_child_are_known_to_be_missing():
    """A forked worker's spans stay in it; the capture knows that there were some, and what to do."""
    with clawtrace.capture() as trace:
        run_agent("search")
        worker = multiprocessing.get_context("fork").Process(target=call_tool, args=("rm",))
        worker.start()
        worker.join()

    assert worker.exitcode == 0
    assert trace.check(tool_was_called("search")).status is Status.PASS
    with pytest.raises(clawtrace.CheckFailedError, match=r"(?s)INCOMPLETE.*forked child.*trace\.run.*INCONCLUSIVE"):
        trace.check(tool_not_invoked("rm"))


def test_a_forked_child_leaves_the_captures_of_its_parent_alone(monkeypatch, request):
    """A capture that is garbage when a process forks is collected in the child, too; there it closes nothing."""
    closed = []
    close = Session.close
    monkeypatch.setattr(Session, "close", lambda self: (closed.append(os.getpid()), close(self)))
    gc.collect()
    gc.freeze()  # what other tests leave behind is not the child's to collect
    request.addfinalizer(gc.unfreeze)
    with clawtrace.capture() as trace:
        run_agent("search")
    trace.check(tool_was_called("search"))

    def collects(forgotten) -> None:
        forgotten.clear()
        gc.collect()
        os._exit(os.getpid() in closed)

    forgotten = [trace]
    del trace
    worker = multiprocessing.get_context("fork").Process(target=collects, args=(forgotten,))
    worker.start()
    worker.join()

    assert worker.exitcode == 0
    forgotten.clear()
    worker = None
    gc.collect()
    assert set(closed) == {os.getpid()}


def test_a_forked_child_without_spans_changes_nothing():
    """Forking alone is no reason for doubt."""
    with clawtrace.capture() as trace:
        run_agent("search")
        worker = multiprocessing.get_context("fork").Process(target=len, args=("",))
        worker.start()
        worker.join()

    assert trace.check(tool_not_invoked("rm")).status is Status.PASS


def test_a_span_that_otlp_cannot_carry_is_known_to_be_missing():
    """One impossible span is named as missing; the spans next to it are stored."""
    with clawtrace.capture() as trace:
        otel.get_tracer("agents").start_span("impossible", start_time=-1).end()
        run_agent("search")

    assert tools_of(trace) == ["search"]
    with pytest.raises(clawtrace.CheckFailedError, match=r"(?s)INCOMPLETE.*`impossible`.*INCONCLUSIVE"):
        trace.check(tool_not_invoked("rm"))


def test_warnings_are_reported_and_do_not_fail():
    """An assertion of severity `warn` that fails is a Python warning; other ones stay errors."""
    with clawtrace.capture() as trace:
        run_agent("rm")

    with pytest.warns(clawtrace.CheckWarning, match="fail tool_not_invoked: `rm` was attempted") as caught:
        verdict = trace.check(tool_not_invoked("rm", severity="warn"))
    assert verdict.status is Status.FAIL
    assert caught[0].filename == __file__


def test_missing_data_fails_unless_allowed():
    """A cost without any price is no pass: it fails the check until `missing_data` is allowed."""
    with clawtrace.capture() as trace:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "unheard-of-model"}
        with otel.get_tracer("agents").start_as_current_span("chat unheard-of-model", attributes=attributes):
            pass

    with pytest.raises(clawtrace.CheckFailedError):
        trace.check("trace_cost", max_usd=1)
    with pytest.warns(clawtrace.CheckWarning):
        assert trace.check("trace_cost", allow=["missing_data"], max_usd=1).status is not Status.PASS


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda trace: trace.check(tool_was_called), UsageError, r"call it: `tool_was_called\(…\)`"),
        (lambda trace: trace.check(tool_was_called("a"), tool="b"), UsageError, r"fields \(tool\) go with"),
        (
            lambda trace: trace.check(tool_was_called("a"), tool_was_called("b"), tool="c"),
            UsageError,
            r"fields \(tool\)",
        ),
        (lambda trace: trace.check("no_span_errors", tool_was_called("b")), UsageError, "asked alone"),
        (lambda trace: trace.check("tool_was_caled", tool="a"), InvalidAssertionError, "Did you mean"),
        (lambda trace: trace.check("tool_was_called"), InvalidAssertionError, "`tool` is required"),
        (lambda trace: trace.check_all([]), UsageError, "at least one"),
        (lambda trace: trace.check(tool_was_called("a"), allow=["fail"]), UsageError, "missing_trace"),
        (lambda trace: trace.check("tool_was_called", tool=["a"]), InvalidAssertionError, "tool"),
        (lambda trace: trace.env(), UsageError, "inside the capture's block"),
        (lambda trace: trace.__enter__(), UsageError, "one block"),
    ],
)
def test_mistakes_are_explained(ask, error, said):
    """What cannot be meant is refused before anything is judged, with what would be valid."""
    with clawtrace.capture() as trace:
        run_agent("a")

    with pytest.raises(error, match=said):
        ask(trace)
    assert trace.results == ()


def test_asking_before_and_after_is_refused():
    """There is nothing to ask before the block, and nothing after `close`."""
    trace = clawtrace.capture()
    with pytest.raises(UsageError, match="enter the block"):
        trace.check(tool_was_called("a"))
    with trace:
        run_agent("a")
    trace.close()
    trace.close()
    with pytest.raises(UsageError, match="closed"):
        trace.check(tool_was_called("a"))


def test_a_provider_that_takes_no_processors_is_refused():
    """A provider that cannot be listened to is an error at once, never an empty trace."""
    with (
        pytest.raises(UsageError, match="does not accept span processors"),
        clawtrace.capture(tracer_provider=object()),
    ):
        pass


def test_a_capture_that_is_forgotten_lets_go():
    """Without a reference store and scope are released, also when the block was never left."""
    trace = clawtrace.capture().__enter__()
    run_agent("a")
    assert tools_of(trace) == ["a"]
    gone = weakref.ref(trace)
    del trace
    gc.collect()

    assert gone() is None
    with clawtrace.capture() as sole:
        run_agent("b")
    assert tools_of(sole) == ["b"]


def test_a_store_can_be_kept(tmp_path):
    """A capture in a file is a store like any other."""
    from clawtrace.session.session import Session

    with clawtrace.capture("kept", store=tmp_path / "runs.duckdb") as trace:
        run_agent("search")
    trace.check(tool_was_called("search"))
    trace.close()

    with Session.open(tmp_path / "runs.duckdb") as session:
        assert session.run_ids() == [trace.run_id]
        assert session.inspect()["runs"][0]["closed_by"] == "end_run"


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_importing_the_package_stays_light():
    """`import clawtrace` and the pytest plugin load neither SDK nor store nor pydantic."""
    done = _python(
        "import sys, clawtrace, clawtrace.pytest_plugin\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'opentelemetry', 'duckdb', 'pydantic', 'grpc'})\n"
        "print([name for name in sys.modules if name.startswith('clawtrace.')])\n"
    )

    assert (done.stdout, done.stderr) == ("set()\n['clawtrace.pytest_plugin']\n", "")


def test_a_process_without_a_provider_gets_one():
    """Where no tracer provider is set the capture sets one, and tracers made before it work."""
    done = _python(
        "from opentelemetry import trace as otel\n"
        "early = otel.get_tracer('early')\n"
        "import clawtrace\n"
        "with clawtrace.capture() as trace:\n"
        "    early.start_span('a').end()\n"
        "    otel.get_tracer('late').start_span('b').end()\n"
        "print([row['name'] for row in trace.query('SELECT name FROM spans ORDER BY start_ns')])\n"
    )

    assert done.stdout == "['a', 'b']\n", done.stderr


def test_a_provider_that_the_environment_disabled_is_refused(monkeypatch):
    """Nothing would ever be captured, and nothing would say so."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    provider = TracerProvider()
    with pytest.raises(UsageError, match="OTEL_SDK_DISABLED"), clawtrace.capture(tracer_provider=provider):
        pass


def test_a_capture_that_makes_the_provider_records_in_a_disabled_environment():
    """In a separate process: the global provider is made once."""
    source = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import clawtrace, clawtrace.expect\n"
        "from plugin_agents import run_agent\n"
        "with clawtrace.capture() as trace:\n"
        "    run_agent('search')\n"
        "trace.check(clawtrace.expect.tool_was_called('search'))\n"
        "print(os.environ['OTEL_SDK_DISABLED'])\n"
    )
    environment = os.environ | {"OTEL_SDK_DISABLED": "true"}
    printed = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "true\n"
