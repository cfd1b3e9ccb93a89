"""Captures at the same time: threads, tasks and nested blocks, with and without context. No span in a wrong run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.propagate import extract
from plugin_agents import agent_span, call_tool, run_agent

import clawtrace
from clawtrace.expect import tool_not_invoked, tool_sequence, tool_was_called
from clawtrace.model.verdict import Status

pytestmark = pytest.mark.full


WORKERS = 8


def tools_of(trace: clawtrace.Trace) -> list[str]:
    return [row["name"] for row in trace.query("SELECT name FROM tool_calls ORDER BY name")]


def in_thread(work: Callable[[], object]) -> None:
    """Run `work` in a thread that was started without it: it inherits no context."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.full
def test_captures_in_threads_keep_apart():
    """Eight threads, eight open captures, spans that interleave: each sees its own and all of them."""
    barrier = threading.Barrier(WORKERS, timeout=60)

    def work(number: int) -> list[str]:
        with clawtrace.capture(f"worker {number}") as trace:
            for step in range(3):
                barrier.wait()
                with agent_span():
                    barrier.wait()
                    call_tool(f"tool_{number}_{step}")
            barrier.wait()
        trace.check(tool_sequence([f"tool_{number}_{step}" for step in range(3)], mode="strict"))
        return tools_of(trace)

    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(work, range(WORKERS)))

    assert found == [[f"tool_{number}_{step}" for step in range(3)] for number in range(WORKERS)]


@pytest.mark.full
def test_captures_in_tasks_keep_apart():
    """Tasks of one thread that take turns inside of their agents, with tools in worker threads of asyncio."""

    async def work(number: int, barrier: asyncio.Barrier) -> list[str]:
        with clawtrace.capture() as trace:
            async with barrier:
                with agent_span():
                    async with barrier:
                        call_tool(f"own_{number}")
                    await asyncio.gather(
                        asyncio.to_thread(call_tool, f"thread_{number}"),
                        asyncio.create_task(asyncio.to_thread(call_tool, f"task_{number}")),
                    )
            async with barrier:
                pass
        return tools_of(trace)

    async def main() -> list[list[str]]:
        barrier = asyncio.Barrier(WORKERS)
        return await asyncio.gather(*(work(number, barrier) for number in range(WORKERS)))

    assert asyncio.run(main()) == [[f"own_{number}", f"task_{number}", f"thread_{number}"] for number in range(WORKERS)]


def test_a_capture_sees_what_the_ones_inside_of_it_see():
    """An outer capture's `never` would be untrue if an inner one hid spans from it; the inner one sees its own only."""
    with clawtrace.capture("outer") as outer:
        run_agent("a")
        with agent_span(), clawtrace.capture("inner") as inner:
            call_tool("b")
        run_agent("c")

    assert tools_of(outer) == ["a", "b", "c"]
    assert tools_of(inner) == ["b"]
    assert inner.inspect()["complete"]
    with pytest.raises(clawtrace.CheckFailedError):
        outer.check(tool_not_invoked("b"))


def test_a_context_of_the_outer_block_hides_nothing_from_the_inner_one():
    """A span that starts in the inner block is the inner one's too, also with a context that was kept from before."""
    with clawtrace.capture("outer") as outer:
        kept = otel_context.get_current()
        with clawtrace.capture("inner") as inner:
            call_tool("rm", context=kept)

    assert (tools_of(outer), tools_of(inner)) == (["rm"], ["rm"])


def test_a_block_that_ends_first_leaves_the_other_open():
    """Blocks need not be left in the order in which they were entered."""
    first, second = clawtrace.capture(), clawtrace.capture()
    first.__enter__()
    second.__enter__()
    call_tool("both")
    first.__exit__(None, None, None)
    call_tool("second")
    second.__exit__(None, None, None)
    call_tool("none")

    assert tools_of(first) == ["both"]
    assert tools_of(second) == ["both", "second"]


def test_a_plain_thread_belongs_to_the_only_capture():
    """A thread without context is taken in where no other capture could own it, and a failure says so."""
    with clawtrace.capture() as trace:
        in_thread(lambda: run_agent("rm"))

    with pytest.raises(clawtrace.CheckFailedError, match="1 trace began without the context"):
        trace.check(tool_not_invoked("rm"))


def test_a_plain_thread_next_to_two_captures_makes_absence_undecided():
    """It cannot be known whose such a span is: neither takes it, and neither says that it did not happen."""
    inside = threading.Event()
    leave = threading.Event()
    traces = []

    def other() -> None:
        with clawtrace.capture("other") as trace:
            run_agent("search")
            inside.set()
            leave.wait(60)
        traces.append(trace)

    unrelated = threading.Thread(target=other)
    unrelated.start()
    inside.wait(60)
    with clawtrace.capture("one") as trace:
        run_agent("search")
        in_thread(lambda: call_tool("rm"))
    leave.set()
    unrelated.join()
    traces.append(trace)

    for trace in traces:
        assert tools_of(trace) == ["search"]
        assert trace.check(tool_was_called("search")).status is Status.PASS
        with pytest.raises(clawtrace.CheckFailedError, match=r"(?s)INCOMPLETE.*which capture.*INCONCLUSIVE"):
            trace.check(tool_not_invoked("rm"))


def test_a_plain_thread_inside_of_two_blocks_is_the_outer_ones():
    """Of nested captures the outermost owns what the process does; the inner one knows that something may be its."""
    with clawtrace.capture("outer") as outer, clawtrace.capture("inner") as inner:
        run_agent("search")
        in_thread(lambda: call_tool("rm"))

    assert tools_of(outer) == ["rm", "search"]
    assert tools_of(inner) == ["search"]
    with pytest.raises(clawtrace.CheckFailedError, match="INCONCLUSIVE"):
        inner.check(tool_not_invoked("rm"))


def both_open(work: Callable[[], None]) -> list[list[str]]:
    """Do `work` in a capture while another one is open; return the tools of both."""
    with clawtrace.capture("one") as one:
        others: list[clawtrace.Trace] = []
        in_thread(lambda: others.append(clawtrace.capture("other").__enter__()))
        work()
        others[0].end()
    return [tools_of(one), tools_of(others[0])]


def carry_all() -> None:
    """A thread that is given the whole context."""
    context = contextvars.copy_context()
    in_thread(lambda: context.run(call_tool, "t"))


def carry_otel() -> None:
    """A thread that is given OpenTelemetry's context only, as instrumentations of threads do."""
    context = otel_context.get_current()

    def work() -> None:
        otel_context.attach(context)
        call_tool("t")

    in_thread(work)


def carry_argument() -> None:
    """A thread that is given OpenTelemetry's context as the argument of each span."""
    context = otel_context.get_current()
    in_thread(lambda: call_tool("t", context=context))


def carry_parent() -> None:
    """A thread that is given nothing but the parent span."""
    with agent_span():
        context = otel.set_span_in_context(otel.get_current_span(), otel_context.Context())
    in_thread(lambda: call_tool("t", context=context))


def replace_otel() -> None:
    """A server that replaces OpenTelemetry's context by one it extracts from a request without any."""
    token = otel_context.attach(extract({}))
    try:
        call_tool("t")
    finally:
        otel_context.detach(token)


@pytest.mark.parametrize("work", [carry_all, carry_otel, carry_argument, carry_parent, replace_otel])
def test_each_way_of_carrying_the_context_is_enough(work):
    """With two captures open, a span finds its own by any one of the ways in which code passes its context on."""
    assert both_open(work) == [["t"], []]


def test_a_loop_that_outlives_its_capture_serves_the_next():
    """An event loop (and its tasks' context) that was started in an earlier, ended capture does not keep later spans."""
    orders: asyncio.Queue[str | None] = asyncio.Queue()

    async def serve(done: threading.Event, ready: threading.Event) -> None:
        ready.set()
        while (name := await orders.get()) is not None:
            run_agent(name)
            done.set()

    loop = asyncio.new_event_loop()
    done, ready = threading.Event(), threading.Event()
    with clawtrace.capture() as first:
        context = contextvars.copy_context()
        server = threading.Thread(target=lambda: context.run(loop.run_until_complete, serve(done, ready)))
        server.start()
        ready.wait(60)
    first.close()

    with clawtrace.capture() as second:
        loop.call_soon_threadsafe(orders.put_nowait, "search")
        done.wait(60)
    loop.call_soon_threadsafe(orders.put_nowait, None)
    server.join()
    loop.close()

    assert tools_of(second) == ["search"]
