"""Custom pages: what is shown, what is refused with its line, and that hostile pages stay cheap."""

import time
import tracemalloc
from typing import Any

import pytest

from greenroom.errors import Problem
from greenroom.model.room import Room
from greenroom.model.visit import Estimate, Held
from greenroom.pages import CUSTOM_HEADERS, compile_page, template_problems
from greenroom.pages.template import DEPTH_MAX, PROBLEMS_MAX, SIZE_MAX, TAGS_MAX, Template, parse
from greenroom.pages.variables import facts_of


def held(**changes: Any) -> Held:
    said: dict[str, Any] = {
        "now_ms": 0,
        "method": "fifo",
        "last_updated_ms": 0,
        "refresh_s": 20,
        "estimate": Estimate(600, 600, 600),
    }
    return Held(**{**said, **changes})


def shown(source: str, **changes: Any) -> str:
    template = parse(source)
    assert isinstance(template, Template), template
    return template.render(facts_of(held(**changes))).decode()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("nothing to see", "nothing to see"),
        ("{{waitTime}} {{ waitTime }} {{\twaitTime\n}}", "10 10 10"),
        ("{{waitTimeKnown}}/{{queueAll}}/{{refreshIntervalSeconds}}", "true/false/20"),
        (
            "{{#waitTimeKnown}}{{waitTime}} mins{{/waitTimeKnown}}{{^waitTimeKnown}}closed{{/waitTimeKnown}}",
            "10 mins",
        ),
        ("{{#queueAll}}all{{/queueAll}}{{^queueAll}}not all{{/queueAll}}", "not all"),
        (
            "{{#isFIFOQueue}}{{#waitTimeKnown}}{{^queueAll}}deep{{/queueAll}}{{/waitTimeKnown}}{{/isFIFOQueue}}",
            "deep",
        ),
        ("{{#waitTime25Percentile}}zero is not shown{{/waitTime25Percentile}}", ""),
        ("{{#waitTimeFormatted}}{{.}}{{/waitTimeFormatted}}", "10 minutes"),
        ("{{!comments vanish}}a{{! even\nlong ones }}b", "ab"),
        (
            "{{unknownName}}|{{#unknownName}}no{{/unknownName}}{{^unknownName}}yes{{/unknownName}}",
            "|yes",
        ),
        ("{{=<% %>=}}<%waitTime%> {{waitTime}} <%={{ }}=%>{{waitTime}}", "10 {{waitTime}} 10"),
        ("{{greenroomPosition}} {{greenroomPeopleAhead}} {{greenroomInLine}}", "0 0 false"),
        ("a\n  {{#waitTimeKnown}}\n  b\n  {{/waitTimeKnown}}\nc", "a\n  b\nc"),
        ("a\r\n{{! alone }}\r\nb", "a\r\nb"),
        ("{{.}}{{#.}}x{{/.}}", ""),
        ("", ""),
    ],
)
def test_a_template_shows(source: str, text: str) -> None:
    assert shown(source) == text


def test_text_is_escaped_unless_told_otherwise() -> None:
    widget = "<div class=\"cf\" data-x='1'>&</div>"
    assert (
        shown("{{turnstile}}", turnstile=widget)
        == "&lt;div class=&quot;cf&quot; data-x=&#x27;1&#x27;&gt;&amp;&lt;/div&gt;"
    )
    assert shown("{{{turnstile}}}{{& turnstile}}{{{ turnstile }}}", turnstile=widget) == widget * 3


PUBLISHED_EXAMPLE = "{{#waitTimeKnown}} {{waitTime}} mins {{/waitTimeKnown}} {{^waitTimeKnown}} Queue all enabled {{/waitTimeKnown}}"


def test_the_published_example_works_as_written() -> None:
    assert shown(PUBLISHED_EXAMPLE) == " 10 mins  "
    assert shown(PUBLISHED_EXAMPLE, queue_all=True) == "  Queue all enabled "


def test_variables_stand_in_scripts_as_bare_literals() -> None:
    source = '"en": {"m": "{{waitTime}} minute", "h": "{{waitTimeHours}} hours and {{waitTimeHourMinutes}} minutes"}, known: {{waitTimeKnown}}'
    expected = '"en": {"m": "125 minute", "h": "2 hours and 5 minutes"}, known: true'
    assert shown(source, estimate=Estimate(7500, 7500, 7500)) == expected


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("a\nb {{waitTime", 2, "never closed"),
        ("{{{waitTime}}", 1, "never closed"),
        ("a\n\n{{#waitTimeKnown}}b", 3, "{{#waitTimeKnown}} is never closed"),
        ("{{^queueAll}}\n{{#waitTimeKnown}}\n{{/queueAll}}", 3, "{{/waitTimeKnown}} of line 2"),
        ("x{{/waitTimeKnown}}", 1, "no section is open"),
        ("{{>header}}", 1, "partials"),
        ("{{<layout}}{{/layout}}", 1, "parents"),
        ("{{$title}}{{/title}}", 1, "blocks"),
        ("\n{{waitTime.real}}", 2, "dotted"),
        ("{{__class__.__mro__}}", 1, "dotted"),
        ("{{}}", 1, "not the name"),
        ("{{wait time}}", 1, "not the name"),
        ("{{WaitTime}}", 1, "WaitTime is written waitTime"),
        ("{{=|=}}", 1, "delimiters"),
        ("{{=<% %> %>=}}", 1, "delimiters"),
    ],
)
def test_a_wrong_template_is_refused_with_line_and_reason(
    source: str, line: int, reason: str
) -> None:
    problems = template_problems(source, "rooms[0].custom_page_html")
    assert problems[0].pointer == "rooms[0].custom_page_html"
    assert problems[0].line == line
    assert reason in problems[0].reason


def test_all_problems_are_reported_at_once_up_to_a_number() -> None:
    problems = template_problems("{{a.b}}\n{{>c}}\n{{WAITTIME}}", "page")
    assert [problem.line for problem in problems] == [1, 2, 3]
    assert len(template_problems("{{a.b}}\n" * 100, "page")) == PROBLEMS_MAX


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x" * (SIZE_MAX + 1), "at most"),
        ("é" * (SIZE_MAX // 2 + 1), "at most"),
        ("{{waitTime}}" * (TAGS_MAX + 1), "tags"),
        ("{{#queueAll}}" * (DEPTH_MAX + 1) + "{{/queueAll}}" * (DEPTH_MAX + 1), "deep"),
        ("{{" + "x" * 200 + "}}", "not the name"),
        ("a\ud800b", "surrogate"),
    ],
    ids=[
        "too large",
        "too large in bytes",
        "too many tags",
        "too deep",
        "a name too long",
        "not writable",
    ],
)
def test_a_limit_is_named_when_it_is_passed(source: str, reason: str) -> None:
    assert reason in template_problems(source, "page")[0].reason


def test_a_template_just_within_the_limits_is_fine() -> None:
    assert template_problems("{{waitTime}}" * TAGS_MAX, "page") == []
    assert (
        template_problems("{{#queueAll}}" * DEPTH_MAX + "{{/queueAll}}" * DEPTH_MAX, "page") == []
    )
    assert template_problems("x" * SIZE_MAX, "page") == []


def test_no_attribute_of_any_object_can_be_reached() -> None:
    for name in ("__class__", "upper", "real", "format", "__globals__", "mro", "held", "read"):
        assert (
            shown("{{#queueingMethod}}{{" + name + "}}{{{" + name + "}}}{{/queueingMethod}}") == ""
        )


HOSTILE = {
    "tags on one long line": ("{{waitTime}}" + "x" * 500) * 1_900,
    "blanks before tags": (" " * 500 + "{{! a }}") * 1_900,
    "opening marks only": "{{" * (SIZE_MAX // 2),
    "closing marks only": "}}" * (SIZE_MAX // 2),
    "sections over everything": "{{#waitTimeKnown}}" * DEPTH_MAX
    + "x" * 900_000
    + "{{/waitTimeKnown}}" * DEPTH_MAX,
    "one tag over everything": "{{" + "a" * 1_000_000 + "}}",
    "one comment over everything": "{{!" + "a" * 1_000_000 + "}}",
    "delimiters changed all the time": "{{=[ ]=}}[={{ }}=]" * 900,
    "blank lines": "\n" * 1_000_000 + "{{#waitTimeKnown}}",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_template_is_read_and_shown_quickly_in_little_memory(kind: str) -> None:
    source = HOSTILE[kind]
    tracemalloc.start()
    template_problems(source, "page")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * SIZE_MAX
    start = time.process_time()
    template = parse(source)
    if isinstance(template, Template):
        template.render(facts_of(held()))
    assert time.process_time() - start < 0.5


def test_a_page_is_never_longer_than_its_source_and_its_values() -> None:
    source = "{{waitTimeFormatted}}" * TAGS_MAX
    assert len(shown(source)) == TAGS_MAX * len("10 minutes")


def test_a_template_that_cannot_be_used_gives_the_built_in_page_and_its_policy() -> None:
    def room(html: str) -> Room:
        return Room(
            name="a", host="*", total_active_users=1, new_users_per_minute=1, custom_page_html=html
        )

    broken, fine = (
        compile_page(room("{{#waitTimeKnown}}")),
        compile_page(room("<b>{{waitTime}}</b>")),
    )
    assert (broken.custom, fine.custom) == (False, True)
    assert b"You are joining the line" in broken.html(held())
    assert broken.html_headers.pairs == compile_page(room("")).html_headers.pairs
    assert fine.html(held()) == b"<b>10</b>"
    assert fine.html_headers.pairs[:-1] == CUSTOM_HEADERS.pairs
    assert fine.html_headers.get(b"Content-Security-Policy") == b"frame-ancestors 'none'", (
        "and nothing else is decided for its author"
    )
    assert fine.json(held()) == broken.json(held())


def test_problems_carry_the_pointer_they_were_asked_for() -> None:
    assert template_problems("{{>a}}", "events[1].custom_page_html") == [
        Problem(
            "events[1].custom_page_html",
            "partials ({{>name}}) are refused: a page is one template",
            1,
        )
    ]
    assert template_problems("", "page") == []
