"""Shared by several packages: memory, files, documentation of attributes."""
