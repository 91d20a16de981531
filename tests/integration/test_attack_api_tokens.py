"""A guesser of API tokens who writes X-Forwarded-For: neither gets a new budget with each address,
nor uses up that of another caller.
"""

from api_rig import Api, create_token

from greenroom.web.authenticator import FAILURES_MAX

CONFIG = 'origin = "http://127.0.0.1:9"\n'


def guesses(api: Api, addresses: list[str]) -> list[int]:
    return [
        api.ask(
            "GET",
            "/zones",
            headers={
                "Authorization": "Bearer grt_wrong",
                "X-Forwarded-For": address,
                "Forwarded": f"for={address}",
            },
        ).status
        for address in addresses
    ]


def test_a_forged_address_is_no_new_budget(greenroom) -> None:
    running = greenroom.config(CONFIG)
    api = Api(running.control, create_token(greenroom.data, "real", "--scope", "edit"))
    statuses = guesses(api, [f"192.0.2.{number}" for number in range(FAILURES_MAX + 2)])
    assert statuses == [401] * FAILURES_MAX + [429] * 2
    assert api.ask("GET", "/zones").status == 429, "it is this very machine that guessed"


def test_behind_a_trusted_proxy_each_caller_has_its_own_budget_and_cannot_use_up_anothers(
    greenroom,
) -> None:
    running = greenroom.config('trusted_proxies = ["127.0.0.1"]\n' + CONFIG)
    api = Api(running.control, create_token(greenroom.data, "real", "--scope", "edit"))
    # The proxy appends the address that it saw; what the guesser wrote is left of it.
    assert (
        guesses(api, [f"198.51.100.{number}, 192.0.2.1" for number in range(FAILURES_MAX + 2)])
        == [401] * FAILURES_MAX + [429] * 2
    )
    for other in ("198.51.100.1", "203.0.113.7"):
        assert (
            api.ask(
                "GET",
                "/zones",
                headers={"Authorization": f"Bearer {api.token}", "X-Forwarded-For": other},
            ).status
            == 200
        )
    assert guesses(api, ["203.0.113.7, 192.0.2.1"]) == [429]
