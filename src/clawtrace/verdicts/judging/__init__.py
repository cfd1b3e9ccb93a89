"""Turns answers into verdicts: unknown values, open runs, known failures."""
