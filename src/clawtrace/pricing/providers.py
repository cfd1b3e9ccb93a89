"""One name for each provider: what telemetry calls it, and what price tables call it.

Whole names only. `openai-compatible` is not `openai`: such a server sets its own prices.
"""

from __future__ import annotations

__all__ = ["provider_names"]

_ALIASES = {
    # OpenTelemetry's gen_ai.provider.name and gen_ai.system values, and instrumentations' own words
    "aws.bedrock": "aws",
    "aws_bedrock": "aws",
    "amazon_bedrock": "aws",
    "amazon-bedrock": "aws",
    "bedrock": "aws",
    "az.ai.inference": "azure",
    "az.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "azure_openai": "azure",
    "azure-openai": "azure",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "gcp.vertex.agent": "google",
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google",
    "google_genai": "google",
    "vertex": "google",
    "vertex_ai": "google",
    "vertexai": "google",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "moonshot_ai": "moonshotai",
    "x_ai": "x-ai",
    "xai": "x-ai",
    "together_ai": "together",
    "together-ai": "together",
    "fireworks_ai": "fireworks",
    "fireworks-ai": "fireworks",
}


def provider_names(provider: str) -> tuple[str, ...]:
    """Return the names under which a price for `provider` may be stated, the most particular first.

    The name itself in lower case, its place in the alias table, and, for ``openai.responses`` and the like, what
    stands before the first dot.
    """
    name = provider.strip().lower()
    if name in _ALIASES:
        return name, _ALIASES[name]
    head = name.split(".", 1)[0]
    return tuple(dict.fromkeys(found for found in (name, head, _ALIASES.get(head)) if found))
