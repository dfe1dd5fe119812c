"""The command line: `aircl learn`, `predict`, `evaluate`, `merge`, `forget`, `info`, one per file.

What takes long to import is imported inside the commands, so that `aircl --help` answers at once.
"""

from aircl.cli.commands import app, main

__all__ = ["app", "main"]
