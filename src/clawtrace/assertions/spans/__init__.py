"""Conditions on spans and on the spans around them."""
