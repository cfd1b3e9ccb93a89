"""Which spans are one logical call, and what hangs where."""
