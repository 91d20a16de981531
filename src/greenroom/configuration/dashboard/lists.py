"""Named lists that rules use as `$name`: making one, and putting its items in, a line each."""

from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from greenroom.configuration import list_items, lists
from greenroom.configuration.list_items import Catalogue, Operations
from greenroom.model.account import Role
from greenroom.model.fields import form_fields, specs
from greenroom.model.rule import RuleList
from greenroom.web.pages.forms import Faults, field_view, unchanged_since
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, action, view
from greenroom.web.refusals import Refused

FORM = form_fields(RuleList)
KINDS = specs(RuleList)["kind"].choice_labels()
EXAMPLES = {
    "ip": "192.0.2.17 # monitor\n198.51.100.0/24 # headquarters",
    "hostname": "partner.example.com\n*.example.org",
    "asn": "64500 # our own network",
}
PER_PAGE = 100

_done = Operations()

_catalogue = Catalogue()


def table(page: PageRequest) -> Response:
    found = [
        (entry, lists.show(page.known, entry))
        for entry in sorted(page.known.lists.values(), key=lambda entry: entry.record.name)
    ]
    return page.render("lists.html", lists=found, kinds=KINDS)


def new(page: PageRequest) -> Response:
    return _form(page, {"name": "", "kind": "ip", "description": ""}, Faults())


def create(page: PageRequest) -> Response:
    document = {name: page.field(name).strip() for name in FORM}
    try:
        made = page.change(lists.create(document))
    except Refused as refused:
        return _form(page, document, Faults(refused.faults), refused.status)
    return page.redirect(f"/lists/{made['id']}", notice="created")


def show(page: PageRequest) -> Response:
    return _items(page, "", [])


def put(page: PageRequest) -> Response:
    entry = lists.list_of(page.known, page.path("list_id"))
    item_id, text = page.field("remove"), page.field("items")
    try:
        if item_id:
            page.change(list_items.remove(entry.id, {"items": [{"id": item_id}]}, _done))
            return page.redirect(f"/lists/{entry.id}", notice="removed")
        documents = [_item(entry.record.kind, line) for line in text.splitlines() if line.strip()]
        page.change(
            list_items.add(entry.id, documents, _done, whole=page.field("step") == "replace")
        )
    except Refused as refused:
        return _items(
            page, text, [_told(fault.message) for fault in refused.faults], refused.status
        )
    return page.redirect(f"/lists/{entry.id}", notice="saved")


def remove(page: PageRequest) -> Response:
    entry = lists.list_of(page.known, page.path("list_id"))
    page.change(unchanged_since("list", entry.id, page.field("revision"), lists.delete(entry.id)))
    return page.redirect("/lists", notice="removed")


def _item(kind: str, line: str) -> Any:
    """What is no number stays text: the schema reports it."""
    value, _, comment = (part.strip() for part in line.partition("#"))
    shown: Any = {"url_hostname": value} if kind == "hostname" else value
    if kind == "asn" and value.isascii() and value.isdigit() and len(value) < 11:
        shown = int(value)
    return {kind: shown, "comment": comment}


def _told(message: str) -> str:
    """Faults count items from 0; people count lines from 1."""
    number, slash, rest = message.partition(": ")
    return f"Item {int(number) + 1}: {rest}" if slash and number.isdigit() else message


def _items(page: PageRequest, text: str, problems: list[str], status: int = 200) -> Response:
    entry = lists.list_of(page.known, page.path("list_id"))
    found = _catalogue.slice(
        page.known, entry.id, page.query("at"), PER_PAGE, page.query("q").strip()
    )
    return page.render(
        "list.html",
        status,
        entry=entry,
        shown=lists.show(page.known, entry),
        kinds=KINDS,
        found=found,
        text=text,
        sought=page.query("q"),
        example=EXAMPLES[entry.record.kind],
        problems=problems,
    )


def _form(page: PageRequest, values: Any, faults: Faults, status: int = 200) -> Response:
    fields = [field_view(lists.LIST, name, values.get(name, ""), faults) for name in FORM]
    return page.render("list_form.html", status, fields=fields, problems=faults.general)


def find(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for entry in page.known.lists.values() if not page.person.zone_ids else ():
        if text in f"${entry.record.name} {entry.record.description}".lower():
            yield SearchResult(
                "List", f"${entry.record.name}", f"/lists/{entry.id}", entry.record.description[:80]
            )


PAGES = (
    view("/lists", table),
    view("/lists/new", new, Role.OPERATOR),
    action("/lists/new", create),
    view("/lists/{list_id}", show),
    action("/lists/{list_id}", put),
    action("/lists/{list_id}/remove", remove),
)
