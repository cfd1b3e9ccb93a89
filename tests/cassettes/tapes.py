"""What the tests of cassettes share: one in use, and requests of a plain client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from clawtrace.cassettes.matching import Rules
from clawtrace.cassettes.playing import Cassette, Playback
from clawtrace.testing import scripted_model

GONE = "http://127.0.0.1:9"
"""Where no provider is."""


@contextmanager
def playing(path: Path, mode: str, provider: str = GONE, *, env: Mapping[str, str] = {}, rules: Rules = Rules()) -> Iterator[Playback]:  # noqa: B008  # fmt: skip
    """Run a cassette in front of a provider of every protocol."""
    moved = {
        "OPENAI_BASE_URL": f"{provider}/v1", "OPENROUTER_BASE_URL": f"{provider}/v1",
        "ANTHROPIC_BASE_URL": provider, "GOOGLE_GEMINI_BASE_URL": provider,
    }  # fmt: skip
    with closing(Cassette(path, mode, rules, env=env)) as cassette:
        playback = Playback(cassette, moved).start()
        try:
            yield playback
        finally:
            playback.stop()


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def post(url: str, body: Any, path: str = "/openai/v1/chat/completions", **headers: str) -> tuple[int, bytes]:
    """Return status and body of an answer, whatever the status."""
    request = urllib.request.Request(
        url + path, json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@contextmanager
def provider(*texts: str) -> Iterator[str]:
    """Run a provider that says these texts one after the other, and then the last one again; yield its address."""
    steps = [{"text": text, "repeat": number == len(texts)} for number, text in enumerate(texts, start=1)]
    with scripted_model(steps) as model:
        yield model.url
