"""LangChain and LangGraph through OpenInference, OpenLLMetry and LangSmith: hand-made spans for what no recording shows.

The facts are those of the dialect files' sources; ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, hex_id
from instrumented import ACTIVATIONS, langchain_message, oi, tl

pytestmark = pytest.mark.full


class TestLangChainThroughOpenInference:
    def llm(self, id: str, parent: str, at: int, **attrs: Any) -> S:
        asked = {"metadata": {"ls_model_name": "gpt-4o"}, "llm__invocation_parameters": {"model": "gpt-4o"}}
        tokens = {"llm__token_count__prompt": 100, "llm__token_count__completion": 10}
        return oi("langchain", "LLM", id, parent, "ChatOpenAI", at, at + 5, **{**asked, **tokens, **attrs})

    @pytest.mark.parametrize(
        ("attrs", "response"),
        [
            ({"llm__model_name": "gpt-4o-2024-08-06"}, "gpt-4o-2024-08-06"),
            ({"llm__model_name": "gpt-4o"}, None),
            ({"llm__model_name": "gpt-4o", "output__value": {"generations": [[{"message": langchain_message(10)}]], "llm_output": None}}, "gpt-4o-2024-08-06"),
            ({"llm__model_name": "gpt-4o", "output__value": {"llm_output": {"model_name": "gpt-4o"}}}, "gpt-4o"),
        ],
        ids=["another than asked for", "hidden output", "streamed", "the server answers with the asked name"],
    )  # fmt: skip
    def test_the_responding_model(self, lab: Lab, attrs: dict[str, Any], response: str | None) -> None:
        """`llm.model_name` is the requested one where the answer was streamed: then only the output says it."""
        lab.put(self.llm("m", "", 0, **attrs))

        assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", response)]

    def test_details_of_a_streamed_answers_usage(self, lab: Lab) -> None:
        lab.put(
            self.llm("m", "", 0, output__value={"generations": [[{"message": langchain_message(10, reasoning=4)}]]})
        )

        assert lab.totals("cache_read_tokens", "reasoning_tokens") == (3, 4)

    def test_a_graph_without_a_name_is_an_agent_without_a_name(self, lab: Lab) -> None:
        """`LangGraph` is the class; nodes are no agents."""
        graph = {"ls_integration": "langgraph"}
        lab.put(
            oi("langchain", "CHAIN", "g", "", "LangGraph", 0, 50, metadata=graph),
            oi("langchain", "CHAIN", "n", "g", "plan", 1, 20, metadata={**graph, "langgraph_node": "plan"}),
            self.llm("m", "n", 2),
        )

        assert lab.rows(ACTIVATIONS) == [(None, None, "root")]

    def test_the_word_agent_in_a_name_makes_no_agent(self, lab: Lab) -> None:
        """The kind is AGENT wherever the name holds the word: nodes, tools and steps among them."""
        of = {"ls_integration": "langchain_create_agent", "lc_agent_name": "weather_agent"}
        node = {**of, "langgraph_node": "agent"}
        lab.put(
            oi("langchain", "AGENT", "a", "", "weather_agent", 0, 90, metadata=of),
            oi("langchain", "AGENT", "n", "a", "agent", 1, 20, metadata=node),
            oi("langchain", "AGENT", "t", "a", "ask_agent", 21, 40, metadata=node, tool__name="ask_agent"),
            oi("langchain", "AGENT", "x", "", "AgentExecutor", 100, 110),
        )

        assert lab.rows(ACTIVATIONS) == [("weather_agent", None, "root"), (None, None, "root")]
        assert lab.rows("SELECT name FROM tool_calls") == [("ask_agent",)]

    def test_arguments_from_the_node_above_where_it_ran_one_call(self, lab: Lab) -> None:
        """A tool's input is its bare value or a repr; where the request was not captured, the node's input says it."""
        one = [{"name": "get_weather", "args": {"city": "Paris"}, "id": "call_1"}]
        two = [*one, {"name": "get_weather", "args": {"city": "Rome"}, "id": "call_2"}]
        lab.put(
            oi("langchain", "CHAIN", "n", "", "tools", 0, 10, input__value=one),
            oi("langchain", "TOOL", "t", "n", "get_weather", 1, 5, tool__name="get_weather", input__value='{"not": "these"}'),
            oi("langchain", "CHAIN", "o", "", "tools", 20, 30, input__value=two),
            oi("langchain", "TOOL", "u", "o", "get_weather", 21, 25, tool__name="get_weather", input__value="Rome"),
        )  # fmt: skip

        assert lab.rows("SELECT call_id, arguments FROM tool_calls ORDER BY call_no") == [
            ("call_1", '{"city":"Paris"}'),
            (None, None),
        ]

    def test_a_jump_of_the_graph_is_no_failure(self, lab: Lab) -> None:
        lab.put(
            oi(
                "langchain",
                "CHAIN",
                "n",
                "",
                "tools",
                0,
                10,
                error="ParentCommand(Command(goto='researcher'))Traceback",
            ),
            oi("langchain", "CHAIN", "o", "", "tools", 20, 30, error="ValueError('no such order')Traceback"),
        )

        assert lab.rows("SELECT span_id FROM errors") == [(hex_id("o"),)]


class TestLangChainThroughOpenLLMetry:
    def task(self, id: str, parent: str, name: str, at: int, to: int, owner: str, **attrs: Any) -> S:
        own = {
            "traceloop__span__kind": "task",
            "traceloop__entity__name": name,
            "gen_ai__operation__name": "execute_task",
        }
        of = {"traceloop__association__properties__lc_agent_name": owner}
        return tl("langchain", id, parent, f"execute_task {name}", at, to, **own, **of, **attrs)

    def called(self, id: str, parent: str, query: str, at: int) -> list[S]:
        """A tool that runs a graph called `researcher`: the activation and its work are siblings."""
        return [
            tl("langchain", f"t{id}", parent, "execute_tool researcher", at, at + 50, traceloop__span__kind="tool",
               gen_ai__operation__name="execute_tool", gen_ai__tool__name="researcher",
               gen_ai__tool__call__arguments={"inputs": {"query": query}, "kwargs": {"tool_call_id": f"call_{id}"}},
               traceloop__association__properties__lc_agent_name="assistant"),
            tl("langchain", f"a{id}", f"t{id}", "invoke_agent researcher", at + 1, at + 49,
               gen_ai__operation__name="invoke_agent", gen_ai__agent__name="researcher", gen_ai__provider__name="langgraph"),
            self.task(f"w{id}", f"t{id}", "researcher", at + 2, at + 48, "researcher"),
            tl("langchain", f"m{id}", f"w{id}", "ChatOpenAI.chat", at + 3, at + 9, gen_ai__operation__name="chat",
               gen_ai__request__model="gpt-4o", gen_ai__response__model="gpt-4o", gen_ai__usage__input_tokens=100,
               gen_ai__usage__output_tokens=10, traceloop__association__properties__lc_agent_name="researcher"),
        ]  # fmt: skip

    def run(self) -> list[S]:
        return [
            tl("langchain", "c", "", "create_agent assistant", 0, 1, gen_ai__operation__name="create_agent",
               gen_ai__agent__name="assistant", gen_ai__provider__name="langchain"),
            tl("langchain", "a", "", "invoke_agent assistant", 2, 200, gen_ai__operation__name="invoke_agent",
               gen_ai__agent__name="assistant", gen_ai__provider__name="langgraph"),
            tl("langchain", "w", "a", "assistant.workflow", 3, 199, gen_ai__operation__name="invoke_agent",
               gen_ai__agent__name="assistant", gen_ai__agent__id="a-run-id", traceloop__span__kind="workflow",
               traceloop__entity__name="assistant", traceloop__association__properties__lc_agent_name="assistant"),
            self.task("n", "w", "tools", 10, 180, "assistant"),
            *self.called("1", "n", "Paris", 20),
            *self.called("2", "n", "Rome", 40),
        ]  # fmt: skip

    def test_work_next_to_its_activation_belongs_to_it(self, lab: Lab) -> None:
        """Two activations of one name at once: each call belongs to the one below its own tool."""
        lab.put(*self.run())

        assert lab.rows(ACTIVATIONS) == [
            ("assistant", None, "root"), ("researcher", 1, "tool"), ("researcher", 1, "tool"),
        ]  # fmt: skip
        assert lab.rows("SELECT span_id, agent_span_id FROM llm_calls ORDER BY call_no") == [
            (hex_id("m1"), hex_id("a1")), (hex_id("m2"), hex_id("a2")),
        ]  # fmt: skip
        assert lab.rows("SELECT DISTINCT id FROM agents") == [(None,)], "a run's id is no agent's"
        assert lab.rows("SELECT name, call_id, arguments FROM tool_calls ORDER BY call_no") == [
            ("researcher", "call_1", '{"query":"Paris"}'), ("researcher", "call_2", '{"query":"Rome"}'),
        ]  # fmt: skip

    def test_a_streamed_answers_model_and_reasoning_stand_above(self, lab: Lab) -> None:
        """Only in the message with the very usage of the call: of two calls in one node it is one's."""
        put_out = {"outputs": [{"update": {"messages": [langchain_message(10, reasoning=7)]}}]}
        usage = {"gen_ai__usage__input_tokens": 100, "gen_ai__operation__name": "chat"}
        model = {"gen_ai__request__model": "gpt-4o", "gen_ai__response__model": "gpt-4o", "gen_ai__is_streaming": True}
        lab.put(
            self.task("n", "", "model", 0, 50, "assistant", gen_ai__task__output=put_out),
            tl("langchain", "m", "n", "ChatOpenAI.chat", 1, 9, **usage, **model, gen_ai__usage__output_tokens=11),
            tl("langchain", "o", "n", "ChatOpenAI.chat", 11, 19, **usage, **model, gen_ai__usage__output_tokens=10),
        )

        assert lab.rows("SELECT response_model, reasoning_tokens FROM llm_calls ORDER BY call_no") == [
            (None, None), ("gpt-4o-2024-08-06", 7),
        ]  # fmt: skip

    def test_a_message_that_says_error_is_a_failure(self, lab: Lab) -> None:
        said = {
            "output": {"kwargs": {"content": "refund service unavailable", "status": "error", "tool_call_id": "c1"}}
        }
        lab.put(tl("langchain", "t", "", "execute_tool refund", 0, 5, traceloop__span__kind="tool",
                   gen_ai__tool__name="refund", gen_ai__tool__call__result=said))  # fmt: skip

        assert lab.rows("SELECT outcome, result, error FROM tool_calls") == [
            ("error", "refund service unavailable", "refund service unavailable")
        ]
        assert lab.totals("errors") == (1,)


class TestLangSmith:
    def span(self, kind: str, id: str, parent: str, name: str, at: int, to: int, **attrs: Any) -> S:
        words = {key.replace("__", "."): value if isinstance(value, str | int) else json.dumps(value) for key, value in attrs.items()}  # fmt: skip
        wrong = {"llm": "chat", "tool": "execute_tool", "retriever": "embeddings", "prompt": "chat"}.get(kind, kind)
        base = {"langsmith.span.kind": kind, "langsmith.trace.name": name, "gen_ai.operation.name": wrong}
        return S(id, parent, at, to, name, {**base, **words}, scope="langsmith")

    def test_a_run(self, lab: Lab) -> None:
        """The kind is LangSmith's, the tool's name the run's; payloads are LangChain's."""
        asked = {**langchain_message(10, reasoning=4)}
        asked["kwargs"] = {
            **asked["kwargs"],
            "tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}, "id": "c1"}],
        }
        done = {"output": {"kwargs": {"content": "21 C", "tool_call_id": "c1", "status": "success"}}}
        lab.put(
            self.span("chain", "a", "", "assistant", 0, 90, langsmith__metadata__lc_agent_name="assistant",
                      langsmith__metadata__thread_id="thread-1", langsmith__trace__session_id="a-project"),
            self.span("prompt", "p", "a", "ChatPromptTemplate", 1, 2),
            self.span("retriever", "r", "a", "docs", 2, 3),
            self.span("llm", "m", "a", "ChatOpenAI", 3, 9, gen_ai__system="openai", gen_ai__request__model="gpt-4o",
                      gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=10,
                      gen_ai__usage__input_token_details={"cache_read": 60}, gen_ai__usage__output_token_details="{'reasoning': 4}",
                      gen_ai__prompt={"messages": [[{"id": ["HumanMessage"], "kwargs": {"content": "hi", "type": "human"}}]]},
                      gen_ai__completion={"generations": [[{"text": "", "message": asked}]], "llm_output": None}),
            self.span("tool", "t", "a", "get_weather", 10, 12, gen_ai__prompt={"input": "{'city': 'Paris'}"},
                      gen_ai__completion=done),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]
        assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", "gpt-4o-2024-08-06")]
        assert lab.totals("llm_calls", "cache_read_tokens", "reasoning_tokens") == (1, 60, None), "a repr is not read"
        assert lab.rows("SELECT name, call_id, arguments, result, outcome FROM tool_calls") == [
            ("get_weather", "c1", '{"city":"Paris"}', "21 C", "ok")
        ]
        assert lab.rows("SELECT DISTINCT session_id FROM spans WHERE kind = 'agent'") == [("thread-1",)]
        assert lab.rows("SELECT role, text FROM messages WHERE direction = 'input'") == [("user", "hi")]
