"""Span stores: where raw rows and facts live and where assertions ask."""
