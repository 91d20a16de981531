"""Traefik's forwardAuth, replayed as its documentation describes it, against a real greenroom; no test has Traefik itself."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "traefik"


@pytest.fixture
def decide(greenroom: Any) -> Any:
    path = greenroom.folder / "greenroom.toml"
    path.write_text((FOLDER / "greenroom.toml").read_text().replace("total_active_users = 5", "total_active_users = 1"))
    places = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--data", str(greenroom.data))
    running = greenroom.run("decide", "--config", str(path), *places)
    greenroom.eventually(lambda: "\nready" in running.output, lambda: running.output)
    return running


def asks(
    decide: Any, visitor_class: Any, uri: str = "/shop?a=1", method: str = "GET", cookies: dict[str, str] | None = None, **more: str
) -> Any:
    """A GET with the visitor's headers, and these five: method, scheme, host, URI and address of what was asked for."""
    said = {
        "X-Forwarded-Method": method,
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "shop.example.com",
        "X-Forwarded-Uri": uri,
        "X-Forwarded-For": "192.0.2.1",
        **more,
    }
    visitor = visitor_class(decide._address("decide"), "127.0.0.1:8082", dict(cookies or {}))
    answer = visitor.get("/forward-auth", headers=said)
    name, _, value = (
        answer.headers.get("Set-Cookie", "").partition(";")[0].partition("=")
    )  # http.cookies of Python 3.11 fails on Partitioned
    return answer, {**visitor.cookies, **({name: value} if name else {})}


def test_traefik_is_told_yes_with_a_ticket_and_no_with_the_page(decide: Any, visitor_class: Any) -> None:
    yes, jar = asks(decide, visitor_class, cookies={"own": "1"})
    assert (yes.status, yes.headers["Cookie"]) == (200, "own=1")
    assert "__cfwaitingroom" in jar, str(yes.headers)
    assert asks(decide, visitor_class, method="POST", cookies=jar)[0].status == 200
    no, waiting = asks(decide, visitor_class)
    assert (no.status, b"line" in no.body, "__cfwaitingroom" in waiting) == (429, True, True)
    assert no.headers["Cache-Control"]
    assert "Secure" in no.headers["Set-Cookie"], "the scheme is the visitor's"
    for uri in ("/a/../b", "//shop", "/a%2fb", "/a;b", "/%2e%2e/shop"):
        assert asks(decide, visitor_class, uri, cookies=jar)[0].status == 400, uri
    for missing in ("X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host"):
        assert asks(decide, visitor_class, cookies=jar, **{missing: ""})[0].status == 400, missing


def test_the_configuration_names_what_greenroom_answers() -> None:
    written = yaml.safe_load((FOLDER / "dynamic.yaml").read_text())["http"]
    middleware = written["middlewares"]["greenroom"]["forwardAuth"]
    assert set(middleware) == {"address", "trustForwardHeader", "authResponseHeaders", "addAuthCookiesToResponse"}
    assert (middleware["trustForwardHeader"], middleware["authResponseHeaders"]) == (False, ["Cookie"])
    assert middleware["addAuthCookiesToResponse"] == ["__cfwaitingroom"]
    assert written["routers"]["application"]["middlewares"] == ["greenroom"]
