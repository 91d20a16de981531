"""Health checks through the API: what is kept, what is refused, and both of the published
addresses.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from api_in_process import ApiInProcess, api_in

from greenroom.health.rules.memory import HealthBatch
from greenroom.model.change import applied
from greenroom.model.configuration import Configuration
from greenroom.model.probe import CheckEvent, ProbeResult, Reason
from greenroom.transfer.export_import import exported, make_true
from greenroom.web.config_service import ChangeContext
from greenroom.web.refusals import Code

FAMILIES = ("healthchecks", "smart_shield/healthchecks")
NEEDED = {"name": "origin", "address": "origin.example.com"}


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[ApiInProcess]:
    with api_in(tmp_path_factory.mktemp("health")) as api:
        yield api


@pytest.fixture(scope="module")
def zone(api: ApiInProcess) -> str:
    return str(api.make("/zones", {"name": "shop.example.com"})["id"])


@pytest.fixture(params=FAMILIES)
def path(request, zone: str) -> str:
    return f"/zones/{zone}/{request.param}"


def codes(answer: Any) -> dict[str, int]:
    return {
        error.get("source", {}).get("pointer", ""): error["code"]
        for error in answer.json()["errors"]
    }


def test_a_check_is_made_looked_at_changed_and_removed(api: ApiInProcess, path: str) -> None:
    made = api.make(
        path,
        {
            **NEEDED,
            "type": "https",
            "interval": 10,
            "http_config": {"header": {"Host": ["shop.example.com"]}},
        },
    )
    assert (made["type"], made["interval"], made["timeout"], made["retries"]) == ("HTTPS", 10, 5, 2)
    assert made["http_config"] == {
        "method": "GET",
        "path": "/",
        "port": 443,
        "expected_codes": None,
        "expected_body": None,
        "follow_redirects": False,
        "allow_insecure": False,
        "header": {"Host": ["shop.example.com"]},
    }
    assert (made["tcp_config"], made["check_regions"]) == (None, None)
    assert (made["status"], made["failure_reason"], made["suspended"]) == ("unknown", "", False)
    assert made["greenroom"] == {"regions": {}, "status_since": None, "read_only": False}
    at = f"{path}/{made['id']}"
    assert api.ask("GET", at).json()["result"] == made
    edited = api.ask("PATCH", at, {"suspended": True, "http_config": {"path": "/health"}}).json()[
        "result"
    ]
    assert (edited["status"], edited["http_config"]["path"]) == ("suspended", "/health")
    assert edited["http_config"]["header"] == {"Host": ["shop.example.com"]}, (
        "the rest of the part stays"
    )
    replaced = api.ask("PUT", at, NEEDED).json()["result"]
    assert (replaced["type"], replaced["http_config"]["port"], replaced["suspended"]) == (
        "HTTP",
        80,
        False,
    )
    assert [check["id"] for check in api.ask("GET", path).json()["result"]] == [made["id"]]
    assert api.ask("DELETE", at).json()["result"] == {"id": made["id"]}
    assert api.ask("GET", at).status_code == 404


def test_both_addresses_show_the_same_checks(api: ApiInProcess, zone: str) -> None:
    made = api.make(f"/zones/{zone}/{FAMILIES[0]}", NEEDED)
    assert api.ask("GET", f"/zones/{zone}/{FAMILIES[1]}/{made['id']}").json()["result"] == made
    assert api.ask("DELETE", f"/zones/{zone}/{FAMILIES[1]}/{made['id']}").status_code == 200


def test_a_port_that_was_the_default_follows_the_type(api: ApiInProcess, path: str) -> None:
    made = api.make(path, NEEDED)
    at = f"{path}/{made['id']}"
    assert api.ask("PATCH", at, {"type": "HTTPS"}).json()["result"]["http_config"]["port"] == 443
    kept = api.ask("PATCH", at, {"type": "HTTP", "http_config": {"port": 443}}).json()["result"]
    assert kept["http_config"]["port"] == 443, "what was written down stays"
    api.ask("DELETE", at)


def test_everything_wrong_is_said_at_once_with_its_place(api: ApiInProcess, path: str) -> None:
    document = {
        "name": "a b",
        "type": "ICMP",
        "interval": 100_000,
        "check_regions": ["WEU", "MARS"],
        "http_config": {"expected_codes": ["ok"], "path": "x", "header": {"User-Agent": ["me"]}},
        "tcp_config": {"prot": 1},
        "intervall": 5,
    }
    answer = api.ask("POST", path, document)
    assert answer.status_code == 400
    assert codes(answer) == {
        "/address": Code.REQUIRED,
        "/name": Code.INVALID,
        "/type": Code.INVALID,
        "/interval": Code.INVALID,
        "/check_regions/1": Code.INVALID,
        "/http_config/expected_codes/0": Code.INVALID,
        "/http_config/path": Code.INVALID,
        "/http_config/header/User-Agent": Code.INVALID,
        "/tcp_config/prot": Code.INVALID,
        "/intervall": Code.UNKNOWN_FIELD,
    }


def test_what_is_not_there_and_what_belongs_to_another_zone_is_not_found(
    api: ApiInProcess, zone: str, path: str
) -> None:
    made = api.make(path, NEEDED)
    other = api.make("/zones", {"name": f"{path.count('/')}.example.org"})["id"]
    family = path.removeprefix(f"/zones/{zone}/")
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert api.ask(method, f"/zones/{other}/{family}/{made['id']}", NEEDED).status_code == 404
        assert api.ask(method, f"/zones/nowhere/{family}/{made['id']}", NEEDED).status_code == 404
    assert api.ask("GET", f"/zones/nowhere/{family}").status_code == 404
    api.ask("DELETE", f"{path}/{made['id']}")
    api.ask("DELETE", f"/zones/{other}")


def test_an_export_makes_the_same_checks_again_and_changes_nothing_where_they_are(
    api: ApiInProcess, zone: str
) -> None:
    path = f"/zones/{zone}/healthchecks"
    made = api.make(
        path,
        {**NEEDED, "type": "TCP", "tcp_config": {"port": 5432}, "check_regions": ["ALL_REGIONS"]},
    )
    known = api.store.read()
    document = exported(known)
    moment = ChangeContext(1, lambda: "f" * 32)
    assert make_true(document, lambda _pointer, _url: [])(known, moment).changes == []
    again, _ = applied(
        Configuration(),
        make_true(document, lambda _pointer, _url: [])(Configuration(), moment).changes,
        1,
    )
    assert again.health_checks[made["id"]].record == known.health_checks[made["id"]].record
    del document["zones"][0]["health_checks"]
    (gone,) = make_true(document, lambda _pointer, _url: [])(known, moment).changes
    assert gone.id == made["id"]
    api.ask("DELETE", f"{path}/{made['id']}")


def test_a_check_goes_with_its_zone(api: ApiInProcess) -> None:
    zone = api.make("/zones", {"name": "gone.example.net"})["id"]
    made = api.make(f"/zones/{zone}/healthchecks", NEEDED)
    api.ask("DELETE", f"/zones/{zone}")
    assert made["id"] not in api.store.read().health_checks


def test_a_preview_has_an_id_and_is_not_saved(api: ApiInProcess, path: str) -> None:
    made = api.make(f"{path}/preview", {**NEEDED, "type": "HTTPS"})
    at = f"{path}/preview/{made['id']}"
    assert (made["status"], made["http_config"]["port"]) == ("unknown", 443)
    assert api.ask("GET", at).json()["result"] == made
    assert made["id"] not in api.store.read().health_checks
    assert api.ask("GET", f"{path}/{made['id']}").status_code == 404
    assert api.ask("DELETE", at).json()["result"] == {"id": made["id"]}
    assert api.ask("GET", at).status_code == 404
    assert api.ask("POST", f"{path}/preview", {"name": "x"}).status_code == 400


def test_history_tells_what_probes_found(api: ApiInProcess, zone: str) -> None:
    path = f"/zones/{zone}/healthchecks"
    made = api.make(path, NEEDED)
    key, now_ms = made["id"], api.clock.at_ms
    known = {"check_id": key, "zone_id": zone, "name": "origin", "fqdn": "origin.example.com"}
    good = [
        CheckEvent(
            at_ms=now_ms - number,
            healthy=True,
            region="WEU",
            scope="agent",
            result=ProbeResult(code=200, tcp_ms=float(number)),
            **known,
        )
        for number in range(1, 101)
    ]
    wrong = ProbeResult(Reason.CODE, 503, "192.0.2.1", 41.0, 80.0, 222.0, 302.0)
    bad = CheckEvent(
        at_ms=now_ms,
        healthy=False,
        region="Global",
        scope="overall",
        result=wrong,
        changed=True,
        expected="200,3xx",
        **known,
    )
    api.health._store.save(HealthBatch(events=[*good, bad]), now_ms)
    found = api.ask("GET", f"{path}/{key}/events?limit=1").json()["result"]
    assert found == [
        {
            "time": "2023-11-14T22:13:20.000000Z",
            "status": "Unhealthy",
            "changed": True,
            "failure_reason": "Response code mismatch error",
            "region": "Global",
            "scope": "overall",
            "agent": "",
            "address": "192.0.2.1",
            "expected_codes": "200,3xx",
            "code": 503,
            "dns_ms": 0.0,
            "tcp_ms": 41.0,
            "tls_ms": 80.0,
            "request_ms": 0.0,
            "ttfb_ms": 222.0,
            "rtt_ms": 302.0,
            "tries": 1,
        }
    ]
    assert len(api.ask("GET", f"{path}/{key}/events?region=WEU&limit=1000").json()["result"]) == 100
    assert len(api.ask("GET", f"{path}/{key}/events?only_changes=true").json()["result"]) == 1
    assert api.ask("GET", f"{path}/{key}/events?since=yesterday").status_code == 400
    assert len(api.ask("GET", f"{path}/{key}/events?status=Unhealthy").json()["result"]) == 1
    page = api.ask("GET", f"{path}/{key}/events?status=Healthy&page=4&per_page=30").json()
    assert [found["tcp_ms"] for found in page["result"]] == [float(at) for at in range(91, 101)]
    assert page["result_info"] == {
        "page": 4, "per_page": 30, "count": 10, "total_count": 100, "total_pages": 4,
    }  # fmt: skip
    for wrong in ("status=down", "page=0", "per_page=7", "colour=red"):
        refused = api.ask("GET", f"{path}/{key}/events?{wrong}")
        assert (refused.status_code, wrong.partition("=")[0] in refused.text) == (400, True)
    figures = api.ask("GET", f"{path}/{key}/figures").json()["result"]
    total, europe = figures["regions"]
    assert (total["region"], total["uptime"], total["failures"]) == (
        "Global",
        0.0,
        {"Response code mismatch error": 1},
    )
    assert (
        europe["region"],
        europe["uptime"],
        europe["events"],
        europe["latency"]["tcp_ms"]["p95"],
    ) == ("WEU", 1.0, 100, 95.0)
    assert europe["latency"]["tls_ms"] is None
    assert figures["days"] == [{"day": "2023-11-14", "uptime": 0.0, "events": 1, "rtt_ms": 0.0}]
    api.ask("DELETE", f"{path}/{key}")
