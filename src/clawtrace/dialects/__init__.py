"""Dialects: what each instrumentation emits, as data; and the compiler that turns the data into SQL."""

from clawtrace.dialects.load import Dialect, load_dialects

__all__ = ["Dialect", "load_dialects"]
