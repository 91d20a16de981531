"""Text from outside as it may be printed: control characters could move the cursor, fake a line of
a log, or hide what stands there.
"""

import re

CONTROLS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Control characters of ASCII and Latin-1, line separators, and the marks that change the direction
of what follows.
"""

_CONTROL = re.compile(f"[{CONTROLS}]")


def printable(text: str) -> str:
    """The same with every control character written as an escape, such as `\\n` or `\\u202e`."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_printable(text: str) -> bool:
    """Whether nothing in it needs an escape."""
    return _CONTROL.search(text) is None
