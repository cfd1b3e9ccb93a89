"""`artifact_contains`: a file has the expected sections and fields."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from clawtrace.assertions.forms.bounds import need_one_of
from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import ArtifactProbe
from clawtrace.assertions.probing.documents import fields_of, headings, lookup
from clawtrace.assertions.probing.files import Text, hidden, read_text, unread
from clawtrace.assertions.world import World

__all__ = ["ArtifactContains"]


class ArtifactContains(ArtifactProbe):
    """The file that the run left has every section and every field that it should have.

    A draft without its call to action is not done. `sections` are headings of Markdown, compared whole and without regard
    to case; what looks like one inside of a code fence is none. `fields` are keys of a YAML or JSON document, or of the
    front matter of a Markdown file; a dotted path leads into nested mappings. Given both, both must hold.

    Example:
        - type: artifact_contains
          path: "memory/drafts/{{today}}-output.md"
          sections: [hook, body, cta]
    """

    sections: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Headings that the file must have."""
    fields: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Keys that the document or its front matter must have; dots lead into nested mappings."""

    @model_validator(mode="after")
    def _check(self) -> ArtifactContains:
        need_one_of(self, "sections", "fields")
        return self

    def look(self, file: Path, world: World) -> Finding:
        """Compare headings and keys."""
        del world
        text = read_text(file)
        found = headings(text)
        keys = fields_of(text)
        lacking = [
            f"the section {name!r}" for name in self.sections or () if not any(one.is_called(name) for one in found)
        ]
        lacking += [f"the field {name!r}" for name in self.fields or () if keys is None or lookup(keys, name) is None]
        actual = {"sections": [one.text for one in found], "fields": sorted(keys) if keys is not None else None}
        if lacking and all(hidden(one, text) for one in lacking):
            return unread(self.path, ", ".join(lacking), actual)
        if lacking:
            return Finding(False, f"`{self.path}` lacks {', '.join(lacking)}.", actual)
        return Finding(True, f"`{self.path}` has all expected sections and fields.", actual)
