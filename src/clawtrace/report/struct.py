"""What machines read is made of structs: the base of them all, and the JSON Schema of a format."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["Struct"]


class Struct:
    """Base of the dataclasses of machine-readable results; pydantic, which writes their schema, is not needed to fill them."""

    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of a format, which is the struct whose field `schema` names it."""
        from pydantic import TypeAdapter

        found = TypeAdapter(cls).json_schema(mode="serialization")
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **found,
            "title": found["properties"]["schema"]["const"],
        }
