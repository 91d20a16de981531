"""examples/compose, as far as it can be checked without Docker: files that exist, settings that
greenroom and Prometheus take, and nothing published beyond this machine.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from greenroom.cli import app

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDER = EXAMPLES / "compose"
CONTAINERFILE = EXAMPLES / "container" / "Containerfile.compiled"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"])


def mounted(services: dict[str, Any]) -> dict[str, Path]:
    """Place in a container -> file of the repository."""
    pairs = [one.split(":") for found in services.values() for one in found.get("volumes", [])]
    return {place: FOLDER / source for source, place, *_ in pairs if source.startswith(".")}


def test_every_file_is_there_and_images_are_of_one_version(services: dict[str, Any]) -> None:
    assert [str(file) for file in mounted(services).values() if not file.exists()] == []
    build = services["greenroom"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == CONTAINERFILE
    others = [found["image"] for found in services.values() if found["image"] != "greenroom"]
    assert all(":" in image and not image.endswith(":latest") for image in others)
    ports = [port for found in services.values() for port in found.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_greenroom_takes_its_settings_and_commands(services: dict[str, Any]) -> None:
    checked = CliRunner().invoke(app, ["check", str(FOLDER / "greenroom.toml")])
    assert checked.exit_code == 0, checked.output
    for name in ("greenroom", "shop"):
        command, *options = services[name]["command"]
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        assert all(one in shown for one in options if one.startswith("--"))
    assert "CMD greenroom ready" in CONTAINERFILE.read_text()


def test_prometheus_takes_its_settings(services: dict[str, Any], tmp_path: Path) -> None:
    for place, file in mounted(services).items():
        if place.startswith("/etc/prometheus/"):
            shutil.copy(file, tmp_path / Path(place).name)
    check = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_grafana_finds_prometheus_and_the_dashboards(services: dict[str, Any]) -> None:
    files = {place.rsplit("/", 2)[-2]: file for place, file in mounted(services).items()}
    (source,) = yaml.safe_load(files["datasources"].read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load(files["dashboards"].read_text())["providers"]
    folder = mounted(services)[provider["options"]["path"]]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (folder / Path(home).name).exists()
