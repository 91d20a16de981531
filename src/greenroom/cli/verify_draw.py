"""Verifies a published draw with only hashlib and json, and shares no code with the draw itself.

It follows the published description (docs/explanation/fair-draw.md) and is meant to be read: people
who doubt the waiting room should not have to trust its code. HMAC is written out for the same
reason.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from greenroom.cli.show import complain, say

WRONG, NO_DRAW = 1, 2
"""Exit codes: something does not fit; there is nothing to check."""

TEXTS = ("draw", "room_id", "event_id", "commitment", "seed", "list_hash")
TIMES = ("prequeue_start_ms", "event_start_ms")
FILE_MAX = 1 << 30


class NotADraw(Exception):
    """What was given is no draw (or no receipt) at all."""


def verify_draw(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The published draw.", show_default=False)
    ],
    receipt: Annotated[
        str,
        typer.Option(
            metavar="RECEIPT",
            help="Your receipt, or the .json file it was saved in: show the place it drew.",
        ),
    ] = "",
    commitment: Annotated[
        str,
        typer.Option(
            metavar="HASH",
            help="The commitment (fingerprint) shown before the draw; a saved receipt contains it.",
        ),
    ] = "",
) -> None:
    """Verify a published draw: its seed matches the commitment, its list is the closed list, and
    its order follows from both.
    """
    try:
        draw = read_draw(file)
        mine, noted, saved_for = read_receipt(receipt) if receipt else ("", "", "")
    except NotADraw as error:
        complain(f"greenroom: {error}")
        raise typer.Exit(NO_DRAW) from None
    found = list(problems(draw, commitment or noted))
    if saved_for and saved_for != draw["draw"]:
        found.append("the receipt belongs to another draw")
    drawn = place(draw, mine) if mine else 0
    if mine and not drawn:
        found.append(f"the receipt {mine} is not in the list")
    for problem in found:
        complain(f"WRONG: {problem}")
    if found:
        raise typer.Exit(WRONG)
    say(
        f"valid: {len(draw['receipts'])} receipts are in the order given by the seed, and the seed"
        " matches the commitment"
    )
    say(f"commitment {draw['commitment']}")
    if mine:
        say(f"your receipt drew place {drawn} of {len(draw['receipts'])}")
    elif not (commitment or noted):
        say(
            "compare the commitment with the one you were shown before the draw, or pass it with"
            " --commitment"
        )


def read_draw(path: Path) -> dict[str, Any]:
    """A published file. Raises NotADraw."""
    draw = _read(path)
    receipts = draw.get("receipts")
    odd = [name for name in TEXTS if not isinstance(draw.get(name), str)] + [
        name for name in TIMES if type(draw.get(name)) is not int
    ]
    if draw.get("format") != "greenroom-draw-1" or odd:
        raise NotADraw(
            f"{path} is not a draw published by greenroom"
            + (f": {', '.join(odd)} missing or of the wrong type" if odd else "")
        )
    if not isinstance(receipts, list) or not all(isinstance(one, str) for one in receipts):
        raise NotADraw(f"{path}: receipts must be a list of strings")
    return draw


def read_receipt(given: str) -> tuple[str, str, str]:
    """(receipt, commitment, draw id) of a saved receipt file, or of a bare receipt (then the others
    are empty). Raises NotADraw.
    """
    if not given.endswith(".json"):
        return given.strip().lower(), "", ""
    saved = _read(Path(given))
    found = [saved.get(name) for name in ("receipt", "commitment", "draw")]
    if saved.get("format") != "greenroom-receipt-1" or not all(
        isinstance(one, str) for one in found
    ):
        raise NotADraw(f"{given} is not a receipt issued by greenroom")
    return str(found[0]), str(found[1]), str(found[2])


def problems(draw: dict[str, Any], commitment: str = "") -> Iterator[str]:
    """Everything that is not as it must be. `commitment` is what the visitor wrote down before the
    draw; empty: nothing.
    """
    names = [str(draw[name]) for name in ("room_id", "event_id", *TIMES)]
    if _hash("draw", *names)[:32] != draw["draw"]:
        yield "the draw id does not match this room, event and times"
    if _hash("seed", draw["draw"], draw["seed"]) != draw["commitment"]:
        yield "the seed does not match the commitment"
    if commitment and commitment.strip().lower() != draw["commitment"]:
        yield "the commitment in the file differs from the one shown before the draw"
    receipts = draw["receipts"]
    if len(set(receipts)) != len(receipts):
        yield "a receipt is listed twice"
    if _hash("list", draw["draw"], "\n".join(sorted(receipts))) != draw["list_hash"]:
        yield "the receipts differ from the closed list: the hash of the list does not match"
    try:
        seed = bytes.fromhex(draw["seed"])
    except ValueError:
        yield "the seed is not hexadecimal"
        return
    if receipts != sorted(
        receipts, key=lambda one: _hmac(seed, f"{draw['list_hash']}:{one}".encode())
    ):
        yield "the order does not follow from the seed"


def place(draw: dict[str, Any], receipt: str) -> int:
    """Where this receipt stands, 1 is first; 0: nowhere."""
    blinded = _hash("receipt", receipt)
    return draw["receipts"].index(blinded) + 1 if blinded in draw["receipts"] else 0


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(FILE_MAX))
    except OSError as error:
        raise NotADraw(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise NotADraw(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotADraw(f"{path} is not a JSON object")
    return found


def _hash(kind: str, *parts: str) -> str:
    return sha256(":".join(("greenroom " + kind, *parts)).encode()).hexdigest()


def _hmac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA-256 of RFC 2104."""
    block = (sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return sha256(bytes(byte ^ 0x5C for byte in block) + inner).digest()
