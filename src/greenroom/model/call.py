"""What a visitor in line leaves so as to be called: kept sealed, and only as long as the place."""

import msgspec

TRAVEL_MINUTES = (10, 20, 30)
"""What the page offers: the time that the visitor needs to come back."""

EMAIL, PUSH = "email", "push"

CONFIRM, SOON, RETURNED, NOW = "confirm", "soon", "returned", "now"

DECOY = "decoy"
"""In `sent`, of an address that must get nothing: the row looks like one not confirmed, and has a hash
for the address.
"""


class VisitorCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """`to`: the e-mail address or the push endpoint. `key`: the place. `url`: of the page, without
    query. `p256dh`, `auth`: the browser's, and `vapid`: the id of ours, for push. `sent`: the last
    of the messages but RETURNED, or DECOY. `center`: the data center whose ledger has the place.
    `sold_out`: since RETURNED was sent at `returned_ms` (0: never) everything was found sold out.
    """

    channel: str
    to: str
    key: int
    asked_ms: int
    language: str
    url: str
    travel_ms: int
    p256dh: str = ""
    auth: str = ""
    vapid: str = ""
    confirmed: bool = False
    sent: str = ""
    center: str = ""
    sold_out: bool = False
    returned_ms: int = 0
