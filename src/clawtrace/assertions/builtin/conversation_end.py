"""`conversation_end`: how the conversation with a simulated user ended."""

from __future__ import annotations

from clawtrace.assertions._runner_word import RunnerWord
from clawtrace.assertions.base import Outcome
from clawtrace.model.run import ConversationEnd as End

__all__ = ["ConversationEnd"]


class ConversationEnd(RunnerWord):
    """The conversation with the simulated user ended as `status`.

    It is the word of the model that plays the user (`input.user` of the case): `goal_reached`, `gave_up` where it took the goal
    for out of reach, `max_turns` where it would have said more; or `agent_failed`, where a turn did not end well. Where the model
    failed, the run is an error. Without a simulated user nothing is known.

    Example:
        - type: conversation_end
          status: goal_reached
    """

    asks_of_the_end = False
    column = "conversation_end"
    main_field = "status"
    requires = ("runs.conversation_end",)
    unscoped = "the end is that of the whole conversation."

    status: End
    """The end that is right."""

    def explain(self, outcome: Outcome) -> str:
        """Compare the end with the expected one."""
        found = outcome.row["value"]
        if found is None:
            return f"No simulated user had a conversation in this run, expected `{self.status}`: the case has no `input.user`."
        return f"The conversation with the simulated user ended as `{found}`, expected `{self.status}`."
