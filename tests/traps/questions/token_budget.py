"""`token_budget`: the question, what lies outside of it, and its answer over plain spans."""

from questions.trace_token_budget import ASSERTION, OUTSIDE, answer

__all__ = ["ASSERTION", "OUTSIDE", "answer"]
