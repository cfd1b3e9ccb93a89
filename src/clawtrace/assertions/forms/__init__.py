"""What assertions may ask, in five forms: count, sum, share, order, value (spec: certain-and-possible.md §3)."""
