"""`greenroom keys`: replaces the keys of tickets, and the key of the secrets in the configuration
store.
"""

import typer

from greenroom.cli.show import complain, say
from greenroom.cli.tokens import CANNOT_START, ExistingDataOption, ExistingStoreOption
from greenroom.config.load import default_data
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.runtime.data_dir import CannotStart

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
