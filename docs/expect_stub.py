"""The types of `clawtrace.expect` for editors and type checkers: one function an assertion type, from its JSON Schema."""

from __future__ import annotations

import json
import keyword
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion

__all__ = ["expect_stub"]

Schema = Mapping[str, Any]

HEAD = '''\
# Written by docs/generate.py; change the code and run `make docs`.
"""Every assertion type as a function, with the types of its fields."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from clawtrace._capture.constructors import Spans as Spans
from clawtrace._capture.constructors import spans as spans
from clawtrace.assertions.base import Assertion

_T = TypeVar("_T", covariant=True)

class _List(Protocol[_T]):
    """A list or a tuple; a text is none."""

    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> _T: ...
    def __iter__(self) -> Iterator[_T]: ...
    def __len__(self) -> int: ...
'''

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def expect_stub() -> str:
    """Return the text of ``expect.pyi``: the built-in types; those of other distributions are not known here."""
    from clawtrace.assertions.base import Assertion
    from clawtrace.assertions.registry import all_types

    types = [cls for cls in all_types().values() if cls.__module__.startswith("clawtrace.")]
    common = Assertion.model_json_schema()["properties"]
    again = {name for cls in types for name in common if own_meaning(cls, name)}
    names = Names()
    parts = [
        typed_dict("_AnyFields", {name: schema for name, schema in common.items() if name not in again}, (), names),
        typed_dict("_Fields", {name: common[name] for name in sorted(again)}, (), names, base="_AnyFields"),
        *(function(cls, again, names) for cls in types),
    ]
    return "\n".join([HEAD, *names.written, *parts])


def own_meaning(cls: type[Assertion], name: str) -> bool:
    """Return whether a type has a field of its own that is called as one of every type."""
    from clawtrace.assertions.base import Assertion

    return cls.model_fields[name].annotation != Assertion.model_fields[name].annotation


class Names:
    """The mappings that fields are made of: each is written once, however many fields take it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        """The text of each, in the order in which they were met."""
        self._known: dict[str, str] = {}

    def of(self, schema: Schema, called: str, definitions: Mapping[str, Schema]) -> str:
        """Return the name of a schema: of a mapping with known keys, or of a list that contains itself."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self._known:
            self._known[key] = name = self._free(called)
            at = len(self.written)
            self.written.append("")
            if schema.get("type") == "object":
                text = typed_dict(name, schema["properties"], schema.get("required", ()), self, definitions)
            else:
                text = f"{name}: TypeAlias = {plain(schema, called, self, definitions)}\n"
            self.written[at] = text
        return self._known[key]

    def _free(self, called: str) -> str:
        name = "_" + "".join(word[:1].upper() + word[1:] for word in called.split("_"))
        taken = set(self._known.values())
        return next(one for one in (name, *(f"{name}{n}" for n in range(2, 99))) if one not in taken)


def typed_dict(
    name: str,
    properties: Mapping[str, Schema],
    required: Iterable[str],
    names: Names,
    definitions: Mapping[str, Schema] = {},
    base: str = "TypedDict",
) -> str:
    """Return a mapping with known keys; as a call where a key is no name in Python."""
    types = {key: annotation(schema, key, names, definitions) for key, schema in properties.items()}
    optional = {key: of if key in required else f"NotRequired[{of}]" for key, of in types.items()}
    if all(key.isidentifier() and not keyword.iskeyword(key) for key in types):
        lines = [
            f"    {key}: {of}\n{docstring(properties[key].get('description', ''), 4)}" for key, of in optional.items()
        ]
        return f"class {name}({base}):\n{''.join(lines)}"
    entries = "".join(f'        "{key}": {of},\n' for key, of in optional.items())
    return f'{name} = TypedDict(\n    "{name}",\n    {{\n{entries}    }},\n)\n'


def annotation(schema: Schema, called: str, names: Names, definitions: Mapping[str, Schema]) -> str:
    """Return the Python type of a value of a JSON Schema; `called` names what it is part of."""
    if "$ref" in schema:
        word = schema["$ref"].rsplit("/", 1)[-1]
        return names.of(definitions[word], word, definitions)
    if schema.get("type") == "object" and schema.get("properties"):
        keys = list(schema["properties"])
        return names.of(schema, "_".join(keys) if len(keys) <= 2 else called, definitions)
    return plain(schema, called, names, definitions)


def plain(schema: Schema, called: str, names: Names, definitions: Mapping[str, Schema]) -> str:
    """Return the Python type of a value, written out."""
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(map(literal, schema.get('enum', [schema.get('const')])))}]"
    if union := schema.get("anyOf", schema.get("oneOf")):
        return " | ".join(dict.fromkeys(annotation(part, called, names, definitions) for part in union))
    if schema.get("format") == "date":
        return "date | str"
    if schema.get("type") == "array":
        return f"_List[{annotation(schema.get('items', {}), called, names, definitions)}]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties", {})
        return (
            f"Mapping[str, {annotation(values, called, names, definitions) if isinstance(values, dict) else 'object'}]"
        )
    return PLAIN.get(schema.get("type", ""), "object")


def literal(value: object) -> str:
    """Return a text, number or truth value as Python writes it, texts in double quotes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def function(cls: type[Assertion], again: set[str], names: Names) -> str:
    """Return the function of a type: its main field first, the others by name, then the fields of every type."""
    from clawtrace.assertions.base import Assertion

    schema = cls.model_json_schema()
    properties, definitions = schema["properties"], schema.get("$defs", {})
    changed = {name for name in again if own_meaning(cls, name)}
    own = [name for name in properties if name not in Assertion.model_fields or (changed and name in again)]
    required = schema.get("required", ())
    main = [cls.main_field] if cls.main_field else []
    others = sorted((name for name in own if name != cls.main_field), key=lambda name: name not in required)
    written = [
        f"    {name}: {annotation(properties[name], name, names, definitions)}{'' if name in required else ' = ...'},\n"
        for name in (*main, *others)
    ]
    written.insert(len(main), "    *,\n" if others else "")
    fields = "_AnyFields" if changed else "_Fields"
    return (
        f"def {cls.type_name}(\n{''.join(written)}    **common: Unpack[{fields}],\n) -> Assertion:\n"
        f"{docstring(about(cls, (*main, *others)), 4)}"
    )


def about(cls: type[Assertion], fields: Iterable[str]) -> str:
    """Return what a type means, and its fields."""
    from clawtrace.assertions.reference import reference
    from clawtrace.support.attribute_docs import attribute_docs

    found, docs = reference(cls), attribute_docs(cls)
    said = [textwrap.fill(f"{name}: {docs[name]}", 112, subsequent_indent="    ") for name in fields if docs.get(name)]
    arguments = "\n\nArgs:\n" + textwrap.indent("\n".join(said), "    ") if said else ""
    return f"{found.sentence}\n\n{textwrap.fill(found.why, 112)}{arguments}"


def docstring(text: str, indent: int) -> str:
    """Return a docstring, indented; nothing for an empty text."""
    if not text:
        return ""
    raw = "r" if "\\" in text else ""
    closed = text.strip() + ("\n" if "\n" in text.strip() else "")
    return "".join(_lines(f'{raw}"""{closed}"""', " " * indent))


def _lines(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"{indent}{line}".rstrip() + "\n"
