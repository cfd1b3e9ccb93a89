"""Redaction as a step of decoding: no secret reaches the disk (spec: span-model.md §1).

One pass over the bytes of a request searches for the literals of all kinds of secrets, and where one is found, its kind's
pattern is tried at that very place; nearly always nothing is found, and nothing more is done. Otherwise each text is
asked the same. A secret becomes ``[REDACTED:kind:hash8]``, the same for equal values, so that equality stays answerable.
"""

from __future__ import annotations

import hashlib
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from clawtrace.errors import ReceiverError
from clawtrace.receiver.redaction.secret_kinds import SECRET_KINDS, SecretKind

if TYPE_CHECKING:
    from regex import Pattern as UserPattern

__all__ = ["RedactionSettings", "Redactor", "environment_secrets", "telling_parts", "value_expression"]

_SECRET_NAMES = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_PATH = re.compile(r"[~.]?/|[A-Za-z]:[\\/]")
_COMMON = frozenset({"changeme", "password", "disabled", "required", "optional", "keychain", "gssapi-keyex"})
_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
"""What no JSON writer escapes: printable ASCII without quote, slash and backslash."""
_URL_SAFE = str.maketrans("+/", "-_")
_SHORT_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}


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


def telling_parts(value: str) -> tuple[str, ...]:
    """Return literals, one of which is in every form of `value`: its longest part that is never escaped."""
    parts = _PLAIN.findall(value)
    if parts:
        return (max(parts, key=len),)
    units = _units(value[0])
    return (value[0], f"u{units[0]:04x}", f"u{units[0]:04X}")


def value_expression(value: str) -> str:
    """Return an expression that finds `value` in plain text and inside of JSON text, however deep."""
    return "".join(map(_character_expression, value))


def _character_expression(character: str) -> str:
    if _PLAIN.match(character):
        return re.escape(character)
    escaped = "".join(rf"\\+u(?i:{unit:04x})" for unit in _units(character))
    if character == "\\":
        return rf"(?:{escaped}|\\+)"
    if character in '"/':
        return rf"(?:\\*{character}|{escaped})"
    if character in _SHORT_ESCAPES:
        escaped += rf"|\\+{_SHORT_ESCAPES[character]}"
    return f"(?:{re.escape(character)}|{escaped})"


def _units(character: str) -> list[int]:
    """Return the UTF-16 units that JSON escapes of `character` name."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[place : place + 2], "big") for place in range(0, len(encoded), 2)]


_USER_PATTERN_SECONDS = 0.2
_BREAKS = re.compile(r"(?:[\r\n\t]|\\+(?:[nrt]|u000[9aAdD]))+")
"""Line breaks as they are and as JSON writes them: a key has one hash however its lines were broken."""
_ESCAPES = re.compile(r"\\+(?:u00([2-7][0-9A-Fa-f])|/)")
_ESCAPE_LITERALS = ("\\/", *(f"\\u00{digit}" for digit in "234567"))
"""Ways in which JSON text can hide an ordinary character."""
_KEPT_ESCAPES = frozenset({0x22, 0x5C, 0x7F})
"""Written out, a quote or a backslash would end the JSON text that contains it."""


class RedactionSettings(NamedTuple):
    """The kinds of secrets that are redacted; all by default."""

    enabled: bool = True
    """False keeps every text as it was sent."""
    environment: bool = True
    """Whether values of secret-looking environment variables are secrets."""
    kinds_off: tuple[str, ...] = ()
    """Names of built-in kinds (``jwt``, ``bearer`` …) that are not redacted."""
    patterns: tuple[tuple[str, str], ...] = ()
    """(kind, regular expression) of the project's own secrets. They run on every text, so they cost time."""

    def unmarked(self) -> str:
        """Return what these settings leave unmarked, in one sentence; empty when they leave nothing."""
        kept = [f"secrets of the kind `{kind}`" for kind in self.kinds_off]
        if not self.environment:
            kept.append("values of environment variables")
        return f"Redaction is set to ignore {', '.join(kept)}: these would not be found." if kept else ""


def _mark(kind: str, secret: str) -> str:
    digest = hashlib.sha256(_BREAKS.sub("\n", secret).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"[REDACTED:{kind}:{digest}]"


def _written_out(text: str) -> str:
    r"""Return `text` with the ordinary characters that JSON escapes hide (``\/``, ``\u0073``), at any depth."""

    def character(escape: re.Match[str]) -> str:
        code = int(escape[1], 16) if escape[1] else 0x2F
        return escape[0] if code in _KEPT_ESCAPES else chr(code)

    return _ESCAPES.sub(character, text)


class _Rule:
    """One kind of secret, or one value of the environment, with expressions that are compiled when first needed."""

    def __init__(self, kind: SecretKind, mark: str | None = None) -> None:
        self.kind = kind
        self._fixed_mark = mark
        """The mark of a value, in each form that it is found in; None where each match has its own."""

    @cached_property
    def _confirmed(self) -> Callable[[bytes, int], object]:
        return re.compile(self.kind.expression(bounded=False).encode(), re.DOTALL).match

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.kind.expression(bounded=True), re.DOTALL)

    def may_stand(self, data: bytes, position: int) -> bool:
        """Return whether the secret may be around the literal at `position`; False is certain."""
        before = self.kind.before
        if before is None:
            return True
        return position >= before and self._confirmed(data, position - before) is not None

    def replace(self, text: str) -> str:
        """Return `text` with every secret of this kind replaced."""
        return self._pattern.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        if self._fixed_mark:
            return self._fixed_mark
        kind, group = self.kind, "secret" if "secret" in match.re.groupindex and match["secret"] else 0
        if kind.check and not kind.check(match[group]):
            return match[0]
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0][:start] + _mark(kind.name, match[group]) + match[0][end:]


def _value_rule(value: str, form: str) -> _Rule:
    kind = SecretKind("env", telling_parts(form), value_expression(form), before=None)
    return _Rule(kind, _mark("env", value))


def _forms(value: str) -> list[str]:
    """Return a value as it is, in a URL and in HTML, and what base64 makes of it at each place where it may begin."""
    data = value.encode("utf-8", "surrogatepass")
    forms = [value, quote(value, safe="", errors="replace"), escape(value)]
    for before, mixed in enumerate((0, 2, 3)):  # characters that depend on what stands before it
        whole = b64encode(bytes(before) + data).decode()[mixed : (before + len(data)) * 8 // 6]
        forms += [whole, whole.translate(_URL_SAFE)]
    return [*dict.fromkeys(forms)]


class Redactor:
    """Replaces secrets in texts; made once, used by one thread at a time."""

    def __init__(self, settings: RedactionSettings | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Build the tables.

        Args:
            environ: where secret values are looked up; the process environment when None.

        Raises:
            ReceiverError: an own pattern is no regular expression, or a kind to switch off does not exist.
        """
        from ahocorasick_rs import BytesAhoCorasick, Implementation

        self._settings = settings or RedactionSettings()
        known = {kind.name for kind in SECRET_KINDS}
        for name in self._settings.kinds_off:
            if name not in known:
                raise ReceiverError(f"`redaction.kinds_off` names {name!r}; the kinds are {', '.join(sorted(known))}")
        self._rules: list[_Rule] = []
        owners: dict[str, list[int]] = {literal: [] for literal in _ESCAPE_LITERALS}
        if self._settings.environment:
            for secret in environment_secrets(os.environ if environ is None else environ):
                for form in _forms(secret):
                    self._add(_value_rule(secret, form), owners)
        for kind in SECRET_KINDS:
            if kind.name not in self._settings.kinds_off:
                self._add(_Rule(kind), owners)
        self._owners = list(owners.values())
        self._find = BytesAhoCorasick(
            [literal.encode("utf-8", "surrogatepass") for literal in owners], implementation=Implementation.DFA
        ).find_matches_as_indexes
        self._own = [(name, _user_pattern(name, pattern)) for name, pattern in self._settings.patterns]

    def _add(self, rule: _Rule, owners: dict[str, list[int]]) -> None:
        for literal in rule.kind.literals:
            owners.setdefault(literal, []).append(len(self._rules))
        self._rules.append(rule)

    def _scan(self, data: bytes) -> tuple[set[int], bool]:
        """Return the rules whose secrets may be in `data`, and whether escapes hide characters of it."""
        found: set[int] = set()
        escapes = False
        for literal, position, _ in self._find(data, overlapping=True):
            if literal < len(_ESCAPE_LITERALS):
                escapes = True
                continue
            for rule in self._owners[literal]:
                if rule not in found and self._rules[rule].may_stand(data, position):
                    found.add(rule)
        return found, escapes

    def suspects(self, data: bytes) -> bool:
        """Return whether any text of the request `data` (decompressed) may hold a secret; False is certain."""
        if not self._settings.enabled:
            return False
        found, escapes = self._scan(data)
        if found or self._own or not escapes:
            return bool(found or self._own)
        plain = _written_out(data.decode("latin-1")).encode("latin-1")  # each byte a character: escapes are ASCII
        return bool(self._scan(plain)[0])

    def clean(self, text: str) -> str:
        """Return `text` with every secret replaced; where escapes hide one, they are written out."""
        if not self._settings.enabled:
            return text
        found, escapes = self._scan(text.encode("utf-8", "surrogatepass"))
        plain = text
        if escapes:
            plain = _written_out(text)
            found = self._scan(plain.encode("utf-8", "surrogatepass"))[0]
        cleaned = plain
        for rule in sorted(found):
            cleaned = self._rules[rule].replace(cleaned)
        for name, own in self._own:
            cleaned = _own_clean(name, own, cleaned)
        return text if cleaned == plain else cleaned

    def clean_all(self, texts: list[str]) -> None:
        """Clean every text of a column in place."""
        clean = self.clean
        for index, text in enumerate(texts):
            if len(text) > 7:
                texts[index] = clean(text)

    def clean_bytes(self, data: bytes) -> bytes:
        """Return binary `data` with every secret replaced."""
        try:
            encoding, text = "utf-8", data.decode()
        except UnicodeDecodeError:
            encoding, text = "latin-1", data.decode("latin-1")
        cleaned = self.clean(text)
        return data if cleaned == text else cleaned.encode(encoding)


def _user_pattern(name: str, pattern: str) -> UserPattern[str]:
    import regex

    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ReceiverError(
            f"`redaction.patterns` {name!r}: {pattern!r} is not a valid regular expression: {error}"
        ) from error


def _own_clean(name: str, pattern: UserPattern[str], text: str) -> str:
    """Replace a project's own secret; a pattern that takes too long redacts the whole text, never nothing."""
    try:
        cleaned: str = pattern.sub(
            lambda match: _mark(name, match[0]) if match[0] else "", text, timeout=_USER_PATTERN_SECONDS
        )
    except TimeoutError:
        return _mark(name, text)
    return cleaned
