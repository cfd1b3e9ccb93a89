"""Ask a model for one structured answer: with retries, the raw exchange, and what it took.

What goes wrong with a provider is said in one word, with whether to try again (outages, rate limits, wrong keys).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from clawtrace.errors import ProviderError
from clawtrace.providers.models import ModelChoice, open_model, request_settings

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.messages import ModelMessage

__all__ = [
    "FIRST_PAUSE_SECONDS",
    "AskedModel",
    "ModelAnswer",
    "ProviderFailure",
    "Wording",
    "ask",
    "failure_of",
    "pause_before",
]

Kind = Literal[
    "unavailable", "budget", "outage", "rate_limit", "quota", "wrong_key", "unknown_model", "rejected", "malformed",
]  # fmt: skip

_LONGEST_PAUSE = 60.0


class ProviderFailure(NamedTuple):
    """Why a model gave no answer that can be used."""

    kind: Kind
    """``unavailable``: a package or a key is missing here; ``budget``: nothing more may be spent; ``malformed``: it answered, and not in the form that was asked for."""
    message: str
    """The provider's own words."""
    passes: bool
    """Whether it may work a little later."""
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""


def failure_of(error: Exception) -> ProviderFailure | None:
    """Return what an exception of pydantic-ai says of a provider; None for any other."""
    from pydantic_ai import exceptions as of

    kinds: tuple[tuple[tuple[type[Exception], ...], Kind, bool], ...] = (
        ((of.ModelRateLimitError,), "rate_limit", True),
        ((of.ModelQuotaExceededError,), "quota", False),
        ((of.ModelAuthenticationError,), "wrong_key", False),
        ((of.ModelNotFoundError,), "unknown_model", False),
        ((of.ModelRequestRejectedError,), "rejected", False),
        ((of.ModelAPIError,), "outage", True),
        ((of.UnexpectedModelBehavior,), "malformed", False),
    )
    for types, kind, passes in kinds:
        if isinstance(error, types):
            return ProviderFailure(kind, " ".join(str(error).split()), passes, getattr(error, "retry_after", None))
    return None


def pause_before(attempt: int, failure: ProviderFailure, first: float = 1.0) -> float:
    """Return the seconds to wait before attempt number `attempt` (2 is the first that repeats): twice as long each time, with jitter.

    A provider that says how long to wait is given as long.
    """
    if failure.retry_after is not None:
        return min(failure.retry_after, _LONGEST_PAUSE)
    return min(first * 2.0 ** (attempt - 2), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)


FIRST_PAUSE_SECONDS = 1.0
"""Before the first retry; each further pause is twice as long."""
_INVALID_ANSWERS = 2
"""How often a model may correct an answer that is not valid; it is given the error."""
_SHOWN = 120
"""Characters of an answer that is not valid which a message shows."""


class Wording(NamedTuple):
    """A question in full: what a model is given, and what it may answer."""

    system: str
    prompt: str
    answer: type[BaseModel]


class ModelAnswer(NamedTuple):
    """What came of asking once."""

    answer: Mapping[str, Any] | None
    """Valid by the question's model; None where there was none."""
    failure: ProviderFailure | None
    """Why there is none."""
    exchange: list[Any]
    """Every message of every attempt, as JSON."""
    attempts: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model, and how it is asked."""

    choice: ModelChoice
    options: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of each request."""
    retries: int = 5
    """The number of retries of a request that the provider failed to answer."""
    timeout_seconds: float = 60.0
    """Time for one request."""


def ask(
    of: AskedModel, wording: Wording, env: Mapping[str, str], stopped: Callable[[], bool] = lambda: False
) -> ModelAnswer:
    """Ask a model once.

    What may pass (an outage, a rate limit) is tried again with growing pauses, until `stopped` says that it is enough; an answer
    that is not valid goes back to the model with the validator's message.
    """
    return asyncio.run(_ask(of, wording, env, stopped))


async def _ask(of: AskedModel, wording: Wording, env: Mapping[str, str], stopped: Callable[[], bool]) -> ModelAnswer:
    from pydantic_ai import Agent, capture_run_messages
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    try:
        model = open_model(of.choice, env)
        # The provider's client tries nothing again: this does, and counts it.
        options = {"timeout": of.timeout_seconds, "max_retries": 0, **of.options}
        settings = request_settings(model, of.choice, options)
    except ProviderError as error:
        return ModelAnswer(None, ProviderFailure("unavailable", str(error), passes=False), [], 0, 0, 0)
    agent: Agent[None, BaseModel] = Agent(
        model,
        output_type=wording.answer,
        instructions=wording.system,
        retries=_INVALID_ANSWERS,
        model_settings=settings,
    )
    exchange: list[Any] = []
    tokens = [0, 0]
    attempt = 0
    async with agent:
        while True:
            attempt += 1
            answer, failure = None, None
            with capture_run_messages() as messages:
                try:
                    answer = (await agent.run(wording.prompt)).output.model_dump(mode="json")
                except Exception as error:
                    failure = failure_of(error)
                    if failure is None:
                        raise
            said = json.loads(ModelMessagesTypeAdapter.dump_json(messages))
            if failure is not None and failure.kind == "malformed":
                failure = failure._replace(message=_with_answer(failure.message, said))
            exchange += said
            tokens = [known + new for known, new in zip(tokens, _tokens(messages), strict=True)]
            if failure is None or not failure.passes or attempt > of.retries or stopped():
                return ModelAnswer(answer, failure, exchange, attempt, *tokens)
            await asyncio.sleep(pause_before(attempt + 1, failure, FIRST_PAUSE_SECONDS))


def _with_answer(message: str, exchange: Sequence[Mapping[str, Any]]) -> str:
    """Return a message about an answer that is not valid, with the fields that were wrong and the answer's beginning.

    Args:
        message: pydantic-ai's.
        exchange: the messages of one attempt, as JSON.
    """
    parts = [part for one in exchange for part in one["parts"]]
    refused = [part["content"] for part in parts if isinstance(part.get("content"), list)]
    wrong = [
        f"`{'.'.join(map(str, one['loc']))}`: {one['msg']}" if one["loc"] else one["msg"]
        for one in (refused[-1] if refused else ())
        if isinstance(one, dict) and {"loc", "msg"} <= one.keys()
    ]
    answers = [part for one in exchange if one["kind"] == "response" for part in one["parts"]]
    given = [text for part in answers if (text := part.get("args") or part.get("content"))]
    said = ["; ".join(wrong)] if wrong else []
    if given:
        text = given[-1] if isinstance(given[-1], str) else json.dumps(given[-1], ensure_ascii=False)
        said.append(f"the last answer begins: {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}")
    return ". ".join((message.rstrip("."), *said))


def _tokens(messages: list[ModelMessage]) -> tuple[int, int]:
    """Return the input and output tokens of every answer, the invalid ones too."""
    usages = [message.usage for message in messages if message.kind == "response"]
    return sum(one.input_tokens for one in usages), sum(one.output_tokens for one in usages)
