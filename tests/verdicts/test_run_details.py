"""What the page shows of a run agrees with the relations."""

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.verdicts.reading import run_details as reading


def test_details_are_those_of_the_relations(recordings) -> None:
    """Spans, calls, agents and messages of several runs, each in its own run."""
    with Session.open(settings=SessionSettings()) as session:
        session.load_recordings([recordings / "pydantic-ai"], Grouping("dir"))
        runs = session.run_ids()
        found = list(session.details(runs))
        counts = {
            run: tuple(
                session.query(f"SELECT count(*) AS n FROM {name} WHERE run_id = '{run}'").column("n")[0]
                for name in ("spans", "messages", "tool_calls", "llm_calls", "agents")
            )
            for run in runs
        }

    assert len(runs) > 1
    assert {
        one.run_id: (len(one.spans), len(one.messages), len(one.tool_calls), len(one.model_calls), len(one.agents))
        for one in found
    } == counts
    assert all(min(span.start_us for span in one.spans) == 0 for one in found)


def test_a_long_text_is_cut(monkeypatch, recordings) -> None:
    """It ends with an ellipsis; the page cannot hold megabytes of one text."""
    with Session.open(settings=SessionSettings()) as session:
        session.load_recordings([recordings / "pydantic-ai" / "delegation"], Grouping("one", "r"))
        short = {name: sql.replace(str(reading.LONGEST_TEXT), "10") for name, sql in reading._ASKED.items()}
        monkeypatch.setattr(reading, "_ASKED", short)  # ten characters, so that a recording has longer ones
        (details,) = session.details(["r"])

    texts = [part.text for part in details.messages if part.text and len(part.text) > 10]
    assert texts
    assert all(len(text) == 12 and text.endswith(" …") for text in texts)
