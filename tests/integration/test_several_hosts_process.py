"""Rooms over several hosts and paths through a real process, with visitors who keep cookies as
browsers do (RFC 6265).
"""

import http.client
import json
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

LIMITS = "total_active_users = 1\nnew_users_per_minute = 100\n"


@dataclass
class Browser:
    """Keeps every cookie with its domain and path, and sends it only where it belongs."""

    address: tuple[str, int]
    jar: dict[tuple[str, str, str], tuple[bool, str]] = field(
        default_factory=dict
    )  # (domain, path, name) -> (host only, value)
    last_set: str = ""

    def get(self, host: str, path: str) -> bool:
        """Whether the origin answered."""
        name_of_host = host.lower().partition(":")[0]
        sent = [
            f"{name}={value}"
            for (domain, prefix, name), (alone, value) in self.jar.items()
            if _belongs(domain, alone, prefix, name_of_host, path)
        ]
        headers = {
            "Host": host,
            "Accept": "text/html",
            **({"Cookie": "; ".join(sent)} if sent else {}),
        }
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        self.last_set = answer.headers.get("Set-Cookie") or ""
        for line in answer.headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(line).items():
                domain = morsel["domain"].lstrip(".")
                assert (
                    not domain or name_of_host == domain or name_of_host.endswith(f".{domain}")
                ), "a browser would refuse this cookie"
                self.jar[(domain or name_of_host, morsel["path"], name)] = (
                    not domain,
                    morsel.value,
                )
        connection.close()
        return answer.headers.get("X-Origin") is not None


def _belongs(domain: str, alone: bool, prefix: str, host: str, path: str) -> bool:
    if host != domain and (alone or not host.endswith(f".{domain}")):
        return False
    return path == prefix or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def config(origin: Any, *rooms: str) -> str:
    return f'origin = "{origin.url}"\n' + "".join(f"[[rooms]]\n{LIMITS}{room}\n" for room in rooms)


def routes(name: str, suffix: str, first: str, *more: str) -> str:
    def split(route: str) -> tuple[str, str]:
        host, _, path = route.partition("/")
        return host, f"/{path}"

    host, path = split(first)
    others = ", ".join(f'{{ host = "{h}", path = "{p}" }}' for h, p in map(split, more))
    return f'name = "{name}"\nhost = "{host}"\npath = "{path}"\ncookie_suffix = "{suffix}"\nadditional_routes = [{others}]\n'


SHOES_A = routes("a", "a", "a.example.com/shoes/product_123", "b.example.com/shoes/product_456")
SHOES_B = routes("b", "b", "c.example.com/shoes/product_789", "d.example.com/shoes/product_012")


def test_one_line_for_hosts_and_paths_with_the_cookie_as_published(
    greenroom: Any, origin: Any
) -> None:
    running = greenroom.config(config(origin, SHOES_A))
    inside, waiting = Browser(running.address), Browser(running.address)
    assert inside.get("a.example.com", "/shoes/product_123")
    assert inside.last_set.startswith("__cfwaitingroom_a=")
    assert "; Domain=example.com; Path=/shoes;" in inside.last_set
    assert inside.get("b.example.com", "/shoes/product_456/size"), (
        "the same visitor, the same session"
    )
    assert not waiting.get("b.example.com", "/shoes/product_456")
    assert not waiting.get("a.example.com", "/shoes/product_123")
    assert len(waiting.jar) == 1
    assert running.room("a")["active_users"] == 1
    assert Browser(running.address).get("a.example.com", "/shoes/product_456"), (
        "a path of the other host is covered there only"
    )
    assert Browser(running.address).get("b.example.com", "/shoes"), (
        "nor is what stands above the routes"
    )


def test_two_rooms_whose_cookies_overlap_are_kept_apart_by_their_suffix(
    greenroom: Any, origin: Any
) -> None:
    running = greenroom.config(config(origin, SHOES_A, SHOES_B))
    visitor = Browser(running.address)
    assert visitor.get("a.example.com", "/shoes/product_123")
    assert visitor.get("c.example.com", "/shoes/product_789")
    assert sorted(visitor.jar) == [
        ("example.com", "/shoes", "__cfwaitingroom_a"),
        ("example.com", "/shoes", "__cfwaitingroom_b"),
    ]
    for host, path in (
        ("b.example.com", "/shoes/product_456"),
        ("d.example.com", "/shoes/product_012"),
    ):
        assert visitor.get(host, path), "both sessions live"
    assert (running.room("a")["active_users"], running.room("b")["active_users"]) == (1, 1)
    stranger = Browser(
        running.address,
        {
            ("example.com", "/shoes", "__cfwaitingroom_b"): (
                False,
                visitor.jar[("example.com", "/shoes", "__cfwaitingroom_a")][1],
            )
        },
    )
    assert not stranger.get("c.example.com", "/shoes/product_789"), (
        "a ticket of one room is none of the other"
    )


def test_a_visitor_who_changes_language_keeps_the_place(greenroom: Any, origin: Any) -> None:
    room = (
        routes("shop", "shop", "example.com/en/product", "example.com/es/product")
        + "follow_accept_language = true\n"
    )
    running = greenroom.config(config(origin, room))
    assert Browser(running.address).get("example.com", "/en/product")
    visitor = running.visitor("example.com")
    first = visitor.get("/en/product", headers={"Accept-Language": "es"})
    assert "<html lang=es-ES" in first.text
    assert "Accept-Language" in first.headers["Vary"]
    ticket = json.dumps(visitor.cookies)
    second = visitor.get("/es/product", headers={"Accept-Language": "fr"})
    assert "<html lang=fr-FR" in second.text
    assert list(visitor.cookies) == list(json.loads(ticket)) == ["__cfwaitingroom_shop"]
