"""Silences: times in which a policy sends nothing."""

from typing import Any

from greenroom.model.change import Change, Put, Remove
from greenroom.model.configuration import Configuration, Entry
from greenroom.model.notification import Silence
from greenroom.web.api_schema import ApiSchema, computed, read_as
from greenroom.web.api_shapes import (
    Json,
    MomentField,
    Plain,
    Shown,
)
from greenroom.web.config_service import (
    ChangeContext,
    ConfigChange,
    PlannedChange,
    entry_of,
)
from greenroom.web.refusals import (
    ApiFault,
    Code,
    Refused,
    refuse_if,
    within,
)
from greenroom.web.time_format import milliseconds, plain_moment
from greenroom.web.time_format import moment as written

SILENCES_MAX = 1_000

DEFAULT_MS = 3_600_000
"""A forgotten silence must not hide alerts forever."""

_TIME = Shown({"type": "string", "format": "date-time"})

SILENCE = ApiSchema(
    (
        computed(
            "id",
            "opaque identifier; of an existing silence when it is to be changed",
            Plain(str),
            writable=True,
        ),
        computed(
            "policy_id", "the policy that is silent; empty: all of them", Plain(str), writable=True
        ),
        computed("start_time", "when it begins; left out: now", MomentField(), writable=True),
        computed(
            "end_time",
            "when it ends; left out: an hour after its start",
            MomentField(),
            writable=True,
        ),
        computed("created_at", "creation time", _TIME),
        computed("updated_at", "time of the last change", _TIME),
    )
)


def show(entry: Entry[Silence]) -> Json:
    record = entry.record
    values = {name: getattr(record, name) for name in ("id", "policy_id", "start_time", "end_time")}
    return SILENCE.show(
        values | {"created_at": written(entry.created_ms), "updated_at": written(entry.modified_ms)}
    )


def silence_of(known: Configuration, silence_id: str) -> Entry[Silence]:
    return entry_of(known.silences, "silence", silence_id)


def every(known: Configuration) -> list[Json]:
    return [show(entry) for entry in known.silences.values()]


def put_all(documents: Any, *, change: bool) -> ConfigChange:
    def plan(known: Configuration, at: ChangeContext) -> PlannedChange:
        if not isinstance(documents, list):
            raise Refused(ApiFault(Code.BAD_BODY, "the body must be a list of silences"))
        faults: list[ApiFault] = []
        changes: list[Change] = []
        for index, document in enumerate(documents):
            try:
                changes.append(Put(_silence(known, document, at, change)))
            except Refused as refused:
                faults += within(refused.faults, f"/{index}")
        if len(known.silences) + len(changes) > SILENCES_MAX:
            faults.append(
                ApiFault(
                    Code.TOO_MANY,
                    f"there may be {SILENCES_MAX} silences; remove those that are over",
                )
            )
        refuse_if(faults)
        return PlannedChange(changes, every)

    return plan


def delete(silence_id: str) -> ConfigChange:
    def plan(known: Configuration, _at: ChangeContext) -> PlannedChange:
        silence_of(known, silence_id)
        return PlannedChange([Remove("silence", silence_id)], lambda _after: None)

    return plan


def _silence(known: Configuration, document: Any, at: ChangeContext, change: bool) -> Silence:
    values, faults = read_as(SILENCE, document)
    wrong = [name for name, value in values.items() if not isinstance(value, str)]
    refuse_if(
        faults + [ApiFault(Code.INVALID, f"{name}: must be a string", f"/{name}") for name in wrong]
    )
    wanted = values.get("id") if change else None
    old = None
    if wanted:
        old = silence_of(known, str(wanted)).record
    start_time = values.get("start_time") or (old.start_time if old else plain_moment(at.now_ms))
    start_ms = milliseconds(start_time)
    end_time = values.get("end_time") or (
        old.end_time if old else plain_moment((start_ms or at.now_ms) + DEFAULT_MS)
    )
    end_ms = milliseconds(end_time)
    policy_id = values.get("policy_id", old.policy_id if old else "")
    if policy_id and policy_id not in known.alert_policies:
        faults.append(
            ApiFault(
                Code.NO_OBJECT, f"policy_id: there is no policy {policy_id!r:.80}", "/policy_id"
            )
        )
    if start_ms is not None and end_ms is not None and end_ms <= start_ms:
        faults.append(
            ApiFault(Code.INVALID, "end_time: must be later than start_time", "/end_time")
        )
    refuse_if(faults)
    silence_id = old.id if old else at.new_id()
    return Silence(
        id=silence_id,
        policy_id=policy_id,
        start_ms=start_ms or 0,
        end_ms=end_ms or 0,
        start_time=start_time,
        end_time=end_time,
    )


def without_orphans(made: Configuration) -> Configuration:
    """Removes silences of policies that are gone."""
    left = {
        key: entry
        for key, entry in made.silences.items()
        if not entry.record.policy_id or entry.record.policy_id in made.alert_policies
    }
    return (
        made
        if len(left) == len(made.silences)
        else made.with_indexes(made.revision, {"silence": left})
    )
