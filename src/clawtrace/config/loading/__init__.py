"""Everything that a suite, a file of assertions or a project needs, loaded with all its problems at once."""
