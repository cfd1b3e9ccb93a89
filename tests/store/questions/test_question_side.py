"""What a question side makes of what happens while the engine works."""

import duckdb
import pytest

from clawtrace.errors import QueryError
from clawtrace.model.query import Query
from clawtrace.store.questions.question_side import QuestionSide


@pytest.mark.parametrize(
    ("raised", "seen"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (SystemExit(143), SystemExit), (ValueError("no"), QueryError)],
)
def test_a_signal_is_no_error_of_the_question(raised: BaseException, seen: type[BaseException]) -> None:
    """The engine makes an error of its own of what a handler raises while it runs Python: the verdict would be broken by it."""

    def struck(_: int) -> bool:
        raise raised

    with duckdb.connect() as connection:
        connection.create_function("struck", struck, ["BIGINT"], bool)

        with pytest.raises(seen):
            QuestionSide(connection, "here", lambda: None).ask(Query("SELECT struck(1)"))
