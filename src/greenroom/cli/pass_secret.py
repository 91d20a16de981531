"""`greenroom pass-secret`: the secret with which nginx verifies the native passes of one room."""

from pathlib import Path
from typing import Annotated

import typer

from greenroom.cli.show import complain, say
from greenroom.decision.native_pass import PassKeys

REFUSED = 1


def pass_secret(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The secret_file of [native_pass].", show_default=False
        ),
    ],
    room: Annotated[
        str, typer.Argument(metavar="ROOM", help="Name of the room.", show_default=False)
    ],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Path of the room.")] = "/",
) -> None:
    """Print the secret with which nginx verifies the native passes (secure_link) of one room."""
    try:
        secret = file.read_text("latin-1").strip()
        if not secret:
            raise ValueError("the file is empty")
        say(PassKeys(secret).link_secret(room, path).decode())
    except (OSError, ValueError) as error:
        complain(f"greenroom: {file}: {error.strerror if isinstance(error, OSError) else error}")
        raise typer.Exit(REFUSED) from None
