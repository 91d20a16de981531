"""A draw can be checked by anyone, every change to it is found, and it favours no one."""

import json
from copy import deepcopy
from functools import cache
from math import sqrt
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from greenroom.admission.draw import (
    Drawn,
    ScheduledDraw,
    blinded,
    entries,
    hold,
    receipt,
)
from greenroom.cli import app, verify_draw
from greenroom.model.visit import make_key

RECEIPTS = 10_000
START_MS = 1_790_000_000_000
APPOINTMENT = ScheduledDraw("room", "sale", START_MS - 3_600_000, START_MS)
SEED = bytes(range(32))


def tickets(count: int, seed: int = 1) -> list[bytes]:
    """Ids as they are drawn, in the order of arrival."""
    draw = Random(seed)
    return [draw.randbytes(12) for _ in range(count)]


@cache
def published() -> str:
    return msgspec.json.encode(
        hold(
            APPOINTMENT,
            SEED,
            entries(APPOINTMENT.draw_id, tickets(RECEIPTS)),
            "shop",
            "spring_sale",
        )
    ).decode()


def fresh() -> dict:
    return json.loads(published())


def found(draw: dict, commitment: str = "") -> list[str]:
    return list(verify_draw.problems(draw, commitment))


def test_ten_thousand_shuffled_receipts_are_verified_by_the_other_program() -> None:
    draw = fresh()
    assert len(draw["receipts"]) == RECEIPTS
    assert found(draw, draw["commitment"]) == []
    order = {
        one: verify_draw.place(draw, receipt(draw["draw"], one)) for one in tickets(RECEIPTS)[::500]
    }
    drawn = Drawn(msgspec.json.decode(published(), type=type(hold(APPOINTMENT, SEED, [], "", ""))))
    assert order == {one: drawn.place(one) for one in order}
    assert all(order.values())


@pytest.mark.parametrize(
    "change",
    [
        "swap neighbours",
        "swap far",
        "drop",
        "add",
        "double",
        "other receipt",
        "other seed",
        "other commitment",
        "other seed with its commitment",
        "other list hash",
        "other event",
        "other time",
        "not even a seed",
    ],
)
@pytest.mark.parametrize("at", [0, 4_321, RECEIPTS - 2])
def test_any_change_made_in_a_published_draw_is_found(change: str, at: int) -> None:
    draw = deepcopy(fresh())
    promised, receipts, other = (
        draw["commitment"],
        draw["receipts"],
        hold(APPOINTMENT, bytes(32), entries(APPOINTMENT.draw_id, tickets(3)), "", ""),
    )
    match change:
        case "swap neighbours":
            receipts[at], receipts[at + 1] = receipts[at + 1], receipts[at]
        case "swap far":
            receipts[at], receipts[at - 777] = receipts[at - 777], receipts[at]
        case "drop":
            del receipts[at]
        case "add":
            receipts.insert(at, blinded("0" * 32))
        case "double":
            receipts.insert(at, receipts[at])
        case "other receipt":
            receipts[at] = blinded("0" * 32)
        case "other seed":
            draw["seed"] = other.seed
        case "other commitment":
            draw["commitment"] = other.commitment
        case "other seed with its commitment":
            draw |= {"seed": other.seed, "commitment": other.commitment}
        case "other list hash":
            draw["list_hash"] = other.list_hash
        case "other event":
            draw["event_id"] = "another"
        case "other time":
            draw["event_start_ms"] += 1
        case "not even a seed":
            draw["seed"] = "zz"
    assert found(draw, promised)


def test_a_whole_draw_held_again_with_another_list_fits_itself_and_still_not_what_visitors_noted() -> (
    None
):
    """Dropping someone and drawing again is found by anyone who knows the place or finds no
    receipt, and moves everybody.
    """
    again = json.loads(
        msgspec.json.encode(
            hold(APPOINTMENT, SEED, entries(APPOINTMENT.draw_id, tickets(RECEIPTS)[1:]), "", "")
        )
    )
    assert found(again, fresh()["commitment"]) == []
    mine = receipt(again["draw"], tickets(RECEIPTS)[0])
    assert verify_draw.place(again, mine) == 0
    moved = sum(
        1 for one in tickets(RECEIPTS)[1:200] if place_in(again, one) != place_in(fresh(), one)
    )
    assert moved > 190


def place_in(draw: dict, ticket_id: bytes) -> int:
    return verify_draw.place(draw, receipt(draw["draw"], ticket_id))


def chi_square(order: list[int], cells: int) -> float:
    """Of arrival against place, both cut into as many equal parts."""
    counts = [[0] * cells for _ in range(cells)]
    for place, arrived in enumerate(order):
        counts[arrived * cells // len(order)][place * cells // len(order)] += 1
    expected = len(order) / cells**2
    return sum((count - expected) ** 2 / expected for row in counts for count in row)


def test_chi_square_shows_no_bias_by_arrival() -> None:
    """Twenty draws of 10,000 in 10 x 10 cells: 81 degrees of freedom each, so the sum has mean
    1,620 and deviation 57.
    """
    came = {
        blinded(receipt(APPOINTMENT.draw_id, one)): number
        for number, one in enumerate(tickets(RECEIPTS))
    }
    ids, total, degrees = tickets(RECEIPTS), 0.0, 20 * 81
    for number in range(20):
        draw = hold(
            APPOINTMENT, number.to_bytes(32, "big"), entries(APPOINTMENT.draw_id, ids), "", ""
        )
        total += chi_square([came[one] for one in draw.receipts], 10)
    assert abs(total - degrees) < 4 * sqrt(2 * degrees)


def test_chi_square_finds_a_small_favour_for_early_comers() -> None:
    """The check above can fail: one visitor in twenty is moved up by a tenth of the line."""
    draw, total, degrees = Random(5), 0.0, 20 * 81
    for _ in range(20):
        order = sorted(
            range(RECEIPTS), key=lambda number: draw.random() - (0.1 if number < 500 else 0)
        )
        total += chi_square(order, 10)
    assert total - degrees > 4 * sqrt(2 * degrees)


@given(
    st.lists(st.binary(min_size=12, max_size=12), unique=True, max_size=60),
    st.binary(min_size=32, max_size=32),
    st.randoms(),
)
def test_the_order_hangs_on_who_takes_part_and_the_seed_and_on_nothing_else(
    ids: list[bytes], seed: bytes, draw: Random
) -> None:
    first = hold(APPOINTMENT, seed, entries(APPOINTMENT.draw_id, ids), "", "")
    draw.shuffle(ids)
    assert (
        hold(APPOINTMENT, seed, entries(APPOINTMENT.draw_id, ids), "other", "names").receipts
        == first.receipts
    )
    assert (
        list(verify_draw.problems(json.loads(msgspec.json.encode(first)), first.commitment)) == []
    )


@given(
    st.lists(st.binary(min_size=12, max_size=12), unique=True, min_size=1, max_size=60),
    st.integers(0, 59),
    st.integers(1, 10**9),
)
def test_the_drawn_stand_in_their_order_before_a_visitor_who_was_absent_and_these_before_a_visitor_who_came_later(
    ids: list[bytes], absent: int, later_ms: int
) -> None:
    present, away = ids[absent:], ids[:absent]
    drawn = Drawn(hold(APPOINTMENT, SEED, entries(APPOINTMENT.draw_id, present), "", ""))
    keys = {
        one: drawn.key(one, make_key(START_MS - 60_000, number)) for number, one in enumerate(ids)
    }
    assert sorted(present, key=keys.__getitem__) == sorted(present, key=drawn.place)
    assert all(keys[one] < make_key(START_MS, 0) for one in present)
    assert all(make_key(START_MS, 0) <= keys[one] < make_key(START_MS + 1, 0) for one in away)
    assert all(drawn.key(one, keys[one]) == keys[one] for one in ids)
    later = make_key(START_MS + later_ms, 0)
    assert drawn.key(ids[0], later) == later
    moved = bytes(12)  # an id that took no part, with the key of one who did
    assert [drawn.key(moved, keys[one]) for one in present] == [keys[one] for one in present]


def test_the_command_says_what_fits_and_what_place_a_receipt_drew(tmp_path: Path) -> None:
    draw = fresh()
    file, saved = tmp_path / "draw.json", tmp_path / "receipt.json"
    file.write_text(published())
    mine = receipt(draw["draw"], tickets(RECEIPTS)[7])
    saved.write_text(
        json.dumps(
            {
                "format": "greenroom-receipt-1",
                "draw": draw["draw"],
                "receipt": mine,
                "commitment": draw["commitment"],
            }
        )
    )
    run = CliRunner().invoke
    place = verify_draw.place(draw, mine)
    for given_receipt in (mine, str(saved)):
        answer = run(app, ["verify-draw", str(file), "--receipt", given_receipt])
        assert answer.exit_code == 0
        assert f"place {place} of {RECEIPTS}" in answer.output
    assert run(app, ["verify-draw", str(file), "--commitment", "0" * 64]).exit_code == 1
    assert run(app, ["verify-draw", str(file), "--receipt", "0" * 32]).exit_code == 1
    assert run(app, ["verify-draw", str(saved)]).exit_code == 2
    draw["receipts"].reverse()
    file.write_text(json.dumps(draw))
    assert "the order does not follow from the seed" in run(app, ["verify-draw", str(file)]).stderr
