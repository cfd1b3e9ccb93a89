"""Model names: the bare name, and the three rules by which a word in an assertion names a model.

The *bare name* is a recorded model name without provider prefix, region, and date or ``latest`` suffix, in lower
case (spec: assertions.md §4, "Models"). The rules:

- a text with a digit names a **version** and must reach from a segment boundary to the end of the bare name;
- a text without a digit is a **family** and matches any run of whole segments;
- the **wide** rule, for what must not be used, lets both kinds match any run of whole segments.

Segments end at ``-``, ``/``, ``:``, ``_``, ``@`` and spaces, never at a dot: ``gpt-4`` says nothing about ``gpt-4.1``.
Between two digits a dash and a dot are the same (``claude-opus-4.6`` is ``claude-opus-4-6``): providers write both.
A text that carries a date asks for that date, and is compared with the dated name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "ModelName",
    "bare_model_name",
    "is_version_of",
    "model_matches",
    "model_mentioned",
    "model_name",
    "names_no_model",
]

_CACHE = 65_536

# Words before a colon that name a provider (`openai:gpt-4o`): pydantic-ai's and LangChain's spellings.
# Anything else before a colon belongs to the name (`llama3.1:8b`, `ft:gpt-4o:acme::x`).
_PROVIDERS = (
    "ai21 alibaba amazon anthropic anthropic-vertex aws azure azure-ai azure-openai bedrock bedrock-converse cerebras "
    "cohere deepseek fireworks fireworks-ai gateway gemini github google google-cloud google-genai google-gla "
    "google-vertex google-vertexai grok groq heroku huggingface ibm litellm lm-studio lmstudio mistral mistralai "
    "moonshot moonshotai nebius nvidia ollama openai openai-chat openai-responses openrouter outlines ovhcloud "
    "perplexity sambanova snowflake together together-ai upstage vercel vertex vertex-ai vertexai vllm voyageai "
    "watsonx xai zai zhipuai"
)
_PROVIDER = re.compile(rf"(?:{'|'.join(word.replace('-', '[-_]') for word in _PROVIDERS.split())}):(?!\d)")

# Amazon Bedrock: `us.anthropic.claude-…`: an optional inference region, the vendor, the name.
_BEDROCK_VENDORS = (
    "ai21 amazon anthropic cohere deepseek google luma meta minimax mistral moonshot moonshotai nvidia openai qwen "
    "stability twelvelabs writer zai"
)
_BEDROCK = re.compile(rf"(?:[a-z]{{2,6}}(?:-gov)?\.)?(?:{'|'.join(_BEDROCK_VENDORS.split())})\.(?=[a-z])")
# … and its version: `-v1:0`, `-1:0`, with a context size `:200k`. After a date any `-v2` is Bedrock's or Vertex's
# revision of that snapshot; elsewhere a `-v2` is part of the name (`titan-embed-text-v2:0`).
_REVISION = re.compile(r"(?<=\d{8})-v\d+(?::\d+)*(?::\d+k)?$|-(?:v1|1):\d+(?::\d+k)?$|(?<=-v\d):0$")
_VERTEX_REVISION = re.compile(r"-v\d+(?=@\d{8}$)")

_MARKS = re.compile(r"\[[^\]]*\]$")  # `claude-sonnet-4-6[1m]`: Claude Code's mark for the long context
# OpenRouter: how a model is served (`meta-llama/llama-3.1-8b-instruct:free`), and at which price; so it is a part of the name,
# and only what names a model without it does not ask for it. Ollama's tags after a colon are versions.
_SERVED = re.compile(r":(?:beta|exacto|extended|floor|free|nitro|online|thinking)$")
_LATEST = re.compile(r"[-:@_](?:latest|default)$")

_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_DATE = re.compile(
    rf"[-@:_](?:20\d\d[-_.]?{_MONTH}[-_.]?{_DAY}"  # 2024-08-06, 20240806
    rf"|20\d\d-{_MONTH}|{_MONTH}-20\d\d"  # 2025-01, 08-2024
    rf"|2[0-9]{_MONTH}{_DAY}"  # 250115
    rf"|{_MONTH}{_DAY}|2[0-9]{_MONTH})$"  # 0613, 2402
    rf"|(?:(?<=-preview)|(?<=-exp))-{_MONTH}-{_DAY}$"  # preview-05-20
    r"|@\d+$"  # Vertex: @001
)

_CHOSEN_ELSEWHERE = re.compile(
    r"^arn:[^/]*:(?:application-inference-profile|custom-model-deployment|(?:default-)?prompt-router|imported-model|provisioned-model)/"
    r"|/endpoints/\d+$|(?:^|/)(?:auto|model-router)$"
)
_EDGE = r"[-/:_@\s]"


class ModelName(NamedTuple):
    """One model name, cleaned in two steps; both parts are lower-case and never empty for a non-empty text."""

    dated: str
    """Without provider prefix, region, revision and ``latest``; a date suffix is kept."""
    bare: str
    """Without the date as well."""


def _cut(pattern: re.Pattern[str], text: str) -> str:
    """Remove what `pattern` finds in `text`, unless nothing would be left."""
    return pattern.sub("", text, count=1) or text


@lru_cache(maxsize=_CACHE)
def model_name(text: str) -> ModelName:
    """Split a model name into its parts; cached because a store holds few distinct names."""
    name = _cut(_MARKS, text.strip().lower()).rstrip("/")
    name = name.rsplit("/", 1)[-1]
    for prefix in (_PROVIDER, _BEDROCK):
        found = prefix.match(name)
        if found:
            name = name[found.end() :] or name
    name = _cut(_VERTEX_REVISION, _cut(_REVISION, name))
    dated = _cut(_LATEST, name)
    return ModelName(dated, _cut(_DATE, dated))


def bare_model_name(text: str) -> str:
    """Return the bare name of a recorded model: no provider prefix, region, and date or ``latest`` suffix.

    >>> bare_model_name("us.anthropic.claude-3-5-sonnet-20240620-v1:0")
    'claude-3-5-sonnet'
    """
    return model_name(text).bare


@lru_cache(maxsize=_CACHE)
def _segments(text: str, *, to_the_end: bool) -> re.Pattern[str]:
    """Compile `text` to match whole segments; with `to_the_end`, only the last ones of a name."""
    body = re.sub(r"(?<=\d)(?:\\-|\\\.)(?=\d)", "[-.]", re.escape(text))
    return re.compile(rf"(?:^|(?<={_EDGE})){body}(?:{'$' if to_the_end else rf'$|(?={_EDGE})'})")


def model_matches(text: str, recorded: str) -> bool:
    """Return whether `text` names the model `recorded`, by the rules of ``expected`` and ``only``.

    A provider prefix in `text` is not compared. Pure; cheap enough to be called once per distinct name.
    """
    wanted, name = model_name(text), model_name(recorded)
    if not wanted.dated:
        return False
    if "/" in recorded and not _SERVED.search(wanted.dated):
        name = model_name(_cut(_SERVED, recorded.strip().lower()))
    if wanted.dated != wanted.bare:
        return bool(_segments(wanted.dated, to_the_end=True).search(name.dated))
    version = any(character.isdigit() for character in wanted.bare)
    return bool(_segments(wanted.bare, to_the_end=version).search(name.bare))


def model_mentioned(text: str, recorded: str) -> bool:
    """Return whether `recorded` might be what `text` forbids: the wide rule of ``not_expected``.

    It looks at the name as recorded too, so that a forbidden provider or region in the name is found.
    """
    wanted, name = model_name(text), model_name(recorded)
    if not wanted.dated:
        return False
    pattern = _segments(wanted.dated, to_the_end=False)
    whole = _segments(text.strip().lower(), to_the_end=False)
    raw = recorded.strip().lower()
    return any(pattern.search(form) for form in (name.bare, name.dated, raw)) or bool(whole.search(raw))


def is_version_of(text: str, recorded: str) -> bool:
    """Return whether `text` names a dated or numbered version of the model `recorded`.

    `gpt-4o-2024-08-06` is one of `gpt-4o`, `gemini-2.5-flash-001` one of `gemini-2.5-flash`; `gpt-4o-mini` is none.
    """
    wanted, name = model_name(text), model_name(recorded)
    dated = name.bare == wanted.bare != wanted.dated
    return name.dated == name.bare and (dated or re.fullmatch(_numbered(name.bare), wanted.dated) is not None)


def names_no_model(recorded: str) -> bool:
    """Return whether a requested name leaves the choice of the model to the provider's settings: a profile, an endpoint, a router."""
    return _CHOSEN_ELSEWHERE.search(recorded.strip().lower()) is not None


def _numbered(name: str) -> str:
    return rf"{re.escape(name)}{_EDGE}\d{{3,}}"
