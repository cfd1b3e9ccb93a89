"""What redaction changes in recordings of real agents: nothing, because none of them holds a secret."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from clawtrace.receiver.redaction.redact import Redactor

TESTS = Path(__file__).parents[1]
CORPUS = TESTS.parents[1] / "shared" / "corpus"
MARK = re.compile(r"\[REDACTED:[^\[\]]+:[0-9a-f]{8}\]")


def false_alarms(folder: Path) -> tuple[int, list[str]]:
    """How many files of `folder` were read, and what was taken for a secret in them."""
    redactor = Redactor(environ={})
    read, alarms = 0, []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        cleaned = redactor.clean(data.decode("utf-8", "replace"))
        read += 1
        alarms += [f"{path.relative_to(folder)}: {found[0]}" for found in MARK.finditer(cleaned)]
    return read, alarms


def test_own_recordings():
    """In the recordings of this repository nothing is taken for a secret."""
    read, alarms = false_alarms(TESTS / "recordings")

    assert read > 10
    assert alarms == []


@pytest.mark.needs("corpus")
def test_corpus():
    """In the corpus (19 MB of recordings of 21 clients: ids, digests, images, prose, code) nothing is, either."""
    read, alarms = false_alarms(CORPUS)

    assert read > 800
    assert alarms == []


def test_an_alarm_would_be_counted(tmp_path):
    """A recording that holds a secret is counted, compressed or not."""
    secret = "gl" + "pat-" + "0123456789abcdefghij"
    (tmp_path / "a.json").write_text(f'{{"key": "{secret}"}}')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(secret.encode()))

    assert len(false_alarms(tmp_path)[1]) == 2
