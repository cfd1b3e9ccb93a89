"""The YAML files: composed with positions, validated as a whole, every problem at its line (spec: config.md §1)."""
