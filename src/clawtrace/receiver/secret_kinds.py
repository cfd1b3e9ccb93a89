"""Kinds of secrets, as data: literals that must appear, and the pattern that decides.

Literals are searched in one pass over every request; a pattern runs only on texts in which a literal of its kind
was found. ``{start}`` in a pattern is the left boundary: not glued to a letter or digit (``task-…`` holds no key),
but directly after an escape sequence counts as a boundary, because messages are often JSON inside of text.
A group named ``secret`` limits what is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SECRET_KINDS", "START", "SecretKind"]

START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
"""Left boundary; ``\\n`` and ``\\u000a`` are what a line break looks like inside of JSON text."""


@dataclass(frozen=True, slots=True)
class SecretKind:
    """One kind of secret."""

    name: str
    """Appears in ``[REDACTED:name:hash8]``."""
    literals: tuple[str, ...]
    """Exact texts, one of which every secret of this kind holds."""
    pattern: str
    """Regular expression (`re`) that finds the secret."""


_RUN = r"(?=[A-Za-z0-9_-]*[A-Za-z0-9]{16})(?=[A-Za-z0-9_-]*[0-9])"
"""A key has a long unbroken stretch and a digit; ``sk-learn-contrib-projects-list`` has neither."""

SECRET_KINDS: tuple[SecretKind, ...] = (
    SecretKind(
        "private-key",
        ("-----BEGIN",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\\\s:,-]*)",
    ),
    SecretKind("anthropic", ("sk-ant-",), "{start}sk-ant-[A-Za-z0-9_-]{20,}"),
    SecretKind("openrouter", ("sk-or-",), "{start}sk-or-(?:v[0-9]-)?[A-Za-z0-9]{32,}"),
    SecretKind("langfuse", ("sk-lf-",), "{start}sk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    SecretKind("openai", ("sk-",), "{start}sk-" + _RUN + "[A-Za-z0-9_-]{20,}"),
    SecretKind(
        "stripe", ("sk_live_", "rk_live_", "sk_test_", "rk_test_"), "{start}[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    ),
    SecretKind("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "{start}gh[pousr]_[A-Za-z0-9]{30,}"),
    SecretKind("github", ("github_pat_",), "{start}github_pat_[A-Za-z0-9_]{22,}"),
    SecretKind("gitlab", ("glpat-",), "{start}glpat-[A-Za-z0-9_-]{20,}"),
    SecretKind("huggingface", ("hf_",), "{start}hf_[A-Za-z0-9]{30,}"),
    SecretKind("groq", ("gsk_",), "{start}gsk_[A-Za-z0-9]{40,}"),
    SecretKind("npm", ("npm_",), "{start}npm_[A-Za-z0-9]{36,}"),
    SecretKind("aws", ("AKIA", "ASIA"), "{start}A[KS]IA[0-9A-Z]{16}(?![A-Za-z0-9])"),
    SecretKind("google", ("AIza",), "{start}AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    SecretKind(
        "slack",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
        "{start}xox[abeoprs]-(?=[A-Za-z0-9-]*[0-9])[A-Za-z0-9-]{16,}",
    ),
    SecretKind(
        "jwt",
        ("eyJ",),
        r"{start}eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    SecretKind(
        "bearer",
        ("Bearer ", "bearer "),
        r"{start}[Bb]earer +(?P<secret>(?=[A-Za-z0-9._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,})",
    ),
)
"""Order matters: what an earlier kind replaced, a later one no longer sees (`anthropic` goes before `openai`)."""
