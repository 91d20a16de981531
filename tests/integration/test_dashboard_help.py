"""The documentation in the dashboard: every page is shown, its links lead somewhere, its headings
are found, and its HTML is text.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_rig import Visitor, dashboard_in

from greenroom.dashboard import documents as module
from greenroom.dashboard.documents import anchor_of, documents

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with dashboard_in(tmp_path_factory.mktemp("help")) as rig:
        yield rig.person("viewer")


def test_every_page_is_there_and_every_link_leads_to_a_heading(viewer: Visitor) -> None:
    files = {f"{file.parent.name}/{file.stem}" for file in DOCS.glob("*/*.md")}
    assert set(documents()) == files
    pages = {one.path: viewer.get(one.path) for one in documents().values()}
    assert {answer.status_code for answer in pages.values()} == {200}
    index = viewer.get("/help").text
    assert all(f'href="{path}"' in index for path in pages)
    links = 0
    for path, answer in pages.items():
        body = answer.text.partition('class="card-body document"')[2]
        ids = re.findall(r' id="([^"]+)"', body)
        assert len(ids) == len(set(ids)), path
        for there, anchor in re.findall(r'href="(/help[^"#]*)#?([^"]*)"', body):
            links += 1
            assert there == "/help" or there in pages, (path, there)
            assert not anchor or f'id="{anchor}"' in pages[there].text, (path, there, anchor)
    assert links > 100


def test_internals_are_apart_from_guides_and_concepts(viewer: Visitor) -> None:
    index = viewer.get("/help").text
    kinds = dict(re.findall(r'<h2 id="kind-\d+">([^<]+)</h2>(.*?)</section>', index, re.S))
    assert list(kinds) == ["Tutorial", "Guides", "Concepts", "Reference", "Internals of greenroom"]
    inside = set(re.findall(r'href="([^"]+)"', kinds.pop("Internals of greenroom")))
    assert {"/help/howto/run-the-tests", "/help/explanation/follow-one-probe"} <= inside
    assert inside.isdisjoint(re.findall(r'href="([^"]+)"', "".join(kinds.values())))


def test_headings_are_found_and_opened_at_their_place(viewer: Visitor) -> None:
    assert (
        viewer.get("/search?q=two%20steps").headers["location"] == "/help/howto/dashboard#two-steps"
    )
    answer = viewer.get("/search?q=ambiguous%20names%20of%20months%20or%20ticket%20keys")
    assert "Nothing found for" in answer.text
    answer = viewer.get("/search?q=your%20first%20sale,%20from")
    assert answer.headers["location"] == "/help/tutorial/first-sale"
    assert 'id="two-steps"' in viewer.get("/help/howto/dashboard").text
    found = viewer.get("/search?q=status%20page").text
    assert 'href="/help/howto/status-page"' in found
    assert "dashboard#two-steps" not in viewer.get("/search?q=wo%20steps").text, "not within a word"
    assert "mentions it" in viewer.get("/search?q=pre-queue").text


def test_what_is_no_page_is_not_found(viewer: Visitor) -> None:
    for path in (
        "/help/howto/nothing",
        "/help/pictures/sale",
        "/help/..%2Fsrc/x",
        "/help/howto/dashboard.md",
    ):
        assert viewer.get(path).status_code == 404


def test_html_in_a_page_is_text_and_links_that_lead_nowhere_here_are_too(
    viewer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "# A\n\n<script>alert(1)</script> [x](javascript:alert(1)) [source](../../src/greenroom/cli) [out](https://example.com) ![p](../pictures/a.png)\n\n## B\n\n## B\n"
    made = {"howto/a": module._read("howto/a", hostile)}
    monkeypatch.setattr(module, "documents", lambda: made)
    monkeypatch.setattr("greenroom.dashboard.pages.documentation.documents", lambda: made)
    module.shown.cache_clear()
    text = viewer.get("/help/howto/a").text.partition('class="card-body document"')[2]
    module.shown.cache_clear()
    assert "&lt;script&gt;" in text
    assert "<script>" not in text.partition("</article>")[0]
    assert re.findall(r'href="([^"]*)"', text.partition("</article>")[0]) == ["https://example.com"]
    assert "<img" not in text
    assert len(set(re.findall(r'<h2 id="([^"]+)"', text))) == 2


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Two steps", "two-steps"), ("`[[status_pages]]`", "status_pages"), ("A, b & c", "a-b--c")],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert anchor_of(heading) == anchor


def test_without_files_the_page_says_so(viewer: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenroom.dashboard.pages.documentation.documents", dict)
    assert "left out when greenroom was installed" in viewer.get("/help").text


def test_a_prefix_of_a_proxy_is_before_every_link() -> None:
    assert 'href="/greenroom/help/' in module.shown("howto/dashboard", "/greenroom")
