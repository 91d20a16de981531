"""An OpenID Connect provider with a certificate of a private authority: `ca_file` trusts it, and
nothing else does.
"""

import asyncio
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from api_in_process import StandingClock
from oidc_rig import CLIENT, Provider, provider_at

from greenroom.accounts.oidc_provider import OidcProvider
from greenroom.config_file.load import load_config
from greenroom.errors import InvalidConfig
from greenroom.outbound import OutboundPolicy
from greenroom.web.refusals import Refused

AUTHORITY = trustme.CA()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(tls)
    with provider_at(lambda: int(time.time()), tls) as found:
        yield found


def begin(provider: Provider, folder: Path, more: str) -> str:
    """Where a browser is sent, with these lines in the configuration file."""
    path = folder / "greenroom.toml"
    path.write_text(
        f'[dashboard.oidc]\nissuer = "{provider.issuer}"\nclient_id = "{CLIENT}"\n{more}'
    )
    settings = load_config(path).oidc
    assert settings is not None
    return asyncio.run(
        OidcProvider(settings, OutboundPolicy, StandingClock()).begin(
            "secret", "https://ops.example/return"
        )
    )


def test_a_provider_with_a_certificate_of_the_private_authority_is_asked(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.cert_pem.bytes())
    assert begin(provider, tmp_path, 'ca_file = "ca.pem"\n').startswith(
        f"{provider.issuer}/authorize?"
    )


@pytest.mark.parametrize("more", ["", 'ca_file = "other.pem"\n'])
def test_without_its_authority_it_is_not(provider: Provider, tmp_path: Path, more: str) -> None:
    (tmp_path / "other.pem").write_bytes(trustme.CA().cert_pem.bytes())
    with pytest.raises(Refused, match=r"cannot be asked at the moment: .*certificate"):
        begin(provider, tmp_path, more)


@pytest.mark.parametrize("content", [None, b"", b"no certificates", b"\xff\xfe"])
def test_a_file_that_is_no_authority_is_refused_at_its_key(
    provider: Provider, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(InvalidConfig) as refused:
        begin(provider, tmp_path, 'ca_file = "ca.pem"\n')
    assert [problem.pointer for problem in refused.value.problems] == ["dashboard.oidc.ca_file"]
