from importlib.metadata import version

from starlette.responses import Response

from greenroom.configuration.dashboard.parts import process_state
from greenroom.dashboard.assets import installed_assets
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

PACKAGES = ("greenroom", "starlette", "uvicorn", "sqlalchemy", "duckdb", "cryptography")


def show(page: PageRequest) -> Response:
    packages = {name: version(name) for name in PACKAGES}
    return page.render(
        "about.html",
        state=process_state(page),
        packages=packages,
        libraries=installed_assets().versions(),
    )


PAGES = (view("/about", show, filtered=True),)
