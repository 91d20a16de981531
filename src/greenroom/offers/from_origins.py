"""Stores what applications report as left (`Greenroom-Offers`), so that every process shows it and the
log has it.
"""

import asyncio

import structlog

from greenroom.errors import StorageFailed
from greenroom.model.room import Room
from greenroom.notifier import Wake
from greenroom.offers.changes import by_origin, show
from greenroom.web.config_service import ConfigService
from greenroom.web.refusals import Refused

GAP_S = 10.0
"""Between two revisions by one process, if every response brings a new count."""

AUTHOR = "application"

log = structlog.get_logger(__name__)


class OriginOffers:
    def __init__(self, service: ConfigService) -> None:
        self._service = service
        self._heard: dict[str, bytes] = {}
        self._news: dict[str, tuple[Room, bytes]] = {}
        self._refused: set[str] = set()
        self._wake = Wake()

    def said(self, room: Room, value: bytes) -> None:
        if self._heard.get(room.id) != value:
            self._heard[room.id] = value
            self._news[room.id] = room, value
            self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.rest()
            await self.write()
            await asyncio.sleep(GAP_S)

    async def write(self) -> None:
        while self._news:
            room_id, (room, value) = self._news.popitem()
            try:
                await asyncio.to_thread(self._write, room_id, value)
                self._refused.discard(room_id)
            except Refused as refused:
                if room_id not in self._refused:
                    log.warning("offers_header_refused", room=room.name, reason=str(refused))
                self._refused.add(room_id)
            except StorageFailed as error:
                self._heard.pop(room_id, None)  # the next response says it again
                log.warning("offers_not_written", room=room.name, reason=str(error))
                return

    def _write(self, room_id: str, value: bytes) -> None:
        plan = by_origin(room_id, value)
        told = self._service.look(lambda known: show(known.offers_of(room_id) or ()))
        if _untimed(self._service.trial(plan)) != _untimed(told):
            self._service.change(AUTHOR, plan)


def _untimed(offers: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: value for name, value in one.items() if name != "as_of"} for one in offers]
