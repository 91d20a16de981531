"""The configuration of the store as one document."""

import json
from typing import Any

from starlette.responses import Response

from greenroom.configuration.dashboard.parts import ORIGIN_PROBLEMS
from greenroom.configuration.file_tables import read_json, read_toml
from greenroom.model.account import Role
from greenroom.transfer.export_import import exported, make_true
from greenroom.web.pages.request import PageRequest
from greenroom.web.pages.routing import action, view
from greenroom.web.refusals import ApiFault, Code, Refused


def show(page: PageRequest) -> Response:
    return _shown(page)


def export(page: PageRequest) -> Response:
    body = json.dumps(exported(page.known), indent=2, ensure_ascii=False) + "\n"
    return Response(
        body,
        media_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="greenroom.json"'},
    )


def take(page: PageRequest) -> Response:
    """Applies it after review, unless the configuration has changed meanwhile."""
    text = page.field("document")
    try:
        plan = make_true(_read(text), page.parts[ORIGIN_PROBLEMS])
        if page.field("step") != "save":
            return _shown(
                page,
                text=text,
                lines=page.config.trial(plan),
                revision=str(page.known.revision),
            )
        if page.field("revision") != str(page.known.revision):
            raise Refused(
                ApiFault(
                    Code.CHANGED_MEANWHILE,
                    "the configuration has changed since you reviewed this: review it again",
                )
            )
        page.change(plan)
    except Refused as refused:
        texts = [
            f"{fault.pointer}: {fault.message}" if fault.pointer else fault.message
            for fault in refused.faults
        ]
        return _shown(page, text=text, problems=texts, status=refused.status)
    return page.redirect("/transfer", notice="saved")


def _read(text: str) -> Any:
    try:
        return read_json(text) if text.lstrip()[:1] == "{" else read_toml(text)
    except (ValueError, RecursionError) as error:
        raise Refused(ApiFault(Code.BAD_BODY, f"this is neither JSON nor TOML: {error}")) from None


def _shown(
    page: PageRequest,
    *,
    text: str = "",
    lines: list[str] | None = None,
    revision: str = "",
    problems: list[str] | None = None,
    status: int = 200,
) -> Response:
    return page.render(
        "transfer.html", status, text=text, lines=lines, revision=revision, problems=problems or []
    )


PAGES = (
    view("/transfer", show, Role.ADMIN),
    view("/transfer/greenroom.json", export, Role.ADMIN),
    action("/transfer", take, Role.ADMIN),
)
