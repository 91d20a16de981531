"""The command line: reads options, prints, and leaves the work to the runtime."""

import gc

_collects = gc.isenabled()
gc.disable()
try:
    from greenroom.cli.commands import app, main
finally:
    if _collects:
        # What imports make stays: looking for garbage among it would take a quarter of a start.
        gc.freeze()
        gc.enable()

__all__ = ["app", "main"]
