"""The five forms of assertions: count, sum, share, order, value (spec: certain-and-possible.md §3)."""
