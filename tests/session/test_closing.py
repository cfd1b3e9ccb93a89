"""What a session expects of the end of a run: whether exit closes it, and how long silence has to be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.facts.runs.completeness import ClosingSigns
from clawtrace.model.run import RunRecord, SentTurn
from clawtrace.receiver.attribution.connections import Tally
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.session.closing import Expected

RECORD = RunRecord("r", "r", run_status="success", turns=(SentTurn("ab" * 16, "cd" * 8, 1),))
FIXED = SessionSettings(receiver=ReceiverSettings(http_port=4318))
NOTHING, CARRIED, FOREIGN = Tally(), Tally(accepted=3), Tally(accepted=3, foreign=3)
WORKED, RUNS = ClosingSigns(worked=True), ClosingSigns(already_runs=True, worked=True)


def receiving(total, *, carried=False, forwarded=False):
    """A receiver of which only the counts and the connections are looked at."""
    return SimpleNamespace(counters=lambda: total, is_carried=lambda _: carried, is_forwarded=lambda _: forwarded)


def outlook(record=RECORD, tally=NOTHING, signs=None, settings=None, elsewhere=False, carried=False, forwarded=False):
    """Whether exit closes the run, and the silence that does; without `signs` no span may be looked at."""

    def read() -> ClosingSigns:
        assert signs is not None
        return signs

    receiver = receiving(Tally(foreign=int(elsewhere)), carried=carried, forwarded=forwarded)
    found = Expected(record, settings or SessionSettings(), receiver, read, gone=True).outlook(tally)
    return found.exit_closes, found.settle_ms


@pytest.mark.parametrize("tally", [NOTHING, CARRIED])
def test_an_address_that_was_not_known_before(tally):
    """On a free port the command alone can have passed it on: its exit closes the run, and no span is looked at."""
    assert outlook(tally=tally) == (True, 2_000)


@pytest.mark.parametrize(("settings", "elsewhere"), [(FIXED, False), (None, True)], ids=["fixed port", "others export"])
class TestAnAddressThatOthersKnow:
    def test_nothing_arrived(self, settings, elsewhere):
        """The agent may hold its spans still."""
        assert outlook(signs=ClosingSigns(), settings=settings, elsewhere=elsewhere) == (False, 12_000)

    def test_the_command_s_own_agent(self, settings, elsewhere):
        """Work of an agent arrived with the run's environment: the command started it."""
        assert outlook(tally=CARRIED, signs=WORKED, settings=settings, elsewhere=elsewhere) == (True, 2_000)

    def test_an_instrumented_client_alone(self, settings, elsewhere):
        """No work of an agent arrived, only what the client says of its request."""
        assert outlook(tally=CARRIED, signs=ClosingSigns(), settings=settings, elsewhere=elsewhere) == (False, 12_000)

    @pytest.mark.parametrize("status", ["failed", "timed_out", "invalid"])
    def test_a_command_that_failed(self, settings, elsewhere, status):
        """It is red, whatever it sent to an agent: a program that could not run keeps no run waiting."""
        assert outlook(RECORD._replace(run_status=status), settings=settings, elsewhere=elsewhere) == (True, 2_000)


@pytest.mark.parametrize("unattributed", [0, 3])
def test_what_is_said_while_nothing_of_the_run_is_there(unattributed):
    """Another run's spans, or this run's that are counted just now, came from outside as well and name their run."""
    total = Tally(foreign=3, unattributed=unattributed)
    found = Expected(RECORD, SessionSettings(), receiving(total), ClosingSigns, gone=True).outlook(NOTHING)

    assert found.awaited.startswith("what arrived names no run" if unattributed else "nothing has arrived for this run")


def test_spans_from_outside():
    """They came over the trace, a link or the session alone: the agent already ran."""
    assert outlook(tally=FOREIGN, signs=RUNS) == (False, 12_000)


def test_a_started_agent_that_asked_one_from_outside():
    """Its own exit closes the run once no connection is open; else the other one's exporter is waited for."""
    assert outlook(tally=FOREIGN, signs=WORKED) == (True, 12_000)


@pytest.mark.parametrize("tally", [CARRIED, FOREIGN])
def test_what_is_said_goes_before_what_is_seen(tally):
    started, running = (RECORD._replace(agent=word) for word in ("started", "running"))

    assert outlook(started, tally, settings=FIXED, elsewhere=True) == (True, 2_000)
    assert outlook(running, tally, signs=ClosingSigns(already_runs=True)) == (False, 12_000)


@pytest.mark.parametrize(
    ("runner", "project", "dialect", "settle"),
    [(None, None, 0, 12_000), (None, None, 15_000, 15_000), (None, 500, 15_000, 500), (40_000, 500, 15_000, 40_000)],
    ids=["default", "the instrumentation asks", "the project says", "the runner says"],
)
def test_how_long_the_silence_is(runner, project, dialect, settle):
    """What a user says holds, the runner's word before the project's; else the instrumentation may ask for more."""
    record, settings = RECORD._replace(settle_ms=runner), SessionSettings(settle_ms=project)

    assert outlook(record, FOREIGN, RUNS._replace(settle_ms=dialect), settings) == (False, settle)


def test_a_capture_has_sent_nothing():
    """Where no runner sent a turn, the processes of the test are all that there is."""
    assert outlook(RECORD._replace(turns=()), FOREIGN, settings=FIXED) == (True, 2_000)


class TestBehindACollector:
    """Exit says nothing of spans that others hold."""

    @pytest.mark.parametrize(
        "sign",
        [{"carried": True}, {"forwarded": True}, {"tally": Tally(accepted=3, unnamed=3), "settings": FIXED}],
        ids=["open after the exit", "older or shared", "without the run's path and header"],
    )
    def test_silence_closes_it(self, sign):
        """It does even where it is said that the command starts the agent."""
        for record in (RECORD, RECORD._replace(agent="started")):
            assert outlook(record, **{"tally": CARRIED, "signs": WORKED, **sign}) == (False, 12_000)

    def test_nothing_has_come(self):
        """All may be held where others know the address."""
        assert outlook(RECORD._replace(agent="started"), signs=ClosingSigns(), settings=FIXED) == (False, 12_000)

    def test_an_exporter_written_into_the_code(self):
        """On a free port only the command's own processes can have sent what names no run in path or header."""
        assert outlook(tally=Tally(accepted=3, unnamed=3)) == (True, 2_000)
