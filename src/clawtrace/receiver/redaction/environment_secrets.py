"""Which environment variables hold secrets, and how their values read where they turn up."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["environment_secrets", "telling_parts", "value_expression"]

_SECRET_NAMES = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_PATH = re.compile(r"[~.]?/|[A-Za-z]:[\\/]")
_COMMON = frozenset({"changeme", "password", "disabled", "required", "optional", "keychain", "gssapi-keyex"})
_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
"""What no JSON writer escapes: printable ASCII without quote, slash and backslash."""
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
