"""Gemini through its own SDK and by its provider's name. Hand-made spans, true facts; ids and figures are made up."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S, chat, says

pytestmark = pytest.mark.full


class TestGemini:
    @pytest.mark.parametrize(("provider", "tools"), [("gcp.gemini", None), ("openai", 0)])
    def test_stop_says_nothing_of_tools_in_gemini(self, lab: Lab, provider: str, tools: int | None) -> None:
        """Gemini answers STOP also where it asks for a tool: no tool calls is then no fact."""
        lab.put(chat("m", **{"gen_ai.provider.name": provider}))

        assert lab.totals("tool_calls") == (tools,)

    def test_a_call_that_gemini_could_not_write_is_none(self, lab: Lab) -> None:
        ended = '["malformed_function_call"]'
        lab.put(chat("m", **{"gen_ai.provider.name": "gcp.gemini", "gen_ai.response.finish_reasons": ended,
                             "gen_ai.output.messages": '[{"role": "assistant", "parts": []}]'}))  # fmt: skip

        assert lab.totals("tool_calls_high") == (0,)


def gemini(scope: str, id: str, at: int, parent: str = "", **attrs: Any) -> S:
    words = {key.replace("__", "."): value for key, value in attrs.items()}
    return S(id, parent, at, at + 5, "generate_content gemini-2.5-flash", words, scope=scope)


class TestGoogleGenAi:
    def openllmetry(self, tools: str | None = None, **attrs: Any) -> S:
        base: dict[str, Any] = {
            "gen_ai__operation__name": "generate_content", "gen_ai__request__model": "gemini-2.5-flash",
            "gen_ai__response__model": "gemini-2.5-flash", "gen_ai__input__messages": says("hi"),
            "gen_ai__output__messages": says("d of the answer"), "gen_ai__usage__input_tokens": 100,
            "gen_ai__usage__output_tokens": 20, "gen_ai__usage__total_tokens": 130,
        }  # fmt: skip
        base |= {"gen_ai__tool__definitions": tools} if tools else {}
        return gemini("opentelemetry.instrumentation.google_generativeai", "m", 1, **base, **attrs)

    @pytest.mark.parametrize(
        ("tools", "calls", "output"),
        [
            (None, 1, 30),
            ('[{"function_declarations": [{"description": "x", "name": "pay"}]}]', 1, 30),
            ('[{"google_search": {}}]', 1, None),
            ('[{"name": "pay"}]', None, None),
        ],
        ids=["no tools", "declared", "Google's own", "called by the SDK"],
    )
    def test_thoughts_are_in_the_total_only(
        self, lab: Lab, tools: str | None, calls: int | None, output: int | None
    ) -> None:
        lab.put(self.openllmetry(tools))

        assert lab.totals("llm_calls", "output_tokens") == (calls, output)
        assert lab.rows("SELECT response_model, output_tokens FROM llm_calls") == [
            (None, None if tools and "google" in tools else 30)
        ]
        assert lab.rows("SELECT final_output FROM runs") == [(None,)]

    def test_a_function_below_a_model_call_is_another_request(self, lab: Lab) -> None:
        scope = "opentelemetry.instrumentation.google_genai"
        usage = {
            "gen_ai__usage__input_tokens": 100,
            "gen_ai__usage__output_tokens": 10,
            "gen_ai__usage__cache_read__input_tokens": 5,
        }
        model = gemini(
            scope,
            "m",
            1,
            gen_ai__operation__name="generate_content",
            gen_ai__request__model="gemini-2.5-flash",
            gen_ai__output__messages=says("paid"),
            **usage,
        )
        lab.put(model, gemini(scope, "t", 2, "m", gen_ai__operation__name="execute_tool", gen_ai__tool__name="pay"))

        assert lab.totals("llm_calls", "input_tokens", "cache_read_tokens", "tool_calls") == (None, None, None, 1)

    def test_a_text_behind_a_function_call_is_another_answer(self, lab: Lab) -> None:
        said = '{"candidates": [{"content": {"parts": [{"function_call": {"args": {}, "name": "pay"}}, {"text": "paid"}]}}]}'
        attrs = {
            "openinference__span__kind": "LLM",
            "llm__token_count__prompt": 100,
            "llm__token_count__completion": 10,
            "output__value": said,
        }
        span = gemini("openinference.instrumentation.google_genai", "m", 1, **attrs)
        span.name = "GenerateContentStream"
        lab.put(span)

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (None, None, None, None)
