"""The part of a run that belongs to one agent or one turn."""
