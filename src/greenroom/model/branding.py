"""The site's name and look on the built-in page. Empty fields show nothing."""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from greenroom.errors import Problem
from greenroom.model.fields import FormSpec, spec, specs

LOGO_BYTES_MAX = 16_384
"""The logo is part of every waiting page."""

TEXT = r"[^\x00-\x1f\x7f{}]*"

TEXT_WORDS = "be one line without { and }"

_LOGO = re.compile(r"data:(image/(?:png|jpeg|webp|gif|svg\+xml));base64,([A-Za-z0-9+/]+={0,2})")
_BEGINS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/webp": (b"RIFF",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/svg+xml": (b"<svg", b"<?xml"),
}
"""Browsers run no scripts in a picture, so an SVG is as safe as the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branding:
    site_name: str = spec(
        "shown at the top of the page and in the browser tab",
        "",
        high=60,
        pattern=TEXT,
        pattern_words=TEXT_WORDS,
        form=FormSpec("page", "Name of your site"),
    )
    logo: str = spec(
        "logo as a `data:` URL in base64: PNG, JPEG, WebP, GIF or SVG of at most"
        f" {LOGO_BYTES_MAX // 1024} KiB",
        "",
        high=2 * LOGO_BYTES_MAX,
    )
    accent_color: str = spec(
        "accent colour, `#rrggbb`; the shade is adjusted where needed so it stays readable",
        "",
        pattern=r"(#[0-9A-Fa-f]{6})?",
        pattern_words="be # and six hexadecimal digits such as #0b5fff",
        example="#0b5fff",
        form=FormSpec("page", "Colour"),
    )
    message: str = spec(
        "message to waiting visitors, in every language without its own message",
        "",
        high=500,
        pattern=TEXT,
        pattern_words=TEXT_WORDS,
        form=FormSpec("page", "Message to waiting visitors"),
    )
    help_url: str = spec(
        "where visitors find help: an http or https URL",
        "",
        high=500,
        example="https://help.example.com/",
        form=FormSpec("page", "Help"),
    )


@dataclass(frozen=True, slots=True)
class LocalMessage:
    language: str = spec("language of the text, such as de-DE", low=2, high=10)
    text: str = spec(
        "message to waiting visitors in this language",
        low=1,
        high=500,
        pattern=TEXT,
        pattern_words=TEXT_WORDS,
    )


def branding_problems(branding: Branding) -> list[Problem]:
    found = []
    if branding.logo and (reason := _logo_problem(branding.logo)):
        found.append(Problem("branding.logo", reason))
    if branding.help_url and not _is_web_url(branding.help_url):
        found.append(
            Problem(
                "branding.help_url",
                f"must be an http or https URL, not {branding.help_url[:60]!r}",
            )
        )
    return found


def message_problems(
    messages: Iterable[object], languages: Iterable[str], pointer: str
) -> list[Problem]:
    found, seen, rules = [], set(), specs(LocalMessage)
    for index, message in enumerate(messages):
        at = f"{pointer}[{index}]"
        if not isinstance(message, LocalMessage):
            continue
        if message.language not in languages or message.language in seen:
            found.append(
                Problem(
                    f"{at}.language",
                    "must be one of the built-in languages, once, not"
                    f" {str(message.language)[:20]!r}",
                )
            )
        elif (
            not isinstance(message.text, str)
            or not 0 < len(message.text) <= (rules["text"].high or 0)
            or not re.fullmatch(TEXT, message.text)
        ):
            found.append(
                Problem(
                    f"{at}.text",
                    f"must be one line of 1 to {rules['text'].high} characters without braces",
                )
            )
        else:
            seen.add(message.language)
    return found


def _logo_problem(logo: str) -> str:
    found = _LOGO.fullmatch(logo)
    if not found:
        return (
            "must be a data: URL in base64 with the type image/png, image/jpeg, image/webp,"
            " image/gif or image/svg+xml"
        )
    try:
        picture = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        return "is not base64"
    if len(picture) > LOGO_BYTES_MAX:
        return f"must have at most {LOGO_BYTES_MAX} bytes, not {len(picture)}"
    return (
        ""
        if picture.lstrip().startswith(_BEGINS[found[1]])
        else f"is not a file of the type {found[1]}"
    )


def _is_web_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and not re.search(r"[\s\"'<>{}\\\x00-\x1f\x7f]", url)
    )


def shown_problems(
    values: Mapping[str, Any], wrong: set[str], languages: Iterable[str]
) -> list[Problem]:
    """Of a room's `branding` and `branding_messages`; `wrong`: fields with other problems."""
    problems = []
    branding = values.get("branding")
    if isinstance(branding, Branding) and not any(one.startswith("branding.") for one in wrong):
        problems += branding_problems(branding)
    if "branding_messages" not in wrong:
        messages = values.get("branding_messages", ())
        problems += message_problems(messages, languages, "branding_messages")
    return problems
