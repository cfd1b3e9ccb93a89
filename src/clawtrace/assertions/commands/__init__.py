"""Questions about shell commands."""
