"""The control listener with a certificate of its own: HTTPS only, renewed while it runs."""

import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from greenroom.config_file.addresses import exposure_notes
from greenroom.config_file.load import load_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.errors import InvalidConfig
from greenroom.runtime.control_plane import control_listener
from greenroom.runtime.listener import bind, bound
from greenroom.settings.process import Address


def write(folder: Path, authority: trustme.CA) -> None:
    made = authority.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    made.private_key_pem.write_to_path(folder / "key.pem")


def config_in(folder: Path) -> ProcessConfig:
    file = folder / "greenroom.toml"
    file.write_text(
        'data = "."\ncontrol = "0.0.0.0:8081"\n[control_tls]\ncert = "cert.pem"\nkey = "key.pem"\n'
    )
    return load_config(file)


async def scheme(scope, receive, send) -> None:
    answer: Response = PlainTextResponse(Request(scope).url.scheme)
    await answer(scope, receive, send)


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_it_speaks_https_only_and_takes_a_new_certificate_without_a_restart(
    tmp_path: Path,
) -> None:
    old, new = trustme.CA(), trustme.CA()
    write(tmp_path, old)
    config = config_in(tmp_path)
    assert exposure_notes(config.control, private=True) == list(config.notes)
    assert {tmp_path / "cert.pem", tmp_path / "key.pem"} <= set(config.files)
    listener = control_listener(scheme, lambda: config, bind(Address("127.0.0.1", 0), "a test"))
    await listener.start()
    address = bound(listener._listener)

    async def asked(authority: trustme.CA, protocol: str = "https") -> str:
        async with httpx.AsyncClient(verify=trusting(authority)) as client:
            return (await client.get(f"{protocol}://{address}/")).text

    try:
        assert await asked(old) == "https"
        with pytest.raises(httpx.TransportError):
            await asked(old, "http")
        (tmp_path / "key.pem").write_text("half a file")
        with pytest.raises(ssl.SSLError):
            listener.configure(config)
        assert await asked(old) == "https"
        write(tmp_path, new)
        listener.configure(config)
        assert await asked(new) == "https"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await asked(old)
    finally:
        await listener.close()


def test_a_certificate_that_cannot_be_used_is_refused_at_its_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as refused:
        config_in(tmp_path)
    assert [problem.pointer for problem in refused.value.problems] == [
        "control_tls.cert",
        "control_tls.key",
    ]
    write(tmp_path, trustme.CA())
    trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(tmp_path / "key.pem")
    with pytest.raises(
        InvalidConfig, match="control_tls: the certificate and the key do not match"
    ):
        config_in(tmp_path)
