"""The unmodified official SDK, sync and async, drives every resource of a real greenroom; its
strict validation accepts every answer.
"""

import itertools
from typing import Any

import cloudflare
import pytest
from api_rig import ACCOUNT, Api, create_token, done, each

NUMBERS = itertools.count()
LIMITS = {"new_users_per_minute": 200, "total_active_users": 300}


@pytest.fixture(scope="module")
def api(shared_greenroom) -> Api:
    running = shared_greenroom.room(
        "http://127.0.0.1:9", 1000, 1000, "--host", "elsewhere.example.org"
    )
    return Api(
        running.control,
        create_token(
            shared_greenroom.data, "sdk", "--scope", "edit", "--email", "owner@example.com"
        ),
    )


def domain() -> str:
    return f"zone{next(NUMBERS)}.example.com"


async def new_zone(cf: Any) -> Any:
    return await done(cf.zones.create(account={"id": ACCOUNT}, name=domain(), type="full"))


async def new_room(cf: Any, zone: Any, **fields: Any) -> Any:
    return await done(
        cf.waiting_rooms.create(
            **{"zone_id": zone.id, "host": zone.name, "name": "room", **LIMITS, **fields}
        )
    )


async def test_zones(cf: Any) -> None:
    zone = await new_zone(cf)
    assert (zone.status, zone.type, zone.paused, zone.account.id) == (
        "active",
        "full",
        False,
        ACCOUNT,
    )
    assert (await done(cf.zones.get(zone_id=zone.id))) == zone
    assert (await done(cf.zones.edit(zone_id=zone.id, paused=True))).paused is True
    assert [found.id for found in await each(cf.zones.list(name=zone.name))] == [zone.id]
    assert [
        found.id
        for found in await each(
            cf.zones.list(name=f"starts_with:{zone.name[:-4]}", status="active")
        )
    ] == [zone.id]
    assert await each(cf.zones.list(name=zone.name, status="pending")) == []
    assert zone.id in {
        found.id
        for found in await each(
            cf.zones.list(account={"id": ACCOUNT}, per_page=5, direction="desc")
        )
    }
    assert (await done(cf.zones.delete(zone_id=zone.id))).id == zone.id
    with pytest.raises(cloudflare.NotFoundError):
        await done(cf.zones.get(zone_id=zone.id))


async def test_waiting_rooms(cf: Any) -> None:
    zone = await new_zone(cf)
    room = await new_room(
        cf,
        zone,
        path="/shop",
        additional_routes=[{"host": f"www.{zone.name}", "path": "/sale"}],
        cookie_attributes={"samesite": "lax", "secure": "always"},
        cookie_suffix="shop",
        custom_page_html="<p>{{waitTime}} minutes, for you & {{^queueAll}}all{{/queueAll}} \u00e9\U0001f600\r\n",
        default_template_language="fr-FR",
        description="the shop",
        disable_session_renewal=True,
        enabled_origin_commands=["revoke"],
        json_response_enabled=True,
        queue_all=True,
        queueing_method="random",
        queueing_status_code=202,
        session_duration=7,
        suspended=True,
        turnstile_action="infinite_queue",
        turnstile_mode="off",
    )
    assert (
        room.custom_page_html
        == "<p>{{waitTime}} minutes, for you & {{^queueAll}}all{{/queueAll}} \u00e9\U0001f600\r\n"
    )
    assert (room.queueing_method, room.queueing_status_code, room.session_duration) == (
        "random",
        202,
        7,
    )
    assert await done(cf.waiting_rooms.get(room.id, zone_id=zone.id)) == room
    again = await done(
        cf.waiting_rooms.edit(room.id, zone_id=zone.id, host=zone.name, name="room", **LIMITS)
    )
    assert again.path == "/shop"
    edited = await done(
        cf.waiting_rooms.edit(
            room.id,
            zone_id=zone.id,
            host=zone.name,
            name="room",
            **{**LIMITS, "total_active_users": 400},
        )
    )
    assert (edited.total_active_users, edited.queueing_method, edited.created_on) == (
        400,
        "random",
        room.created_on,
    )
    plain = await done(
        cf.waiting_rooms.update(room.id, zone_id=zone.id, host=zone.name, name="other", **LIMITS)
    )
    assert (plain.name, plain.path, plain.queueing_method, plain.custom_page_html) == (
        "other",
        "/",
        "fifo",
        "",
    )
    assert (plain.additional_routes, plain.cookie_suffix) == (None, None)
    assert (await done(cf.waiting_rooms.delete(room.id, zone_id=zone.id))).id == room.id
    with pytest.raises(cloudflare.NotFoundError):
        await done(cf.waiting_rooms.get(room.id, zone_id=zone.id))


async def test_listing_rooms_ends_and_misses_none(cf: Any) -> None:
    zone = await new_zone(cf)
    names = [f"room{number}" for number in range(12)]
    for name in names:
        await new_room(cf, zone, name=name, path=f"/{name}")
    assert [room.name for room in await each(cf.waiting_rooms.list(zone_id=zone.id))] == names
    assert [
        room.name for room in await each(cf.waiting_rooms.list(zone_id=zone.id, per_page=5))
    ] == names
    in_account = await each(cf.waiting_rooms.list(account_id=ACCOUNT, per_page=5))
    assert [room.name for room in in_account if room.host == zone.name] == names
    behind = await done(cf.waiting_rooms.list(zone_id=zone.id, page=99, per_page=5))
    assert (behind.result, behind.result_info.page) == ([], 99)


async def test_settings(cf: Any) -> None:
    zone = await new_zone(cf)
    settings = cf.waiting_rooms.settings
    assert (await done(settings.get(zone_id=zone.id))).search_engine_crawler_bypass is False
    assert (
        await done(settings.edit(zone_id=zone.id, search_engine_crawler_bypass=True))
    ).search_engine_crawler_bypass is True
    assert (await done(settings.edit(zone_id=zone.id))).search_engine_crawler_bypass is True
    assert (await done(settings.update(zone_id=zone.id))).search_engine_crawler_bypass is False


async def test_status_and_preview(cf: Any) -> None:
    zone = await new_zone(cf)
    room = await new_room(cf, zone)
    status = await done(cf.waiting_rooms.statuses.get(room.id, zone_id=zone.id))
    assert (status.status, status.event_id) == ("not_queueing", "")
    assert (
        status.estimated_queued_users,
        status.estimated_total_active_users,
        status.max_estimated_time_minutes,
    ) == (0, 0, 0)
    await done(
        cf.waiting_rooms.edit(
            room.id, zone_id=zone.id, host=zone.name, name="room", suspended=True, **LIMITS
        )
    )
    assert (
        await done(cf.waiting_rooms.statuses.get(room.id, zone_id=zone.id))
    ).status == "suspended"
    preview = await done(
        cf.waiting_rooms.page.preview(zone_id=zone.id, custom_html="<p>{{waitTime}}")
    )
    assert preview.preview_url.startswith("http://127.0.0.1:")


async def test_events_and_their_details(cf: Any) -> None:
    zone = await new_zone(cf)
    room = await new_room(cf, zone, session_duration=9, disable_session_renewal=True)
    at = {"waiting_room_id": room.id, "zone_id": zone.id}
    times = {
        "event_start_time": "2021-09-28T15:30:00.000Z",
        "event_end_time": "2021-09-28T17:00:00Z",
    }
    event = await done(
        cf.waiting_rooms.events.create(
            room.id,
            zone_id=zone.id,
            name="sale",
            prequeue_start_time="2021-09-28T15:00:00+00:00",
            shuffle_at_event_start=True,
            **times,
        )
    )
    assert (event.event_start_time, event.event_end_time) == tuple(times.values())
    assert event.prequeue_start_time == "2021-09-28T15:00:00+00:00"
    assert (event.disable_session_renewal, event.queueing_method, event.custom_page_html) == (
        None,
        None,
        None,
    )
    assert await done(cf.waiting_rooms.events.get(event.id, **at)) == event
    edited = await done(
        cf.waiting_rooms.events.edit(
            event.id, **at, name="sale", disable_session_renewal=False, **times
        )
    )
    assert edited.disable_session_renewal is False
    assert edited.shuffle_at_event_start is True
    back = await done(
        cf.waiting_rooms.events.edit(
            event.id, **at, name="sale", disable_session_renewal=None, **times
        )
    )
    assert back.disable_session_renewal is None
    details = await done(cf.waiting_rooms.events.details.get(event.id, **at))
    assert (
        details.session_duration,
        details.disable_session_renewal,
        details.queueing_method,
    ) == (9, True, "fifo")
    await done(
        cf.waiting_rooms.edit(
            room.id,
            zone_id=zone.id,
            host=zone.name,
            name="room",
            queueing_method="random",
            **LIMITS,
        )
    )
    assert (
        await done(cf.waiting_rooms.events.details.get(event.id, **at))
    ).queueing_method == "random"
    plain = await done(cf.waiting_rooms.events.update(event.id, **at, name="plain", **times))
    assert (plain.prequeue_start_time, plain.shuffle_at_event_start, plain.name) == (
        None,
        False,
        "plain",
    )
    assert [
        found.id for found in await each(cf.waiting_rooms.events.list(room.id, zone_id=zone.id))
    ] == [event.id]
    assert (await done(cf.waiting_rooms.events.delete(event.id, **at))).id == event.id
    assert await each(cf.waiting_rooms.events.list(room.id, zone_id=zone.id, per_page=5)) == []


async def test_a_room_tells_its_next_event(cf: Any) -> None:
    zone = await new_zone(cf)
    room = await new_room(cf, zone)
    assert (room.next_event_start_time, room.next_event_prequeue_start_time) == (None, None)
    for name, year in (("later", 2098), ("next", 2097), ("over", 2021)):
        day = f"{year}-01-01T"
        await done(
            cf.waiting_rooms.events.create(
                room.id,
                zone_id=zone.id,
                name=name,
                prequeue_start_time=f"{day}10:00:00Z",
                event_start_time=f"{day}11:00:00Z",
                event_end_time=f"{day}12:00:00Z",
            )
        )
    room = await done(cf.waiting_rooms.get(room.id, zone_id=zone.id))
    assert (room.next_event_prequeue_start_time, room.next_event_start_time) == (
        "2097-01-01T10:00:00Z",
        "2097-01-01T11:00:00Z",
    )


async def test_rules_and_their_order(cf: Any) -> None:
    zone = await new_zone(cf)
    room = await new_room(cf, zone)
    rules, here = cf.waiting_rooms.rules, {"zone_id": zone.id}

    def bypass(word: str) -> dict[str, Any]:
        return {"action": "bypass_waiting_room", "expression": f'http.host eq "{word}"'}

    def order(found: list[Any]) -> str:
        return "".join(rule.expression[-2] for rule in found)

    for word in "abc":
        found = await each(rules.create(room.id, **here, rules=bypass(word)))
    assert (order(found), found[0].enabled, found[0].version) == ("abc", True, "1")
    a, b, c = (rule.id for rule in found)
    moves = [
        (c, {"index": 0}, "cab"),
        (c, {"index": 3}, "abc"),
        (a, {"after": ""}, "bca"),
        (a, {"before": ""}, "abc"),
        (a, {"after": b}, "bac"),
        (c, {"before": b}, "cba"),
    ]
    words = {a: "a", b: "b", c: "c"}
    for rule, position, wanted in moves:
        found = await each(
            rules.edit(
                rule, waiting_room_id=room.id, **here, position=position, **bypass(words[rule])
            )
        )
        assert order(found) == wanted, position
    found = await each(rules.edit(a, waiting_room_id=room.id, **here, enabled=False, **bypass("a")))
    assert next(rule for rule in found if rule.id == a).version == "2"
    found = await each(rules.update(room.id, **here, rules=[bypass("b"), bypass("x")]))
    assert (order(found), found[0].id) == ("bx", b)
    assert order(await each(rules.delete(found[1].id, waiting_room_id=room.id, **here))) == "b"
    assert order(await each(rules.get(room.id, **here))) == "b"
    assert await each(rules.update(room.id, **here, rules=[])) == []


async def test_lists_with_items(cf: Any) -> None:
    lists, here = cf.rules.lists, {"account_id": ACCOUNT}
    name = f"list{next(NUMBERS)}"
    made = await done(lists.create(**here, kind="ip", name=name, description="ours"))
    assert (made.num_items, made.num_referencing_filters) == (0, 0)
    operation = await done(
        lists.items.create(
            made.id,
            **here,
            body=[
                {"ip": "10.0.0.9"},
                {"ip": "2001:DB8::/32", "comment": "six"},
                {"ip": "10.0.0.0/8"},
            ],
        )
    )
    assert (
        await done(lists.bulk_operations.get(operation.operation_id, **here))
    ).status == "completed"
    items = await each(lists.items.list(made.id, **here, per_page=1))
    assert [item.ip for item in items] == ["10.0.0.0/8", "10.0.0.9", "2001:db8::/32"]
    assert [
        item.ip
        for item in await each(lists.items.list(made.id, **here, cursor="zzz", search="10."))
    ] == ["10.0.0.0/8", "10.0.0.9"]
    await done(
        lists.items.create(made.id, **here, body=[{"ip": "10.0.0.9", "comment": "now with one"}])
    )
    item = await done(lists.items.get(items[1].id, **here, list_id=made.id))
    assert (item.id, item.comment) == (items[1].id, "now with one")
    await done(lists.items.delete(made.id, **here, items=[{"id": item.id}]))
    await done(lists.items.update(made.id, **here, body=[{"ip": "192.0.2.1"}]))
    assert [item.ip for item in await each(lists.items.list(made.id, **here))] == ["192.0.2.1"]
    assert (await done(lists.update(made.id, **here, description="theirs"))).description == "theirs"
    assert (await done(lists.get(made.id, **here))).num_items == 1
    assert made.id in {found.id for found in await each(lists.list(**here))}
    await done(lists.items.update(made.id, **here, body=[]))
    assert (await done(lists.delete(made.id, **here))).id == made.id


async def test_lists_of_hosts_and_systems_and_the_rules_that_refer_to_them(cf: Any) -> None:
    lists, here = cf.rules.lists, {"account_id": ACCOUNT}
    zone = await new_zone(cf)
    room = await new_room(cf, zone)
    hosts = await done(lists.create(**here, kind="hostname", name=f"hosts{next(NUMBERS)}"))
    await done(
        lists.items.create(hosts.id, **here, body=[{"hostname": {"url_hostname": "*.example.net"}}])
    )
    (item,) = await each(lists.items.list(hosts.id, **here))
    assert item.hostname.url_hostname == "*.example.net"
    systems = await done(lists.create(**here, kind="asn", name=f"systems{next(NUMBERS)}"))
    await done(lists.items.create(systems.id, **here, body=[{"asn": 64512}, {"asn": 7}]))
    assert [item.asn for item in await each(lists.items.list(systems.id, **here, per_page=1))] == [
        7,
        64512,
    ]
    rule = {
        "action": "bypass_waiting_room",
        "expression": f"http.host in ${hosts.name}",
        "enabled": False,
    }
    await each(cf.waiting_rooms.rules.create(room.id, zone_id=zone.id, rules=rule))
    assert (await done(lists.get(hosts.id, **here))).num_referencing_filters == 1
    with pytest.raises(cloudflare.BadRequestError, match="refers to"):
        await done(lists.delete(hosts.id, **here))
    await each(cf.waiting_rooms.rules.update(room.id, zone_id=zone.id, rules=[]))
    await done(lists.delete(hosts.id, **here))


async def test_the_audit_log_tells_who_changed_what_before_and_after(cf: Any) -> None:
    zone = await new_zone(cf)
    room = await new_room(cf, zone)
    await done(
        cf.waiting_rooms.edit(
            room.id,
            zone_id=zone.id,
            host=zone.name,
            name="room",
            **{**LIMITS, "total_active_users": 400},
        )
    )
    await done(cf.waiting_rooms.delete(room.id, zone_id=zone.id))
    found = [
        entry
        for entry in await each(cf.audit_logs.list(account_id=ACCOUNT, per_page=50))
        if entry.resource.id == room.id
    ]
    assert [entry.action.type for entry in found] == ["removed", "changed", "created"]
    assert all(entry.actor.id.startswith("token sdk (") for entry in found)
    changed = found[1].to_dict()
    assert changed["oldValueJson"] == {"total_active_users": 300}
    assert changed["newValueJson"] == {"total_active_users": 400}
    assert "secret" not in str([entry.to_dict() for entry in found])


def test_older_credentials_are_accepted_only_with_their_address(api) -> None:
    client = api.sdk(api_token=None, api_key=api.token, api_email="owner@example.com")
    assert list(client.zones.list()) is not None
    with pytest.raises(cloudflare.AuthenticationError):
        list(api.sdk(api_token=None, api_key=api.token, api_email="thief@example.com").zones.list())


def test_a_wrong_token_is_an_authentication_error(api) -> None:
    with pytest.raises(cloudflare.AuthenticationError):
        list(api.sdk(api_token="grt_wrong").zones.list())
