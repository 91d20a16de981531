"""The key of stored secrets: made once for all processes of a data directory, private, and never
replaced.
"""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.keys.key_file import KEYS_MAX
from greenroom.keys.sealed_secrets import SECRETS_FILE, SealedSecrets, exchange_secret_keys

NOW = 1_790_000_000_000


def box(data: Path, now_ms: int = NOW) -> SealedSecrets:
    return SealedSecrets(data, lambda: now_ms)


def test_what_is_sealed_is_opened_for_its_owner_only_and_hides_its_content(tmp_path: Path) -> None:
    sealed = box(tmp_path).seal("MZXW6YTB", "ada")
    assert "MZXW6YTB" not in sealed
    assert sealed != box(tmp_path).seal("MZXW6YTB", "ada")
    assert box(tmp_path).open(sealed, "ada") == "MZXW6YTB"
    with pytest.raises(StorageFailed, match="belongs to another record"):
        box(tmp_path).open(sealed, "eve")
    with pytest.raises(StorageFailed, match="damaged"):
        box(tmp_path).open(sealed[:-6] + "AAAAAA", "ada")
    assert stat.S_IMODE((tmp_path / SECRETS_FILE).stat().st_mode) == 0o600


def test_looking_makes_no_key(tmp_path: Path) -> None:
    assert box(tmp_path).open("MZXW6YTB", "ada") == "MZXW6YTB"
    assert exchange_secret_keys(tmp_path, []) == []
    assert list(tmp_path.iterdir()) == []


def test_a_lost_key_is_named_and_a_damaged_file_is_left_as_it_is(tmp_path: Path) -> None:
    sealed = box(tmp_path / "one").seal("MZXW6YTB", "ada")
    with pytest.raises(
        StorageFailed, match=f"key {sealed.split(':')[1]}, which is not in .*{SECRETS_FILE}"
    ):
        box(tmp_path / "two").open(sealed, "ada")
    (tmp_path / "one" / SECRETS_FILE).write_text("no keys")
    with pytest.raises(InvalidConfig, match="is not valid JSON"):
        box(tmp_path / "one").seal("MZXW6YTB", "ada")
    assert (tmp_path / "one" / SECRETS_FILE).read_text() == "no keys"


def test_of_many_at_once_one_makes_the_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        sealed = list(
            pool.map(lambda number: box(tmp_path, NOW + number).seal("MZXW6YTB", "ada"), range(32))
        )
    assert len({one.split(":")[1] for one in sealed}) == 1


def test_machines_that_each_made_a_key_open_what_the_other_one_sealed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    sealed = [box(one).seal("ONE", "ada"), box(two, NOW + 1).seal("TWO", "ada")]
    rows = exchange_secret_keys(two, [*exchange_secret_keys(one, []), "no row", {}])
    assert exchange_secret_keys(one, rows) == rows
    assert [box(data).open(text, "ada") for data in (one, two) for text in sealed] == [
        "ONE",
        "TWO",
    ] * 2
    assert (
        box(one).seal("X", "ada").split(":")[1]
        == box(two).seal("X", "ada").split(":")[1]
        == rows[-1]["id"]
    )


def test_a_new_key_seals_from_now_on_and_the_others_still_open(tmp_path: Path) -> None:
    running = box(tmp_path)
    before = running.seal("MZXW6YTB", "ada")
    made = [
        box(tmp_path).rotate(),
        box(tmp_path).rotate(),
    ]  # within one millisecond, as far as the clock tells
    after = running.seal("MZXW6YTB", "ada")
    assert (after.split(":")[1], before.split(":")[1] in made) == (made[1], False)
    assert running.open(before, "ada") == running.open(after, "ada") == "MZXW6YTB"


def test_of_too_many_keys_the_oldest_goes_but_for_the_one_that_names_are_derived_from(
    tmp_path: Path,
) -> None:
    made = [box(tmp_path).rotate()]
    derived = box(tmp_path).derived("names")
    made += [box(tmp_path).rotate() for _ in range(KEYS_MAX + 1)]
    kept = [row["id"] for row in exchange_secret_keys(tmp_path, [])]
    assert kept == [made[0], *made[3:]]
    assert box(tmp_path).derived("names") == derived


def test_machines_with_more_keys_than_one_may_have_keep_the_same_ones(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for number in range(KEYS_MAX):
        box(one, NOW + 2 * number).rotate()
        box(two, NOW + 2 * number + 1).rotate()
    newest = box(one, NOW + 10 * KEYS_MAX).rotate()
    sealed = box(one).seal("MZXW6YTB", "ada")
    rows = exchange_secret_keys(two, exchange_secret_keys(one, exchange_secret_keys(two, [])))
    assert (len(rows), rows[-1]["id"]) == (KEYS_MAX, newest)
    assert exchange_secret_keys(one, rows) == rows
    assert box(two).open(sealed, "ada") == "MZXW6YTB"


def test_strange_keys_never_push_the_own_one_out(tmp_path: Path) -> None:
    sealed = box(tmp_path).seal("MZXW6YTB", "ada")
    strange = [
        {"id": f"{number:012x}", "secret": "11" * 32, "created_ms": 0, "active_ms": 0}
        for number in range(2 * KEYS_MAX)
    ]
    assert len(exchange_secret_keys(tmp_path, strange)) == KEYS_MAX
    assert box(tmp_path).open(sealed, "ada") == "MZXW6YTB"
