import msgspec

SESSION, LINK, DEVICE, SECOND, USED, FAILED, LISTENERS = (
    "session",
    "link",
    "device",
    "second",
    "used",
    "failed",
    "listeners",
)
"""A signed-in browser; a link that signs in once; a browser in which an account has signed in
before; a sign-in that still needs its code; something that counts once and was used; wrong
attempts; the listeners of a process.
"""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """`owner`: `account:<id>`, `token:<id>`, `oidc:<hash>` or `link`; `id` is not secret."""

    kind: str
    secret_sha256: str
    id: str
    owner: str
    created_ms: int
    seen_ms: int
    expires_ms: int
    address: str = ""
    agent: str = ""
    facts: str = ""
    """JSON of the owner's OidcPerson or of listeners; number of failed attempts; else empty."""
