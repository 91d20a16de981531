"""Sign-in through an OpenID Connect provider: settings, the stored person, and the person's role."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from greenroom.errors import Problem
from greenroom.model.account import ROLES
from greenroom.model.fields import spec

ROLES_MAX = 200

SHOWN_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcEntry:
    issuer: str = spec(
        "URL of the provider, exactly as it names itself: `https://login.example.com`",
        low=1,
        high=2_000,
    )
    client_id: str = spec(
        "the client that the provider knows greenroom as", low=1, high=500, one_line=True
    )
    client_secret_file: str = spec("file with the client secret", "", high=4096)
    client_secret_env: str = spec(
        "environment variable with the client secret; without a secret greenroom is a public"
        " client",
        "",
        pattern=r"[A-Za-z0-9_]*",
        pattern_words="have only letters (a to z, A to Z), digits and _",
        high=200,
    )
    ca_file: str = spec(
        "PEM file with the certificate authorities to trust instead of the system's", "", high=4096
    )
    scopes: tuple[str, ...] = spec(
        "scopes that are asked for", ("openid", "profile", "email"), low=1, high=50
    )
    name: str = spec(
        "name of the provider on the sign-in page; empty: its host", "", high=60, one_line=True
    )
    name_claim: str = spec(
        "claim shown as the person's name and written to the audit log, beside `sub`",
        "email",
        low=1,
        high=200,
        one_line=True,
    )
    allowed_domains: tuple[str, ...] = spec(
        "only people whose verified e-mail address is in one of these domains; empty: every domain",
        (),
        high=100,
    )
    groups_claim: str = spec(
        "claim with the groups of `allowed_groups`", "groups", low=1, high=200, one_line=True
    )
    allowed_groups: tuple[str, ...] = spec(
        "only people in one of these groups; empty: every group", (), high=100
    )
    session_hours: int = spec(
        "how long a session lasts before the provider is asked again",
        12,
        unit="hours",
        low=1,
        high=168,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcRole:
    """The first row that matches counts; without one there is no access."""

    claim: str = spec(
        "name of a claim, such as `groups` or `sub`; `email` counts when the provider has"
        " verified it",
        low=1,
        high=200,
        one_line=True,
    )
    value: str = spec(
        "the value that the claim has, or holds when it is a list", low=1, high=500, one_line=True
    )
    role: str = spec("what these people may do", choices=ROLES)
    zones: tuple[str, ...] = spec("ids or names of their zones; empty: all zones", (), high=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Client secret empty: public client; certificates empty: the system's."""

    entry: OidcEntry
    roles: tuple[OidcRole, ...] = ()
    secret: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        return self.entry.name or self.entry.issuer.partition("://")[2].partition("/")[0]


class OidcPerson(msgspec.Struct, frozen=True, kw_only=True):
    iss: str
    sub: str
    name: str
    domain: str = ""
    """Lower case."""
    has: tuple[tuple[str, str], ...] = ()
    """(claim, value)"""


def oidc_person(settings: OidcSettings, claims: Mapping[str, Any]) -> OidcPerson:
    """`claims` are verified and include `sub`."""
    entry = settings.entry
    email = claims.get("email")
    verified = str(claims.get("email_verified")).lower() == "true" and isinstance(email, str)
    told = {name: value for name, value in claims.items() if name != "email" or verified}
    wanted = {(row.claim, row.value) for row in settings.roles} | {
        (entry.groups_claim, group) for group in entry.allowed_groups
    }
    named = claims.get(entry.name_claim)
    name = plain_name(named) if isinstance(named, str) and named.strip() else ""
    domain = str(email).rpartition("@")[2].lower() if verified else ""
    has = tuple(
        sorted((claim, value) for claim, value in wanted if value in _values(told.get(claim)))
    )
    return OidcPerson(
        iss=entry.issuer,
        sub=str(claims["sub"]),
        name=name or plain_name(str(claims["sub"])),
        domain=domain,
        has=has,
    )


def oidc_role(settings: OidcSettings, person: OidcPerson) -> OidcRole | None:
    """None: no access. Changed settings count at once."""
    entry = settings.entry
    if person.iss != entry.issuer:
        return None
    if entry.allowed_domains and person.domain not in {
        domain.lower() for domain in entry.allowed_domains
    }:
        return None
    if entry.allowed_groups and not {
        (entry.groups_claim, group) for group in entry.allowed_groups
    } & set(person.has):
        return None
    return next((row for row in settings.roles if (row.claim, row.value) in person.has), None)


def claims_wanted(settings: OidcSettings) -> set[str]:
    entry = settings.entry
    more = (
        {"email", "email_verified"}
        if entry.allowed_domains or any(row.claim == "email" for row in settings.roles)
        else set()
    )
    return (
        {row.claim for row in settings.roles}
        | ({entry.groups_claim} if entry.allowed_groups else set())
        | more
        | {entry.name_claim}
    )


def role_problems(roles: Iterable[OidcRole], pointer: str) -> list[Problem]:
    return [
        Problem(
            f"{pointer}[{index}].zones",
            "must be empty for an admin, who manages the whole installation",
        )
        for index, row in enumerate(roles)
        if row.role == "admin" and row.zones
    ]


def _values(claim: Any) -> set[str]:
    """true and false as in JSON, numbers in decimal."""
    items = claim if isinstance(claim, list) else [claim]
    return {
        str(item).lower() if isinstance(item, bool) else str(item)
        for item in items
        if isinstance(item, (str, bool, int))
    }


def plain_name(text: str) -> str:
    return "".join(one for one in text.strip() if one.isprintable())[:SHOWN_MAX]
