"""The commands and their options; each one checks, prints and calls the runtime.

What serves is imported by the commands that serve: the others answer in half the time.
"""

import gc
import sys
from collections.abc import Callable
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from greenroom.cli import export_import
from greenroom.cli.accounts import accounts
from greenroom.cli.analytics import analytics
from greenroom.cli.explain import explain
from greenroom.cli.keys import keys, pass_secret
from greenroom.cli.open_until import open_until
from greenroom.cli.plan import plan
from greenroom.cli.probe import probe
from greenroom.cli.ready import ready
from greenroom.cli.rooms import rooms
from greenroom.cli.serving_options import (
    PLACE,
    WHERE,
    ActiveOption,
    AnalyticsOption,
    ConfigOption,
    ControlOption,
    DataOption,
    DecideOption,
    HostOption,
    ListenOption,
    MethodOption,
    MinuteOption,
    OriginOption,
    PathOption,
    RedisOption,
    SessionOption,
    StoreOption,
    WorkerOption,
    WorkersOption,
)
from greenroom.cli.show import complain, complain_of, rooms_outside, say, show_config
from greenroom.cli.simulate import simulate
from greenroom.cli.tokens import tokens
from greenroom.cli.verify_draw import verify_draw
from greenroom.config_file.addresses import store_url
from greenroom.config_file.load import Overrides, load_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.config_file.source import ConfigSource, FileSource, OptionSource
from greenroom.errors import InvalidConfig, Problem, StorageFailed
from greenroom.model.fields import specs
from greenroom.model.room import Room
from greenroom.runtime.compiled import is_compiled
from greenroom.runtime.data_dir import CannotStart
from greenroom.settings.process import Server

BAD_CONFIG, CANNOT_START = 1, 2
"""Exit codes: what was written is wrong; the machine refuses (also wrong usage)."""

ROOM_NAME = "main"

app = typer.Typer(
    name="greenroom",
    help=(
        "A waiting room for your web application: lets in as many visitors as it can take and keeps"
        " the others in a fair line."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_room, _server = specs(Room), specs(Server)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"greenroom {version_of('greenroom')}{' (compiled)' if is_compiled() else ''}")
        raise typer.Exit


@app.callback()
def greenroom(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A waiting room for your web application: lets in as many visitors as it can take and keeps
    the others in a fair line.
    """


def serve(
    origin: OriginOption = None,
    host: HostOption = None,
    path: PathOption = None,
    total_active_users: ActiveOption = None,
    new_users_per_minute: MinuteOption = None,
    session_duration: SessionOption = None,
    queueing_method: MethodOption = None,
    config: ConfigOption = None,
    listen: ListenOption = None,
    decide: DecideOption = None,
    control: ControlOption = None,
    data: DataOption = None,
    store: StoreOption = None,
    analytics: AnalyticsOption = None,
    redis: RedisOption = None,
    workers: WorkersOption = 1,
    worker: WorkerOption = 0,
) -> None:
    """Put a waiting room in front of a web application.

    Give the URL of the application and two limits, or a configuration file. With neither, zones and
    rooms come from the management API. SIGHUP or a changed file reloads the rooms without closing
    connections. SIGTERM or Ctrl-C lets requests in progress finish first; a second signal does not
    wait for them.
    """
    room = _given(
        host=host,
        path=path,
        total_active_users=total_active_users,
        new_users_per_minute=new_users_per_minute,
        session_duration=session_duration,
        queueing_method=queueing_method,
    )
    places = _places(
        data, store, listen=listen, decide=decide, control=control, analytics=analytics, redis=redis
    )
    _run(_source(config, origin, room, places), workers, worker)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _places(data: Path | None, store: str | None, **others: str | None) -> dict[str, Any]:
    """Where things are, as a configuration file says it; the directory of a command is not that of
    a later reload.
    """
    return _given(
        data=str(data.absolute()) if data else None,
        store=store_url(store, Path.cwd()) if store else None,
        **others,
    )


def _source(
    config: Path | None, origin: str | None, room: dict[str, Any], places: dict[str, Any]
) -> ConfigSource:
    """A file, or what the options say; either of them describes the rooms."""
    if config is not None:
        mixed = [_option(key) for key in ["origin"] * bool(origin) + list(room)]
        if mixed:
            _stop(f"{', '.join(mixed)} cannot be used together with --config; set it in the file")
        return FileSource(config.absolute(), Overrides(places))
    if origin is not None:
        return _from_options(origin, room, places)
    if room:
        _stop(
            f"--origin is required with {', '.join(map(_option, room))}: the URL of your"
            " application"
        )
    return OptionSource(places, {key: _option(key) for key in _server})


def _from_options(origin: str, room: dict[str, Any], place: dict[str, str]) -> OptionSource:
    raw = {"origin": origin, **place, "rooms": [{"name": ROOM_NAME, "host": "*", **room}]}
    options = {f"rooms[0].{key}": _option(key) for key in _room} | {
        key: _option(key) for key in ("origin", *_server)
    }
    return OptionSource(raw, options)


def _option(key: str) -> str:
    return "--" + key.replace("_", "-")


def _run(
    source: ConfigSource, workers: int = 1, worker: int = 0, *, only_decisions: bool = False
) -> None:
    from greenroom.runtime.parts import EVERYTHING, ONLY_DECISIONS
    from greenroom.runtime.serve import serve_until_stopped

    try:
        if workers > 1 and not worker:
            from greenroom.runtime.workers import serve_with_workers

            config = source.load()
            if config.decide:
                _stop(
                    "decide cannot be used with --workers; start greenroom edge with a decide"
                    " address for each process"
                )
            raise typer.Exit(serve_with_workers(config, workers, sys.argv[1:], say))
        serve_until_stopped(
            source,
            _say_of(worker),
            one_of_many=worker > 0,
            parts=ONLY_DECISIONS if only_decisions else EVERYTHING,
        )
    except InvalidConfig as error:
        complain_of(error.problems, source.name)
        raise typer.Exit(BAD_CONFIG) from None
    except (CannotStart, StorageFailed) as error:
        _stop(str(error))


def _say_of(worker: int) -> Callable[[str], None]:
    """A worker's lines carry its number; what all of them would say alike is said by the first, or
    by who started them.
    """
    same = ("data", "origin")

    def say_as_worker(line: str) -> None:
        if not line.startswith(("visitors", "ledgers")) and (
            worker == 1 or not line.startswith(same)
        ):
            say(f"worker {worker}: {line}")

    return say_as_worker if worker else say


def edge(
    config: Annotated[
        Path,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Configuration file.", show_default=False
        ),
    ],
    redis: RedisOption = None,
    datacenter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of this data center, when there are several.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    global_redis: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="GREENROOM_GLOBAL_REDIS",
            show_envvar=True,
            help="The Redis server shared by all data centers.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    listen: ListenOption = None,
    decide: DecideOption = None,
    control: ControlOption = None,
    data: DataOption = None,
    store: StoreOption = None,
    analytics: AnalyticsOption = None,
) -> None:
    """Run one of several processes or machines that share their ledgers in Redis.

    It works like `greenroom serve`. Give every machine the same file; processes on one machine may
    share a data directory.
    """
    others = {
        "listen": listen,
        "decide": decide,
        "control": control,
        "analytics": analytics,
        "redis": redis,
    }
    places = _places(data, store, datacenter=datacenter, global_redis=global_redis, **others)
    source = FileSource(config.absolute(), Overrides(places))
    shared = _loaded(source).shared
    if shared is None:
        _stop(
            "--redis is required: it holds the ledgers that the processes share. A single process"
            " (greenroom serve) needs no Redis"
        )
    _run(source)


def _loaded(source: ConfigSource) -> ProcessConfig:
    try:
        return source.load()
    except InvalidConfig as error:
        complain_of(error.problems, source.name)
        raise typer.Exit(BAD_CONFIG) from None


def decide_for_proxies(
    config: Annotated[
        Path,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Configuration file.", show_default=False
        ),
    ],
    listen: Annotated[
        str | None,
        typer.Option(
            metavar=PLACE,
            help="Listen address where the proxies ask (default: `decide` in the file).",
        ),
    ] = None,
    control: ControlOption = None,
    data: DataOption = None,
    store: StoreOption = None,
    analytics: AnalyticsOption = None,
    redis: RedisOption = None,
) -> None:
    """Decide for another proxy (nginx, HAProxy, Caddy, Traefik, Envoy), which asks about each
    request and forwards it itself.

    There is no public listener and no origin. `trusted_proxies` in the file names the addresses
    that may ask.
    """
    places = _places(data, store, decide=listen, control=control, analytics=analytics, redis=redis)
    source = FileSource(
        config.absolute(), Overrides(places, {"decide": "--listen"}), needs_origin=False
    )
    listens = _loaded(source).decide
    if listens is None:
        _stop(
            "--listen is required, or decide in the configuration file: the address where the"
            " proxies ask"
        )
    _run(source, only_decisions=True)


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The configuration file.", show_default=False)
    ],
    no_origin: Annotated[
        bool,
        typer.Option(
            "--no-origin",
            help=(
                "The file is for `greenroom decide` or for a Python application, which forward"
                " nothing."
            ),
        ),
    ] = False,
    root_path: Annotated[
        str,
        typer.Option(
            "--root-path",
            metavar="PATH",
            help=(
                "The Python application is mounted there (root_path, SCRIPT_NAME): name the rooms"
                " that cover nothing below it."
            ),
        ),
    ] = "",
) -> None:
    """Check a configuration file: report every problem, or show what it configures.

    A file that has `decide` and no origin is taken for one of `greenroom decide`.
    """
    try:
        config = load_config(file, needs_origin=False if no_origin else None)
    except InvalidConfig as error:
        complain_of(error.problems, str(file))
        count = len(error.problems)
        complain(f"{file}: {count} problem{'s' if count > 1 else ''}")
        raise typer.Exit(BAD_CONFIG) from None
    say(f"{file} is valid. It configures:")
    say()
    show_config(config)
    for name in rooms_outside(config.rooms, root_path):
        say(
            f"note: room {name}: covers nothing below {root_path}, and so never holds a visitor there"
        )


def demo(
    listen: ListenOption = None,
    control: ControlOption = None,
    crowd: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=500, help="Size of the synthetic crowd at the start."),
    ] = 0,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="Fill the analytics with a generated month, marked as generated."
        ),
    ] = False,
    shop_only: Annotated[
        bool,
        typer.Option(
            "--shop-only", help="Start the shop alone, as the application behind another proxy."
        ),
    ] = False,
) -> None:
    """Start a demo shop behind a small waiting room, with a crowd that can be switched on. Ctrl-C
    stops it.
    """
    from greenroom.runtime.demo import run_demo, run_shop

    try:
        if shop_only and (control or crowd or history):
            raise InvalidConfig(
                [Problem("--shop-only", "cannot be combined with --control, --crowd or --history")]
            )
        if shop_only:
            run_shop(listen, say)
        else:
            run_demo(listen, control, crowd, say, with_history=history)
    except InvalidConfig as error:
        complain_of(error.problems)
        raise typer.Exit(BAD_CONFIG) from None
    except (CannotStart, StorageFailed) as error:
        _stop(str(error))


def _stop(reason: str) -> NoReturn:
    complain(f"greenroom: {reason}")
    raise typer.Exit(CANNOT_START)


COMMANDS: dict[str, dict[str, Any]] = {
    "Start": {"serve": serve, "check": check, "ready": ready, "demo": demo},
    "Beside a proxy, and on several machines": {
        "decide": decide_for_proxies,
        "open-until": open_until,
        "pass-secret": pass_secret,
        "edge": edge,
        "probe": probe,
    },
    "Run a sale": {"room": rooms},
    "Plan a sale, and see what happened": {
        "plan": plan,
        "simulate": simulate,
        "explain": explain,
        "analytics": analytics,
        "verify-draw": verify_draw,
    },
    "Configuration in the store": export_import.COMMANDS,
    "Accounts, tokens and keys": {"account": accounts, "token": tokens, "keys": keys},
}
"""Every command under its heading in `greenroom --help`, and in the order of the reference. A group
of commands is a Typer.
"""

for _heading, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_heading)
        else:
            app.command(_name, rich_help_panel=_heading)(_command)


def main() -> None:
    """The `greenroom` command."""
    try:
        app(prog_name="greenroom")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Python's last look through all objects takes a quarter of a short command's time. DuckDB
        # needs it (`Process.run`).
        if "duckdb" not in sys.modules:
            gc.freeze()
