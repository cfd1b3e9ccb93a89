"""`artifact_absent_words`: a file is free of words."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from clawtrace.assertions.forms.bounds import need_one_of
from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import ArtifactProbe
from clawtrace.assertions.probing.documents import lookup, yaml_value
from clawtrace.assertions.probing.files import Text, is_unread, read_text, unread
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError

__all__ = ["ArtifactAbsentWords"]


_PARTED = r"[\w--\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
"""A letter of a word that has space around it."""


def _visible(words: tuple[str, ...] | None) -> tuple[str, ...] | None:
    for word in words or ():
        if not _plain(word).strip():
            raise refused(f"{word!r} contains nothing to search for")
    return words


class ArtifactAbsentWords(ArtifactProbe):
    """None of the words or phrases is in the file that the run left.

    A mail that promises "guaranteed" results breaks the law in some places. Words are compared whole and without regard
    to case; the parts of a phrase may have any white space between them; characters that are not seen (soft hyphens) do
    not part a word. A file that is missing or empty fails, and so does one that was there before the run and was not touched
    unless `allow_stale` accepts it: nothing was written that could be free of anything. In a file that cannot be read as text
    whole, a word that is not found may still be there.

    Example:
        - type: artifact_absent_words
          path: "memory/drafts/{{today}}-output.md"
          words: [urgent, guaranteed, limited time]
    """

    version = 2
    case_files = ("source",)

    words: Annotated[Annotated[tuple[Text, ...], Field(min_length=1)] | None, AfterValidator(_visible)] = None
    """Words and phrases that must not be there."""
    source: Text | None = None
    """YAML file with further words, relative to the case file."""
    key: Text | None = None
    """Key of the list in `source`; dots lead into nested mappings."""

    @model_validator(mode="after")
    def _check(self) -> ArtifactAbsentWords:
        need_one_of(self, "words", "source")
        if (self.source is None) != (self.key is None):
            lacking = "key" if self.key is None else "source"
            raise refused(f"`source` and `key` belong together: `{lacking}` is missing", lacking)
        return self

    def look(self, file: Path, world: World) -> Finding:
        """Look for each word."""
        text = _plain(read_text(file))
        words = [*(self.words or ()), *self._listed(world)]
        present = [word for word in words if _whole(_plain(word)).search(text)]
        if present:
            listed = ", ".join(repr(word) for word in present)
            return Finding(False, f"`{self.path}` holds {listed}.", present)
        if is_unread(text):
            return unread(self.path, "a word", [])
        if not text.strip():
            return Finding(False, f"`{self.path}` is empty: there is no text to check.", [])
        return Finding(True, f"`{self.path}` contains none of {len(words)} words.", [])

    def _listed(self, world: World) -> list[str]:
        if self.source is None or self.key is None:
            return []
        try:
            data = yaml_value(read_text(self.case_file("source", world)))
        except ValueError as error:
            raise ClawtraceError(f"the file {self.source!r} {error}") from None
        found = lookup(data, self.key) if isinstance(data, dict) else None
        if (
            found is None
            or not isinstance(found.value, list)
            or not all(isinstance(word, str) and _plain(word).strip() for word in found.value)
        ):
            raise ClawtraceError(f"the file {self.source!r} has no list of words under `{self.key}`")
        if not found.value:
            raise ClawtraceError(
                f"the list of words under `{self.key}` in {self.source!r} is empty: there is nothing to check"
            )
        return found.value


def _plain(text: str) -> str:
    """Return a text with one way to write each character, without those that are not seen."""
    return "".join(one for one in unicodedata.normalize("NFKC", text.casefold()) if unicodedata.category(one) != "Cf")


def _whole(word: str) -> re.Pattern[str]:
    """Return the expression for a word or phrase between characters that belong to no word.

    An end that is no letter of a word ("!!!", "$100"), or of a script that does not part its words, is found anywhere.
    """
    import regex  # takes longer to import than everything else here

    parts = r"\s+".join(re.escape(part) for part in word.split())
    first, last = (regex.match(_PARTED, one, regex.V1) for one in (word.strip()[0], word.strip()[-1]))
    return re.compile((r"(?<!\w)" if first else "") + parts + (r"(?!\w)" if last else ""))
