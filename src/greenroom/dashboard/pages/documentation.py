from importlib.metadata import version

from starlette.exceptions import HTTPException
from starlette.responses import Response

from greenroom.configuration.dashboard.parts import process_state
from greenroom.dashboard.assets import installed_assets
from greenroom.dashboard.documents import HELP, SECTIONS, documents, shown
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import view

PACKAGES = ("greenroom", "starlette", "uvicorn", "sqlalchemy", "duckdb", "cryptography")


def index(page: PageRequest) -> Response:
    known = list(documents().values())
    by_kind = [
        (
            title,
            [one for one in known if one.name.startswith(f"{section}/") and not one.internal],
        )
        for section, title in SECTIONS.items()
    ]
    by_kind.append(("Internals of greenroom", [one for one in known if one.internal]))
    return page.render("help.html", kinds=by_kind, document=None)


def show(page: PageRequest) -> Response:
    document = documents().get(f"{page.path('section')}/{page.path('document')}")
    if document is None:
        raise HTTPException(404)
    return page.render("help.html", document=document, body=shown(document.name, page.prefix))


def about(page: PageRequest) -> Response:
    packages = {name: version(name) for name in PACKAGES}
    return page.render(
        "about.html",
        state=process_state(page),
        packages=packages,
        libraries=installed_assets().versions(),
    )


PAGES = (
    view("/about", about, filtered=True),
    view(HELP, index, filtered=True),
    view(f"{HELP}/{{section}}/{{document}}", show, filtered=True),
)
