"""Model names: what counts as the same model, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawtrace.model.model_names import bare_model_name, is_version_of, model_matches, model_mentioned, model_name

BARE = {
    "gpt-4o": "gpt-4o",
    "GPT-4o": "gpt-4o",
    "gpt-4o-2024-08-06": "gpt-4o",
    "gpt-4o-mini-2024-07-18": "gpt-4o-mini",
    "openai/gpt-4o": "gpt-4o",
    "openai:gpt-4o": "gpt-4o",
    "openai-responses:gpt-5-mini": "gpt-5-mini",
    "azure_openai:gpt-4.1": "gpt-4.1",
    "openrouter/openai/gpt-4o": "gpt-4o",
    "gateway/openai:gpt-4o": "gpt-4o",
    "openai/gpt-4o:free": "gpt-4o:free",
    "gpt-4-0613": "gpt-4",
    "gpt-3.5-turbo-0125": "gpt-3.5-turbo",
    "gpt-4-32k-0613": "gpt-4-32k",
    "gpt-4-1106-preview": "gpt-4-1106-preview",
    "gpt-4-turbo-2024-04-09": "gpt-4-turbo",
    "chatgpt-4o-latest": "chatgpt-4o",
    "o1": "o1",
    "o": "o",
    "ft:gpt-4o-mini-2024-07-18:acme::abc": "ft:gpt-4o-mini-2024-07-18:acme::abc",
    "anthropic/claude-sonnet-4-6-20260101": "claude-sonnet-4-6",
    "anthropic:claude-sonnet-4-6": "claude-sonnet-4-6",
    "claude-3-5-sonnet-latest": "claude-3-5-sonnet",
    "claude-sonnet-4-6[1m]": "claude-sonnet-4-6",
    "claude-3-5-sonnet@20240620": "claude-3-5-sonnet",
    "claude-3-5-sonnet-v2@20241022": "claude-3-5-sonnet",
    "us.anthropic.claude-3-5-sonnet-20240620-v1:0": "claude-3-5-sonnet",
    "us.anthropic.claude-3-5-sonnet-20241022-v2:0": "claude-3-5-sonnet",
    "anthropic.claude-3-sonnet-20240229-v1:0:200k": "claude-3-sonnet",
    "bedrock:eu.anthropic.claude-sonnet-4-6-20260101-v1:0": "claude-sonnet-4-6",
    "us-gov.anthropic.claude-3-haiku-20240307-v1:0": "claude-3-haiku",
    "global.anthropic.claude-opus-4-6-v1:0": "claude-opus-4-6",
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0": "claude-3-haiku",
    "arn:aws:bedrock:us-east-1:1234:inference-profile/us.amazon.nova-pro-v1:0": "nova-pro",
    "amazon.titan-embed-text-v2:0": "titan-embed-text-v2",
    "anthropic.claude-v2:1": "claude-v2:1",
    "openai.gpt-oss-120b-1:0": "gpt-oss-120b",
    "meta.llama3-70b-instruct-v1:0": "llama3-70b-instruct",
    "mistral.mistral-large-2402-v1:0": "mistral-large",
    "models/gemini-1.5-pro": "gemini-1.5-pro",
    "publishers/google/models/gemini-2.5-flash": "gemini-2.5-flash",
    "projects/p/locations/l/publishers/anthropic/models/claude-opus-4-6@20260101": "claude-opus-4-6",
    "google-vertex:gemini-2.5-flash-preview-05-20": "gemini-2.5-flash-preview",
    "gemini-1.5-flash-002": "gemini-1.5-flash-002",
    "text-bison@001": "text-bison",
    "accounts/fireworks/models/llama-v3p1-70b-instruct": "llama-v3p1-70b-instruct",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b-instruct",
    "@cf/meta/llama-3-8b-instruct": "llama-3-8b-instruct",
    "command-r-08-2024": "command-r",
    "qwen2.5-7b-instruct": "qwen2.5-7b-instruct",
    "qwen3-235b-a22b-2507": "qwen3-235b-a22b",
    "doubao-1.5-pro-32k-250115": "doubao-1.5-pro-32k",
    "deepseek-r1-0528": "deepseek-r1",
    "deepseek.r1-v1:0": "r1",
    "llama3.1:latest": "llama3.1",
    "llama3.1:8b": "llama3.1:8b",
    "mistral:7b": "mistral:7b",
    "ollama:llama3.1:8b": "llama3.1:8b",
    "text-embedding-3-small": "text-embedding-3-small",
    "claude-3-opus-20240229": "claude-3-opus",
    "-2024-08-06": "-2024-08-06",
    "latest": "latest",
    "  gpt-4o ": "gpt-4o",
    "": "",
}


@pytest.mark.parametrize(("recorded", "bare"), BARE.items())
def test_the_bare_name_drops_prefix_region_revision_date_and_latest_and_nothing_else(recorded, bare):
    """Each recorded spelling has the bare name that the table says."""
    assert bare_model_name(recorded) == bare


MATCHES = [
    # (text, recorded, named by `expected`/`only`, hit by `not_expected`)
    ("llama-3.1-8b-instruct", "meta-llama/llama-3.1-8b-instruct:free", True, True),
    ("meta-llama/llama-3.1-8b-instruct", "openrouter/meta-llama/llama-3.1-8b-instruct:nitro", True, True),
    ("llama-3.1-8b-instruct:free", "meta-llama/llama-3.1-8b-instruct:free", True, True),
    ("llama-3.1-8b-instruct:free", "meta-llama/llama-3.1-8b-instruct", False, False),
    ("llama3.1", "llama3.1:8b", False, True),
    ("gpt-4", "gpt-4o-mini", False, False),
    ("gpt-4", "gpt-4o", False, False),
    ("gpt-4", "gpt-4-turbo", False, True),
    ("gpt-4", "gpt-4-0613", True, True),
    ("gpt-4", "gpt-4.1", False, False),
    ("gpt-4o", "gpt-4o-mini", False, True),
    ("gpt-4o", "gpt-4o-2024-08-06", True, True),
    ("gpt-4o", "openai/gpt-4o", True, True),
    ("gpt-4o-mini", "gpt-4o", False, False),
    ("openai/gpt-4o", "gpt-4o-2024-08-06", True, True),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", True, True),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False, False),
    ("gpt-4o-2024-08-06", "gpt-4o", False, False),
    ("sonnet", "claude-sonnet-4-6", True, True),
    ("sonnet", "claude-3-5-sonnet-20240620", True, True),
    ("son", "claude-sonnet-4-6", False, False),
    ("sonnet-4-6", "anthropic/claude-sonnet-4-6-20260101", True, True),
    ("sonnet-4", "claude-sonnet-4-6", False, True),
    ("claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6-20260101-v1:0", True, True),
    ("claude-sonnet-4-6", "anthropic/claude-sonnet-4.6", True, True),
    ("claude-sonnet-4.6", "claude-sonnet-4-6", True, True),
    ("claude-sonnet-4-6", "claude-sonnet-4-60", False, False),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True, True),
    ("mini", "gpt-4o-mini", True, True),
    ("mini", "gemini-2.5-pro", False, False),
    ("o", "gpt-4o", False, False),
    ("o1", "o1-mini", False, True),
    ("o1", "o1-2024-12-17", True, True),
    ("gpt", "gpt-4o", True, True),
    ("GPT-4o", "gpt-4o", True, True),
    ("anthropic", "us.anthropic.claude-3-haiku-20240307-v1:0", False, False),
    ("anthropic", "anthropic/claude-3-haiku", False, True),
    ("llama3", "llama3:8b", False, True),
    ("c++", "c++-1", True, True),
    ("", "gpt-4o", False, False),
]


@pytest.mark.parametrize(("text", "recorded", "named", "hit"), MATCHES)
def test_t6_a_text_names_whole_versions_or_families_and_forbids_whole_segments(text, recorded, named, hit):
    """T6: `gpt-4` is neither named nor hit by `gpt-4o-mini`; each rule errs where it cannot pass vacuously."""
    assert (model_matches(text, recorded), model_mentioned(text, recorded)) == (named, hit)


@pytest.mark.parametrize(
    ("text", "recorded", "is_version"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o", True), ("gemini-2.5-flash-001", "gemini-2.5-flash", True), ("gpt-4o-mini", "gpt-4o", False),
        ("gpt-4o", "gpt-4o", False), ("claude-3-5", "claude-3", False), ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False),
    ],
)  # fmt: skip
def test_a_request_may_be_answered_by_a_dated_or_numbered_version(text: str, recorded: str, is_version: bool) -> None:
    """A version that is no date counts too; another model does not."""
    assert is_version_of(text, recorded) is is_version


NAMES = st.text("ab14o.-:/@_ ", max_size=12) | st.sampled_from([name for name in BARE if name])


@given(NAMES)
def test_every_name_is_its_own_model(name):
    """A text always names and always forbids the model that is recorded under exactly that text."""
    if model_name(name).dated:
        assert model_matches(name, name)
        assert model_mentioned(name, name)


@given(NAMES, NAMES)
def test_what_is_named_is_also_forbidden(text, recorded):
    """The wide rule is never narrower than the narrow one, so `not_expected` cannot miss what `expected` finds."""
    if model_matches(text, recorded):
        assert model_mentioned(text, recorded)


@given(NAMES)
def test_the_bare_name_is_stable(name):
    """A bare name never is longer than the dated one, and never empty when something was recorded."""
    dated, bare = model_name(name)
    assert dated.startswith(bare)
    assert bool(bare) == bool(name.strip().rstrip("/").strip()) or not dated
