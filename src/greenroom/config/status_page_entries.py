import hashlib
from typing import Any

from greenroom.config.addresses import address_of, address_problems
from greenroom.config.records import read_document
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.fields import Unique
from greenroom.model.status_page import PAGES_MAX, StatusPage, page_problems
from greenroom.settings.process import Address
from greenroom.status_page.pages import PAGE


def page_id(host: str, path: str) -> str:
    """Depends on the address only."""
    return hashlib.sha256(f"status page/{host}{path}".encode()).hexdigest()[:32]


def read_status_pages(
    listen: str, raw: Any, problems: list[Problem]
) -> tuple[Address | None, tuple[StatusPage, ...]]:
    """(address or None, pages)."""
    address = None
    if listen:
        problems += address_problems("status_listen", listen)
        address = address_of(listen)
    if not isinstance(raw, list):
        problems.append(Problem("status_pages", f"must be a list of tables, not {raw!r:.60}"))
        return address, ()
    if len(raw) > PAGES_MAX:
        problems.append(
            Problem("status_pages", f"must be at most {PAGES_MAX} entries, not {len(raw)}")
        )
    if raw and not listen:
        problems.append(
            Problem(
                "status_listen",
                "is required for [[status_pages]]: the address where they are served",
            )
        )
    pages: list[StatusPage] = []
    places = Unique("status page")
    for index, entry in enumerate(raw):
        at = step("status_pages", index)
        if not isinstance(entry, dict):
            problems.append(Problem(at, f"must be a table, not {entry!r:.60}"))
            continue
        values, found = read_document(PAGE, entry, at, page_problems)
        problems += found
        if found:
            continue
        page = StatusPage(id=page_id(values["host"], values["path"]), **values)
        problems += places.problems(step(at, "path"), page.where)
        pages.append(page)
    return address, tuple(pages)
