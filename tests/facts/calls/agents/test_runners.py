"""Spans of kind agent around agents: functions that run one, graphs and workflows that hold several together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, chat, tool
from instrumented import ACTIVATIONS, oi

KINDS = "SELECT name, kind, agent_name FROM spans WHERE run_id = :run ORDER BY start_ns, tree_enter"


def mlflow(id: str, parent: str, kind: str, name: str, at: int, to: int, **attrs: Any) -> S:
    """A span of MLflow's autolog; values are JSON."""
    sent = {"mlflow.spanType": kind, **{f"mlflow.{key}": value for key, value in attrs.items()}}
    return S(
        id,
        parent,
        at,
        to,
        name,
        {key: json.dumps(value) for key, value in sent.items()},
        scope="mlflow.tracing.provider",
    )


def node(
    id: str, parent: str, name: str, at: int, to: int, places: str = "", kind: str = "CHAIN", **metadata: Any
) -> S:
    """A span of LangGraph through OpenInference; `places` is the graph's and the node's place, empty for the outermost graph."""
    where = {"langgraph_node": places.split("|")[-1].split(":")[0], "langgraph_checkpoint_ns": places} if places else {}
    text = json.dumps({"ls_integration": "langgraph", **where, **metadata})
    words = (
        {"llm__model_name": "gpt-4o", "llm__token_count__prompt": 10, "llm__token_count__completion": 1}
        if kind == "LLM"
        else {}
    )
    return oi("langchain", kind, id, parent, name, at, to, metadata=text, **words)


def member(name: str, parent: str, at: int, *, wrapped: bool = False) -> list[S]:
    """A graph called `name` as a node of that name in another one: it asks a model once."""
    place, id = f"{name}:{at}", f"{name[:3]}{at}"
    inner = [node(f"{id}w", id, "call_agent", at, at + 9, place)] if wrapped else []
    home = f"{id}w" if wrapped else id
    return [
        node(id, parent, name, at, at + 9, place), *inner, node(f"{id}g", home, name, at + 1, at + 9, place),
        node(f"{id}n", f"{id}g", "agent", at + 2, at + 8, f"{place}|agent:1"),
        node(f"{id}m", f"{id}n", "ChatOpenAI", at + 3, at + 7, f"{place}|agent:1", "LLM"),
    ]  # fmt: skip


class TestCode:
    """What instrumentations call after a method."""

    def test_a_method_around_agents_is_none(self, lab: Lab) -> None:
        """No agent delegated to the outermost one; the kind that counts is published, and a method names no agent."""
        lab.put(
            mlflow("r", "", "AGENT", "AgentRunner.run", 0, 99), mlflow("w", "r", "CHAIN", "Agent workflow", 1, 98),
            mlflow("a", "w", "AGENT", "desk", 2, 90), mlflow("m", "a", "CHAT_MODEL", "Response", 3, 9),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("desk", None, "root")]
        assert lab.rows(KINDS)[0] == ("AgentRunner.run", "chain", None)
        assert lab.rows("SELECT counted_by FROM spans WHERE name = 'AgentRunner.run'") == [("runner-of-agents",)]

    def test_one_that_holds_nothing_runs_the_agent_next_to_it(self, lab: Lab) -> None:
        """Its context was lost: what it ran hangs next to it, in a tool that is an agent."""
        lab.put(
            mlflow("a", "", "AGENT", "desk", 0, 90), mlflow("m", "a", "CHAT_MODEL", "Response", 1, 9),
            mlflow("t", "a", "TOOL", "helper", 10, 50), mlflow("r", "t", "AGENT", "AgentRunner.run", 11, 49),
            mlflow("w", "t", "CHAIN", "Agent workflow", 12, 48), mlflow("b", "w", "AGENT", "helper", 13, 47),
            mlflow("n", "b", "CHAT_MODEL", "Response", 14, 20),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("desk", None, "root"), ("helper", 1, "tool")]

    def test_one_that_works_itself_is_an_agent_without_a_name(self, lab: Lab) -> None:
        """A class and its method name no agent."""
        lab.put(mlflow("a", "", "AGENT", "Agent.run_sync", 0, 90), mlflow("m", "a", "CHAT_MODEL", "LLM.call", 1, 9))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root")]

    def test_where_nothing_records_work_each_is_an_agent(self, lab: Lab) -> None:
        lab.put(mlflow("a", "", "AGENT", "Agent.run", 0, 90), mlflow("b", "a", "AGENT", "helper", 1, 9))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root"), ("helper", 1, "nesting")]


class TestNames:
    """Agent spans that have a name, or none."""

    def test_one_without_a_name_around_agents_is_none(self, lab: Lab) -> None:
        lab.put(agent("w", agent=None), agent("a", "w", to=40, agent="one"), chat("m", "a"),
                agent("b", "w", at=50, to=90, agent="two"), chat("n", "b", at=51))  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("one", None, "root"), ("two", None, "root")]

    def test_one_without_a_name_that_calls_a_tool_is_an_agent(self, lab: Lab) -> None:
        lab.put(agent("w", agent=None), tool("t", "w"), agent("a", "t", to=40, agent="one"), chat("m", "a"))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root"), ("one", 1, "tool")]

    def test_a_workflow_that_has_a_name_stays_an_agent_and_is_doubted_by_generic_rules(self, lab: Lab) -> None:
        """Sequential, parallel and loop agents ask no model; only a verified dialect knows that they are agents."""
        lab.put(agent("w", agent="pipeline"), agent("a", "w", to=40, agent="one"), chat("m", "a"),
                agent("b", "w", at=50, to=90, agent="two"), chat("n", "b", at=51))  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("pipeline", None, "root"), ("one", None, None), ("two", None, None)]

    def test_one_agent_recorded_twice_is_one(self, lab: Lab) -> None:
        """An instrumentation writes the method and what it calls, and both name the agent."""
        lab.put(agent("a"), S("s", "a", 1, 99, "step"), agent("b", "s", at=2, to=98), chat("m", "b", at=3))

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]

    @pytest.mark.parametrize(
        "outer",
        [
            [chat("n", "a", at=1)],
            [tool("t", "a", at=1)],
            [agent("c", "a", at=60, to=90), chat("n", "c", at=61)],
        ],
        ids=["asks a model", "calls a tool", "holds two"],
    )
    def test_an_agent_that_calls_itself_is_at_work_again(self, lab: Lab, outer: list[S]) -> None:
        lab.put(agent("a"), agent("b", "a", at=2, to=50), chat("m", "b", at=3), *outer)

        assert len(lab.rows(ACTIVATIONS)) > 1


class TestGraphs:
    """LangGraph: a graph is an agent where it works itself, wherever it stands."""

    def test_a_graph_of_agents_is_none(self, lab: Lab) -> None:
        """A supervisor hands over and gets back; the graph that holds both is called `team`."""
        lab.put(
            node("g", "", "team", 0, 99),
            *member("boss", "g", 1),
            *member("clerk", "g", 20, wrapped=True),
            *member("boss", "g", 40),
        )

        assert lab.rows(ACTIVATIONS) == [("boss", None, "root"), ("clerk", None, "root"), ("boss", None, "root")]
        assert lab.totals("agents") == (3,)

    def test_a_graph_that_asks_a_model_is_an_agent_around_the_others(self, lab: Lab) -> None:
        lab.put(node("g", "", "team", 0, 99), node("r", "g", "router", 1, 9, "router:1"),
                node("m", "r", "ChatOpenAI", 2, 8, "router:1", "LLM"), *member("clerk", "g", 20))  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("team", None, "root"), ("clerk", 1, "nesting")]

    def test_teams_of_teams(self, lab: Lab) -> None:
        place = "inner:1"
        clerk = [S(s.id, s.parent, s.at, s.to, s.name, dict(s.attrs), scope=s.scope) for s in member("clerk", "i", 20)]
        for span in clerk:
            metadata = json.loads(span.attrs["metadata"])
            metadata["langgraph_checkpoint_ns"] = f"{place}|{metadata['langgraph_checkpoint_ns']}"
            span.attrs["metadata"] = json.dumps(metadata)
        lab.put(
            node("g", "", "company", 0, 99),
            node("o", "g", "inner", 10, 60, place),
            node("i", "o", "inner", 11, 59, place),
            *clerk,
        )

        assert lab.rows(ACTIVATIONS) == [("clerk", None, "root")]

    def test_a_step_that_is_a_graph_without_calls_is_none(self, lab: Lab) -> None:
        lab.put(node("g", "", "desk", 0, 99), node("p", "g", "prepare", 1, 9, "prepare:1"), node("s", "p", "prepare", 2, 8, "prepare:1"),
                node("c", "s", "clean", 3, 7, "prepare:1|clean:1"), node("a", "g", "agent", 20, 30, "agent:1"),
                node("m", "a", "ChatOpenAI", 21, 29, "agent:1", "LLM"))  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("desk", None, "root")]

    def test_what_runs_inside_of_a_node_is_no_graph(self, lab: Lab) -> None:
        """A function that is called like its node, and asks a model."""
        lab.put(node("g", "", "desk", 0, 99), node("a", "g", "answer", 1, 30, "answer:1"), node("f", "a", "answer", 2, 29, "answer:1"),
                node("m", "f", "ChatOpenAI", 3, 28, "answer:1", "LLM"))  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("desk", None, "root")]

    def test_through_langsmith(self, lab: Lab) -> None:
        """Its metadata are separate attributes."""

        def smith(id: str, parent: str, name: str, at: int, to: int, places: str = "", kind: str = "chain") -> S:
            where = (
                {"langgraph_node": places.split("|")[-1].split(":")[0], "langgraph_checkpoint_ns": places}
                if places
                else {}
            )
            sent = {
                f"langsmith.metadata.{key}": value for key, value in {"ls_integration": "langgraph", **where}.items()
            }
            sent |= {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 9} if kind == "llm" else {}
            return S(id, parent, at, to, name, {"langsmith.span.kind": kind} | sent, scope="langsmith")

        lab.put(smith("g", "", "team", 0, 99), smith("o", "g", "boss", 1, 40, "boss:1"), smith("i", "o", "boss", 2, 39, "boss:1"),
                smith("a", "i", "agent", 3, 38, "boss:1|agent:1"), smith("m", "a", "ChatOpenAI", 4, 30, "boss:1|agent:1", "llm"))  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("boss", None, "root")]
