"""The offers of a room and their log; an extension of Cloudflare's API."""

from dataclasses import fields
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from greenroom.configuration.dependencies import Edit, Read, RoomPath, WithConfig
from greenroom.configuration.rooms import room_of
from greenroom.errors import Problem
from greenroom.model.change import AuditEntry, Put
from greenroom.model.configuration import Configuration
from greenroom.model.fields import Spec
from greenroom.model.offer import LEFT_MAX, OFFERS_MAX, WORDS, Offer, OfferSet, offer_problems
from greenroom.web.api_schema import ApiSchema, computed, read_as, read_each
from greenroom.web.api_shapes import Json, MomentField, Shown
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    entry_of,
    refuse_read_only,
)
from greenroom.web.dependencies import Document
from greenroom.web.envelope import answered
from greenroom.web.openapi import documented
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.routing import Query, Router
from greenroom.web.stores import ConfigStore
from greenroom.web.time_format import milliseconds, moment, plain_moment

SAID_MAX = 8_192
"""Bytes of a header: twice what OFFERS_MAX usual offers need."""


class Available:
    """A word, or a number."""

    def read(self, _pointer: str, value: Any, _problems: list[Problem]) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def show(self, value: Any) -> Any:
        return value if value in WORDS else int(value)

    def schema(self, _rule: Spec) -> Json:
        return {
            "anyOf": [
                {"type": "string", "enum": list(WORDS)},
                {"type": "integer", "minimum": 0, "maximum": LEFT_MAX},
            ]
        }


OFFER = ApiSchema.of(
    Offer,
    shapes={"available": Available()},
    more=(computed("as_of", "when that was so; left out: now", MomentField(), writable=True),),
)

_SHOWN_OFFERS = {
    "type": "array",
    "items": {"type": "object", "required": [f.name for f in OFFER.fields]},
}
ENTRY = ApiSchema(
    (
        computed(
            "when",
            "since when visitors were told this",
            Shown({"type": "string", "format": "date-time"}),
        ),
        computed("author", "who said so", Shown({"type": "string"})),
        computed("offers", "all offers of the room from then on", Shown(_SHOWN_OFFERS)),
    )
)


def offers_of(known: Configuration, zone_id: str, room_id: str) -> tuple[Offer, ...]:
    """In the order shown."""
    room_of(known, zone_id, room_id)
    return known.offers_of(room_id) or ()


def show(offers: tuple[Offer, ...]) -> list[Json]:
    return [
        OFFER.show(
            {item.name: getattr(offer, item.name) for item in fields(Offer)}
            | {"as_of": plain_moment(offer.as_of_ms)}
        )
        for offer in offers
    ]


def replace_all(zone_id: str, room_id: str, documents: Any) -> ConfigChange:
    """Replaces all offers; an empty list takes them off the page."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        refuse_read_only(room_of(known, zone_id, room_id), "waiting room")
        read = read_each(
            documents, OFFERS_MAX, "offers", lambda each: read_as(OFFER, each, offer_problems)
        )
        offers = tuple(_made(values, at.now_ms) for values in read)
        record = OfferSet(id=room_id, offers=offers)
        return PlannedChange([Put(record, room_id)], lambda _after: show(offers))

    return plan


def by_origin(room_id: str, said: bytes) -> ConfigChange:
    """As `replace_all`, with the value of a Greenroom-Offers header."""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        entry = entry_of(known.rooms, "waiting room", room_id)
        if len(said) > SAID_MAX:
            reason = f"must be at most {SAID_MAX} bytes, not {len(said)}"
            raise Refused(ApiFault(Code.TOO_LARGE, reason))
        try:
            documents = msgspec.json.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            reason = f"must be JSON, not {said[:60].decode('latin-1')!r}"
            raise Refused(ApiFault(Code.BAD_BODY, reason)) from None
        return replace_all(entry.parent, room_id, documents)(known, at)

    return plan


def _made(values: Json, now_ms: int) -> Offer:
    as_of = values.pop("as_of", None)
    as_of_ms = milliseconds(as_of)
    return Offer(as_of_ms=now_ms if as_of_ms is None else as_of_ms, **values)


def log(
    store: ConfigStore, room_id: str, limit: int, before: int | None = None
) -> list[AuditEntry]:
    """Newest first."""
    return store.audit(limit, before, about=("offers", room_id))


def show_entry(entry: AuditEntry) -> Json:
    said = (entry.after or {}).get("offers", ())
    return ENTRY.show(
        {
            "when": moment(entry.at_ms),
            "author": entry.author,
            "offers": [OFFER.show(one | {"as_of": plain_moment(one["as_of_ms"])}) for one in said],
        }
    )


LOG_MAX = 1_000
"""Entries in one answer."""

router = Router(
    tags=["offers"],
    prefix="/zones/{zone_id}/waiting_rooms/{waiting_room_id}/offers",
    schemas={
        "Offer": OFFER,
        "OfferLogEntry": ENTRY,
    },
)


@router.get("", **documented("[Offer]", may="read"))
def list_offers(read: Read, room: RoomPath) -> Response:
    """List the offers of a waiting room."""
    return read(lambda known: show(offers_of(known, *room)))


@router.put("", **documented("[Offer]", body="[OfferCreate]"))
def put_offers(edit: Edit, document: Document, room: RoomPath) -> Response:
    """Replace the offers of a waiting room: names, prices and what is left. Its page shows them."""
    return edit(replace_all(*room, document))


@router.get("/log", **documented("[OfferLogEntry]", may="read"))
def list_log(
    config_service: WithConfig,
    zone_id: str,
    waiting_room_id: str,
    limit: Annotated[int, Query(ge=1, le=LOG_MAX, description="Most entries to list.")] = 100,
) -> Response:
    """List what visitors of a waiting room were told and when, newest first."""
    config_service.look(lambda known: room_of(known, zone_id, waiting_room_id))
    entries = log(config_service.store, waiting_room_id, limit)
    return answered([show_entry(entry) for entry in entries])
