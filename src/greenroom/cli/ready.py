"""`greenroom ready`: asks the control listener of this machine, for health checks of containers."""

import http.client
import ssl
import tomllib
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from greenroom.cli.show import complain, control_connection, say
from greenroom.config_file.addresses import address_of
from greenroom.settings.process import Address, Server

NOT_READY, USAGE = 1, 2
TIMEOUT_S = 5.0
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  asked on the loopback interface


def ready(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Configuration file that greenroom runs with: for `control` and `[control_tls]`.",
        ),
    ] = None,
    control: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS:PORT|unix:PATH",
            help="Control listener (default: that of the file, or 127.0.0.1:8081).",
        ),
    ] = "",
) -> None:
    """Exit with 0 if the greenroom on this machine is ready for visitors, otherwise with 1."""
    try:
        raw = tomllib.loads(config.read_text()) if config else {}
    except (OSError, ValueError) as error:
        _stop(f"{config}: {error}", USAGE)
    written = control or raw.get("control", Server().control)
    address = address_of(written) if isinstance(written, str) else None
    if address is None:
        _stop(f"{'--control' if control else 'control'}: must be address:port, not {written!r}")
    try:
        connection = _connection(address, _trusting(raw.get("control_tls"), config))
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        answer = connection.getresponse()
        phase = answer.read(1024).decode(errors="replace").splitlines()[:1]
    except (OSError, http.client.HTTPException) as error:
        _stop(f"{address}: {error or type(error).__name__}", NOT_READY)
    if answer.status != http.HTTPStatus.OK:
        _stop(f"{address}: {answer.status} {' '.join(phase)}".rstrip(), NOT_READY)
    say(" ".join(phase))


def _stop(reason: str, code: int = USAGE) -> NoReturn:
    complain(f"greenroom: {reason}")
    raise typer.Exit(code)


def _trusting(tls: Any, config: Path | None) -> ssl.SSLContext | None:
    """Trusts the certificate of the file alone, whatever names it has. Raises OSError."""
    if not isinstance(tls, dict) or config is None:
        return None
    context = ssl.create_default_context(cafile=str(config.parent / str(tls.get("cert"))))
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _connection(address: Address, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    here = address._replace(host=EVERY_ADDRESS.get(address.host, address.host))
    if tls and not here.path:
        return http.client.HTTPSConnection(here.host, here.port, timeout=TIMEOUT_S, context=tls)
    return control_connection(str(here), TIMEOUT_S)
