"""Conditions on an answer: similarity as published, JSON as specified, and what a redaction leaves open."""

import pytest

from clawtrace.assertions.builtin.final_response import FinalResponse
from clawtrace.assertions.matching.answer_text import rouge_l
from clawtrace.assertions.matching.json_schema import check_schema, schema_problem
from clawtrace.assertions.matching.redacted import marks, shortest

HIDDEN = "key [REDACTED:openai:0123abcd]!"

# F1 of rougeL by google-research's rouge-score 0.1.2, without stemming.
PUBLISHED = [
    ("the quick brown fox", "the brown quick fox jumps", 0.6666666666666665),
    ("Refund issued for order 42.", "Order 42: the refund was issued", 0.3636363636363636),
    ("a b c d e f", "f e d c b a", 0.16666666666666666),
    ("It's a test-case, v1.2", "its a test case v1 2", 0.7692307692307692),
    ("the cat the dog the cat", "the dog the cat", 0.8),
    ("x", "y", 0.0),
]


@pytest.mark.parametrize(("reference", "text", "score"), PUBLISHED)
def test_similarity_is_what_the_published_implementation_says(reference, text, score):
    """The figures of rouge-score, to rounding; both directions are alike."""
    assert rouge_l(reference, text) == pytest.approx(score)
    assert rouge_l(text, reference) == pytest.approx(score)


def test_similarity_counts_words_of_every_script():
    """Letters that are not ASCII are no gaps; nothing is similar to no words at all."""
    assert rouge_l("Größe geprüft", "größe geprüft") == 1
    assert rouge_l("données validées", "donnees validees") == 0
    assert rouge_l("...", "...") == 0


@pytest.mark.parametrize(
    ("condition", "whole", "hidden"),
    [
        ({"contains": "sk-"}, False, None),
        ({"contains": "key"}, False, True),
        ({"not_contains": "sk-"}, True, None),
        ({"not_contains": "key"}, True, False),
        ({"matches": "^key"}, False, True),
        ({"matches": "sk-"}, False, None),
        ({"not_matches": "sk-"}, True, None),
        ({"equals": "other"}, True, None),
        ({"max_length": 5}, True, False),
        ({"max_length": 6}, True, None),
        ({"similar_to": "other", "threshold": 0.5}, True, None),
        ({"json_schema": {"type": "object"}}, False, None),
    ],
)
def test_what_a_redacted_part_could_have_been_stays_open(condition, whole, hidden):
    """The same condition on a whole text, and on one with a part taken out."""
    asked = FinalResponse(**condition)

    assert list(asked.decided("other").values()) == [whole]
    assert list(asked.decided(HIDDEN).values()) == [hidden]


def test_marks_are_read_as_the_receiver_writes_them():
    """Kind and mark of each; a text was at least as long as what is left of it."""
    from clawtrace.receiver.redaction.redact import Redactor

    text = Redactor(environ={}).clean("use AKIAIOSFODNN7EXAMPLE please")

    assert [kind for kind, _ in marks(text)] == ["aws"]
    assert list(marks("[REDACTED:our own: kind:0123abcd]")) == [("our own: kind", "[REDACTED:our own: kind:0123abcd]")]
    assert shortest("ab [REDACTED:aws:0123abcd]") == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1}', ""),
        (' {"a": 1}\n', ""),
        ('{"a": 1, "a": "x"}', '"x" is not of type "integer", at $.a'),
        ("{}", '"a" is a required property, at $'),
        ('```json\n{"a": 1}\n```', "it cannot be read as JSON"),
        ('{"a": NaN}', "it cannot be read as JSON: NaN is not JSON"),
        ("[" * 100_000, "it cannot be read as JSON"),
        ("", "it cannot be read as JSON"),
    ],
)
def test_an_answer_is_measured_as_one_json_document(text, problem):
    """The whole text is the document, whatever it is a problem and no exception."""
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}

    assert schema_problem(schema, text).startswith(problem)
    assert bool(schema_problem(schema, text)) == bool(problem)


def test_a_hostile_answer_does_not_stall_a_schemas_pattern():
    """Patterns take linear time: repetitions inside of repetitions are harmless."""
    assert schema_problem({"pattern": "^(a+)+$"}, '"' + "a" * 50_000 + '!"')


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"prefixItems": [{"const": 1}], "items": False}}},
        {"properties": {"anything at all": {"type": "string"}}, "additionalProperties": {"type": ["null", "number"]}},
        {"enum": [{"requird": 1}], "default": {"x": 1}, "allOf": [{"if": {"minimum": 3}, "then": {"maximum": 5}}]},
    ],
)
def test_a_valid_schema_is_taken(schema):
    """Drafts 7 and 2020-12; names of properties and values are no keywords."""
    assert check_schema(schema) == schema
