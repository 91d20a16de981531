"""What some tests need of the machine, which containers often withhold, and how it is found out
whether it is there.
"""

import os
import shutil
import subprocess
from functools import cache

from greenroom.runtime.compiled import is_compiled

NAMESPACE = ("unshare", "--user", "--map-root-user")


def _works(*command: str) -> bool:
    try:
        return (
            subprocess.run([*NAMESPACE, *command], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


RIGHTS = {
    "mount": (
        "no small disks can be mounted here (user namespaces with mounts)",
        lambda: _works("--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"),
    ),
    "containers": (
        "no images can be built here (root, with buildah and mmdebstrap)",
        lambda: os.geteuid() == 0 and bool(shutil.which("buildah") and shutil.which("mmdebstrap")),
    ),
    "network": (
        "no networks can be made here (user namespaces with networks)",
        lambda: _works("--net", "true"),
    ),
    "patching": (
        "modules cannot be changed while they run here (they are compiled)",
        lambda: not is_compiled(),
    ),
    "root": (
        "files cannot be given to another user here (only root may)",
        lambda: os.geteuid() == 0,
    ),
}
"""By the name in `@pytest.mark.needs(name)`: why a test cannot run without it, and whether it is
there.
"""


@cache
def missing(right: str) -> str:
    """Why tests that need this right cannot run here; empty when they can."""
    reason, there = RIGHTS[right]
    return "" if there() else reason
