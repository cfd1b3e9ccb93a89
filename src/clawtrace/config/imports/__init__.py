"""Configurations of other tools, read as cases: a table from their checks to ours for each tool."""
