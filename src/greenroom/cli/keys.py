"""`greenroom keys`: replaces the keys of tickets, and the key of the secrets in the configuration
store.
"""

from pathlib import Path
from typing import Annotated

import typer

from greenroom.cli.show import complain, say
from greenroom.cli.tokens import CANNOT_START, ExistingDataOption, ExistingStoreOption
from greenroom.config_file.load import default_data
from greenroom.decision.native_pass import PassKeys
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.runtime.data_dir import CannotStart

# `greenroom pass-secret`: the secret with which nginx verifies the native passes of one room.

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


keys = typer.Typer(
    name="keys",
    help="Manage the keys that seal visitors' tickets and stored secrets.",
    no_args_is_help=True,
)


@keys.command("rotate")
def rotate(data: ExistingDataOption = None) -> None:
    """Create a new key for tickets. Tickets sealed with the old key stay valid; a running greenroom
    loads the new key by itself.
    """
    from greenroom.runtime.serve import rotate_keys

    try:
        say(rotate_keys(data or default_data()))
    except (CannotStart, StorageFailed, InvalidConfig, RuntimeError) as error:
        _stop(error)


@keys.command("rotate-secrets")
def rotate_secrets(data: ExistingDataOption = None, store: ExistingStoreOption = None) -> None:
    """Create a new key for the secrets in the configuration store, and seal them with it. A running
    greenroom goes on.

    Older keys stay in secrets.json, because a restored copy of the database needs them.
    """
    from greenroom.runtime.stored_secrets import rotate_secrets

    try:
        say(rotate_secrets(data or default_data(), store))
    except (CannotStart, StorageFailed, InvalidConfig, RuntimeError) as error:
        _stop(error)


def _stop(error: Exception) -> None:
    complain(f"greenroom: {error}")
    raise typer.Exit(CANNOT_START) from None
