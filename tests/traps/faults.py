"""The good run of the mutation test, and every fault that is put into it.

Two agents, four model calls and three tool calls::

    orchestrator   0 ─────────────────────────────────────────── 1000 ms
      chat plan      10 ─ 110      asks for tools
      researcher          200 ──────────── 500
        chat                 210 ─ 300
        search                  310 ─ 350   {"query": "otel"} → {"hits": 3}
        chat                        360 ─ 450
      bash                                  520 ─ 540   make test → 0
      write_file                               550 ─ 590   {"path": "report.md"} → written
      chat answer                                   600 ─ 700   "The report is done."
"""

from __future__ import annotations

import json
from collections.abc import Callable

from spoken import Span, agent, answer, model_call, tool_call

Requests = list[list[Span]]
ANSWER = "The report is done."
MODEL = "gpt-4o-2024-08-06"


def good() -> Requests:
    """The good run, exported in three requests, each span when it had ended."""
    said = {"usage__cost": 0.01, "output__messages": answer("")}
    root = agent("root", "orchestrator", at=0.001, to=1000)
    researcher = agent("sub", "researcher", "root", 200, 500)
    plan = model_call("plan", "root", 10, 110, model=MODEL, response__finish_reasons=["tool_calls"], **said)
    think = model_call("think", "sub", 210, 300, model=MODEL, response__finish_reasons=["tool_calls"], **said)
    note = model_call("note", "sub", 360, 450, model=MODEL, **said)
    last = model_call("last", "root", 600, 700, model=MODEL, **said | {"output__messages": answer(ANSWER)})
    search = _called("search", "search", "sub", 310, 350, '{"query": "otel"}', '{"hits": 3}')
    bash = _called("bash", "bash", "root", 520, 540, _command("make test"), _result("ok"))
    write = _called("write", "write_file", "root", 550, 590, '{"path": "report.md"}', "written")
    return [[plan, think, search], [note, researcher, bash], [write, last, root]]


def _called(id: str, name: str, parent: str, at: float, to: float, arguments: str, result: str) -> Span:
    return tool_call(id, name, parent, at, to, tool__call__arguments=arguments, tool__call__result=result)


def _command(text: str) -> str:
    return json.dumps({"command": text})


def _result(stdout: str, stderr: str = "slow disk", code: int = 0) -> str:
    return json.dumps({"exit_code": code, "stdout": stdout, "stderr": stderr})


def _changed(id: str, requests: Requests, **changed: object) -> Requests:
    return [[span.but(**changed) if span.id == id else span for span in spans] for spans in requests]


def _without(requests: Requests, *ids: str) -> Requests:
    return [[span for span in spans if span.id not in ids] for spans in requests]


def _arguments(text: str) -> dict[str, str]:
    return {"gen_ai.tool.call.arguments": text}


def _returned(text: str) -> dict[str, str]:
    return {"gen_ai.tool.call.result": text}


def lost_tool_call(requests: Requests) -> Requests:
    """The span of `search` never arrived, and nothing hangs below it."""
    return _without(requests, "search")


def lost_command(requests: Requests) -> Requests:
    """The span of the shell command never arrived, and nothing hangs below it."""
    return _without(requests, "bash")


def lost_model_call(requests: Requests) -> Requests:
    """The span of a model call never arrived, and nothing hangs below it."""
    return _without(requests, "note")


def lost_agent(requests: Requests) -> Requests:
    """The span of `researcher` never arrived: its children have no parent."""
    return _without(requests, "sub")


def lost_first_request(requests: Requests) -> Requests:
    """The first request was lost whole: calls without children."""
    return requests[1:]


def lost_last_request(requests: Requests) -> Requests:
    """The agent was killed before its last export: the root is missing, and what was done last."""
    return requests[:-1]


def never_ended(requests: Requests) -> Requests:
    """The root was exported before its end, as a span still open."""
    return _changed("root", requests, to=0)


def swapped(requests: Requests) -> Requests:
    """`write_file` came before the command."""
    return _changed("write", _changed("bash", requests, at=570, to=590), at=520, to=560)


def repeated_tool_call(requests: Requests) -> Requests:
    """`search` was called again with the same arguments, at once."""
    again = next(span for spans in requests for span in spans if span.id == "search").but(id="search2", at=351, to=356)
    return [requests[0], [again, *requests[1]], requests[2]]


def repeated_command(requests: Requests) -> Requests:
    """The command was run again."""
    again = next(span for spans in requests for span in spans if span.id == "bash").but(id="bash2", at=541, to=546)
    return [*requests[:2], [again, *requests[2]]]


def repeated_model_call(requests: Requests) -> Requests:
    """The model was asked once more."""
    again = next(span for spans in requests for span in spans if span.id == "note").but(id="note2", at=452, to=470)
    return [requests[0], [again, *requests[1]], requests[2]]


def delivered_twice(requests: Requests) -> Requests:
    """Every request was sent again: its answer had been lost."""
    return [*requests, *requests]


def any_order(requests: Requests) -> Requests:
    """The requests came in reverse, and the spans in them."""
    return [spans[::-1] for spans in requests[::-1]]


def renamed_tool(requests: Requests) -> Requests:
    """`delete_all` was called in place of `search`."""
    return _changed("search", requests, name="execute_tool delete_all", attributes={"gen_ai.tool.name": "delete_all"})


def renamed_agent(requests: Requests) -> Requests:
    """`ghostresearcher` was at work in place of `researcher`."""
    name = "ghostresearcher"
    return _changed("sub", requests, name=f"invoke_agent {name}", attributes={"gen_ai.agent.name": name})


def renamed_model(requests: Requests) -> Requests:
    """One call used `gpt-4o-mini`."""
    attributes = dict.fromkeys(("gen_ai.request.model", "gen_ai.response.model"), "gpt-4o-mini-2024-07-18")
    return _changed("note", requests, attributes=attributes)


def failed_tool_call(requests: Requests) -> Requests:
    """`search` failed."""
    return _changed("search", requests, error="unreachable", attributes=_returned("unreachable"))


def blocked_tool_call(requests: Requests) -> Requests:
    """`search` was not permitted, and did not run."""
    return _changed("search", requests, attributes={"test.blocked": "yes"} | _returned("denied"))


def failed_command(requests: Requests) -> Requests:
    """The command failed."""
    return _changed("bash", requests, error="exit 2", attributes=_returned(_result("3 failed", "boom", 2)))


def quietly_failed_command(requests: Requests) -> Requests:
    """The command ended with code 2, and its span says nothing of it but in the result."""
    return _changed("bash", requests, attributes=_returned(_result("ok", "slow disk", 2)))


def failed_model_call(requests: Requests) -> Requests:
    """A model call failed and was not tried again."""
    gone = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cost", "gen_ai.response.model",
            "gen_ai.response.finish_reasons", "gen_ai.output.messages")  # fmt: skip
    return _changed("note", requests, error="overloaded", attributes=dict.fromkeys(gone))


def more_tokens(requests: Requests) -> Requests:
    """One call used fifty times as many tokens."""
    return _changed("note", requests, attributes={"gen_ai.usage.input_tokens": 5000})


def unknown_tokens(requests: Requests) -> Requests:
    """One call does not say what it used, nor what it cost."""
    gone = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cost")
    return _changed("note", requests, attributes=dict.fromkeys(gone))


def more_cost(requests: Requests) -> Requests:
    """One call cost five dollars."""
    return _changed("note", requests, attributes={"gen_ai.usage.cost": 5.0})


def slow_tool_call(requests: Requests) -> Requests:
    """The shell command took twice as long as any tool should; the run as a whole did not."""
    return _changed("write", _changed("bash", requests, at=452, to=545), at=550)


def longer_run(requests: Requests) -> Requests:
    """The run took a minute."""
    return _changed("root", requests, to=60_000)


def moved_tool_call(requests: Requests) -> Requests:
    """The orchestrator searched by itself."""
    return _changed("search", requests, parent="root")


def no_delegation(requests: Requests) -> Requests:
    """The researcher was started next to the orchestrator and not by it."""
    return _changed("sub", requests, parent="")


def one_more_agent(requests: Requests) -> Requests:
    """The researcher delegated to another agent."""
    return [*requests[:2], [agent("more", "helper", "sub", 452, 480), *requests[2]]]


def other_arguments(requests: Requests) -> Requests:
    """`search` looked for something else."""
    return _changed("search", requests, attributes=_arguments('{"query": "gossip"}'))


def other_command(requests: Requests) -> Requests:
    """Another command was run."""
    return _changed("bash", requests, attributes=_arguments(_command("make -n && rm -rf build")))


def other_result(requests: Requests) -> Requests:
    """`search` found nothing."""
    return _changed("search", requests, attributes=_returned('{"hits": 0}'))


def other_output(requests: Requests) -> Requests:
    """The command printed something else, on both streams, and succeeded."""
    return _changed("bash", requests, attributes=_returned(_result("1 skipped", "")))


def other_answer(requests: Requests) -> Requests:
    """The agent answered something else."""
    return _changed("last", requests, attributes={"gen_ai.output.messages": answer("I cannot do this.")})


def no_answer(requests: Requests) -> Requests:
    """The agent ended with an empty answer."""
    return _changed("last", requests, attributes={"gen_ai.output.messages": answer("")})


def leaked_secret(requests: Requests) -> Requests:
    """`search` returned a key."""
    return _changed("search", requests, attributes=_returned('{"hits": "AKIA' + "Z7QK2XW4LMNP3RTV" + '"}'))


def nothing_captured(requests: Requests) -> Requests:
    """The instrumentation was not configured to record arguments, results and messages."""
    gone = dict.fromkeys(("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.output.messages"))
    return [[span.but(attributes=gone) for span in spans] for spans in requests]


FAULTS: dict[str, Callable[[Requests], Requests]] = {
    fault.__name__: fault
    for fault in (
        lost_tool_call, lost_command, lost_model_call, lost_agent, lost_first_request, lost_last_request, never_ended,
        swapped, repeated_tool_call, repeated_command, repeated_model_call, delivered_twice, any_order, renamed_tool,
        renamed_agent, renamed_model, failed_tool_call, blocked_tool_call, failed_command, quietly_failed_command,
        failed_model_call, more_tokens, unknown_tokens, more_cost, slow_tool_call, longer_run, moved_tool_call,
        no_delegation, one_more_agent, other_arguments, other_command, other_result, other_output, other_answer,
        no_answer, leaked_secret, nothing_captured,
    )
}  # fmt: skip
"""Every fault by its name."""

HARMLESS = {"delivered_twice", "any_order"}
"""Outside of every question: a request sent again and any order of arrival change nothing of what happened."""

GROUPS = {
    "model calls": "lost_model_call, repeated_model_call, failed_model_call, renamed_model, more_tokens, unknown_tokens, more_cost",
    "answers": "other_answer, no_answer",
    "content of search": "other_arguments, other_result, leaked_secret",
    "content of the command": "other_command, other_output, quietly_failed_command",
    "outcomes": "failed_tool_call, blocked_tool_call, failed_command",
    "times": "slow_tool_call, longer_run, swapped",
    "agents": "moved_tool_call, renamed_agent, no_delegation, one_more_agent",
    "tools": "lost_tool_call, lost_command, lost_first_request, renamed_tool, repeated_tool_call, repeated_command",
}
"""Faults that touch the same thing, to be named together."""
