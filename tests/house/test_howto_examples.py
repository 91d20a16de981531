"""The configuration files and pages that the documents show really work."""

import re
import secrets
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

from greenroom.cli import app
from greenroom.config_file.addresses import origin_problems
from greenroom.config_file.load import Overrides, read_config
from greenroom.errors import InvalidConfig
from greenroom.model.configuration import Configuration
from greenroom.model.room import Room
from greenroom.pages.template import template_problems
from greenroom.transfer.export_import import make_true
from greenroom.web.config_service import ChangeContext

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOM = '[[rooms]]\nname = "a"\nhost = "a.example.com"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'
ORIGIN = 'origin = "http://127.0.0.1:3000"\ndata = "."\n'


def blocks(language: str) -> list:
    found = []
    for path in DOCUMENTS:
        for index, text in enumerate(
            re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.M | re.S)
        ):
            found.append(pytest.param(text, id=f"{path.relative_to(ROOT)}:{index}"))
    return found


@pytest.mark.parametrize("text", blocks("toml"))
def test_a_configuration_in_the_documents_is_correct(text: str, tmp_path: Path) -> None:
    """A piece without an origin, a room or what a room requires gets it; the rest stands as written."""
    if "[[zones" in text:  # not a configuration file, but what `greenroom apply` takes
        moment = ChangeContext(0, lambda: secrets.token_hex(16))
        assert make_true(tomllib.loads(text), origin_problems)(Configuration(), moment).changes
        return
    whole = (text if re.search(r"^(origin|\[origins)", text, re.M) else ORIGIN + text) + (
        "" if "[[rooms]]" in text else ROOM
    )
    if "\nhost = " not in whole:
        whole = whole.replace("[[rooms]]\n", ROOM)
    (tmp_path / "waiting.html").write_text("wait")
    (tmp_path / "oidc-secret").write_text("hush")
    (tmp_path / "prometheus.token").write_text("hush")
    (tmp_path / "slack-url").write_text("https://hooks.slack.com/services/T000/B000/XXXX\n")
    given = {"data": str(tmp_path)}
    if names := tomllib.loads(whole).get(
        "datacenters"
    ):  # where a machine is comes from its command line
        given |= {
            "datacenter": names[0],
            "redis": "redis://127.0.0.1",
            "global_redis": "redis://127.0.0.1:6380",
        }
    read_config(whole, tmp_path / "greenroom.toml", Overrides(given))


def test_a_wrong_configuration_would_be_found(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig):
        read_config(ORIGIN + ROOM.replace("host", "hots"), tmp_path / "greenroom.toml")


@pytest.mark.parametrize("text", blocks("html"))
def test_a_page_in_the_documents_is_a_good_template(text: str) -> None:
    assert "{{" in text
    assert template_problems(text, "page") == []
    Room(
        name="a",
        host="a.example.com",
        total_active_users=1,
        new_users_per_minute=1,
        custom_page_html=text,
    )


def commands_of(text: str) -> list[str]:
    """What follows `greenroom` in blocks for the shell and in backticks, up to a pipe or comment;
    `greenroom is unreachable` is a line of a log.
    """
    shells = re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.M | re.S)
    lines = "\n".join(shells).replace("\\\n", " ").splitlines()
    lines += re.findall(r"`([^`\n]+)`", text)
    called = re.compile(
        r"(?:[$>] )?(?:podman exec \w+ )?(?:\S+/)?greenroom ((?!is )[a-z][a-z-]*(?:$| [^|;&#>]*))"
    )
    return [found[1] for line in lines if (found := called.match(line.strip()))]


def misspelt(command: Any, words: list[str]) -> str:
    """Why the words are no call of the command; placeholders stand for values."""
    if inside := getattr(command, "commands", None):
        if not words or words[0] not in inside:
            return f"there is no command {words[:1]}"
        return misspelt(inside[words[0]], words[1:])
    known = {name for param in command.params for name in param.opts}
    return next((word for word in words if word.startswith("-") and word not in known), "")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_the_documents_exists(path: Path) -> None:
    whole = typer.main.get_command(app)
    for said in commands_of(path.read_text()):
        words = [word.partition("=")[0] for word in shlex.split(said) if word != "..."]
        assert not misspelt(whole, words), said


def test_a_command_that_does_not_exist_is_found() -> None:
    whole = typer.main.get_command(app)
    (said,) = commands_of("```sh\n.venv/bin/greenroom serve --orgin http://x  # note\n```")
    assert misspelt(whole, shlex.split(said)) == "--orgin"
    assert misspelt(whole, ["room", "hald"])
