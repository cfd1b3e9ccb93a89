"""Tool calls: what models requested, what was executed, what came back."""
