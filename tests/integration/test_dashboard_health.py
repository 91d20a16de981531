"""Health checks and notifications in the dashboard."""

import re

import pytest
from dashboard_rig import DashboardRig, Visitor

from greenroom.model.health_check import HealthCheck
from greenroom.model.notification import AlertPolicy

NEW = "/zones/z2/health/new"
GOOD = {
    "name": "shop", "type": "HTTPS", "address": "shop.example", "interval": "30", "timeout": "5", "retries": "2", "consecutive_fails": "2",
    "consecutive_successes": "1", "path": "/ready", "port": "0", "expected_codes": "2xx, 304", "method": "GET",
}  # fmt: skip
POLICY = {
    "name": "Down",
    "alert_type": "health_check_status_notification",
    "alert_interval": "",
    "enabled": "true",
}


@pytest.fixture
def operator(dashboard: DashboardRig) -> Visitor:
    return dashboard.person("operator")


def checks(dashboard: DashboardRig) -> list[HealthCheck]:
    return [
        entry.record
        for entry in dashboard.store.read().health_checks.values()
        if entry.parent == "z2"
    ]


def test_a_check_is_made_changed_and_removed(dashboard: DashboardRig, operator: Visitor) -> None:
    assert operator.post(NEW, **GOOD).status_code == 303
    (check,) = checks(dashboard)
    assert check.http_config is not None
    assert (check.interval, check.consecutive_fails, check.http_config.path) == (30, 2, "/ready")
    assert check.http_config.expected_codes == ("2xx", "304")
    page = f"/zones/z2/health/{check.id}"
    shown = operator.get(f"{page}/edit").text
    assert 'value="2xx, 304"' in shown
    found = re.search(r'name="revision" value="(\d+)"', shown)
    assert found is not None
    assert (
        operator.post(
            f"{page}/edit", **{**GOOD, "interval": "90", "revision": found[1]}
        ).status_code
        == 303
    )
    assert checks(dashboard)[0].interval == 90
    assert operator.post(f"{page}/edit", **{**GOOD, "revision": found[1]}).status_code == 409
    assert operator.get(page).status_code == 200
    assert operator.post(f"{page}/remove").status_code == 303
    assert checks(dashboard) == []


def test_regions_and_headers_come_back_into_the_form(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    header = "Host: shop.example.com\r\nX-Two: a\r\nX-Two: b"
    assert operator.post(NEW, **GOOD, header=header, check_regions=["WEU", "OC"]).status_code == 303
    (check,) = checks(dashboard)
    assert check.http_config is not None
    assert check.http_config.header == {"Host": ("shop.example.com",), "X-Two": ("a", "b")}
    assert check.check_regions == ("WEU", "OC")
    shown = operator.get(f"/zones/z2/health/{check.id}/edit").text
    assert "Host: shop.example.com\nX-Two: a\nX-Two: b</textarea>" in shown
    assert len(re.findall(r'name="check_regions" value="\w+" checked', shown)) == 2
    refused = operator.post(NEW, **GOOD, header="User-Agent: me", check_regions="Rome")
    assert refused.status_code == 400
    assert "set by the probe itself" in refused.text
    assert "must be one of WNAM" in refused.text


def test_a_check_is_tried_and_nothing_is_saved(dashboard: DashboardRig, operator: Visitor) -> None:
    tried = operator.post(f"{NEW}/try", **GOOD)
    assert tried.status_code == 200
    assert "Nothing is saved yet" in tried.text
    assert "Healthy</span>" in tried.text
    assert 'value="/ready"' in tried.text
    assert checks(dashboard) == []
    assert operator.post(f"{NEW}/try", **{**GOOD, "port": "99999"}).status_code == 400
    assert dashboard.person("viewer").post(f"{NEW}/try", **GOOD).status_code == 403


def test_a_check_by_tcp_needs_a_port_alone(dashboard: DashboardRig, operator: Visitor) -> None:
    assert operator.post(NEW, **{**GOOD, "type": "TCP", "port": "5432"}).status_code == 303
    (check,) = checks(dashboard)
    assert check.http_config is None
    assert check.tcp_config is not None
    assert check.tcp_config.port == 5432


def test_everything_wrong_is_said_beside_its_field_and_what_was_typed_stays(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    answer = operator.post(
        NEW, **{**GOOD, "name": "two words", "port": "99999", "interval": "soon", "path": "/kept"}
    )
    assert answer.status_code == 400
    for name in ("name", "port", "interval"):
        assert f'id="f-{name}-problem"' in answer.text, name
    assert 'value="/kept"' in answer.text
    assert checks(dashboard) == []


def test_people_see_checks_of_their_zones_alone(dashboard: DashboardRig) -> None:
    dashboard.person("operator").post(NEW, **GOOD)
    assert ">shop</a>" not in dashboard.person("viewer", "z1").get("/health").text
    assert ">shop</a>" in dashboard.person("viewer", "z2").get("/health").text


def test_a_policy_is_made_with_its_destinations_and_filters(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    made = operator.post(
        "/notifications/policies/new",
        **POLICY,
        emails="a@example.com\nb@example.com",
        **{"filter-status": "Unhealthy", "filter-limit": "5"},
    )
    assert made.status_code == 303, made.text
    policy = next(
        entry
        for entry in dashboard.store.read().alert_policies.values()
        if entry.record.name == "Down"
    )
    assert policy.record.emails == ("a@example.com", "b@example.com")
    assert policy.record.filters == {"status": ("Unhealthy",)}
    shown = operator.get(f"/notifications/policies/{policy.id}/edit").text
    assert "a@example.com\nb@example.com</textarea>" in shown
    assert '<option value="Unhealthy" selected>' in shown
    assert (
        operator.post(f"/notifications/policies/{policy.id}/step", step="remove").status_code == 303
    )
    assert policy.id not in dashboard.store.read().alert_policies


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"emails": "nowhere"}, "nowhere"),
        ({"emails": "a@example.com", "filter-status": "full"}, "full"),
        ({}, "choose at least one destination"),
        ({"webhook": "0" * 32}, "choose at least one destination"),
        ({"new_url": "ftp://x"}, "must begin with https"),
        ({"new_url": "http://[1"}, "not a web address"),
        ({"name": ""}, "name"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(
    dashboard: DashboardRig, operator: Visitor, wrong: dict[str, str], said: str
) -> None:
    before = len(dashboard.store.read().alert_policies)
    answer = operator.post("/notifications/policies/new", **{**POLICY, **wrong})
    assert answer.status_code == 400
    assert said in answer.text
    assert len(dashboard.store.read().alert_policies) == before


def policies(dashboard: DashboardRig, name: str = "Down") -> list[AlertPolicy]:
    known = dashboard.store.read()
    return [one for one in known.alert_policies.records() if one.name == name]


def test_a_destination_is_added_with_its_policy(dashboard: DashboardRig, operator: Visitor) -> None:
    new, url = "/notifications/policies/new", "https://chat.example.com/hook"
    before = len(dashboard.store.read().webhooks)
    refused = operator.post(new, **{**POLICY, "name": "", "new_url": url})
    assert refused.status_code == 400
    assert f'value="{url}"' in refused.text
    assert len(dashboard.store.read().webhooks) == before, "added for a policy that was refused"
    assert operator.post(new, **POLICY, new_url=url).status_code == 303
    (policy,) = policies(dashboard)
    (hook,) = policy.webhook_ids
    assert dashboard.store.read().webhooks[hook].record.url == url
    assert dashboard.store.read().webhooks[hook].record.name == "chat.example.com"


def test_a_policy_that_tells_nobody_is_not_shown_as_on(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    url = "https://chat.example.com/hook"
    operator.post("/notifications/policies/new", **POLICY, new_url=url)
    (policy,) = policies(dashboard)
    assert "Tells nobody" not in operator.get("/notifications").text
    operator.post(f"/notifications/webhooks/{policy.webhook_ids[0]}/remove")
    assert "Tells nobody" in operator.get("/notifications").text


def test_a_check_says_who_is_notified_and_offers_to_notify_me(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    operator.post(NEW, **GOOD)
    (check,) = checks(dashboard)
    page = f"/zones/z2/health/{check.id}"
    known = set(dashboard.store.read().alert_policies)
    for policy in known:
        operator.post(f"/notifications/policies/{policy}/step", step="remove")
    shown = operator.get(page).text
    assert "Nobody is notified" in shown
    assert f'/notifications/policies/new?check={check.id}"' in shown
    form = operator.get(f"/notifications/policies/new?check={check.id}").text
    assert 'value="shop is unhealthy"' in form
    assert f'<option value="{check.id}" selected>shop</option>' in form
    new = "/notifications/policies/new"
    for name, filters in (
        ("Ours", {"filter-health_check_id": check.id}),
        ("All", {}),
        ("Elsewhere", {"filter-zones": "z1"}),
        ("Recovered", {"filter-status": "Healthy"}),
    ):
        made = operator.post(new, **{**POLICY, "name": name}, emails="a@example.com", **filters)
        assert made.status_code == 303, made.text
    shown = operator.get(page).text
    assert [name for name in ("Ours", "All", "Elsewhere", "Recovered") if f">{name}</a>" in shown] == [
        "Ours", "All",
    ]  # fmt: skip
    assert "Ours" not in dashboard.person("viewer", "z2").get(page).text
    assert (
        f'<option value="{check.id}" selected>shop</option>'
        in operator.get(f"/notifications/history?about={check.id}").text
    )


def test_search_finds_checks_policies_and_webhooks(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    operator.post(NEW, **{**GOOD, "name": "findable-check"})
    operator.post(
        "/notifications/policies/new",
        **{**POLICY, "name": "Findable policy"},
        new_url="https://findable.example.com/hook",
    )
    shown = operator.get("/search?q=findable").text
    for kind in ("Health check", "Notification policy", "Webhook"):
        assert kind in shown
    hidden = dashboard.person("viewer", "z1").get("/search?q=findable").text
    for kind in ("Health check</", "Notification policy", "Webhook"):
        assert kind not in hidden.partition("<main")[2]


def test_a_generated_secret_is_offered(operator: Visitor) -> None:
    offered = [
        re.search(
            r"A random secret for you: <code>([\w-]{32})</code>",
            operator.get("/notifications").text,
        )
        for _ in range(2)
    ]
    assert offered[0]
    assert offered[1]
    assert offered[0][1] != offered[1][1]


def test_filters_are_chosen_by_name(dashboard: DashboardRig, operator: Visitor) -> None:
    room = next(iter(dashboard.store.read().rooms.values()))
    shown = operator.get("/notifications/policies/new").text
    assert f'<option value="{room.id}">{room.record.name}</option>' in shown
    form = {**POLICY, "alert_type": "greenroom_queueing", "emails": "a@example.com"}
    made = operator.post(
        "/notifications/policies/new",
        **form,
        **{"filter-waiting_room_id": room.id, "filter-status": "Healthy"},
    )
    assert made.status_code == 303, made.text
    (policy,) = policies(dashboard)
    assert policy.filters == {"waiting_room_id": (room.id,)}, "a filter of another type was kept"
    edited = operator.get(f"/notifications/policies/{policy.id}/edit").text
    assert f'<option value="{room.id}" selected>{room.record.name}</option>' in edited


def test_a_refused_address_stays_in_its_field(operator: Visitor) -> None:
    refused = operator.post("/notifications/webhooks", name="Team", url="ftp://files.example")
    assert refused.status_code == 400
    assert 'name="url" value="ftp://files.example"' in refused.text
    assert 'value="Team"' in refused.text
    assert '<p class="problem">a URL must begin with' in refused.text


def test_secrets_of_destinations_are_taken_and_never_shown(
    dashboard: DashboardRig, operator: Visitor
) -> None:
    url, secret, key = (
        "https://hooks.slack.com/services/T0/B0/verysecretpath",
        "verysecretword",
        "0123456789abcdef0123456789abcdef",
    )
    assert (
        operator.post("/notifications/webhooks", name="Team", url=url, secret=secret).status_code
        == 303
    )
    assert (
        operator.post("/notifications/pagerduty", name="Duty", routing_key=key).status_code == 303
    )
    shown = operator.get("/notifications").text
    assert "Team" in shown
    assert "Duty" in shown
    for hidden in ("verysecretpath", secret, key):
        assert hidden not in shown
    refused = operator.post("/notifications/webhooks", name="", url="ftp://x", secret=secret)
    assert refused.status_code == 400
    assert secret not in refused.text


def test_a_silence_begins_now_and_can_be_ended(dashboard: DashboardRig, operator: Visitor) -> None:
    before = set(dashboard.store.read().silences)
    assert operator.post("/notifications/silences", policy="", hours="4").status_code == 303
    (made,) = [
        entry for entry in dashboard.store.read().silences.values() if entry.id not in before
    ]
    assert made.record.end_ms - dashboard.clock.at_ms == 4 * 3_600_000
    assert "Everything is silent" in operator.get("/notifications").text
    assert operator.post(f"/notifications/silences/{made.id}/remove").status_code == 303
    assert set(dashboard.store.read().silences) == before
