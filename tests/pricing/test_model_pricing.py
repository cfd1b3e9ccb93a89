"""`model_pricing`: which entry names a call's model, and what the call then costs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawtrace.errors import ConfigError
from clawtrace.pricing import ModelCall, Price, Pricing
from clawtrace.pricing.price import can_both_match, compile_glob, literal_length

FLAT = {"input_per_1m": 1, "output_per_1m": 1}


def flat(dollars: float) -> dict:
    """An entry in which every token costs the same, so that the price shows which entry was taken."""
    return {"input_per_1m": dollars, "output_per_1m": dollars}


def taken(mapping: dict, provider: str | None, model: str) -> float | None:
    """The per-million price that `mapping` gives a model; None when no entry of it was taken."""
    price = Pricing.from_mapping(mapping).price_call(provider, model, 1_000_000, 0)
    return price.usd if price.source == "model_pricing" else None


class TestWhichEntry:
    def test_a_key_is_a_whole_name_and_never_a_part(self):
        """T6: prices for `gpt-4o` and `o` say nothing about `gpt-4o-mini`; each has its own price or none."""
        mapping = {"gpt-4o": flat(1), "o": flat(2), "made-up": flat(3)}

        assert taken(mapping, "openai", "gpt-4o") == 1
        assert taken(mapping, "openai", "gpt-4o-mini") is None
        assert taken(mapping, None, "made-up-mini") is None
        assert taken(mapping, None, "my-made-up") is None

    @pytest.mark.parametrize(
        ("provider", "recorded"),
        [
            ("openai", "gpt-4o-2024-08-06"),
            ("openai", "GPT-4o"),
            (None, "openai/gpt-4o"),
            (None, "gpt-4o-latest"),
        ],
    )
    def test_a_key_names_the_bare_name(self, provider, recorded):
        """Prefix, date, `latest` and case of the recorded name do not keep a key from naming it."""
        assert taken({"gpt-4o": flat(7)}, provider, recorded) == 7

    def test_a_dated_key_names_that_release_only(self):
        """A key with a date is not dead: it goes before the bare name, for that release alone."""
        mapping = {"gpt-4o": flat(1), "gpt-4o-2024-05-13": flat(2)}

        assert taken(mapping, "openai", "gpt-4o-2024-05-13") == 2
        assert taken(mapping, "openai", "gpt-4o-2024-08-06") == 1

    def test_dots_and_dashes_between_digits_are_the_same(self):
        """Providers write `claude-opus-4.6` and `claude-opus-4-6`; a price for one is a price for the other."""
        assert taken({"claude-opus-4.6": flat(5)}, "anthropic", "claude-opus-4-6-20260101") == 5

    def test_a_key_is_read_without_case_and_surrounding_space(self):
        """Of a name, of a provider with a name, and of a glob: the telemetry's own spelling does not matter either."""
        for key in ("Made-Up", " made-up ", "Acme/Made-Up", "glob:MADE-*"):
            assert taken({key: flat(6)}, "ACME", "made-up") == 6

    def test_no_mapping_is_the_empty_one(self):
        assert Pricing.from_mapping(None) == Pricing.from_mapping({}) == Pricing()

    @pytest.mark.parametrize("order", list(itertools.permutations(range(5))))
    def test_precedence_does_not_depend_on_order(self, order):
        """T12: exact with provider > exact > the glob with the longest literal part, however the file is sorted."""
        rows = [
            ("openai/gpt-4o", flat(1)),
            ("gpt-4o", flat(2)),
            ("glob:gpt-4*", flat(3)),
            ("glob:gpt-*", flat(4)),
            ("glob:azure/*", flat(5)),
        ]
        mapping = dict(rows[i] for i in order)

        assert taken(mapping, "openai", "gpt-4o-2024-08-06") == 1
        assert taken(mapping, "azure.ai.openai", "gpt-4o") == 2
        assert taken(mapping, "openai", "gpt-4.1") == 3
        assert taken(mapping, "openai", "gpt-5") == 4
        assert taken(mapping, "azure.ai.openai", "phi-4") == 5

    def test_a_provider_key_takes_the_telemetrys_name_and_the_common_one(self):
        """`azure/…` names calls recorded as `azure.ai.openai`; the name as recorded goes before it."""
        mapping = {"azure/gpt-4o": flat(1), "azure.ai.openai/gpt-4o": flat(2)}

        assert taken(mapping, "azure.ai.openai", "gpt-4o") == 2
        assert taken(mapping, "azure.ai.inference", "gpt-4o") == 1
        assert taken(mapping, "openai", "gpt-4o") is None

    def test_a_name_with_a_slash_of_its_own_can_be_a_key(self):
        """A hosted open model's own prefix is part of the name that a key may state."""
        assert taken({"meta-llama/llama-3-70b": flat(4)}, "together", "meta-llama/Llama-3-70b") == 4


class TestWhatItCosts:
    def test_units(self):
        """Prices per thousand and per million tokens are the same price."""
        per_1k = Pricing.from_mapping({"m": {"input_per_1k": 0.003, "output_per_1k": 0.015}})
        per_1m = Pricing.from_mapping({"m": {"input_per_1m": 3, "output_per_1m": 15}})

        assert per_1k.price_call(None, "m", 1000, 200) == Price(0.006, "model_pricing")
        assert per_1m.price_call(None, "m", 1000, 200) == Price(0.006, "model_pricing")

    def test_separately_priced_parts_are_taken_out_of_their_whole(self):
        """T19: input includes cached tokens and output includes reasoning, so each token is paid for once."""
        entry = {
            "input_per_1m": 10,
            "output_per_1m": 100,
            "cache_read_per_1m": 1,
            "cache_write_per_1m": 12,
            "reasoning_per_1m": 50,
        }
        price = Pricing.from_mapping({"m": entry}).price_call(
            None, "m", 1_000_000, 1_000_000, 600_000, 100_000, 400_000
        )

        assert price.usd == pytest.approx(0.3 * 10 + 0.6 * 1 + 0.1 * 12 + 0.6 * 100 + 0.4 * 50)

    def test_parts_without_a_price_of_their_own_cost_what_the_rest_costs(self):
        """Without a cache price cached tokens are input like any other."""
        price = Pricing.from_mapping({"m": flat(10)}).price_call(None, "m", 1_000_000, 0, 600_000, None, None)

        assert price.usd == pytest.approx(10)

    @pytest.mark.parametrize(("tokens_in", "usd"), [(200_000, 0.2), (200_001, 0.400002)])
    def test_a_tier_holds_for_all_tokens_above_its_limit(self, tokens_in, usd):
        """A tier applies when the input exceeds its number, to the whole call; unstated prices stay."""
        entry = {**FLAT, "tiers": [{"above_input_tokens": 200_000, "input_per_1m": 2}]}
        price = Pricing.from_mapping({"m": entry}).price_call(None, "m", tokens_in, 0)

        assert price.usd == pytest.approx(usd)

    def test_the_highest_tier_reached_wins(self):
        """Tiers may stand in any order."""
        tiers = [{"above_input_tokens": 500, "input_per_1m": 3}, {"above_input_tokens": 100, "input_per_1m": 2}]
        pricing = Pricing.from_mapping({"m": {**FLAT, "tiers": tiers}})

        assert [pricing.price_call(None, "m", n, 0).usd for n in (100, 500, 501)] == pytest.approx(
            [100e-6, 1000e-6, 1503e-6]
        )

    @pytest.mark.parametrize(("tokens_in", "tokens_out"), [(None, 10), (10, None), (None, None)])
    def test_unknown_tokens_make_no_price(self, tokens_in, tokens_out):
        """Unknown is not zero: without input or output tokens there is no price, and the tables are not asked."""
        pricing = Pricing.from_mapping({"gpt-4o": {**FLAT, "per_request": 1}})

        assert pricing.price_call("openai", "gpt-4o", tokens_in, tokens_out) == Price(None, None)

    def test_a_price_for_each_request_needs_no_tokens(self):
        """`per_request` alone prices a call whatever is known of it, and is added to token prices."""
        pricing = Pricing.from_mapping({"m": {"per_request": 0.25}, "n": {**FLAT, "per_request": 0.25}})

        assert pricing.price_call(None, "m", None, None).usd == 0.25
        assert pricing.price_call(None, "n", 1_000_000, 0).usd == 1.25

    def test_free_tokens_need_not_be_known(self):
        """Tokens that cost 0 decide nothing: an embedding's unknown output leaves the price known."""
        pricing = Pricing.from_mapping({"m": {"input_per_1m": 1, "output_per_1m": 0}})

        assert pricing.price_call(None, "m", 1_000_000, None).usd == 1

    @pytest.mark.parametrize(
        "call",
        [
            ModelCall(None, "m", 100, 10, cache_read=101),
            ModelCall(None, "m", 100, 10, cache_read=60, cache_write=60),
            ModelCall(None, "m", 100, 10, reasoning=11),
            ModelCall(None, "m", -1, 10),
            ModelCall("openai", "gpt-4o", 100, 10, cache_read=101),
            ModelCall("openai", "gpt-4o", 100, -10),
        ],
    )
    def test_contradictory_counts_make_no_price(self, call):
        """More cached than input, more reasoning than output, or less than nothing: what it cost is unknown."""
        entry = {**FLAT, "cache_read_per_1m": 1, "cache_write_per_1m": 1, "reasoning_per_1m": 1}

        assert Pricing.from_mapping({"m": entry}).price_call(*call) == Price(None, None)

    def test_no_model_no_price(self):
        """A call whose model is unknown cannot be priced."""
        assert Pricing().price_call("openai", None, 1, 1) == Price(None, None)
        assert Pricing().price_call("openai", " ", 1, 1) == Price(None, None)


class TestMistakes:
    @pytest.mark.parametrize(
        ("mapping", "words"),
        [
            ({"m": {"input_per_1m": 1}}, ["model_pricing.m", "output_per_1m", "missing"]),
            ({"m": {"input_per_1m": 1, "input_per_1k": 1, "output_per_1m": 1}}, ["twice"]),
            ({"m": {"input": 1}}, ["model_pricing.m.input"]),
            ({"m": {}}, ["per_request"]),
            ({"m": {"input_per_1m": -1, "output_per_1m": 1}}, ["model_pricing.m.input_per_1m"]),
            ({"m": {"input_per_1m": float("nan"), "output_per_1m": 1}}, ["model_pricing.m.input_per_1m"]),
            ({"m": 3}, ["model_pricing.m"]),
            ({"m": {**FLAT, "tiers": [{"above_input_tokens": 5}]}}, ["model_pricing.m.tiers.0", "at least one price"]),
            ({"m": {"tiers": [{"above_input_tokens": 5, "input_per_1m": 1}]}}, ["input_per_1m", "missing"]),
            (
                {"m": {**FLAT, "tiers": [{"above_input_tokens": 5, "input_per_1m": n} for n in (1, 2)]}},
                ["same `above_input_tokens`"],
            ),
            ({"re:gpt.*": FLAT}, ["glob:"]),
            ({"literal:gpt-4o": FLAT}, ["glob:"]),
            ({" ": FLAT}, ["not a model name"]),
            ({4.1: FLAT}, ["4.1", "quotes"]),
            ({"GPT-4o": FLAT, "gpt-4o": FLAT}, ["gpt-4o", "second time"]),
            ([1], ["mapping"]),
        ],
    )
    def test_a_mistake_is_named(self, mapping, words):
        """Each mistake is a ConfigError that names the key and says what would be valid."""
        with pytest.raises(ConfigError) as raised:
            Pricing.from_mapping(mapping)

        assert [word for word in words if word not in str(raised.value)] == []

    def test_all_mistakes_are_reported_at_once_with_their_places(self):
        """A loader's `locate` gives each problem its file, line and column."""
        where = {("a", "nope"): ("clawtrace.yaml", 3, 5), ("b",): ("clawtrace.yaml", 7, 2)}
        with pytest.raises(ConfigError) as raised:
            Pricing.from_mapping({"a": {**FLAT, "nope": 1}, "b": {}}, locate=where.__getitem__)

        assert [(p.file, p.line, p.column) for p in raised.value.problems] == list(where.values())

    def test_a_key_that_is_not_known_is_reported_with_those_that_are(self):
        """Of a price, and of a tier of it."""
        tier = {"above_input_tokens": 9, "input_per_1m": 1, "outputs_per_1m": 1}
        with pytest.raises(ConfigError) as raised:
            Pricing.from_mapping({"a": {**FLAT, "input_per_m": 1}, "b": {**FLAT, "tiers": [tier]}})

        price, of_tier = raised.value.problems
        assert price.message.startswith("is not a known key; known are `input_per_1k`, ")
        assert "`input_per_1m`" in price.hint
        assert "`above_input_tokens`" in of_tier.message
        assert "`output_per_1m`" in of_tier.hint

    def test_two_globs_that_are_equally_particular_are_refused(self):
        """Two globs with equally long literal parts that can name one model would depend on order."""
        with pytest.raises(ConfigError, match="equally particular"):
            Pricing.from_mapping({"glob:gpt-*": flat(1), "glob:*-4o*": flat(2), "glob:*mini": flat(3)})

    def test_globs_that_cannot_meet_or_agree_are_accepted(self):
        """Equal length alone is no conflict: different first letters never meet, equal prices never differ."""
        Pricing.from_mapping({"glob:gpt*": flat(1), "glob:o1-*": flat(2), "glob:*mini": flat(3), "glob:*opus": flat(3)})


class TestGlobs:
    names = st.text(alphabet="ab-4", max_size=6)
    patterns = st.lists(st.sampled_from(["a", "b", "-", "4", "*", "?", "[ab]", "[!a]"]), max_size=6).map("".join)

    @given(names, patterns, patterns)
    def test_two_patterns_that_match_one_name_are_found_to_meet(self, name, left, right):
        """`can_both_match` never misses a pair that some name matches."""
        if compile_glob(left).match(name) and compile_glob(right).match(name):
            assert can_both_match(left, right)

    @pytest.mark.parametrize(
        ("left", "right", "meet"),
        [
            ("gpt-*", "claude-*", False),
            ("*-mini", "*-nano", False),
            ("a?c", "abc", True),
            ("[ab]x", "[bc]x", True),
            ("[ab]x", "bx", True),
            ("bx", "[ab]x", True),
            ("[ab]x", "cx", False),
            ("cx", "[ab]x", False),
            ("[ab]x", "[cd]x", False),
            ("", "*", True),
            ("", "?", False),
        ],
    )
    def test_meeting(self, left, right, meet):
        """Patterns that no name can match together do not meet."""
        assert can_both_match(left, right) is meet

    def test_literal_length_counts_what_stands_for_itself(self):
        """Stars, question marks and brackets are no literal part."""
        assert literal_length("gpt-*[ab]?x") == 5
