"""`[dashboard.oidc]`: what is read, and what is refused at its key."""

from pathlib import Path

import pytest

from greenroom.config_file.load import load_config, read_config
from greenroom.errors import InvalidConfig

START = '[dashboard.oidc]\nissuer = "https://login.example.com"\nclient_id = "greenroom"\n'
ROLE = '[[dashboard.oidc.roles]]\nclaim = "groups"\nvalue = "shop"\nrole = "operator"\nzones = ["shop.example"]\n'


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfig) as refused:
        read_config(text)
    return [problem.pointer for problem in refused.value.problems]


def test_a_secret_comes_from_a_file_that_is_watched(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\nmore\n")
    file = tmp_path / "greenroom.toml"
    file.write_text(f'{START}client_secret_file = "secret"\n{ROLE}')
    config = load_config(file)
    assert config.oidc is not None
    assert (config.oidc.secret, config.oidc.label, config.oidc.roles[0].zones) == (
        "hush",
        "login.example.com",
        ("shop.example",),
    )
    assert tmp_path / "secret" in config.files
    assert "hush" not in repr(config)


def test_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIDC_SECRET", "hush")
    config = read_config(f'{START}client_secret_env = "OIDC_SECRET"\n')
    assert config.oidc is not None
    assert (config.oidc.secret, config.oidc.roles) == ("hush", ())
    monkeypatch.delenv("OIDC_SECRET")
    assert problems(f'{START}client_secret_env = "OIDC_SECRET"\n') == [
        "dashboard.oidc.client_secret_env"
    ]


def test_without_the_table_there_is_no_provider() -> None:
    assert read_config("").oidc is None


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("dashboard = 1\n", "dashboard"),
        ("[dashboard.other]\n", "dashboard.other"),
        ("dashboard.oidc = 1\n", "dashboard.oidc"),
        ('[dashboard.oidc]\nissuer = "https://a.example"\n', "dashboard.oidc.client_id"),
        (
            '[dashboard.oidc]\nissuer = "http://login.example.com"\nclient_id = "a"\n',
            "dashboard.oidc.issuer",
        ),
        (
            '[dashboard.oidc]\nissuer = "https://a.example/?x"\nclient_id = "a"\n',
            "dashboard.oidc.issuer",
        ),
        (
            '[dashboard.oidc]\nissuer = "login.example.com"\nclient_id = "a"\n',
            "dashboard.oidc.issuer",
        ),
        (f'{START}scopes = ["email"]\n', "dashboard.oidc.scopes"),
        (f'{START}scopes = ["openid", 7]\n', "dashboard.oidc.scopes[1]"),
        (f'{START}client_secret_file = "nowhere"\n', "dashboard.oidc.client_secret_file"),
        (f'{START}secret = "in the file"\n', "dashboard.oidc.secret"),
        (f"{START}{ROLE}{ROLE.replace('operator', 'king')}", "dashboard.oidc.roles[1].role"),
        (f"{START}{ROLE.replace('operator', 'admin')}", "dashboard.oidc.roles[0].zones"),
        (f"{START}roles = 7\n", "dashboard.oidc.roles"),
        (START + ROLE.replace('"shop.example"', "7"), "dashboard.oidc.roles[0].zones[0]"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_key(text: str, pointer: str) -> None:
    assert problems(text) == [pointer]


def test_the_issuer_may_be_plain_http_on_this_machine_only() -> None:
    for host in ("127.0.0.1:8090", "localhost:8090", "[::1]:8090"):
        assert (
            read_config(START.replace("https://login.example.com", f"http://{host}")).oidc
            is not None
        )
