"""Questions of other processes about the store that this one holds, as they come over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clawtrace.receiver.transport.questions import HttpQuestion, QuestionReply
    from clawtrace.verdicts.reading.remote import AskableStore

__all__ = ["answer_question"]


def answer_question(store: AskableStore, asked: HttpQuestion) -> QuestionReply:
    """Answer what another process asks about the store (`clawtrace.verdicts.reading.remote`)."""
    from clawtrace.receiver.transport.questions import QUESTIONS_PATH, QuestionReply, refusal
    from clawtrace.verdicts.reading.remote import answer_question as answer_body

    if asked.path != QUESTIONS_PATH:
        return refusal(404, f"there is nothing at `{asked.path[:100]}`; questions go to `{QUESTIONS_PATH}`")
    if asked.method != "POST":
        return refusal(405, f"`{QUESTIONS_PATH}` accepts POST, not {asked.method}")
    if asked.content_type != "application/json":
        return refusal(415, "a question is `application/json`")
    return QuestionReply(*answer_body(store, asked.body))
