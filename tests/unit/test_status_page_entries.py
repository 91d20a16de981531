"""`status_listen` and `[[status_pages]]` in a configuration file, and what is wrong with them."""

from pathlib import Path

import pytest

from greenroom.config_file.load import read_config
from greenroom.errors import InvalidConfig
from greenroom.model.status_page import listen_parts

ROOM = '[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'


def read(text: str, folder: Path):
    top, _, tables = text.partition("[[")
    return read_config(
        f'origin = "http://127.0.0.1:3000"\ndata = "."\n{top}\n{ROOM}'
        + (f"[[{tables}" if tables else ""),
        folder / "g.toml",
    )


def test_pages_with_their_addresses(tmp_path: Path) -> None:
    found = read(
        'status_listen = "127.0.0.1:8082"\n[[status_pages]]\nrooms = ["*"]\n[[status_pages]]\nhost = "status.example.com"',
        tmp_path,
    )
    assert str(found.status_listen) == "127.0.0.1:8082"
    assert [(page.path, page.host, page.rooms) for page in found.status_pages] == [
        ("/", "", ("*",)),
        ("/", "status.example.com", ()),
    ]
    assert read("", tmp_path).status_listen is None
    (own,) = read('[[status_pages]]\nlisten = "[::1]:8082"', tmp_path).status_pages
    assert listen_parts(own.listen) == ("::1", 8082)


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('status_listen = "nowhere"', "status_listen"),
        ('[[status_pages]]\ntitle = "a"', "status_listen"),
        ('status_listen = "127.0.0.1:0"\n[[status_pages]]\npath = "x"', "status_pages[0].path"),
        *(
            (f'[[status_pages]]\nlisten = "{listen}"', "status_pages[0].listen")
            for listen in ("8082", "shop:8082", "127.0.0.1:80", "::1:8082", "1.2.3.4:99999")
        ),
        (
            'status_listen = "127.0.0.1:0"\n[[status_pages]]\n[[status_pages]]',
            "status_pages[1].path",
        ),
        (
            'status_listen = "127.0.0.1:0"\n[[status_pages]]\nrooms = [1]',
            "status_pages[0].rooms[0]",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text: str, pointer: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read(text, tmp_path)
    assert [problem.pointer for problem in caught.value.problems] == [pointer]
