"""API refusals: the table of codes, and the error that carries all faults."""

import re
from collections.abc import Iterable, Sized
from enum import IntEnum
from typing import NamedTuple

from greenroom.errors import GreenroomError, Problem


class Code(IntEnum):
    NO_ROOM = 1001
    INVALID = 1002
    BAD_HEADERS = 6003
    NO_ROUTE = 7000
    NO_METHOD = 7001
    NO_OBJECT = 7003
    NO_CREDENTIALS = 9106
    DENIED = 10000
    BAD_BODY = 28001
    TOO_LARGE = 28002
    REQUIRED = 28010
    UNKNOWN_FIELD = 28012
    BAD_QUERY = 28013
    TAKEN = 28020
    COVERED = 28021
    COOKIES_CLASH = 28022
    TOO_MANY = 28023
    OUTSIDE = 28024
    TEMPLATE = 28030
    EXPRESSION = 28031
    EVENTS_OVERLAP = 28032
    UNUSABLE = 28033
    READ_ONLY = 28040
    IN_USE = 28041
    CHANGED_MEANWHILE = 28042
    WEBHOOK_TEST = 28043
    SLOW_DOWN = 28050
    UNAVAILABLE = 28060
    UNEXPECTED = 28061


class Meaning(NamedTuple):
    status: int
    text: str


CODES: dict[Code, Meaning] = {
    Code.NO_ROOM: Meaning(404, "unknown waiting room, event or rule"),
    Code.INVALID: Meaning(
        400, "the value of a field is invalid: wrong type, out of range, or not an allowed value"
    ),
    Code.BAD_HEADERS: Meaning(400, "a request header is invalid"),
    Code.NO_ROUTE: Meaning(404, "no resource at this path"),
    Code.NO_METHOD: Meaning(
        405, "the path does not support this method; `Allow` lists the methods it supports"
    ),
    Code.NO_OBJECT: Meaning(404, "another unknown object"),
    Code.NO_CREDENTIALS: Meaning(
        401, "no token, or an incomplete pair of X-Auth-Email and X-Auth-Key"
    ),
    Code.DENIED: Meaning(
        403,
        "the token's scopes or zones do not allow this. With status 401: the token is unknown or"
        " has expired",
    ),
    Code.BAD_BODY: Meaning(400, "the body is not JSON, or not the required type of JSON value"),
    Code.TOO_LARGE: Meaning(413, "the body is too large"),
    Code.REQUIRED: Meaning(400, "a required field is missing"),
    Code.UNKNOWN_FIELD: Meaning(400, "unknown field"),
    Code.BAD_QUERY: Meaning(400, "a query parameter is invalid"),
    # not 409, which clients would retry in vain
    Code.TAKEN: Meaning(400, "the name is already in use"),
    Code.COVERED: Meaning(400, "a host and path already belong to another room"),
    Code.COOKIES_CLASH: Meaning(400, "the cookies of two rooms would overwrite each other"),
    Code.TOO_MANY: Meaning(400, "the maximum number of these has been reached"),
    Code.OUTSIDE: Meaning(400, "the host does not belong to the zone"),
    Code.TEMPLATE: Meaning(400, "the template of a page is invalid"),
    Code.EXPRESSION: Meaning(
        400, "the expression of a rule is invalid; the message marks the position"
    ),
    Code.EVENTS_OVERLAP: Meaning(400, "the events of a room overlap"),
    Code.UNUSABLE: Meaning(
        400, "after this change something of the configuration could not be used; nothing was saved"
    ),
    Code.READ_ONLY: Meaning(
        403, "it comes from a configuration file and can only be changed there"
    ),
    Code.IN_USE: Meaning(400, "it cannot be deleted while something else refers to it"),
    Code.CHANGED_MEANWHILE: Meaning(
        409, "another client changed it at the same time; read it again and retry"
    ),
    Code.WEBHOOK_TEST: Meaning(400, "the webhook did not take its test message; nothing was saved"),
    Code.SLOW_DOWN: Meaning(
        429,
        "too many wrong credentials from this address, or too many requests of a kind that takes"
        " long; `Retry-After` says when to retry",
    ),
    Code.UNAVAILABLE: Meaning(
        503, "the configuration store cannot be read or written at the moment; nothing was changed"
    ),
    Code.UNEXPECTED: Meaning(
        500, "internal error; the log has it under the `CF-Ray` of the response"
    ),
}


class ApiFault(NamedTuple):
    """`pointer` is a JSON pointer into what was sent, empty for the whole."""

    code: Code
    message: str
    pointer: str = ""


class Refused(GreenroomError):
    """Every fault found; nothing was changed. `status` replaces that of the first fault's code;
    `retry_after_s`: earlier retries are refused.
    """

    def __init__(self, *faults: ApiFault, status: int = 0, retry_after_s: int = 0) -> None:
        super().__init__(
            "; ".join(
                f"{fault.pointer}: {fault.message}" if fault.pointer else fault.message
                for fault in faults
            )
        )
        self.faults = faults
        self.status = status or CODES[faults[0].code].status
        self.retry_after_s = retry_after_s


def refuse_if(faults: Iterable[ApiFault]) -> None:
    """Raises Refused when there are any."""
    found = list(faults)
    if found:
        raise Refused(*found)


def too_many(there: Sized, most: int, what: str) -> list[ApiFault]:
    """For one more; `what` is in the plural."""
    if len(there) < most:
        return []
    return [ApiFault(Code.TOO_MANY, f"there are {most} {what} already")]


def faults_of(problems: Iterable[Problem], code: Code = Code.INVALID) -> list[ApiFault]:
    """Missing fields have their own code."""
    return [
        ApiFault(
            Code.REQUIRED if found.reason.startswith("is required") else code,
            problem_text(found),
            pointed(found.pointer),
        )
        for found in problems
    ]


def within(faults: Iterable[ApiFault], pointer: str) -> list[ApiFault]:
    return [
        ApiFault(fault.code, f"{pointer.strip('/')}: {fault.message}", f"{pointer}{fault.pointer}")
        for fault in faults
    ]


def problem_text(problem: Problem) -> str:
    """With the field's name, for clients that show only the message."""
    place = f" (line {problem.line})" if problem.line else ""
    return f"{problem.pointer}{place}: {problem.reason}" if problem.pointer else problem.reason


def pointed(dotted: str) -> str:
    """`rooms[2].path` as the JSON pointer `/rooms/2/path`."""
    return "".join(f"/{part}" for part in re.split(r"[.\[\]]+", dotted) if part)


def not_found(what: str, id: str) -> Refused:
    code = Code.NO_ROOM if what in ("waiting room", "event", "rule") else Code.NO_OBJECT
    return Refused(ApiFault(code, f"there is no {what} {id[:64]!r}; the identifier may be wrong"))
