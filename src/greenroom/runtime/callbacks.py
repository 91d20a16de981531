from collections.abc import Callable

OnError = Callable[[BaseException], None]
"""Told of exceptions that must not end the process."""

Say = Callable[[str], None]
