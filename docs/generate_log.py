"""Writes docs/reference/log.md: the events of the log are read from the source, their meaning is here."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "greenroom"
LEVELS = ("error", "warning", "info")

MEANS = {
    "access_log_lines_dropped": "the disk was slower than the requests",
    "access_log_not_written": "",
    "admissions_stopped": "the ledger of the room cannot be written",
    "alert": "an incident began or ended",
    "alerts_waiting": "the store does not answer",
    "analytics_minute_incomplete": "a process ended without writing it",
    "analytics_not_sent": "to the process that writes them; kept meanwhile",
    "analytics_not_written": "kept meanwhile",
    "api_request": "a call that changes something; level debug: one that reads",
    "api_request_failed": "an exception; the caller got 500 with this `ray`",
    "capacity_not_exchanged": "with other processes, over Redis",
    "capacity_not_measured": "the limit stays where it was; `reason` names what is late",
    "capacity_not_noted": "in the audit log",
    "checks_received": "by a probe agent",
    "clock_differs": "from the system clock: restart greenroom",
    "config_parts_unusable": "held or left out, as in `/readyz`",
    "config_refused": "the file is wrong; the last good one counts",
    "config_restart_required": "the change counts after a restart",
    "config_store_copy_failed": "`config.last-good` could not be written",
    "config_store_copy_used": "the store did not answer at the start",
    "config_store_revision_refused": "the last good one counts",
    "dashboard_form_from_another_host": "refused",
    "dashboard_sign_in_refused": "by OpenID Connect: no role for this person",
    "data_directory_failed": "",
    "descriptors_short": "idle connections were closed",
    "draw_agreement_failed": "processes could not agree on a draw yet",
    "exceptions_suppressed": "more than ten in a minute",
    "health_check_body_mismatch": "why a body was not found as expected",
    "health_lease_lost": "another process probes now",
    "health_status_changed": "",
    "health_store_write_failed": "kept meanwhile",
    "journal_damaged": "what is readable counts; nobody gets a forgotten visitor's place",
    "journal_emptied": "",
    "live_feed_configuration_unreadable": "the live page shows the last one",
    "live_feed_failed": "the live page misses an update",
    "notifications_waiting": "the store does not answer",
    "notification_given_up": "after a day",
    "notification_not_delivered": "tried again",
    "offers_header_refused": "logged again after a value that is right",
    "offers_not_written": "tried again with the next response",
    "probe_not_possible": "no file descriptor or memory",
    "redis_failed": "visitors are held until it answers",
    "report_failed": "a probe agent cannot report; kept meanwhile",
    "room_held_for_origin": "the origin is unhealthy",
    "stored_secrets_not_sealed": "tried again",
    "stored_secrets_unreadable": "the key is missing: restore `secrets.json`",
    "tickets_do_not_come_back": "visitors lose their cookie; `cause` says why",
    "unexpected_exception": "inside greenroom; the visitor was held",
    "units_held": "capacity that a damaged journal or a lost Redis may owe to forgotten visitors",
    "upload_aborted": "",
    "websocket_refused": "a limit of tunnels is reached",
}
"""Of those whose name does not say it all."""


def events() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Event -> level and fields; the severer level where there are two."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if "structlog" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            match node:
                case ast.Call(func=ast.Name(id="StoreOutage"), args=[waiting, resumed]):
                    found[_names(waiting)[0]] = "warning", ("reason",)
                    found[_names(resumed)[0]] = "info", ()
            if level := _level(node):
                fields = tuple(
                    one.arg for one in node.keywords if one.arg and one.arg != "exc_info"
                )
                for name in _names(node.args[0]):
                    if name not in found or LEVELS.index(level) < LEVELS.index(found[name][0]):
                        found[name] = level, fields
    return found


def _level(call: ast.Call) -> str:
    """Empty when it is no call of the log."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="log") | ast.Attribute(attr="_log"), attr=level):
            return (
                {"exception": "error"}.get(level, level if call.args else "") if call.args else ""
            )
        case ast.IfExp(orelse=ast.Attribute(value=ast.Name(id="log"), attr=level)):
            return level
    return ""


def _names(given: ast.expr) -> list[str]:
    """Texts that the first argument may be; none for one that is passed on."""
    texts = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
    return [str(one.value) for one in texts if isinstance(one, ast.Constant)]


def log() -> str:
    found = events()
    unknown = MEANS.keys() - found.keys()
    assert not unknown, f"no such event: {unknown}"
    parts = []
    for level in LEVELS:
        rows = []
        for name, (severity, fields) in sorted(found.items()):
            if severity == level:
                listed = f" ({', '.join(f'`{one}`' for one in fields)})" if fields else ""
                rows.append(f"- `{name}`{listed}" + (f": {MEANS[name]}" if MEANS.get(name) else ""))
        parts.append(f"## {level.capitalize()}\n\n" + "\n".join(rows) + "\n")
    return INTRODUCTION + "\n" + "\n".join(parts)


INTRODUCTION = """\
# The log

<!-- Written by docs/generate_log.py from the source. -->

greenroom logs to standard error, one line for each event, from `[log] level` up. With `format = "json"` a line is an object:

```json
{"event": "config_refused", "level": "error", "logger": "greenroom.runtime.reload",
 "timestamp": "2030-01-01T10:00:00.000000Z", "file": "greenroom.toml", "problems": ["..."]}
```

`event`, `level`, `logger` and `timestamp` (UTC) are always there, `exception` where one was raised; the event's own fields are below in parentheses.
Libraries log sentences as `event`. Names of events and fields are [stable](../explanation/upgrades.md).
Cookies, tickets, tokens and bodies are never logged.

With `access = "json"` each request is a line of its own, on standard output or in `access_file`:
`time` (Unix, seconds), `client`, `method`, `scheme`, `host`, `path`,
`status` (0: the visitor left first), `bytes`, `duration_ms`,
`handled` (`forward`, `reenter`, `hold`, `answer`, `refuse`), `room`, `referrer` and `user_agent`.
"""
