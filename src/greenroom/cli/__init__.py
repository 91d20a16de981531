"""The command line: reads options, prints, and leaves the work to the runtime."""

from greenroom.cli.commands import app, main

__all__ = ["app", "main"]
