"""The journal of one room that cannot be opened holds that room's visitors; the others go on."""

from config_material import room, zone

from greenroom.configuration.store import SqlStore, default_url
from greenroom.model.change import Put


def shop(name: str) -> Put:
    return Put(room(name, name=name, host=f"{name}.example.com"), "z1")


def test_a_room_whose_journal_cannot_be_opened_is_held_until_it_can(greenroom, origin) -> None:
    rooms = greenroom.data / "rooms"
    rooms.mkdir(parents=True, mode=0o700)
    greenroom.data.chmod(0o700)
    store = SqlStore(default_url(greenroom.data))
    site = Put(zone("z1", name="example.com", origin=origin.url))
    store.write([site, shop("a"), shop("b")], expected=0, author="test", now_ms=1)
    (rooms / "a.journal").write_bytes(b"something else altogether" * 9)
    (rooms / "c.journal").write_bytes(b"something else altogether" * 9)
    edge = greenroom.serve()

    def held(name: str) -> bool:
        return edge.visitor(f"{name}.example.com").get().waiting

    assert (held("a"), held("b")) == (True, False)
    assert "room a: " in edge.ask("/readyz").text
    assert edge.metric("greenroom_config_unusable") == 1
    store.write([shop("c"), shop("d")], expected=1, author="test", now_ms=1)
    greenroom.eventually(
        lambda: edge.metric("greenroom_config_unusable") == 2, "the second is named"
    )
    assert [held(name) for name in "abcd"] == [True, False, True, False]
    (rooms / "a.journal").unlink()
    (rooms / "c.journal").unlink()
    greenroom.eventually(lambda: edge.metric("greenroom_config_unusable") == 0, "tried again")
    assert [held(name) for name in "abcd"] == [False] * 4
