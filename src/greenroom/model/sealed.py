"""The form of a secret that is sealed: it may be stored and copied, and only who has the key can
read it (see `ports.SecretBox`).
"""

import re

SEALED = "sealed:[0-9a-f]{12}:[A-Za-z0-9_-]{38,12000}"
"""The word, the id of the key, and what was sealed. The longest secret is a URL of 2,048 characters
of up to four bytes.
"""


def is_sealed(text: str) -> bool:
    """Whether this is a sealed secret, and not one as it is."""
    return text.startswith("sealed:") and re.fullmatch(SEALED, text) is not None


def key_of_sealed(sealed: str) -> str:
    """The id of the key that a sealed secret needs."""
    return sealed.split(":")[1]
