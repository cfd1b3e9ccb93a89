"""The command line: the program and its edge (`main`), one module a command (`commands`), and what commands do."""
