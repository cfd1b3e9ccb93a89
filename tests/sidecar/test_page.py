"""What the page of the service is given: the application without the token, and with it runs, their verdicts and spans."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from exported import export
from served import Served

CHECKS = json.dumps({"assert": [{"tool_was_called": "search"}, {"tool_was_called": "pay"}]})


def answer(served: Served, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        got = connection.getresponse()
        body, found = got.read().decode(errors="replace"), {name.lower(): value for name, value in got.getheaders()}
    finally:
        connection.close()
    return got.status, body, found


def data(served: Served, path: str) -> Any:
    status, body, _ = answer(served, f"/clawtrace/v1{path}", authorization=f"Bearer {served.token}")
    assert status == 200, body
    return json.loads(body)


def test_the_application_needs_no_token_and_holds_nothing(served: Served) -> None:
    """It may ask its own service only, no page may frame it, and a name that was led here gets nothing."""
    export(f"{served.http}/run/a-secret-run", "search")
    status, page, headers = answer(served, "/")

    assert (status, headers["content-type"], headers["cache-control"]) == (200, "text/html; charset=utf-8", "no-store")
    assert "connect-src 'self'; frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "a-secret-run" not in page
    assert served.token not in page
    assert answer(served, "/", host="evil.example.com")[0] == 403
    assert answer(served, "/", origin="http://evil.example.com")[0] == 403
    assert answer(served, "/", method="POST")[0] == 404  # an exporter whose address lacks the path
    assert answer(served, "/clawtrace/v1/runs/a-secret-run/page")[0] == 401


def test_the_list_says_how_each_run_stands(served: Served) -> None:
    """Open, whole or not, with agents, figures, and how many verdicts of each status were given here."""
    for run_id in ("r1", "r2"):
        served.client.begin_run(run_id=run_id, case_id="refund")
        export(f"{served.http}/run/{run_id}", "search")
    served.client.end_run("r1", exit_code=0)
    served.client.evaluate(CHECKS, run_id=["r1"])
    listed = data(served, "/runs?last=5")
    first, second = listed["runs"]

    assert (listed["total"], data(served, "/runs?last=1")["runs"]) == (2, [second])
    assert (first["closed_by"], first["complete"], second["closed_by"], second["complete"]) == (
        "exit",
        True,
        None,
        None,
    )
    assert (first["agents"], first["spans"], first["totals"]["tool_calls"]) == (["helper"], 2, 1)
    assert (first["verdicts"], second["verdicts"]) == ({"pass": 1, "fail": 1}, None)
    assert answer(served, "/clawtrace/v1/runs?last=all", authorization="Bearer control")[0] == 400


def test_a_run_has_its_last_verdicts_and_its_spans_of_now(served: Served) -> None:
    """Verdicts that were given before more of the run came are marked as stale."""
    served.client.begin_run(run_id="r")
    export(f"{served.http}/run/r", "search")
    served.client.end_run("r", exit_code=0)
    served.client.evaluate(CHECKS)
    before = data(served, "/runs/r/page")
    export(f"{served.http}/run/r", "pay")
    after = data(served, "/runs/r/page")

    def seen(page: Any) -> tuple[Any, ...]:
        (run,) = page["results"]["cases"][0]["runs"]
        verdicts = [(one["status"], one["stale"]) for one in run["assertions"]]
        return run["status"], run["trace"]["complete"], verdicts, len(page["details"]["spans"])

    assert seen(before) == ("fail", True, [("pass", False), ("fail", False)], 2)
    assert seen(after) == ("fail", False, [("pass", True), ("fail", True)], 4)


def test_who_follows_learns_that_spans_came(served: Served) -> None:
    """Of a run that was not announced, too."""
    connection = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    connection.request("GET", "/clawtrace/v1/events", headers={"authorization": f"Bearer {served.token}"})
    events = connection.getresponse()
    export(f"{served.http}/run/r", "search")
    line = json.loads(events.readline())
    connection.close()

    assert line == {"event": "received"}
