"""Spans as run facts read them: the row facts of each span."""
