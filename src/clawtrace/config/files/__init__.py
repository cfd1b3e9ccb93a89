"""YAML files as data and positions, and problems at a line."""
