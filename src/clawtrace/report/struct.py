"""What machines read is made of structs: the base of them all, and the JSON Schema of a format."""

from __future__ import annotations

from typing import Any, ClassVar, Self

__all__ = ["Struct"]


class Struct:
    """Base of the dataclasses of machine-readable results; pydantic, which writes their schema, is not needed to fill them."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True}

    @classmethod
    def of(cls, found: Any, **own: Any) -> Self:
        """Return a struct with `own` fields, and those that are called the same in `found`; tuples become lists."""
        names = [name for name in cls.__dataclass_fields__ if name not in own and hasattr(found, name)]
        values = {name: getattr(found, name) for name in names}
        return cls(
            **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}, **own
        )

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
