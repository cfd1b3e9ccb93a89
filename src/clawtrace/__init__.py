"""clawtrace: the OpenTelemetry-native evaluator for AI agents.

Importing the package loads nothing heavy: every room is imported where it is used,
so that ``clawtrace --help`` stays as fast as the command-line library itself.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
