"""For every held visitor, page and JSON are well-formed, say the same, and let no text of greenroom
become markup.
"""

import json
from html.parser import HTMLParser
from typing import Any

import combustache
from hypothesis import given
from hypothesis import strategies as st

from greenroom.model.offer import Offer
from greenroom.model.room import Room
from greenroom.model.visit import CHANGES, Estimate, Held
from greenroom.pages import compile_page, template_problems
from greenroom.pages.template import DEPTH_MAX, Template, parse
from greenroom.pages.variables import EXTENSIONS, TEMPLATE_VARIABLES, VARIABLES, facts_of

ROOM = {"name": "a", "host": "*", "total_active_users": 1, "new_users_per_minute": 1}
PAGE = compile_page(Room(**ROOM))
WITH_OFFERS = compile_page(Room(**ROOM), offers=True)
KINDS = {"boolean": bool, "integer": int, "string": str}

times = st.integers(-(10**16), 10**16)
counts = st.integers(0, 10**9)
seconds = st.floats(allow_nan=True, allow_infinity=True)
markup = st.sampled_from(
    ["", "<script>alert(1)</script>", "\"'&<>", "{{waitTime}}", "\u2028\\"]
) | st.text(max_size=20)

offer_texts = st.sampled_from(["Stalls", "<script>alert(1)</script>", "\"'&<>", "{{waitTime}}\\"])

helds = st.builds(
    Held,
    now_ms=times,
    method=st.sampled_from(["fifo", "random", "passthrough", "reject"]) | markup,
    last_updated_ms=times,
    refresh_s=st.integers(0, 100),
    next_try_s=st.integers(0, 100),
    estimate=st.none()
    | st.builds(Estimate, seconds, seconds, seconds, seconds, st.sampled_from(["", *CHANGES])),
    queue_full=st.booleans(),
    queue_all=st.booleans(),
    position=counts,
    ahead=counts,
    waiting=counts,
    joined_ms=st.just(0) | times,
    in_line=st.booleans(),
    storage_failed=st.booleans(),
    event_active=st.booleans(),
    event_prequeueing=st.booleans(),
    event_start_ms=times,
    event_end_ms=times,
    shuffle_at_event_start=st.booleans(),
    turnstile=markup,
    infinite_queue=st.booleans(),
    offers=st.none()
    | st.lists(
        st.builds(
            Offer,
            name=offer_texts,
            price=st.just("") | offer_texts,
            available=st.sampled_from(["many", "few", "none", "0", "1", "1234567"]),
            as_of_ms=st.integers(0, 10**13),
        ),
        max_size=3,
    ).map(tuple),
)


class Markup(HTMLParser):
    """The tags of a page in order, without their values: what must not depend on who looks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


PLAIN_TAGS = Markup(
    PAGE.html(Held(now_ms=0, method="fifo", last_updated_ms=0, refresh_s=20)).decode()
).tags
OFFER_TAGS = Markup(
    WITH_OFFERS.html(Held(now_ms=0, method="fifo", last_updated_ms=0, refresh_s=20)).decode()
).tags


@given(helds)
def test_json_always_has_the_published_names_in_order_with_their_types(held: Held) -> None:
    answer = json.loads(PAGE.json(held))
    assert list(answer) == ["cfWaitingRoom", "greenroom"]
    published = [row for row in VARIABLES if not row.template_only]
    assert list(answer["cfWaitingRoom"]) == [row.name for row in published]
    for row in published:
        assert type(answer["cfWaitingRoom"][row.name]) is KINDS[row.kind]
    ours = [row for row in EXTENSIONS if not row.template_only]
    offers = [] if held.offers is None else ["offers"]
    assert list(answer["greenroom"]) == [*(row.name for row in ours), *offers, "words"]
    for row in ours:
        assert type(answer["greenroom"][row.name]) is KINDS[row.kind]
    assert all(type(text) is str for text in answer["greenroom"]["words"].values())


@given(helds)
def test_no_text_becomes_markup_on_the_built_in_page(held: Held) -> None:
    page = PAGE.html(held).decode()
    assert Markup(page).tags == PLAIN_TAGS
    assert "alert(1)" not in page
    with_offers = WITH_OFFERS.html(held).decode()
    assert Markup(with_offers).tags == OFFER_TAGS
    assert "<script>alert(1)" not in with_offers
    assert json.loads(WITH_OFFERS.update(held, b"fifo"))


@given(helds)
def test_numbers_are_never_negative_and_a_known_wait_is_worded(held: Held) -> None:
    said = json.loads(PAGE.json(held))["cfWaitingRoom"]
    assert all(
        said[row.name] >= 0 for row in VARIABLES if row.kind == "integer" and not row.template_only
    )
    assert (said["waitTimeFormatted"] == "unavailable") is not said["waitTimeKnown"]
    assert not (said["queueAll"] and said["waitTimeKnown"])


@given(helds, st.sampled_from([row for row in TEMPLATE_VARIABLES.values() if row.kind == "string"]))
def test_no_text_becomes_markup_on_a_custom_page(held: Held, row: Any) -> None:
    name = next(name for name, found in TEMPLATE_VARIABLES.items() if found is row)
    page = (
        compile_page(Room(**ROOM, custom_page_html=f'<p title="{{{{{name}}}}}">{{{{{name}}}}}</p>'))
        .html(held)
        .decode()
    )
    assert Markup(page).tags == ["p"]
    assert page.count('"') == 2


@given(st.text(alphabet="{}#^/!=>&$<.% \n\rabwaitTimeKnown", max_size=200))
def test_any_text_is_either_shown_or_refused_with_a_line_that_exists(source: str) -> None:
    template = parse(source)
    if isinstance(template, Template):
        assert len(
            template.render(
                facts_of(Held(now_ms=0, method="fifo", last_updated_ms=0, refresh_s=20))
            )
        ) <= 30 * (len(source) + 1)
    else:
        assert template
        assert all(1 <= problem.line <= source.count("\n") + 1 for problem in template)
        assert template == template_problems(source, "custom_page_html")


names = st.sampled_from(sorted(TEMPLATE_VARIABLES))
fields = st.sampled_from(["", " ", "\n", "  \n", "\n  "])
texts = st.text(alphabet="ab<&\"' \n", max_size=8)


def sections(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def section(sign: str, name: str, parts: list[str], gap: str) -> str:
        return f"{{{{{sign}{name}}}}}{gap}{''.join(parts)}{{{{/ {name} }}}}{gap}"

    return st.builds(section, st.sampled_from("#^"), names, st.lists(inside, max_size=4), fields)


leaves = (
    texts
    | names.map(lambda name: f"{{{{{name}}}}}")
    | names.map(lambda name: f"{{{{{{ {name} }}}}}}")
    | names.map(lambda name: f"{{{{& {name}}}}}")
    | st.builds(lambda before, after: f"{before}{{{{! a comment }}}}{after}", fields, fields)
)
templates = st.lists(st.recursive(leaves, sections, max_leaves=12), max_size=8).map("".join)


@given(templates, helds)
def test_what_is_shown_is_what_a_complete_mustache_shows(source: str, held: Held) -> None:
    """combustache passes the Mustache specification; where templates are allowed here, the two
    agree to the byte.
    """
    template, facts = parse(source), facts_of(held)
    if not isinstance(template, Template):
        assert any(f"more than {DEPTH_MAX}" in problem.reason for problem in template)
        return
    values = {name: row.read(facts) for name, row in TEMPLATE_VARIABLES.items()}
    try:
        expected = combustache.render(
            source,
            values,
            stringify=lambda value: str(value).lower() if isinstance(value, bool) else str(value),
        )
    except (
        combustache.CombustacheError
    ):  # it takes {{/a}} of {{^a}} inside {{#a}} for the end of both
        assert any(
            f"{{{{#{name}}}}}" in source and f"{{{{^{name}}}}}" in source
            for name in TEMPLATE_VARIABLES
        )
        return
    assert template.render(facts) == expected.encode()
