"""What runs an agent: one module a runner type, found by walking this package (spec: config.md §3)."""
