"""Every language of the built-in page: complete, with the same places to fill in, in its own words
and its own numbers.
"""

import re
import string
import tomllib
from importlib import resources
from typing import Any

import pytest

from greenroom.model.room import LANGUAGES
from greenroom.pages.filled import numbers_in
from greenroom.pages.language import DAY, FALLBACK, GROUPINGS, HOUR, PLURALS, available, language

FOLDER = resources.files("greenroom.pages") / "languages"
FILES = {tag: tomllib.loads((FOLDER / f"{tag}.toml").read_text("utf-8")) for tag in available()}
RIGHT_TO_LEFT = {"ar-EG", "fa-IR", "he-IL"}
SAME_EVERYWHERE = {
    "clock",
    "digits",
    "dir",
    "plural",
    "grouping",
    "hours_minutes",
    "range",
    "thousands",
}
"""Keys whose value may be that of English: they hold signs, not words."""

NO_WORDS = {"time.minutes.other", "time.hours.other", "draw.place"}
ALIKE = {"fr-FR": {"time.minutes.one", "time.minutes.other"}}
"""Words that are spelled alike."""

SCRIPTS = {
    "ru-RU": "Ѐ-ӿ", "uk-UA": "Ѐ-ӿ", "bg-BG": "Ѐ-ӿ", "sr-BA": "Ѐ-ӿ", "el-GR": "Ͱ-Ͽἀ-῿", "ar-EG": "؀-ۿ", "fa-IR": "؀-ۿ", "he-IL": "֐-׿",
    "hi-IN": "ऀ-ॿ", "th-TH": "฀-๿", "ja-JP": "぀-ヿ一-鿿", "ko-KR": "가-힣", "zh-CN": "一-鿿", "zh-TW": "一-鿿",
}  # fmt: skip


def texts(words: dict[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in words.items():
        name = f"{prefix}{key}"
        found |= texts(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return found


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


ENGLISH = texts(FILES[FALLBACK])
every_language = pytest.mark.parametrize("tag", LANGUAGES)
every_other = pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != FALLBACK])


def test_there_are_exactly_the_published_languages() -> None:
    assert sorted(FILES) == sorted(LANGUAGES)
    assert len(LANGUAGES) == 39


@every_language
def test_a_language_names_itself_and_its_direction(tag: str) -> None:
    assert FILES[tag]["tag"] == tag
    assert FILES[tag]["dir"] == ("rtl" if tag in RIGHT_TO_LEFT else "ltr")
    assert FILES[tag]["plural"] in PLURALS
    assert FILES[tag]["grouping"] in GROUPINGS
    assert len(FILES[tag]["digits"]) == 10
    assert "".join(str(int(digit)) for digit in FILES[tag]["digits"]) == "0123456789"


@every_language
def test_every_text_is_there_and_has_the_same_places_to_fill_in(tag: str) -> None:
    found = texts(FILES[tag])
    counted = ("time.minutes.", "time.hours.")
    assert {key for key in found if not key.startswith(counted)} == {
        key for key in ENGLISH if not key.startswith(counted)
    }
    assert {key: places(found[key]) for key in found if not key.startswith(counted)} == {
        key: places(text) for key, text in ENGLISH.items() if not key.startswith(counted)
    }
    assert [key for key, text in found.items() if (text == "") != (ENGLISH.get(key) == "")] == []
    assert [
        key
        for key, text in found.items()
        if key != "thousands" and (text != text.strip() or "  " in text)
    ] == []


@every_language
def test_every_number_has_its_form(tag: str) -> None:
    forms = {PLURALS[FILES[tag]["plural"]](number) for number in range(1, HOUR)}
    assert [set(FILES[tag]["time"][unit]) for unit in ("minutes", "hours")] == [forms, forms]
    spoken = language(tag)
    for minutes in range(DAY + 10):
        for said in (
            spoken.time(minutes),
            spoken.wait(minutes),
            spoken.at_most(minutes, minutes * 2),
            spoken.span(minutes // 2, minutes),
        ):
            assert said
            assert not re.search(r"[{}]", said)


@every_other
def test_no_english_is_left(tag: str) -> None:
    found = texts(FILES[tag])
    same = {
        key
        for key, text in found.items()
        if text and text == ENGLISH.get(key) and key.rpartition(".")[2] not in SAME_EVERYWHERE
    }
    assert same <= NO_WORDS | ALIKE.get(tag, set())
    ours = re.compile(
        r"\b(you|your|the|this page|waiting|please|line|again|people)\b", re.IGNORECASE
    )
    assert [text for text in found.values() if ours.search(text)] == []


@pytest.mark.parametrize(("tag", "script"), SCRIPTS.items())
def test_a_language_is_written_in_its_own_script(tag: str, script: str) -> None:
    texts_ = {
        key: text
        for key, text in texts(FILES[tag]).items()
        if text and "." in key and key.partition(".")[2] not in SAME_EVERYWHERE
    }
    assert [key for key, text in texts_.items() if not re.search(f"[{script}]", text)] == []
    latin = re.compile(r"[A-Za-z]{2,}")
    words = {
        word for text in texts_.values() for word in latin.findall(re.sub(r"\{\w+\}", "", text))
    }
    assert {word.lower() for word in words} <= {
        "cookie", "cookies", "email", "javascript", "mail", "qr", "utc",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("en-US", ["1 minute", "2 minutes", "1 hour", "1 hour 5 minutes", "2 hours"]),
        ("de-DE", ["1 Minute", "2 Minuten", "1 Stunde", "1 Stunde 5 Minuten", "2 Stunden"]),
        ("pl-PL", ["1 minuta", "2 minuty", "1 godzina", "1 godzina 5 minut", "2 godziny"]),
        ("ru-RU", ["1 минута", "2 минуты", "1 час", "1 час 5 минут", "2 часа"]),
        ("sl-SI", ["1 minuta", "2 minuti", "1 ura", "1 ura 5 minut", "2 uri"]),
        ("lt-LT", ["1 minutė", "2 minutės", "1 valanda", "1 valanda 5 minutės", "2 valandos"]),
        ("lv-LV", ["1 minūte", "2 minūtes", "1 stunda", "1 stunda 5 minūtes", "2 stundas"]),
        ("ro-RO", ["1 minut", "2 minute", "1 oră", "1 oră și 5 minute", "2 ore"]),
        ("ar-EG", ["دقيقة واحدة", "دقيقتان", "ساعة واحدة", "ساعة واحدة و٥ دقائق", "ساعتان"]),
        ("he-IL", ["דקה אחת", "שתי דקות", "שעה אחת", "שעה אחת ו־5 דקות", "שעתיים"]),
        ("fa-IR", ["۱ دقیقه", "۲ دقیقه", "۱ ساعت", "۱ ساعت و ۵ دقیقه", "۲ ساعت"]),
        ("ja-JP", ["1分", "2分", "1時間", "1時間5分", "2時間"]),
    ],
)
def test_times_are_said_as_people_say_them(tag: str, said: list[str]) -> None:
    assert [language(tag).time(minutes) for minutes in (1, 2, 60, 65, 120)] == said


@pytest.mark.parametrize(
    ("rule", "forms"),
    [
        (
            "slavic",
            {
                1: "one",
                2: "few",
                5: "many",
                11: "many",
                12: "many",
                21: "one",
                22: "few",
                25: "many",
                111: "many",
            },
        ),
        ("polish", {1: "one", 2: "few", 5: "many", 12: "many", 21: "many", 22: "few", 112: "many"}),
        ("slovenian", {1: "one", 2: "two", 3: "few", 5: "many", 101: "one", 102: "two"}),
        (
            "lithuanian",
            {1: "one", 2: "few", 10: "many", 11: "many", 21: "one", 22: "few", 30: "many"},
        ),
        ("latvian", {1: "one", 2: "other", 10: "zero", 11: "zero", 21: "one", 22: "other"}),
        ("romanian", {1: "one", 2: "few", 19: "few", 20: "many", 100: "many", 101: "few"}),
        ("arabic", {1: "one", 2: "two", 3: "few", 10: "few", 11: "many", 99: "many", 103: "few"}),
        ("one-few-many", {1: "one", 4: "few", 5: "many", 21: "many"}),
        ("one-two-other", {1: "one", 2: "two", 3: "other"}),
        ("one-other", {1: "one", 2: "other", 21: "other"}),
        ("other", {1: "other", 2: "other"}),
    ],
)
def test_a_plural_rule_is_the_one_of_unicode(rule: str, forms: dict[int, str]) -> None:
    assert {number: PLURALS[rule](number) for number in forms} == forms


@pytest.mark.parametrize("tag", available())
def test_a_number_on_the_page_is_the_number_of_the_language(tag: str) -> None:
    say = numbers_in(language(tag))
    for number in (
        0,
        7,
        999,
        1_000,
        9_999,
        10_000,
        10_001,
        12_045,
        99_999,
        100_000,
        999_999,
        1_000_000,
        1_234_567,
        10**9,
    ):
        assert say(number).decode() == language(tag).number(number)


def test_numbers_are_divided_and_written_as_the_language_does() -> None:
    said = {
        tag: [language(tag).number(n) for n in (7, 1234, 12345, 1234567)]
        for tag in ("en-US", "de-DE", "es-ES", "hi-IN", "ar-EG", "fa-IR", "pl-PL")
    }
    assert said["en-US"] == ["7", "1,234", "12,345", "1,234,567"]
    assert said["de-DE"] == ["7", "1.234", "12.345", "1.234.567"]
    assert said["es-ES"] == ["7", "1234", "12.345", "1.234.567"]
    assert said["hi-IN"] == ["7", "1,234", "12,345", "12,34,567"]
    assert said["ar-EG"] == ["٧", "١٬٢٣٤", "١٢٬٣٤٥", "١٬٢٣٤٬٥٦٧"]
    assert said["fa-IR"] == ["۷", "۱٬۲۳۴", "۱۲٬۳۴۵", "۱٬۲۳۴٬۵۶۷"]
    assert said["pl-PL"] == ["7", "1234", "12\u00a0345", "1\u00a0234\u00a0567"]
