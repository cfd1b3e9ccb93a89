"""Totals of a run: tokens, cost, times, and what stays unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, chat, tool

from clawtrace.pricing import Pricing


class TestUnknown:
    def test_a_call_without_usage_leaves_no_sum(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m1", "a", at=1), chat("m2", "a", at=9, **{"gen_ai.usage.input_tokens": None}))

        columns = ("input_tokens", "input_tokens_low", "input_tokens_known", "output_tokens", "usage_calls")
        assert lab.totals(*columns) == (None, 100, 1, 20, 2)

    @pytest.mark.parametrize("value", [-5, "many", "", float("1e300")])
    def test_a_count_that_is_none_is_unknown(self, lab: Lab, value: Any) -> None:
        """T31: negative, wordy and impossible counts are unknown, not zero."""
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": value}))

        assert lab.totals("input_tokens") == (None,)

    def test_a_count_that_is_none_is_reported(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": "many"}))

        (said,) = lab.rows("SELECT diagnostics FROM fact_state")[0]
        assert "1 span recorded input_tokens" in said

    def test_numeric_text_is_a_number(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": "1013"}))

        assert lab.totals("input_tokens") == (1013,)

    def test_a_plain_sdk_that_asked_for_tools_without_content(self, lab: Lab) -> None:
        """Model spans alone, the model asked for tools, nothing says which: tool calls are unknown, not none."""
        lab.put(chat("m1", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]}), chat("m2", at=9))

        assert lab.totals("tool_calls", "agents") == (None, None)

    def test_model_spans_alone_that_asked_for_nothing(self, lab: Lab) -> None:
        lab.put(chat("m1", at=1), chat("m2", at=9))

        assert lab.totals("tool_calls") == (0,)

    def test_unpriced_calls_leave_the_cost_open(self) -> None:
        """T11: one call has a price, one has none."""
        lab = Lab(Pricing.from_mapping({"gpt-4o": {"input_per_1m": 10, "output_per_1m": 10}}))
        mine = {
            "gen_ai.request.model": "house-model",
            "gen_ai.response.model": "house-model",
            "gen_ai.provider.name": "house",
        }
        lab.put(agent("a"), chat("m1", "a", at=1), chat("m2", "a", at=9, **mine))

        low, high, priced = lab.totals("cost_low", "cost_high", "priced_calls")
        assert (low, high, priced) == (pytest.approx(0.0011), None, 1)
        assert lab.rows("SELECT cost_source FROM llm_calls ORDER BY call_no") == [("model_pricing",), (None,)]

    def test_the_list_does_not_price_other_tiers_and_audio(self, lab: Lab) -> None:
        calls = [
            ("openai.response.service_tier", "default", 1),
            ("openai.response.service_tier", "priority", 0),
            ("anthropic.response.service_tier", "batch", 0),
            ("gen_ai.usage.details.output_audio_tokens", 0, 1),
            ("gen_ai.usage.details.output_audio_tokens", 3, 0),
        ]
        lab.put_each({f"{key} {value}": (agent("a"), chat("m1", "a", at=1, **{key: value})) for key, value, _ in calls})

        for key, value, priced in calls:
            assert lab.totals("priced_calls", run=f"{key} {value}") == (priced,), (key, value)

    def test_a_nameless_agent_is_there_without_a_name(self, lab: Lab) -> None:
        lab.put(agent("a", agent=None))

        assert lab.rows("SELECT name FROM agents") == [(None,)]


class TestTokens:
    def test_calls_that_got_no_answer_used_nothing_that_is_known(self, counting: Lab) -> None:
        failed = chat("m", "a", at=1, **{"gen_ai.response.model": None, "gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None})  # fmt: skip
        failed.error = "401"
        counting.put(agent("a"), failed)

        assert counting.totals("llm_calls", "failed_llm_attempts", "input_tokens", "usage_calls") == (0, 1, 0, 0)

    def test_more_cached_than_input_proves_exclusion(self, lab: Lab) -> None:
        """T19: input_tokens includes cached tokens, also where the instrumentation left them out."""
        lab.put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 1000}),
        )

        assert lab.totals("input_tokens", "cache_read_tokens") == (1004, 1000)

    def test_what_one_call_proves_holds_for_the_others_of_its_instrumentation(self, lab: Lab) -> None:
        """The second call alone would not tell; a call of another provider is not touched, nor one without cached tokens."""
        cached = "gen_ai.usage.cache_read.input_tokens"
        lab.put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": 4, cached: 1000}),
            chat("n", "a", at=20, **{"gen_ai.usage.input_tokens": 3000, cached: 1000}),
            chat("o", "a", at=40, **{"gen_ai.usage.input_tokens": 50}),
            chat(
                "p", "a", at=60, **{"gen_ai.usage.input_tokens": 300, cached: 100, "gen_ai.provider.name": "anthropic"}
            ),
        )

        assert lab.rows("SELECT input_tokens FROM llm_calls ORDER BY call_no") == [(1004,), (4000,), (50,), (300,)]
        assert lab.rows("SELECT sum(input_tokens) FROM spans WHERE kind = 'llm'") == [(5354,)]

    def test_a_model_that_writes_to_no_cache_wrote_none(self, lab: Lab) -> None:
        """Nothing is said of the writes of a model whose price list bills them."""
        claude = {f"gen_ai.{side}.model": "claude-sonnet-4-5" for side in ("request", "response")}
        lab.put(agent("a"), chat("m", "a", at=1), run="one")
        more = chat("n", "b", at=20, **claude, **{"gen_ai.provider.name": "anthropic"})
        lab.put(agent("b"), chat("m", "b", at=1), more, run="two")

        assert [lab.totals("cache_write_tokens", run=run) for run in ("one", "two")] == [(0,), (None,)]

    def test_the_models_of_a_run_do_not_tell_what_calls_that_are_not_recorded_wrote(self, lab: Lab) -> None:
        """An agent states the usage of calls that have no spans."""
        usage = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5}
        lab.put(agent("a"), chat("m", "a", at=1), agent("b", at=200, to=300, agent="sub", **usage))

        assert lab.totals("input_tokens", "cache_write_tokens") == (None, None)

    def test_a_rollup_serves_where_there_is_no_model_call(self, lab: Lab) -> None:
        usage = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5}
        lab.put(agent("a", **usage), agent("b", "a", at=1, to=9, agent="sub"))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (None, 50, 5)

    def test_usage_of_zeros_is_none(self, lab: Lab) -> None:
        """No request is empty: an SDK wrote zeros where the answer came without usage."""
        zeros = dict.fromkeys(
            ("input_tokens", "output_tokens", "cache_read.input_tokens", "reasoning.output_tokens"), 0
        )
        lab.put(agent("a"), chat("m", "a", at=1, **{f"gen_ai.usage.{name}": count for name, count in zeros.items()}))

        assert lab.totals("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens") == (None,) * 4

    def test_a_rollup_of_zero_tokens_states_nothing(self, lab: Lab) -> None:
        """No request is empty: the agent was not sent the usage, so that nothing is known of its cached tokens either."""
        parts = ("cache_read.input_tokens", "cache_creation.input_tokens", "reasoning.output_tokens")
        usage = {f"gen_ai.usage.{name}": 0 for name in ("input_tokens", "output_tokens", *parts)}
        lab.put(agent("a", **usage))

        columns = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        assert lab.totals(*columns) == (None,) * 5

    def test_a_rollup_of_one_agent_is_not_the_usage_of_another(self, lab: Lab) -> None:
        """The second conversation failed, and states nothing: what the first states is the least."""
        usage = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5}
        lab.put(agent("a", **usage), agent("b", at=200, to=300))

        assert lab.totals("input_tokens", "output_tokens", "cache_read_tokens") == (None, None, None)
        assert lab.totals("input_tokens_low", "output_tokens_low") == (50, 5)

    def test_a_rollup_around_one_agent_is_not_the_usage_of_another(self, lab: Lab) -> None:
        """The second crew failed, and states nothing; a record that no agent works in is of them all."""
        scope = "opentelemetry.instrumentation.crewai.instrumentation"
        usage = {"crewai.crew.usage_metrics": "{'prompt_tokens': 50, 'completion_tokens': 5, 'successful_requests': 1}"}
        crew = S("first", name="crewai.workflow", attrs=usage, scope=scope)
        other = S("second", name="crewai.workflow", at=200, to=300, scope=scope)
        lab.put(crew, agent("a", "first"), other, agent("b", "second", at=201, to=300))
        lab.put(crew, agent("f", at=200, to=300), run="record")

        assert lab.totals("input_tokens", "output_tokens") == (None, None)
        assert lab.totals("input_tokens_low", "output_tokens_low") == (50, 5)
        assert lab.totals("input_tokens", "output_tokens", run="record") == (50, 5)

    @pytest.mark.parametrize(
        ("around", "inside", "total"),
        [
            ({}, {}, 50),
            ({"error": "no answer"}, {}, None),
            ({}, {"gen_ai.usage.input_tokens": 7}, 7),
            ({"id": "b"}, {}, None),
        ],
    )
    def test_what_is_stated_around_model_calls_without_usage_is_theirs(
        self, lab: Lab, around: dict[str, str], inside: dict[str, int], total: int | None
    ) -> None:
        """Not where that work failed, where a call records its own, or where a call is outside of it."""
        silent = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None} | inside
        program = agent("a", **{"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5})
        for word, value in around.items():
            setattr(program, word, value)
        lab.put(program, chat("m", "a", at=1, **silent))

        assert lab.totals("input_tokens") == (total,)

    def test_of_running_totals_the_largest_is_the_least_that_was_used(self, lab: Lab) -> None:
        """That of the second crew may include that of the first."""
        scope = "opentelemetry.instrumentation.crewai.instrumentation"
        lab.put(
            *(
                S(
                    id,
                    name="crewai.workflow",
                    at=at,
                    to=at + 9,
                    scope=scope,
                    attrs={"crewai.crew.usage_metrics": repr(usage)},
                )
                for id, at, usage in (
                    ("a", 0, {"prompt_tokens": 50, "completion_tokens": 5}),
                    ("b", 20, {"prompt_tokens": 80, "completion_tokens": 7}),
                )
            )
        )

        assert lab.totals("input_tokens", "input_tokens_low", "output_tokens", "output_tokens_low") == (
            None,
            80,
            None,
            7,
        )

    def test_an_agent_around_the_one_that_states_is_its_frame(self, lab: Lab) -> None:
        """Unless a tool works in it that the other did not call: then it asked a model itself."""
        usage = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5}
        lab.put(agent("a"), agent("b", "a", at=10, to=20, **usage))
        framed = lab.totals("input_tokens", "output_tokens")
        lab.put(agent("c"), agent("d", "c", at=10, to=20, **usage), tool("t", "c", at=30), run="r2")

        assert framed == (50, 5)
        assert lab.totals("input_tokens", "output_tokens", run="r2") == (None, None)


class TestTimes:
    def test_busy_time_is_the_union(self, lab: Lab) -> None:
        lab.put(S("a", "", 1, 10), S("b", "", 5, 20), S("c", "", 30, 31))

        assert lab.totals("busy_ns", "first_start_ns", "last_end_ns") == (20_000_000, 1_000_000, 31_000_000)

    def test_a_child_that_began_long_before_its_parent_has_another_clock(self, lab: Lab) -> None:
        """T17: when it and what it holds ran is unknown; its agents come after the one that they are in."""
        far = -3_600_000
        lab.put(
            agent("a", at=3_700_000, to=3_700_100, agent="boss"), tool("t1", "a", at=3_700_010, tool="first"),
            agent("b", "a", at=3_700_020 + far, to=3_700_090 + far, agent="helper"),
            tool("t2", "b", at=3_700_030 + far, tool="second"),
        )  # fmt: skip

        called = lab.rows("SELECT name, start_ns, end_ns IS NULL FROM tool_calls ORDER BY name")
        assert called == [("first", 3_700_010_000_000, False), ("second", None, True)]
        assert lab.totals("last_end_ns", "busy_ns") == (None, None)
        assert lab.rows("SELECT name FROM agents ORDER BY activation_no") == [("boss",), ("helper",)]

    def test_clock_skew_never_makes_a_negative_duration(self, lab: Lab) -> None:
        """T17: how long a span lasted that ends before it starts is unknown, and of a root how long the run did."""
        lab.put(S("a", "", 10, 5), S("b", "a", 11, 12), run="root")
        lab.put(S("a", "", 10, 50), S("b", "a", 12, 11), run="child")

        assert set(lab.rows("SELECT duration_ns, ended FROM spans", "root")) == {(None, True), (1_000_000, True)}
        assert lab.totals("first_start_ns", "last_end_ns", "busy_ns", run="root") == (10_000_000, None, None)
        assert lab.totals("last_end_ns", "busy_ns", run="child") == (50_000_000, 40_000_000)


@pytest.mark.parametrize(("streamed", "reasoning"), [(True, None), (False, 4)])
def test_reasoning_tokens_of_some_calls_are_no_total_where_streams_record_none(
    lab: Lab, streamed: bool, reasoning: int | None
) -> None:
    """OpenLLMetry reads the details of usage of whole answers only; a call of which 0 are recorded is one that records them."""
    scope = "opentelemetry.instrumentation.openai.v1"
    whole = chat("m", **{"gen_ai.usage.reasoning_tokens": 4, "gen_ai.is_streaming": False})
    other = chat(
        "n", at=10, **{"gen_ai.is_streaming": streamed, "gen_ai.usage.reasoning_tokens": None if streamed else 0}
    )
    lab.put(replace(whole, scope=scope), replace(other, scope=scope))

    assert lab.totals("reasoning_tokens") == (reasoning,)
