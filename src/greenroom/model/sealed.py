"""The form of a sealed secret: it may be stored and copied, and only the key's owner can read it
(`ports.SecretBox`).
"""

import re

SEALED = "sealed:[0-9a-f]{12}:[A-Za-z0-9_-]{38,12000}"
"""The word, the key's id, the sealed text. The longest secret is a URL of 2,048 characters of up to
four bytes.
"""


def is_sealed(text: str) -> bool:
    return text.startswith("sealed:") and re.fullmatch(SEALED, text) is not None


def key_of_sealed(sealed: str) -> str:
    return sealed.split(":")[1]
