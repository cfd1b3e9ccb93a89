"""Texts that are the same however they are written down: ends of lines, and letters with their marks."""

from __future__ import annotations

import unicodedata

__all__ = ["composed", "one_form"]


def one_form(text: str) -> str:
    """Return a text with the line ends of Unix and its letters composed: canonically equivalent texts are one (NFC)."""
    return composed(text.replace("\r\n", "\n") if "\r" in text else text)


def composed(text: str) -> str:
    """Return a text with its letters composed (NFC): an `ö` is one however it was sent."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
