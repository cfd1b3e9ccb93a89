"""Everything received is forwarded to the user's own endpoint."""
