"""Fixtures of tests that build their own traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from building import Lab, take_back


@pytest.fixture(autouse=True)
def stores_are_taken_back() -> Iterator[None]:
    yield
    take_back()


@pytest.fixture
def lab() -> Lab:
    return Lab()


COUNTING = """
dialect: counting
title: An instrumentation that writes a span for each request
source: tests
about: GenAI spans, and nothing is retried unseen.
extends: otel-genai
detect: {priority: 90, any: [{present: gen_ai.operation.name}]}
records: {failed_attempts: yes}
"""


@pytest.fixture
def counting(tmp_path: Path) -> Lab:
    """A lab whose GenAI spans come from an instrumentation that records every failed attempt."""
    (tmp_path / "counting.yaml").write_text(COUNTING, encoding="utf-8")
    return Lab(dialects=[tmp_path])
