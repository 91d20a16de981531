"""Pages and logos that a configuration file names: found beside it, and refused with the reason."""

import base64
from pathlib import Path

import pytest
from config_texts import only_problem, problems, with_room

from greenroom.config_file.load import read_config


def test_a_mistake_in_a_page_is_placed_on_its_own_line() -> None:
    assert only_problem(with_room('custom_page_html = """\n<p>\n{{#queueAll}}\n"""\n')).startswith(
        "line 10: rooms[0].custom_page_html"
    )


def test_a_page_comes_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>{{waitTime}}</p>")
    config = read_config(with_room('custom_page_file = "page.html"\n'), tmp_path / "greenroom.toml")
    assert config.rooms[0].custom_page_html == "<p>{{waitTime}}</p>"
    assert config.files == (tmp_path / "greenroom.toml", tmp_path / "page.html")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"\xff", "is not UTF-8 at byte 0"),
        (b"x" * 1_048_577, "is larger than 1048576 bytes"),
        (b"a\nb {{#queueAll}}", "page.html line 2: the section"),
    ],
)
def test_a_page_file_that_cannot_be_used_says_why(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "page.html").write_bytes(content)
    (problem,) = problems(
        with_room('custom_page_file = "page.html"\n'), tmp_path / "greenroom.toml"
    )
    assert problem.startswith("line 8: rooms[0].custom_page_file:")
    assert said in problem


def test_a_logo_comes_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n"
    (tmp_path / "logo.png").write_bytes(picture)
    config = read_config(
        with_room('branding = { site_name = "Shop", logo_file = "logo.png" }\n'),
        tmp_path / "greenroom.toml",
    )
    assert (
        config.rooms[0].branding.logo
        == f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    )
    assert config.rooms[0].branding.site_name == "Shop"
    assert config.files == (tmp_path / "greenroom.toml", tmp_path / "logo.png")


@pytest.mark.parametrize(
    ("file", "more", "said"),
    [
        ("none.png", "", "No such file or directory"),
        ("logo.txt", "", "must name a file that ends in .png"),
        ("logo.svg", "", "is not a file of the type image/svg+xml"),
        ("large.png", "", "is larger than 16384 bytes"),
        (
            "logo.png",
            ', logo = "data:image/png;base64,iVBORw0KGgo="',
            "cannot be used together with logo",
        ),
    ],
)
def test_a_logo_file_that_cannot_be_used_says_why(
    tmp_path: Path, file: str, more: str, said: str
) -> None:
    for name, content in (
        ("logo.png", b"\x89PNG\r\n\x1a\n"),
        ("logo.svg", b"GIF89a"),
        ("large.png", b"\x89PNG\r\n\x1a\n" * 3_000),
    ):
        (tmp_path / name).write_bytes(content)
    (problem,) = problems(
        with_room(f'branding = {{ logo_file = "{file}"{more} }}\n'), tmp_path / "greenroom.toml"
    )
    assert problem.startswith("line 8: rooms[0].branding.logo")
    assert said in problem
