"""What a command depends on, by content: the files that its settings name or declare."""
