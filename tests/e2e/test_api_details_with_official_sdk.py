"""Details that official clients rely on, new and old ones: what they ask first, what they send for
fields that are not set.
"""

import itertools
from typing import Any

import cloudflare
import httpx
import pytest
from api_rig import ACCOUNT, Api, create_token

NUMBERS = itertools.count()
LIMITS = {"new_users_per_minute": 200, "total_active_users": 300}
CONFIG = """
origin = "http://127.0.0.1:9"
[[rooms]]
name = "of-the-file"
host = "elsewhere.example.org"
total_active_users = 1
new_users_per_minute = 1
"""


@pytest.fixture(scope="module")
def api(shared_greenroom) -> Api:
    running = shared_greenroom.config(CONFIG)
    return Api(
        running.control,
        create_token(
            shared_greenroom.data, "details", "--scope", "edit", "--email", "owner@example.com"
        ),
    )


@pytest.fixture
def cf(api: Api) -> cloudflare.Cloudflare:
    return api.sdk()


@pytest.fixture
def zone(cf: cloudflare.Cloudflare) -> Any:
    return cf.zones.create(
        account={"id": ACCOUNT}, name=f"details{next(NUMBERS)}.example.com", type="full"
    )


def raw(
    cf: cloudflare.Cloudflare,
    method: str,
    path: str,
    document: Any = None,
    content: bytes | None = None,
) -> httpx.Response:
    """A request as an older client writes it."""
    headers = {"Authorization": f"Bearer {cf.api_token}", "Content-Type": "application/json"}
    sent = (
        {"content": content}
        if content is not None
        else {"json": document}
        if document is not None
        else {}
    )
    return httpx.request(method, f"{str(cf.base_url).rstrip('/')}{path}", headers=headers, **sent)


def test_the_account_is_found_and_the_token_verified(cf, api, shared_greenroom) -> None:
    (account,) = cf.accounts.list()
    assert (account.id, account.type) == (ACCOUNT, "standard")
    assert cf.accounts.get(account_id=ACCOUNT).name == account.name
    with pytest.raises(cloudflare.NotFoundError):
        cf.accounts.get(account_id="f" * 32)
    assert cf.user.tokens.verify().status == "active"
    for scope in ("read", "analytics", "probe"):
        token = create_token(shared_greenroom.data, f"only-{scope}", "--scope", scope)
        assert Api(api.address, token).sdk().user.tokens.verify().id
    with pytest.raises(cloudflare.APIStatusError) as wrong:
        Api(api.address, "grt_" + "x" * 43).sdk().user.tokens.verify()
    assert wrong.value.status_code in (401, 403)


def test_what_is_about_dns_is_accepted_and_ignored(cf, zone) -> None:
    edited = cf.zones.edit(
        zone_id=zone.id, vanity_name_servers=["ns1.example.com", "ns2.example.com"]
    )
    assert edited == zone.model_copy(update={"modified_on": edited.modified_on})
    made = raw(
        cf,
        "POST",
        "/zones",
        {
            "name": f"jump{next(NUMBERS)}.example.com",
            "jump_start": True,
            "account": {"id": ACCOUNT},
        },
    )
    assert made.status_code == 200, made.text
    assert (
        raw(cf, "PATCH", f"/zones/{zone.id}", {"vanity_name_servers": "ns1"}).status_code == 200
    ), "nothing looks at what is ignored"


def test_zero_values_of_older_clients_mean_the_default(cf, zone) -> None:
    sent = {
        "name": "zeros",
        "host": zone.name,
        "path": "",
        "queueing_status_code": 0,
        "custom_page_html": "",
        "cookie_suffix": "",
        **LIMITS,
    }
    made = raw(cf, "POST", f"/zones/{zone.id}/waiting_rooms", sent)
    assert made.status_code == 200, made.text
    room = cf.waiting_rooms.get(zone_id=zone.id, waiting_room_id=made.json()["result"]["id"])
    assert (room.path, room.queueing_status_code) == ("/", 200)
    edited = raw(
        cf,
        "PATCH",
        f"/zones/{zone.id}/waiting_rooms/{room.id}",
        {"path": "", "queueing_status_code": 0},
    )
    assert edited.status_code == 200, edited.text
    rule = {"action": "bypass_waiting_room", "expression": "ssl", "enabled": None}
    made = raw(cf, "POST", f"/zones/{zone.id}/waiting_rooms/{room.id}/rules", rule)
    assert made.status_code == 200, made.text
    assert made.json()["result"][0]["enabled"] is True
    for wrong in (
        {"queueing_status_code": False},
        {"queueing_status_code": 1},
        {"session_duration": 0},
    ):
        assert (
            raw(cf, "PATCH", f"/zones/{zone.id}/waiting_rooms/{room.id}", wrong).status_code == 400
        ), wrong


def test_deleting_no_items_deletes_nothing_and_is_an_operation(cf) -> None:
    kept = cf.rules.lists.create(account_id=ACCOUNT, kind="ip", name=f"kept{next(NUMBERS)}")
    cf.rules.lists.items.create(kept.id, account_id=ACCOUNT, body=[{"ip": "10.0.0.1"}])
    assert cf.rules.lists.items.delete(kept.id, account_id=ACCOUNT).operation_id
    for content in (b"", b"{}", b'{"items": []}'):
        done = raw(
            cf, "DELETE", f"/accounts/{ACCOUNT}/rules/lists/{kept.id}/items", content=content
        )
        assert done.json()["result"]["operation_id"], done.text
    assert [item.ip for item in cf.rules.lists.items.list(kept.id, account_id=ACCOUNT)] == [
        "10.0.0.1"
    ]
    assert (
        raw(
            cf, "DELETE", f"/accounts/{ACCOUNT}/rules/lists/{kept.id}/items", content=b"[]"
        ).status_code
        == 400
    )


def test_a_room_may_cover_every_host_below_a_name_of_its_zone(cf, zone) -> None:
    room = cf.waiting_rooms.create(zone_id=zone.id, host=f"*.{zone.name}", name="below", **LIMITS)
    assert room.host == f"*.{zone.name}"
    with pytest.raises(cloudflare.BadRequestError, match="already belongs"):
        cf.waiting_rooms.create(
            zone_id=zone.id, host=f"*.{zone.name}", name="again", cookie_suffix="x", **LIMITS
        )
    for host in ("*", "*.example.net", "*.com"):
        with pytest.raises(cloudflare.BadRequestError, match="must be"):
            cf.waiting_rooms.create(zone_id=zone.id, host=host, name="outside", **LIMITS)


def test_nothing_is_made_in_the_zone_of_the_file(cf) -> None:
    (file,) = [zone for zone in cf.zones.list() if zone.model_extra["greenroom"]["read_only"]]
    for path, document in (
        (
            "waiting_rooms",
            {"name": "new", "host": "elsewhere.example.org", "path": "/new", **LIMITS},
        ),
        ("healthchecks", {"name": "new", "address": "elsewhere.example.org"}),
    ):
        refused = raw(cf, "POST", f"/zones/{file.id}/{path}", document)
        assert 400 <= refused.status_code < 500, refused.text
        assert "configuration file" in refused.json()["errors"][0]["message"]
