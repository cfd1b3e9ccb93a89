"""Stored runs that are reused for planned ones, and why the others run again."""
