"""The configuration files and pages that the documents show really work."""

import re
import secrets
import tomllib
from pathlib import Path

import pytest

from greenroom.config.addresses import origin_problems
from greenroom.config.load import Overrides, read_config
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
