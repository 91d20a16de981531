"""Copies the rooms of one zone from Cloudflare, with their events and rules.

How to use it: docs/howto/move-from-cloudflare.md.
"""

import os
import sys
from typing import Any

from cloudflare import Cloudflare

SERVER_SAYS = {
    "id",
    "created_on",
    "modified_on",
    "next_event_prequeue_start_time",
    "next_event_start_time",
    "version",
    "last_updated",
    "greenroom",
}


def wanted(thing: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in thing.to_dict().items()
        if name not in SERVER_SAYS and value is not None
    }


if len(sys.argv) != 2:
    sys.exit("usage: copy_rooms.py ZONE, such as example.com")
cloudflare = Cloudflare(base_url=os.environ.get("THEIRS"))
greenroom = Cloudflare(
    api_token=os.environ["TOKEN"], base_url=os.environ.get("API", "http://127.0.0.1:8081/client/v4")
)
name = sys.argv[1]
source = next(iter(cloudflare.zones.list(name=name)), None)
if source is None:
    sys.exit(f"CLOUDFLARE_API_TOKEN sees no zone {name}")
if next(iter(greenroom.zones.list(name=name)), None):
    sys.exit(f"greenroom has a zone {name} already: remove it first, nothing was copied")
account = next(iter(greenroom.zones.list()), None)
target = greenroom.zones.create(
    account={"id": account.account.id} if account else {}, name=name, type="full"
)
greenroom.waiting_rooms.settings.update(
    zone_id=target.id,
    search_engine_crawler_bypass=cloudflare.waiting_rooms.settings.get(
        zone_id=source.id
    ).search_engine_crawler_bypass,
)
for room in cloudflare.waiting_rooms.list(zone_id=source.id):
    copy = greenroom.waiting_rooms.create(zone_id=target.id, **wanted(room))
    for event in cloudflare.waiting_rooms.events.list(room.id, zone_id=source.id):
        greenroom.waiting_rooms.events.create(copy.id, zone_id=target.id, **wanted(event))
    rules = [
        wanted(rule) for rule in cloudflare.waiting_rooms.rules.get(room.id, zone_id=source.id)
    ]
    greenroom.waiting_rooms.rules.update(copy.id, zone_id=target.id, rules=rules)
    print(f"{copy.name}: {copy.host}{copy.path}")
