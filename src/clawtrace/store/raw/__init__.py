"""Raw rows: acknowledged in the journal, moved into the tables, adopted by a run."""
