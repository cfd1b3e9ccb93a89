"""Recordings as they would have been exported where the SDK's settings, or a Collector, take something away.

python tests/facts/limits.py SETTING OUT [CLIENT…]      # then: python tests/facts/conformance.py OUT
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import conformance

__all__ = ["SETTINGS", "rewritten"]

Attributes = list[dict[str, Any]]

_SAID = re.compile(
    r"message|argument|result|entity\.(in|out)put|^gen_ai\.(prompt|completion)|^(in|out)put|\.(in|out)put$"
)
_NAMED = re.compile(r"(role|name|id|type|reason|status|tokens?|model|count)$")


def _cut(length: int) -> Callable[[Attributes], Attributes]:
    def value(of: dict[str, Any]) -> dict[str, Any]:
        if "stringValue" in of:
            return {"stringValue": of["stringValue"][:length]}
        if "arrayValue" in of:
            return {"arrayValue": {"values": [value(one) for one in of["arrayValue"].get("values", ())]}}
        return of

    return lambda attributes: [{"key": one["key"], "value": value(one.get("value", {}))} for one in attributes]


def _masked(mask: str) -> Callable[[Attributes], Attributes]:
    return lambda attributes: [
        {"key": one["key"], "value": {"stringValue": mask}}
        if _SAID.search(one["key"]) and not _NAMED.search(one["key"]) and "stringValue" in one.get("value", {})
        else one
        for one in attributes
    ]


SETTINGS: dict[str, Callable[[Attributes], Attributes]] = {
    "values of 1000": _cut(1000),
    "values of 200": _cut(200),
    "the first 20 attributes": lambda attributes: attributes[:20],
    "the last 20 attributes": lambda attributes: attributes[-20:],
    "nothing that was said": lambda attributes: [one for one in attributes if not _SAID.search(one["key"])],
    "masks for what was said": _masked("__REDACTED__"),
}
"""What is left of attributes. SDKs of JavaScript and Java drop the last ones, the one of Python the first ones."""


def rewritten(setting: str, recordings: Iterable[Path], out: Path) -> Iterator[Path]:
    """Write recordings, with their truths, into a folder, and yield those that changed."""
    left = SETTINGS[setting]
    for source in recordings:
        folder, changed = out / source.parent.name / source.name, False
        folder.mkdir(parents=True)
        for file in sorted(source.glob("*.otlp.jsonl*")):
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            requests = [json.loads(line) for line in data.splitlines() if line.strip()]
            for holder in (
                one for request in requests for span in _spans(request) for one in (span, *span.get("events", ()))
            ):
                before = holder.get("attributes", [])
                holder["attributes"] = left(before)
                changed |= holder["attributes"] != before
                if setting.endswith("attributes") and (dropped := len(before) - len(holder["attributes"])):
                    holder["droppedAttributesCount"] = holder.get("droppedAttributesCount", 0) + dropped
            lines = "".join(json.dumps(request) + "\n" for request in requests)
            (folder / file.name.removesuffix(".gz")).write_text(lines, encoding="utf-8")
        shutil.copy(source / "truth.json", folder)
        if changed:
            yield folder
        else:
            shutil.rmtree(folder)


def _spans(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in request.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            yield from scope.get("spans", ())


if __name__ == "__main__":
    root = Path(__file__).parents[1] / "recordings"
    print(
        len(list(rewritten(sys.argv[1], conformance.recordings(root, tuple(sys.argv[3:])), Path(sys.argv[2])))),
        "changed",
    )
