"""`greenroom token`: manages tokens for the management API."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from greenroom.cli.serving_options import DATA_HELP, STORE_HELP
from greenroom.cli.show import complain, complain_in_lines, say
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.model.account import SCOPES

tokens = typer.Typer(
    name="token", help="Manage tokens for the management API.", no_args_is_help=True
)

REFUSED, CANNOT_START = 1, 2

ExistingDataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help=DATA_HELP,
    ),
]
ExistingStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="GREENROOM_STORE",
        help=STORE_HELP,
    ),
]


@tokens.command("create")
def create(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the token: what it is for.", show_default=False
        ),
    ],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help=f"{', '.join(SCOPES)}; may be given more than once (default: read).",
        ),
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZONE",
            help=(
                "Id or name of a zone that the token is valid for (default: all zones and the"
                " account)."
            ),
        ),
    ] = None,
    email: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="E-mail address that requests must send in X-Auth-Email."
        ),
    ] = "",
    days: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=36_500, help="Days until the token expires (default: never)."
        ),
    ] = None,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Create a token and print it once; only its hash is stored."""
    from greenroom.accounts.tokens import create as plan

    secret, token = _change(
        plan(name, scope or ["read"], zone or [], email, days), data, store, existing=False
    )
    say(secret)
    where = (
        f"{len(token.zone_ids)} zone{'s' if len(token.zone_ids) > 1 else ''}"
        if token.zone_ids
        else "everything"
    )
    complain(
        f"token {token.name} ({token.id}) may {' and '.join(token.scopes)}, in {where}; it is not"
        " shown again"
    )


@tokens.command("list")
def show(data: ExistingDataOption = None, store: ExistingStoreOption = None) -> None:
    """List tokens, without their secrets."""
    from greenroom.accounts.tokens import every

    with config_service_or_exit(data, store) as config_service:
        for entry in config_service.look(every):
            token = entry.record
            ends = f"until {_day(token.expires_ms)}" if token.expires_ms is not None else "for ever"
            where = ",".join(token.zone_ids) or "everything"
            say(
                f"{token.id}  {token.name}  {','.join(token.scopes)}  {where}  since"
                f" {_day(entry.created_ms)}, {ends}"
            )


@tokens.command("revoke")
def revoke(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name or id of the token.", show_default=False)
    ],
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Revoke a token. Its next request is refused."""
    from greenroom.accounts.tokens import revoke as plan

    token = _change(plan(name), data, store)
    say(f"token {token.name} ({token.id}) has been revoked")


def _change(
    plan: Callable[..., Any], data: Path | None, store: str | None, *, existing: bool = True
) -> Any:
    from greenroom.runtime.local_config import author_here

    with config_service_or_exit(data, store, existing=existing) as config_service:
        return config_service.change(author_here(), plan)


@contextmanager
def config_service_or_exit(
    data: Path | None, store: str | None, *, existing: bool = True
) -> Iterator[Any]:
    """A configuration service on the store; what is refused or cannot be is said, and ends the
    command.

    `existing`: the command reads or changes what is there, so it makes no store, and says which one
    is missing.
    """
    from greenroom.runtime.local_config import config_service_beside

    with stop_on_errors(), config_service_beside(data, store, existing=existing) as config_service:
        yield config_service


@contextmanager
def stop_on_errors() -> Iterator[None]:
    """Says what was refused, or what is wrong with the store, and ends the command."""
    from greenroom.runtime.data_dir import CannotStart
    from greenroom.web.refusals import Refused

    try:
        yield
    except typer.Exit:  # a RuntimeError too
        raise
    except Refused as refused:
        for fault in refused.faults:
            complain_in_lines(f"greenroom: {fault.message}")
        raise typer.Exit(REFUSED) from None
    except (CannotStart, StorageFailed, InvalidConfig, RuntimeError) as error:
        complain_in_lines(f"greenroom: {error}")
        raise typer.Exit(CANNOT_START) from None


def _day(unix_ms: int) -> str:
    return f"{datetime.fromtimestamp(unix_ms / 1000, UTC):%Y-%m-%d}"
