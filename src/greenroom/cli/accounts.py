"""`greenroom account`: manages the local accounts of the dashboard."""

from typing import Annotated

import typer

from greenroom.cli.show import complain, say
from greenroom.cli.tokens import ExistingDataOption, ExistingStoreOption, config_service_or_exit
from greenroom.model.account import PASSWORD_LEAST, ROLES

accounts = typer.Typer(
    name="account", help="Manage accounts for the dashboard.", no_args_is_help=True
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="User name.", show_default=False)]
RoleOption = Annotated[str, typer.Option(metavar="ROLE", help=f"{', '.join(ROLES)}.")]
ZoneOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ZONE",
        help=(
            "Id or name of a zone that the account is valid for; may be repeated (default: all"
            " zones)."
        ),
    ),
]
StdinOption = Annotated[
    bool,
    typer.Option(
        "--password-stdin", help="Read the password from standard input instead of asking for it."
    ),
]


@accounts.command("add")
def add(
    name: NameArgument,
    role: RoleOption = "viewer",
    zone: ZoneOption = None,
    password_stdin: StdinOption = False,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Add an account. The password is asked for; only its hash is stored."""
    from greenroom.accounts.people import add as plan
    from greenroom.runtime.local_config import author_here

    password = _password(password_stdin)
    with config_service_or_exit(data, store, existing=False) as config_service:
        account = config_service.change(author_here(), plan(name, role, zone or [], password))
    say(f"account {account.name} has been added as {account.role}")


@accounts.command("password")
def password(
    name: NameArgument,
    password_stdin: StdinOption = False,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Set a new password. It ends all sessions of the account."""
    from greenroom.accounts.people import edit as plan
    from greenroom.runtime.local_config import author_here

    fresh = _password(password_stdin)
    with config_service_or_exit(data, store) as config_service:
        config_service.change(author_here(), plan(name, password=fresh))
    say(f"account {name} has a new password")


@accounts.command("list")
def show(data: ExistingDataOption = None, store: ExistingStoreOption = None) -> None:
    """List accounts."""
    from greenroom.accounts.people import every

    with config_service_or_exit(data, store) as config_service:
        for entry in config_service.look(every):
            steps = "  two-step sign-in" if entry.record.totp_secret else ""
            say(
                f"{entry.record.name}  {entry.record.role} "
                f" {','.join(entry.record.zone_ids) or 'all zones'}{steps}"
            )


@accounts.command("reset-two-step")
def reset_two_step(
    name: NameArgument, data: ExistingDataOption = None, store: ExistingStoreOption = None
) -> None:
    """Turn off two-step sign-in of an account whose phone is lost. It ends all sessions of the
    account.
    """
    from greenroom.accounts.people import turn_off_two_step as plan
    from greenroom.runtime.local_config import author_here

    with config_service_or_exit(data, store) as config_service:
        config_service.change(author_here(), plan(name))
    say(f"account {name} signs in with its password alone")


@accounts.command("remove")
def remove(
    name: NameArgument, data: ExistingDataOption = None, store: ExistingStoreOption = None
) -> None:
    """Remove an account. Its sessions end at once."""
    from greenroom.accounts.people import remove as plan
    from greenroom.runtime.local_config import author_here

    with config_service_or_exit(data, store) as config_service:
        config_service.change(author_here(), plan(name))
    say(f"account {name} has been removed")


@accounts.command("link")
def link(data: ExistingDataOption = None, store: ExistingStoreOption = None) -> None:
    """Print a sign-in link for the dashboard that works once, for 24 hours, and gives all rights."""
    from greenroom.accounts.sign_in import LINK_PATH, make_link

    with config_service_or_exit(data, store, existing=False) as config_service:
        key = make_link(config_service.store.sessions, config_service.clock.now_ms())
    say(f"{LINK_PATH}?key={key}")
    complain("open this path on the control listener, for example http://127.0.0.1:8081")


def _password(from_stdin: bool) -> str:
    if from_stdin:
        import sys

        return sys.stdin.readline().rstrip("\r\n")
    return str(
        typer.prompt(
            f"Password (at least {PASSWORD_LEAST} characters)",
            hide_input=True,
            confirmation_prompt=True,
        )
    )
