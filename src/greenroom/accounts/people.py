"""Local accounts of the dashboard, for admins and the command line."""

import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from greenroom.errors import InvalidConfig
from greenroom.model.account import PASSWORD_LEAST, PASSWORD_LONGEST, Account
from greenroom.model.change import Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.web.api_shapes import Json
from greenroom.web.config_service import ChangeContext, ConfigChange, PlannedChange
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    not_found,
    refuse_if,
    too_many,
)

# Password rules and argon2id hashes: 50 ms and 64 MB each on purpose, a few at once.

AT_ONCE = 2

_hasher = PasswordHasher()
_slots = threading.BoundedSemaphore(AT_ONCE)


def password_problem(password: str) -> str | None:
    """Only the length counts (NIST SP 800-63B)."""
    if len(password) < PASSWORD_LEAST:
        return f"must be at least {PASSWORD_LEAST} characters, not {len(password)}"
    if len(password) > PASSWORD_LONGEST:
        return f"must be at most {PASSWORD_LONGEST} characters, not {len(password)}"
    return "must not be one character repeated" if len(set(password)) == 1 else None


def hash_password(password: str) -> str:
    with _slots:
        return _hasher.hash(password)


def password_fits(password: str, hashed: str) -> bool:
    """Takes as long without a hash. Longer passwords than may be set never fit."""
    if len(password) > PASSWORD_LONGEST:
        return False
    with _slots:
        try:
            return _hasher.verify(hashed or _nothing(), password) and bool(hashed)
        except (VerificationError, InvalidHashError):
            return False


@cache
def _nothing() -> str:
    return _hasher.hash("\0")


ACCOUNTS_MAX = 1_000


def add(
    name: str, role: str, zones: Sequence[str], password: str, *, first: bool = False
) -> ConfigChange:
    """`zones` are ids or names, none for all. `first`: only while there is no account."""
    hashed = hash_password(password) if password_problem(password) is None else ""

    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        faults = _password_faults(password) + _zone_faults(known, zones)
        if first and known.accounts:
            raise Refused(
                ApiFault(
                    Code.TAKEN, "there is an account already: ask an admin for one of your own"
                )
            )
        if find(known, name):
            faults.append(
                ApiFault(Code.TAKEN, f"name: there is an account {name} already", "/name")
            )
        faults += too_many(known.accounts, ACCOUNTS_MAX, "accounts")
        values: Json = {
            "id": at.new_id(),
            "name": name,
            "role": role,
            "zone_ids": _ids(known, zones),
            "password_hash": hashed,
        }
        return _put(
            Account(**values) if not (found := _record_faults(values)) else None, faults + found
        )

    return plan


def edit(
    name: str,
    *,
    role: str | None = None,
    zones: Sequence[str] | None = None,
    password: str | None = None,
) -> ConfigChange:
    """The last admin stays one."""
    hashed = (
        hash_password(password)
        if password is not None and password_problem(password) is None
        else ""
    )

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        account = _existing(known, name).record
        faults = ([] if password is None else _password_faults(password)) + _zone_faults(
            known, zones or ()
        )
        wanted = role or account.role
        if account.role == "admin" and wanted != "admin":
            faults += _last_admin_faults(known, account)
        values: Json = asdict(account) | {
            "role": wanted,
            "zone_ids": account.zone_ids if zones is None else _ids(known, zones),
            "password_hash": account.password_hash if password is None else hashed,
        }
        return _put(
            Account(**values) if not (found := _record_faults(values)) else None, faults + found
        )

    return plan


def turn_on_two_step(name: str, secret: str, recovery: Sequence[str]) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        account = _existing(known, name).record
        if account.totp_secret:
            raise Refused(ApiFault(Code.TAKEN, "two-step sign-in is on already: turn it off first"))
        return _put(
            replace(
                account,
                two_step_since_ms=at.now_ms,
                totp_secret=secret,
                recovery_sha256=tuple(recovery),
            ),
            [],
        )

    return plan


def turn_off_two_step(name: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        return _put(
            replace(
                _existing(known, name).record,
                two_step_since_ms=0,
                totp_secret="",
                recovery_sha256=(),
            ),
            [],
        )

    return plan


def use_recovery_code(account_id: str, hashed: str) -> ConfigChange:
    """Raises Refused when there is no such code."""

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        account = _existing(known, account_id).record
        if hashed not in account.recovery_sha256:
            raise Refused(ApiFault(Code.DENIED, "this recovery code has been used"))
        return _put(
            replace(
                account,
                recovery_sha256=tuple(one for one in account.recovery_sha256 if one != hashed),
            ),
            [],
        )

    return plan


def remove(name: str) -> ConfigChange:
    """By name or id. Refuses the last admin."""

    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        account = _existing(known, name).record
        refuse_if(_last_admin_faults(known, account))
        return PlannedChange([Remove("account", account.id)], lambda _after: account)

    return plan


def find(known: Configuration, name: str) -> Account | None:
    entry = known.accounts.get(name)
    return (
        entry.record
        if entry
        else next((one for one in known.accounts.records() if one.name == name), None)
    )


def every(known: Configuration) -> list[Entry[Account]]:
    return sorted(known.accounts.values(), key=lambda entry: entry.record.name)


def _existing(known: Configuration, name: str) -> Entry[Account]:
    account = find(known, name)
    if account is None:
        raise not_found("account", name)
    return known.accounts[account.id]


def _password_faults(password: str) -> list[ApiFault]:
    problem = password_problem(password)
    return [ApiFault(Code.INVALID, f"password: {problem}", "/password")] if problem else []


def _last_admin_faults(known: Configuration, account: Account) -> list[ApiFault]:
    others = [
        one for one in known.accounts.records() if one.role == "admin" and one.id != account.id
    ]
    if account.role != "admin" or others:
        return []
    return [
        ApiFault(
            Code.IN_USE,
            f"{account.name} is the only admin: make another account an admin first",
            "/role",
        )
    ]


def _ids(known: Configuration, zones: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        entry.id for entry in known.zones.values() if {entry.id, entry.record.name} & set(zones)
    )


def _zone_faults(known: Configuration, zones: Sequence[str]) -> list[ApiFault]:
    names = {name for entry in known.zones.values() for name in (entry.id, entry.record.name)}
    return [
        ApiFault(Code.NO_OBJECT, f"zone_ids: there is no zone {zone[:80]}", "/zone_ids")
        for zone in zones
        if zone not in names
    ]


def _record_faults(values: Json) -> list[ApiFault]:
    try:
        Account(**values)
    except InvalidConfig as invalid:
        return [
            ApiFault(
                Code.INVALID, str(found), f"/{re.split(r'[.[]', found.pointer, maxsplit=1)[0]}"
            )
            for found in invalid.problems
            if found.pointer != "password_hash"
        ]
    return []


def _put(account: Account | None, faults: list[ApiFault]) -> PlannedChange:
    refuse_if(faults)
    if account is None:
        raise ValueError("an account without faults that cannot be made")
    return PlannedChange([Put(account)], lambda _after: account)
