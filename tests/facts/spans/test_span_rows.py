"""Spans come out of the store the same whichever way they are read, and Python works on one batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Lock, get_ident

import pytest

from clawtrace.errors import StoreError
from clawtrace.facts import facts, normaliser
from clawtrace.facts.normaliser import Normaliser, Rows
from clawtrace.facts.runs.run_facts import RunFacts
from clawtrace.facts.spans import span_rows
from clawtrace.facts.spans.span import Span
from clawtrace.model.relations import RELATIONS
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.store.questions.question_side import QuestionSide

pytestmark = pytest.mark.full

RECORDINGS = sorted((Path(__file__).parents[2] / "recordings").glob("**/*.otlp.jsonl*"))
CODEX = [path for path in RECORDINGS if "codex" in path.parts][:2]
"""It writes log records."""


def loaded(session: Session, recordings: Sequence[Path]) -> list[str]:
    """Load each recording as a separate run; return the runs."""
    for number, path in enumerate(recordings):
        session.load_recordings([path], Grouping("one", f"r{number:02}"))
    return session.run_ids()


@pytest.mark.smoke
@pytest.mark.longer
def test_spans_read_in_combinations_are_those_read_one_by_one(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every client: each fact of each span, those of log records included, whether it is shared or not."""
    recordings = RECORDINGS if request.config.getoption("--full") else [*RECORDINGS[::10], *CODEX]
    read: list[tuple[list[Span], list[Span]]] = []

    def both(side: QuestionSide, count: int) -> list[Span]:
        few, many = (list(span_rows.read_spans(side, number)) for number in (0, count + 100_000))
        read.append((few, many))
        return many

    monkeypatch.setattr(normaliser, "read_spans", both)
    with Session.open() as session:
        session.evaluate(loaded(session, recordings), [])

    for few, many in read:
        assert few == many
        assert [span.sid for span in many] == list(range(len(many)))
    spans = [span for _, many in read for span in many]
    assert {span.source for span in spans} == {"otlp", "log"}
    known = {name for span in spans for name, value in span._asdict().items() if value not in (None, False, "")}
    assert len(known) > 40  # so that neither half of the facts is read as nothing


def test_one_batch_is_computed_while_the_next_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads share Python: while one holds it, DuckDB makes the other's row facts, and no other thread computes meanwhile."""
    monkeypatch.setattr(facts, "_BATCH_SPANS", 1)
    monkeypatch.setattr(facts, "_SHARED_SPANS", 1)
    computing, second = Lock(), Event()
    come: list[int] = []

    class Watched:
        """A lock that says when the second one comes to it."""

        def __init__(self) -> None:
            self._lock = Lock()

        def __enter__(self) -> None:
            come.append(get_ident())
            if len(come) == 2:
                second.set()
            self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    computed = Normaliser.facts

    def alone(self: Normaliser, rows: Rows) -> list[RunFacts]:
        assert computing.acquire(blocking=False)
        try:
            assert second.wait(30)  # the row facts of another batch are made although this one is not done
            return computed(self, rows)
        finally:
            computing.release()

    monkeypatch.setattr(facts, "Lock", Watched)
    monkeypatch.setattr(Normaliser, "facts", alone)
    with Session.open() as session:
        session.evaluate(loaded(session, RECORDINGS[:6]), [])

    assert len(come) >= 6
    assert come[0] != come[1]


def rows_of(session: Session) -> dict[str, list[str]]:
    """Return every relation's rows, in one order."""
    return {name: sorted(map(str, session.query(f"SELECT * FROM {name}").dicts())) for name in RELATIONS}


def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run be a large one."""
    monkeypatch.setattr(facts, "_BATCH_SPANS", 1)
    monkeypatch.setattr(facts, "_SHARED_SPANS", 0)
    monkeypatch.setattr(span_rows, "_PAGE", 3)


def test_a_large_run_says_what_a_small_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads read by pages and messages written apart make no row differ."""
    some = [path for path in RECORDINGS if path.parts[-3] in ("pydantic-ai", "langchain+openinference", "claude-code")]
    with Session.open() as session:
        loaded(session, some)
        small = rows_of(session)
    as_large(monkeypatch)
    with Session.open() as session:
        loaded(session, some)
        large = rows_of(session)

    assert large == small
    assert all(small[name] for name in ("spans", "messages", "llm_calls", "tool_calls"))


def test_messages_that_an_interrupted_writing_left_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a large run are written before its other facts: what ends in between leaves them alone in the store."""
    as_large(monkeypatch)
    read = facts.read_sql
    with Session.open() as session:
        loaded(session, RECORDINGS[:1])
        monkeypatch.setattr(facts, "read_sql", lambda name: "SELECT nothing" if name == "publish" else read(name))
        with pytest.raises(StoreError):
            session.evaluate(session.run_ids(), [])
        monkeypatch.setattr(facts, "read_sql", read)
        again = rows_of(session)
    with Session.open() as session:
        loaded(session, RECORDINGS[:1])
        at_once = rows_of(session)

    assert again == at_once
    assert at_once["messages"]
