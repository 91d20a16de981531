"""What the assembled parts of a process are given to call."""

from collections.abc import Callable

OnError = Callable[[BaseException], None]
"""Told of exceptions that must not end the process."""

Say = Callable[[str], None]
"""Prints one line for the person who started the process."""
