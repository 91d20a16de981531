"""Tokens of an OpenID Connect provider: only those that prove the person let in."""

import base64
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from dashboard_rig import DashboardRig, Visitor
from joserfc import jwt
from oidc_rig import CLIENT, KEY, OTHER_KEY, Provider
from oidc_sign_in import is_in, reason, saying, sign_in, without

from greenroom.accounts.oidc_provider import NEW_KEYS_MS
from greenroom.model.account import SESSION


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any]) -> str:
    return f"{encoded(json.dumps({'alg': 'none', 'typ': 'JWT'}).encode())}.{encoded(json.dumps(claims).encode())}."


def signed_with_the_public_key(claims: dict[str, Any]) -> str:
    signed = f"{encoded(json.dumps({'alg': 'HS256', 'kid': KEY.kid}).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{signed}.{encoded(hmac.new(KEY.as_pem(private=False), signed.encode(), 'sha256').digest())}"


def changed_after_signing(claims: dict[str, Any]) -> str:
    head, _, signature = jwt.encode({"alg": "RS256", "kid": KEY.kid}, claims, KEY).split(".")
    return f"{head}.{encoded(json.dumps({**claims, 'groups': ['bosses']}).encode())}.{signature}"


def moved(name: str, seconds: int) -> Callable[[dict[str, Any]], None]:
    return lambda claims: claims.update({name: claims[name] + seconds})


def key_in_header(claims: dict[str, Any]) -> str:
    own = OTHER_KEY.as_dict(private=False)
    return jwt.encode({"alg": "RS256", "kid": "two", "jwk": own}, claims, OTHER_KEY)


@pytest.mark.parametrize(
    "wrong",
    [
        {"change_claims": saying(nonce="of another sign-in")},
        {"change_claims": without("nonce")},
        {"change_claims": saying(aud="another client")},
        {"change_claims": saying(aud=[CLIENT, "another client"])},
        {"change_claims": saying(aud=[CLIENT, "another client"], azp="another client")},
        {"change_claims": without("aud")},
        {"change_claims": saying(iss="https://evil.example")},
        {"change_claims": without("iss")},
        {"change_claims": moved("exp", -400)},
        {"change_claims": without("exp")},
        {"change_claims": moved("iat", 3_600)},
        {"change_claims": moved("iat", -3_600)},
        {"change_claims": without("iat")},
        {"change_claims": without("sub")},
        {"change_claims": saying(sub="")},
        {"change_claims": saying(sub=7)},
        {"change_claims": saying(exp="soon")},
        {"change_claims": saying(at_hash="AAAAAAAAAAAAAAAAAAAAAA")},
        {"sign": unsigned},
        {"sign": signed_with_the_public_key},
        {"sign": changed_after_signing},
        {"sign": key_in_header},
        {"sign": lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, OTHER_KEY)},
        {"sign": lambda claims: "no.token"},
        {"sign": lambda claims: "..."},
        {"change_answer": saying(id_token=None)},
        {"change_answer": saying(id_token=["x"])},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_tokens_that_do_not_prove_the_person_are_refused(
    rig: DashboardRig, provider: Provider, wrong: dict[str, Any]
) -> None:
    for name, value in wrong.items():
        setattr(provider, name, value)
    visitor = Visitor(rig)
    assert "ID token" in reason(sign_in(visitor))
    assert not is_in(visitor)
    assert rig.store.sessions.rows(SESSION) == []


def test_keys_that_the_provider_changed_are_fetched_again_but_not_for_every_stranger(
    rig: DashboardRig, provider: Provider
) -> None:
    sign_in(Visitor(rig))
    provider.key, provider.published = OTHER_KEY, [OTHER_KEY]
    assert "signature" in reason(sign_in(Visitor(rig)))
    rig.clock.at_ms += NEW_KEYS_MS
    visitor = Visitor(rig)
    sign_in(visitor)
    assert is_in(visitor)
    provider.key = KEY
    for _ in range(3):
        sign_in(Visitor(rig))
    assert provider.asked.count("/jwks") == 2
