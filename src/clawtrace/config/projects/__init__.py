"""`clawtrace.yaml`: its keys, and what a session takes from it."""
