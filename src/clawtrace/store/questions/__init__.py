"""Read-only questions: connections, parsed statements, and answers in columns."""
