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
"""Kinds of rows: a signed-in browser; a link that signs in once; a browser in which an account has
signed in before; a sign-in whose password was right and whose code is missing; something that
counts once and was used, kept until it would not count anyway; wrong attempts of one address,
account or device; the listeners of a process."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """Times are Unix milliseconds.

    `owner`: `account:<id>`, `token:<id>`, `oidc:<hash>` or `link`; `id` names the row to people who
    may revoke it, and is not secret.
    """

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
    """JSON of the owner's OidcPerson; number of failed attempts; JSON of listeners; else empty."""
