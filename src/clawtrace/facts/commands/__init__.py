"""Shell text split into the commands in it."""
