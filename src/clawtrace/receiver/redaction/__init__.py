"""Secrets become marks before anything is stored."""
