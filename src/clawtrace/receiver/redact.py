"""Redaction as a step of decoding: no secret reaches the disk (spec: span-model.md §1).

One pass over the bytes of a request asks whether anything in it looks like a secret; nearly always nothing does,
and nothing more is done. Otherwise its texts are asked the same, and only those with a hit meet the regular
expressions. A secret becomes ``[REDACTED:kind:hash8]``, the same for equal values, so that equality stays answerable.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clawtrace.errors import ReceiverError
from clawtrace.receiver.literals import Literals
from clawtrace.receiver.secret_kinds import SECRET_KINDS, START

if TYPE_CHECKING:
    from regex import Pattern as UserPattern

__all__ = ["RedactionSettings", "Redactor", "environment_secrets"]

_SECRET_NAMES = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_PATH = re.compile(r"[~.]?/|[A-Za-z]:[\\/]")
_COMMON = frozenset({"changeme", "password", "disabled", "required", "optional", "keychain", "gssapi-keyex"})
_USER_PATTERN_SECONDS = 0.2
_ESCAPED_CONTROL = re.compile(r"\\+[nrt]")
_JSON_ESCAPE = re.compile(rb"\\u00[2-7]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionSettings:
    """What is redacted; everything by default."""

    enabled: bool = True
    """False keeps every text as it was sent."""
    environment: bool = True
    """Whether values of secret-looking environment variables are secrets."""
    kinds_off: tuple[str, ...] = ()
    """Names of built-in kinds (``jwt``, ``bearer`` …) that are not redacted."""
    patterns: tuple[tuple[str, str], ...] = ()
    """(kind, regular expression) of the project's own secrets. They run on every text, so they cost time."""


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """Return the values of `environ` that are secrets by their variable's name, longest first.

    Values shorter than 8 characters, paths, plain URLs, common words and words without a digit that are shorter than
    16 characters are not: replacing them everywhere would destroy ordinary text.
    """
    found = {value for name, value in environ.items() if _SECRET_NAMES.search(name) and _is_secret_value(value)}
    return sorted(found, key=lambda value: (-len(value), value))


def _is_secret_value(value: str) -> bool:
    if len(value) < 8 or value.casefold() in _COMMON or _PATH.match(value):
        return False
    if "://" in value and "@" not in value:
        return False
    return len(value) >= 16 or any(character.isdigit() for character in value)


def _escaped_forms(value: str) -> list[str]:
    """Return how `value` reads in plain text and inside of JSON text, up to three levels deep."""
    forms, level = {value: None}, [value]
    for _ in range(3):
        level = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in level for ascii_only in (False, True)]
        forms.update(dict.fromkeys(level))
    return list(forms)


def _mark(kind: str, secret: str) -> str:
    plain = _ESCAPED_CONTROL.sub("\n", secret)
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"[REDACTED:{kind}:{digest}]"


def _replacement(kind: str, match: re.Match[str]) -> str:
    if "secret" not in match.re.groupindex:
        return _mark(kind, match[0])
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + _mark(kind, match["secret"]) + match[0][end:]


class Redactor:
    """Replaces secrets in texts; made once, used by one thread at a time."""

    def __init__(self, settings: RedactionSettings | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Compile the tables.

        Args:
            settings: what is redacted.
            environ: where secret values are looked up; the process environment when None.

        Raises:
            ReceiverError: an own pattern is no regular expression, or a kind to switch off does not exist.
        """
        self._settings = settings or RedactionSettings()
        known = {kind.name for kind in SECRET_KINDS}
        for name in self._settings.kinds_off:
            if name not in known:
                raise ReceiverError(f"`redaction.kinds_off` names {name!r}; the kinds are {', '.join(sorted(known))}")
        kinds = [kind for kind in SECRET_KINDS if kind.name not in self._settings.kinds_off]
        self._kinds = [
            (
                kind.literals,
                re.compile(kind.pattern.replace("{start}", START), re.DOTALL),
                partial(_replacement, kind.name),
            )
            for kind in kinds
        ]
        self._environment: list[tuple[str, str]] = []
        if self._settings.environment:
            for secret in environment_secrets(os.environ if environ is None else environ):
                self._environment += [(form, _mark("env", secret)) for form in _escaped_forms(secret)]
        self._literals = Literals(
            [literal for kind in kinds for literal in kind.literals], [form for form, _ in self._environment]
        )
        self._own = [(name, _user_pattern(name, pattern)) for name, pattern in self._settings.patterns]

    def suspects(self, data: bytes, *, escaped: bool) -> bool:
        """Say whether any text of the request `data` may hold a secret; False is certain.

        Args:
            data: the request, decompressed.
            escaped: whether texts are JSON strings, in which any character may be written as an escape.
        """
        if not self._settings.enabled:
            return False
        if self._own or self._literals.in_bytes(data):
            return True
        return escaped and _JSON_ESCAPE.search(data) is not None

    def clean(self, text: str) -> str:
        """Return `text` with every secret replaced."""
        if not self._settings.enabled:
            return text
        if self._literals.in_text(text):
            for form, mark in self._environment:
                if form in text:
                    text = text.replace(form, mark)
            for literals, pattern, replacement in self._kinds:
                if any(literal in text for literal in literals):
                    text = pattern.sub(replacement, text)
        for name, own in self._own:
            text = _own_clean(name, own, text)
        return text

    def clean_all(self, texts: list[str]) -> None:
        """Clean every text of a column in place."""
        clean = self.clean
        for index, text in enumerate(texts):
            if len(text) > 7:
                texts[index] = clean(text)

    def clean_bytes(self, data: bytes) -> bytes:
        """Return binary `data` with every secret replaced."""
        text = data.decode("latin-1")
        cleaned = self.clean(text)
        return data if cleaned == text else cleaned.encode("latin-1", "replace")


def _user_pattern(name: str, pattern: str) -> UserPattern[str]:
    import regex

    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ReceiverError(f"`redaction.patterns` {name!r}: {pattern!r} is no regular expression: {error}") from error


def _own_clean(name: str, pattern: UserPattern[str], text: str) -> str:
    """Replace a project's own secret; a pattern that takes too long redacts the whole text, never nothing."""
    try:
        cleaned: str = pattern.sub(
            lambda match: _mark(name, match[0]) if match[0] else "", text, timeout=_USER_PATTERN_SECONDS
        )
    except TimeoutError:
        return _mark(name, text)
    return cleaned
