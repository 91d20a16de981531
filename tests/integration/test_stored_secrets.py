"""Secrets of webhooks, PagerDuty services and accounts on disks: sealed, opened where the key is,
and named where it is not.
"""

import asyncio
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from config_material import old_database, one_of_each
from notification_rig import HERE, alert, having, hook, now_ms, policy, running
from receivers import WebReceiver
from store_with_outbox import StoreWithOutbox

from greenroom.alerts.delivery import Delivery
from greenroom.alerts.rules.message import Message
from greenroom.configuration.copy import ConfigCopy
from greenroom.configuration.store import SqlStore, default_url
from greenroom.errors import StorageFailed
from greenroom.keys.sealed_secrets import SECRETS_FILE, SealedSecrets, exchange_secret_keys
from greenroom.model.account import Account
from greenroom.model.change import Put
from greenroom.model.configuration import KIND_OF, SEALED_KINDS, Configuration
from greenroom.model.fields import is_sealed, key_of_sealed
from greenroom.model.notification import PagerdutyService, Webhook
from greenroom.outbound import Guard
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.local_config import config_service_beside
from greenroom.runtime.stored_secrets import keep_sealed, rotate_secrets, seals_of

RECORDS = (
    Webhook(
        id="w1",
        name="Team",
        url="https://hooks.example.com/T0PSECRET-PATH",
        secret="T0PSECRET-WORD",
    ),
    Webhook(id="w2", name="No secret", url="https://hooks.example.com/T0PSECRET-OTHER"),
    PagerdutyService(id="p1", name="On call", routing_key="T0PSECRET-KEY"),
    Account(id="a1", name="ada", two_step_since_ms=1, totp_secret="TOPSECRET"),
)
MARKS = (b"T0PSECRET", b"TOPSECRET")


def store_of(folder: Path, *, keyless: bool = False) -> StoreWithOutbox:
    return StoreWithOutbox(default_url(folder), None if keyless else seals_of(folder))


def filled(folder: Path, *, keyless: bool = False) -> SqlStore:
    store = store_of(folder, keyless=keyless)
    store.write(
        [Put(record) for record in RECORDS], expected=store.read().revision, author="me", now_ms=1
    )
    return store


def records(known: Configuration) -> list[object]:
    return [entry.record for kind, entry in known.entries() if kind in SEALED_KINDS]


def secrets_on_disk(folder: Path) -> list[str]:
    """Files of a folder with a secret in them that anyone can read."""
    return [
        path.name for path in folder.iterdir() if any(mark in path.read_bytes() for mark in MARKS)
    ]


def keys_in_use(folder: Path) -> set[str]:
    """Ids of the keys that secrets in the store of this folder are sealed with; what is not sealed
    has the key `none`.
    """
    store = SqlStore(default_url(folder))
    found = records(store.read())
    store.close()
    texts = [
        getattr(record, name) for record in found for name in SEALED_KINDS[KIND_OF[type(record)]]
    ]
    return {key_of_sealed(text) if is_sealed(text) else "none" for text in texts if text}


def test_what_is_sealed_is_a_secret_and_every_secret_that_is_no_hash_is_sealed() -> None:
    assert SEALED_KINDS == {
        "webhook": ("url", "secret"),
        "pagerduty_service": ("routing_key",),
        "account": ("totp_secret",),
    }


def test_no_secret_is_readable_in_the_store_or_its_copy_and_all_are_there_again(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    ConfigCopy(tmp_path / "copy", seals_of(tmp_path)).save(store.read())
    assert secrets_on_disk(tmp_path) == []
    assert records(store.read()) == records(store_of(tmp_path).read()) == list(RECORDS)
    copied = ConfigCopy(tmp_path / "copy", seals_of(tmp_path)).load()
    assert copied is not None
    assert records(copied) == list(RECORDS)
    store.write([Put(replace(RECORDS[0], name="Renamed"))], expected=1, author="me", now_ms=2)
    assert records(store_of(tmp_path).read())[0] == replace(RECORDS[0], name="Renamed")
    assert secrets_on_disk(tmp_path) == []


def test_what_an_older_greenroom_stored_is_sealed_once_and_leaves_no_trace(tmp_path: Path) -> None:
    store = filled(tmp_path, keyless=True)
    store.close()
    assert secrets_on_disk(tmp_path) != []
    sealing = store_of(tmp_path)
    assert [sealing.seal_stored() for _ in range(2)] == [(4, 0), (0, 0)]
    assert secrets_on_disk(tmp_path) == []
    assert records(store_of(tmp_path).read()) == list(RECORDS)
    assert (sealing.revision(), len(sealing.audit(100))) == (1, 4), (
        "the configuration has not changed"
    )


@pytest.mark.parametrize("version", ["0002", "0004"])
def test_stores_of_older_versions_are_sealed_as_they_are(version: str, tmp_path: Path) -> None:
    before = SqlStore(old_database(version, tmp_path)).read()
    sealed, unreadable = store_of(tmp_path).seal_stored()
    assert (sealed > 0, unreadable) == (True, 0)
    assert records(store_of(tmp_path).read()) == records(before)
    assert "none" not in keys_in_use(tmp_path)


def test_a_machine_without_the_key_says_so_loses_nothing_and_reads_when_the_key_comes(
    tmp_path: Path,
) -> None:
    filled(tmp_path)
    (tmp_path / SECRETS_FILE).rename(tmp_path / "elsewhere")
    store = store_of(tmp_path)
    known = store.read()
    assert all(is_sealed(record.url) for record in records(known) if isinstance(record, Webhook))
    assert store.seal_stored() == (0, 4)
    store.write(
        [Put(replace(known.webhooks["w1"].record, name="Renamed"))],
        expected=1,
        author="me",
        now_ms=2,
    )
    assert store.read() is store.read()
    (tmp_path / "elsewhere").rename(tmp_path / SECRETS_FILE)
    found = records(store.read())
    assert found == [replace(RECORDS[0], name="Renamed"), *RECORDS[1:]]
    assert store.read().revision == 2


def test_machines_that_exchange_keys_read_each_others_secrets(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    shared = SqlStore(default_url(tmp_path), seals_of(one))
    shared.write([Put(record) for record in RECORDS], expected=0, author="me", now_ms=1)
    other = SqlStore(default_url(tmp_path), seals_of(two))
    assert records(other.read()) != list(RECORDS)
    exchange_secret_keys(two, exchange_secret_keys(one, []))
    assert records(other.read()) == list(RECORDS)


def test_the_key_is_replaced_while_a_greenroom_runs(tmp_path: Path) -> None:
    running_store = filled(tmp_path)
    old = keys_in_use(tmp_path)
    assert rotate_secrets(tmp_path, None).endswith("4 records sealed with it")
    new = keys_in_use(tmp_path)
    assert (len(new), new & (old | {"none"})) == (1, set())
    assert records(running_store.read()) == records(store_of(tmp_path).read()) == list(RECORDS)
    running_store.write([Put(replace(RECORDS[1], name="Later"))], expected=1, author="me", now_ms=2)
    assert keys_in_use(tmp_path) == new


def test_a_rotation_names_what_it_could_not_read_and_leaves_it(tmp_path: Path) -> None:
    filled(tmp_path)
    lost = keys_in_use(tmp_path)
    (tmp_path / SECRETS_FILE).unlink()
    with pytest.raises(CannotStart, match="set the data directory of greenroom with --data"):
        rotate_secrets(tmp_path, None)
    SealedSecrets(tmp_path, lambda: 1).rotate()
    assert "4 could not be read with the keys of" in rotate_secrets(tmp_path, None)
    assert keys_in_use(tmp_path) == lost


@pytest.mark.parametrize("other", ["w2", "p1"])
def test_a_sealed_secret_opens_in_its_own_place_only(other: str, tmp_path: Path) -> None:
    filled(tmp_path).close()
    with sqlite3.connect(tmp_path / "config.db") as connection:
        (body,) = connection.execute("SELECT body FROM entries WHERE id = 'w1'").fetchone()
        field = {"w2": "url", "p1": "routing_key"}[other]
        connection.execute(
            f"UPDATE entries SET body = json_set(body, '$.{field}', json_extract(?, '$.secret')) WHERE id = ?",
            (body, other),
        )
    found = next(
        record
        for record in records(store_of(tmp_path).read())
        if getattr(record, "id", "") == other
    )
    assert is_sealed(getattr(found, field))


def test_nothing_is_stored_when_it_cannot_be_sealed(tmp_path: Path) -> None:
    store = filled(tmp_path)
    (tmp_path / SECRETS_FILE).write_text("no keys")
    with pytest.raises(StorageFailed, match=r"secrets cannot be sealed: .*is not valid JSON"):
        store.write([Put(replace(RECORDS[0], secret="another"))], expected=1, author="me", now_ms=2)
    assert store.revision() == 1
    store.write([Put(one_of_each()[0][0])], expected=1, author="me", now_ms=3)
    assert store.revision() == 2, "what has no secrets needs no key"


def test_a_restored_database_needs_its_key_file_and_nothing_else(tmp_path: Path) -> None:
    filled(tmp_path / "old").close()
    copied = tmp_path / "new"
    copied.mkdir()
    shutil.copy(tmp_path / "old" / "config.db", copied)
    assert records(store_of(copied).read()) != list(RECORDS)
    shutil.copy(tmp_path / "old" / SECRETS_FILE, copied)
    assert records(store_of(copied).read()) == list(RECORDS)


def test_a_command_on_another_machine_stores_secrets_for_a_process_to_seal(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    SealedSecrets(mine, lambda: 1).rotate()
    url = default_url(theirs)
    with config_service_beside(None, url) as elsewhere:
        elsewhere.store.write([Put(RECORDS[0])], expected=0, author="me", now_ms=1)
    with config_service_beside(tmp_path / "empty", url) as elsewhere:
        elsewhere.store.write([Put(RECORDS[1])], expected=1, author="me", now_ms=1)
    assert records(SqlStore(url).read()) == list(RECORDS[:2])
    with config_service_beside(mine, url) as here:
        here.store.write([Put(RECORDS[2])], expected=2, author="me", now_ms=1)
    assert is_sealed(SqlStore(url).read().pagerduty_services["p1"].record.routing_key)

    async def story() -> None:
        sealing = asyncio.create_task(keep_sealed(SqlStore(url, seals_of(mine))))
        while "none" in keys_in_use(theirs):
            assert not sealing.done(), sealing.exception()
            await asyncio.sleep(0.01)  # it seals in a thread
        sealing.cancel()

    asyncio.run(asyncio.wait_for(story(), 60))
    assert records(SqlStore(url, seals_of(mine)).read()) == list(RECORDS[:3])


def test_an_alert_waits_while_the_key_is_missing_and_arrives_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.alerts.rules.outbox.FIRST_MS", 100)
    web = WebReceiver()
    store = store_of(tmp_path)
    having(store, hook(web.url), policy(webhook_ids=("w1",)))
    store.close()
    (tmp_path / SECRETS_FILE).rename(tmp_path / "elsewhere")
    store = store_of(tmp_path)
    problem = asyncio.run(
        Delivery(Guard(HERE), now_ms).call(store.read().webhooks["w1"].record, Message(None))
    ).problem
    assert "is not in secrets.json of this machine: restore that file" in problem
    store.outbox.put([alert(1)], now_ms())
    try:
        running(store, lambda: store.outbox.states().get("webhook:w1", (None, None))[1] is not None)
        assert web.taken == []
        (tmp_path / "elsewhere").rename(tmp_path / SECRETS_FILE)
        running(store, lambda: bool(web.taken))
    finally:
        web.close()
        store.close()
