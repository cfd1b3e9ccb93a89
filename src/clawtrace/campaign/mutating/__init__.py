"""Mutation of recorded runs: plausible faults are put into the spans, and assertions are asked whether they notice."""
