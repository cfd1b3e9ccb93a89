"""Compile the protos into what `clawtrace._pb` loads: `python proto/compile.py`; `--release` also moves the baseline.

The baseline is what the last release promised: `tests/sidecar/test_proto.py` refuses a change that breaks its clients.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COMPILED = HERE.parent / "src" / "clawtrace" / "_pb" / "services.binpb"
BASELINE = HERE / "baseline.binpb"


def compiled() -> bytes:
    """Return the `google.protobuf.FileDescriptorSet` of every proto below this folder."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "services.binpb"
        files = sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*.proto"))
        if protoc.main(["protoc", f"-I{HERE}", f"--descriptor_set_out={out}", "--include_imports", *files]):
            sys.exit(1)
        return out.read_bytes()


if __name__ == "__main__":
    COMPILED.write_bytes(compiled())
    if "--release" in sys.argv:
        BASELINE.write_bytes(COMPILED.read_bytes())
