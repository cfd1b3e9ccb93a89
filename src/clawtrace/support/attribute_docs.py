"""Read the docstrings below the fields of a pydantic model, when documentation asks for them.

pydantic's own ``use_attribute_docstrings`` parses the source of every class while it is being made: some 75 ms of
each start, for words that only reference pages, `explain` and JSON Schemas show.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema

__all__ = ["Documented", "attribute_docs"]


@cache
def attribute_docs(cls: type) -> dict[str, str]:
    """Return the docstring below each attribute of `cls` and its bases, by attribute name."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base is not object and not base.__module__.startswith("pydantic"):
            found |= _own(base)
    return found


def _own(cls: type) -> dict[str, str]:
    try:
        body: ast.stmt = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    found = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for field, text in pairwise(statements):
        target = _target(field)
        if (
            isinstance(target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found[target.id] = inspect.cleandoc(text.value.value)
    return found


def _target(statement: ast.stmt) -> ast.expr | None:
    """Return what an assignment sets; None where it sets several, or is none."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0]
    return statement.target if isinstance(statement, ast.AnnAssign) else None


class Documented(BaseModel):
    """A model whose JSON Schema describes each field by the docstring below it.

    It takes no other fields, and does not change. Its validator is built when it is first used: most models are imported as the base or the part of another.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        docs = attribute_docs(cls)
        for name, field in cls.model_fields.items():
            described = properties.get(field.alias or name)
            if described is not None and name in docs:
                described.setdefault("description", docs[name])
        return schema
