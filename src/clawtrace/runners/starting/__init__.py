"""Start a command: templates, environment, and the process under its supervisor."""
