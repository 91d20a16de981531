"""The options of the commands that serve."""

from pathlib import Path
from typing import Annotated

import typer

from greenroom.model.fields import specs
from greenroom.model.room import Room

_room = specs(Room)
WORKERS_MAX = 64
"""Of one machine: a key bears the seals of sixteen processes at full speed, and more than this is a
typing error.
"""

PLACE = "ADDRESS:PORT|unix:PATH"
_HERE, _WAITING, WHERE = "Protected application", "The waiting room", "Addresses and storage"
DATA_HELP = (
    "Directory for keys and journals (default: $XDG_STATE_HOME/greenroom or"
    " ~/.local/state/greenroom)."
)
STORE_HELP = (
    "Database of the configuration made through the API: sqlite:///FILE or postgresql://..."
    " (default: in the data directory)."
)

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file with any number of rooms, instead of the options for one.",
        rich_help_panel=_HERE,
    ),
]
OriginOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="URL of your application, such as http://127.0.0.1:3000.",
        rich_help_panel=_HERE,
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Host name to cover (default: every host).", rich_help_panel=_HERE
    ),
]
PathOption = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="Path prefix to cover (default: /).", rich_help_panel=_HERE),
]
ActiveOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=f"How {_room['total_active_users'].help.removeprefix('how ')}.",
        rich_help_panel=_WAITING,
    ),
]
MinuteOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=f"How {_room['new_users_per_minute'].help.removeprefix('how ')}.",
        rich_help_panel=_WAITING,
    ),
]
SessionOption = Annotated[
    int | None,
    typer.Option(
        metavar="MINUTES",
        help="How long a visitor counts as active after the last request (default: 5).",
        rich_help_panel=_WAITING,
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="fifo, random, passthrough or reject (default: fifo).",
        rich_help_panel=_WAITING,
    ),
]
ListenOption = Annotated[
    str | None,
    typer.Option(
        metavar=PLACE,
        help="Public listen address (default: 127.0.0.1:8080).",
        rich_help_panel=WHERE,
    ),
]
DecideOption = Annotated[
    str | None,
    typer.Option(
        metavar=PLACE,
        help="Listen address where other proxies ask for decisions (default: none).",
        rich_help_panel=WHERE,
    ),
]
ControlOption = Annotated[
    str | None,
    typer.Option(
        metavar=PLACE,
        help="Listen address for /status, /metrics and /readyz (default: 127.0.0.1:8081).",
        rich_help_panel=WHERE,
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help=DATA_HELP,
        rich_help_panel=WHERE,
    ),
]
AnalyticsOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="GREENROOM_ANALYTICS",
        show_envvar=True,
        help=(
            "Where analytics are kept: clickhouse://... or off (default: analytics.duckdb in the"
            " data directory)."
        ),
        rich_help_panel=WHERE,
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="GREENROOM_STORE",
        show_envvar=True,
        help=STORE_HELP,
        rich_help_panel=WHERE,
    ),
]
RedisOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="GREENROOM_REDIS",
        show_envvar=True,
        help="Keep the ledgers in this Redis and share them with other processes.",
        rich_help_panel=WHERE,
    ),
]
WorkerOption = Annotated[
    int, typer.Option("--worker", hidden=True, help="Number of this worker process.")
]
WorkersOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        max=WORKERS_MAX,
        help=(
            "Number of worker processes, usually one per core; they share their ledgers in Redis (a"
            " private one without --redis)."
        ),
        rich_help_panel=WHERE,
    ),
]
