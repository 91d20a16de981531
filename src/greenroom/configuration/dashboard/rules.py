"""Bypass rules of a room: their order, a form with conditions as rows, and a request to try them
with.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.responses import JSONResponse, Response

from greenroom.configuration import rules
from greenroom.configuration.dashboard.parts import EXPLAINS
from greenroom.configuration.dashboard.rule_rows import (
    GROUPS_MAX,
    ROW_FIELDS,
    ROW_OPERATORS,
    ROWS_MAX,
    ConditionRow,
    Groups,
    expression_of,
    operators_of,
    rows_of,
)
from greenroom.configuration.explain_request import (
    CLIENT,
    CLIENT_MAX,
    HEADERS_MAX,
    URL_MAX,
    ExplainRequest,
)
from greenroom.decision.explain import Explanation
from greenroom.model.account import Role
from greenroom.model.record import replace
from greenroom.model.rule import EXPRESSION_MAX, Rule
from greenroom.rules import FIELDS, FUNCTIONS, rule_faults
from greenroom.rules.fields import ALIASES
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import Faults, unchanged_since
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import SearchResult, action, view
from greenroom.web.refusals import Refused, not_found

RULES_PATH = "/zones/{zone_id}/rooms/{room_id}/rules"
NEW_ROW = ConditionRow("ip.src", "in")
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")

_NUMBERED = re.compile(r"(field|operator|value|key)-([0-9]{1,2})-([0-9]{1,2})")
_STEP = re.compile(r"(add|drop|group)-([0-9]{1,2})(?:-([0-9]{1,2}))?")


def table(page: PageRequest) -> Response:
    return page.render("rules.html", entry=page.room, rules=_rules(page), revision=_revision(page))


def new(page: PageRequest) -> Response:
    _ = page.own_room  # or it is refused
    return _form(
        page, [[NEW_ROW]], {"expression": "", "description": "", "enabled": True}, Faults()
    )


def create(page: PageRequest) -> Response:
    return _sent(page, lambda document: rules.append(page.zone.id, page.room.id, document))


def edit(page: PageRequest) -> Response:
    rule = _rule(page)
    values = {
        "expression": rule.expression,
        "description": rule.description,
        "enabled": rule.enabled,
    }
    return _form(page, rows_of(rule.expression), values, Faults(), rule)


def save(page: PageRequest) -> Response:
    rule = _rule(page)
    return _sent(
        page, lambda document: rules.edit(page.zone.id, page.room.id, rule.id, document), rule
    )


def change_one(page: PageRequest) -> Response:
    found = _rules(page)
    place = found.index(_rule(page))
    rule, step = found[place], page.field("step")
    zone_id, room_id = page.zone.id, page.room.id
    plans = {
        "up": lambda: rules.edit(zone_id, room_id, rule.id, {"position": {"index": max(1, place)}}),
        "down": lambda: rules.edit(zone_id, room_id, rule.id, {"position": {"index": place + 2}}),
        "to": lambda: rules.edit(
            zone_id, room_id, rule.id, {"position": {"index": _place(page, len(found))}}
        ),
        "switch": lambda: rules.edit(zone_id, room_id, rule.id, {"enabled": not rule.enabled}),
        "remove": lambda: rules.delete(zone_id, room_id, rule.id),
    }
    if step in plans:
        page.change(unchanged_since("rules", room_id, page.field("revision"), plans[step]()))
    return page.redirect(_path(page), notice="removed" if step == "remove" else "saved")


def check(page: PageRequest) -> Response:
    known, expression, problems = (
        rules.memberships(page.known),
        page.field("expression")[: EXPRESSION_MAX + 1],
        list[str](),
    )
    _rules(page)  # in this zone, or it is not found
    if page.field("of") == "rows":
        try:
            expression = expression_of(_groups(page))
        except ValueError as error:
            return JSONResponse(
                {"expression": None, "problems": str(error).splitlines(), "faults": []}
            )
    faults = rule_faults(expression, known) if expression else ()
    told = [
        {"from": fault.start, "to": max(fault.end, fault.start + 1), "message": fault.reason}
        for fault in faults
    ]
    return JSONResponse({"expression": expression, "problems": problems, "faults": told})


async def try_out(page: PageRequest) -> Response:
    room = page.room.record
    headers = page.query("headers")
    asked = {
        "url": page.query("url"),
        "method": page.query("method", "GET"),
        "client": page.query("client"),
        "headers": headers,
    }
    found, problem = None, ""
    explains = page.part(EXPLAINS)
    if asked["url"] and explains is not None:
        pairs = [
            (name.strip(), value.strip())
            for line in headers.splitlines()[:HEADERS_MAX]
            for name, _, value in [line.partition(":")]
        ]
        found = explains.explain(
            ExplainRequest(
                asked["url"][:URL_MAX],
                asked["method"] if asked["method"] in METHODS else "GET",
                tuple(pair for pair in pairs if pair[0]),
                asked["client"].strip()[:CLIENT_MAX] or CLIENT,
            )
        )
        if page.person.zone_ids:
            found = _within_walls(page, found)
    elif asked["url"]:
        problem = "This process serves no visitors, so it cannot tell."
    asked["url"] = asked["url"] or f"https://{room.host.removeprefix('*')}{room.path}"
    return page.render(
        "rules_try.html",
        entry=page.room,
        asked=asked,
        found=found,
        problem=problem,
        methods=METHODS,
    )


def _within_walls(page: PageRequest, found: Explanation) -> Explanation:
    room = page.known.rooms.get(found.room_id)
    bare = Explanation(found.method, found.url, found.client, "depends", "", "")
    if room is None or not page.person.sees(room.parent):
        if not found.room_id and found.result == "refused":
            return replace(bare, result=found.result, word=found.word, reason=found.reason)
        return replace(bare, word="other_zone", reason="No room of your zones covers this address.")
    shown = tuple(
        (
            replace(rule, result="not shown: it uses a list, and lists belong to all zones")
            if rule.result != "switched off" and rule_faults(rule.expression)
            else rule
        )
        for rule in found.rules
    )
    if shown == found.rules:
        return found
    reason = "A rule of the room uses a list, and lists belong to all zones."
    return replace(bare, word="lists", reason=reason, room_id=room.id, room=found.room, rules=shown)


def _place(page: PageRequest, last: int) -> int:
    text = page.field("place")
    return (
        min(max(1, int(text)), last)
        if text.isascii() and text.isdigit() and len(text) < 5
        else last
    )


def _path(page: PageRequest) -> str:
    return f"/zones/{page.zone.id}/rooms/{page.room.id}/rules"


def _rules(page: PageRequest) -> list[Rule]:
    return list(rules.rules_of(page.known, page.zone.id, page.room.id))


def _rule(page: PageRequest) -> Rule:
    wanted = page.path("rule_id")
    found = next((rule for rule in _rules(page) if rule.id == wanted), None)
    if found is None:
        raise not_found("rule", wanted)
    return found


def _revision(page: PageRequest) -> str:
    entry = page.known.rules.get(page.room.id)
    return str(entry.revision) if entry else ""


def _groups(page: PageRequest) -> list[list[ConditionRow]]:
    cells: dict[tuple[int, int], dict[str, str]] = {}
    for name in page.form:
        found = _NUMBERED.fullmatch(name)
        if found:
            cells.setdefault((int(found[2]), int(found[3])), {})[found[1]] = page.field(name)[
                :EXPRESSION_MAX
            ]
    groups: dict[int, list[ConditionRow]] = {}
    for (group, _), cell in sorted(cells.items()):
        row = ConditionRow(
            cell.get("field", ""),
            cell.get("operator", ""),
            cell.get("value", ""),
            cell.get("key", ""),
        )
        if row.field in ROW_FIELDS and row.operator not in operators_of(row.field):
            row = row._replace(operator=operators_of(row.field)[0])
        groups.setdefault(group, []).append(row)
    return list(groups.values())


def _sent(page: PageRequest, plan: Any, rule: Rule | None = None) -> Response:
    groups = _groups(page)
    document: Json = {
        "action": "bypass_waiting_room",
        "expression": page.field("expression").strip(),
        "description": page.field("description"),
        "enabled": "enabled" in page.form,
    }
    stepped = _STEP.fullmatch(page.field("step"))
    if stepped:
        return _form(
            page,
            _stepped(groups, stepped[1], int(stepped[2]), int(stepped[3] or 0)),
            document,
            Faults(),
            rule,
        )
    faults, wrong = Faults(), list[str]()
    if page.field("step") == "write" or (groups and not document["expression"]):
        try:
            document["expression"] = expression_of(groups)
        except ValueError as error:
            wrong = str(error).splitlines()
    if wrong or page.field("step") == "write":
        return _form(page, groups, document, faults, rule, wrong, 400 if wrong else 200)
    try:
        page.change(
            unchanged_since("rules", page.room.id, page.field("revision"), plan(document))
            if rule
            else plan(document)
        )
    except Refused as refused:
        return _form(
            page, groups or None, document, Faults(refused.faults), rule, status=refused.status
        )
    return page.redirect(_path(page), notice="saved" if rule else "created")


def _stepped(groups: list[list[ConditionRow]], step: str, group: int, row: int) -> Groups:
    if step == "group" and len(groups) < GROUPS_MAX:
        groups.append([NEW_ROW])
    elif step == "add" and group < len(groups) and len(groups[group]) < ROWS_MAX:
        groups[group].append(NEW_ROW)
    elif step == "drop" and group < len(groups) and row < len(groups[group]):
        del groups[group][row]
    return [rows for rows in groups if rows] or [[NEW_ROW]]


def _form(
    page: PageRequest,
    groups: Groups | None,
    values: Json,
    faults: Faults,
    rule: Rule | None = None,
    wrong: Sequence[str] = (),
    status: int = 200,
) -> Response:
    expression_faults = faults.take("expression")
    fields = [
        (name, label, operators_of(name), "named" in label) for name, label in ROW_FIELDS.items()
    ]
    return page.render(
        "rule_form.html",
        status,
        entry=page.room,
        rule=rule,
        groups=groups,
        values=values,
        fields=fields,
        operators=ROW_OPERATORS,
        operators_of={name: operators_of(name) for name in ROW_FIELDS},
        lists=sorted(item.record.name for item in page.known.lists.values()),
        problems=[*wrong, *faults.general],
        expression_faults=expression_faults,
        revision=page.field("revision") or _revision(page),
        words={
            "fields": {name: spec.help for name, spec in FIELDS.items() if name not in ALIASES},
            "functions": sorted(FUNCTIONS),
        },
        expression_max=EXPRESSION_MAX,
    )


def find(page: PageRequest, text: str) -> Iterator[SearchResult]:
    for room in page.person.rooms(page.known):
        for rule in page.known.rules_of(room.id):
            if text in f"{rule.expression} {rule.description}".lower():
                yield SearchResult(
                    "Rule",
                    rule.description or rule.expression[:80],
                    f"/zones/{room.parent}/rooms/{room.id}/rules",
                    f"in {room.record.name}",
                )


PAGES = (
    view(RULES_PATH, table),
    view(f"{RULES_PATH}/new", new, Role.OPERATOR),
    action(f"{RULES_PATH}/new", create),
    view(f"{RULES_PATH}/try", try_out),
    action(f"{RULES_PATH}/check", check),
    view(f"{RULES_PATH}/{{rule_id}}/edit", edit, Role.OPERATOR),
    action(f"{RULES_PATH}/{{rule_id}}/edit", save),
    action(f"{RULES_PATH}/{{rule_id}}/change", change_one),
)
