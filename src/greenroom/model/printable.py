"""Printing text from outside: control characters could move the cursor, fake a log line, or hide
text.
"""

import re

CONTROLS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""ASCII and Latin-1 controls, line separators, and marks that change the direction."""

_CONTROL = re.compile(f"[{CONTROLS}]")


def printable(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_printable(text: str) -> bool:
    return _CONTROL.search(text) is None
