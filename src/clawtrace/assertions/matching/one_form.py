"""Texts that are the same however they are written down: ends of lines, and letters with their marks."""

from __future__ import annotations

import unicodedata

__all__ = ["one_form"]


def one_form(text: str) -> str:
    """Return a text with the line ends of Unix and its letters composed: canonically equivalent texts are one (NFC)."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return text if text.isascii() else unicodedata.normalize("NFC", text)
