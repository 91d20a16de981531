from typing import Any

from greenroom.config.addresses import address_of, address_problems
from greenroom.config.records import read_record
from greenroom.config.toml_lines import step
from greenroom.errors import Problem
from greenroom.model.status_page import PAGES_MAX, PageSettings, name_problems
from greenroom.settings.process import Address


def read_status_pages(
    listen: str, raw: Any, problems: list[Problem]
) -> tuple[Address | None, tuple[PageSettings, ...]]:
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
    pages: list[PageSettings] = []
    taken: dict[tuple[str, str], str] = {}
    for index, entry in enumerate(raw):
        at = step("status_pages", index)
        page = read_record(PageSettings, entry, at, problems)
        if page is None:
            continue
        for key in ("rooms", "health_checks"):
            problems += name_problems(step(at, key), getattr(page, key))
        if taken.setdefault((page.host, page.path), at) != at:
            problems.append(
                Problem(
                    step(at, "path"),
                    f"{page.path!r} is the path of {taken[page.host, page.path]} already",
                )
            )
        pages.append(page)
    return address, tuple(pages)
