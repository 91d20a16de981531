"""The SQL configuration store against a dict: what is written through any process is read the same
by all.
"""

import tempfile
from pathlib import Path

import pytest
from config_material import contents, event, health_check, offers, one_of_each, room, rules, zone
from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from greenroom.configuration import store as store_module
from greenroom.configuration.store import SqlStore
from greenroom.errors import InvalidConfig, RevisionConflict
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import KIND_OF, KINDS, Configuration
from greenroom.model.rule import ListItem, RuleList

IDS = st.sampled_from(["1", "2", "3"])
TEXT = st.sampled_from(["", "a", "b"])
ZONES = IDS.map(lambda n: f"z{n}")
ROOMS = IDS.map(lambda n: f"r{n}")
PUTS = st.one_of(
    st.builds(lambda key, proxied: Put(zone(key, always_use_https=proxied)), ZONES, st.booleans()),
    st.builds(
        lambda key, name, text, above: Put(room(key, name=f"r{name}", description=text), above),
        ROOMS,
        IDS,
        TEXT,
        ZONES,
    ),
    st.builds(
        lambda n, text, above: Put(event(f"e{n}", description=text), above), IDS, TEXT, ROOMS
    ),
    st.builds(
        lambda key, texts: Put(rules(key, *texts), key),
        ROOMS,
        st.lists(st.sampled_from(["x", "y"]), max_size=2),
    ),
    st.builds(lambda key, left: Put(offers(key, left), key), ROOMS, st.sampled_from(["many", "0"])),
    st.builds(
        lambda n, text, above: Put(health_check(f"h{n}", description=text), above), IDS, TEXT, ZONES
    ),
    st.builds(
        lambda n, text: Put(RuleList(id=f"l{n}", name=f"l{n}", kind="ip", description=text)),
        IDS,
        TEXT,
    ),
    st.builds(
        lambda n, value, above: Put(ListItem(id=f"i{n}", value=value), f"l{above}"),
        IDS,
        st.sampled_from("pq"),
        IDS,
    ),
)
REMOVALS = st.builds(
    lambda kind, n: Remove(
        kind,
        {"rules": "r", "offers": "r", "list_item": "i", "health_check": "h"}.get(kind, kind[0]) + n,
    ),
    st.sampled_from(list(KINDS)),
    IDS,
)


class Model:
    """What the store should hold, in the plainest form: {(kind, id): (record, parent)}."""

    def __init__(self) -> None:
        self.revision = 0
        self.held: dict[tuple[str, str], tuple[object, str]] = {}

    def after(self, changes: list) -> dict[tuple[str, str], tuple[object, str]] | type[Exception]:
        held = dict(self.held)
        for change in changes:
            if isinstance(change, Remove):
                if (change.kind, change.id) not in held:
                    return KeyError
                self._remove(held, change.kind, change.id)
                continue
            kind = KIND_OF[type(change.record)]
            if KINDS[kind].parent and (KINDS[kind].parent, change.parent) not in held:
                return KeyError
            held[kind, change.record.id] = (change.record, change.parent)
        names = [
            (kind, parent, getattr(record, "name", None) or getattr(record, "value", key))
            for (kind, key), (record, parent) in held.items()
        ]
        return InvalidConfig if len(set(names)) < len(names) else held

    def _remove(self, held: dict, kind: str, id: str) -> None:
        del held[kind, id]
        for child in [
            key
            for key, (_, parent) in held.items()
            if KINDS[key[0]].parent == kind and parent == id
        ]:
            if child in held:
                self._remove(held, *child)


class ConfigStoreMachine(RuleBasedStateMachine):
    """Several handles on one database, as several processes have them; each reads now and then
    only.
    """

    handles = Bundle("handles")

    @initialize()
    def empty(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'config.db'}"
        self.model = Model()
        self.stores: list[SqlStore] = []
        self.seen: dict[int, Configuration] = {}

    @rule(target=handles)
    def another_process(self) -> SqlStore:
        self.stores.append(SqlStore(self.url))
        return self.stores[-1]

    @rule(store=handles, changes=st.lists(st.one_of(PUTS, REMOVALS), max_size=5))
    def write(self, store: SqlStore, changes: list) -> None:
        wanted = self.model.after(changes)
        if isinstance(wanted, type):
            with pytest.raises(wanted):
                store.write(changes, expected=self.model.revision, author="somebody", now_ms=1)
            return
        after = store.write(changes, expected=self.model.revision, author="somebody", now_ms=1)
        if wanted == self.model.held:
            # saying what is there already makes no revision; taking away and making the same again
            # may
            assert after.revision in (self.model.revision, self.model.revision + 1)
        else:
            assert after.revision == self.model.revision + 1
        self.model.held, self.model.revision = wanted, after.revision
        self._agrees(after)

    @rule(store=handles, behind=st.integers(1, 3))
    def write_on_an_old_revision(self, store: SqlStore, behind: int) -> None:
        with pytest.raises(RevisionConflict):
            store.write(
                [Put(zone("z9"))],
                expected=self.model.revision - behind,
                author="somebody",
                now_ms=1,
            )

    @rule(store=handles)
    def read(self, store: SqlStore) -> None:
        assert store.revision() == self.model.revision
        self._agrees(store.read())

    @rule()
    def read_all_anew(self) -> None:
        """What was put together from changes is what is read at once, order included."""
        fresh = SqlStore(self.url)
        expected = fresh.read()
        for store in self.stores:
            assert list(store.read().entries()) == list(expected.entries())
        fresh.close()

    @invariant()
    def snapshots_never_change(self) -> None:
        for identity, (configuration, held) in list(getattr(self, "kept", {}).items()):
            assert contents(configuration) == held, identity

    def _agrees(self, configuration: Configuration) -> None:
        assert {
            (kind, record.id): (record, parent) for kind, record, parent in contents(configuration)
        } == self.model.held
        self.kept = {
            **getattr(self, "kept", {}),
            configuration.revision: (configuration, contents(configuration)),
        }

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()


ConfigStoreMachine.TestCase.settings = settings(
    max_examples=examples(15),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestTheStoreIsADict = ConfigStoreMachine.TestCase


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'config.db'}"


def test_every_kind_of_record_comes_back_as_it_was_written(url: str) -> None:
    written = one_of_each()
    assert {KIND_OF[type(record)] for record, _ in written} == set(KINDS)
    SqlStore(url).write(
        [Put(record, parent) for record, parent in written], expected=0, author="me", now_ms=7
    )
    found = SqlStore(url).read()
    assert [(record, parent) for _, record, parent in contents(found)] == written
    assert {
        (entry.created_ms, entry.modified_ms, entry.revision) for _, entry in found.entries()
    } == {(7, 7, 1)}


def test_what_did_not_change_is_the_very_same_object_after_a_change(url: str) -> None:
    writer, reader = SqlStore(url), SqlStore(url)
    writer.write(
        [Put(zone()), Put(room("r1"), "z1"), Put(room("r2"), "z1")],
        expected=0,
        author="me",
        now_ms=1,
    )
    before = reader.read()
    writer.write([Put(room("r2", description="new"), "z1")], expected=1, author="me", now_ms=2)
    after = reader.read()
    assert after.zones is before.zones
    assert after.rooms["r1"] is before.rooms["r1"]
    assert after.rooms["r2"].record.description == "new"
    assert (
        after.rooms["r2"].created_ms,
        after.rooms["r2"].modified_ms,
        after.rooms["r2"].revision,
    ) == (1, 2, 2)
    assert reader.read() is after


def test_the_audit_log_says_who_did_what_with_before_and_after_and_no_secret(url: str) -> None:
    store = SqlStore(url)
    store.write(
        [Put(record, parent) for record, parent in one_of_each()],
        expected=0,
        author="first",
        now_ms=1,
    )
    changed = room("r1", name="r1", description="new", custom_page_html="x" * 100_000)
    store.write([Put(changed, "z1")], expected=1, author="second\0" + "x" * 500, now_ms=2)
    store.write([Remove("zone", "z1")], expected=2, author="third", now_ms=3)
    log = store.audit(100)
    assert [entry.number for entry in log] == sorted((entry.number for entry in log), reverse=True)
    assert [(entry.revision, entry.action, entry.kind) for entry in log[:6]] == [
        (3, "removed", "health_check"),
        (3, "removed", "offers"),
        (3, "removed", "rules"),
        (3, "removed", "event"),
        (3, "removed", "room"),
        (3, "removed", "zone"),
    ]
    second = log[6]
    assert (second.author[:8], len(second.author), second.at_ms, second.action, second.name) == (
        "secondxx",
        200,
        2,
        "changed",
        "r1",
    )
    assert second.before["description"] == '"quoted"\n\ttext'
    assert second.after["description"] == "new"
    assert second.after["custom_page_html"]["bytes"] == 100_002
    assert "total_active_users" not in second.after
    token = next(entry for entry in log if entry.kind == "token")
    assert token.before is None
    assert token.after["name"] == "deploy"
    assert "secret_sha256" not in token.after
    assert store.audit(2, before=second.number) == log[7:9]
    assert {entry.kind for entry in store.audit(9, about=("offers", "r1"))} == {"offers"}


def test_a_reader_that_slept_while_the_log_was_shortened_reads_everything(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = SqlStore(url), SqlStore(url)
    writer.write(
        [Put(zone()), Put(room("r1"), "z1"), Put(room("r2"), "z1")],
        expected=0,
        author="me",
        now_ms=1,
    )
    reader.read()
    monkeypatch.setattr(store_module, "AUDIT_KEPT", 2)
    writer.write([Remove("room", "r1")], expected=1, author="me", now_ms=1)
    for revision in range(2, 6):
        writer.write(
            [Put(room("r2", description=str(revision)), "z1")],
            expected=revision,
            author="me",
            now_ms=1,
        )
    assert len(writer.audit(100)) == 2
    assert contents(reader.read()) == contents(writer.read())
    assert list(reader.read().rooms) == ["r2"]


def test_a_process_that_watches_hears_of_writes_that_changed_something(url: str) -> None:
    store, heard = SqlStore(url), []
    store.changes.watch(lambda: heard.append(store.revision()))
    store.write([Put(zone())], expected=0, author="me", now_ms=1)
    store.write([Put(zone())], expected=1, author="me", now_ms=1)
    assert heard == [1]


def test_an_entry_that_cannot_be_understood_is_named(url: str) -> None:
    store = SqlStore(url)
    store.write([Put(zone()), Put(room("r1"), "z1")], expected=0, author="me", now_ms=1)
    with store._engine.begin() as connection:
        connection.exec_driver_sql(
            """UPDATE entries SET body = replace(body, '"session_duration":5', '"session_duration":5000')"""
        )
    found = SqlStore(url).read()
    reason = found.unusable["room", "r1"].record.reason
    assert "session_duration: must be at most 1440 minutes" in reason
    assert found.rooms["r1"].record.queue_all


def test_half_of_a_surrogate_pair_is_no_text_and_a_whole_character_beyond_the_first_plane_is() -> (
    None
):
    with pytest.raises(InvalidConfig, match="description: must be Unicode text"):
        room("r1", description="x\ud800")
    assert room("r1", description="x\U0001f600").description == "x\U0001f600"
