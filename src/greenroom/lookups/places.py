"""The location of an address: country from built-in data, more from operators' .mmdb files."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import iptocc
import maxminddb

from greenroom.rules import Place

PLACES_CACHED = 8_192
"""About 8 MB."""

DATABASE_MAX = 2 << 30

CONTINENTS = {
    "AF": (
        "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG"
        " ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW"
    ),
    "AN": "AQ BV GS HM TF",
    "AS": (
        "AE AF AM AZ BD BH BN BT CC CN CX GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK"
        " MM MN MO MV MY NP OM PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE"
    ),
    "EU": (
        "AD AL AT AX BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI"
        " LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK"
    ),
    "NA": (
        "AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI"
        " PA PM PR SV SX TC TT US VC VG VI"
    ),
    "OC": "AS AU CK FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS",
    "SA": "AR BO BR CL CO EC FK GF GY PE PY SR UY VE",
}
CONTINENT_OF = {
    country: continent
    for continent, countries in CONTINENTS.items()
    for country in countries.split()
}
EUROPEAN_UNION = frozenset(
    "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK".split()
)


class UnusableDatabase(ValueError): ...


DATABASES_CACHED = 4
"""The two in use, and two while a reload changes them."""


def open_database(path: Path) -> maxminddb.Reader:
    """Once until it changes. Raises UnusableDatabase."""
    try:
        found = path.stat()
    except OSError as error:
        raise UnusableDatabase(f"cannot read {path}: {error.strerror or error}") from None
    if found.st_size > DATABASE_MAX:
        raise UnusableDatabase(f"{path} is larger than {DATABASE_MAX} bytes")
    return _opened(path, (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(DATABASES_CACHED)
def _opened(path: Path, _stamp: tuple[int, int, int]) -> maxminddb.Reader:
    """Maps an anonymous copy in memory: overwriting a mapped file in place would kill the process."""
    copy = -1
    try:
        content = path.read_bytes()
        copy = os.memfd_create("greenroom-places", os.MFD_CLOEXEC)
        with open(copy, "wb", closefd=False) as file:
            file.write(content)
        return maxminddb.open_database(f"/proc/self/fd/{copy}", maxminddb.MODE_AUTO)
    except OSError as error:
        raise UnusableDatabase(f"cannot read {path}: {error.strerror or error}") from None
    except maxminddb.InvalidDatabaseError:
        raise UnusableDatabase(f"{path} is not an .mmdb database") from None
    finally:
        if copy >= 0:
            os.close(copy)


class Places:
    def __init__(
        self, geo: maxminddb.Reader | None = None, systems: maxminddb.Reader | None = None
    ) -> None:
        self._databases = [reader for reader in (geo, systems) if reader is not None]
        self.place = lru_cache(PLACES_CACHED)(self._place)

    def _place(self, client: str) -> Place:
        said: dict[str, Any] = {}
        for reader in self._databases:
            said |= _record(reader, client)
        country = _text(said, "country", "iso_code") or iptocc.country_code(client) or ""
        subdivisions = said.get("subdivisions") or [{}]
        first, second = subdivisions[0], subdivisions[1] if len(subdivisions) > 1 else {}
        return Place(
            country=country,
            continent=_text(said, "continent", "code") or CONTINENT_OF.get(country, ""),
            region=_text(first, "names", "en"),
            region_code=_text(first, "iso_code"),
            city=_text(said, "city", "names", "en"),
            postal_code=_text(said, "postal", "code"),
            metro_code=_text(said, "location", "metro_code"),
            latitude=_text(said, "location", "latitude"),
            longitude=_text(said, "location", "longitude"),
            subdivision_1=_subdivision(country, first),
            subdivision_2=_subdivision(country, second),
            timezone=_text(said, "location", "time_zone"),
            in_european_union=country in EUROPEAN_UNION,
            as_number=_number(said.get("autonomous_system_number")),
        )


def _record(reader: maxminddb.Reader, client: str) -> Mapping[str, Any]:
    """Empty for what is no address, or for IPv6 in a database of IPv4."""
    try:
        found = reader.get(client)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(said: Any, *keys: str) -> str:
    """Empty where anything on the way has another shape."""
    for key in keys:
        said = said.get(key) if isinstance(said, dict) else None
    return str(said) if isinstance(said, str | int | float) else ""


def _number(said: Any) -> int:
    return said if isinstance(said, int) else 0


def _subdivision(country: str, said: Mapping[str, Any]) -> str:
    code = _text(said, "iso_code")
    return f"{country}-{code}" if country and code else ""
