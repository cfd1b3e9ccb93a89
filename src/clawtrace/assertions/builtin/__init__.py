"""The built-in assertions: one module an assertion, found by walking this package."""
