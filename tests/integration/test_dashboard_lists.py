"""Lists in the dashboard: pasted in bulk, all or none, with faults that name their line; removed
only when no rule needs them.
"""

import html
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_rig import DashboardRig, dashboard_in


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[DashboardRig]:
    with dashboard_in(tmp_path) as found:
        yield found


def made(rig: DashboardRig, kind: str) -> str:
    answer = rig.person("operator").post(
        "/lists/new", name=f"a_{kind}", kind=kind, description="Ours"
    )
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].partition("?")[0]


def items(rig: DashboardRig) -> dict[str, str]:
    return {
        entry.record.value: entry.record.comment for entry in rig.store.read().list_items.values()
    }


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        (
            "ip",
            "192.0.2.1 # monitor\n\n 198.51.100.0/24\n192.0.2.1 # later",
            {"192.0.2.1": "later", "198.51.100.0/24": ""},
        ),
        (
            "hostname",
            "*.Example.org\npartner.example # them",
            {"*.example.org": "", "partner.example": "them"},
        ),
        ("asn", "64500\n64501 # other", {"64500": "", "64501": "other"}),
    ],
)
def test_items_are_pasted_replaced_found_and_removed(
    rig: DashboardRig, kind: str, text: str, wanted: dict[str, str]
) -> None:
    path, visitor = made(rig, kind), rig.person("operator")
    assert visitor.post(path, items=text, step="add").status_code == 303
    assert items(rig) == wanted
    first, last = wanted
    assert f"Remove {last}" in visitor.get(f"{path}?q={last}").text
    found = next(
        entry.id for entry in rig.store.read().list_items.values() if entry.record.value == first
    )
    assert visitor.post(path, remove=found).status_code == 303
    assert items(rig) == {last: wanted[last]}
    assert visitor.post(path, items=first, step="replace").status_code == 303
    assert items(rig) == {first: ""}


def test_all_are_taken_or_none_and_every_fault_names_its_item(rig: DashboardRig) -> None:
    path, visitor = made(rig, "ip"), rig.person("operator")
    answer = visitor.post(path, items="192.0.2.1\nnonsense\n<script>alert(1)</script>", step="add")
    assert answer.status_code == 400
    assert items(rig) == {}
    assert "<script>alert" not in answer.text
    text = html.unescape(answer.text)
    assert "Item 2: " in text
    assert "Item 3: " in text
    assert "192.0.2.1\nnonsense" in text


def test_a_list_that_a_rule_needs_stays(rig: DashboardRig) -> None:
    rig.fill()
    visitor = rig.person("operator")
    path = made(rig, "ip")
    name = "a_ip"
    rule = {
        "expression": f"ip.src in ${name}",
        "description": "x",
        "enabled": "true",
        "step": "save",
    }
    assert visitor.post("/zones/z1/rooms/r1/rules/new", **rule).status_code == 303
    revision = next(
        str(entry.revision)
        for entry in rig.store.read().lists.values()
        if entry.record.name == name
    )
    answer = visitor.post(f"{path}/remove", revision=revision)
    assert answer.status_code == 409 or answer.status_code == 400
    assert "1 rule refers to" in html.unescape(answer.text)
    assert any(entry.record.name == name for entry in rig.store.read().lists.values())


def test_a_list_without_use_is_removed(rig: DashboardRig) -> None:
    path = made(rig, "ip")
    (entry,) = rig.store.read().lists.values()
    assert (
        rig.person("operator").post(f"{path}/remove", revision=str(entry.revision)).status_code
        == 303
    )
    assert not list(rig.store.read().lists.values())


def test_many_items_have_pages(rig: DashboardRig) -> None:
    path, visitor = made(rig, "ip"), rig.person("operator")
    visitor.post(
        path,
        items="\n".join(f"10.0.{index // 250}.{index % 250}" for index in range(250)),
        step="add",
    )
    text = visitor.get(path).text
    assert text.count('aria-label="Remove 10.') == 100
    assert ">Next</a>" in text
    assert ">Previous</a>" not in text
