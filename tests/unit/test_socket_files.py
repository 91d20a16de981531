"""Unix sockets to listen on: how they are written down, whose file it is, and how far their peers
are believed.
"""

import asyncio
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from greenroom.config_file.addresses import origin_problems, zone_origin_problems
from greenroom.config_file.load import read_config
from greenroom.config_file.process_config import ProcessConfig
from greenroom.errors import InvalidConfig
from greenroom.gateway.origin.address import Origin
from greenroom.gateway.origin.shares import Shares
from greenroom.model.visit import Arrival
from greenroom.request.arrival import Sender, arrival_from
from greenroom.request.forwarded import SOCKET_PEER, ForwardedPolicy, socket_ends
from greenroom.runtime.data_dir import CannotStart
from greenroom.runtime.listener import listen_on_file
from greenroom.settings.limits import Limits
from greenroom.settings.process import Address
from greenroom.web.client_address import WithClientAddress

ROOM = '[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'


def config_of(text: str) -> ProcessConfig:
    return read_config(f'origin = "http://127.0.0.1:3000"\ndata = "/tmp"\n{text}\n{ROOM}')


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfig) as refused:
        config_of(text)
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize("key", ["listen", "control", "decide", "status_listen"])
def test_every_listener_may_be_a_unix_socket(key: str) -> None:
    found = config_of(f'{key} = "unix:/run/greenroom/a.sock"')
    assert getattr(found, key) == Address("", 0, "/run/greenroom/a.sock")
    assert str(getattr(found, key)) == "unix:/run/greenroom/a.sock"


@pytest.mark.parametrize(
    "path", ["", "a.sock", "~/a.sock", "@abstract", "/run/", "/run/a\\nb", "//", "8080"]
)
def test_a_path_that_cannot_be_one_is_refused_with_the_name_of_its_key(path: str) -> None:
    (said,) = problems(f'decide = "unix:{path}"')
    assert "decide" in said
    assert "whole path" in said


def test_a_path_may_be_as_long_as_the_kernel_allows_and_no_longer() -> None:
    longest = "/" + "a" * 106
    assert config_of(f'decide = "unix:{longest}"').decide == Address("", 0, longest)
    (said,) = problems(f'decide = "unix:{longest}b"')
    assert ("decide" in said, "at most 107 bytes, not 108" in said) == (True, True)
    (said,) = problems(f'decide = "unix:/{"é" * 54}"')
    assert "not 109" in said


def test_two_listeners_need_two_files() -> None:
    (said,) = problems('listen = "unix:/run/a"\ndecide = "unix:/run/a"')
    assert "must not be the socket of listen" in said


def test_who_may_open_the_file_is_the_operators_to_say() -> None:
    config = config_of('decide = "unix:/run/a"')
    assert (config.socket_mode, [note for note in config.notes if "socket" in note]) == ("0660", [])
    for mode in ("0666", "662"):
        assert [
            note
            for note in config_of(f'decide = "unix:/run/a"\nsocket_mode = "{mode}"').notes
            if "every user of this machine" in note
        ]
    assert problems('socket_mode = "0999"')
    assert problems('decide = "127.0.0.1:1"') == [
        "trusted_proxies: is required with decide: the addresses of the proxies that may ask for decisions"
    ]


def test_the_file_has_its_mode_and_goes_with_the_socket(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    before = os.umask(0)
    try:
        for mode in (0o600, 0o660, 0o666):
            listener = listen_on_file(str(path), "a test", mode)
            assert stat.S_IMODE(path.stat().st_mode) == mode
            listener.close()
            listener.close()
            assert not path.exists()
    finally:
        os.umask(before)


def test_the_file_of_a_dead_process_is_replaced_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    with listen_on_file(str(path), "a test") as living:
        for _ in range(2):
            with pytest.raises(
                CannotStart,
                match=f"unix:{path} for other proxies: another program is already listening there",
            ):
                listen_on_file(str(path), "other proxies")
        assert path.exists(), "a process that cannot start takes nothing away"
        living.listen(0)
        callers = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(str(path))
        with pytest.raises(
            CannotStart, match="already listening"
        ):  # also one that is too busy to accept
            listen_on_file(str(path), "a test")
        for caller in callers:
            caller.close()


def test_nothing_but_a_socket_is_replaced(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("kept")
    link.symlink_to(file)
    for path in (file, link, tmp_path / "missing" / "a.sock"):
        with pytest.raises(CannotStart, match=f"cannot listen on unix:{path} for a test: "):
            listen_on_file(str(path), "a test")
    assert file.read_text() == "kept"


def test_a_file_that_another_process_has_taken_over_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    old = listen_on_file(str(path), "a test")
    path.unlink()
    new = listen_on_file(str(path), "a test")
    old.close()
    assert path.exists()
    new.close()
    assert not path.exists()


def test_of_many_that_find_the_file_of_a_dead_process_exactly_one_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    got: list[socket.socket] = []
    refused: list[str] = []

    def start() -> None:
        try:
            got.append(listen_on_file(str(path), "a test"))
        except CannotStart as error:
            refused.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 15), refused
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
    got[0].close()


def test_a_unix_socket_may_be_inherited_if_it_has_a_file(tmp_path: Path) -> None:
    def given(listener: socket.socket) -> str:
        code = (
            "import os; from greenroom.runtime.parts import adopt, inherited_sockets; from greenroom.runtime.listener import bound\n"
            f"adopt({listener.fileno()})\n"
            "try: print(bound(inherited_sockets(os.environ, os.getpid(), 'visitors')['visitors']))\n"
            "except Exception as error: print(error)"
        )
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, pass_fds=(listener.fileno(),), capture_output=True, text=True, check=True
        ).stdout.strip()

    path = tmp_path / "a.sock"
    with listen_on_file(str(path), "a test") as listener:
        assert given(listener) == f"unix:{path}"
        assert path.exists(), "it is the parent's"
    with socket.socket(socket.AF_UNIX) as open_to_all:
        open_to_all.bind("\0greenroom-test")
        open_to_all.listen()
        assert "has no file" in given(open_to_all)


ENDS: dict[str, tuple[Any, Any, tuple[str, tuple[str, int], str]]] = {
    "a TCP connection": (("10.0.0.9", 80), ("192.0.2.1", 5), ("192.0.2.1", ("10.0.0.9", 80), "")),
    "a TCP connection of a client that has gone": (
        ("10.0.0.9", 80),
        None,
        ("", ("10.0.0.9", 80), ""),
    ),
    "a connection that is over": (None, None, ("", ("", 0), "")),
    "a Unix socket": ("/run/a", "", (SOCKET_PEER, ("", 0), "/run/a")),
    "a Unix socket whose client has a name": (
        "/run/a",
        "/tmp/127.0.0.1",
        (SOCKET_PEER, ("", 0), "/run/a"),
    ),
    "a Unix socket without a file": (b"\0a", "", ("", ("", 0), "")),
}


@pytest.mark.parametrize("ends", ENDS)
def test_only_the_kernel_says_that_a_peer_came_over_a_file(ends: str) -> None:
    here, there, wanted = ENDS[ends]
    transport = asyncio.BaseTransport({"sockname": here, "peername": there})
    assert tuple(socket_ends(transport.get_extra_info)) == wanted


VISITOR = [(b"Host", b"a.example"), (b"X-Forwarded-Proto", b"https")]
TRUSTING = ForwardedPolicy([ip_network("10.0.0.0/8")], trust_socket=True)


def arrival(sender: Sender, *more: tuple[bytes, bytes]) -> Arrival:
    found = arrival_from("GET", b"/", [*VISITOR, *more], sender)
    assert isinstance(found, Arrival)
    return found


def test_a_peer_over_a_file_is_believed_about_its_visitors_and_one_who_says_nothing_stays_unknown() -> (
    None
):
    sender = Sender(SOCKET_PEER, False, TRUSTING, by_socket=True)
    known = arrival(sender, (b"X-Forwarded-For", b"192.0.2.1"))
    assert (known.client, known.scheme) == ("192.0.2.1", "https")
    assert arrival(sender).client == SOCKET_PEER
    chain = arrival(sender, (b"X-Forwarded-For", b"192.0.2.1, 10.0.0.1"))
    assert chain.client == "192.0.2.1", "proxies before it count as ever"


@pytest.mark.parametrize("address", [SOCKET_PEER, "", "unix:/run/a", "127.0.0.1"])
def test_a_text_makes_no_peer_a_trusted_one(address: str) -> None:
    sender = Sender(address, False, TRUSTING)
    found = arrival(sender, (b"X-Forwarded-For", b"192.0.2.1"))
    assert (sender.trusted, found.client, found.scheme) == (False, address, "http")
    assert not Sender(SOCKET_PEER, False, ForwardedPolicy(), by_socket=True).trusted, (
        "and a file alone does not without the policy"
    )
    said = arrival(Sender("10.0.0.1", False, TRUSTING), (b"X-Forwarded-For", SOCKET_PEER.encode()))
    assert said.client == "10.0.0.1"


@pytest.mark.parametrize(("client", "fits"), [("192.0.2.1", False), (SOCKET_PEER, True)])
def test_visitors_whose_address_is_not_known_are_not_one_client(client: str, fits: bool) -> None:
    shares = Shares.of_requests(
        Limits(origin_connections=100, origin_address_percent=10, origin_reserve_percent=20),
        100,
    )
    full = "" if fits else "origin_address_percent"
    assert shares.exceeded((client, b""), [(client, b"")] * 20) == full
    assert shares.exceeded((client, b""), [(client, b"")] * 80), (
        "the share of requests without a ticket holds for all"
    )


SAID: dict[str, tuple[bool, dict[str, str], tuple[str, str]]] = {
    "a program of this machine": (True, {}, ("127.0.0.1", "http")),
    "a proxy over the file": (
        True,
        {"x-forwarded-for": "192.0.2.1", "x-forwarded-proto": "https"},
        ("192.0.2.1", "https"),
    ),
    "a proxy that does not say how": (
        True,
        {"x-forwarded-for": "192.0.2.1"},
        ("192.0.2.1", "http"),
    ),
    "a stranger over TCP": (
        False,
        {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "https"},
        ("192.0.2.9", "http"),
    ),
}


@pytest.mark.parametrize("who", SAID)
def test_who_speaks_to_the_control_listener(who: str) -> None:
    by_socket, headers, wanted = SAID[who]
    seen: list[tuple[str, str]] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append((scope["client"][0], scope["scheme"]))

    policy: Callable[[], ForwardedPolicy] = ForwardedPolicy
    scope = {
        "type": "http", "scheme": "http", "client": None if by_socket else ("192.0.2.9", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    asyncio.run(WithClientAddress(app, policy, by_socket=by_socket)(scope, None, None))  # type: ignore[arg-type]
    assert seen == [wanted]


def test_an_application_may_be_on_a_unix_socket() -> None:
    found = read_config(
        f'origin = "unix:/run/app.sock"\n[origins]\n"b.example" = {{ url = "unix:/run/b.sock", host_header = "b" }}\n{ROOM}'
    )
    assert (found.origin, found.origins["b.example"]) == (
        Origin.of("unix:/run/app.sock"),
        Origin.of("unix:/run/b.sock", host_header="b"),
    )
    assert found.origin is not None
    assert (found.origin.url, found.origin.path, found.origin.tls()) == (
        "unix:/run/app.sock",
        "/run/app.sock",
        None,
    )


@pytest.mark.parametrize(
    ("origin", "more", "said"),
    [
        ("unix:run/app.sock", "", "whole path"),
        ("unix:", "", "whole path"),
        ("unix:/run/../run/a", 'listen = "unix:/run/a"', "greenroom's own socket"),
        ("unix:/run/a", 'status_listen = "unix:/run/a"', "greenroom's own socket"),
    ],
)
def test_an_origin_that_is_no_socket_of_an_application_is_refused(
    origin: str, more: str, said: str
) -> None:
    with pytest.raises(InvalidConfig) as refused:
        read_config(f'origin = "{origin}"\n{more}\n{ROOM}')
    (problem,) = refused.value.problems
    assert (problem.pointer, said in problem.reason) == ("origin", True)


def test_the_editor_of_a_zone_cannot_name_a_file_of_the_machine() -> None:
    (problem,) = origin_problems("greenroom.origin", "unix:/run/app.sock")
    assert "only the configuration file can name a Unix socket" in problem.reason
    (problem,) = zone_origin_problems({}, "origin", "unix:/run/app.sock")
    assert "only the configuration file can name a Unix socket" in problem.reason
