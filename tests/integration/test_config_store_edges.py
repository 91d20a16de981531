"""What is changed in the store is live at every edge, what broke goes on with the last good
configuration, also over a restart.
"""

import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from api_rig import ACCOUNT, Api, create_token
from config_material import event, room, rules, zone
from postgres import PASSWORD

from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.change import Put, Remove
from greenroom.model.rule import ListItem, RuleList
from greenroom.runtime.reload import POLL_S

HELD = {"total_active_users": 200, "new_users_per_minute": 200, "queue_all": True}
FILE_ROOM = '[[rooms]]\nname = "fromfile"\nhost = "file.example.com"\ntotal_active_users = 10\nnew_users_per_minute = 10\nqueue_all = true\n'


class Writer:
    """Another process that changes the configuration."""

    def __init__(self, url: str) -> None:
        self.store = SqlStore(url)

    def write(self, *changes: object) -> int:
        return self.store.write(
            list(changes), expected=self.store.revision(), author="test", now_ms=1
        ).revision


@pytest.fixture
def writer(greenroom) -> Writer:
    """Changes the store of this test's data directory."""
    greenroom.data.mkdir(mode=0o700)
    return Writer(default_url(greenroom.data))


def site(origin) -> Put:
    return Put(zone("z1", name="example.com", origin=origin.url))


def shop(**more) -> Put:
    return Put(room("r1", name="shop", host="shop.example.com", **{**HELD, **more}), "z1")


def held(running, host: str = "shop.example.com") -> bool:
    return running.visitor(host).get().waiting


class Edges:
    """Edge processes, and what is to become of them."""

    def __init__(self, greenroom) -> None:
        self.greenroom = greenroom

    def taken_over(self, running, revision: int) -> None:
        """Returns when this revision runs."""
        self.greenroom.eventually(
            lambda: running.metric("greenroom_config_store_revision") == revision,
            lambda: f"revision {revision}:\n{running.output}",
        )

    def until(self, running, metric: str, value: float) -> None:
        """Returns when a metric has this value."""
        self.greenroom.eventually(
            lambda: running.metric(metric) == value, lambda: f"{metric} {value}:\n{running.output}"
        )


@pytest.fixture
def edges(greenroom) -> Edges:
    return Edges(greenroom)


def test_a_change_counts_in_every_edge_process_soon_and_without_an_error(
    greenroom, edges, origin, writer, tmp_path: Path
) -> None:
    writer.write(site(origin), shop(queue_all=False))
    url = default_url(greenroom.data)
    both = [greenroom.serve(), greenroom.serve("--data", str(tmp_path / "other"), "--store", url)]
    assert [held(edge) for edge in both] == [False, False]
    begun = time.monotonic()
    writer.write(shop())
    greenroom.eventually(lambda: all(held(edge) for edge in both), "the change at both")
    print(f"visible after {time.monotonic() - begun:.2f} s")
    writer.write(Remove("room", "r1"))
    greenroom.eventually(lambda: not any(held(edge) for edge in both), "the room is gone at both")
    assert POLL_S <= 0.5
    assert [edge.metric("greenroom_config_store_taken_total") for edge in both] == [2, 2]


@pytest.fixture(scope="module")
def live(shared_greenroom):
    """One edge for several tests, each with a zone of its own, and someone who changes its store."""
    shared_greenroom.data.mkdir(mode=0o700)
    writer = Writer(default_url(shared_greenroom.data))
    edge = shared_greenroom.serve()

    def change(*changes: object) -> None:
        Edges(shared_greenroom).taken_over(edge, writer.write(*changes))

    return edge, change


def in_zone(origin, name: str, **more) -> list[Put]:
    """A zone with one room, which holds everybody."""
    return [
        Put(zone(name, name=f"{name}.org", origin=origin.url)),
        Put(room(name, host=f"shop.{name}.org", **{**HELD, **more}), name),
    ]


def test_a_host_that_no_zone_covers_is_not_served(origin, live) -> None:
    edge, change = live
    change(*in_zone(origin, "covered"))
    assert not edge.visitor("any.covered.org").get().waiting
    assert edge.visitor("elsewhere.net").get().status == 421


def test_each_zone_has_its_own_origin_and_a_paused_one_holds_no_visitor(origin, live) -> None:
    edge, change = live
    inner = [
        Put(zone("in", name="in.around.org")),
        Put(room("in", host="in.around.org", **HELD), "in"),
    ]
    change(*in_zone(origin, "around"), *inner)
    assert held(edge, "shop.around.org")
    assert held(edge, "in.around.org")
    change(Put(zone("around", name="around.org", origin=origin.url, paused=True)))
    assert not held(edge, "shop.around.org")
    assert held(edge, "in.around.org"), "another zone"


def test_rules_and_lists_of_the_store_count(origin, live) -> None:
    edge, change = live
    office = [
        Put(RuleList(id="l1", name="office", kind="ip")),
        Put(ListItem(id="i1", value="203.0.113.9"), "l1"),
    ]
    change(*in_zone(origin, "ruled"), *office, Put(rules("ruled", "ip.src in $office"), "ruled"))
    assert held(edge, "shop.ruled.org")
    change(Put(ListItem(id="i2", value="127.0.0.0/8"), "l1"))
    assert not held(edge, "shop.ruled.org")


def test_a_change_to_one_room_leaves_the_visitors_of_another_where_they_are(origin, live) -> None:
    edge, change = live
    one = {"total_active_users": 1, "new_users_per_minute": 10, "queue_all": False}
    change(*in_zone(origin, "quiet", **one), *in_zone(origin, "changing"))
    inside, late = edge.visitor("shop.quiet.org"), edge.visitor("shop.quiet.org")
    assert not inside.get().waiting
    assert late.get().waiting
    change(*in_zone(origin, "changing", description="new"))
    assert not inside.get().waiting
    assert late.get().waiting


def test_a_rule_that_cannot_be_used_is_left_out_and_named_and_the_rest_of_the_revision_counts(
    origin, live
) -> None:
    edge, change = live
    change(*in_zone(origin, "broken"))
    change(
        *in_zone(origin, "broken", queue_all=False),
        Put(rules("broken", "http.nonsense eq 1"), "broken"),
    )
    assert not held(edge, "shop.broken.org")
    assert edge.metric("greenroom_config_unusable") == 1
    assert "room broken" in str(edge.status()["unusable"])
    change(Put(rules("broken", 'http.host eq "x"'), "broken"))
    assert edge.metric("greenroom_config_unusable") == 0
    assert edge.status()["unusable"] == []


OPEN = {"total_active_users": 200, "new_users_per_minute": 200}
TWO_PATHS = [
    Put(room(name, host="www.two.org", path=f"/{name}", **OPEN), "two") for name in ("one", "two")
]
FOLDING = {"greenroom": {"case_insensitive_paths": True}}
NEXT_DOOR = Put(room("next", host="next.org", **OPEN), "next")


def two_zones(origin, **more) -> list[Put]:
    """A zone with two rooms that share a cookie once paths are matched without regard to case, and
    a zone beside it.
    """
    zones = [zone("two", name="two.org", **more), zone("next", name="next.org")]
    return [*(Put(replace(one, origin=origin.url)) for one in zones), *TWO_PATHS, NEXT_DOOR]


def test_a_change_that_processes_could_not_use_is_refused_and_the_next_one_counts(
    greenroom, origin, writer
) -> None:
    writer.write(*two_zones(origin))
    edge = greenroom.serve()
    tokens = [
        create_token(greenroom.data, name, "--scope", "edit", "--zone", f"{name}.org")
        for name in ("two", "next")
    ]
    two, beside = (Api(edge.control, token) for token in tokens)
    refused = two.ask("PATCH", "/zones/two", FOLDING)
    assert (refused.status, refused.pointers) == (400, {"/greenroom/case_insensitive_paths"})
    assert "room two: cookie_suffix" in refused.body["errors"][0]["message"]
    assert beside.ask("PATCH", "/zones/next/waiting_rooms/next", {"queue_all": True}).status == 200
    greenroom.eventually(lambda: held(edge, "next.org"), "the change of the zone beside")
    two.ask("PATCH", "/zones/two/waiting_rooms/two", {"cookie_suffix": "two"})
    assert two.ask("PATCH", "/zones/two", FOLDING).status == 200
    third = {"name": "three", "host": "www.two.org", "path": "/three", **OPEN}
    refused = two.ask("POST", "/zones/two/waiting_rooms", third)
    assert (refused.status, refused.pointers) == (400, {"/cookie_suffix"})
    greenroom.eventually(lambda: edge.metric("greenroom_config_unusable") == 0, "all is in use")


def test_a_room_that_cannot_be_used_holds_its_visitors_and_stops_nothing_else_also_after_a_restart(
    greenroom, edges, origin, writer
) -> None:
    writer.write(*two_zones(origin))
    edge = greenroom.serve()
    edges.taken_over(edge, writer.write(*two_zones(origin, case_insensitive_paths=True)))

    def as_it_should_be(running) -> bool:
        first, second = (
            running.visitor("www.two.org").get(path).waiting for path in ("/one", "/two")
        )
        return (first, second) == (False, True)

    assert as_it_should_be(edge)
    edges.taken_over(edge, writer.write(Put(replace(NEXT_DOOR.record, queue_all=True), "next")))
    assert held(edge, "next.org")
    assert edge.metric("greenroom_config_unusable") == 1
    said = edge.ask("/readyz")
    assert said.status == 200
    assert said.text.startswith("serving\ncannot be used: room two: cookie_suffix: must differ")
    edge.wait_until_printed("config_parts_unusable")
    edge.stop()
    (greenroom.data / "config.last-good").unlink()
    again = greenroom.serve()
    assert as_it_should_be(again)
    assert held(again, "next.org")
    edges.taken_over(
        again, writer.write(Put(replace(TWO_PATHS[1].record, cookie_suffix="two"), "two"))
    )
    assert not again.visitor("www.two.org").get("/two").waiting
    assert again.metric("greenroom_config_unusable") == 0


def test_rooms_of_the_file_and_of_the_api_live_together_and_those_of_the_file_are_read_only(
    greenroom, edges, origin
) -> None:
    edge = greenroom.config(f'origin = "{origin.url}"\n{FILE_ROOM}')
    api = Api(edge.control, create_token(greenroom.data, "all", "--scope", "edit"))
    zones = api.ask("GET", "/zones").result
    assert [(found["name"], found["greenroom"]["read_only"]) for found in zones] == [("file", True)]
    new = api.ask("POST", "/zones", {"name": "example.com"}).result["id"]
    made = api.ask(
        "POST",
        f"/zones/{new}/waiting_rooms",
        {
            "name": "shop",
            "host": "shop.example.com",
            "total_active_users": 200,
            "new_users_per_minute": 200,
            "queue_all": True,
        },
    )
    assert made.status == 200
    greenroom.eventually(lambda: held(edge), "the room made by the API")
    assert held(edge, "file.example.com")
    rooms = {found["name"]: found for found in api.ask("GET", f"/zones/{new}/waiting_rooms").result}
    assert {name: found["greenroom"]["read_only"] for name, found in rooms.items()} == {
        "fromfile": True,
        "shop": False,
    }
    path = f"/zones/{new}/waiting_rooms/{rooms['fromfile']['id']}"
    assert api.ask("PATCH", path, {"queue_all": False}).status == 403
    assert api.ask("DELETE", path).status == 403
    taken = api.ask(
        "POST",
        f"/zones/{new}/waiting_rooms",
        {
            "name": "x",
            "host": "file.example.com",
            "total_active_users": 200,
            "new_users_per_minute": 200,
        },
    )
    assert taken.status == 400
    assert "belongs to waiting room fromfile" in taken.body["errors"][0]["message"]


def test_a_file_that_clashes_with_the_store_is_refused_and_taken_once_the_way_is_clear(
    greenroom, edges, origin, writer
) -> None:
    writer.write(site(origin), shop())
    edge = greenroom.config(f'origin = "{origin.url}"\n{FILE_ROOM}')
    clash = FILE_ROOM.replace("file.example.com", "shop.example.com")
    (greenroom.folder / "greenroom.toml").write_text(f'origin = "{origin.url}"\n{clash}')
    edge.wait_until_printed("shop.example.com/ already belongs to waiting room fromfile")
    assert held(edge, "file.example.com"), "the last good file goes on"
    writer.write(Remove("room", "r1"))
    edges.until(edge, "greenroom_config_valid", 1)
    greenroom.eventually(
        lambda: not held(edge, "file.example.com") and held(edge), "the file counts"
    )


def test_an_edge_cut_off_from_the_store_keeps_its_configuration_also_over_a_restart(
    greenroom, edges, origin, postgres
) -> None:
    url = postgres.new_database()
    writer = Writer(url)
    revision = writer.write(site(origin), shop())
    first = greenroom.serve("--store", url)
    assert held(first)
    postgres.stop()
    try:
        edges.until(first, "greenroom_config_store_reachable", 0)
        assert held(first)
        assert first.stop() == 0
        second = greenroom.serve("--store", url)
        assert held(second)
        assert second.status()["config_store"]["from_copy"] is True
        assert second.metric("greenroom_config_store_revision") == revision
        assert PASSWORD not in second.output + first.output
        nowhere = greenroom.serve(
            "--store", url, "--data", str(greenroom.folder / "new"), ready=False
        )
        assert nowhere.end() == 2
        assert "Connection refused" in nowhere.output or "connection failed" in nowhere.output
    finally:
        postgres.start()
    writer.write(shop(queue_all=False))
    greenroom.eventually(lambda: not held(second), "what changed meanwhile")
    assert second.metric("greenroom_config_store_reachable") == 1
    assert second.status()["config_store"]["from_copy"] is False


def test_a_store_of_a_newer_greenroom_is_refused_at_the_start_even_with_a_copy(
    greenroom, edges, origin, writer
) -> None:
    writer.write(site(origin), shop())
    edge = greenroom.serve()
    with writer.store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert held(edge), "one that runs goes on"
    edge.stop()
    refused = greenroom.serve(ready=False)
    assert refused.end() == 2
    assert (
        "was written by a newer greenroom (tables of version 9999; this one knows up to"
        in refused.output
    )


def test_a_damaged_store_in_the_data_directory_is_survived_by_a_restart(
    greenroom, edges, origin, writer
) -> None:
    writer.write(site(origin), shop())
    edge = greenroom.serve()
    assert held(edge)
    edge.stop()
    writer.store.close()
    for path in greenroom.data.glob("config.db*"):
        path.unlink()
    (greenroom.data / "config.db").write_bytes(b"garbage" * 1000)
    again = greenroom.serve()
    assert held(again)
    assert again.metric("greenroom_config_store_reachable") == 0


def test_records_that_cannot_be_read_stop_nothing_else_and_can_be_put_right(
    greenroom, edges, origin, writer
) -> None:
    writer.write(
        site(origin),
        shop(queue_all=False),
        Put(
            room("r2", name="other", host="other.example.com", **{**HELD, "queue_all": False}), "z1"
        ),
        Put(event("e1"), "r2"),
    )
    edge = greenroom.serve()
    edge.stop()
    (greenroom.data / "config.last-good").unlink()
    damage(greenroom.data / "config.db", "UPDATE entries SET body = '{' WHERE id = 'e1'")
    damage(
        greenroom.data / "config.db",
        "UPDATE entries SET body = replace(body, '\"fifo\"', '\"newer\"') WHERE id = 'r1'",
    )
    again = greenroom.serve()
    assert held(again)
    assert not held(again, "other.example.com")
    assert again.metric("greenroom_config_unusable") == 2
    said = again.ask("/readyz")
    assert said.status == 200
    assert "room shop (r1): queueing_method" in said.text
    assert "event e1: cannot be understood as it is stored" in said.text
    api = Api(again.control, create_token(greenroom.data, "all", "--scope", "edit"))
    listed = f"/accounts/{ACCOUNT}/unusable_records"
    assert {found["id"] for found in api.ask("GET", listed).result} == {"r1", "e1"}
    assert api.ask("DELETE", f"{listed}/room/r2").status == 404
    assert api.ask("DELETE", f"{listed}/event/e1").result == {"id": "e1"}
    limits = {"total_active_users": 200, "new_users_per_minute": 200}
    whole = {"name": "shop", "host": "shop.example.com", **limits}
    assert not api.ask("PUT", "/zones/z1/waiting_rooms/r1", whole).result["queue_all"]
    assert api.ask("GET", listed).result == []
    edges.until(again, "greenroom_config_unusable", 0)
    assert not held(again)
    again.stop()
    (greenroom.data / "config.last-good").unlink()
    assert not held(greenroom.serve())


def damage(database: Path, statement: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(statement)
