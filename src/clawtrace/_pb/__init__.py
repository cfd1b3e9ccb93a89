"""The messages of `proto/`: made at run time from their compiled descriptors.

Code that protoc writes needs a `protobuf` at least as new as the compiler; descriptors are read by every version. Their pool
is separate, so that nothing here is in the way of a user's own copy of a standard proto.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["message", "pool"]


@cache
def pool() -> Any:
    """Return the `DescriptorPool` of the protos."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    found = DescriptorPool()
    for file in FileDescriptorSet.FromString(files(__name__).joinpath("services.binpb").read_bytes()).file:
        found.Add(file)
    return found


@cache
def message(name: str) -> Any:
    """Return the class of a message by its full name, such as ``clawtrace.v1.Verdict``."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(pool().FindMessageTypeByName(name))
