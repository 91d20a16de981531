"""A visitor's request to be called: stored sealed, and only as long as the place."""

import msgspec

TRAVEL_MINUTES = (10, 20, 30)
"""Times to come back that the page offers."""

EMAIL, PUSH = "email", "push"

CONFIRM, SOON, RETURNED, NOW = "confirm", "soon", "returned", "now"

DECOY = "decoy"
"""In `sent`: the address must get nothing. The row looks unconfirmed, and has a hash for the address.
"""


class VisitorCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """`to`: e-mail address or push endpoint. `key`: of the place. `url`: of the page, without query.
    For push `p256dh` and `auth` of the browser, and the id of our key (`vapid`). `sent`: the last
    message but RETURNED, or DECOY. `center`: the data center that has the place. `sold_out`:
    everything was sold out after RETURNED was sent at `returned_ms` (0: never).
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
