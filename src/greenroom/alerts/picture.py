"""The snapshot of a running process in which alert conditions are evaluated: its state and its
configuration.
"""

import socket
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from greenroom.alerts.rules.conditions import (
    BOUND_TYPES,
    Certificate,
    Picture,
    RoomPicture,
)
from greenroom.alerts.rules.matching import bounds
from greenroom.configuration.state import ProcessState, RoomState
from greenroom.errors import Problem
from greenroom.model.clock import LastMinute
from greenroom.model.configuration import Configuration


class PictureTaker:
    def __init__(self) -> None:
        self._minute = LastMinute()

    def take(
        self, state: ProcessState, documents: Configuration, control: str, certificate_file: str
    ) -> Picture:
        """`control` is the address of the operators' listener; `certificate_file` may be empty."""
        counts = dict(state.gateway)
        self._minute.add(state.now_ms, counts.get("forwarded", 0), counts.get("failed", 0))
        requests, failed = map(int, self._minute.growth())
        sync = state.sync
        speaks = sync is None or (
            sync.syncing and sync.figures_known
        )  # old figures would end incidents that go on
        several, first = _of_data_centers(state)
        policies = list(documents.alert_policies.records())
        return Picture(
            now_ms=state.now_ms,
            process=f"{socket.gethostname()[:60]} {control}",
            data_center=sync.data_center if sync else "here",
            rooms=tuple(
                _room(room, documents, state.now_ms)
                for room in state.rooms
                if speaks or room.figures.storage_failed
            ),
            speaks_for_rooms=speaks,
            several=several,
            speaks_for_all=first and not (sync and sync.cut_off),
            requests=requests,
            failed=failed,
            cut_off_s=(sync.answered_s or 0.0) if sync and sync.syncing and sync.cut_off else None,
            silent={
                name: (sync.silent_s[name], lost.held + lost.returning)
                for name, lost in sync.lost.items()
            }
            if sync and sync.leader
            else None,
            config_problems={
                "file": _said(state.config.problems),
                "store": _said(state.store.problems + state.faults),
            },
            certificate=certificate(Path(certificate_file)) if certificate_file else None,
            limits={name: bounds(policies, name) for name in BOUND_TYPES},
        )


def _of_data_centers(state: ProcessState) -> tuple[bool, bool]:
    """Returns whether several data centers share the rooms, and whether this one is the first that
    is heard: it alone reports on whole rooms.
    """
    centers = next((room.figures.centers for room in state.rooms if room.figures.centers), ())
    heard = [center.name for center in centers if center.name and not center.silent]
    return bool(centers), not heard or centers[0].name == min(heard)


def _room(state: RoomState, documents: Configuration, now_ms: int) -> RoomPicture:
    entry = documents.rooms.get(state.room.id)
    figures = state.figures
    return RoomPicture(
        room=state.room,
        zone_id="" if entry is None or entry.read_only else entry.parent,
        events=documents.events_of(state.room.id),
        waiting=figures.waiting,
        active=figures.active,
        wait_s=figures.estimate.p50_s if figures.estimate else None,
        storage_failed=figures.storage_failed,
        confirms=figures.confirms,
        origin_slow=state.now is not None and state.now.origin_slow,
        unmeasured=state.capacity is not None and state.capacity.unmeasured(now_ms),
    )


def _said(problems: tuple[Problem, ...]) -> tuple[str, ...]:
    return tuple(map(str, problems))


def certificate(path: Path) -> Certificate | None:
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int) -> Certificate:
    found = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        names = found.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    return Certificate(
        tuple(names),
        int(found.not_valid_after_utc.timestamp() * 1000),
        found.fingerprint(SHA256()).hex(),
    )
