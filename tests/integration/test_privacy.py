"""What docs/explanation/privacy.md promises: without the access log, nothing about a visitor's person
is written anywhere.
"""

import json
from typing import Any

ADDRESS, BROWSER, SECRET = "203.0.113.77", "Browser-of-Somebody/7", "card=4111111111111111"


def test_nothing_of_a_visitor_is_written_down(greenroom: Any, origin: Any) -> None:
    running = greenroom.config(
        f'origin = "{origin.url}"\ntrusted_proxies = ["127.0.0.1"]\n'
        '[[rooms]]\nname = "main"\nhost = "*"\ntotal_active_users = 1\n'
        "new_users_per_minute = 60\nconfirm_newcomers = false\n"
        "disable_session_renewal = true\nsession_extensions = 2\ncalendar_after_minutes = 1\n"
    )
    headers = {"X-Forwarded-For": ADDRESS, "User-Agent": BROWSER, "Referer": f"http://a/?{SECRET}"}
    inside, waiting, forger = (running.visitor() for _ in range(3))
    answer = inside.get(f"/shop?{SECRET}", headers=headers)
    assert ["user-agent", BROWSER] in json.loads(answer.body)["headers"]
    assert waiting.get(f"/shop?{SECRET}", headers=headers).waiting
    for _ in range(5):  # updates whose ticket does not come back are told to the operator
        forger.cookies.clear()
        forger.get("/shop", headers={**headers, "Greenroom-Update": "1"})
    held = waiting.get(
        "/shop", "POST", {**headers, "Content-Length": str(len(SECRET))}, SECRET.encode()
    )
    assert held.waiting
    asked = {**headers, "Accept": "application/json"}
    link = json.loads(waiting.get("/shop?greenroom=move", headers=asked).body)["greenroom"]["move"]
    assert waiting.get("/shop?greenroom=calendar", headers=headers).status in (200, 303)
    more = inside.get("/shop?greenroom=session", "POST", {**asked, "Content-Length": "0"})
    assert json.loads(more.body)["greenroom"]["session"]["secondsLeft"] > 0
    ticket = next(iter(waiting.cookies.values()))
    running.metric("greenroom_ready")
    assert running.stop() == 0
    written = {path: path.read_bytes() for path in greenroom.folder.rglob("*") if path.is_file()}
    assert written, "or this proves nothing"
    kept = {str(path): text for path, text in written.items()} | {"output": running.output.encode()}
    for wanted in (ADDRESS, BROWSER, SECRET, ticket, link["url"].rpartition(".")[2]):
        found = [where for where, text in kept.items() if wanted.encode() in text]
        assert found == [], wanted
