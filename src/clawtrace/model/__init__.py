"""The nouns every room shares: frozen, typed, without I/O."""
