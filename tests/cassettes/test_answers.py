"""Answers of providers become readable, and are again the very bytes that were sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawtrace.cassettes.answers import RecordedAnswer, answer_bytes, clean_answer, read_answer, usage_of
from clawtrace.cassettes.file import AskedRequest, CassetteHead, RecordedExchange, append, load, lock, write
from clawtrace.cassettes.matching import Rules
from clawtrace.receiver.redaction.redact import Redactor

EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}
VALUE = {"id": "chatcmpl-1", "choices": [{"text": "né\n 😀", "n": 1.0, "none": None, "empty": {}}], "usage": {}}


def through_a_file(folder: Path, answer: RecordedAnswer) -> RecordedAnswer:
    """Return an answer as it is read from a cassette that it was written into."""
    request = AskedRequest(provider="openai", api="chat", path="/chat/completions", body={"n": "1e5", "on": "yes"})
    exchange = RecordedExchange(id="a", at="2026-11-28T10:00:00Z", request=request, answer=answer)
    meaning = Rules().meaning("chat", "", request.path, request.body, 0.0)
    write(folder / "c.yaml", CassetteHead(), [(meaning, exchange)])
    (folder / "killed.yaml").unlink(missing_ok=True)
    with lock(folder / "killed.yaml") as stream:
        append(stream, CassetteHead())
        append(stream, exchange)
    ((read,), (of_killed,)) = (load(folder / name)[1] for name in ("c.yaml", "killed.yaml"))
    assert read.request == request
    assert of_killed == read
    return read.answer


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False), "compact"),
        (json.dumps(VALUE, separators=(",", ":")), "compact ascii"),
        (json.dumps(VALUE), "spaced ascii"),
        (json.dumps(VALUE, indent=2, ensure_ascii=False) + "\n", "indented newline"),
        ('{"a":1,"a":2}', "text"),
        ('{"a": 1E5}', "text"),
        ('{"a":NaN}', "text"),
        (r'{"a":"\ud83d"}', "text"),
        ("<html>\n\n  502 </html>\n\n", "text"),
        ("", "text"),
    ],
)
def test_a_whole_answer_is_the_same_bytes_again(tmp_path: Path, text: str, layout: str) -> None:
    answer = through_a_file(tmp_path, read_answer(200, JSON, text.encode()))

    assert (answer.layout, answer_bytes(answer)) == (layout, text.encode())


def test_bytes_that_are_no_text_are_the_same_again(tmp_path: Path) -> None:
    data = bytes(range(256))
    answer = through_a_file(tmp_path, read_answer(200, {"content-type": "audio/mpeg"}, data))

    assert answer_bytes(answer) == data


STREAM = (
    ": OPENROUTER PROCESSING\n\n",
    'data: {"id":"c","choices":[{"delta":{"content":""}}],"m":1}\n\n',
    'data: {"id":"c","choices":[{"delta":{"content":"né"}}],"m":1}\n\n',
    'event: ping\ndata: {"type": "ping"}\n\n',
    'data: {"id":"c","usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n',
    "retry: 5\nid: 9\ndata: {}\n\n",
    "data: [DONE]\n\n",
)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_stream_keeps_its_events_and_their_bytes(tmp_path: Path, end: str) -> None:
    parts = [part.replace("\n", end).encode() for part in STREAM]
    answer = through_a_file(tmp_path, read_answer(200, EVENTS, b"".join(parts)))

    assert answer_bytes(answer) == parts
    assert answer.events is not None
    assert answer.events[2] == {"again": {"choices": [{"delta": {"content": "né"}}]}}  # it says only what is new
    assert usage_of(answer) == {"input": 7, "output": 3}


def test_a_stream_that_broke_ends_where_it_broke(tmp_path: Path) -> None:
    data = b'data: {"a":1}\n\ndata: {"a'
    answer = through_a_file(tmp_path, read_answer(200, EVENTS, data, cut=True))

    assert (answer.cut, answer_bytes(answer)) == (True, [b'data: {"a":1}\n\n', b'data: {"a'])


TEXTS = st.text(max_size=40) | st.sampled_from(
    ["1e5", "=", "yes", "2026-11-28", "a: b", " x\n\n", "\n  y", "---", "\t"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(data=st.dictionaries(TEXTS, VALUES), ascii=st.booleans(), indent=st.sampled_from([None, 2]))
def test_any_json_is_the_same_bytes_again(tmp_path_factory, data, ascii, indent) -> None:
    text = json.dumps(data, ensure_ascii=ascii, indent=indent)
    stream = f"data: {text}\n\nevent: x\ndata: {text}\n\ndata: {text}\n\n".encode(errors="replace")
    folder = tmp_path_factory.mktemp("any")

    assert answer_bytes(through_a_file(folder, read_answer(200, JSON, text.encode(errors="replace")))) == text.encode(
        errors="replace"
    )
    parts = answer_bytes(through_a_file(folder, read_answer(200, EVENTS, stream)))
    assert b"".join(parts) == stream


def test_a_secret_in_the_pieces_of_a_stream_is_found() -> None:
    """A secret that no single event has whole leaves no piece of it behind."""
    secret = "hunter2-is-a-long-secret-4711"
    pieces = [secret[at : at + 6] for at in range(0, len(secret), 6)]
    events = [f"data: {json.dumps({'index': 0, 'delta': {'text': piece}})}\n\n" for piece in ("It is ", *pieces, ".")]
    clean = Redactor(environ={"APP_SECRET": secret}).clean
    answer = clean_answer(read_answer(200, EVENTS, "".join(events).encode()), clean)

    said = "".join(json.loads(part[6:])["delta"]["text"] for part in answer_bytes(answer))
    assert said.startswith("It is [REDACTED:env:")
    assert not any(piece in str(answer.events) for piece in pieces[:-1])


def test_a_secret_in_equal_neighbouring_pieces_of_a_stream_is_no_secret_left() -> None:
    """Events say only what differs from the one before; the secret is looked for in what they mean."""
    pieces = ("ab", "XX", "XX", "cd-9981")
    data = "".join(f'data: {{"id": "c1", "delta": "{piece}"}}\n\n' for piece in pieces).encode()
    read = read_answer(200, {"content-type": "text/event-stream"}, data, cut=False)
    cleaned = clean_answer(read, lambda text: text.replace("abXXXXcd-9981", "[REDACTED]"))

    assert b"XX" not in b"".join(answer_bytes(cleaned))
    assert b"[REDACTED]" in b"".join(answer_bytes(cleaned))
