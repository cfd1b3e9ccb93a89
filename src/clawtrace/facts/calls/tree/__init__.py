"""The tree of a run's spans, and the calls that nesting and ids show."""
