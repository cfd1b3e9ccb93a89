"""Every reader that `make fuzz` feeds takes its seeds, and random bytes."""

from __future__ import annotations

import random
import sys
from itertools import islice
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fuzz

pytestmark = pytest.mark.full


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_a_target_reads_its_seeds(target: str) -> None:
    make, globs = fuzz.TARGETS[target]
    read, chance = make(), random.Random(1)
    found = fuzz.seeds_of_protobuf() if target == "protobuf" else fuzz.files(*(globs or fuzz.PAYLOADS))
    seeds = list(islice(found, 3))

    assert seeds
    for data in (*seeds, b"", *(seed[: len(seed) // 2] for seed in seeds), chance.randbytes(200)):
        read(data)
