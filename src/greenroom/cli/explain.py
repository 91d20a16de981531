"""`greenroom explain`: explains what would happen to a request."""

import http.client
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urlencode

import typer

from greenroom.cli.show import complain, complain_of, control_connection, say
from greenroom.configuration.explain_request import CLIENT, ExplainRequest, as_plain
from greenroom.errors import InvalidConfig, StorageFailed
from greenroom.settings.process import Server

BAD_CONFIG, CANNOT_ASK = 1, 2
ASK_PATH = "/client/v4/explain"
TOKEN_VARIABLES = ("GREENROOM_TOKEN", "CLOUDFLARE_API_TOKEN")
TIMEOUT_S = 10

_WORDS = {
    "origin": "goes to the origin",
    "waiting": "is held",
    "depends": "goes to the origin, or is held",
    "refused": "is refused",
    "table": "gets the table of the line",
}
_MARKS = {"holds": "+", "does not hold": " ", "switched off": "-"}


def explain(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="URL of the request, as a visitor would enter it.",
            show_default=False,
        ),
    ],
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            "-H",
            metavar="'NAME: VALUE'",
            help="Request header; may be given more than once.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", "-X", metavar="METHOD", help="HTTP method.")
    ] = "GET",
    client: Annotated[
        str, typer.Option(metavar="ADDRESS", help="IP address of the visitor.")
    ] = CLIENT,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Explain with this configuration file and its store.",
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help=(
                f"Ask the running greenroom at this control address (default: {Server().control})."
            ),
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help=f"Token for a running greenroom (default: ${' or $'.join(TOKEN_VARIABLES)}).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a request: which room covers it and why, which rule matches, which settings apply,
    and what the visitor would get.
    """
    asked = ExplainRequest(
        url, method.upper(), tuple(_header(line) for line in header or ()), client
    )
    if config is not None and control is not None:
        _stop("--config and --control cannot be used together")
    told = (
        _from_file(config, asked)
        if config
        else _from_running(control or Server().control, asked, token)
    )
    if as_json:
        for line in json.dumps(told, indent=2, ensure_ascii=False).split("\n"):
            say(line)
    else:
        for line in lines(told):
            say(line)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        _stop(f"--header must be 'NAME: VALUE', not {line!r}")
    return name.strip(), value.strip()


def _from_file(config: Path, asked: ExplainRequest) -> dict[str, Any]:
    from greenroom.runtime.explain import explain_on_file

    try:
        return as_plain(explain_on_file(config, asked))
    except InvalidConfig as error:
        complain_of(error.problems, str(config))
        raise typer.Exit(BAD_CONFIG) from None
    except StorageFailed as error:
        _stop(str(error))


def _from_running(control: str, asked: ExplainRequest, token: str | None) -> dict[str, Any]:
    secret = token or next(
        (found for name in TOKEN_VARIABLES if (found := os.environ.get(name))), ""
    )
    if not secret:
        _stop(
            "a running greenroom requires a token: use --token (greenroom token create makes one),"
            " or explain a file with --config"
        )
    lines = [("header", f"{name}: {value}") for name, value in asked.headers]
    query = urlencode(
        [("url", asked.url), ("method", asked.method), ("client", asked.client), *lines]
    )
    connection = control_connection(control, TIMEOUT_S)
    try:
        connection.request(
            "GET", f"{ASK_PATH}?{query}", headers={"Authorization": f"Bearer {secret}"}
        )
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        _stop(f"cannot ask {control}: {error}")
    finally:
        connection.close()
    if not answer.get("success"):
        _stop(
            "; ".join(str(fault.get("message")) for fault in answer.get("errors", ()))
            or f"{control} answered {response.status}"
        )
    told: dict[str, Any] = answer["result"]
    return told


def lines(told: dict[str, Any]) -> list[str]:
    shown = [_bold(f"{told['method']} {told['url']}") + f"   from {told['client']}", ""]
    shown += [f"  {_bold(_WORDS[told['result']])}: {told['reason']}"]
    shown += [f"  answer: {told['answer']}"] if told["answer"] else []
    shown += [f"  {note}" for note in told["notes"]] + [""]
    if told["room"]:
        shown.append(_row("room", f"{told['room']}   (id {told['room_id']})"))
        shown.append(_row("cookie", told["cookie"]))
    if event := told["event"]:
        shown.append(
            _row("event", f"{event['name']}: {event['phase']} until {_time(event['until_ms'])}")
        )
    for index, reading in enumerate(told["readings"]):
        shown.append(_row("" if index else "readings", reading))
    for index, route in enumerate(told["routes"]):
        mark = "+" if route["chosen"] else " "
        shown.append(
            _row(
                "" if index else "routes",
                f"{mark} {route['host']}{route['path']}   room {route['room']}: {route['why']}",
            )
        )
    for index, rule in enumerate(told["rules"]):
        expression = " ".join(rule["expression"].split())
        note = f"   ({rule['description']})" if rule["description"] else ""
        shown.append(
            _row(
                "" if index else "rules",
                f"{_MARKS.get(rule['result'], '!')} {rule['result']}: {expression}{note}",
            )
        )
    settings = [setting for setting in told["settings"] if setting["source"] != "default"]
    for index, setting in enumerate(settings):
        value = (
            json.dumps(setting["value"]) if isinstance(setting["value"], bool) else setting["value"]
        )
        shown.append(
            _row(
                "" if index else "settings",
                f"{setting['name']} = {value}   (from the {setting['source']})",
            )
        )
    return shown


def _row(name: str, text: str) -> str:
    return f"{name:10}{text}"


def _bold(text: str) -> str:
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    return text if plain else typer.style(text, bold=True)


def _time(unix_ms: int) -> str:
    return f"{datetime.fromtimestamp(unix_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _stop(reason: str) -> NoReturn:
    complain(f"greenroom: {reason}")
    raise typer.Exit(CANNOT_ASK)
