"""Sign-in and sessions, found by the hash of a random secret that only the browser has. The owner
is looked up with every request, so changed rights count at once, in every process. Guessing is
limited by address and by account; a browser with a device cookie has its own count, so that
strangers cannot lock out an owner.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import NamedTuple

import msgspec

from greenroom.accounts import people as accounts
from greenroom.accounts.people import password_fits
from greenroom.accounts.two_step import TRIES, TRIES_MS, USED_MS, CodeCheck
from greenroom.model.account import (
    DEVICE,
    LINK,
    ROLES,
    SECOND,
    SESSION,
    USED,
    Account,
    Role,
    SessionRow,
    Token,
)
from greenroom.model.configuration import Configuration
from greenroom.model.fields import with_unit
from greenroom.model.oidc import OidcPerson, OidcSettings, oidc_role, plain_name
from greenroom.request.forwarded import network_of
from greenroom.web.authenticator import Credentials, StoredFailures, known_token
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.request import DashboardSession, Person
from greenroom.web.refusals import ApiFault, Code, Refused
from greenroom.web.stores import SessionStore

HOUR_MS = 3_600_000
IDLE_MS = 8 * HOUR_MS

LONGEST_MS = 7 * 24 * HOUR_MS

LINK_MS = 24 * HOUR_MS
LINK_PATH = "/sign-in/link"

DEVICE_MS = 180 * 24 * HOUR_MS
OIDC_MS = 600_000

SECOND_MS = 300_000

SEEN_MS = 60_000

MOST = {SESSION: 10_000, LINK: 100, DEVICE: 10_000, SECOND: 10_000, USED: 10_000}
"""The least recently used is forgotten first."""

AGENT_SHOWN = 200


class SignedIn(NamedTuple):
    secret: str
    device: str
    person: Person


class SecondStep(NamedTuple):
    secret: str


class BrowserFacts(NamedTuple):
    address: str
    agent: str = ""
    device: str = ""


def digest(secret: str) -> str:
    """For secrets of 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def csrf_token(secret: str) -> str:
    return hmac.new(
        secret.encode("utf-8", "replace"), b"greenroom csrf", hashlib.sha256
    ).hexdigest()


class SignIn:
    """Blocks on the store. Everything may raise Refused and StorageFailed."""

    def __init__(
        self,
        store: SessionStore,
        config: ConfigService,
        oidc: Callable[[], OidcSettings | None],
    ) -> None:
        self._store = store
        self._config = config
        clock = self._clock = config.clock
        self._oidc = oidc
        self._failures = StoredFailures(store, clock, "sign-in")
        failures = StoredFailures(store, clock, "code", TRIES, TRIES_MS)
        self.codes = CodeCheck(clock, failures, self.use_step, self.use_recovery)

    def provider_knows_admins(self) -> bool:
        settings = self._oidc()
        return settings is not None and any(row.role == "admin" for row in settings.roles)

    def make_link(self) -> str:
        return make_link(self._store, self._clock.now_ms())

    def link_is_good(self, secret: str) -> bool:
        row = self._store.get(LINK, digest(secret))
        return row is not None and row.expires_ms > self._clock.now_ms()

    def use_link(self, secret: str, browser: BrowserFacts) -> None:
        """Raises Refused when the link has been used, or has expired."""
        with self._attempt(_address(browser)):
            row = self._store.take(LINK, digest(secret))
            if row is None or row.expires_ms <= self._clock.now_ms():
                raise _refused(
                    "this link has been used or has expired: run `greenroom account link` for"
                    " another one"
                )

    def as_link(self, browser: BrowserFacts) -> SignedIn:
        return self._begin(_link_person(), browser)

    def with_token(self, known: Configuration, secret: str, browser: BrowserFacts) -> SignedIn:
        with self._attempt(_address(browser)):
            token = known_token(known, Credentials(secret.strip()), self._clock.now_ms())
            person = _token_person(token) if token else None
            if person is None:
                reason = (
                    "this token may neither read nor edit"
                    if token
                    else "the token is unknown or has expired"
                )
                raise _refused(reason)
        return self._begin(person, browser)

    def with_password(
        self, known: Configuration, name: str, password: str, browser: BrowserFacts
    ) -> SignedIn | SecondStep:
        """Takes as long for an unknown name. SecondStep leads to `with_code`."""
        name = name.strip().lower()[:100]
        account = next((one for one in known.accounts.records() if one.name == name), None)
        trusted = account is not None and self._knows(account, browser.device)
        keys = (
            [f"device {digest(browser.device)}"]
            if trusted
            else [_address(browser), f"account {name}"]
        )
        with self._attempt(*keys):
            fits = password_fits(password, account.password_hash if account else "")
            if not fits or account is None:
                raise _refused("incorrect username or password")
        if account.totp_secret:
            return SecondStep(self._new(SECOND, _account_person(account).owner, SECOND_MS, browser))
        return self.as_account(account, browser)

    def with_code(
        self, known: Configuration, secret: str, code: str, browser: BrowserFacts
    ) -> SignedIn:
        """`code` is of the authenticator app, or a recovery code."""
        with self._attempt(_address(browser)):
            account = self._second_step(known, secret)
            device = digest(browser.device) if self._knows(account, browser.device) else ""
            self.codes.check(account, code, device)
        if self._store.take(SECOND, digest(secret)) is None:
            raise _refused("this sign-in has been used already: sign in again")
        return self.as_account(account, browser)

    def _second_step(self, known: Configuration, secret: str) -> Account:
        row, now_ms = self._store.get(SECOND, digest(secret)), self._clock.now_ms()
        entry = (
            known.accounts.get(row.owner.split(":")[1]) if row and row.expires_ms > now_ms else None
        )
        if row is None or entry is None or _account_person(entry.record).owner != row.owner:
            raise _refused("this took too long, or the account has changed: sign in again")
        return entry.record

    def may_go_on(self, secret: str) -> bool:
        row = self._store.get(SECOND, digest(secret))
        return row is not None and row.expires_ms > self._clock.now_ms()

    def confirm(self, account: Account, password: str) -> None:
        with self._attempt(f"own {account.id}"):
            if not password_fits(password, account.password_hash):
                raise Refused(ApiFault(Code.INVALID, "old: is not your password", "/old"))

    def use_step(self, account: Account, step: int) -> bool:
        row = session_row(
            USED,
            f"totp {account.id} {step}",
            f"account:{account.id}",
            self._clock.now_ms(),
            USED_MS,
            BrowserFacts(""),
        )
        return self._store.add_once(row, MOST[USED])

    def use_recovery(self, account: Account, hashed: str) -> bool:
        try:
            self._config.change(
                f"{account.name} (recovery code, dashboard)",
                accounts.use_recovery_code(account.id, hashed),
            )
        except Refused:
            return False
        return True

    def as_account(self, account: Account, browser: BrowserFacts) -> SignedIn:
        device = (
            browser.device
            if self._knows(account, browser.device)
            else self._new(DEVICE, f"account:{account.id}", DEVICE_MS, browser)
        )
        return self._begin(_account_person(account), browser, device)

    def reserve(self, browser: BrowserFacts) -> int:
        """Returns the start of the attempt. Raises Refused when the address has to wait."""
        wait_s = self._failures.reserve(_address(browser))
        now_ms = (
            self._clock.now_ms()
        )  # read after the count: the row that it may have made is not younger
        if wait_s:
            raise _too_many(wait_s)
        return now_ms

    def release(self, browser: BrowserFacts, since_ms: int) -> None:
        self._failures.release(_address(browser), since_ms)

    def with_oidc(
        self, known: Configuration, found: OidcPerson, secret: str, browser: BrowserFacts
    ) -> SignedIn:
        """`secret` identifies the sign-in, which counts once."""
        settings = self._oidc()
        person = _oidc_person(known, found, settings)
        if person is None or settings is None:
            raise Refused(
                ApiFault(
                    Code.DENIED,
                    f"you are known there as {found.name}, but that gives you no access here: ask"
                    " an admin of this greenroom for a role",
                )
            )
        now_ms = self._clock.now_ms()
        if not self._store.add_once(
            session_row(USED, f"oidc {secret}", person.owner, now_ms, OIDC_MS, browser), MOST[USED]
        ):
            raise _refused("this sign-in has been used already: try again")
        lasts_ms = min(settings.entry.session_hours * HOUR_MS, LONGEST_MS)
        return self._begin(
            person, browser, lasts_ms=lasts_ms, facts=msgspec.json.encode(found).decode()
        )

    def find(self, known: Configuration, secret: str) -> DashboardSession | None:
        """None when the session has ended or its owner has no rights left."""
        return (
            self._living(known, secret, self._store.get(SESSION, digest(secret)))
            if secret
            else None
        )

    def find_all(
        self, known: Configuration, presented: Collection[str]
    ) -> dict[str, DashboardSession]:
        rows = {row.secret_sha256: row for row in self._store.rows(SESSION)}
        found = {
            secret: self._living(known, secret, rows.get(digest(secret)))
            for secret in presented
            if secret
        }
        return {secret: session for secret, session in found.items() if session is not None}

    def _living(
        self, known: Configuration, secret: str, row: SessionRow | None
    ) -> DashboardSession | None:
        now_ms = self._clock.now_ms()
        if row is None or row.expires_ms <= now_ms or row.seen_ms + IDLE_MS <= now_ms:
            return None
        person = self._owner(known, row, now_ms)
        if person is None:
            return None
        if now_ms - row.seen_ms >= SEEN_MS:
            self._store.seen(row.secret_sha256, now_ms)
        return DashboardSession(row, person, csrf_token(secret))

    def end(self, secret: str) -> None:
        self._store.take(SESSION, digest(secret))

    def _owner(self, known: Configuration, row: SessionRow, now_ms: int) -> Person | None:
        if row.facts:
            return _oidc_person(
                known, msgspec.json.decode(row.facts, type=OidcPerson), self._oidc()
            )
        return owner_of(known, row.owner, now_ms)

    def _begin(
        self,
        person: Person,
        browser: BrowserFacts,
        device: str = "",
        lasts_ms: int = LONGEST_MS,
        facts: str = "",
    ) -> SignedIn:
        self._store.forget(self._clock.now_ms(), IDLE_MS)
        return SignedIn(self._new(SESSION, person.owner, lasts_ms, browser, facts), device, person)

    def _new(
        self, kind: str, owner: str, lasts_ms: int, browser: BrowserFacts, facts: str = ""
    ) -> str:
        secret = secrets.token_urlsafe(32)
        self._store.add(
            session_row(kind, secret, owner, self._clock.now_ms(), lasts_ms, browser, facts),
            MOST[kind],
        )
        return secret

    def _knows(self, account: Account, device: str) -> bool:
        row = self._store.get(DEVICE, digest(device)) if device else None
        return (
            row is not None
            and row.owner == f"account:{account.id}"
            and row.expires_ms > self._clock.now_ms()
        )

    def _attempt(self, *keys: str) -> AbstractContextManager[None]:
        return self._failures.attempt(*keys, refusal=_too_many)


def _too_many(wait_s: int) -> Refused:
    return Refused(
        ApiFault(
            Code.SLOW_DOWN, f"too many wrong attempts; try again in {with_unit(wait_s, 'seconds')}"
        )
    )


def _address(browser: BrowserFacts) -> str:
    return f"address {network_of(browser.address)}"


def make_link(store: SessionStore, now_ms: int) -> str:
    """An admin's, within LINK_MS."""
    secret = secrets.token_urlsafe(32)
    store.add(session_row(LINK, secret, "link", now_ms, LINK_MS, BrowserFacts("")), MOST[LINK])
    return secret


def session_row(
    kind: str,
    secret: str,
    owner: str,
    now_ms: int,
    lasts_ms: int,
    browser: BrowserFacts,
    facts: str = "",
) -> SessionRow:
    return SessionRow(
        kind=kind,
        secret_sha256=digest(secret),
        id=secrets.token_hex(16),
        owner=owner,
        created_ms=now_ms,
        seen_ms=now_ms,
        expires_ms=now_ms + lasts_ms,
        address=browser.address[:64],
        agent=browser.agent.replace("\0", "")[:AGENT_SHOWN],
        facts=facts,
    )


def owner_of(known: Configuration, owner: str, now_ms: int) -> Person | None:
    kind, _, rest = owner.partition(":")
    if kind == "link":
        return _link_person()
    key = rest.partition(":")[0]
    if kind == "account" and key in known.accounts:
        person = _account_person(known.accounts[key].record)
        return person if hmac.compare_digest(person.owner.encode(), owner.encode()) else None
    if kind == "token" and key in known.tokens and not known.tokens[key].record.expired(now_ms):
        return _token_person(known.tokens[key].record)
    return None


def _account_person(account: Account) -> Person:
    return Person(
        account.name,
        account.rank,
        account.zone_ids,
        f"{account.name} (dashboard)",
        f"account:{account.id}:{account.credentials}",
    )


def _token_person(token: Token) -> Person | None:
    role = (
        Role.OPERATOR if "edit" in token.scopes else Role.VIEWER if "read" in token.scopes else None
    )
    if role is None:
        return None
    return Person(
        token.name,
        role,
        token.zone_ids,
        f"token {token.name} ({token.id}) in the dashboard",
        f"token:{token.id}",
    )


def oidc_name(row: SessionRow) -> str:
    return f"{msgspec.json.decode(row.facts, type=OidcPerson).name} (OpenID Connect)"


def _oidc_person(
    known: Configuration, found: OidcPerson, settings: OidcSettings | None
) -> Person | None:
    """Removed zones give no access; they never widen to all zones."""
    row = oidc_role(settings, found) if settings else None
    if row is None:
        return None
    zone_ids = tuple(
        entry.id for entry in known.zones.values() if {entry.id, entry.record.name} & set(row.zones)
    )
    if row.zones and not zone_ids:
        return None
    owner = f"oidc:{digest(f'{found.iss} {found.sub}')[:32]}"
    author = f"{found.name} (OpenID Connect {plain_name(found.sub)}, dashboard)"
    return Person(found.name, Role(ROLES.index(row.role)), zone_ids, author, owner)


def _link_person() -> Person:
    return Person("one-time link", Role.ADMIN, (), "one-time link (dashboard)", "link")


def _refused(reason: str) -> Refused:
    return Refused(ApiFault(Code.DENIED, reason), status=401)
