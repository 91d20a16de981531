"""`greenroom export`, `import`, `apply` and `audit`: the whole configuration of the store as one
file, and who changed it.
"""

import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import typer

from greenroom.cli.show import complain, complain_in_lines, say
from greenroom.cli.tokens import (
    REFUSED,
    ExistingDataOption,
    ExistingStoreOption,
    config_service_or_exit,
    stop_on_errors,
)
from greenroom.config_file.toml_lines import KeyLines
from greenroom.configuration.file_tables import read_json, read_toml, step
from greenroom.model.fields import plural
from greenroom.web.refusals import Refused

FILE_MAX = 256 * 1024 * 1024
"""Larger than any configuration; a mistyped path to something huge is refused instead of read."""

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="TOML or JSON file; - reads standard input.", show_default=False
    ),
]


def export(
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of TOML.")] = False,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Write the zones, rooms, events, rules, lists and alert policies of the store to standard
    output, without secrets.
    """
    from greenroom.transfer.export_import import exported, toml_text

    with config_service_or_exit(data, store) as config_service:
        document = config_service.look(exported)
    sys.stdout.write(
        json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        if as_json
        else toml_text(document)
    )


def import_(
    file: FileArgument, data: ExistingDataOption = None, store: ExistingStoreOption = None
) -> None:
    """Import an exported configuration into an empty store. An existing configuration is never
    changed: use `greenroom apply`.
    """
    _make_true(file, data, store, only_into_empty=True)


def apply(
    file: FileArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Show what would change, and change nothing.")
    ] = False,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Apply a configuration file to the store: create, change and delete entries until the store
    matches the file.
    """
    _make_true(file, data, store, only_check=check)


def audit(
    limit: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=1_000, help="Number of changes to show, newest first."
        ),
    ] = 50,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object per line, with the values before and after."
        ),
    ] = False,
    data: ExistingDataOption = None,
    store: ExistingStoreOption = None,
) -> None:
    """Show who changed what, newest change first."""
    from greenroom.configuration.dashboard.audit import words

    with config_service_or_exit(data, store) as config_service:
        known = config_service.store.read()
        for entry in config_service.store.audit(limit):
            if as_json:
                say(json.dumps(asdict(entry), ensure_ascii=False))
            else:
                when = datetime.fromtimestamp(entry.at_ms / 1000, UTC).isoformat(timespec="seconds")
                say(f"{when}  {entry.author}: {words(entry, known)}")


def _make_true(
    file: Path,
    data: Path | None,
    store: str | None,
    *,
    only_check: bool = False,
    only_into_empty: bool = False,
) -> None:
    from greenroom.config_file.addresses import origin_problems
    from greenroom.runtime.local_config import author_here
    from greenroom.transfer.export_import import make_true

    text, document = _read(file)
    plan = make_true(document, origin_problems, only_into_empty=only_into_empty)
    with ExitStack() as stack:
        if only_check:
            data, store = _to_read(stack, data, store)
        config_service = stack.enter_context(config_service_or_exit(data, store, existing=False))
        try:
            lines = (
                config_service.trial(plan)
                if only_check
                else config_service.change(author_here(), plan)
            )
        except Refused as refused:
            _complain_of(refused, file, text)
            raise typer.Exit(REFUSED) from None
    for line in lines:
        say(line)
    done = "would be made" if only_check else "made"
    say(f"{len(lines)} {plural(len(lines), 'change')} {done}" if lines else "nothing to do")


def _to_read(
    stack: ExitStack, data: Path | None, store: str | None
) -> tuple[Path | None, str | None]:
    """Where the store is; instead of one that is not there yet an empty one, which is removed with
    `stack`.
    """
    from greenroom.runtime.local_config import store_is_there

    with stop_on_errors():
        if store_is_there(data, store):
            return data, store
    return Path(stack.enter_context(tempfile.TemporaryDirectory())), None


def _complain_of(refused: Refused, file: Path, text: str) -> None:
    """As `greenroom check`: file:line: place: reason."""

    def place(pointer: str) -> str:
        parts = (int(part) if part.isdecimal() else part for part in pointer.split("/")[1:])
        return reduce(step, parts, "")

    try:
        lines = KeyLines(text, is_json=_language(file, text) == "JSON")
    except RecursionError:
        lines = KeyLines("")
    for fault in refused.faults:
        line = lines.line(place(fault.pointer))
        complain_in_lines(f"{_named(file)}{f':{line}' if line else ''}: {fault.message}")


def _named(file: Path) -> str:
    return "standard input" if str(file) == "-" else str(file)


def _language(file: Path, text: str) -> str:
    return "JSON" if file.suffix == ".json" or text.lstrip()[:1] == "{" else "TOML"


def _read(file: Path) -> tuple[str, Any]:
    try:
        text = sys.stdin.read(FILE_MAX + 1) if str(file) == "-" else _text(file)
        return text, _parsed(text, _language(file, text))
    except UnicodeDecodeError as error:
        complain(f"{_named(file)}: is not UTF-8 at byte {error.start}")
    except (OSError, ValueError) as error:
        complain(f"{_named(file)}: {error.strerror if isinstance(error, OSError) else error}")
    raise typer.Exit(REFUSED)


def _parsed(text: str, language: str) -> Any:
    """Raises ValueError with the reason for people."""
    try:
        return read_json(text) if language == "JSON" else read_toml(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"is not {language}: {str(error).partition(';')[0]}") from None


def _text(file: Path) -> str:
    if file.stat().st_size > FILE_MAX:
        raise ValueError(f"is larger than {FILE_MAX} bytes")
    return file.read_text(encoding="utf-8")


COMMANDS = {"export": export, "import": import_, "apply": apply, "audit": audit}
"""By name, in the order of the reference."""
