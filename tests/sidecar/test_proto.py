"""The protos: what is loaded is what they say, and what the last release promised still holds."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet

ROOT = Path(__file__).parents[2]


def described(data: bytes) -> FileDescriptorSet:
    return FileDescriptorSet.FromString(data)


def promises(of: FileDescriptorSet) -> Iterator[tuple[str, Any]]:
    """Yield what clients build on, by name: methods with their messages, and fields with their numbers and types."""
    for file in of.file:
        for service in file.service:
            for method in service.method:
                kept = (method.input_type, method.output_type, method.client_streaming, method.server_streaming)
                yield f"{file.package}.{service.name}/{method.name}", kept
        for one in file.message_type:
            yield from fields(f"{file.package}.{one.name}", one)


def fields(name: str, of: DescriptorProto) -> Iterator[tuple[str, Any]]:
    for field in of.field:
        oneof = of.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
        yield f"{name}.{field.name}", (field.number, field.type, field.type_name, field.label, oneof)
    for enum in of.enum_type:
        for value in enum.value:
            yield f"{name}.{enum.name}.{value.name}", value.number
    for inner in of.nested_type:
        yield from fields(f"{name}.{inner.name}", inner)


def broken(baseline: FileDescriptorSet, now: FileDescriptorSet) -> list[str]:
    """Return what a client of the baseline would miss or misread; additions are none."""
    found = dict(promises(now))
    return [name for name, kept in promises(baseline) if found.get(name) != kept]


def compiled() -> bytes:
    return files("clawtrace._pb").joinpath("services.binpb").read_bytes()


def test_what_is_loaded_is_what_the_protos_say() -> None:
    """Else: `python proto/compile.py`."""
    written = runpy.run_path(str(ROOT / "proto" / "compile.py"))["compiled"]()

    assert described(written) == described(compiled())


def test_no_client_of_the_last_release_breaks() -> None:
    baseline = described((ROOT / "proto" / "baseline.binpb").read_bytes())

    assert broken(baseline, described(compiled())) == []


@pytest.mark.parametrize("change", ["renumbered", "removed", "retyped"])
def test_a_change_that_breaks_is_seen(change: str) -> None:
    now = described(compiled())
    (file,) = (one for one in now.file if one.package == "clawtrace.v1")
    run = next(one for one in file.message_type if one.name == "Run")
    if change == "removed":
        del run.field[1]
    elif change == "renumbered":
        run.field[1].number = 99
    else:
        run.field[1].type = run.field[3].type

    assert broken(described(compiled()), now) == ["clawtrace.v1.Run.case_id"]
