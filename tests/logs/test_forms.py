"""What each form of log reads in its lines, and what it does not take for more than it is."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clawtrace.logs import LogFileError, LoggedSpan, LogReading, read_log
from clawtrace.logs.model import nanoseconds
from clawtrace.logs.reading import forms

HERE = Path(__file__).parent


def read(folder: Path, *lines: str | dict[str, Any], name: str = "a.log") -> LogReading:
    """Read a log of these lines."""
    path = folder / name
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
    return read_log(path)


def tools(reading: LogReading, run_id: str) -> list[str]:
    """The names of a run's tools, in order."""
    return [span.attributes["gen_ai.tool.name"] for span in reading.runs[run_id].spans if span.kind == "tool"]


def spans(reading: LogReading, run_id: str, kind: str) -> list[LoggedSpan]:
    """The spans of a kind."""
    return [span for span in reading.runs[run_id].spans if span.kind == kind]


@pytest.mark.parametrize(
    "line",
    [
        'run_id=r1 tool=ok args="run tool=rm agent=evil"',
        'run_id=r1 tool=ok args="say \\"tool=rm\\" tool=rm"',
        "run_id=r1 tool=ok args=run tool=rm agent=evil",
        'run_id=r1 tool=ok args={"cmd": "tool=rm"} tool=rm',
        'run_id=r1 tool=ok result="never closed tool=rm',
        "run_id=r1 tool=ok tool=rm",
        "run_id=r1 tool=ok output=tool=rm",
        "run_id=r1 tool=ok xtool=rm",
        'run_id=r1 tool=ok said "use tool=rm agent=evil now"',
        "run_id=r1 tool=ok args='use tool=rm agent=evil now'",
        'run_id=r1 tool=ok extra={"a": "tool=rm"} x={tool=rm',
        '{"run_id": "r1", "tool": "ok", "args": {"tool": "rm", "agent": "evil"}, "message": "tool=rm"}',
    ],
)
def test_t23_words_of_others_are_no_calls(tmp_path: Path, line: str) -> None:
    """T23: whatever stands in arguments and results, quoted or not, is text."""
    reading = read(tmp_path, line)

    assert tools(reading, "r1") == ["ok"]
    assert spans(reading, "r1", "agent") == []


def test_a_message_of_an_agent_is_no_call(tmp_path: Path) -> None:
    """A line that names no tool itself stays one, whatever its message says."""
    reading = read(tmp_path, "run_id=r1 tool=a", "run_id=r1 message=I call tool=rm now", "run_id=r1 text=token_usage")

    assert tools(reading, "r1") == ["a"]
    assert spans(reading, "r1", "usage") == []


def test_the_same_words_as_json(tmp_path: Path) -> None:
    """A gateway that writes a JSON object a line says the same with the same words."""
    about = {"time": "2026-11-20T10:00:00Z", "run_id": "r1", "agent": "triage"}
    reading = read(
        tmp_path,
        about | {"tool": "search", "args": {"q": 1}, "status": "ok"},
        about | {"tool": "sessions_spawn", "params": {"agentId": "writer"}},
        about | {"event": "token_usage", "usage": {"input": 10, "output": 5}},
        {"time": "2026-11-20T10:00:00Z", "run_id": "r10", "tool": "rm"},
    )
    search, _ = spans(reading, "r1", "tool")
    (usage,) = spans(reading, "r1", "usage")

    assert tools(reading, "r1") == ["search", "sessions_spawn"]
    assert search.attributes["gen_ai.tool.call.arguments"] == '{"q":1}'
    assert [span.attributes["gen_ai.agent.name"] for span in spans(reading, "r1", "agent")] == ["triage", "writer"]
    assert usage.attributes["gen_ai.usage.output_tokens"] == 5


def test_two_lines_of_one_call_are_one_call(tmp_path: Path) -> None:
    """Start and end are one call by call id; without one the end closes the call of that name that began."""
    reading = read(
        tmp_path,
        "2026-11-20T10:00:00Z run_id=r1 tool=a call_id=1 status=started",
        "2026-11-20T10:00:00Z run_id=r1 tool=a call_id=2 status=started",
        "2026-11-20T10:00:03Z run_id=r1 tool=a call_id=1 status=failed error=broken",
        "2026-11-20T10:00:04Z run_id=r1 tool=b status=started",
        "2026-11-20T10:00:05Z run_id=r1 tool=b status=ok",
        "2026-11-20T10:00:06Z run_id=r1 tool=c status=denied",
    )
    calls = spans(reading, "r1", "tool")

    assert tools(reading, "r1") == ["a", "a", "b", "c"]
    assert [call.error for call in calls] == ["broken", None, None, None]
    assert [call.end_ns is None for call in calls] == [False, True, False, False]
    assert [call.attributes.get("clawtrace.log.outcome") for call in calls] == [None, "unknown", None, "blocked"]


def test_lines_of_one_second_keep_their_order(tmp_path: Path) -> None:
    """What is written later is later, also where the clock of the log does not tell."""
    reading = read(tmp_path, *(f"2026-11-20T10:00:00Z run_id=r1 tool=t{n}" for n in range(5)))
    starts = [span.start_ns for span in spans(reading, "r1", "tool")]

    assert starts == sorted(set(starts))


def test_runs_that_start_each_other_are_read_once(tmp_path: Path) -> None:
    """A log that says that two runs started each other ends, and loses nothing."""
    reading = read(
        tmp_path,
        "run_id=a tool=x to_agent=b child_run_id=b",
        "run_id=b tool=y to_agent=a child_run_id=a",
    )

    assert {span.attributes.get("gen_ai.tool.name") for span in reading.whole("a").spans} >= {"x", "y"}


def test_a_packed_log_is_read(tmp_path: Path) -> None:
    """A log that was rotated and packed is the same log."""
    path = tmp_path / "gateway.log.1.gz"
    path.write_bytes(gzip.compress((HERE / "samples" / "gateway-plain.log").read_bytes()))

    assert tools(read_log(path), "r1") == ["memory.search", "write_file", "sessions_spawn"]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_packed_log_that_is_damaged(tmp_path: Path, damage: str) -> None:
    """What cannot be unpacked is an error that names the file."""
    path = tmp_path / "a.log.gz"
    packed = bytearray(gzip.compress((HERE / "samples" / "gateway-plain.log").read_bytes()))
    if damage == "cut":
        del packed[-9:]
    else:
        packed[20:40] = bytes(20)
    path.write_bytes(packed)

    with pytest.raises(LogFileError, match=r"a\.log\.gz` cannot be read"):
        read_log(path)


ONE_TOOL = sorted(path for path in HERE.glob("transcripts/*/one_tool/**/*.jsonl") if path.name != "traces.otlp.jsonl")


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key or index) of every value of a parsed line."""
    for name, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
        yield node, name
        if isinstance(value, dict | list):
            yield from _places(value)


@pytest.mark.parametrize(
    "path", [*ONE_TOOL, HERE / "samples" / "openclaw-session.jsonl"], ids=lambda path: path.parts[-3]
)
@pytest.mark.parametrize("odd", [[{}], {"a": []}, -1, "\ud800", None], ids=repr)
@pytest.mark.full
def test_any_value_of_a_line_may_be_odd(tmp_path: Path, path: Path, odd: Any) -> None:
    """Whatever stands in one place of a transcript, it is read or refused, and nothing breaks."""
    lines = path.read_text().splitlines()
    changed = tmp_path / "a.jsonl"
    for number, line in enumerate(lines):
        document = json.loads(line)
        for place, name in list(_places(document)):
            before, place[name] = place[name], odd
            changed.write_text("\n".join([*lines[:number], json.dumps(document), *lines[number + 1 :]]))
            place[name] = before
            with contextlib.suppress(LogFileError):
                read_log(changed)


def _spawning(session: str, *others: str) -> list[dict[str, Any]]:
    """Lines of an OpenClaw session that spawned sub-agents, whose sessions are said to be the `others`."""
    calls = [
        {"type": "toolCall", "id": f"c{n}", "name": "sessions_spawn", "arguments": {"task": "x"}}
        for n, _ in enumerate(others)
    ]
    lines: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": session, "timestamp": "2026-11-20T10:00:00.000Z"},
        {"type": "message", "message": {"role": "assistant", "content": calls, "model": "m", "timestamp": 1_000}},
    ]
    for n, other in enumerate(others):
        key = f"agent:x:subagent:{n}"
        result = {"role": "toolResult", "toolCallId": f"c{n}", "toolName": "sessions_spawn", "timestamp": 2_000}
        sent = {"kind": "inter_session", "sourceSessionKey": key}
        words = f"session_key: {key}\nsession_id: {other}"
        lines += [
            {
                "type": "message",
                "message": result | {"content": [], "details": {"childSessionKey": key, "status": "accepted"}},
            },
            {"type": "message", "message": {"role": "user", "provenance": sent, "content": words, "timestamp": 3_000}},
        ]
    return lines


def test_transcripts_that_name_each_other_are_read_once(tmp_path: Path) -> None:
    """Two sessions that say they started each other do not send the reader round in a circle."""
    folder = tmp_path / "agents" / "x" / "sessions"
    folder.mkdir(parents=True)
    read(folder, *_spawning("b", "a"), name="b.jsonl")
    reading = read(folder, *_spawning("a", "b"), name="a.jsonl")

    assert sorted(reading.runs) == ["a", "b"]
    assert reading.lines == 8


def test_a_transcript_names_no_file_elsewhere(tmp_path: Path) -> None:
    """The id of a session is no path: a log cannot have another folder's files read into it."""
    folder = tmp_path / "agents" / "x" / "sessions"
    folder.mkdir(parents=True)
    read(tmp_path, *_spawning("secret"), name="secret.jsonl")
    reading = read(folder, *_spawning("a", "../../../secret", "x" * 5_000, "\x00"), name="a.jsonl")

    assert sorted(reading.runs) == ["a"]


def test_what_is_no_log_says_so(tmp_path: Path) -> None:
    """A file of no known form is an error that names the forms."""
    with pytest.raises(LogFileError, match=r"is in no known format \(.*OpenClaw session transcript.*\)"):
        read(tmp_path, "nothing", "known")
    with pytest.raises(LogFileError, match="cannot be read: No such file"):
        read_log(tmp_path / "missing")


def test_damaged_lines_of_a_transcript_are_counted(tmp_path: Path) -> None:
    """Lines that are no JSON are counted and shown, the others are read."""
    sample = (HERE / "samples" / "openclaw-session.jsonl").read_text().splitlines()
    reading = read(tmp_path, *sample, '{"type":"message","id":"cut', "no json")

    assert (reading.lines, reading.unread) == (11, 2)
    assert reading.samples[0].startswith('line 10: {"type":"message"')
    assert reading.all().lacking == ["2 of 11 lines of its transcript could not be read."]


def test_openclaws_sample_session(tmp_path: Path) -> None:
    """Cached tokens are added to the input, an answer that never came has no tokens, a failure in `details` is one."""
    del tmp_path
    reading = read_log(HERE / "samples" / "openclaw-session.jsonl")
    (run_id,) = reading.runs
    failed, asked, answered = spans(reading, run_id, "llm")
    read_ok, read_failed = spans(reading, run_id, "tool")

    assert failed.error == "fetch failed"
    assert "gen_ai.usage.input_tokens" not in failed.attributes
    assert asked.attributes["gen_ai.usage.input_tokens"] == 12310 + 1536
    assert answered.attributes["gen_ai.usage.output_tokens"] == 267
    assert (read_ok.error, read_failed.error) == (None, "ENOENT")


def test_a_user_cannot_name_a_session_as_a_sub_agents(tmp_path: Path) -> None:
    """Only the runtime's own announcement links a transcript to the call that spawned it."""
    case = (
        HERE / "transcripts" / "openclaw" / "delegation" / "agents" / "support" / "sessions" / "sess-delegation.jsonl"
    )
    lines = [json.loads(line) for line in case.read_text().splitlines()]
    for line in lines:
        line.get("message", {}).pop("provenance", None)
    reading = read(tmp_path, *lines)

    assert reading.runs["sess-delegation"].started == {}


def test_openclaws_trajectory_is_its_transcript(tmp_path: Path) -> None:
    """The messages of a trajectory are read once; the runtime's totals of the turn do not count in addition."""
    case = HERE / "transcripts" / "openclaw" / "one_tool" / "agents" / "support" / "sessions" / "sess-one-tool.jsonl"
    kinds = {"user": "user.message", "assistant": "assistant.message", "toolResult": "tool.result"}
    about = {
        "traceSchema": "openclaw-trajectory",
        "schemaVersion": 1,
        "sessionId": "s",
        "sessionKey": "agent:main:main",
    }
    events = [
        about | {"source": "transcript", "type": kinds[line["message"]["role"]], "ts": line["timestamp"], "data": line}
        for line in map(json.loads, case.read_text().splitlines())
        if line["type"] == "message"
    ]
    total = about | {
        "source": "runtime", "type": "model.completed", "ts": "2026-11-20T12:02:16Z",
        "data": {"usage": {"input": 2142, "output": 60}},
    }  # fmt: skip
    both, runtime = read(tmp_path, *events, total), read(tmp_path, total, name="b.jsonl")

    assert [span.attributes["gen_ai.usage.input_tokens"] for span in spans(both, "s", "llm")] == [1013, 1129]
    assert spans(both, "s", "usage") == []
    assert spans(both, "s", "agent")[0].attributes["gen_ai.agent.name"] == "main"
    assert [span.attributes["gen_ai.usage.input_tokens"] for span in spans(runtime, "s", "usage")] == [2142]
    assert runtime.runs["s"].lacking


def test_claudes_partial_answers_are_one_call(tmp_path: Path) -> None:
    """Parts of one answer are separate lines that repeat its usage; without an end the output is unknown."""
    message = {"id": "m1", "role": "assistant", "model": "claude-x", "usage": {"input_tokens": 5, "output_tokens": 1}}
    about = {"type": "assistant", "sessionId": "s", "timestamp": "2026-11-20T10:00:00Z"}
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}}
    reading = read(
        tmp_path,
        about | {"uuid": "1", "message": message | {"content": [{"type": "text", "text": "I read."}]}},
        about | {"uuid": "2", "message": message | {"content": [call]}},
        about
        | {
            "type": "user",
            "uuid": "3",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}],
            },
            "toolUseResult": "User rejected tool use",
        },
        about | {"uuid": "2", "message": message | {"content": [call]}},
    )
    (one,) = spans(reading, "s", "llm")
    (tool,) = spans(reading, "s", "tool")

    assert one.attributes["gen_ai.usage.input_tokens"] == 5
    assert "gen_ai.usage.output_tokens" not in one.attributes
    assert tool.attributes["clawtrace.log.outcome"] == "blocked"


def test_codexs_counts_of_older_versions_are_calls_once(tmp_path: Path) -> None:
    """Without records of tokens each new total is a call; the same total again is the same call."""

    def count(total: int, last: int) -> dict[str, Any]:
        usage = {"input_tokens": last, "cached_input_tokens": 0, "output_tokens": 1}
        info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": usage}
        return {
            "timestamp": "2025-01-01T00:00:00Z",
            "type": "event_msg",
            "payload": {"type": "token_count", "info": info},
        }

    def item(kind: str, **more: Any) -> dict[str, Any]:
        return {"timestamp": "2025-01-01T00:00:00Z", "type": "response_item", "payload": {"type": kind} | more}

    failed = json.dumps({"output": "boom", "metadata": {"exit_code": 3}})
    reading = read(
        tmp_path,
        {"timestamp": "2025-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}},
        item("function_call", name="shell", arguments='{"command": ["false"]}', call_id="c1"),
        count(10, 10),
        count(10, 10),
        item("function_call_output", call_id="c1", output=failed),
        item("function_call", name="shell", arguments='{"command": ["true"]}', call_id="c2"),
        item("function_call_output", call_id="c2", output="Process exited with code 1"),
        count(30, 20),
        item("message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    )
    calls = spans(reading, "s", "llm")
    first, second = spans(reading, "s", "tool")

    assert [call.attributes.get("gen_ai.usage.input_tokens") for call in calls] == [10, 20, None]
    assert first.error == "exit code 3"
    # What stands in words only is unknown.
    assert second.attributes["clawtrace.log.outcome"] == "unknown"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-11-20T10:00:00Z", 1795168800_000000000),
        ("2026-11-20T10:00:00.123456+00:00", 1795168800_123456000),
        ("2026-11-20 11:00:00+01:00", 1795168800_000000000),
        (1795168800, 1795168800_000000000),
        (1795168800123, 1795168800_123000000),
        ("1795168800.5", 1795168800_500000000),
        ("yesterday", 0),
        (None, 0),
        (True, 0),
        (-1, 0),
        (float("nan"), 0),
    ],
)
def test_times(written: Any, expected: int) -> None:
    """Every way of writing a time is the same time; anything else is none."""
    assert nanoseconds(written) == expected


def test_each_form_recognises_its_own_only() -> None:
    """No transcript or sample is recognised by more than one form."""
    for path in (*HERE.glob("samples/*"), *HERE.glob("transcripts/*/*/**/*.jsonl")):
        if path.name == "traces.otlp.jsonl":
            continue
        head = path.read_text(encoding="utf-8").splitlines()[:200]

        assert len([form for form in forms() if form.recognises(head)]) == 1, path


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-20T10:00:01Z tool=rm agent=triage",
        "2026-11-20T10:00:01Z token_usage input=9000 output=1",
        {"time": "2026-11-20T10:00:01Z", "run_id": None, "tool": "rm"},
        '{"time": "2026-11-20T10:00:01Z", "tool": "rm", "run_',
    ],
)
def test_a_line_that_names_no_run_is_of_none_and_leaves_none_whole(tmp_path: Path, line: str | dict[str, Any]) -> None:
    """Work that any run may have done is given to no run, and nothing follows from its absence in one."""
    reading = read(tmp_path, "2026-11-20T10:00:00Z run_id=r1 tool=a", line, "run_id=r2 tool=b")

    assert (tools(reading, "r1"), tools(reading, "r2")) == (["a"], ["b"])
    for run in reading.runs.values():
        assert run.lacking == ["1 of 3 lines of its log name no run, and may belong to any."]


def test_other_lines_that_name_no_run_change_nothing(tmp_path: Path) -> None:
    """A gateway says more than what its runs do."""
    reading = read(
        tmp_path, "run_id=r1 tool=a", "gateway listening on 18789", "agent=triage model=gpt-5 loaded", {"level": "info"}
    )

    assert (reading.unread, reading.runs["r1"].lacking) == (3, [])


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-20T10:00:01Z run_id=r1, tool=rm, agent=triage",
        "2026-11-20T10:00:01Z run_id='r1', tool='rm', agent='triage'",
        "2026-11-20T10:00:01Z Run_Id=r1 TOOL=rm",
        {"RunID": "r1", "Tool": "rm"},
        {"run_id": "r1", "tool": {"name": "rm", "id": 7}},
    ],
)
def test_words_are_read_in_capitals_and_between_commas(tmp_path: Path, line: str | dict[str, Any]) -> None:
    """A forbidden tool is seen, and in its own run, however a gateway punctuates its lines."""
    reading = read(tmp_path, "2026-11-20T10:00:00Z run_id=r1 tool=a", line)

    assert tools(reading, "r1") == ["a", "rm"]
    assert list(reading.runs) == ["r1"]


def test_a_tool_that_is_named_where_it_is_not_looked_for_leaves_the_run_open(tmp_path: Path) -> None:
    """A layout that is not known records no call for sure, and none that was not made."""
    reading = read(tmp_path, {"run_id": "r1", "tool": "a"}, {"run_id": "r1", "event": "call", "data": {"tool": "rm"}})

    assert tools(reading, "r1") == ["a"]
    assert reading.runs["r1"].lacking == ["line 2 of its log could not be read."]


def test_tokens_next_to_a_tool_count(tmp_path: Path) -> None:
    """They are tokens of the run, whatever else their line says."""
    reading = read(
        tmp_path,
        "run_id=r1 tool=llm model=gpt-5 input_tokens=1000 output_tokens=5",
        "run_id=r1 token_usage input=1 output=1",
    )

    assert tools(reading, "r1") == ["llm"]
    assert [span.attributes["gen_ai.usage.input_tokens"] for span in spans(reading, "r1", "usage")] == [1000, 1]


def _dispatched(asked: dict[str, Any], nested: str | None, **ended: Any) -> list[dict[str, Any]]:
    """Lines of OpenClaw 2026.9: the model calls `tool_call`, what is recorded of the tool that this called, and the result."""
    call_id = f"c_{nested}"
    messages: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "model": "m",
            "content": [{"type": "toolCall", "id": call_id, "name": "tool_call", "arguments": asked}],
        },
        {"role": "toolResult", "toolCallId": call_id, "toolName": "tool_call", **ended},
    ]
    if nested is not None:
        result = ended.get("details", {}).get("result") or {"content": ended["content"]}
        inner = {"parentToolCallId": call_id, "toolName": nested, "input": {}, "result": result}
        messages.insert(1, {"role": "custom", "customType": "openclaw.nested-tool.v1", "content": "", "details": inner})
    return [
        {"type": "message", "parentId": None, "timestamp": "2026-11-20T10:00:00.000Z", "message": one}
        for one in messages
    ]


def test_openclaws_dispatcher_is_a_call_of_the_tool_that_it_calls(tmp_path: Path) -> None:
    """Name, arguments, result and outcome are that tool's, also where it failed; without any such tool nothing is said for it."""
    content = [{"type": "text", "text": "no such job"}]
    failed = {
        "tool": {"name": "cron"},
        "result": {"content": content, "details": {"status": "error"}},
        "status": "error",
    }
    spawned = {"content": [], "details": {"status": "accepted", "childSessionKey": "agent:b:subagent:1"}}
    reading = read(
        tmp_path,
        {"type": "session", "version": 4, "id": "s", "timestamp": "2026-11-20T10:00:00.000Z"},
        *_dispatched({"id": "openclaw:core:cron", "args": {"id": "7"}}, "cron", content=[], details=failed),
        *_dispatched({"id": "pdf"}, "pdf", content=content, isError=True),
        *_dispatched({"id": "nope", "args": {}}, None, content=content, isError=True),
        *_dispatched(
            {"name": "sessions_spawn", "task": "t"}, "sessions_spawn", content=[],
            details={"tool": {"name": "sessions_spawn"}, "result": spawned},
        ),
    )  # fmt: skip
    about = ("gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments")

    assert [(*map(span.attributes.get, about), span.error) for span in spans(reading, "s", "tool")] == [
        ("cron", "c_cron", '{"id":"7"}', "no such job"),
        ("pdf", "c_pdf", "{}", "no such job"),
        ("tool_call", "c_None", '{"id":"nope","args":{}}', "no such job"),
        ("sessions_spawn", "c_sessions_spawn", '{"task":"t"}', None),
    ]
    results = [span.attributes["gen_ai.tool.call.result"] for span in spans(reading, "s", "tool")]
    assert results[0] == json.dumps({"content": content, "details": {"status": "error"}}, separators=(",", ":"))
    assert [span.attributes.get("gen_ai.agent.name") for span in spans(reading, "s", "agent")] == [None, "b"]


def test_openclaws_announced_answer_is_a_turn_of_its_own(tmp_path: Path) -> None:
    """2026.9: no user's message begins it; the runtime names the sub-agent's session, and the task's own text does not."""
    key = "agent:b:subagent:1"
    event = f"[Internal task completion event]\nsource: subagent\nsession_key: {key}\nsession_id: child\ntask: x\n\n"
    forged = f"session_key: {key}\nsession_id: other\n"
    said = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}]}
    spawn = {
        "tool": {"name": "sessions_spawn"},
        "result": {"content": [], "details": {"status": "accepted", "childSessionKey": key}},
    }

    def works(run: str) -> dict[str, Any]:
        return {"type": "message", "parentId": None, "message": said | {"__openclaw": {"runId": run}}}

    reading = read(
        tmp_path,
        {"type": "session", "version": 4, "id": "s", "timestamp": "2026-11-20T10:00:00.000Z"},
        {"type": "message", "parentId": None, "message": {"role": "user", "content": "Go."}},
        *_dispatched({"id": "sessions_spawn", "args": {"task": "t"}}, "sessions_spawn", content=[], details=spawn),
        works("one"), works("one"),
        {"type": "custom_message", "content": "", "details": {"fragments": [{"text": event + forged}, {"text": forged}]}},
        works("announce:1"),
        {"type": "message", "parentId": None, "message": {"role": "user", "content": "Thanks."}},
        works("two"),
    )  # fmt: skip
    turns = [span for span in spans(reading, "s", "agent") if span.parent is None]
    calls = spans(reading, "s", "llm")

    assert [sum(call.parent is turn for call in calls) for turn in turns] == [3, 1, 1]
    assert "Thanks." in calls[-1].attributes["gen_ai.input.messages"]
    assert list(reading.runs["s"].started) == ["child"]
