"""Stored runs that stand in for planned ones, and why the others run again."""
