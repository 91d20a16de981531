"""API tokens: created, listed and revoked with commands on the machine."""

from collections.abc import Sequence

from greenroom.errors import InvalidConfig
from greenroom.model.account import Token
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.web.authenticator import make_token
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.refusals import ApiFault, Code, Refused, too_many

TOKENS_MAX = 1_000
"""Requests are compared with all tokens, so that times reveal nothing about a guess."""

DAY_MS = 86_400_000


def create(
    name: str,
    scopes: Sequence[str],
    zones: Sequence[str] = (),
    email: str = "",
    days: int | None = None,
) -> ConfigChange:
    """Answers (secret, token). `zones` are ids or names; none means all."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        faults = [
            ApiFault(Code.NO_OBJECT, f"there is no zone {zone}")
            for zone in zones
            if not _zone_ids(known, zone)
        ]
        if any(token.name == name for token in known.tokens.records()):
            faults.append(ApiFault(Code.TAKEN, f"there is a token {name} already"))
        faults += too_many(known.tokens, TOKENS_MAX, "tokens")
        if faults:
            raise Refused(*faults)
        ids = list(dict.fromkeys(found for zone in zones for found in _zone_ids(known, zone)))
        try:
            secret, token = make_token(
                at.new_id(),
                name,
                scopes,
                ids,
                email,
                None if days is None else at.now_ms + days * DAY_MS,
            )
        except InvalidConfig as invalid:
            raise Refused(
                *(ApiFault(Code.INVALID, str(problem)) for problem in invalid.problems)
            ) from None
        return PlannedChange([Put(token)], lambda _after: (secret, token))

    return plan


def revoke(name: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        found = next(
            (token for token in known.tokens.records() if name in (token.id, token.name)), None
        )
        if found is None:
            raise Refused(ApiFault(Code.NO_OBJECT, f"there is no token {name}"))
        return PlannedChange([Remove("token", found.id)], lambda _after: found)

    return plan


def every(known: Configuration) -> list[Entry[Token]]:
    return list(known.tokens.values())


def _zone_ids(known: Configuration, zone: str) -> list[str]:
    return [entry.id for entry in known.zones.values() if zone in (entry.id, entry.record.name)]
