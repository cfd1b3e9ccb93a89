"""Cases and their assertions."""
