"""Whose request it is: everything of a question but the target. A browser fetches a page and its
parts with the same headers, so what such a question means is cached.
"""

import msgspec

from greenroom.decision.arrival import ArrivalLimits, Sender
from greenroom.model.answer import AnswerHeaders
from greenroom.model.visit import Arrival
from greenroom.proxies.dialect import Dialect
from greenroom.request.canonical import Target
from greenroom.request.path_readings import PathPolicy, read_target


class Asker(msgspec.Struct, frozen=True, gc=False):
    """Valid while what it was made with is in use."""

    arrival: Arrival  # one of its requests
    dialect: Dialect
    forward: AnswerHeaders  # of the answer that lets it go on
    paths: PathPolicy
    sender: Sender
    limits: ArrivalLimits
    own_cookies: frozenset[bytes]

    def request(self, raw: bytes) -> Arrival | None:
        """None where the question must be read as a whole."""
        if len(raw) > self.limits.url_bytes:
            return None
        target = read_target(raw, self.paths)
        if not isinstance(target, Target) or target.raw != raw or target.readings:
            return None
        like = self.arrival
        return Arrival(
            like.method, like.scheme, like.host, target.path, target.query, like.headers, like.client, raw, like.version, like.server,
            0, (), like.facts, b"", like.signs, self,
        )  # fmt: skip
