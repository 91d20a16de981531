"""`[notifications]` and `[outbound]` in a configuration file: what they become, and everything
wrong with them at once.
"""

from pathlib import Path

import pytest

from greenroom.config_file.load import read_config
from greenroom.errors import InvalidConfig

ROOM = '[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'


def read(text: str, folder: Path):
    return read_config(
        f'origin = "http://127.0.0.1:3000"\ndata = "."\n{text}\n{ROOM}', folder / "greenroom.toml"
    )


def test_a_mail_server_with_its_password_from_a_file_that_is_watched(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("pass word\n")
    found = read(
        '[notifications]\nsmtp_host = "smtp.example.com"\nsmtp_port = 465\nsmtp_security = "tls"\nsmtp_user = "me"\nsmtp_password_file = "secret"\n',
        tmp_path,
    )
    server = found.sending.mail_server
    assert (server.host, server.port, server.security, server.user, server.password) == (
        "smtp.example.com",
        465,
        "tls",
        "me",
        "pass word",
    )
    assert "pass word" not in repr(found)
    assert tmp_path / "secret" in found.files


def test_without_the_tables_there_is_no_mail_and_only_public_addresses_are_allowed(
    tmp_path: Path,
) -> None:
    sending = read("", tmp_path).sending
    assert (
        sending.mail_server,
        sending.webhook_test,
        sending.outbound.allowed,
        sending.outbound.ports,
    ) == (
        None,
        "required",
        (),
        (443, 80),
    )


def test_networks_and_ports_are_allowed_by_name(tmp_path: Path) -> None:
    outbound = read(
        '[outbound]\nallow = ["10.0.0.0/8"]\ndeny = ["10.0.0.1"]\nports = []\nschemes = ["https"]\n',
        tmp_path,
    ).sending.outbound
    assert (outbound.allowed, outbound.denied, outbound.ports, outbound.schemes) == (
        ("10.0.0.0/8",),
        ("10.0.0.1",),
        (),
        ("https",),
    )


def test_everything_wrong_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read(
            '[notifications]\nsmtp_host = "h"\nsmtp_user = "me"\nsmtp_security = "none"\nwebhook_test = "maybe"\n'
            '[outbound]\nallow = ["inside", 7]\nports = ["https"]\n',
            tmp_path,
        )
    assert {problem.pointer for problem in caught.value.problems} == {
        "notifications.smtp_password_file",
        "notifications.smtp_security",
        "notifications.webhook_test",
        "outbound.allow[0]",
        "outbound.allow[1]",
        "outbound.ports[0]",
    }
    with pytest.raises(InvalidConfig) as caught:
        read(
            '[notifications]\nsmtp_user = "me"\nsmtp_password_file = "gone"\n[outbound]\nallow = ["inside"]\nports = [0]\n',
            tmp_path,
        )
    assert {problem.pointer for problem in caught.value.problems} == {
        "notifications.smtp_password_file",
        "outbound.allow[0]",
        "outbound.ports[0]",
    }
    assert all(problem.line for problem in caught.value.problems)
