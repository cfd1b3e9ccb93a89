"""The receiver's tests use real sockets, real exporters and a sink in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from memory_sink import MemorySink

from clawtrace.receiver.receiver import Receiver


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def receiver(sink: MemorySink) -> Iterator[Receiver]:
    """A running receiver on free ports that knows no secrets of this machine's environment."""
    with Receiver(sink, environ={}) as running:
        yield running
    sink.gate.set()
