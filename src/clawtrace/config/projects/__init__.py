"""`clawtrace.yaml` and the project as a whole."""
