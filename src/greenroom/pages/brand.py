"""A site's branding on the built-in page. The accent colour is mixed with black or white until its
contrast is 4.5 on the light and the dark ground (WCAG AA).
"""

from html import escape
from typing import NamedTuple

import msgspec

from greenroom.model.room import Room

GROUNDS = {"light": "#f7f6f2", "dark": "#101513"}
"""`--paper` of page.css."""

CONTRAST = 4.5
STEPS = 100


class Brand(NamedTuple):
    """Each field but `title` is HTML or CSS, and fills the hole of its name in page.html and
    alone.html.
    """

    title: str = ""
    brand: str = ""
    message: str = ""
    help_url: str = ""
    accent: str = ""

    def title_in(self, json: bool) -> str:
        return msgspec.json.encode(self.title).decode()[1:-1] if json else escape(self.title)

    def holes(self) -> dict[str, str]:
        found = self._asdict()
        del found["title"]
        return found


NO_BRAND = Brand()


def brand_of(room: Room, language: str) -> Brand:
    branding = room.branding
    name, logo = branding.site_name, branding.logo
    picture = f'<img src="{logo}" alt="{"" if name else "Logo"}">' if logo else ""
    message = next(
        (local.text for local in room.branding_messages if local.language == language),
        branding.message,
    )
    return Brand(
        title=f" · {name}" if name else "",
        brand=f"<p id=site>{picture}{escape(name)}" if name or logo else "",
        message=f"<p id=message dir=auto>{escape(message)}" if message else "",
        help_url=escape(branding.help_url),
        accent=accent_css(branding.accent_color) if branding.accent_color else "",
    )


def accent_css(color: str) -> str:
    light, dark = (readable(color, ground) for ground in GROUNDS.values())
    return (
        f":root{{--accent:{light}}}@media (prefers-color-scheme:dark){{:root{{--accent:{dark}}}}}"
    )


def readable(color: str, ground: str) -> str:
    pole = 0 if luminance(ground) > 0.2 else 255
    for step in range(STEPS + 1):
        mixed = [(channel * (STEPS - step) + pole * step) // STEPS for channel in _channels(color)]
        shade = "#" + "".join(f"{channel:02x}" for channel in mixed)
        if contrast(shade, ground) >= CONTRAST:
            return shade
    return "#000000" if pole == 0 else "#ffffff"


def contrast(one: str, other: str) -> float:
    """1 to 21 (WCAG)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    red, green, blue = (
        channel / 255 / 12.92
        if channel / 255 <= 0.04045
        else float(((channel / 255 + 0.055) / 1.055) ** 2.4)
        for channel in _channels(color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
