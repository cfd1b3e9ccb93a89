"""`receiver.tee` as a user sets it: the agent's spans reach the second endpoint too, and what was lost is said."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from clawtrace.session.session import Session

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"
RUN = ("run", "--", sys.executable, str(AGENT), "search")


def test_a_command_is_seen_by_both(program, tmp_path) -> None:
    """The file names the endpoint; the second receiver gets every span, and nothing is said about it."""
    with Session.open(receive=True) as second:
        (tmp_path / "clawtrace.yaml").write_text(f"receiver: {{tee: {{endpoint: '{second.endpoints.http}'}}}}\n")
        done = program(*RUN)
        spans = second.query("SELECT name FROM spans ORDER BY name").rows

    assert done.returncode == 0
    assert spans == [("execute_tool search",), ("invoke_agent tester",)]
    assert "tee" not in done.stderr


def test_a_lost_request_is_a_warning_and_no_failure(program) -> None:
    """Nothing listens at the endpoint: the command's exit code and trace stay, one line on stderr says so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
    done = program(*RUN, env={"CLAWTRACE_RECEIVER_TEE_ENDPOINT": endpoint})

    assert done.returncode == 0
    assert "└─ execute_tool search" in done.stderr
    assert f"warning: 1 of 1 received requests were not forwarded to the tee {endpoint}: 1 × " in done.stderr
