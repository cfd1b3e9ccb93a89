"""Facts of runs as commands show them, of this process or of another one that holds the store."""
