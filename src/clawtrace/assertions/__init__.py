"""Assertions: questions about a run, one module each, answered as queries over the span store."""
