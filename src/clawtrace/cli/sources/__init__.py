"""Sources of runs for commands: recordings and stores."""
