"""Dialects: what each instrumentation emits, as data; and the compiler that turns the data into SQL."""
