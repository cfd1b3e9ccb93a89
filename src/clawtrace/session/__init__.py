"""Composition root: receiver, store, facts and verdicts, start to stop."""
