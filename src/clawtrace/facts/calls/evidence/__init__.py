"""Evidence beyond the tree that spans are one logical call, or several: one module for each."""
