"""`greenroom room`: live operations on a waiting room, as on its live page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from greenroom.cli.show import say
from greenroom.cli.tokens import ExistingDataOption, ExistingStoreOption, stop_on_errors

rooms = typer.Typer(name="room", help="Operate a waiting room while it runs.", no_args_is_help=True)

RoomArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name or id of the room.", show_default=False)
]
RunningFileOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file that greenroom runs with: for its rooms, data directory and store.",
    ),
]


@rooms.command("hold")
def hold(
    name: RoomArgument,
    minutes: Annotated[
        int | None, typer.Option(min=1, help="End the hold by itself after so many minutes.")
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="Let visitors in again.")] = False,
    config: RunningFileOption = None,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Hold all new visitors; active visitors stay."""
    with _room(name, config, data, store) as at:
        at.end("hold") if end else at.begin("hold", minutes=minutes)
    say(f"visitors of {name} are let in again" if end else f"new visitors of {name} are on hold")


@rooms.command("admit")
def admit(
    name: RoomArgument,
    count: Annotated[int, typer.Argument(metavar="N", help="How many more visitors.")],
    config: RunningFileOption = None,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Admit N more visitors now: raises both limits for one minute."""
    with _room(name, config, data, store) as at:
        at.begin("admit", count=count)
    say(f"{name} admits {count} more visitors during the next minute")


@rooms.command("message")
def message(
    name: RoomArgument,
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="One line. Without one it is removed.")
    ] = "",
    config: RunningFileOption = None,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Post a message on the waiting page, in every language, or remove it."""
    with _room(name, config, data, store) as at:
        at.begin("message", text=text) if text.strip() else at.end("message")
    say(f"waiting visitors of {name} see it" if text.strip() else f"{name} shows no message")


@rooms.command("take-over")
def take_over(
    name: RoomArgument,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Active visitors at once; without it, the current limit."),
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="Follow the origin again.")] = False,
    config: RunningFileOption = None,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Stop following the origin: the limit of active visitors stays at its current value."""
    with _room(name, config, data, store) as at:
        at.end("take_over") if end else at.begin("take_over", count=limit or at.capacity())
    say(f"{name} follows its origin again" if end else f"the limit of {name} is taken over")


@rooms.command("end-sessions")
def end_sessions(
    name: RoomArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: RunningFileOption = None,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """End all sessions: active visitors go to the back of the line."""
    if not yes:
        typer.confirm(f"End all sessions of {name}? This cannot be undone.", abort=True)
    with _room(name, config, data, store) as at:
        at.begin("end_sessions")
    say(f"all sessions of {name} have ended")


class _Room:
    def __init__(self, service: Any, zone_id: str, room_id: str) -> None:
        self._service = service
        self._place = zone_id, room_id

    def begin(self, kind: str, **more: Any) -> None:
        from greenroom.configuration.operations import begin
        from greenroom.runtime.local_config import author_here

        author = author_here()
        self._service.change(author, begin(*self._place, kind, author, **more))

    def capacity(self) -> int | None:
        """The current limit of a room that follows its origin, as far as it has been noted."""
        from greenroom.configuration.operations import noted_capacity

        return noted_capacity(self._service.store, self._place[1])

    def end(self, kind: str) -> None:
        from greenroom.configuration.operations import end
        from greenroom.runtime.local_config import author_here

        self._service.change(author_here(), end(*self._place, kind))


@contextmanager
def _room(name: str, config: Path | None, data: Path | None, store: str | None) -> Iterator[_Room]:
    from greenroom.runtime.local_config import config_service_of
    from greenroom.web.refusals import ApiFault, Code, Refused

    with stop_on_errors(), config_service_of(config, data, store) as service:
        known = service.look(lambda known: known)
        found = [one for one in known.rooms.values() if name in (one.id, one.record.name)]
        if len(found) != 1:
            words = "there is no room" if not found else "several rooms have the name"
            hint = "; name the configuration file of its room with --config" if not config else ""
            more = "" if not found else ": use an id, " + ", ".join(one.id for one in found)
            raise Refused(ApiFault(Code.NO_OBJECT, f"{words} {name}{more or hint}"))
        yield _Room(service, found[0].parent, found[0].id)
