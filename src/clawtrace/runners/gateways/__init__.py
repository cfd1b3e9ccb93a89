"""A gateway of OpenClaw's for one run: its configuration, its process or container, and the turns that it is given."""
