"""Status pages in the store, beside the configuration file's. An extension."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from greenroom.configuration.file_tables import (
    FileTables,
    NamedFiles,
    file_entry,
    file_id,
    read_document,
    step,
    tables,
)
from greenroom.errors import Problem
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.fields import Unique, taken
from greenroom.model.status_page import PAGES_MAX, StatusPage, page_problems
from greenroom.web.api_schema import (
    ApiSchema,
    computed,
    overlaid,
    read_as,
)
from greenroom.web.api_shapes import Json, Several, Shown
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    DocumentSection,
    PlannedChange,
    entry_of,
    refuse_read_only,
)
from greenroom.web.refusals import ApiFault, Code, faults_of, refuse_if, too_many

PAGE = ApiSchema.of(
    StatusPage,
    shapes={"rooms": Several(), "health_checks": Several()},
    more=(
        computed(
            "read_only",
            "true: it comes from a configuration file and can only be changed there",
            Shown({"type": "boolean"}),
        ),
    ),
)


def show(entry: Entry[StatusPage]) -> Json:
    values = {item.name: getattr(entry.record, item.name) for item in fields(StatusPage)}
    return PAGE.show(values | {"read_only": entry.read_only})


def page_of(known: Configuration, page_id: str) -> Entry[StatusPage]:
    return entry_of(known.status_pages, "status page", page_id)


def create(document: Any) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        values, faults = read_as(PAGE, document, page_problems)
        faults += _taken(known, "", values)
        faults += too_many(known.status_pages, PAGES_MAX, "status pages")
        refuse_if(faults)
        return _put(StatusPage(id=at.new_id(), **values))

    return plan


def change(page_id: str, document: Any) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        entry = page_of(known, page_id)
        refuse_read_only(entry, "status page")
        values, faults = read_as(PAGE, overlaid(show(entry), document), page_problems)
        refuse_if(faults + _taken(known, page_id, values))
        return _put(replace(entry.record, **values))

    return plan


def delete(page_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        refuse_read_only(page_of(known, page_id), "status page")
        return PlannedChange([Remove("status_page", page_id)], lambda _after: {"id": page_id})

    return plan


def _taken(known: Configuration, page_id: str, values: Json) -> list[ApiFault]:
    where = f"{values.get('host', '')}{values.get('path', '')}"
    others = (page for page in known.status_pages.records() if page.id != page_id)
    if all(page.where != where for page in others):
        return []
    return faults_of([taken("path", "status page", where)], Code.TAKEN)


def _put(record: StatusPage) -> PlannedChange:
    return PlannedChange([Put(record)], lambda after: show(after.status_pages[record.id]))


SECTION = DocumentSection(
    "status_pages",
    "status_page",
    PAGES_MAX,
    lambda entry: PAGE.brief(show(entry)),
    lambda wanted: create(wanted.document),
    lambda document: f"{document.get('host') or ''}{document.get('path') or '/'}",
)


def _read_file(
    raw: Mapping[str, Any], _files: NamedFiles, problems: list[Problem]
) -> list[Entry[Any]]:
    pages: list[Entry[Any]] = []
    places = Unique("status page")
    for at, entry in tables(raw.get("status_pages", []), "status_pages", PAGES_MAX, problems):
        values, found = read_document(PAGE, entry, at, page_problems)
        problems += found
        if found:
            continue
        page = StatusPage(id=file_id("status page", values["host"] + values["path"]), **values)
        problems += places.problems(step(at, "path"), page.where)
        pages.append(file_entry(page))
    return pages


def _file_lines(documents: Configuration) -> Iterator[str]:
    for page in documents.status_pages.records():
        rooms, checks = _names(page.rooms), _names(page.health_checks)
        yield f"status     {page.where}: {page.title}; rooms {rooms}; health checks {checks}"


def _names(names: tuple[str, ...]) -> str:
    return "all" if "*" in names else ", ".join(names) or "none"


TABLES = FileTables(("status_pages",), _read_file, _file_lines)
