"""The configuration store on real databases: two writers, kill -9, a database of another version,
old data brought forward.
"""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from config_material import contents, old_database, one_of_each, room, rules, zone
from postgres import PASSWORD, Postgres

from greenroom.configuration.store import SqlStore, default_url
from greenroom.database import migrate
from greenroom.database.engine import transaction
from greenroom.database.migrate import VERSIONS
from greenroom.database.tables import metadata
from greenroom.errors import InvalidConfig, RevisionConflict, StorageFailed, TooNew
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import KINDS

ROUNDS = 12


def test_every_kind_of_record_comes_back_as_it_was_written(url: str) -> None:
    written = one_of_each()
    store = SqlStore(url)
    store.write(
        [Put(record, parent) for record, parent in written], expected=0, author="me", now_ms=7
    )
    store.write(
        [Put(room("r1", description="é\0\U0001f600"), "z1"), Remove("event", "e1")],
        expected=1,
        author="me",
        now_ms=8,
    )
    fresh = SqlStore(url).read()
    assert list(fresh.entries()) == list(store.read().entries())
    assert fresh.rooms["r1"].record.description == "é\0\U0001f600"
    assert [entry.action for entry in store.audit(2)] == ["removed", "changed"]
    assert [(entry.kind, entry.id) for entry in store.audit(9, removed_from="r1")] == [
        ("event", "e1")
    ]
    assert store.audit(9, removed_from="z1") == []
    store.close()


@pytest.mark.parametrize("by_steps", [True, False])
def test_the_tables_are_those_described_whether_made_at_once_or_step_by_step(
    by_steps: bool, url: str
) -> None:
    store = SqlStore(url)
    if by_steps:
        with store._engine.begin() as connection:
            migrate.run_steps(connection, VERSIONS[-1])
    store.prepare()
    with store._engine.connect() as connection:
        found = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}), metadata
        )
        assert connection.exec_driver_sql("SELECT * FROM state").all() == [(1, 0, 0)]
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").all() == [
            (VERSIONS[-1],)
        ]
    assert [step for step in found if step[1].name != "alembic_version"] == []
    assert store.write([Put(zone())], expected=0, author="me", now_ms=1).revision == 1
    store.close()


def test_the_files_of_the_store_are_their_owners_alone(tmp_path: Path) -> None:
    store = SqlStore(default_url(tmp_path))
    store.write([Put(zone())], expected=0, author="me", now_ms=1)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {"0o600"}, modes


def test_of_two_writers_at_once_one_gets_a_clear_conflict(url: str) -> None:
    first, second = SqlStore(url), SqlStore(url)
    first.write([Put(zone())], expected=0, author="first", now_ms=1)
    known = second.read()
    first.write([Put(room("r1"), "z1")], expected=known.revision, author="first", now_ms=2)
    with pytest.raises(
        RevisionConflict, match="has changed since it was read: revision 2, not 1"
    ) as caught:
        second.write([Put(room("r2"), "z1")], expected=known.revision, author="second", now_ms=2)
    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert list(second.read().rooms) == ["r1"]
    for store in (first, second):
        store.close()


def test_writers_that_read_again_after_a_conflict_lose_nothing(url: str) -> None:
    """Four of them count up one number, each from what it read: every step is there."""
    SqlStore(url).write(
        [Put(zone()), Put(room("r1", total_active_users=1), "z1")],
        expected=0,
        author="me",
        now_ms=1,
    )
    conflicts, begin = [], threading.Barrier(4)

    def count_up() -> None:
        store = SqlStore(url)
        begin.wait()
        for _ in range(10):
            while True:
                known = store.read()
                users = known.rooms["r1"].record.total_active_users + 1
                try:
                    store.write(
                        [Put(room("r1", total_active_users=users), "z1")],
                        expected=known.revision,
                        author="me",
                        now_ms=1,
                    )
                    break
                except RevisionConflict as conflict:
                    conflicts.append(conflict)
        store.close()

    writers = [threading.Thread(target=count_up) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = SqlStore(url).read()
    assert found.rooms["r1"].record.total_active_users == 41
    assert found.revision == 41


def test_processes_that_start_together_make_the_tables_once(url: str) -> None:
    begin, failed = threading.Barrier(4), []

    def start() -> None:
        store = SqlStore(url)
        begin.wait()
        try:
            assert store.read().revision == 0
        except BaseException as error:
            failed.append(error)
        store.close()

    starters = [threading.Thread(target=start) for _ in range(4)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    assert failed == []


def test_a_start_waits_while_another_process_makes_the_file(tmp_path: Path) -> None:
    """SQLite refuses the change to WAL at once, regardless of its busy timeout, while another
    connection writes to a file that is new.
    """
    path = tmp_path / "config.db"
    with contextlib.closing(
        sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE half_made (id INTEGER)")
        done = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        done.start()
        try:
            assert SqlStore(f"sqlite:///{path}").read().revision == 0
        finally:
            done.join()


def batch(number: int) -> list[Put]:
    """Forty rooms that all say the same number."""
    return [Put(room(f"r{n}", description=f"{number}" * 200), "z1") for n in range(40)]


def writes_for_ever(url: str, pipe: int) -> None:
    """Tells each revision down the pipe once it is acknowledged."""
    store = SqlStore(url)
    while True:
        revision = store.read().revision
        done = store.write(batch(revision), expected=revision, author="me", now_ms=1).revision
        os.write(pipe, done.to_bytes(4, "big"))


def killed_while_writing(url: str, after_s: float) -> int:
    """The last revision that a process acknowledged before it was killed at an instant of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            writes_for_ever(url, writing)
        os._exit(1)
    os.close(writing)
    told = os.read(reading, 4)
    threading.Event().wait(after_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as rest:
        told += rest.read()
    return int.from_bytes(told[-4:], "big")


def test_kill_9_in_the_middle_of_a_write_leaves_one_revision_whole(tmp_path: Path) -> None:
    url, seed = default_url(tmp_path), random.Random(4)
    SqlStore(url).write([Put(zone()), *batch(0)], expected=0, author="me", now_ms=1)
    for _ in range(ROUNDS):
        acknowledged = killed_while_writing(url, seed.uniform(0, 0.05))
        store = SqlStore(url)
        found = store.read()
        assert found.revision in (acknowledged, acknowledged + 1), (
            "an acknowledged revision is missing"
        )
        assert {entry.record.description for entry in found.rooms.values()} == {
            f"{found.revision - 1}" * 200
        }, "half a write"
        assert len({entry.revision for entry in store.audit(40)}) == 1
        store.close()


def test_a_database_of_a_newer_greenroom_is_refused_and_not_touched(url: str) -> None:
    store = SqlStore(url)
    store.write([Put(zone())], expected=0, author="me", now_ms=1)
    with store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        TooNew, match=r"written by a newer greenroom \(tables of version 9999; this one knows up to"
    ):
        SqlStore(url).read()
    with store._engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{VERSIONS[-1]}'")
    assert len(SqlStore(url).read().zones) == 1
    store.close()


KINDS_SINCE = {
    "0001": {
        "health_check",
        "webhook",
        "pagerduty_service",
        "alert_policy",
        "silence",
        "incident_note",
        "status_page",
        "account",
        "operation",
        "offers",
    },
    "0002": {"status_page", "account", "operation", "offers"},
    "0003": {"status_page", "operation", "offers"},
    "0004": {"status_page", "operation", "offers"},
}
"""Kinds that the greenroom of that version did not know yet."""


@pytest.mark.parametrize("version", VERSIONS)
def test_data_of_every_version_there_was_is_brought_forward(version: str, tmp_path: Path) -> None:
    store = SqlStore(old_database(version, tmp_path))
    found = store.read()
    assert found.revision == 3
    assert {kind for kind, _, _ in contents(found)} == set(KINDS) - KINDS_SINCE[version]
    assert found.rooms["r1"].record.custom_page_html == "<h1>{{waitTime}} — ünïcödé</h1>"
    assert found.events["e1"].record.disable_session_renewal is False
    assert [rule.expression for rule in found.rules["r1"].record.rules] == [
        'http.host eq "a"',
        "ip.src in $office",
    ]
    assert [entry.author for entry in store.audit(100)][-1] == "token deploy (t1)"
    store.write([Put(room("r9"), "z1")], expected=3, author="me", now_ms=1)
    assert list(SqlStore(default_url(tmp_path)).read().rooms) == ["r1", "r9"]
    store.close()


LATER = '''"""A step as a later version may have one."""

import sqlalchemy as sa
from alembic import op

revision = "later"
down_revision = "{newest}"


def upgrade() -> None:
    op.add_column("audit", sa.Column("address", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE entries SET body = replace(body, 'first', 'second') WHERE kind = 'zone'")
    {more}
'''


def with_a_later_step(monkeypatch: pytest.MonkeyPatch, folder: Path, more: str = "") -> None:
    shutil.copytree(migrate._FOLDER, folder / "migrations")
    (folder / "migrations" / "versions" / "later.py").write_text(
        LATER.format(newest=VERSIONS[-1], more=more)
    )
    monkeypatch.setattr(migrate, "_FOLDER", folder / "migrations")
    monkeypatch.setattr(migrate, "VERSIONS", (*VERSIONS, "later"))
    monkeypatch.setattr("greenroom.configuration.store.VERSIONS", (*VERSIONS, "later"))
    monkeypatch.setattr(migrate, "NEWEST", "later")


def test_a_step_forward_runs_on_the_data_that_is_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqlStore(url).write(
        [Put(zone(name="first.example")), Put(room("r1"), "z1")], expected=0, author="me", now_ms=1
    )
    with_a_later_step(monkeypatch, tmp_path)
    store = SqlStore(url)
    found = store.read()
    assert [entry.record.name for entry in found.zones.values()] == ["second.example"]
    assert store.write([Remove("room", "r1")], expected=1, author="me", now_ms=1).revision == 2
    monkeypatch.undo()
    with pytest.raises(TooNew):
        SqlStore(url).read()
    store.close()


def test_a_step_that_fails_leaves_everything_as_it_was(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqlStore(url).write([Put(zone(name="first.example"))], expected=0, author="me", now_ms=1)
    with_a_later_step(monkeypatch, tmp_path, 'op.execute("SELECT nonsense FROM nowhere")')
    with pytest.raises(StorageFailed, match="nowhere"):
        SqlStore(url).read()
    monkeypatch.undo()
    assert [entry.record.name for entry in SqlStore(url).read().zones.values()] == ["first.example"]


def test_a_server_that_went_away_is_told_without_the_password_and_used_again_when_it_is_back(
    postgres: Postgres,
) -> None:
    url = postgres.new_database()
    store = SqlStore(url)
    store.write([Put(zone())], expected=0, author="me", now_ms=1)
    postgres.stop()
    try:
        for ask in (
            store.revision,
            store.read,
            lambda: store.write([Put(zone("z2"))], expected=1, author="me", now_ms=1),
        ):
            with pytest.raises(StorageFailed) as caught:
                ask()
            assert PASSWORD not in str(caught.value)
            assert "greenroom:***@127.0.0.1" in str(caught.value)
    finally:
        postgres.start()
    assert store.write([Put(zone("z2"))], expected=1, author="me", now_ms=1).revision == 2
    store.close()


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageFailed, match=r"config\.db: file is not a database"):
        SqlStore(default_url(tmp_path)).read()


@pytest.mark.parametrize(
    "written", ["nonsense", "mysql://a/b", "sqlite://", "sqlite:///:memory:", ""]
)
def test_an_address_that_is_not_from_here_is_refused(written: str) -> None:
    with pytest.raises(InvalidConfig, match="store: must"):
        SqlStore(written)


def test_rules_are_kept_in_their_order(url: str) -> None:
    store = SqlStore(url)
    store.write(
        [Put(zone()), Put(room("r1"), "z1"), Put(rules("r1", "c", "a", "b"), "r1")],
        expected=0,
        author="me",
        now_ms=1,
    )
    assert [rule.expression for rule in SqlStore(url).read().rules["r1"].record.rules] == [
        "c",
        "a",
        "b",
    ]
    store.close()


OTHER_PROCESS = """
import sys
from greenroom.model.change import Put
from greenroom.model.account import Token
from greenroom.configuration.store import SqlStore
store = SqlStore(sys.argv[1])
token = Token(id=sys.argv[2], name=sys.argv[2], scopes=("read",), zone_ids=(), secret_sha256="a" * 64)
store.write([Put(token)], expected=store.read().revision, author="other", now_ms=1)
store.close()
"""


def test_what_another_process_writes_is_read_however_many_connections_this_one_opens(
    tmp_path: Path,
) -> None:
    """Closing a descriptor of the file would drop this process's locks: the other one would then
    remove the log that is read here.
    """
    url = f"sqlite:///{tmp_path / 'config.db'}"
    store = SqlStore(url)
    try:
        store.read()
        for number in range(3):
            with (
                transaction(store._engine, writes=False) as one,
                transaction(store._engine, writes=False) as two,
            ):
                assert one is not two
                for connection in (one, two):
                    connection.exec_driver_sql("SELECT 1")
            subprocess.run([sys.executable, "-c", OTHER_PROCESS, url, f"t{number}"], check=True)
            assert store.read().revision == number + 1
    finally:
        store.close()
