"""`greenroom probe`: run a probe agent on another machine."""

import re
import socket
from typing import Annotated

import typer

from greenroom.cli.show import complain, say
from greenroom.model.health_check import REGIONS
from greenroom.model.probe import AGENT_NAME

REFUSED, USAGE = 1, 2


def probe(
    join: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            help=(
                "Control listener of greenroom, such as https://greenroom.example.com:8081; may be"
                " given more than once."
            ),
            show_default=False,
        ),
    ],
    region: Annotated[
        str,
        typer.Option(
            metavar="REGION",
            help=f"Region of this agent: {', '.join(REGIONS)}.",
            show_default=False,
        ),
    ],
    token: Annotated[
        str,
        typer.Option(
            metavar="TOKEN",
            envvar="GREENROOM_PROBE_TOKEN",
            help="Token with the scope `probe`.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of this agent (default: the name of the machine)."),
    ] = "",
    ca_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="PEM file with the authorities that greenroom's certificate is from.",
        ),
    ] = "",
    private_addresses: Annotated[
        bool, typer.Option(help="Allow checks on private and loopback addresses.")
    ] = True,
) -> None:
    """Run a probe agent: it probes the health checks of a greenroom elsewhere and reports what it
    finds.
    """
    from greenroom.health.agent import ReportFailed
    from greenroom.runtime.probe_agent import run_agent

    found = name or socket.gethostname()
    problems = [
        f"--join: {url!r} must begin with https:// or http://"
        for url in join
        if not re.match(r"https?://[^/\s]+", url)
    ]
    if region not in REGIONS:
        problems.append(f"--region: must be one of {', '.join(REGIONS)}, not {region!r}")
    if not re.fullmatch(AGENT_NAME, found):
        problems.append(f"--name: must match {AGENT_NAME}, not {found!r}")
    if problems:
        for problem in problems:
            complain(problem)
        raise typer.Exit(USAGE)
    if any(
        url.startswith("http://") and not re.match(r"http://(127\.|localhost|\[::1\])", url)
        for url in join
    ):
        complain("the token travels unencrypted: use https:// for a greenroom on another machine")
    try:
        run_agent(join, token, region, found, ca_file, private_addresses, say)
    except (ReportFailed, OSError) as error:
        complain(str(error))
        raise typer.Exit(REFUSED) from None
