"""What can become of a request or a visitor: one row each. A new row needs its `since`, the next
version of the store's tables.
"""

from typing import NamedTuple

TARGETS_SINCE = 4
"""Version of the tables that has the columns of `columns.TARGETS` first."""


class RoomOutcome(NamedTuple):
    """`column`: never renamed. `decided`: the decisions that count; empty where the recorder counts
    what no request shows.
    """

    column: str
    metric: str
    unit: str
    label: str
    help: str
    decided: tuple[str, ...] = ()
    since: int = 1  # version of the tables
    extension: bool = True


OUTCOMES: dict[str, RoomOutcome] = {
    row.column: row
    for row in (
        RoomOutcome(
            "admitted",
            "newUsersPerMinute",
            "users",
            "Let in",
            "visitors let in during a minute",
            ("ADMITTED", "REENTERED"),
            extension=False,
        ),
        RoomOutcome(
            "reentered",
            "usersReentered",
            "users",
            "Let in again",
            "visitors let in again by a turn that was kept when the application failed; they count"
            " in `newUsersPerMinute` too",
            ("REENTERED",),
            since=3,
        ),
        RoomOutcome(
            "revoked",
            "sessionsRevoked",
            "sessions",
            "Revoked",
            "sessions ended by the application with Cf-Waiting-Room-Command",
            ("REVOKED",),
            extension=False,
        ),
        RoomOutcome(
            "gave_up",
            "usersLeft",
            "users",
            "Left",
            "visitors who gave up their place or session themselves",
            ("LEFT", "ENDED"),  # minutes of version 1 do not tell the two apart
        ),
        RoomOutcome(
            "ended",
            "sessionsLeft",
            "sessions",
            "Ended their session",
            "sessions that visitors ended themselves; they count in `usersLeft` too",
            ("ENDED",),
            since=2,
        ),
        RoomOutcome(
            "abandoned",
            "usersAbandoned",
            "users",
            "Abandoned",
            "places in line lost because the visitor stayed away; of a visitor who may close the"
            " page, when the place can no longer be taken up",
        ),
        RoomOutcome(
            "held",
            "requestsHeld",
            "requests",
            "Held",
            "requests answered with the waiting page",
            ("HELD",),
        ),
        RoomOutcome(
            "passed",
            "requestsPassed",
            "requests",
            "Passed",
            "requests of visitors who were in already",
            ("ACTIVE",),
        ),
    )
}
