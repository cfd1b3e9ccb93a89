"""A cassette records what passes, replays it, and asks no provider for anything else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.client import IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clawtrace._scripted_model.http_server import ModelServer, ServerAnswer, ServerRequest
from clawtrace.cassettes.file import load
from clawtrace.cassettes.matching import Rules
from clawtrace.cassettes.playing import PLACEHOLDER
from clawtrace.errors import ConfigError, UsageError
from clawtrace.testing import scripted_model

sys.path.insert(0, str(Path(__file__).parent))

from tapes import GONE, chat, playing, post, provider


def said(answer: tuple[int, bytes]) -> str:
    status, body = answer
    assert status == 200, body
    return json.loads(body)["choices"][0]["message"]["content"]


def test_repeated_requests_are_answered_in_recorded_order_and_not_more_often(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("one", "two") as url, playing(tape, "record", url) as recording:
        recorded = [post(recording.url, chat("say")) for _ in range(2)]
    with playing(tape, "replay") as replaying:
        replayed = [post(replaying.url, chat("say")) for _ in range(2)]
        status, body = post(replaying.url, chat("say"))

    assert replayed == recorded
    assert [said(one) for one in replayed] == ["one", "two"]
    assert (status, json.loads(body)["error"]["type"]) == (400, "cassette_miss")
    assert "was asked more often than it was recorded in" in replaying.misses[0]


def test_runs_replay_independently_of_each_other(tmp_path: Path) -> None:
    """Many runs at once each get the recorded answers in their order, as if each were alone."""
    tape = tmp_path / "c.yaml"
    with provider("one", "two") as url, playing(tape, "record", url) as recording:
        for _ in range(2):
            post(recording.url, chat("say"))
    with playing(tape, "replay") as first, playing(tape, "replay") as second, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: [said(post(one.url, chat("say"))) for _ in range(2)], (first, second)))

    assert answers == [["one", "two"]] * 2


def test_the_request_that_has_most_in_common_answers(tmp_path: Path) -> None:
    """Requests that differ only in what is volatile do not take each other's answer while their own is there."""
    tape, ids = tmp_path / "c.yaml", [f"0b5fd3a2-7a05-4a6c-a6f5-00000000000{n}" for n in range(3)]
    with provider("0", "1", "2") as url, playing(tape, "record", url) as recording:
        for one in ids:
            post(recording.url, chat(f"customer {one}, ticket {ids[0]}"))
    with playing(tape, "replay") as replaying:
        equal = [said(post(replaying.url, chat(f"customer {one}, ticket {ids[0]}"))) for one in reversed(ids)]
        again = post(replaying.url, chat(f"customer {ids[0]}, ticket {ids[0]}"))
    with playing(tape, "replay") as replaying:
        alike = said(post(replaying.url, chat(f"customer {ids[1]}, ticket {ids[2]}")))

    assert (equal, again[0], alike) == (["2", "1", "0"], 400, "1")


def test_the_day_decides_nothing(tmp_path: Path) -> None:
    """Answers that were recorded on two days come in their order on any day: the last one is no nearer to the second."""
    tape = tmp_path / "c.yaml"
    with provider("one", "two") as url, playing(tape, "record", url) as recording:
        for _ in range(2):
            post(recording.url, chat(f"It is {datetime.now(UTC):%Y-%m-%d}."))
    text = tape.read_text()
    today, yesterday = (f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}" for days in (0, 1))
    tape.write_text(text.replace(today, yesterday, text.count(today) // 2))  # the head, and one of the two
    with playing(tape, "replay") as replaying:
        assert [said(post(replaying.url, chat(f"It is {today}."))) for _ in range(2)] == ["one", "two"]


@pytest.mark.parametrize("body", [{"messages": ["no mapping"]}, {"messages": 7}, ["a list"]])
def test_a_request_of_no_protocol_is_a_miss_too(tmp_path: Path, body: object) -> None:
    tape = tmp_path / "c.yaml"
    tape.write_text("clawtrace_cassette: 1\n")
    with playing(tape, "replay") as replaying:
        status, _ = post(replaying.url, body)

    assert (status, len(replaying.misses)) == (400, 1)


def test_a_request_that_cannot_be_read_is_a_miss_too(tmp_path: Path) -> None:
    with playing(tmp_path / "c.yaml", "record", GONE) as recording:
        status, body = post(recording.url, chat("a"), **{"content-encoding": "zstd"})

    assert (status, len(recording.misses)) == (400, 1)
    assert b"in the encoding zstd" in body


def test_what_was_not_recorded_is_never_asked(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("one") as url, playing(tape, "record", url) as recording:
        post(recording.url, chat("Refund order 7."))
    with scripted_model([{"text": "no", "repeat": True}]) as model, playing(tape, "replay", model.url) as replaying:
        status, body = post(replaying.url, chat("Refund order 8."))

    message = json.loads(body)["error"]["message"]
    assert (status, model.log) == (400, [])
    assert replaying.misses == [message]
    assert "-    - content: Refund order 7.\n+    - content: Refund order 8." in message
    assert f"recorded {load(tape)[1][0].id} in " in message
    assert "--mode auto" in message


def test_auto_records_what_is_missing(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("one") as url, playing(tape, "record", url) as recording:
        post(recording.url, chat("a"))
    before = load(tape)[1]
    with provider("two") as url, playing(tape, "auto", url) as auto:
        answers = [said(post(auto.url, chat(text))) for text in ("a", "b", "a")]
    with playing(tape, "replay") as replaying:
        again = [said(post(replaying.url, chat(text))) for text in ("a", "b", "a")]

    assert (answers, auto.replayed, auto.recorded) == (["one", "two", "two"], 1, 2)
    assert again == answers
    assert before[0] in load(tape)[1]


def test_an_attempt_goes_on_behind_the_failure_that_ended_the_one_before(tmp_path: Path) -> None:
    """A recorded outage is replayed once to a run that is tried again; `auto` asks the provider then."""
    tape = tmp_path / "c.yaml"
    steps = [{"error": {"status": 503}}, {"text": "ok"}]
    with scripted_model(steps) as model, playing(tape, "record", model.url) as recording:
        statuses = [post(recording.url, chat("a"))[0] for _ in steps]
    with playing(tape, "replay") as first:
        replayed = [post(first.url, chat("a"))[0]]
        first.earlier, first.used = frozenset(first.used), set()
        replayed += [post(first.url, chat("a"))[0]]
        first.earlier, first.used = frozenset({0, 1}), set()
        again = post(first.url, chat("a"))[0]
    with provider("new") as url, playing(tape, "auto", url) as auto:
        auto.earlier = frozenset({0, 1})
        asked = said(post(auto.url, chat("a")))

    assert statuses == replayed == [503, 200]
    assert again == 503  # every recorded answer was used: the attempt starts anew
    assert (asked, auto.recorded) == ("new", 1)


def test_an_edited_exchange_keeps_its_id_and_another_gets_a_free_one(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("one") as url, playing(tape, "record", url) as recording:
        post(recording.url, chat("order 7"))
    tape.write_text(tape.read_text().replace("order 7", "order 8"))
    with provider("two") as url, playing(tape, "auto", url) as auto:
        post(auto.url, chat("order 7"))

    assert len({one.id for one in load(tape)[1]}) == 2


def test_auto_without_a_key_records_nothing(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    tape.write_text("clawtrace_cassette: 1\nproviders: {openai: 'http://127.0.0.1:9/v1'}\n")
    before = tape.read_bytes()
    with scripted_model([{"text": "no", "repeat": True}]) as model, playing(tape, "auto", model.url) as auto:
        key = auto.environment({})["OPENAI_API_KEY"]
        status, body = post(auto.url, chat("a"), authorization=f"Bearer {key}")

    assert (key, status, model.log) == (PLACEHOLDER, 400, [])
    assert "which is not set" in json.loads(body)["error"]["message"]
    assert tape.read_bytes() == before


def test_errors_of_a_provider_are_recorded(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    steps = [{"error": {"status": 429, "retry_after": 2}}, {"error": {"status": 500}}, {"text": "ok"}]
    with scripted_model(steps) as model, playing(tape, "record", model.url) as recording:
        recorded = [post(recording.url, chat("a")) for _ in steps]
    with playing(tape, "replay") as replaying:
        assert [post(replaying.url, chat("a")) for _ in steps] == recorded

    assert [status for status, _ in recorded] == [429, 500, 200]
    assert load(tape)[1][0].answer.headers["retry-after"] == "2"


def test_a_provider_that_cannot_be_reached_is_said_and_not_recorded(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with playing(tape, "record", GONE) as recording:
        status, body = post(recording.url, chat("a"))

    assert (status, json.loads(body)["error"]["type"]) == (502, "provider_unreachable")
    assert not tape.exists()


def test_a_broken_stream_breaks_again(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    steps = [{"text": "a long answer in pieces", "cut_after": 2}]
    with scripted_model(steps) as model, playing(tape, "record", model.url) as recording:
        first = broken(recording.url)
    with playing(tape, "replay") as replaying:
        second = broken(replaying.url)

    assert first == second
    assert first.count(b"data: ") == 2
    assert load(tape)[1][0].answer.cut


def broken(url: str) -> bytes:
    """Return what came of a stream before its connection broke."""
    request = urllib.request.Request(f"{url}/openai/v1/chat/completions", json.dumps(chat("a", stream=True)).encode())
    with urllib.request.urlopen(request, timeout=30) as answer, pytest.raises(IncompleteRead) as caught:
        answer.read()
    return caught.value.partial


def test_a_stream_passes_without_delay(tmp_path: Path) -> None:
    """The client has the first event while the provider still waits to send the second."""
    seen = threading.Event()

    def slow(request: ServerRequest) -> ServerAnswer:
        def parts():
            yield b'data: {"n":1}\n\n'
            assert seen.wait(30)
            yield b'data: {"n":2}\n\n'

        return ServerAnswer(parts(), headers={"content-type": "text/event-stream"})

    upstream = ModelServer(slow).start()
    with playing(tmp_path / "c.yaml", "record", upstream.url) as recording:
        request = urllib.request.Request(f"{recording.url}/openai/v1/chat/completions", b'{"stream": true}')
        with urllib.request.urlopen(request, timeout=30) as answer:
            first = answer.read1(65536)
            seen.set()
            rest = answer.read()
    upstream.stop()

    assert (first, rest) == (b'data: {"n":1}\n\n', b'data: {"n":2}\n\n')
    assert len(load(tmp_path / "c.yaml")[1][0].answer.events or ()) == 2


def test_other_requests_are_known_by_their_path(tmp_path: Path) -> None:
    """Embeddings, a list of models: whatever else an agent asks its provider."""
    tape = tmp_path / "c.yaml"

    def upstream(request: ServerRequest) -> ServerAnswer:
        return ServerAnswer.of_json({"path": request.path, "query": request.query, "method": request.method})

    server = ModelServer(upstream).start()
    with playing(tape, "record", server.url) as recording:
        recorded = [
            post(recording.url, {"input": "x"}, "/openai/v1/embeddings"),
            got(recording.url + "/openai/v1/models"),
        ]
    server.stop()
    with playing(tape, "replay") as replaying:
        replayed = [
            post(replaying.url, {"input": "x"}, "/openai/v1/embeddings"),
            got(replaying.url + "/openai/v1/models"),
        ]
        missed = post(replaying.url, {"input": "x"}, "/openai/v1/moderations")

    assert replayed == recorded
    assert json.loads(recorded[0][1]) == {"path": "/v1/embeddings", "query": "", "method": "POST"}
    assert missed[0] == 400


def got(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.status, answer.read()


def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    """Not of headers, of cookies, of the query, of a base URL, of what is said or of what is answered, whole or in pieces."""
    tape, key, secret = (
        tmp_path / "c.yaml",
        "sk-proj-abcdefghijklmnop1234567890abcdefghijklmnop",
        "hunter2-4711-very-secret",
    )
    answer = f"your password is {secret}, your key {key}"
    seen: list[str] = []

    class Upstream(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(f"{self.path} {self.headers}")
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            pieces = [answer[at : at + 7] for at in range(0, len(answer), 7)]
            events = "".join(
                f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': one}}]})}\n\n" for one in pieces
            )
            data = events if body.get("stream") else json.dumps({"choices": [{"message": {"content": answer}}]})
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if body.get("stream") else "application/json")
            self.send_header("set-cookie", f"session={secret}")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://user:{secret}@127.0.0.1:{server.server_address[1]}"
    headers = {"authorization": f"Bearer {key}", "cookie": f"session={secret}", "x-goog-api-key": key}
    asked = [chat(f"my password is {secret} and {key}", stream=stream) for stream in (False, True)]
    gemini = f"/gemini/v1beta/models/g:generateContent?key={key}"
    with playing(tape, "record", address.replace(f"user:{secret}@", ""), env={"DB_PASSWORD": secret}) as recording:
        for body in asked:
            assert post(recording.url, body, **headers)[0] == 200
        post(recording.url, {"contents": [{"parts": [{"text": secret}]}]}, gemini)
    server.shutdown()
    server.server_close()
    text = tape.read_text()

    assert key in seen[0]  # what the agent sends reaches its provider
    assert f"key={key}" in seen[2]
    assert not [piece for piece in (key, secret, key[8:20], secret[:7], "set-cookie", "authorization") if piece in text]
    with playing(tape, "replay", env={"DB_PASSWORD": secret}) as replaying:
        assert [post(replaying.url, body)[0] for body in asked] == [200, 200]


def test_parallel_runs_record_into_one_file(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("ok") as url, playing(tape, "record", url) as recording, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: post(recording.url, chat(f"number {n}")), range(40)))

    assert len(load(tape)[1]) == 40


def test_two_processes_do_not_record_into_one_file(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    refused = pytest.raises(UsageError, match=r"another process records into the cassette .*c\.yaml")
    with playing(tape, "record"), refused, playing(tape, "auto"):
        pass


def test_a_recording_that_is_killed_keeps_what_was_whole(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("one") as url:
        program = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from tapes import *\n"
            "with playing(Path(sys.argv[2]), 'record', sys.argv[3]) as p:\n"
            "    post(p.url, chat('a')); post(p.url, chat('b')); print('ready', flush=True); input()\n"
        )
        command = [sys.executable, "-c", program, str(Path(__file__).parent), str(tape), url]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    with playing(tape, "replay") as replaying:
        assert [post(replaying.url, chat(text))[0] for text in ("a", "b")] == [200, 200]
    with provider("three") as url, playing(tape, "auto", url) as auto:
        assert post(auto.url, chat("c"))[0] == 200
    assert len(load(tape)[1]) == 3


def test_a_recording_that_asks_nothing_destroys_nothing(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("one") as url, playing(tape, "record", url) as recording:
        post(recording.url, chat("a"))
    before = tape.read_bytes()
    with playing(tape, "record"):
        pass

    assert tape.read_bytes() == before


def test_the_order_of_the_file_does_not_depend_on_the_order_of_the_requests(tmp_path: Path) -> None:
    """A conversation stays together, its beginning first, and says only what is new."""
    begun = [{"role": "system", "content": "You are terse. " * 20}, {"role": "user", "content": "hello"}]
    longer = [*begun, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "bye"}]
    bodies = [
        chat("another"),
        {"model": "m", "messages": begun},
        {"model": "m", "messages": longer},
        {**chat("x"), "model": "a"},
    ]
    orders = [bodies, bodies[::-1]]
    found = []
    for number, order in enumerate(orders):
        tape = tmp_path / f"{number}.yaml"
        with provider("ok") as url, playing(tape, "record", url) as recording:
            for body in order:
                post(recording.url, body)
        found.append([(one.id, one.request.body) for one in load(tape)[1]])

    assert found[0] == found[1]
    assert [body for _, body in found[0]] == [bodies[3], bodies[1], bodies[2], bodies[0]]
    text = " ".join((tmp_path / "0.yaml").read_text().split())
    assert text.count("You are terse.") == 20
    assert f"after: {found[0][1][0]}" in text


HEAD = "clawtrace_cassette: 1\nrecorded: '2026-11-28T10:00:00Z'\n"
EXCHANGE = "id: a\nat: '2026-11-28T10:00:00Z'\nrequest: {provider: openai, api: chat, path: /x, body: {}}\nanswer: {status: 200}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "c.yaml: is empty"),
        ("steps: []\n", "c.yaml:1:1: is no cassette"),
        (HEAD.replace("1", "2", 1), "c.yaml:1:21: `clawtrace_cassette` found 2, valid is 1"),
        (HEAD + "---\n" + EXCHANGE.replace("status: 200", "status: ok"), "c.yaml:7:18: `answer.status` must be a whole number"),
        (HEAD + "---\n" + EXCHANGE.replace("at:", "when:"), "c.yaml:5:1: `when` is not a known key"),
        (HEAD + "---\n" + EXCHANGE + "---\n" + EXCHANGE, "c.yaml:9:5: `id` the exchange `a` is in the file twice"),
        (HEAD + "---\n" + EXCHANGE.replace("body: {}", "after: b"), "`request.after` no exchange before it is called `b`"),
        (HEAD + "---\n" + EXCHANGE + "---\nid: [\n", "c.yaml:10:1: is not valid YAML"),
        (HEAD + "---\n" + EXCHANGE.replace("{status: 200}", "{status: 200, layout: neat, body: {}}"), "c.yaml:7:9: `answer` cannot be sent as"),
        (HEAD + "---\n" + EXCHANGE.replace("T10:00:00Z", ""), "c.yaml:5:5: `at` must be a date and time with a zone"),
        (HEAD + "---\n- a\n", "c.yaml:4:1: expected a mapping"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_reported_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    tape = tmp_path / "c.yaml"
    tape.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tape)

    assert problem in str(caught.value)


def test_there_is_nothing_to_replay(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="does not exist: record it with `--mode record`"),
        playing(tmp_path / "c", "replay"),
    ):
        pass


def test_own_rules_apply(tmp_path: Path) -> None:
    tape, rules = tmp_path / "c.yaml", Rules(normalise=((r"\bT-\d+", "<ticket>"),))
    with provider("one") as url, playing(tape, "record", url) as recording:
        post(recording.url, chat("see T-1"))
    with playing(tape, "replay", rules=rules) as replaying:
        assert said(post(replaying.url, chat("see T-99"))) == "one"
