"""The content of the files that a command depends on: those that its settings name or declare."""
