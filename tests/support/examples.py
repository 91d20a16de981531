"""How many examples a law gets."""

from hypothesis import settings


def examples(ordinary: int) -> int:
    """`ordinary` in a whole run, a tenth of it under `./test --quick`."""
    return max(1, ordinary * settings.default.max_examples // 100)
