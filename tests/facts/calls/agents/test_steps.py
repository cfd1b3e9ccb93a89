"""Agents for whose work no span stands, only its steps do: consecutive steps of one name are one activation.

So LlamaIndex writes them: one span for each request to a model, the tools next to it below the workflow.
"""

from __future__ import annotations

from building import Lab, S, hex_id
from instrumented import ACTIVATIONS, OWNERS, TOOLS, oi

CALLERS = """
SELECT c.name, a.name FROM tool_calls AS c LEFT JOIN agents AS a ON a.span_id = c.agent_span_id AND a.run_id = c.run_id
ORDER BY c.call_no
"""


def step(id: str, parent: str, agent: str, at: int, workflow: str = "AgentWorkflow", said: str = "hi") -> list[S]:
    """A step of an agent with its model call."""
    message = f"ChatMessage(role=<MessageRole.USER: 'user'>, blocks=[TextBlock(text={said!r})])"
    event = f"AgentSetup(input=[{message}], current_agent_name={agent!r})"
    return [
        oi("llama_index", "CHAIN", id, parent, f"{workflow}.run_agent_step", at, at + 8, input__value={"ev": event}),
        oi("llama_index", "LLM", f"{id}m", id, "OpenAI.achat", at + 1, at + 7, llm__model_name="gpt-4o"),
    ]  # fmt: skip


def call(id: str, parent: str, tool: str, at: int, workflow: str = "AgentWorkflow", **arguments: str) -> list[S]:
    """A tool call with the workflow's step around it."""
    words = {"tool__name": tool, "input__value": {"kwargs": arguments}}
    return [
        oi("llama_index", "CHAIN", f"{id}c", parent, f"{workflow}.call_tool", at, at + 6),
        oi("llama_index", "TOOL", id, f"{id}c", "FunctionTool.acall", at + 1, at + 5, **words),
    ]


def workflow(id: str, parent: str = "", at: int = 0, to: int = 99) -> S:
    return oi("llama_index", "CHAIN", id, parent, "AgentWorkflow.run", at, to)


def test_steps_and_the_tools_next_to_them_are_one_agents_work(lab: Lab) -> None:
    """Two steps and the tool between them are one activation, which lasts as long as they do."""
    lab.put(
        workflow("w"), *step("p", "w", "assistant", 1), *call("t", "w", "pay", 10), *step("q", "w", "assistant", 20)
    )

    assert lab.rows("SELECT name, parent_activation_no, via, start_ns, end_ns FROM agents") == [
        ("assistant", None, "root", 1_000_000, 28_000_000)
    ]
    assert lab.rows(OWNERS) == [(hex_id(one), "assistant") for one in ("pm", "qm")]
    assert lab.rows(CALLERS) == [("pay", "assistant")]


def test_agents_hand_over_by_a_tool_of_the_workflow(lab: Lab) -> None:
    """`handoff` is no tool call but the delegation that it names, there and back; each agent's tools are its own."""
    lab.put(
        workflow("w"), *step("p", "w", "assistant", 1), *call("h", "w", "handoff", 10, to_agent="researcher", reason="x"),
        *step("q", "w", "researcher", 20), *call("t", "w", "get_weather", 30, city="Paris"), *step("r", "w", "researcher", 40),
        *call("b", "w", "handoff", 50, to_agent="assistant", reason="x"), *step("s", "w", "assistant", 60),
    )  # fmt: skip

    assert lab.rows(ACTIVATIONS) == [
        ("assistant", None, "root"),
        ("researcher", 1, "handoff"),
        ("assistant", 2, "handoff"),
    ]
    assert lab.rows(TOOLS) == [("get_weather", '{"city":"Paris"}', "ok")]
    assert lab.rows(CALLERS) == [("get_weather", "researcher")]


def test_a_tool_of_that_name_outside_of_such_a_workflow_is_a_tool(lab: Lab) -> None:
    """A single agent has no one to hand over to: its own tool `handoff` is called like any other."""
    lab.put(
        workflow("w"), *step("p", "w", "assistant", 1, "BaseWorkflowAgent"),
        *call("h", "w", "handoff", 10, "BaseWorkflowAgent", to_agent="desk"),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("handoff", '{"to_agent":"desk"}', "ok")]


def test_an_agent_in_a_tool_of_another(lab: Lab) -> None:
    """The inner workflow's steps are an agent that the outer one called, though both have the same name."""
    lab.put(
        workflow("w"), *step("p", "w", "assistant", 1), *call("t", "w", "ask", 10),
        workflow("v", "t", 11, 14), *step("q", "v", "assistant", 12), *step("r", "w", "assistant", 30),
    )  # fmt: skip

    assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("assistant", 1, "tool")]
    assert lab.rows(OWNERS) == [(hex_id(one), "assistant") for one in ("pm", "qm", "rm")]


def test_what_a_message_says_is_no_agents_name(lab: Lab) -> None:
    """Only the event's own last field names the agent."""
    lab.put(workflow("w"), *step("p", "w", "assistant", 1, said="current_agent_name='evil')"))

    assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]


def test_a_step_without_a_name_is_an_agent_without_one(lab: Lab) -> None:
    """Where inputs are hidden, each step may be another's."""
    lab.put(
        workflow("w"), *step("p", "w", "assistant", 1), oi("llama_index", "CHAIN", "q", "w", "X.run_agent_step", 20, 29)
    )

    assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), (None, None, "root")]
