"""Whether the modules of the hot path run compiled (docs/howto/compile.md), which nothing else
depends on.
"""

from importlib.util import find_spec

ONE_OF_THEM = "greenroom.decision.service"


def is_compiled() -> bool:
    """Loads nothing but the packages around the module."""
    found = find_spec(ONE_OF_THEM)
    return found is not None and found.origin is not None and not found.origin.endswith(".py")
