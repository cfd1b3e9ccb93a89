"""A project on this machine: its first files, and whether everything works (`init`, `doctor`)."""
