"""The form of a room's waiting page, to and from a document of the API."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from greenroom.model.branding import Branding
from greenroom.model.fields import form_fields, specs
from greenroom.model.room import Room
from greenroom.pages.brand import GROUNDS, contrast, readable
from greenroom.web.api_schema import EXTENSION
from greenroom.web.api_shapes import Json
from greenroom.web.pages.forms import Faults, FieldView, help_of

MORE_MESSAGES = 2

STARTERS = {
    "plain": "Plain, without a script",
    "storefront": "A shop, in two panels",
    "multi-language": "In several languages",
    "countdown": "Countdown to a sale",
}


LANGUAGE_NAMES: Mapping[str, str] = {
    "ar-EG": "Arabic – العربية",
    "bg-BG": "Bulgarian – Български",
    "zh-CN": "Chinese (simplified) – 简体中文",
    "zh-TW": "Chinese (traditional) – 繁體中文",
    "hr-HR": "Croatian – Hrvatski",
    "cs-CZ": "Czech – Čeština",
    "da-DK": "Danish – Dansk",
    "nl-NL": "Dutch – Nederlands",
    "en-US": "English",
    "tl-PH": "Filipino – Tagalog",
    "fi-FI": "Finnish – Suomi",
    "fr-FR": "French – Français",
    "de-DE": "German – Deutsch",
    "el-GR": "Greek – Ελληνικά",
    "he-IL": "Hebrew – עברית",
    "hi-IN": "Hindi – हिन्दी",
    "hu-HU": "Hungarian – Magyar",
    "id-ID": "Indonesian – Bahasa Indonesia",
    "it-IT": "Italian – Italiano",
    "ja-JP": "Japanese – 日本語",
    "ko-KR": "Korean – 한국어",
    "lv-LV": "Latvian – Latviešu",
    "lt-LT": "Lithuanian – Lietuvių",
    "ms-MY": "Malay – Bahasa Melayu",
    "nb-NO": "Norwegian – Norsk bokmål",
    "fa-IR": "Persian – فارسی",
    "pl-PL": "Polish – Polski",
    "pt-BR": "Portuguese (Brazil) – Português",
    "ro-RO": "Romanian – Română",
    "ru-RU": "Russian – Русский",
    "sr-BA": "Serbian – Srpski",
    "sk-SK": "Slovak – Slovenčina",
    "sl-SI": "Slovenian – Slovenščina",
    "es-ES": "Spanish – Español",
    "sv-SE": "Swedish – Svenska",
    "th-TH": "Thai – ไทย",
    "tr-TR": "Turkish – Türkçe",
    "uk-UA": "Ukrainian – Українська",
    "vi-VN": "Vietnamese – Tiếng Việt",
}


class Shade(NamedTuple):
    """`ratio`: contrast (WCAG); `changed`: the chosen colour could not be read on this ground."""

    theme: str
    ground: str
    color: str
    ratio: str
    changed: bool


def shades(color: str) -> list[Shade]:
    if (
        len(color) != 7
        or color[0] != "#"
        or not all(digit in "0123456789abcdefABCDEF" for digit in color[1:])
    ):
        return []
    found = []
    for theme, ground in GROUNDS.items():
        shown = readable(color, ground)
        found.append(
            Shade(
                theme,
                ground,
                shown,
                f"{contrast(shown, ground):.1f}",
                shown.lower() != color.lower(),
            )
        )
    return found


def starter(name: str) -> str | None:
    if name not in STARTERS:
        return None
    packed = resources.files("greenroom.dashboard") / "starters" / f"{name}.html"
    checkout = Path(__file__).resolve().parents[3] / "examples" / "templates" / f"{name}.html"
    return next((file.read_text("utf-8") for file in (packed, checkout) if file.is_file()), None)


def page_document(form: Mapping[str, Sequence[str]], logo: str) -> Json:
    """`logo` stays unless the form carries another one."""

    def sent(name: str) -> str:
        return (form.get(name) or [""])[-1]

    languages, texts = form.get("message_language") or [], form.get("message_text") or []
    messages = [
        {"language": tag, "text": text.strip()}
        for tag, text in zip(languages, texts, strict=False)
        if text.strip()
    ]
    branding = {name: sent(name).strip() for name in form_fields(Branding)} | {
        "logo": sent("logo") or ("" if sent("drop_logo") else logo)
    }
    return {
        "custom_page_html": sent("custom_page_html") if sent("own") == "true" else "",
        "default_template_language": sent("default_template_language"),
        EXTENSION: {
            "follow_accept_language": sent("follow_accept_language") == "true",
            "branding": branding,
            "branding_messages": messages,
        },
    }


def branding_fields(branding: Mapping[str, Any], faults: Faults) -> list[FieldView]:
    rules, wrong = specs(Branding), faults.take("branding")
    return [
        FieldView(
            name=name,
            label=form.label,
            kind="text",
            value=branding.get(name, ""),
            help=help_of(rules[name]),
            placeholder=rules[name].example or "",
            problems=tuple(
                text.partition(f"{name}: ")[2] or text for text in wrong if f".{name}" in text
            ),
        )
        for name, form in form_fields(Branding).items()
    ]


def logo_faults(faults: Faults) -> tuple[str, ...]:
    """Call it before `branding_fields`, which takes the faults of all branding."""
    return tuple(
        text.partition("logo: ")[2] for text in faults.of.get("branding", ()) if ".logo: " in text
    )


def language_field(value: str, faults: Faults) -> FieldView:
    return FieldView(
        name="default_template_language",
        label="Language",
        kind="select",
        value=value,
        help="Of the built-in page, and for templates that ask for it.",
        choices=tuple(LANGUAGE_NAMES.items()),
        problems=faults.take("default_template_language"),
    )


def message_rows(messages: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    return [*messages, *({"language": "", "text": ""} for _ in range(MORE_MESSAGES))]


def shown_page(room: Room) -> Json:
    return {
        "custom_page_html": room.custom_page_html,
        "default_template_language": room.default_template_language,
        "follow_accept_language": room.follow_accept_language,
        "branding": {name: getattr(room.branding, name) for name in specs(Branding)},
        "branding_messages": [
            {"language": one.language, "text": one.text} for one in room.branding_messages
        ],
    }
